"""Tests of the programs that run many measurements side by side: gpu_tables, precisions. In the places of the command, of
PyTorch and of the samples stand programs that answer as they do. test_bench.py runs them."""
import os
import pathlib
import shutil
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
if sys.argv[1] == "devices":
    sys.exit(print(json.dumps([{{"id": "opencl:0", "precisions": ["fp32", "bf16", "fp16"]}}])))
net = sys.argv[2]
if net == "overfeat":
    child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    open("{folder}/child", "w").write(str(child.pid))
    child.wait()
if net == "alexnet":
    sys.exit("concord: no room for it")
open("{folder}/gpus", "a").write(os.environ.get("CUDA_VISIBLE_DEVICES", "no") + " " + str(len(os.sched_getaffinity(0))) + "\\n")
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
# A sample: bf16 costs 0.01 bits with seed 1 and 0.03 with seed 2; fp16 fails.
SAMPLE = """#!{python}
import sys
device, epochs, text, precision, seed = sys.argv[1:]
if precision == "fp16":
    sys.exit("the loss is not finite")
print("epoch 1/" + epochs + ": 9 bits per character, 1 s")
print("epoch " + epochs + "/" + epochs + ": " + str(2.5 + (precision == "bf16") * (0.01, 0.03)[seed == "2"]) +
      " bits per character, 1 s")
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
                         ["3", "4", "5", "6", "7", "3", "5", "A GPU"])
        self.assertNotIn(str(self.folder), row["command"])
        seen = (self.folder / "gpus").read_text(encoding="utf-8").split("\n")[:-1]
        self.assertEqual(len(seen), 2 * 5)  # to compile, to measure
        share = max(1, len(os.sched_getaffinity(0)) // 2)
        self.assertEqual(set(seen[5:]), {f"0 {share}", f"1 {share}"})
        again = self.tables(*words)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertIn("0 jobs, 5 measured before", again.stderr)
        self.assertEqual(len(self.rows()), 2 * 5)

    def test_cores_of_a_cpu(self):
        words = ["cpu_tables", "--concord", self.folder / "concord", "--python", self.folder / "python", "--precision",
                 "fp32", "--net", "lenet", "--threads"]
        done = self.run_program(*words, 1)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = report.read_csv(self.folder / "out/rows.csv", RECORD_COLUMNS)
        self.assertEqual([(row["device"], row["eager_ms"], row["compiled_ms"], row["graph_ms"]) for row in rows],
                         2 * [("A GPU, 1 thread", "4", "5", "")])
        self.assertEqual((self.folder / "gpus").read_text(encoding="utf-8"), "no 1\n")
        done = self.run_program(*words, 1, "--first-core", 100000)
        self.assertEqual(done.returncode, 1)
        done = self.run_program(*words, 100000)
        self.assertEqual(done.returncode, 1)
        self.assertIn("1 × 100000 threads need more than", done.stderr)

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

    def test_precisions(self):
        (self.folder / "samples").mkdir()
        self.program("samples/char_lstm", SAMPLE.format(python=sys.executable))
        done = self.run_program("precisions", "--concord", self.folder / "concord", "--sample", "char_lstm", "--gpus", 1,
                                "--jobs", 2, "--seeds", "1,2", "--text", self.folder / "text")
        self.assertEqual(done.returncode, 1)
        self.assertIn("tf32 left out: A GPU does not have it", done.stderr)
        self.assertIn("char_lstm fp16 2: the loss is not finite", done.stderr)
        self.assertIn("+0.0200 ± 0.0100", done.stdout)
        rows = report.read_csv(self.folder / "out/characters-precisions.csv", ["seed"])
        self.assertEqual([(row["seed"], row["fp32"], row["tf32"], row["bf16"], row["fp16"]) for row in rows],
                         [("1", "2.5000", "", "2.5100", ""), ("2", "2.5000", "", "2.5300", "")])
        self.assertEqual(rows[0]["command"], "samples/char_lstm opencl:nvidia 8 text PRECISION SEED")
        with open(HERE / "results/resnet20-precisions.csv", encoding="utf-8") as file:
            self.assertEqual(file.readline().strip(), ",".join(rows[0]))

    def test_rows_replace_those_of_the_same_measurement(self):
        rows = self.folder / "rows.csv"
        for name, lines in (("table.csv", ["a,64,fp32,training,A GPU,1", "b,64,fp32,training,A GPU,2"]),
                            ("rows.csv", ["c,64,fp32,training,A GPU,3", "a,64,fp32,training,A GPU,4"])):
            (self.folder / name).write_text("\n".join(["network,batch,precision,pass,device,ours_ms", *lines, ""]), "utf-8")
        for table, expected, said in (("table.csv", ["a 4", "b 2", "c 3"], "1 rows new, 1 replaced, of A GPU"),
                                      ("new.csv", ["c 3", "a 4"], "2 rows new, 0 replaced")):
            path = self.folder / table
            done = subprocess.run([HERE / "record", rows, path], capture_output=True, text=True)
            self.assertIn(said, done.stderr)
            self.assertEqual([f"{row['network']} {row['ours_ms']}" for row in report.read_csv(path, ["pass"])], expected)
        rows.write_text("network,batch\na,1\n", encoding="utf-8")
        done = subprocess.run([HERE / "record", rows, self.folder / "table.csv"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("has other columns", done.stderr)

    def test_slots(self):
        places = slots.slots(2, ["0"])
        self.assertEqual([place.gpu for place in places], ["0", "0"])
        self.assertEqual(len(slots.slots(5, [])), 5)
        self.assertIsNone(slots.slots(1, [])[0].gpu)


class Pages(unittest.TestCase):
    """scripts/performance-tables, over copies of the results with other rows."""
    PROGRAM = HERE.parent / "scripts/performance-tables"

    def setUp(self):
        if not self.PROGRAM.exists():
            self.skipTest("a bundle has no pages")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        shutil.copytree(HERE / "results", self.root / "bench/results")
        (self.root / "docs/images").mkdir(parents=True)

    def page(self, name, table, rows):
        """The table in a page, from rows that are dictionaries."""
        path = self.root / f"bench/results/{name}.csv"
        path.unlink(missing_ok=True)
        file = report.Csv(path, list(rows[0]))
        for row in rows:
            file.add(row)
        file.file.close()
        page = self.root / "docs" / "page.md"
        page.write_text(f"<!-- table: {table} -->\n<!-- end -->\n", encoding="utf-8")
        done = subprocess.run([self.PROGRAM, self.root], capture_output=True, text=True)
        self.assertNotIn("Traceback", done.stderr)
        text = page.read_text(encoding="utf-8")
        return [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")], done.stderr

    @staticmethod
    def times(network, batch, ours, theirs, precision="bf16", device="A GPU"):
        return [dict.fromkeys(RECORD_COLUMNS, "") | {
            "network": network, "batch": batch, "precision": precision, "pass": part, "ours_ms": ours, "eager_ms": 2 * theirs,
            "graph_ms": theirs, "ours_mib": 10 if part == "training" else "", "torch_mib": 20 if part == "training" else "",
            "device": device, "driver": "1", "date": "2026-01-02", "command": f"bench/x --net {network}@{batch}"}
            for part in ("training", "inference")]

    def test_sizes_and_their_growth(self):
        rows = [row for size in (("gpt2_small:length=8192", 1, 32, 16), ("gpt2_small", 8, 4, 4),
                                 ("gpt2_small:length=2048", 4, 8, 4), ("gpt2_small:length=2048", 8, 9, 9),
                                 ("resnet18", 64, 2, 1), ("resnet18", 1, 1, 1)) for row in self.times(*size)]
        lines, _ = self.page("nvidia-h100-best", "h100-sizes", rows)
        self.assertEqual(lines[0][0], "gpt2_small in bf16, length (8192 tokens a step)")
        self.assertEqual([line[:6] for line in lines[2:5]], [["1024", "4", "4 (in a graph)", "1.00", "–", "–"],
                                                             ["2048", "8", "4 (in a graph)", "2.00", "1.00", "0.00"],
                                                             ["8192", "32", "16 (in a graph)", "2.00", "1.00", "1.00"]])
        self.assertEqual(lines[7][0:1] + lines[8][0:1], ["1", "64"])
        lines, _ = self.page("nvidia-h200-best", "h200-best", rows)
        self.assertEqual([line[0] for line in lines[2:]], ["gpt2_small, 8", "resnet18, 64", "geometric mean"])
        self.assertEqual(lines[0][5:7], ["MiB, ours", "MiB, PyTorch"])
        self.assertEqual(lines[2], ["gpt2_small, 8", "4", "8", "4", "1.00", "10", "20", "4", "4 (in a graph)", "1.00"])
        self.assertEqual(lines[-1], ["geometric mean", "–", "–", "–", "1.41", "–", "–", "–", "–", "1.41"])
        _, complaint = self.page("nvidia-h200-best", "h200-best-tf32", rows)
        self.assertIn("no rows in tf32", complaint)

    def test_a_table_for_each_number_of_threads_and_precision(self):
        lines, _ = self.page("cpu-best", "cpu-best", self.times("mlp", 64, 1, 2, "fp32", "A CPU, 2 threads") +
                             self.times("mlp", 64, 1, 4, "fp32", "A CPU, 16 threads") +
                             self.times("mlp", 64, 1, 8, "bf16", "A CPU, 2 threads"))
        self.assertEqual([line[4] for line in lines if line[0] == "mlp, 64"], ["0.50", "0.25", "0.12"])

    def test_precisions(self):
        rows = [{"sample": sample, "seed": seed, "fp32": f"{2 + seed:.2f}", "bf16": f"{2.1 + seed * 1.1:.2f}", "tf32": "",
                 "fp16": "", "device": "A GPU", "driver": "1", "date": "2026-01-02", "command": "samples/SAMPLE"}
                for sample in ("a", "b") for seed in (1, 2)]
        lines, _ = self.page("characters-precisions", "characters-precisions", rows)
        self.assertEqual(lines[0], ["sample", "seed", "fp32", "bf16"])
        self.assertEqual(lines[4:6], [["a", "mean", "3.50", "3.75"],
                                      ["a", "mean of differences from fp32", "–", "+0.25 ± 0.05"]])
