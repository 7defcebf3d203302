"""Tests of ranks_vs_pytorch, with a program in the place of the command. test_bench.py runs them."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import report

HERE = pathlib.Path(__file__).resolve().parent

# Two GPUs are 1.8 times as fast as one. In bf16 they never end, in tf32 one fails.
CONCORD = """#!{python}
import json, sys, time
if sys.argv[1] == "devices":
    sys.exit(print(json.dumps([{{"id": f"opencl:{{i}}", "kind": "gpu"}} for i in range(2)])))
value = dict(zip(sys.argv, sys.argv[1:]))
assert value["--validate"] == "none"
is_alone = "--device" in value
if value["--precision"] == "bf16" and not is_alone:
    time.sleep(1000)
if value["--precision"] == "tf32" and is_alone:
    sys.exit("concord: no room for it")
open(value["--log"], "w").write(json.dumps({{"samples_per_second": 100 if is_alone else 180}}) + "\\n")
"""


class Ranks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.concord = self.folder / "concord"
        self.concord.write_text(CONCORD.format(python=sys.executable), encoding="utf-8")
        self.concord.chmod(0o755)
        (self.folder / "torch.py").write_text("raise ImportError('no torch here')\n", encoding="utf-8")

    def measured(self, *words):
        """The exit code, the rows of the CSV and what was said."""
        out = self.folder / "out.csv"
        done = subprocess.run([sys.executable, HERE / "ranks_vs_pytorch", "--concord", self.concord, "--net", "lenet",
                               "--exchange", "host", "--timeout", "5", "--out", out, *words], capture_output=True,
                              text=True, env=os.environ | {"PYTHONPATH": str(self.folder)})
        self.assertNotIn("Traceback (most recent call last)", done.stdout)
        rows = [(row["precision"], row["side"], row["ranks"], row["samples_per_second"], row["efficiency"])
                for row in report.read_csv(out, ["exchange"])]
        return done.returncode, rows, done.stderr

    def test_efficiency(self):
        code, rows, _ = self.measured("--precision", "fp32", "--no-torch")
        self.assertEqual((code, rows), (0, [("fp32", "concord", "1", "100.0", "1.000"),
                                            ("fp32", "concord", "2", "180.0", "0.900")]))

    def test_what_fails_leaves_the_others(self):
        code, rows, said = self.measured("--precision", "tf32,bf16,fp32")
        self.assertEqual((code, rows), (1, [("tf32", "concord", "2", "180.0", ""),
                                            ("bf16", "concord", "1", "100.0", "1.000"),
                                            ("fp32", "concord", "1", "100.0", "1.000"),
                                            ("fp32", "concord", "2", "180.0", "0.900")]))
        for sentence in ("lenet tf32 concord 1 FAILED", "no room for it", "took more than 5 s; --timeout allows more",
                         "lenet fp32 pytorch nccl 2 FAILED: PyTorch: ", "no torch here"):
            self.assertIn(sentence, said)


if __name__ == "__main__":
    unittest.main()
