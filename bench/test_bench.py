"""Tests of the benchmarks that need no PyTorch; CTest runs them as `bench`. In PyTorch's place stands a program that
answers as bench/torch_step.py does. $CONCORD_PROGRAM names the command, $CONCORD_BENCH_DEVICE a device [auto]."""
import json
import math
import os
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import chart  # noqa: E402
import command  # noqa: E402
import lost  # noqa: E402
import report  # noqa: E402
import roofline  # noqa: E402
import stats  # noqa: E402
import versus  # noqa: E402
import versus_report  # noqa: E402

PROGRAM = os.environ.get("CONCORD_PROGRAM", str(command.default_concord()))
DEVICE = os.environ.get("CONCORD_BENCH_DEVICE", "auto")
TINY = "mlp:width=8"

# Answers with the parameters of the network above, or with $PARAMETERS; refuses bf16. Compiled it is twice as fast as
# eager, and a graph has a reason why not.
TORCH = """#!{python}
import json, os, sys
if sys.argv[1] == "-c":
    print("9.9.9 0")
elif "bf16" in sys.argv:
    print("no bf16 here", file=sys.stderr)
    sys.exit(3)
else:
    asked = sys.argv[sys.argv.index("--modes") + 1] if "--modes" in sys.argv else "eager,compiled"
    modes = {{mode: {{"eager": 4.0, "compiled": 2.0}}.get(mode) for mode in asked.split(",")}}
    mode = min((mode for mode in modes if modes[mode]), key=modes.get)
    times = {{"median_ms": modes[mode], "min_ms": 1.5, "max_ms": 4.5, "samples": 10, "layout": "contiguous",
             "mode": mode, "modes": modes, "left_out": {{mode: "not here" for mode in modes if not modes[mode]}}}}
    print(json.dumps({{"torch": "9.9.9", "device": "cpu", "device_name": "A CPU", "cudnn": None, "threads": 1,
                      "parameters": int(os.environ.get("PARAMETERS", 784 * 8 + 8 + 8 * 10 + 10)),
                      "train": times, "infer": times, "peak_resident_bytes": 1 << 20}}))
"""

# A loader of images, and the program that makes their sets and has the other loaders.
LOADER = """#!{python}
import json, sys
if sys.argv[1].endswith("loader_sets.py"):
    print(json.dumps({{"images": 7, "mean_bytes": 9000, "lacking": {{}}}}))
elif sys.argv[-1] == "--versions":
    names = ("torch", "torchvision", "PIL", "webdataset", "nvidia.dali")
    print(json.dumps({{name: "1" for name in names}} | {{"ffcv": "none: no wheel"}}))
else:
    print(json.dumps({{"images": {images}, "bytes": 80e6, "seconds": 1, "cpu_seconds": 2, "version": "Concord 0"}}))
"""


class Programs(unittest.TestCase):
    def setUp(self):
        if not os.access(PROGRAM, os.X_OK):
            self.skipTest(f"{PROGRAM} is not there")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.python = self.folder / "python"
        self.python.write_text(TORCH.format(python=sys.executable), encoding="utf-8")
        self.python.chmod(self.python.stat().st_mode | stat.S_IXUSR)

    def run_program(self, name, *words, env=None):
        done = subprocess.run([sys.executable, HERE / name, *map(str, words)], capture_output=True, text=True,
                              env=os.environ | (env or {}))
        self.assertNotIn("Traceback", done.stderr)
        return done

    def versus(self, *words, env=None):
        return self.run_program("cpu_vs_pytorch", "--concord", PROGRAM, "--python", self.python, "--net", TINY,
                                "--device", DEVICE, "--rounds", 2, "--seconds", 0.01, "--out", self.folder / "out",
                                *words, env=env)

    def test_help(self):
        for name in ("gpu_vs_pytorch", "cpu_vs_pytorch", "scaling", "regress"):
            done = self.run_program(name, "--help")
            self.assertEqual(done.returncode, 0)
            self.assertIn("--concord", done.stdout)

    def test_beside_pytorch(self):
        done = self.versus("--ceilings", "fma=1,fp32=2,bandwidth=0.1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("geometric mean of ours / best: fp32", done.stdout)
        self.assertIn("2.000 (compiled; eager 4.000)", done.stderr)
        rows = report.read_csv(self.folder / "out/cpu_vs_pytorch.csv", ["side"])
        self.assertEqual(len(rows), 2 * 2 * 2)
        ours = [row for row in rows if row["side"] == "concord"]
        self.assertTrue(all(row["parameters"] == "6370" and float(row["floor_ms"]) > 0 for row in ours))
        theirs = [row for row in rows if row["side"] == "pytorch"]
        self.assertTrue(all((row["mode"], row["median_ms"], row["eager_ms"], row["compiled_ms"], row["graph_ms"]) ==
                            ("compiled", "2", "4", "2", "") for row in theirs))
        records = report.read_csv(self.folder / "out/cpu_vs_pytorch_modes.csv", versus_report.RECORD_COLUMNS)
        self.assertEqual([(row["pass"], row["eager_ms"], row["graph_ms"], row["compiled_ms"]) for row in records],
                         [("training", "4", "", "2"), ("inference", "4", "", "2")])
        self.assertTrue(all("--net mlp:width=8" in row["command"] and str(self.folder) not in row["command"]
                            for row in records))
        kinds = report.read_csv(self.folder / "out/cpu_vs_pytorch_operators.csv", ["floor_us"])
        self.assertTrue(any("matmul" in row["operator"] and float(row["flops"]) > 0 for row in kinds))
        for name in ("train", "infer", "train_roofline", "infer_roofline"):
            xml.parse(self.folder / f"out/cpu_vs_pytorch_{name}.svg")
        again = self.versus("--from", self.folder / "out/cpu_vs_pytorch.csv", "--out", self.folder / "again")
        self.assertEqual(again.returncode, 0, again.stderr)
        tables = [(self.folder / where / "cpu_vs_pytorch.md").read_text(encoding="utf-8").split("\n", 1)[1]
                  for where in ("out", "again")]
        self.assertEqual(*tables)

    def test_modes_without_a_time_have_their_reasons(self):
        done = self.versus("--torch-modes", "eager,graph")
        self.assertEqual(done.returncode, 0, done.stderr)
        reason = f"{TINY} fp32 PyTorch's training step in a graph left out: not here"
        self.assertIn(reason, done.stderr)
        self.assertIn(f"- {reason}\n", (self.folder / "out/cpu_vs_pytorch.md").read_text(encoding="utf-8"))

    def test_another_network_is_not_compared(self):
        done = self.versus(env={"PARAMETERS": "6371"})
        self.assertEqual(done.returncode, 1)
        self.assertIn("6370 parameters here and 6371 in PyTorch", done.stderr)

    def test_a_precision_that_is_not_offered_is_left_out(self):
        done = self.versus("--precision", "fp32,bf16")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"{TINY} bf16 left out: ", done.stderr)

    def test_a_failure_leaves_the_others(self):
        done = self.versus("--net", "lenet5")  # has other parameters than the answers
        self.assertEqual(done.returncode, 1)
        self.assertIn("lenet5 fp32 FAILED", done.stderr)
        self.assertIn(TINY, done.stdout)

    def test_refusals(self):
        for words, code, sentence in (
                (["cpu_vs_pytorch", "--python", "false"], 1, "false has no PyTorch"),
                (["cpu_vs_pytorch", "--python", self.folder / "no"], 1, "does not run"),
                (["gpu_vs_pytorch", "--python", self.python], 1, "no CUDA device"),
                (["cpu_vs_pytorch", "--python", self.python, "--net", "perceptron"], 2, "no network 'perceptron'"),
                (["cpu_vs_pytorch", "--python", self.python, "--precision", "fp64"], 2, "fp64"),
                (["cpu_vs_pytorch", "--python", self.python, "--ceilings", "speed=3"], 2, "speed=3"),
                (["cpu_vs_pytorch", "--python", self.python, "--torch-modes", "eager,fast"], 2, "fast"),
                (["cpu_vs_pytorch", "--python", self.python, "--net", "mlp@many"], 2, "the batch is no number"),
                (["cpu_vs_pytorch", "--python", self.python, "--device", "vulkan", "--net", TINY], 2, "vulkan"),
                (["cpu_vs_pytorch", "--python", self.python, "--device", "opencl:no-such-card", "--net", TINY], 1,
                 "no-such-card"),
                (["scaling", "--axis", "colour"], 2, "--axis colour"),
                (["scaling", "--axis", "image", "--net", "mlp", "--values", "8,x"], 2, "whole numbers"),
                (["scaling", "--axis", "depth", "--net", "lenet"], 2, "lenet has one size only"),
                (["scaling", "--axis", "image", "--net", "lstm"], 2, "takes no images"),
                (["regress", PROGRAM], 2, "BUILD_B"),
                (["regress", PROGRAM, PROGRAM, "--net", "perceptron"], 2, "no network 'perceptron'"),
                (["regress", PROGRAM, self.folder], 1, "is no program"),
                (["regress", PROGRAM, PROGRAM, "--rounds", 2], 2, "at least 3")):
            with self.subTest(words):
                concord = [] if words[0] == "regress" else ["--concord", PROGRAM]
                done = self.run_program(*words, *concord, "--out", self.folder / "out", env={"CONCORD_DEVICE": DEVICE})
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn(sentence, done.stderr)
                self.assertEqual(list(self.folder.glob("out/*")), [])

    def test_scaling(self):
        done = self.run_program("scaling", "--concord", PROGRAM, "--device", DEVICE, "--axis", "batch,width", "--net",
                                TINY.split(":")[0], "--values", "4,8,16", "--rounds", 2, "--seconds", 0.01, "--out",
                                self.folder / "out")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = report.read_csv(self.folder / "out/scaling.csv", ["axis", "flops"])
        self.assertEqual(len(rows), 2 * 3 * 2 * 2)
        self.assertEqual({row["net"] for row in rows if row["axis"] == "width"}, {f"mlp:width={n}" for n in (4, 8, 16)})
        for axis in ("batch", "width"):
            xml.parse(self.folder / f"out/scaling_{axis}.svg")
        text = (self.folder / "out/scaling.md").read_text(encoding="utf-8")
        self.assertIn("| batch | mlp | 8-16 |", text)

    def test_regress(self):
        slow = self.folder / "slow"  # reports thirty times the time
        slow.write_text(f"""#!{sys.executable}
import json, subprocess, sys
report = json.loads(subprocess.run([{PROGRAM!r}, *sys.argv[1:]], capture_output=True, check=True).stdout)
for phase in ("train", "infer"):
    report[phase]["median_ms"] *= 30
print(json.dumps(report))
""", encoding="utf-8")
        slow.chmod(0o755)
        words = ["--net", TINY, "--device", DEVICE, "--rounds", 3, "--seconds", 0.01, "--out", self.folder / "out"]
        worse = self.run_program("regress", PROGRAM, slow, *words)
        self.assertEqual(worse.returncode, 1, worse.stderr)
        self.assertIn(f"slower by more than 5 %: {TINY} (training step)", worse.stdout)
        xml.parse(self.folder / "out/regress.svg")
        better = self.run_program("regress", slow, PROGRAM, *words)
        self.assertEqual(better.returncode, 0, better.stderr)
        self.assertIn("faster", better.stdout)

    def test_loaders(self):
        for words, code, sentence in ((["--help"], 0, ""), (["--sides", "tensorflow"], 2, "--sides tensorflow"),
                                      (["--threads", "two"], 2, "whole numbers"), (["--threads", "0"], 2, "at least 1"),
                                      (["--program", self.folder / "no"], 1, "is no program")):
            with self.subTest(words):
                done = self.run_program("loader_vs_pytorch", *words, "--out", self.folder / "out")
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn(sentence, done.stderr)
        # Another program in the place of the loaders: the sides alternate, and their medians are told.
        program, python = self.folder / "bench_loader", self.folder / "loaders"
        program.write_text(LOADER.format(python=sys.executable, images=800), encoding="utf-8")
        python.write_text(LOADER.format(python=sys.executable, images=400), encoding="utf-8")
        for path in (program, python):
            path.chmod(path.stat().st_mode | stat.S_IXUSR)
        done = self.run_program("loader_vs_pytorch", "--program", program, "--python", python, "--threads", 1,
                                "--rounds", 2, "--sides", "concord,pytorch,ffcv", "--out", self.folder / "out")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Concord 400 (jpeg folder, threads 1), the best other is PyTorch (pil) with 200: 2.00 times",
                      done.stdout)
        self.assertIn("raw tar, threads 1: 80 MB/s, 100% of a copy", done.stdout)
        self.assertIn("left out: FFCV: none: no wheel", done.stdout)
        rows = report.read_csv(self.folder / "out/loader_vs_pytorch_medians.csv", ["set", "loader", "file_kb"])
        self.assertTrue(all(row["images_per_cpu_second"] == ("200" if row["loader"].startswith("PyTorch") else "400")
                            for row in rows))


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

    def test_names(self):
        self.assertEqual(command.split_nets(["lenet,mlp:depth=4,width=64", "vgg11@32"]),
                         ["lenet", "mlp:depth=4,width=64", "vgg11@32"])
        self.assertEqual(command.with_size("mlp:depth=4", "width", 64), "mlp:depth=4,width=64")
        with self.assertRaises(command.Usage):
            command.split_nets(["lenet,"])

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
        other = {"parameters": 1, "peak_resident_bytes": 1, "device_name": "A GPU", "cudnn": 9, "torch": "9.9"}
        for number, modes in enumerate(rounds, 1):
            mode = min((mode for mode in modes if modes[mode]), key=modes.get)
            times = {"median_ms": modes[mode], "min_ms": modes[mode] / 2, "max_ms": 2 * modes[mode], "samples": 9}
            theirs = times | {"mode": mode, "modes": modes}
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
                         ["mlp", 64, "bf16", "training", "3", "8.1", "4.1", "", "5", "A GPU", "5.8", "2026-01-02",
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


if __name__ == "__main__":
    unittest.main()
