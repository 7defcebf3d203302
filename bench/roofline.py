"""The least time that the operators of a network could take on a device: each by its FLOPs over what the device
computes a second and by its bytes over what it moves a second, whichever is more (Williams et al., "Roofline", 2009).

Ceilings are measured figures: those of ceilings.json by the device's name, or of --ceilings.
"""
import json
import pathlib

from command import PRECISIONS, Usage
from stats import median

UNITS = {"bandwidth": "TB/s", "fma": "TFLOP/s"} | {precision: "TFLOP/s" for precision in PRECISIONS}
# Operators whose multiplications may run on matrix units, by parts of their names; the others have only `fma`.
PRODUCTS = ("conv", "matmul", "attention", "lstm", "gru", "rnn", "recurrent")


def add_option(parser):
    parser.add_argument("--ceilings", metavar="NAME=NUMBER,…|measure|none", default="", help=(
        "of the device: bandwidth (TB/s), fma (TFLOP/s outside products), fp32, tf32, bf16, fp16 (TFLOP/s of "
        "products); `measure` takes what PyTorch's copies and products reach here [bench/ceilings.json by the device's "
        "name]"))


def parse(text):
    ceilings = {}
    for part in text.split(","):
        name, _, number = part.partition("=")
        try:
            ceilings[name] = float(number)
        except ValueError:
            raise Usage(f"--ceilings: expected NAME=NUMBER, got '{part}'") from None
        if name not in UNITS or not 0 < ceilings[name] < float("inf"):
            raise Usage(f"--ceilings {part}: expected a number above 0 for one of {', '.join(UNITS)}")
    return ceilings


def known(device_name):
    """The ceilings of a device in ceilings.json; empty for an unknown one."""
    with open(pathlib.Path(__file__).with_name("ceilings.json"), encoding="utf-8") as file:
        devices = json.load(file)
    return {k: v for k, v in devices.get(device_name, {}).items() if k in UNITS}


def lacking(ceilings, precision):
    """What is missing to say anything in this precision."""
    return [name for name in ("bandwidth", "fma", precision) if name not in ceilings]


def floor_seconds(operator, ceilings, precision):
    """Of one traced operator: its name, FLOPs and bytes."""
    is_product = any(part in operator["operator"] for part in PRODUCTS)
    peak = ceilings[precision if is_product else "fma"]
    return max(operator["flops"] / (peak * 1e12), operator["bytes"] / (ceilings["bandwidth"] * 1e12))


def floor_ms(trace, ceilings, precision):
    return 1e3 * sum(floor_seconds(operator, ceilings, precision) for operator in trace)


def median_trace(traces):
    """One trace of several of the same program; those of another one, as kernels chosen anew make it, are left out."""
    def names(trace):
        return [(operator["node"], operator["kernel"]) for operator in trace]
    same = [trace for trace in traces if names(trace) == names(traces[0])]
    return [operator | {"microseconds": median(trace[i]["microseconds"] for trace in same)}
            for i, operator in enumerate(traces[0])]


def by_kernel(trace, ceilings, precision):
    """Time, work and floor of a phase, summed over operators of one kind and kernel; what loses most comes first."""
    groups = {}
    for operator in trace:
        group = groups.setdefault((operator["operator"], operator["kernel"]), {
            "operator": operator["operator"], "kernel": operator["kernel"], "count": 0, "us": 0.0, "flops": 0.0,
            "bytes": 0.0, "floor_us": 0.0 if ceilings else None})
        group["count"] += 1
        group["us"] += operator["microseconds"]
        group["flops"] += operator["flops"]
        group["bytes"] += operator["bytes"]
        if ceilings:
            group["floor_us"] += 1e6 * floor_seconds(operator, ceilings, precision)
    return sorted(groups.values(), key=lambda group: (group["floor_us"] or 0) - group["us"])
