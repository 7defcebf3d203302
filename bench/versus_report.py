"""Tables and charts of a comparison with PyTorch, made of its CSV alone."""
import chart
import report
import stats
from command import MODES

MODE_COLUMNS = {mode: f"{mode}_ms" for mode in MODES}  # medians of PyTorch's modes
COLUMNS = ("date", "net", "batch", "input", "precision", "side", "phase", "round", "median_ms", "min_ms", "max_ms",
           "samples", "parameters", "peak_device_bytes", "peak_resident_bytes", "floor_ms", "form", "device_name",
           "driver", "version", "mode", *MODE_COLUMNS.values())
OPERATOR_COLUMNS = ("net", "batch", "input", "precision", "date", "phase", "operator", "kernel", "count", "us", "flops",
                    "bytes", "floor_us")
RECORD_COLUMNS = ("network", "batch", "precision", "pass", "ours_ms", *MODE_COLUMNS.values(), "ours_mib", "torch_mib",
                  "device", "driver", "date", "command")  # of bench/results/nvidia-h200-best.csv
PHASES = {"train": "training step", "infer": "inference"}


def read(path):
    """Rows of a comparison. Those from before there were modes have eager times alone."""
    rows = report.read_csv(path, [column for column in COLUMNS if column not in ("mode", *MODE_COLUMNS.values())])
    for row in rows:
        if "mode" not in row:
            is_theirs = row["side"] == "pytorch"
            row |= dict.fromkeys(MODE_COLUMNS.values(), "") | {"mode": "eager" if is_theirs else ""}
            row["eager_ms"] = row["median_ms"] if is_theirs else ""
    return rows


class Side:
    """The rounds of one side of one comparison; of PyTorch's those of its fastest mode."""

    def __init__(self, rows):
        self.rows = rows
        times = {mode: [float(row[column]) for row in rows if row[column]] for mode, column in MODE_COLUMNS.items()}
        self.modes = {mode: stats.median(values) for mode, values in times.items() if values}
        self.mode = min(self.modes, key=self.modes.get) if self.modes else ""
        fastest = [row for row in rows if row["mode"] == self.mode] or rows
        self.median = self.modes[self.mode] if self.modes else stats.median(float(row["median_ms"]) for row in rows)
        self.low = min(float(row["min_ms"]) for row in fastest)
        self.high = max(float(row["max_ms"]) for row in fastest)
        self.device = max(int(row["peak_device_bytes"] or 0) for row in fastest)
        self.resident = max(int(row["peak_resident_bytes"] or 0) for row in rows)
        floors = [float(row["floor_ms"]) for row in rows if row["floor_ms"]]
        self.floor = floors[0] if floors else None

    @property
    def share(self):
        return self.floor / self.median if self.floor else None

    def cell(self):
        return report.spread(self.median, self.low, self.high)


def compared(rows, phase):
    """{(net, batch, precision): (ours, theirs)} in the order measured."""
    keys = dict.fromkeys((row["net"], int(row["batch"]), row["precision"]) for row in rows)
    result = {}
    for key in keys:
        of = [row for row in rows if (row["net"], int(row["batch"]), row["precision"]) == key and row["phase"] == phase]
        sides = [[row for row in of if row["side"] == side] for side in ("concord", "pytorch")]
        if all(sides):
            result[key] = tuple(map(Side, sides))
    return result


def percent(share):
    return f"{100 * share:.0f} %" if share is not None else "–"


def memory(ours, theirs):
    """Bytes of both sides in training: of the device; on a CPU of the process."""
    return (ours.device, theirs.device) if theirs.device else (ours.resident, theirs.resident)


def table(found, phase, with_floor):
    """Rows of text of one phase, with the memory of training."""
    heads = ["network", "batch", "precision", "Concord ms", "PyTorch eager ms", "PyTorch best ms (mode)",
             "ours / eager", "ours / best"]
    heads += ["roofline ms", "share, ours", "theirs"] if with_floor else []
    heads += ["memory MiB, ours", "theirs"] if phase == "train" else []
    rows = [heads]
    for (net, batch, precision), (ours, theirs) in found.items():
        eager = theirs.modes.get("eager")
        row = [net, str(batch), precision, ours.cell(), report.digits(eager) if eager else "–",
               f"{theirs.cell()} {MODES.get(theirs.mode, '')}".rstrip(), f"{ours.median / eager:.2f}" if eager else "–",
               f"{ours.median / theirs.median:.2f}"]
        if with_floor:
            theirs_share = ours.floor / theirs.median if ours.floor else None
            row += [report.digits(ours.floor) if ours.floor else "–", percent(ours.share), percent(theirs_share)]
        if phase == "train":
            row += [report.mib(size) for size in memory(ours, theirs)]
        rows.append(row)
    return rows


def means(found):
    """The geometric means of ours / best and of ours / eager for each precision, in words."""
    by_kind = {"best": {}, "eager": {}}
    for (_, _, precision), (ours, theirs) in found.items():
        by_kind["best"].setdefault(precision, []).append(ours.median / theirs.median)
        if "eager" in theirs.modes:
            by_kind["eager"].setdefault(precision, []).append(ours.median / theirs.modes["eager"])

    def words(by_precision):
        return "; ".join(f"{precision} {stats.geometric_mean(ratios):.3f}" +
                         (f" over {len(ratios)} networks" if len(ratios) > 1 else "")
                         for precision, ratios in by_precision.items())

    return ", ".join(f"of ours / {kind}: {words(ratios)}" for kind, ratios in by_kind.items() if ratios)


def records(rows, command, threads=0):
    """Rows as bench/results keeps them, of one network's rows in one precision; threads: of a CPU."""
    for phase, name in (("train", "training"), ("infer", "inference")):
        for (net, batch, precision), (ours, theirs) in compared(rows, phase).items():
            first = ours.rows[0]
            sizes = memory(ours, theirs) if phase == "train" else (0, 0)
            yield {"network": net, "batch": batch, "precision": precision, "pass": name,
                   "ours_ms": report.digits(ours.median),
                   **{column: round(size / 2**20) if size else "" for column, size in zip(("ours_mib", "torch_mib"), sizes)},
                   "device": first["device_name"] + (f", {threads} thread{'s' if threads > 1 else ''}" if threads else ""),
                   "driver": first["driver"].removeprefix("driver "), "date": first["date"], "command": command} | {
                       column: report.digits(theirs.modes[mode]) if mode in theirs.modes else ""
                       for mode, column in MODE_COLUMNS.items()}


def about(rows):
    """Who was measured, in a sentence."""
    def of(side):
        mine = [row for row in rows if row["side"] == side]
        return {tuple(row[k] for k in ("version", "device_name", "driver")) for row in mine}

    def words(parts):
        return "; ".join(f"{version} on {device}" + (f", {driver}" if driver else "")
                         for version, device, driver in sorted(parts))

    dates = sorted({row["date"] for row in rows})
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    return f"{when}: Concord {words(of('concord'))}; PyTorch {words(of('pytorch'))}"


def named(found, value):
    """Rows for a chart of `value` of each (ours, theirs), a series for each precision."""
    precisions = list(dict.fromkeys(precision for _, _, precision in found))
    rows = {}
    for (net, batch, precision), sides in found.items():
        row = rows.setdefault(f"{net} b{batch}", [None] * len(precisions))
        row[precisions.index(precision)] = value(*sides)
    return rows, precisions


def charts(options, folder, found, phase, subtitle):
    rows, precisions = named(found, lambda ours, theirs: ours.median / theirs.median)
    title = f"Concord beside PyTorch: {PHASES[phase]}"
    if len(precisions) == 1:
        title += f", {precisions[0]}"
    report.write(folder / f"{options.name}_{phase}.svg", chart.bars(
        title, subtitle, rows, precisions, "Concord's time / PyTorch's best: below the dashed line Concord is faster", 1.0,
        lambda v: f"{v:.2f}"))
    roofed = {key: sides for key, sides in found.items() if sides[0].floor}
    if roofed:
        several = len({precision for _, _, precision in roofed}) > 1
        rows = {f"{net} b{batch}" + (f" {precision}" if several else ""):
                [ours.share, ours.floor / theirs.median] for (net, batch, precision), (ours, theirs) in roofed.items()}
        report.write(folder / f"{options.name}_{phase}_roofline.svg", chart.bars(
            f"Share of the roofline: {PHASES[phase]}" + ("" if several else f", {next(iter(roofed))[2]}"), subtitle,
            rows, ["Concord", "PyTorch"], "least time of the network's operators on this device / time taken", 1.0,
            lambda v: f"{100 * v:.0f} %"))


def kernels(rows, most=5):
    """Rows of text: of each training step the kinds of kernel that are furthest from their roofline, by time."""
    table = [["network", "precision", "operator", "kernel", "count", "us", "TFLOP/s", "TB/s", "share"]]
    seen = {}
    for row in rows:  # as written: what loses most first
        key = row["net"], row["batch"], row["precision"]
        us = float(row["us"])
        if row["phase"] != "train" or us == 0 or seen.get(key, 0) == most:
            continue
        seen[key] = seen.get(key, 0) + 1
        share = percent(float(row["floor_us"]) / us if row["floor_us"] else None)
        table.append([f"{row['net']} b{row['batch']}", row["precision"], row["operator"], row["kernel"], row["count"],
                      f"{us:.4g}", f"{float(row['flops']) / us / 1e6:.3g}", f"{float(row['bytes']) / us / 1e6:.3g}",
                      share])
    return table


def write(options, folder, rows, operator_rows, failures):
    """Prints the tables, and writes them with the charts into the folder."""
    parts = [f"{about(rows)}. `{report.command_line()}`; {report.threads()} threads of the host. Rounds in "
             f"which processes of both sides alternate: {max(int(row['round']) for row in rows)}; ms, median of the "
             "rounds (least-most of all samples).\n"]
    print(parts[0])
    subtitle = about(rows)
    for phase, name in PHASES.items():
        found = compared(rows, phase)
        if not found:
            continue
        text = table(found, phase, any(ours.floor for ours, _ in found.values()))
        print(f"{name}\n{report.plain(text)}geometric mean {means(found)}\n")
        if any((side.floor or 0) > side.median for sides in found.values() for side in sides):
            print("A share above 100 %: the values fit into a cache, or the ceilings were measured too low.\n")
        parts.append(f"**{name.capitalize()}** (geometric mean {means(found)})\n\n{report.markdown(text)}")
        charts(options, folder, found, phase, subtitle)
    if len(text := kernels(operator_rows)) > 1:
        parts.append("**Kernels of Concord's training step that lose most against the roofline** (traced: the host "
                     f"waits after each)\n\n{report.markdown(text)}")
    for what, why in failures.items():
        line = f"{what} {why.splitlines()[0]}"
        print(line)
        parts.append(f"- {line}\n")
    report.write(folder / f"{options.name}.md", "\n".join(parts))
