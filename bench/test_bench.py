"""Tests of the benchmarks: of the programs here, and of their parts in test_parts.py; CTest runs them as `bench`. In
PyTorch's place stands a program that answers as bench/torch_step.py does; only one test needs PyTorch, and is skipped
without it. $CONCORD_PROGRAM names the command, $CONCORD_BENCH_DEVICE a device [auto]."""
import json
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

import command  # noqa: E402
import report  # noqa: E402
import versus_report  # noqa: E402
from test_parts import Lost, Parts, Places  # noqa: E402, F401
from test_ranks import Ranks  # noqa: E402, F401
from test_tables import Pages, Tables  # noqa: E402, F401

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
import json, os, sys
if sys.argv[1].endswith("loader_sets.py"):
    print(json.dumps({{"images": 7, "mean_bytes": 9000, "lacking": {{}}}}))
elif sys.argv[-1] == "--versions":
    names = ("torch", "torchvision", "PIL", "webdataset", "nvidia.dali")
    print(json.dumps({{name: "1" for name in names}} | {{"ffcv": "none: no wheel"}}))
elif sys.argv[-1] == "u8" and "U8_CODE" in os.environ:
    print("not as u8", file=sys.stderr)
    sys.exit(int(os.environ["U8_CODE"]))
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

    def test_pytorch_has_every_network(self):
        try:
            import torch
            import torch_nets
            import torch_tasks
            import torchvision  # noqa: F401
        except ImportError as error:
            self.skipTest(error)
        if not hasattr(torch.device, "__enter__"):
            self.skipTest(f"PyTorch {torch.__version__} makes no networks without memory")
        done = subprocess.run([PROGRAM, "models", "--json"], capture_output=True, check=True)
        for model in json.loads(done.stdout):
            with self.subTest(model["name"]), torch.device("meta"):
                net = torch_nets.make(model["name"], model["classes"])
                self.assertEqual(sum(p.numel() for p in net.parameters()), model["parameters"])
                self.assertIn(model["task"], torch_tasks.LOSSES)

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

    def test_an_axis_ends_quietly_only_where_memory_does(self):
        limited = self.folder / "limited"  # has no batch of 16
        for complaint, code in (("the program needs 9 MiB in addition to the 2 MiB in use; A CPU has 8 MiB", 0),
                                ("wrong", 1)):
            limited.write_text(f"""#!{sys.executable}
import os, sys
if "16" in sys.argv:
    sys.exit("concord: {complaint}")
os.execv({PROGRAM!r}, [{PROGRAM!r}, *sys.argv[1:]])
""", encoding="utf-8")
            limited.chmod(0o755)
            done = self.run_program("scaling", "--concord", limited, "--device", DEVICE, "--axis", "batch", "--net",
                                    "mlp", "--values", "4,8,16", "--rounds", 1, "--seconds", 0.01, "--out",
                                    self.folder / "out")
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn("batch ends before 16", done.stderr)
            self.assertEqual("batch 16 FAILED: wrong" in done.stderr, code == 1)
            self.assertIn("| batch | mlp | ", (self.folder / "out/scaling.md").read_text(encoding="utf-8"))

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
        words = ["loader_vs_pytorch", "--program", program, "--python", python, "--threads", 1, "--rounds", 2, "--sides",
                 "concord,pytorch,ffcv", "--out", self.folder / "out"]
        # What a loader refuses is left out; what fails is a failure, and the rest is measured.
        for code, told in ((3, "left out"), (1, "FAILED")):
            done = self.run_program(*words, env={"U8_CODE": str(code)})
            self.assertEqual(done.returncode, 0 if code == 3 else 1, done.stderr)
            self.assertIn(f"jpeg folder Concord 1 {told}: not as u8", done.stderr)
            self.assertIn("the best other is PyTorch", done.stdout)
        done = self.run_program(*words)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Concord 400 (jpeg folder, threads 1), the best other is PyTorch (pil) with 200: 2.00 times",
                      done.stdout)
        self.assertIn("raw tar, threads 1: 80 MB/s, 100% of a copy", done.stdout)
        self.assertIn("left out: FFCV: none: no wheel", done.stdout)
        rows = report.read_csv(self.folder / "out/loader_vs_pytorch_medians.csv", ["set", "loader", "file_kb"])
        self.assertTrue(all(row["images_per_cpu_second"] == ("200" if row["loader"].startswith("PyTorch") else "400")
                            for row in rows))


if __name__ == "__main__":
    unittest.main()
