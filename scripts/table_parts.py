"""What the tables of scripts/performance-tables are made of: rows of bench/results, cells, lines of Markdown."""
import csv
import math
import re


class Results:
    """The CSV files of a folder."""

    def __init__(self, folder):
        self.folder = folder
        self.read_files = set()

    def rows(self, name):
        self.read_files.add(name)
        with open(self.folder / f"{name}.csv", newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        if not rows:
            raise SystemExit(f"{name}.csv has no rows")
        return rows

    def unread(self):
        return sorted({file.stem for file in self.folder.glob("*.csv")} - self.read_files)


def markdown(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(str(cell) or "–" for cell in line) + " |\n" for line in lines)


def distinct(values):
    return list(dict.fromkeys(value for value in values if value))


def command_of(row):
    """The command with the network, its batch and the precision as NET, N and P."""
    text = row["command"]
    if row.get("network"):
        text = re.sub(rf"(?<!,)\b{re.escape(row['network'])}\b(?!,)", "NET", text)
    if row.get("batch"):
        text = re.sub(rf"(--batch |@){row['batch']}\b", r"\1N", text)
    return text


def caption(rows):
    """What was measured on, when, and by which command."""
    parts = distinct(row.get("compiler", "") for row in rows)
    for device in distinct(row.get("device", "") for row in rows):
        drivers = distinct(row.get("driver", "") for row in rows if row["device"] == device)
        parts.append(f"{device}, {' and '.join(drivers)}" if drivers else device)
    dates = distinct(row["date"] for row in rows)
    when = dates[0] if len(dates) == 1 else f"{min(dates)} to {max(dates)}"
    commands = distinct(command_of(row) for row in rows)
    text = "; ".join(f"`{command}`" for command in (commands if len(commands) < 3 else commands[:1]))
    if len(commands) > 2:
        text += "; the others are in the CSV file"
    return f"\n{'; '.join([*parts, when])}: {text}\n"


def number(text):
    return float(text) if text else None


def ratio(ours, theirs):
    return f"{ours / theirs:.2f}" if ours and theirs else ""


def geometric_mean(values):
    values = [value for value in values if value]
    return f"{math.exp(sum(math.log(value) for value in values) / len(values)):.2f}" if values else ""


def pairs(rows):
    """(network, batch) and its rows of training and inference, in the order of the file."""
    found = {}
    for row in rows:
        found.setdefault((row["network"], row["batch"]), {})[row["pass"]] = row
    return found


def ratios(rows, theirs):
    return [float(row["ours_ms"]) / theirs(row) for row in rows if theirs(row)]
