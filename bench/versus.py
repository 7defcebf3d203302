"""Concord beside PyTorch: what bench/gpu_vs_pytorch and bench/cpu_vs_pytorch share, the measuring. Processes of both
sides alternate, so that what drifts on the machine meets both, and each side has the device and its memory to itself.
bench/versus_report.py makes tables and charts of it."""
import argparse
import os
import pathlib
import subprocess

import report
import roofline
import versus_report
from command import (MODES, PRECISIONS, ROOT, Concord, Failure, Refused, Usage, add_measuring, environment, last_lines,
                     positive, run_json, say, split_nets, threads)
from versus_report import COLUMNS, MODE_COLUMNS, OPERATOR_COLUMNS, PHASES, RECORD_COLUMNS

BATCHES = {"alexnet": 128, "overfeat": 128, "googlenet": 128, "bert_base": 32, "gpt2_small": 8, "unet": 8}  # others 64


def parse(description, name, nets, device, torch_device):
    parser = argparse.ArgumentParser(prog=name, description=description,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--net", nargs="+", action="extend", metavar="NET", help=(
        "of `concord models`, with sizes if wanted (gpt_tiny:depth=8), with a batch if wanted (vgg11@32) "
        f"[{','.join(nets)}]"))
    parser.add_argument("--precision", nargs="+", action="extend", metavar="PRECISION",
                        help=f"of {', '.join(PRECISIONS)} [fp32]")
    parser.add_argument("--batch", type=positive(int),
                        help="for each network [128 for alexnet, overfeat, googlenet; 32 for bert_base; 8 for "
                        "gpt2_small, unet; else 64]")
    parser.add_argument("--input", default="", help="one sample, such as 3x64x64 [as published]")
    parser.add_argument("--device", default=device, help="of Concord [%(default)s]")
    parser.add_argument("--torch-device", default=torch_device, help="of PyTorch [%(default)s]")
    parser.add_argument("--torch-layout", default="auto", choices=["auto", "contiguous", "channels_last", "best"],
                        help="of PyTorch's images; auto: the better on a CPU, on a GPU channels_last for bf16, fp16")
    parser.add_argument("--torch-modes", default="", metavar="MODES", help=(
        f"of {', '.join(MODES)}: what PyTorch is measured in, its fastest being its best [all; on a CPU "
        "eager,compiled]"))
    parser.add_argument("--python", default=os.environ.get("CONCORD_PYTHON", ""),
                        help="with PyTorch [$CONCORD_PYTHON, else python3 or /usr/bin/python3]")
    roofline.add_option(parser)
    add_measuring(parser, 1.0)
    parser.add_argument("--out", default="bench-results", metavar="FOLDER",
                        help="for CSV, SVG and Markdown [%(default)s]")
    parser.add_argument("--from", nargs="+", dest="recorded", metavar="CSV", default=[],
                        help="measure nothing: make tables and charts of recorded runs")
    options = parser.parse_args()
    options.name = name
    options.net = split_nets(options.net or nets)
    options.precision = [p for word in options.precision or ["fp32"] for p in word.split(",")]
    unknown = [p for p in options.precision if p not in PRECISIONS]
    if unknown:
        raise Usage(f"--precision {unknown[0]}: expected some of {', '.join(PRECISIONS)}")
    unknown = [mode for mode in filter(None, options.torch_modes.split(",")) if mode not in MODES]
    if unknown:
        raise Usage(f"--torch-modes {unknown[0]}: expected some of {', '.join(MODES)}")
    if options.ceilings not in ("", "none", "measure"):
        options.ceilings = roofline.parse(options.ceilings)
    return options


class Torch:
    """PyTorch, in a process for each measurement."""

    def __init__(self, options):
        self.options = options
        self.env = self.environment()
        self.python, self.version = self.find()

    def environment(self):
        result = environment()
        if "CONCORD_OUTER_LIBRARY_PATH" in result:  # a bundle's libraries are for Concord alone
            result["LD_LIBRARY_PATH"] = result["CONCORD_OUTER_LIBRARY_PATH"]
        if self.options.torch_device != "cpu":
            return result
        # What Debian's PyTorch needs for its best; others ignore it.
        blas = next(iter(sorted(pathlib.Path("/usr/lib").glob("*-linux-gnu/openblas-openmp"))), None)
        if blas:
            result["LD_LIBRARY_PATH"] = f"{blas}:{result.get('LD_LIBRARY_PATH', '')}".rstrip(":")
        if "avx512f" in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8"):
            result.setdefault("ATEN_CPU_CAPABILITY", "avx512")
        return result

    def find(self):
        """The Python to use and its PyTorch's version."""
        asked, reasons = "import torch; print(torch.__version__, int(torch.cuda.is_available()))", []
        for python in [self.options.python] if self.options.python else ["python3", "/usr/bin/python3"]:
            try:
                done = subprocess.run([python, "-c", asked], env=self.env, capture_output=True, text=True)
            except OSError as error:
                raise Failure(f"{python} does not run: {error.strerror}") from None
            if done.returncode == 0:
                version, has_cuda = done.stdout.split()
                if self.options.torch_device.startswith("cuda") and has_cuda == "0":
                    raise Failure(f"PyTorch {version} of {python} has no CUDA device; --torch-device cpu, or "
                                  "bench/cpu_vs_pytorch, measures on the CPU")
                return python, version
            reason = last_lines(done.stderr, 1)
            if reason and "No module named 'torch'" not in reason:
                reasons.append(f"{python}: {reason}")
        raise Failure("\n".join([f"{python} has no PyTorch. Install it (`apt-get install python3-torch`, or `pip install "
                                 "torch torchvision` in a virtual environment) and name its Python by --python or "
                                 "$CONCORD_PYTHON", *reasons]))

    def run(self, *words):
        result, code, complaint = run_json(
            [self.python, ROOT / "bench/torch_step.py", "--device", self.options.torch_device, "--seconds",
             self.options.seconds, *words], self.env, self.options.timeout)
        if code == 3:
            raise Refused(last_lines(complaint))
        if code:
            raise Failure(f"PyTorch: {last_lines(complaint)}")
        return result

    def bench(self, ours, precision):
        """The network, samples and batch of Concord's report `ours`."""
        words = [ours["net"], "--batch", ours["batch"], "--input", "x".join(map(str, ours["input"])), "--classes",
                 ours["classes"], "--task", ours["task"], "--precision", precision, "--layout",
                 self.options.torch_layout]
        if self.options.torch_modes:
            words += ["--modes", self.options.torch_modes]
        theirs = self.run(*words)
        if theirs["parameters"] != ours["parameters"]:
            raise Failure(f"{ours['net']} has {ours['parameters']} parameters here and {theirs['parameters']} in "
                          "PyTorch: not the same network, so not compared")
        return theirs


class Ceilings:
    """Of the device, known once a report names it."""

    def __init__(self, wish, torch):
        self.wish, self.torch, self.found, self.told = wish, torch, None, set()

    def of(self, ours, precision):
        """None where something is missing; says so once."""
        if self.wish == "none":
            return None
        if self.found is None:
            self.found = self.wish if isinstance(self.wish, dict) else \
                self.torch.run("--probe")["ceilings"] if self.wish == "measure" else roofline.known(ours["device_name"])
            if self.found:
                say("ceilings: " + ", ".join(f"{k} {v:g} {roofline.UNITS[k]}" for k, v in self.found.items()))
        lacking = roofline.lacking(self.found, precision)
        if lacking and precision not in self.told:
            self.told.add(precision)
            say(f"no roofline in {precision}: no {', '.join(lacking)} known of {ours['device_name']}; --ceilings gives "
                "them")
        return None if lacking else self.found


def rows_of(side, result, about, floors, round_number):
    """Two rows of the CSV: training and inference."""
    for phase in PHASES:
        times = result[phase]
        modes = times.get("modes", {})
        peak = times.get("peak_device_bytes", result.get("peak_device_bytes", 0)) if phase == "train" else 0
        yield about | {
            "side": side, "phase": phase, "round": round_number, "median_ms": times["median_ms"],
            "min_ms": times["min_ms"], "max_ms": times["max_ms"], "samples": times["samples"],
            "parameters": result["parameters"], "peak_device_bytes": peak,
            "peak_resident_bytes": result["peak_resident_bytes"], "device_name": result["device_name"],
            "driver": f"{'oneDNN' if result['device'] == 'cpu' else 'driver'} {result['driver']}" if "driver" in result
            else f"cuDNN {result['cudnn']}" if result["cudnn"] else "",
            "version": result.get("version") or result["torch"],
            "form": " ".join(filter(None, (times.get("layout"), times.get("form")))),
            "floor_ms": floors.get(phase, ""), "mode": times.get("mode", "")} | {
                column: modes.get(mode) for mode, column in MODE_COLUMNS.items()}


def left_out(theirs):
    """{"training step compiled": why} of PyTorch's modes that have no time."""
    return {f"{name} {MODES[mode]}": why for phase, name in PHASES.items()
            for mode, why in theirs[phase].get("left_out", {}).items()}


def told(times):
    """PyTorch's time and the mode it took it in, beside its eager time."""
    eager = times.get("modes", {}).get("eager")
    if eager is None or times["mode"] == "eager":
        return f"{times['median_ms']:.3f}"
    return f"{times['median_ms']:.3f} ({MODES[times['mode']]}; eager {eager:.3f})"


def measure_net(options, concord, torch, ceilings, net, precision, tables):
    """All rounds of one network in one precision. Returns why modes of PyTorch have no time."""
    net, _, batch = net.partition("@")
    if batch and not batch.isdecimal():
        raise Usage(f"--net {net}@{batch}: the batch is no number")
    batch = int(batch or options.batch or BATCHES.get(net.split(":")[0], 64))
    rows, floors, ours, traces, mine, reasons = tables[0], {}, None, [], [], {}
    for number in range(1, options.rounds + 1):
        if number % 2 == 0:
            theirs = torch.bench(ours, precision)
        ours = concord.bench(net, batch, precision, options.input, trace=True)
        if number % 2:
            theirs = torch.bench(ours, precision)
        about = {"date": report.today(), "net": net, "batch": batch, "precision": precision,
                 "input": "x".join(map(str, ours["input"]))}
        traces.append({phase: ours[phase]["trace"] for phase in PHASES})
        if number == 1:
            known = ceilings.of(ours, precision)
            floors = {phase: roofline.floor_ms(traces[0][phase], known, precision) for phase in PHASES} if known else {}
        for side, result in (("concord", ours), ("pytorch", theirs)):
            for row in rows_of(side, result, about, floors, number):
                rows.add(row)
                mine.append(row)
        reasons |= left_out(theirs)
        say(f"{net} {precision} round {number}/{options.rounds}: training step {ours['train']['median_ms']:.3f} ms, "
            f"PyTorch {told(theirs['train'])}; inference {ours['infer']['median_ms']:.3f}, {told(theirs['infer'])}")
    for phase in PHASES:
        trace = roofline.median_trace([trace[phase] for trace in traces])
        for group in roofline.by_kernel(trace, known, precision):
            tables[1].add(about | {"phase": phase} | group)
    for row in versus_report.records(mine, report.command_line(("--concord", "--python", "--out", "--timeout")),
                                     threads() if options.torch_device == "cpu" else 0):
        tables[2].add(row)
    return reasons


def operator_rows(paths):
    """Of the files beside these CSVs, where they are."""
    beside = [path.with_name(f"{path.stem}_operators.csv") for path in map(pathlib.Path, paths)]
    return [row for path in beside if path.exists() for row in report.read_csv(path, OPERATOR_COLUMNS)]


def run(options):
    folder = report.folder(options.out)
    if options.recorded:
        rows = [row for path in options.recorded for row in versus_report.read(path)]
        versus_report.write(options, folder, rows, operator_rows(options.recorded), {})
        return 0
    concord = Concord(options.concord, options.device, options.seconds, options.timeout)
    torch = Torch(options)
    ceilings = Ceilings(options.ceilings, torch)
    path = folder / f"{options.name}.csv"
    tables = (report.Csv(path, COLUMNS),
              report.Csv(folder / f"{options.name}_operators.csv", OPERATOR_COLUMNS),
              report.Csv(folder / f"{options.name}_modes.csv", RECORD_COLUMNS))
    failures = {}
    for precision in options.precision:
        for net in options.net:
            try:
                for mode, why in measure_net(options, concord, torch, ceilings, net, precision, tables).items():
                    say(f"{net} {precision} PyTorch's {mode} left out: {why}")
                    failures[f"{net} {precision} PyTorch's {mode}"] = f"left out: {why}"
            except Refused as refused:
                say(f"{net} {precision} left out: {refused}")
                failures[f"{net} {precision}"] = f"left out: {refused}"
            except Failure as failure:
                if isinstance(failure, Usage) and not tables[0].writer:
                    raise  # what has been measured is not thrown away
                say(f"{net} {precision} FAILED: {failure}")
                failures[f"{net} {precision}"] = f"failed: {failure}"
    if not tables[0].writer:
        raise Failure("nothing was measured: " + "; ".join(sorted(set(failures.values()))))
    rows = versus_report.read(path)
    versus_report.write(options, folder, rows, operator_rows([path]), failures)
    return 1 if any(text.startswith("failed") for text in failures.values()) else 0
