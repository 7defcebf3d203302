"""Charts as SVG, written without any library: horizontal bars, intervals on rows, lines with logarithmic axes.

Colours follow the reader's light or dark scheme; those of the series are told apart by colour-blind eyes too.
"""
import math
from xml.sax.saxutils import escape

FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', Helvetica, Arial, sans-serif"
LIGHT = {"page": "#ffffff", "text": "#1f2328", "soft": "#59636e", "grid": "#e4e8ec", "mark": "#8c959f"}
DARK = {"page": "#0d1117", "text": "#f0f6fc", "soft": "#9198a1", "grid": "#262c36", "mark": "#768390"}
SERIES = (("#2f6fdd", "#6ea4ff"), ("#d97706", "#f5a742"), ("#0f9d76", "#3fcf9f"), ("#9254d6", "#bd93f9"))
LEFT_PAD, RIGHT_PAD, PLOT = 20, 78, 560


def width_of(text, size):
    """About as wide as the text will be: no font is at hand to measure it."""
    return sum(0.34 if c in "iljtfr.,:;|()[] " else 0.86 if c in "mwMW@%~^±=" else 0.68 if c.isupper() else 0.6
               for c in text) * size


def styles():
    def rules(colours, shade):
        lines = [f".page{{fill:{colours['page']}}}.text{{fill:{colours['text']}}}.soft{{fill:{colours['soft']}}}",
                 f".grid{{stroke:{colours['grid']}}}.mark{{stroke:{colours['mark']}}}"]
        for i, pair in enumerate(SERIES):
            lines.append(f".s{i}{{fill:{pair[shade]}}}.l{i}{{stroke:{pair[shade]}}}")
        return "".join(lines)
    return (f"<style>text{{font-family:{FONT}}}.number{{font-variant-numeric:tabular-nums}}{rules(LIGHT, 0)}"
            f"@media (prefers-color-scheme:dark){{{rules(DARK, 1)}}}</style>")


class Canvas:
    def __init__(self, width, height, title):
        self.width, self.height, self.title, self.parts = width, height, title, []

    def text(self, x, y, text, size=12, kind="text", anchor="start", weight=400):
        self.parts.append(f'<text class="{kind} number" x="{x:.1f}" y="{y:.1f}" font-size="{size}" '
                          f'text-anchor="{anchor}" font-weight="{weight}">{escape(text)}</text>')

    def line(self, x1, y1, x2, y2, kind="grid", width=1.0, dash=""):
        style = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
                          f'stroke-width="{width}"{style}/>')

    def bar(self, x, y, width, height, series):
        """Rounded at its end alone."""
        r = min(3.0, max(width, 0) / 2, height / 2)
        self.parts.append(f'<path class="s{series}" d="M{x:.1f} {y:.1f}h{max(width - r, 0.5):.1f}q{r:.1f} 0 {r:.1f} '
                          f'{r:.1f}v{height - 2 * r:.1f}q0 {r:.1f} {-r:.1f} {r:.1f}H{x:.1f}z"/>')

    def dot(self, x, y, series, radius=4.0):
        self.parts.append(f'<circle class="s{series}" cx="{x:.1f}" cy="{y:.1f}" r="{radius}"/>')

    def path(self, points, series, dash="", width=2.2):
        places = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        style = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(f'<path class="l{series}" d="M{places}" fill="none" stroke-width="{width}" '
                          f'stroke-linejoin="round"{style}/>')

    def heading(self, subtitle, legend):
        """Title, subtitle and legend; legend is (series, name, kind of mark)."""
        self.text(LEFT_PAD, 30, self.title, 17, weight=600)
        self.text(LEFT_PAD, 50, subtitle, 12, "soft")
        x = LEFT_PAD
        for series, name, dashed in legend:
            if dashed:
                self.path([(x, 70), (x + 18, 70)], series, "4 3", 1.6)
            else:
                self.parts.append(f'<rect class="s{series}" x="{x:.1f}" y="64" width="12" height="12" rx="3"/>')
            self.text(x + (24 if dashed else 18), 74, name, 12)
            x += (24 if dashed else 18) + width_of(name, 12) + 20

    def svg(self):
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width:.0f} {self.height:.0f}" '
                f'width="{self.width:.0f}" height="{self.height:.0f}" role="img"><title>{escape(self.title)}</title>'
                f'{styles()}<rect class="page" width="100%" height="100%" rx="6"/>\n' + "\n".join(self.parts)
                + "\n</svg>\n")


def ticks(top, count=5):
    """Round numbers from 0 to just above `top`."""
    step = 10 ** math.floor(math.log10(top / count))
    step *= next(m for m in (1, 2, 2.5, 5, 10) if m * step * count >= top * 0.999)
    return [i * step for i in range(math.ceil(top / step * 0.999) + 1)]


def short(value):
    """Three digits, without an exponent where people read none: 0.0123, 1.5, 1,024, 12k."""
    if value == 0:
        return "0"
    if abs(value) >= 1e4:
        scale, unit = next((s, u) for s, u in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")) if abs(value) >= s)
        return f"{value / scale:.3g}{unit}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def frame(title, subtitle, rows, legend, row_height):
    """A canvas with room for named rows: (canvas, x of the plot, y of the first row, y below the last)."""
    left = LEFT_PAD + max(width_of(name, 12) for name in rows) + 14
    top = 96 if legend else 76
    bottom = top + row_height * len(rows)
    needed = max(width_of(title, 17), width_of(subtitle, 12)) + 2 * LEFT_PAD
    canvas = Canvas(max(left + PLOT + RIGHT_PAD, needed), bottom + 44, title)
    canvas.heading(subtitle, legend)
    return canvas, left, top, bottom


def scale_rows(canvas, left, top, bottom, marks, place, axis, reference):
    for value in marks:
        x = place(value)
        canvas.line(x, top - 4, x, bottom)
        canvas.text(x, bottom + 17, short(value), 11, "soft", "middle")
    canvas.text(left, bottom + 34, axis, 11, "soft")
    if reference is not None:
        canvas.line(place(reference), top - 4, place(reference), bottom, "mark", 1.4, "5 4")


def bars(title, subtitle, rows, series, axis, reference=None, label=short):
    """rows: {name: [a number or None for each series]}; the dashed line stands at `reference`."""
    thick, gap = (15, 5) if len(series) > 1 else (18, 4)
    height = len(series) * (thick + 2) + gap + 8
    legend = [(i, name, False) for i, name in enumerate(series)] if len(series) > 1 else []
    canvas, left, top, bottom = frame(title, subtitle, rows, legend, height)
    values = [v for row in rows.values() for v in row if v is not None]
    marks = ticks(max(values + ([reference] if reference else []), default=1) or 1)
    place = lambda v: left + PLOT * v / marks[-1]
    scale_rows(canvas, left, top, bottom, marks, place, axis, reference)
    for i, (name, row) in enumerate(rows.items()):
        y = top + i * height + gap
        canvas.text(left - 10, y + (len(series) * (thick + 2)) / 2 + 3, name, 12, anchor="end")
        for k, value in enumerate(row):
            at = y + k * (thick + 2)
            if value is None:
                canvas.text(left + 6, at + thick / 2 + 4, "–", 11, "soft")
                continue
            canvas.bar(left, at, place(value) - left, thick, k)
            canvas.text(place(value) + 6, at + thick / 2 + 4, label(value), 11)
    canvas.line(left, top - 4, left, bottom, "mark")
    return canvas.svg()


def intervals(title, subtitle, rows, series, axis, reference=1.0, limit=None):
    """rows: {name: [(middle, low, high) or None for each series]}; a second line, dotted, stands at `limit`."""
    height = 18 * len(series) + 12
    legend = [(i, name, False) for i, name in enumerate(series)] if len(series) > 1 else []
    canvas, left, top, bottom = frame(title, subtitle, rows, legend, height)
    values = [v for row in rows.values() for triple in row if triple for v in triple]
    values += [reference] + ([limit] if limit else [])
    low, high = min(values), max(values)
    pad = 0.08 * (high - low or 0.1)
    low, high = low - pad, high + pad
    step = 10 ** math.floor(math.log10((high - low) / 4))
    step *= next(m for m in (1, 2, 5, 10) if (high - low) / (m * step) <= 7)
    marks = [i * step for i in range(math.ceil(low / step), math.floor(high / step) + 1)]
    place = lambda v: left + PLOT * (v - low) / (high - low)
    scale_rows(canvas, left, top, bottom, marks, place, axis, reference)
    if limit:
        canvas.line(place(limit), top - 4, place(limit), bottom, "mark", 1.4, "1.5 3.5")
    for i, (name, row) in enumerate(rows.items()):
        y = top + i * height + 4
        canvas.text(left - 10, y + height / 2, name, 12, anchor="end")
        for k, triple in enumerate(row):
            if triple is None:
                continue
            at = y + 18 * k + 11
            canvas.path([(place(triple[1]), at), (place(triple[2]), at)], k, width=2.6)
            canvas.dot(place(triple[0]), at, k)
            canvas.text(left + PLOT + 10, at + 4, f"{triple[0]:.3f}", 11)
    return canvas.svg()


def log_marks(low, high):
    """Places for labels between two positive numbers: powers of ten, or 1, 2, 5 of each where these are few."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    every = [m * 10.0 ** e for e in decades for m in (1, 2, 5)]
    tens = [10.0 ** e for e in decades if low <= 10.0 ** e <= high]
    return tens if len(tens) >= 3 else [v for v in every if low * 0.999 <= v <= high * 1.001]


def lines(title, subtitle, series, x_axis, y_axis):
    """Both axes logarithmic. series: [{name, points [(x, y)], low/high of each or None, fit [(x, y)…] or None}]."""
    height = 360
    left, top, bottom = LEFT_PAD + 58, 114, 114 + height
    needed = max(width_of(title, 17), width_of(subtitle, 12)) + 2 * LEFT_PAD
    canvas = Canvas(max(left + PLOT + 30, needed), bottom + 58, title)
    legend = []
    for i, one in enumerate(series):
        legend.append((i, one["name"], False))
        if one.get("fit"):
            legend.append((i, one["fit_name"], True))
    canvas.heading(subtitle, legend)
    xs = sorted({x for one in series for x, _ in one["points"]})
    ys = [y for one in series for _, y in one["points"]] + [v for one in series for v in one.get("spread", [])]
    ys += [y for one in series for _, y in one.get("fit") or []]
    y_low, y_high = min(ys) / 1.25, max(ys) * 1.25
    x_low, x_high = xs[0] / 1.08, xs[-1] * 1.08
    place_x = lambda x: left + PLOT * math.log(x / x_low) / math.log(x_high / x_low)
    place_y = lambda y: bottom - height * math.log(y / y_low) / math.log(y_high / y_low)
    for value in log_marks(y_low, y_high):
        canvas.line(left, place_y(value), left + PLOT, place_y(value))
        canvas.text(left - 8, place_y(value) + 4, short(value), 11, "soft", "end")
    free = -math.inf
    for value in xs:
        canvas.line(place_x(value), bottom, place_x(value), bottom + 4, "mark")
        half = width_of(short(value), 11) / 2
        if place_x(value) - half > free + 4:
            canvas.text(place_x(value), bottom + 18, short(value), 11, "soft", "middle")
            free = place_x(value) + half
    canvas.line(left, bottom, left + PLOT, bottom, "mark")
    canvas.text(left + PLOT / 2, bottom + 40, x_axis, 12, "soft", "middle")
    canvas.text(LEFT_PAD, top - 10, y_axis, 11, "soft")
    for i, one in enumerate(series):
        if one.get("fit"):
            canvas.path([(place_x(x), place_y(y)) for x, y in one["fit"]], i, "4 3", 1.4)
        canvas.path([(place_x(x), place_y(y)) for x, y in one["points"]], i)
        for x, y in one["points"]:
            canvas.dot(place_x(x), place_y(y), i, 3.4)
    return canvas.svg()
