"""What a benchmark leaves behind: CSV, Markdown for docs/performance.md, SVG, and what was run where."""
import csv
import datetime
import os
import pathlib
import shlex
import sys

from command import Failure, say


def today():
    return datetime.date.today().isoformat()


def command_line(without=()):
    """As typed, but for the folder of the program and for the options `without`, each of which has one value."""
    words, rest = [f"bench/{pathlib.Path(sys.argv[0]).name}"], iter(sys.argv[1:])
    for word in rest:
        if word in without:
            next(rest, None)
        elif word.partition("=")[0] not in without:
            words.append(word)
    return shlex.join(words)


def threads():
    return len(os.sched_getaffinity(0))


def folder(path):
    path = pathlib.Path(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Failure(f"--out {path}: {error.strerror}") from None
    return path


def write(path, text):
    """Whole or not at all."""
    part = path.with_name(path.name + ".part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from None
    say(f"wrote {path}")


class Csv:
    """A table that grows by a row at a time, so that what was measured is kept when the program ends early. The file is
    begun with the first row: a run that measures nothing leaves an earlier one's. Where rows are kept, an earlier
    table's stay in front."""

    def __init__(self, path, columns, is_kept=False):
        self.path, self.columns, self.is_kept, self.writer = path, columns, is_kept, None

    def begin(self):
        try:
            self.file = open(self.path, "a" if self.is_kept else "w", newline="", encoding="utf-8")
        except OSError as error:
            raise Failure(f"{self.path}: {error.strerror}") from None
        self.writer = csv.DictWriter(self.file, self.columns, lineterminator="\n")
        if self.file.tell() == 0:
            self.writer.writeheader()

    def add(self, row):
        if self.writer is None:
            self.begin()
        self.writer.writerow({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()})
        self.file.flush()


def read_csv(path, columns):
    """Rows as text, of a file that Csv wrote."""
    try:
        with open(path, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    except (OSError, csv.Error, UnicodeDecodeError) as error:
        raise Failure(f"{path}: {error}") from None
    missing = [column for column in columns if rows and column not in rows[0]]
    if missing or not rows:
        raise Failure(f"{path}: {'no rows' if not rows else 'no column ' + ', '.join(missing)}")
    return rows


def markdown(rows):
    """Of rows of text, the first being the heads."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]]) + "\n"


def plain(rows):
    """The same for a terminal: the first column to the left, the others to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(w) if i == 0 else cell.rjust(w)
                               for i, (cell, w) in enumerate(zip(row, widths))).rstrip() for row in rows) + "\n"


def digits(ms):
    """Milliseconds to three digits behind the point below one, else to four in all."""
    return f"{ms:.3f}" if ms < 1 else f"{ms:.4g}" if ms < 1e4 else f"{ms:.0f}"


def spread(median, low, high):
    return f"{digits(median)} ({digits(low)}-{digits(high)})"


def mib(size):
    return f"{size / 2**20:,.0f}" if size else "–"
