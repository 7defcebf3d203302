"""The tables of scripts/performance-tables that have Concord's times beside PyTorch's."""
import math

from table_parts import caption, distinct, geometric_mean, markdown, number, pairs, ratio, ratios


def best_of_pytorch(row):
    """The shortest of the times that PyTorch took."""
    times = [float(row[key]) for key in ("pytorch_eager_ms", "pytorch_best_ms") if row[key]]
    return min(times) if times else None


def beside_pytorch(rows, with_memory):
    head = ["network, batch", "training ms", "PyTorch eager", "PyTorch best", "ours / eager", "ours / best"]
    head += ["MiB, ours", "MiB, PyTorch"] if with_memory else []
    head += ["inference ms", "PyTorch eager", "ours / eager"]

    def eager(row):
        return number(row["pytorch_eager_ms"])

    def line(name, parts):
        training, inference = parts["training"], parts["inference"]
        cells = [name, training["ours_ms"], training["pytorch_eager_ms"], training["pytorch_best_ms"],
                 ratio(float(training["ours_ms"]), eager(training)),
                 ratio(float(training["ours_ms"]), best_of_pytorch(training))]
        cells += [training["ours_mib"], training["pytorch_mib"]] if with_memory else []
        return cells + [inference["ours_ms"], inference["pytorch_eager_ms"],
                        ratio(float(inference["ours_ms"]), eager(inference))]

    lines = [line(f"{network}, {batch}", parts) for (network, batch), parts in pairs(rows).items()]
    training = [row for row in rows if row["pass"] == "training"]
    inference = [row for row in rows if row["pass"] == "inference"]
    lines.append(["geometric mean", "", "", "", geometric_mean(ratios(training, eager)),
                  geometric_mean(ratios(training, best_of_pytorch)), *([""] * (2 if with_memory else 0)), "", "",
                  geometric_mean(ratios(inference, eager))])
    return markdown(head, lines) + caption(rows)


def h200(precision):
    def table(results):
        rows = [row for row in results.rows("nvidia-h200") if row["precision"] == precision]
        return beside_pytorch(rows, with_memory=True)

    return table


MODES = {"eager": "eager", "graph": "in a graph", "compiled": "compiled", "compiled_graph": "compiled, in a graph"}
TOKENS = 8192  # of a step, where the length of GPT-2 grows


def best_of_modes(row):
    times = [float(row[f"{mode}_ms"]) for mode in MODES if row[f"{mode}_ms"]]
    return min(times) if times else None


def best_with_mode(row):
    mode = next((mode for mode in MODES if number(row[f"{mode}_ms"]) == best_of_modes(row)), None)
    return f"{row[f'{mode}_ms']} ({MODES[mode]})" if best_of_modes(row) else ""


def beside_best(rows):
    """Beside all modes of PyTorch that were measured, with the memory of training where the rows have it."""
    modes = {mode: name for mode, name in MODES.items() if any(row[f"{mode}_ms"] for row in rows)}
    sizes = ["ours_mib", "torch_mib"] if any(row["ours_mib"] for row in rows) else []
    lines = []
    for (network, batch), parts in pairs(rows).items():
        training, inference = parts["training"], parts["inference"]
        lines.append([f"{network}, {batch}", training["ours_ms"], *[training[f"{mode}_ms"] for mode in modes],
                      ratio(float(training["ours_ms"]), best_of_modes(training)), *[training[size] for size in sizes],
                      inference["ours_ms"], best_with_mode(inference),
                      ratio(float(inference["ours_ms"]), best_of_modes(inference))])
    means = [geometric_mean(ratios([row for row in rows if row["pass"] == part], best_of_modes))
             for part in ("training", "inference")]
    lines.append(["geometric mean", *[""] * (len(modes) + 1), means[0], *[""] * (len(sizes) + 2), means[1]])
    head = ["network, batch", "training ms", *modes.values(), "ours / best", *["MiB, ours", "MiB, PyTorch"][:len(sizes)],
            "inference ms", "best (mode)", "ours / best"]
    return markdown(head, lines) + caption(rows)


def size_of(row):
    """(axis, size) of a row of growth: GPT-2 over the length, resnet18 over the batch."""
    network, _, length = row["network"].partition(":length=")
    if network == "gpt2_small" and int(length or 1024) * int(row["batch"]) == TOKENS:
        return f"length ({TOKENS} tokens a step)", int(length or 1024)
    return ("batch", int(row["batch"])) if network == "resnet18" else None


def is_of_growth_alone(row):
    return row["network"].startswith("gpt2_small:length=") or row["network"] == "resnet18" and row["batch"] != "64"


def best(source, precision):
    def table(results):
        rows = [row for row in results.rows(source) if row["precision"] == precision and not is_of_growth_alone(row)]
        if not rows:
            raise SystemExit(f"{source}.csv has no rows in {precision}")
        return beside_best(rows)

    return table


def growth(old, new, value):
    """The exponent p of time ~ size^p between two (size, row)."""
    if not (old and value(old[1]) and value(new[1])):
        return ""
    return f"{math.log(value(new[1]) / value(old[1])) / math.log(new[0] / old[0]):.2f}"


def sizes(source):
    """A table for each network that has several sizes, and precision."""

    def table(results):
        networks = {}
        for row in results.rows(source):
            if axis := size_of(row):
                name = f"{row['network'].partition(':')[0]} in {row['precision']}, {axis[0]}"
                networks.setdefault(name, {}).setdefault(axis[1], {})[row["pass"]] = row
        text, shown = "", []
        for name, found in networks.items():
            if len(found) < 2:
                continue
            lines, old = [], None
            for size, parts in sorted(found.items()):
                line = [str(size)]
                for part in ("training", "inference"):
                    row = parts[part]
                    before = old and (old[0], old[1][part])
                    line += [row["ours_ms"], best_with_mode(row), ratio(float(row["ours_ms"]), best_of_modes(row)),
                             growth(before, (size, row), lambda row: float(row["ours_ms"])),
                             growth(before, (size, row), best_of_modes)]
                lines.append(line)
                shown += parts.values()
                old = size, parts
            text += markdown([name, "training ms", "PyTorch best (mode)", "ours / best", "growth, ours", "PyTorch",
                              "inference ms", "PyTorch best (mode)", "ours / best", "growth, ours", "PyTorch"],
                             lines) + "\n"
        if not text:
            raise SystemExit(f"{source}.csv has no network in several sizes")
        return text.rstrip("\n") + "\n" + caption(shown)

    return table


def cpu_best(results):
    """A table for each device, whose name has the number of threads, and precision."""
    rows = results.rows("cpu-best")
    return "\n".join(beside_best([row for row in rows if (row["device"], row["precision"]) == key])
                     for key in distinct((row["device"], row["precision"]) for row in rows))


def portable(results):
    rows = results.rows("nvidia-h200-portable")
    lines = []
    for (network, batch), parts in pairs(rows).items():
        training = parts["training"]
        lines.append([f"{network}, {batch}", training["ours_ms"], training["pytorch_best_ms"],
                      ratio(float(training["ours_ms"]), best_of_pytorch(training)), parts["inference"]["ours_ms"]])
    lines.append(["geometric mean", "", "", geometric_mean(ratios(rows, best_of_pytorch)), ""])
    return markdown(["network, batch", "training ms", "PyTorch best, fp32", "ours / best", "inference ms"],
                    lines) + caption(rows)


def xeon(results):
    rows = results.rows("intel-xeon-2-cores")
    head = ["network, batch", "training ms", "PyTorch", "ours / theirs", "inference ms", "PyTorch", "ours / theirs"]
    lines = []
    groups = [[row for row in rows if row["batch"] != "1"], [row for row in rows if row["batch"] == "1"]]
    for group in groups:
        for (network, batch), parts in pairs(group).items():
            cells = [f"{network}, {batch}"]
            for part in ("training", "inference"):
                row = parts[part]
                cells += [row["ours_ms"], row["pytorch_eager_ms"], ratio(float(row["ours_ms"]), best_of_pytorch(row))]
            lines.append(cells)
        means = ["geometric mean"]
        for part in ("training", "inference"):
            means += ["", "", geometric_mean(ratios([row for row in group if row["pass"] == part], best_of_pytorch))]
        lines.append(means)
    return markdown(head, lines) + caption(rows)


def epyc(results):
    rows = results.rows("amd-epyc-zen5-2-cores")
    lines = []
    for network in distinct(row["network"] for row in rows):
        cpu, pocl = [next(row for row in rows if row["network"] == network and row["driver"].startswith(driver))
                     for driver in ("oneDNN", "PoCL")]
        lines.append([f"{network}, {cpu['batch']}", cpu["ours_ms"], pocl["ours_ms"], cpu["pytorch_eager_ms"],
                      ratio(float(cpu["ours_ms"]), best_of_pytorch(cpu))])
    return markdown(["network, batch", "`cpu`, training ms", "`opencl` (PoCL)", "PyTorch", "`cpu` / PyTorch"],
                    lines) + caption(rows)
