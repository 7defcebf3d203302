#!/usr/bin/env python3
"""Exports networks and steps of their training, and runs the files with onnx.checker and onnxruntime beside Concord.

export_networks.py COMMAND [--all] [NETWORK ...]: COMMAND is the program `concord`. Without --all, small networks alone.
Exit code 77 if onnx or onnxruntime is missing.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import onnx  # noqa: F401
    import onnxruntime  # noqa: F401
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

SMALL = ["mlp", "lenet", "resnet20", "char_lstm", "gpt_tiny", "unet"]
TRAINED = ["mlp", "lenet", "resnet20", "char_lstm", "gpt_tiny", "unet"]


def concord(command, *arguments):
    # The python3 that the command finds is this one.
    path = os.path.dirname(sys.executable) + os.pathsep + os.environ.get("PATH", "")
    return subprocess.run([command, *arguments], capture_output=True, text=True, env={**os.environ, "PATH": path})


def export(command, network, folder, *arguments):
    file = pathlib.Path(folder) / "network.onnx"
    sample = "x".join(str(size) for size in network["least_input"])
    done = concord(command, "export", network["name"], "--input", sample, "--out", str(file), "--verify=onnxruntime",
                   "--device", "cpu", "--json", *arguments)
    for written in pathlib.Path(folder).iterdir():
        written.unlink()
    try:
        outputs = json.loads(done.stdout)["outputs"]
        worst = max(outputs, key=lambda one: one["difference"] / max(one["largest"], 1e-30))
        text = f"{worst['difference'] / max(worst['largest'], 1e-30):.1e} ({worst['name']})"
        loss = [one for one in outputs if one["name"] == "loss"]
        if loss:
            text = f"loss {loss[0]['difference'] / loss[0]['largest']:.1e}, largest {text}"
    except (json.JSONDecodeError, KeyError):
        text = "no result"
    is_right = done.returncode == 0
    print(f"{network['name']} {' '.join(arguments)}: {text}{'' if is_right else ' FAILED ' + done.stderr.strip()}",
          flush=True)
    return is_right


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("command")
    parser.add_argument("networks", nargs="*")
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    listed = concord(options.command, "models", "--json", "--batch", "1", "--device", "cpu")
    if listed.returncode != 0:
        print(listed.stderr)
        return 1
    networks = json.loads(listed.stdout)
    wanted = options.networks or ([one["name"] for one in networks] if options.all else SMALL)
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        for network in networks:
            if network["name"] not in wanted:
                continue
            if not export(options.command, network, folder, "--batch", "N"):
                failed.append(network["name"])
            if network["name"] in TRAINED and not export(options.command, network, folder, "--training", "--batch", "4"):
                failed.append(network["name"] + " in training")
    print(f"{len(wanted) - len(failed)} of {len(wanted)} networks" if not failed else f"failed: {', '.join(failed)}")
    return 1 if failed else 0


sys.exit(main())
