"""The statistics of the benchmarks: means of ratios, intervals of a ratio, exponents of growth."""
import math
import random
import statistics

median = statistics.median


def geometric_mean(values):
    return math.exp(statistics.fmean(math.log(v) for v in values))


def bootstrap_ratio(before, after, level=0.95, draws=10000, seed=1):
    """Median of after / before and its interval: rounds are drawn anew, each with both its figures, because what a
    machine does to one figure of a round it mostly does to the other (Efron, 1979: the percentile method)."""
    ratios = [b / a for a, b in zip(before, after, strict=True)]
    draw = random.Random(seed)
    medians = sorted(median(draw.choices(ratios, k=len(ratios))) for _ in range(draws))
    tail = (1 - level) / 2
    return median(ratios), medians[math.floor(tail * (draws - 1))], medians[math.ceil((1 - tail) * (draws - 1))]


def upper_half(points):
    """The points (x, y) in the upper half of the range of x, by ratio; at least the last two."""
    points = sorted(points)
    middle = math.sqrt(points[0][0] * points[-1][0])
    upper = [point for point in points if point[0] >= middle * (1 - 1e-9)]
    return upper if len(upper) >= 2 else points[-2:]


def exponent(points):
    """p of y = c·x^p by least squares of logarithms, and its standard error (None with two points)."""
    if len(points) < 2:
        raise ValueError("an exponent needs two points")
    xs, ys = [math.log(x) for x, _ in points], [math.log(y) for _, y in points]
    x0, y0 = statistics.fmean(xs), statistics.fmean(ys)
    square = sum((x - x0) ** 2 for x in xs)
    slope = sum((x - x0) * (y - y0) for x, y in zip(xs, ys)) / square
    if len(points) == 2:
        return slope, None
    residual = sum((y - y0 - slope * (x - x0)) ** 2 for x, y in zip(xs, ys))
    return slope, math.sqrt(residual / (len(points) - 2) / square)
