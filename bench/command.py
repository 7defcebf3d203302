"""What every benchmark here shares: its errors and exit codes, the command `concord`, names of networks.

Exit codes of the programs: 0 done, 1 something failed (or is slower than allowed), 2 wrong usage.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PRECISIONS = ("fp32", "tf32", "bf16", "fp16")
MODES = {"eager": "eager", "graph": "in a graph", "compiled": "compiled",  # of PyTorch: bench/torch_step.py
         "compiled_graph": "compiled, in a graph"}
# What the command says where a size does not fit into the memory of the device or of the host.
TOO_LARGE = re.compile("allocates at most .* at once|in addition to the .* in use|host memory is too small|"
                       "close other programs|[Tt]he largest batch that fits|[Nn]ot even a batch of one sample fits")


class Failure(Exception):
    """Ends the program, or one measurement, with a sentence that says why."""
    code = 1


class Usage(Failure):
    code = 2


class OutOfMemory(Failure):
    """This size does not fit into the memory of the device or of the host."""


class Refused(Failure):
    """A side does not offer this precision: nothing is broken, the measurement is left out."""


def main(program):
    """Runs `program`, which returns an exit code, and turns failures into one line on standard error."""
    try:
        sys.exit(program())
    except Failure as failure:
        print(f"{pathlib.Path(sys.argv[0]).name}: {failure}", file=sys.stderr)
        sys.exit(failure.code)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(1)


def say(text):
    print(text, file=sys.stderr, flush=True)


def split_nets(words):
    """Networks of the command line. Commas separate networks, and sizes within one: "lenet,mlp:depth=4,width=64"."""
    nets = []
    for part in (part for word in words for part in word.split(",")):
        if nets and "=" in part and ":" not in part:
            nets[-1] += "," + part
        else:
            nets.append(part)
    if not all(nets):
        raise Usage("--net: an empty name")
    return nets


def with_size(net, name, value):
    """The network's name with one size more: with_size("mlp:depth=4", "width", 64) is "mlp:depth=4,width=64"."""
    return f"{net}{',' if ':' in net else ':'}{name}={value}"


def positive(kind):
    """Of numbers on the command line: above zero and finite."""
    def number(text):
        value = kind(text)
        if not 0 < value < float("inf"):
            raise argparse.ArgumentTypeError(f"{text} is not above 0")
        return value
    number.__name__ = "number"
    return number


def built_program(name):
    """That of the first preset which has it, in a bundle the bundle's; where none has, its place in the first preset."""
    places = [ROOT / "build" / preset / "bin" / name for preset in ("release", "opencl-only", "cpu-only")]
    return next((place for place in (*places, ROOT / "bin" / name) if place.exists()), places[0])


def default_concord():
    return built_program("concord")


def find_concord(path):
    """The command at `path`, or in a build folder there."""
    path = pathlib.Path(path)
    if path.is_dir():
        path = path / "bin/concord"
    if not path.is_file() or not os.access(path, os.X_OK):
        raise Failure(f"{path} is no program; build it with scripts/build, or name it with --concord")
    return path.resolve()


def add_measuring(parser, seconds):
    parser.add_argument("--concord", default=default_concord(), metavar="PATH",
                        help="the command, or a build folder [that of scripts/build]")
    parser.add_argument("--rounds", type=positive(int), default=3, help="processes of each side [%(default)s]")
    parser.add_argument("--seconds", type=positive(float), default=seconds,
                        help="time to measure for in each process, a phase [%(default)s]")
    parser.add_argument("--timeout", type=positive(float), default=900, help="seconds a process may take [%(default)s]")


def threads():
    """Of a side on the CPU: $OMP_NUM_THREADS, else the cores that it may use."""
    text = os.environ.get("OMP_NUM_THREADS", "")
    return int(text) if text.isdecimal() and int(text) else len(os.sched_getaffinity(0))


def environment():
    """Of both sides. glibc would return big blocks to the kernel at each free: page faults then take most of a step."""
    result = dict(os.environ)
    result["OMP_NUM_THREADS"] = str(threads())
    for name, value in (("MMAP_THRESHOLD_", "4294967296"), ("TRIM_THRESHOLD_", "8589934592"),
                        ("TOP_PAD_", "268435456")):
        result.setdefault(f"MALLOC_{name}", value)
    return result


def last_lines(text, count=6):
    return "\n".join(text.strip().splitlines()[-count:])


def complaint_of(stderr):
    """What the command complains of: its sentence, or the parser's, which its help follows."""
    lines = [line for line in stderr.splitlines() if line.startswith(("concord: ", "ERROR: "))]
    return lines[0].partition(": ")[2].removeprefix("ValidationError: ") if lines else last_lines(stderr)


def run_json(command, env, timeout):
    """The JSON object that a program prints last, its exit code, and what it says where it failed."""
    words = [str(word) for word in command]
    try:
        done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        raise Failure(f"{' '.join(words)} took more than {timeout:g} s; --timeout allows more") from None
    except OSError as error:
        raise Failure(f"{words[0]} does not run: {error}") from None
    if done.returncode:
        return None, done.returncode, done.stderr or done.stdout
    try:
        return json.loads(done.stdout[done.stdout.index("{"):]), 0, ""
    except ValueError as error:
        raise Failure(f"{' '.join(words)} printed no JSON ({error}): {last_lines(done.stdout)}") from None


class Concord:
    """`concord bench` of one build on one device."""

    def __init__(self, program, device, seconds, timeout):
        self.program, self.device, self.seconds, self.timeout = find_concord(program), device, seconds, timeout

    def command(self, net, batch, precision="fp32", sample="", trace=False):
        words = [self.program, "bench", net, "--batch", batch, "--json", "--seconds", self.seconds]
        if self.device:
            words += ["--device", self.device]
        if precision != "fp32":
            words += ["--precision", precision]
        if sample:
            words += ["--input", sample]
        return words + (["--trace"] if trace else [])

    def bench(self, net, batch, precision="fp32", sample="", trace=False):
        """The report of one process."""
        return self.report(self.command(net, batch, precision, sample, trace))

    def sample_of(self, net):
        """Extents of one sample as published."""
        return self.report([self.program, "summary", net, "--batch", 1, "--json"])["input"][1:]

    def report(self, words):
        report, code, stderr = run_json(words, environment(), self.timeout)
        if report:
            return report
        complaint = complaint_of(stderr)
        if "--precision" in complaint:
            raise Refused(f"this build of the command refuses it: {complaint}")
        kind = Usage if code == 2 else OutOfMemory if TOO_LARGE.search(complaint) else Failure
        raise kind(complaint or f"{' '.join(map(str, words))} ended with {code}")
