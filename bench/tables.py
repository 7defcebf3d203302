"""What bench/gpu_tables and bench/cpu_tables share: lists of networks and precisions, a run of gpu_vs_pytorch or
cpu_vs_pytorch for each, and the rows of all in one table."""
import argparse
import math
import pathlib
import re
import sys
import time

import command
import report
import slots
import versus
from versus_report import RECORD_COLUMNS

HERE = pathlib.Path(__file__).resolve().parent


class Group(argparse.Action):
    """Collects [precisions, networks] of --precision and of the --net behind it."""

    def __call__(self, parser, namespace, values, _=None):
        groups = namespace.groups = getattr(namespace, "groups", [])
        if self.dest == "precision":
            groups.append((values.split(","), []))
        elif groups:
            groups[-1][1].append(values)
        else:
            parser.error("--net: no --precision in front of it")


def parser_of(name, description, device, seconds):
    parser = argparse.ArgumentParser(prog=name, description=description,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--precision", action=Group, required=True, help=f"of {', '.join(command.PRECISIONS)}, with commas")
    parser.add_argument("--net", action=Group, required=True, help=(
        "with commas: networks with their sizes and batches, such as gpt2_small:length=2048@4"))
    parser.add_argument("--limit", type=command.positive(float), default=300, metavar="SECONDS",
                        help="for a job [%(default)s]")
    parser.add_argument("--deadline", type=command.positive(float), default=math.inf, metavar="SECONDS",
                        help="for everything: then all ends, and nothing starts that would not end before [none]")
    parser.add_argument("--device", default=device, help="of Concord [%(default)s]")
    parser.add_argument("--seconds", type=command.positive(float), default=seconds,
                        help="time to measure for, a phase and mode [%(default)s]")
    parser.add_argument("--concord", default=command.default_concord(), metavar="PATH",
                        help="the command, or a build folder [that of scripts/build]")
    parser.add_argument("--python", help="with PyTorch [$CONCORD_PYTHON, else python3 or /usr/bin/python3]")
    parser.add_argument("--out", default="bench-results/tables", metavar="FOLDER", help="[%(default)s]")
    return parser


def wanted(groups):
    """(network, batch, precision) of all jobs, each once."""
    found = {}
    for precisions, words in groups:
        unknown = [p for p in precisions if p not in command.PRECISIONS]
        if unknown:
            raise command.Usage(f"--precision {unknown[0]}: expected some of {', '.join(command.PRECISIONS)}")
        if not words:
            raise command.Usage(f"--precision {','.join(precisions)}: no --net behind it")
        for net in command.split_nets(words):
            net, _, batch = net.partition("@")
            if batch and not batch.isdecimal():
                raise command.Usage(f"--net {net}@{batch}: the batch is no number")
            batch = batch or str(versus.BATCHES.get(net.split(":")[0], 64))
            found |= {(net, batch, precision): None for precision in precisions}
    return list(found)


class Tables:
    def __init__(self, options, program):
        self.options, self.program, self.folder = options, program, report.folder(options.out)
        self.concord = command.find_concord(options.concord)
        self.until = time.monotonic() + options.deadline
        self.path = self.folder / "rows.csv"
        self.failures = {}
        self.keys, done = wanted(options.groups), self.measured()
        self.missing = [key for key in self.keys if key not in done]
        self.log = open(self.folder / "log.txt", "a", encoding="utf-8")
        self.say(f"{report.today()}: {len(self.missing)} jobs, {len(self.keys) - len(self.missing)} measured before")

    def say(self, text):
        command.say(text)
        print(text, file=self.log, flush=True)

    def measured(self):
        rows = report.read_csv(self.path, RECORD_COLUMNS) if self.path.exists() else []
        return {(row["network"], row["batch"], row["precision"]) for row in rows}

    def job(self, key, stage, seconds, modes):
        net, batch, precision = key
        out = self.folder / stage / re.sub(r"[^\w.-]+", "_", f"{net}-{batch}-{precision}")
        words = [sys.executable, HERE / self.program, "--device", self.options.device, "--precision", precision,
                 "--net", f"{net}@{batch}", "--rounds", 1, "--seconds", f"{seconds:g}", "--ceilings", "none",
                 "--torch-modes", modes, "--timeout", self.options.limit, "--concord", self.concord, "--out", out]
        words += ["--python", self.options.python] if self.options.python else []
        return slots.Job(f"{net}@{batch} {precision}", words, out / "log.txt")

    def compiled(self, ended):
        self.say(f"compiled {ended.job.name} in {ended.seconds:.0f} s" + (f": {ended.why}" if ended.why else ""))

    def compile(self, modes_of, places):
        """Runs all jobs for an instant, for what they leave in the caches of compiled kernels."""
        jobs = [self.job(key, "warm", 0.01, modes_of(key[2])) for key in self.missing]
        slots.run(jobs, places, self.options.limit, self.compiled, self.until)

    def ended(self, ended):
        rows = self.rows_of(ended.job)
        why = ended.why or ("" if rows.exists() else "left no rows")
        for line in ended.lines():
            if re.match(r"\S+ \S+ (round|PyTorch's|left out)", line):
                self.say(f"  {line}")
        if why:
            self.failures[ended.job.name] = why
        else:
            table = report.Csv(self.path, RECORD_COLUMNS, is_kept=True)
            for row in report.read_csv(rows, RECORD_COLUMNS):
                table.add(row)
            table.file.close()
        self.say(f"{ended.job.name} " + (f"FAILED after {ended.seconds:.0f} s: {why}" if why else
                                         f"measured in {ended.seconds:.0f} s"))

    def rows_of(self, job):
        return job.log.with_name(f"{self.program}_modes.csv")

    def measure(self, modes_of, places):
        """Appends the rows of all jobs. Returns the exit code."""
        jobs = [self.job(key, "jobs", self.options.seconds, modes_of(key[2])) for key in self.missing]
        for job in jobs:  # an earlier run's rows are not this one's
            self.rows_of(job).unlink(missing_ok=True)
        left = slots.run(jobs, places, self.options.limit, self.ended, self.until)
        self.failures |= {job.name: "not started: no time left" for job in left}
        for name, why in self.failures.items():
            self.say(f"no rows of {name}: {why}")
        self.say(f"{len(self.keys) - len(self.failures)} of {len(self.keys)} jobs are in {self.path}")
        return 1 if self.failures else 0
