"""Tests of the programs that run many measurements side by side: gpu_tables, precisions. In the places of the command, of
PyTorch and of the samples stand programs that answer as they do. test_bench.py runs them."""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import report
import slots
from versus_report import RECORD_COLUMNS

HERE = pathlib.Path(__file__).resolve().parent

# The command: overfeat never ends and has a child in a session of its own, alexnet fails.
CONCORD = """#!{python}
import json, os, subprocess, sys
net = sys.argv[2]
if net == "overfeat":
    child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    open("{folder}/child", "w").write(str(child.pid))
    child.wait()
if net == "alexnet":
    sys.exit("concord: no room for it")
open("{folder}/gpus", "a").write(os.environ["CUDA_VISIBLE_DEVICES"] + " " + str(len(os.sched_getaffinity(0))) + "\\n")
times = {{"median_ms": 3.0, "min_ms": 2.0, "max_ms": 4.0, "samples": 9, "trace": []}}
print(json.dumps({{"net": net, "batch": int(sys.argv[4]), "input": [3], "classes": 2, "task": "classification",
                  "parameters": 7, "device": "opencl:0", "device_name": "A GPU", "driver": "5.8", "version": "0",
                  "peak_device_bytes": 3 << 20, "peak_resident_bytes": 1, "train": times, "infer": times}}))
"""
TORCH = """#!{python}
import json, sys
if sys.argv[1] == "-c":
    sys.exit(print("9.9.9 1"))
modes = {{mode: 4.0 + i for i, mode in enumerate(sys.argv[sys.argv.index("--modes") + 1].split(","))}}
times = {{"median_ms": 4.0, "min_ms": 1.5, "max_ms": 4.5, "samples": 10, "mode": "eager", "modes": modes,
         "left_out": {{}}, "peak_device_bytes": 5 << 20}}
print(json.dumps({{"torch": "9.9.9", "device_name": "A GPU", "cudnn": 9, "parameters": 7, "train": times, "infer": times,
                  "peak_resident_bytes": 1}}))
"""


def is_alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


class Tables(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name, text in (("concord", CONCORD), ("python", TORCH)):
            self.program(name, text.format(python=sys.executable, folder=self.folder))

    def program(self, name, text):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
        return path

    def run_program(self, name, *words):
        environment = {key: value for key, value in os.environ.items() if key != "CUDA_VISIBLE_DEVICES"}
        environment["PATH"] = f"{self.folder}:{environment['PATH']}"  # its nvidia-smi
        done = subprocess.run([sys.executable, HERE / name, *map(str, words), "--out", self.folder / "out"],
                              capture_output=True, text=True, env=environment)
        self.assertNotIn("Traceback", done.stderr)
        return done

    def tables(self, *words):
        return self.run_program("gpu_tables", "--concord", self.folder / "concord", "--python", self.folder / "python",
                                *words)

    def rows(self):
        return [tuple(row[key] for key in ("network", "batch", "precision", "pass"))
                for row in report.read_csv(self.folder / "out/rows.csv", RECORD_COLUMNS)]

    def test_all_networks_in_the_precisions_before_them(self):
        self.program("nvidia-smi", "#!/bin/sh\necho 'GPU 0: A GPU'\necho 'GPU 1: A GPU'\n")
        words = ["--precision", "bf16,fp16", "--net", "mlp:depth=4,width=8@2,lenet", "--precision", "fp32", "--net", "lenet"]
        done = self.tables(*words, "--warm")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(set(self.rows()), {
            (net, batch, precision, part) for part in ("training", "inference") for net, batch, precision in (
                ("mlp:depth=4,width=8", "2", "bf16"), ("mlp:depth=4,width=8", "2", "fp16"), ("lenet", "64", "bf16"),
                ("lenet", "64", "fp16"), ("lenet", "64", "fp32"))})
        row = next(row for row in report.read_csv(self.folder / "out/rows.csv", RECORD_COLUMNS)
                   if (row["precision"], row["pass"]) == ("fp16", "training"))
        self.assertEqual([row[key] for key in ("ours_ms", "eager_ms", "graph_ms", "compiled_ms", "compiled_graph_ms",
                                               "ours_mib", "torch_mib", "device")],
                         ["3", "4", "5", "7", "6", "3", "5", "A GPU"])
        self.assertNotIn(str(self.folder), row["command"])
        seen = (self.folder / "gpus").read_text(encoding="utf-8").split("\n")[:-1]
        self.assertEqual(len(seen), 2 * 5)  # to compile, to measure
        share = max(1, len(os.sched_getaffinity(0)) // 2)
        self.assertEqual(set(seen[5:]), {f"0 {share}", f"1 {share}"})
        again = self.tables(*words)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertIn("0 jobs on 2 GPUs, 5 measured before", again.stderr)
        self.assertEqual(len(self.rows()), 2 * 5)

    def test_what_fails_leaves_the_others(self):
        done = self.tables("--gpus", 1, "--limit", 6, "--precision", "fp32", "--net", "overfeat,alexnet,lenet")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no rows of overfeat@128 fp32: took more than 6 s", done.stderr)
        self.assertIn("no rows of alexnet@128 fp32: gpu_vs_pytorch: nothing was measured: failed: no room for it",
                      done.stderr)
        self.assertEqual({row[0] for row in self.rows()}, {"lenet"})
        self.assertIn("1 of 3 jobs", (self.folder / "out/log.txt").read_text(encoding="utf-8"))
        child = int((self.folder / "child").read_text(encoding="utf-8"))
        self.assertFalse(is_alive(child))

    def test_the_deadline_ends_all(self):
        done = self.tables("--gpus", 1, "--deadline", 2, "--precision", "fp32", "--net", "overfeat,lenet")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no rows of overfeat@128 fp32: took more than 2 s", done.stderr)
        self.assertIn("no rows of lenet@64 fp32: not started: no time left", done.stderr)

    def test_an_end_from_outside_ends_the_jobs(self):
        process = subprocess.Popen([sys.executable, HERE / "gpu_tables", "--concord", self.folder / "concord", "--python",
                                    self.folder / "python", "--gpus", "1", "--precision", "fp32", "--net", "overfeat",
                                    "--out", self.folder / "out"], stderr=subprocess.DEVNULL)
        child = self.folder / "child"
        end = time.monotonic() + 30
        while not (child.exists() and child.read_text(encoding="utf-8")) and time.monotonic() < end:
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(), 130)
        self.assertFalse(is_alive(int(child.read_text(encoding="utf-8"))))

    def test_refusals(self):
        for words, sentence in ((["--net", "lenet"], "no --precision in front of it"),
                                (["--precision", "fp64", "--net", "lenet"], "fp64"),
                                (["--precision", "fp32", "--net", "lenet@x"], "the batch is no number"),
                                (["--precision", "fp32", "--net", "lenet", "--precision", "bf16"], "no --net behind it")):
            with self.subTest(words):
                done = self.tables(*words)
                self.assertEqual(done.returncode, 2)
                self.assertIn(sentence, done.stderr)

    def test_slots(self):
        places = slots.slots(2, ["0"])
        self.assertEqual([place.gpu for place in places], ["0", "0"])
        self.assertEqual(len(slots.slots(5, [])), 5)
        self.assertIsNone(slots.slots(1, [])[0].gpu)
