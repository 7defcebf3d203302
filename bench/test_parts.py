"""Tests of what the programs of the benchmarks have in common: statistics, tables, charts, records. test_bench.py runs
them."""
import json
import math
import os
import pathlib
import subprocess
import tempfile
import types
import unittest
import unittest.mock
import xml.etree.ElementTree as xml

import chart
import command
import lost
import report
import roofline
import stats
import versus
import versus_report

HERE = pathlib.Path(__file__).resolve().parent


class Places(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()

    def program(self, place, text="#!/bin/sh\n"):
        path = self.root / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
        return path

    def test_the_command_is_that_of_the_first_preset_that_has_it(self):
        with unittest.mock.patch.object(command, "ROOT", self.root):
            self.assertEqual(command.default_concord(), self.root / "build/release/bin/concord")
            for place in ("bin/concord", "build/cpu-only/bin/concord", "build/opencl-only/bin/concord",
                          "build/release/bin/concord"):
                path = self.program(place)
                self.assertEqual(command.default_concord(), path)
                self.assertEqual(command.find_concord(path.parent.parent), path)
            self.assertEqual(command.built_program("bench_loader"), self.root / "build/release/bin/bench_loader")

    def test_why_pytorch_does_not_load(self):
        for last, is_told in (("ImportError: libcudart.so.11.0: cannot open shared object file", True),
                              ("ModuleNotFoundError: No module named 'torch'", False)):
            python = self.program("python", f"#!/bin/sh\necho \"Traceback\n{last}\" >&2\nexit 1\n")
            with self.assertRaises(command.Failure) as caught:
                versus.Torch(types.SimpleNamespace(python=str(python), torch_device="cpu"))
            self.assertIn(f"{python} has no PyTorch. Install it", str(caught.exception))
            self.assertEqual(last in str(caught.exception), is_told)


class Parts(unittest.TestCase):
    def test_complaints(self):
        help_text = "\nMeasure it\n  --precision TEXT:{fp32}=fp32\n"
        for stderr, expected in (
                ("ERROR: ValidationError: --precision: bf16 not in {fp32}" + help_text,
                 "--precision: bf16 not in {fp32}"),
                ("ERROR: ConversionError: Could not convert: --batch = x" + help_text,
                 "ConversionError: Could not convert: --batch = x"),
                ("warning: slow\nconcord: out of memory: less, please\n", "out of memory: less, please"),
                ("terminate called\n", "terminate called")):
            self.assertEqual(command.complaint_of(stderr), expected)

    def test_what_does_not_fit_into_memory(self):
        for complaint, is_so in (
                ("the value 'x', f32 [9], needs 90 MiB; A CPU allocates at most 9 MiB at once. The largest batch that "
                 "fits is 1", True),
                ("the program needs 9 MiB in addition to the 2 MiB in use; A GPU has 8 MiB", True),
                ("opencl:0 (A GPU): no buffer of 9 bytes: it exceeds the device's memory. Use a smaller batch, or close "
                 "other programs that use memory", True),
                ("host memory is too small; use a smaller --batch", True),
                ("The device may be lost, or out of memory: open it again or use a smaller batch", False),
                ("the kernel of 'conv' was rejected", False)):
            self.assertEqual(command.TOO_LARGE.search(complaint) is not None, is_so, complaint)

    def test_names(self):
        self.assertEqual(command.split_nets(["lenet,mlp:depth=4,width=64", "vgg11@32"]),
                         ["lenet", "mlp:depth=4,width=64", "vgg11@32"])
        self.assertEqual(command.with_size("mlp:depth=4", "width", 64), "mlp:depth=4,width=64")
        with self.assertRaises(command.Usage):
            command.split_nets(["lenet,"])

    def test_threads(self):
        cores = len(os.sched_getaffinity(0))
        for text, expected in (("3", 3), ("", cores), ("0", cores), ("4,2", cores)):
            with unittest.mock.patch.dict(os.environ, {"OMP_NUM_THREADS": text}):
                self.assertEqual(command.threads(), expected)
                self.assertEqual(command.environment()["OMP_NUM_THREADS"], str(expected))

    def test_statistics(self):
        self.assertAlmostEqual(stats.geometric_mean([0.5, 2, 4, 0.25]), 1)
        growth, error = stats.exponent([(n, 3 * n ** 1.5) for n in (1, 2, 4, 8)])
        self.assertAlmostEqual(growth, 1.5)
        self.assertAlmostEqual(error, 0)
        self.assertEqual(stats.exponent([(1, 1), (4, 16)]), (2.0, None))
        self.assertEqual(stats.upper_half([(n, n) for n in (1, 2, 4, 8, 16)]), [(4, 4), (8, 8), (16, 16)])
        ratio, low, high = stats.bootstrap_ratio([1, 2, 3, 4, 5], [1.1, 2.2, 3.3, 4.4, 5.5])
        self.assertTrue(math.isclose(ratio, 1.1) and math.isclose(low, 1.1) and math.isclose(high, 1.1))
        _, low, high = stats.bootstrap_ratio([1] * 9, [0.8, 0.9, 0.95, 1, 1, 1, 1.05, 1.1, 1.2])
        self.assertTrue(low < 1 < high)

    def test_roofline(self):
        ceilings = {"bandwidth": 2, "fma": 50, "fp32": 100}
        product = {"operator": "conv2d+relu", "flops": 1e12, "bytes": 1e9}
        self.assertAlmostEqual(roofline.floor_seconds(product, ceilings, "fp32"), 0.01)
        copy = {"operator": "transpose", "flops": 0, "bytes": 2e12}
        self.assertAlmostEqual(roofline.floor_seconds(copy, ceilings, "fp32"), 1)
        self.assertEqual(roofline.lacking(ceilings, "bf16"), ["bf16"])
        self.assertEqual(roofline.known("a device nobody has seen"), {})
        self.assertEqual(roofline.lacking(roofline.known("NVIDIA H200"), "bf16"), [])

    def test_charts(self):
        name = 'a < b & "c"'
        for svg in (chart.bars(name, name, {name: [0.5, None], "b": [1e-5, 3]}, ["x", "y"], name, 1.0),
                    chart.bars(name, name, {"a": [0.0]}, ["x"], name),
                    chart.intervals(name, name, {"a": [(1, 0.9, 1.2), None]}, ["x", "y"], name, 1.0, 1.05),
                    chart.intervals(name, name, {"a": [(1, 1, 1)]}, ["x"], name),
                    chart.lines(name, name, [{"name": name, "points": [(1, 1e-3), (512, 4e4)]}], name, name)):
            root = xml.fromstring(svg)
            self.assertEqual(root.tag, "{http://www.w3.org/2000/svg}svg")
            self.assertNotIn("nan", svg)
        self.assertEqual([chart.short(v) for v in (0, 0.0123, 1.5, 512, 2048, 12000)],
                         ["0", "0.0123", "1.5", "512", "2,048", "12k"])

    def test_tables(self):
        self.assertEqual(report.markdown([["a", "b"], ["1", "2"]]), "| a | b |\n|---|---|\n| 1 | 2 |\n")
        self.assertEqual(report.spread(0.1234, 10.123, 12345.6), "0.123 (10.12-12346)")

    def rows(self, *rounds):
        """Of one comparison: ours 3 ms, PyTorch's as its program reports them in each round."""
        about = {"net": "mlp", "batch": 64, "precision": "bf16", "input": "784", "date": "2026-01-02"}
        other = {"parameters": 1, "peak_resident_bytes": 1, "device_name": "A GPU", "cudnn": 9, "torch": "9.9",
                 "device": "opencl:0", "peak_device_bytes": 3 << 20}
        for number, modes in enumerate(rounds, 1):
            mode = min((mode for mode in modes if modes[mode]), key=modes.get)
            times = {"median_ms": modes[mode], "min_ms": modes[mode] / 2, "max_ms": 2 * modes[mode], "samples": 9}
            theirs = times | {"mode": mode, "modes": modes, "peak_device_bytes": int(modes[mode]) << 20}
            ours = times | {"median_ms": 3.0}
            yield from versus.rows_of("concord", other | {"driver": "5.8", "version": "0", "train": ours, "infer": ours},
                                      about, {}, number)
            yield from versus.rows_of("pytorch", other | {"train": theirs, "infer": theirs}, about, {}, number)

    def test_the_best_mode_of_pytorch(self):
        rows = list(self.rows({"eager": 8.0, "graph": 4.0, "compiled": None, "compiled_graph": 5.0},
                              {"eager": 8.2, "graph": 4.4, "compiled": None, "compiled_graph": 4.2},
                              {"eager": 8.1, "graph": 4.1, "compiled": None, "compiled_graph": 5.0}))
        found = versus_report.compared(rows, "train")
        ours, theirs = found["mlp", 64, "bf16"]
        self.assertEqual((ours.median, theirs.median, theirs.mode), (3.0, 4.1, "graph"))
        self.assertEqual((theirs.low, theirs.high), (2.0, 8.2))
        self.assertEqual(theirs.modes, {"eager": 8.1, "graph": 4.1, "compiled_graph": 5.0})
        head, row = (dict(zip(range(8), line)) for line in versus_report.table(found, "infer", False))
        self.assertEqual((head[4], head[5], head[6], head[7]),
                         ("PyTorch eager ms", "PyTorch best ms (mode)", "ours / eager", "ours / best"))
        self.assertEqual((row[4], row[5], row[6], row[7]), ("8.1", "4.1 (2-8.2) in a graph", "0.37", "0.73"))
        self.assertEqual(versus_report.means(found), "of ours / best: bf16 0.732, of ours / eager: bf16 0.370")
        record = next(versus_report.records(rows, "bench/gpu_vs_pytorch"))
        self.assertEqual(set(record), set(versus_report.RECORD_COLUMNS))
        self.assertEqual([record[column] for column in versus_report.RECORD_COLUMNS],
                         ["mlp", 64, "bf16", "training", "3", "8.1", "4.1", "", "5", 3, 4, "A GPU", "5.8", "2026-01-02",
                          "bench/gpu_vs_pytorch"])

    def test_without_eager(self):
        found = versus_report.compared(list(self.rows({"compiled": 6.0})), "train")
        self.assertEqual(versus_report.table(found, "infer", False)[1][4:], ["–", "6 (3-12) compiled", "–", "0.50"])
        self.assertEqual(versus_report.means(found), "of ours / best: bf16 0.500")

    def test_records_from_before_there_were_modes(self):
        columns = [column for column in versus_report.COLUMNS if column != "mode" and
                   column not in versus_report.MODE_COLUMNS.values()]
        with tempfile.TemporaryDirectory() as folder:
            table = report.Csv(pathlib.Path(folder) / "old.csv", columns)
            for row in self.rows({"eager": 6.0}):
                table.add({column: row[column] for column in columns})
            table.file.close()
            rows = versus_report.read(table.path)
        theirs = versus_report.compared(rows, "train")["mlp", 64, "bf16"][1]
        self.assertEqual((theirs.mode, theirs.modes), ("eager", {"eager": 6.0}))

    def test_records_fit_the_results(self):
        with open(HERE / "results/nvidia-h200-best.csv", encoding="utf-8") as file:
            self.assertEqual(file.readline().strip(), ",".join(versus_report.RECORD_COLUMNS))

    def test_ceilings_have_sources(self):
        devices = json.loads((HERE / "ceilings.json").read_text(encoding="utf-8"))
        for device in devices.values():
            self.assertIn("measured", device)
            self.assertEqual(set(device["sources"]), {name for name in device if name in roofline.UNITS})


class Lost(unittest.TestCase):
    def test_a_pause_is_what_an_epoch_takes_longer_than_usual(self):
        self.assertEqual(lost.longest_pause([0, 1, 2, 5, 6]), 2)
        self.assertEqual(lost.longest_pause([3]), 0)

    def test_weights_differ_relative_to_the_largest(self):
        self.assertEqual(lost.difference({"a": (1, 4), "b": (2,)}, {"a": (1, 4), "b": (2,)}), 0)
        self.assertEqual(lost.difference({"a": (1, 4), "b": (3,)}, {"a": (1, 4), "b": (2,)}), 0.25)

    def test_what_hangs_is_killed_and_the_loss_comes_when_it_is_due(self):
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder) / "log.json"
            lines = "".join('{"event":"epoch"}\\n' for _ in range(2))
            words = ["sh", "-c", f"printf '{lines}' > {log}; sleep 100"]
            process = subprocess.Popen(words)
            seen = []
            self.assertIsNone(lost.watch([process], [log], 2, lambda _, epochs: epochs == 2, lambda: seen.append(1)))
            process.wait()
            self.assertEqual(seen, [1])
            process = subprocess.Popen(["sh", "-c", f"printf '{lines}' > {log}"])
            times, lost_at = lost.watch([process], [log], 20, lambda *_: False, self.fail)
            self.assertIsNone(lost_at)
            self.assertLessEqual(len(times), 2)
