"""Draw critical-difference diagrams and performance profiles as small SVGs.

Text is stored as text, so that a diagram has a few kilobytes. The background is white, as in plots.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from svmbench.base import escape
from svmbench.report.plots.axes import COLOURS, series_styles

#: Width of a diagram, width of a side and height of a line, in pixels.
_WIDTH, _SIDE, _LINE = 760, 220, 20
#: Width of a chart that fits a telephone's screen, and the height of its rows with their names.
_NARROW, _NAMED_ROW = 440, 34
#: Largest number of characters of a text beside the axes.
_MAX_LABEL_CHARS = 30
#: Dash patterns of the curves of a profile.
_DASHES = ("", "7 3", "7 3 2 3", "2 3", "10 3", "5 2 1 2 1 2", "1 4", "12 2 2 2")
#: Largest ratio on the axis of a profile.
_MAX_PROFILE_RATIO = 1e4

ProfileStep = tuple[float, float]


def groups(ranks: Sequence[float], apart: float) -> list[tuple[float, float]]:
    """Return the ends of each largest group of ranks within the critical difference.

    Parameters
    ----------
    ranks : sequence of float
    apart : float
        The critical difference.
    """
    ordered = sorted(ranks)
    intervals: list[tuple[float, float]] = []
    for start, low in enumerate(ordered):
        high = max(rank for rank in ordered[start:] if rank - low <= apart)
        if high > low and (not intervals or high > intervals[-1][1]):
            intervals.append((low, high))
    return intervals


def critical_difference(ranks: Mapping[str, float], apart: float) -> str:
    """Return Demšar's diagram: average ranks on an axis, and bars over groups without difference.

    Parameters
    ----------
    ranks : dict of str to float
        Average rank of each algorithm, 1 for the best; at least two.
    apart : float
        The critical difference, in ranks.
    """
    ordered = sorted(ranks.items(), key=lambda pair: pair[1])
    last = len(ordered)

    def place(rank: float) -> float:
        return _SIDE + (rank - 1.0) / (last - 1.0) * (_WIDTH - 2 * _SIDE)

    bars = groups([rank for _, rank in ordered], apart)
    axis, below = 62.0, 14.0 + 9.0 * len(bars)
    half = math.ceil(last / 2)
    height = axis + below + _LINE * half + 12
    parts = [_stroke([(place(1), axis), (place(last), axis)])]
    for tick in range(1, last + 1):
        parts += [_stroke([(place(tick), axis), (place(tick), axis - 6)])]
        parts += [_text(place(tick), axis - 10, str(tick), "middle")]
    end = place(1) + apart / (last - 1.0) * (_WIDTH - 2 * _SIDE)
    parts += [_stroke([(place(1), 22), (min(end, _WIDTH - 4), 22)], width=3)]
    parts += [_text(place(1), 14, f"critical difference {apart:.2f}", "start")]
    for row, (low, high) in enumerate(bars):
        y = axis + 9 + 9 * row
        parts += [_stroke([(place(low) - 4, y), (place(high) + 4, y)], COLOURS[1], width=4)]
    for number, (name, rank) in enumerate(ordered):
        is_left = number < half
        row = number if is_left else last - 1 - number
        x, down = place(rank), axis + below + _LINE * (row + 0.5)
        edge = _SIDE - 12 if is_left else _WIDTH - _SIDE + 12
        parts += [_stroke([(x, axis), (x, down), (edge, down)], width=1)]
        text = f"{name} {rank:.2f}" if is_left else f"{rank:.2f} {name}"
        shift = -5 if is_left else 5
        parts += [_text(edge + shift, down + 4, text, "end" if is_left else "start")]
    return _svg(height, parts)


def profile(steps: Mapping[str, Sequence[ProfileStep]]) -> str:
    """Return Dolan and Moré's performance profiles: shares of problems against factors.

    Parameters
    ----------
    steps : dict of str to list of (float, float)
        Result of `svmbench.report.numbers.comparisons.performance_profile`.
    """
    farthest = max((ratio for of_solver in steps.values() for ratio, _ in of_solver), default=1.0)
    decades = max(math.log10(min(farthest, _MAX_PROFILE_RATIO)) * 1.05, 0.1)
    left, right, top, bottom = 56, _NARROW - 16, 12, 262

    def place(ratio: float, share: float) -> tuple[float, float]:
        across = min(math.log10(ratio) / decades, 1.0)
        return left + across * (right - left), bottom - share * (bottom - top)

    parts = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = place(1.0, share)[1]
        parts += [_stroke([(left, y), (right, y)], "#DDDDDD", width=1)]
        parts += [_text(left - 6, y + 4, f"{100 * share:.0f} %", "end")]
    for ratio in _ticks(decades):
        x = place(ratio, 0.0)[0]
        parts += [_stroke([(x, top), (x, bottom)], "#DDDDDD", width=1)]
        parts += [_text(x, bottom + 17, f"{ratio:,g}", "middle")]
    parts += [_text((left + right) / 2, bottom + 38, "times the best", "middle")]
    styles = series_styles(list(steps))
    for number, (name, of_solver) in enumerate(steps.items()):
        style = styles[name]
        colour, dash = COLOURS[style % len(COLOURS)], _DASHES[style % len(_DASHES)]
        x, y = _legend_place(number, bottom + 60)
        parts += [_stroke(list(_stairs(place, of_solver)), colour, width=2, dash=dash)]
        parts += [_stroke([(x, y), (x + 26, y)], colour, width=2, dash=dash)]
        parts += [_text(x + 32, y + 4, name, "start")]
    return _svg(_legend_place(len(steps) + 1, bottom + 60)[1], parts, _NARROW)


def ratio_chart(rows: Sequence[tuple[str, float, float, float]], title: str) -> str:
    """Return a chart of ratios on a logarithmic axis: a point and its range below each name.

    Parameters
    ----------
    rows : sequence of (str, float, float, float)
        Name, value, lowest and highest value of each row, all above zero; at least one.
    title : str
        The quantity of the axis.
    """
    left, right, top = 16, _NARROW - 16, 8
    bottom = top + _NAMED_ROW * len(rows) + 4
    low = math.floor(math.log10(min(1.0, *(row[2] for row in rows))) * 2) / 2
    high = math.ceil(math.log10(max(1.0, *(row[3] for row in rows))) * 2) / 2
    high = max(high, low + 0.5)

    def place(ratio: float) -> float:
        return left + (math.log10(ratio) - low) / (high - low) * (right - left)

    parts = []
    for tick in _between(low, high):
        x = place(tick)
        is_one = tick == 1.0
        colour, width = ("#000000", 1.5) if is_one else ("#DDDDDD", 1.0)
        parts += [_stroke([(x, top), (x, bottom)], colour, width=width)]
        parts += [_text(x, bottom + 17, f"{tick:,g}", "middle")]
    parts += [_text((left + right) / 2, bottom + 36, title, "middle", longest=60)]
    for number, (name, value, least, most) in enumerate(rows):
        y = top + _NAMED_ROW * (number + 0.75)
        # The edge in the colour of the ground parts the name from the lines behind it.
        halo = '<g stroke="#FFFFFF" stroke-width="4" paint-order="stroke">'
        parts += [halo, _text(left, y - 9, name, "start", longest=72), "</g>"]
        parts += [_stroke([(place(least), y), (place(most), y)], COLOURS[2], width=2)]
        parts += [f'<circle cx="{place(value):.1f}" cy="{y:.1f}" r="4" fill="{COLOURS[2]}"/>']
    return _svg(bottom + 46, parts, _NARROW)


def error_chart(
    points: Sequence[tuple[str, float, float]],
    front: Sequence[tuple[float, float]],
    error: str,
    baseline: Sequence[tuple[float, float]] = (),
) -> str:
    """Return a chart of errors against seconds on a logarithmic axis, with the Pareto front.

    Parameters
    ----------
    points : sequence of (str, float, float)
        Name, seconds and error of each point; at least one. Points of a solver have its colour of
        all plots; beyond eight names they are hollow.
    front : sequence of (float, float)
        The points that no other point beats in both.
    error : str
        The quantity of the errors, with its unit.
    baseline : sequence of (float, float)
        The points of LIBSVM on subsamples, joined by a solid line; none without.
    """
    from matplotlib.ticker import MaxNLocator

    left, right, top, bottom = 64, _NARROW - 16, 30, 320
    times = [math.log10(seconds) for _, seconds, _ in points]
    low, high = math.floor(min(times)), math.ceil(max(times))
    high = max(high, low + 1)
    errors = [value for _, _, value in points]
    least, most = min(errors), max(errors)
    room = max(0.06 * (most - least), 0.01)
    least, most = least - room, most + room

    def place(seconds: float, value: float) -> ProfileStep:
        across = (math.log10(seconds) - low) / (high - low)
        return left + across * (right - left), bottom - (value - least) / (most - least) * (
            bottom - top
        )

    parts = []
    for value in MaxNLocator(5).tick_values(least, most):
        if least <= value <= most:
            y = place(10.0**low, value)[1]
            parts += [_stroke([(left, y), (right, y)], "#DDDDDD", width=1)]
            parts += [_text(left - 6, y + 4, f"{value:.6g}", "end")]
    parts += _time_axis(low, high, lambda seconds: place(seconds, least)[0], top, bottom)
    parts += [_text(8, 16, error, "start", longest=100)]
    lines = "dashed: Pareto front" + ("; solid: LIBSVM on subsamples" if baseline else "")
    parts += [_text(left, bottom + 58, lines, "start", longest=100)]
    parts += [_stroke([place(*point) for point in front], "#000000", width=1, dash="4 3")]
    if baseline:
        parts += [_stroke([place(*point) for point in baseline], "#000000", width=1)]
    names = list(dict.fromkeys(name for name, _, _ in points))
    styles = series_styles(names)
    parts += [_dot(*place(seconds, value), styles[name]) for name, seconds, value in points]
    for row, name in enumerate(names):
        x, y = _legend_place(row, bottom + 80)
        parts += [_dot(x + 6, y, styles[name]), _text(x + 18, y + 4, name, "start")]
    return _svg(_legend_place(len(names) + 1, bottom + 80)[1], parts, _NARROW)


def convergence_chart(curves: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """Return a chart of certified gaps against CPU time, both on logarithmic axes.

    Parameters
    ----------
    curves : dict of str to list of (float, float)
        Seconds and gap of each point of a solver, ascending in time; at least one point.
    """
    left, right, top, bottom = 64, _NARROW - 16, 30, 262
    points = [point for curve in curves.values() for point in curve]
    low = math.floor(math.log10(min(seconds for seconds, _ in points)))
    high = max(math.ceil(math.log10(max(seconds for seconds, _ in points))), low + 1)
    gaps = sorted({gap for _, gap in points}, reverse=True)
    most, least = math.log10(gaps[0]) + 0.3, math.log10(gaps[-1]) - 0.3

    def place(seconds: float, gap: float) -> ProfileStep:
        across = (math.log10(seconds) - low) / (high - low)
        down = (most - math.log10(gap)) / (most - least)
        return left + across * (right - left), top + down * (bottom - top)

    parts = _time_axis(low, high, lambda seconds: place(seconds, gaps[0])[0], top, bottom)
    for gap in gaps:
        y = place(10.0**low, gap)[1]
        parts += [_stroke([(left, y), (right, y)], "#DDDDDD", width=1)]
        parts += [_text(left - 6, y + 4, f"{gap:.0e}", "end")]
    parts += [_text(8, 16, "certified gap (relative)", "start")]
    styles = series_styles(list(curves))
    for row, (name, curve) in enumerate(curves.items()):
        colour, (x, y) = COLOURS[styles[name] % len(COLOURS)], _legend_place(row, bottom + 60)
        parts += [_stroke([place(*point) for point in curve], colour, width=2)]
        parts += [_dot(*place(*point), styles[name]) for point in curve]
        parts += [_dot(x + 6, y, styles[name]), _text(x + 18, y + 4, name, "start")]
    return _svg(_legend_place(len(curves) + 1, bottom + 60)[1], parts, _NARROW)


def _legend_place(number: int, top: float) -> tuple[float, float]:
    """Return the left end and the height of a name in a legend of two columns below the axis."""
    return 16.0 + number % 2 * (_NARROW - 16) / 2, top + _LINE * (number // 2)


def _time_axis(
    low: int, high: int, place: Callable[[float], float], top: float, bottom: float
) -> list[str]:
    """Return a logarithmic axis of CPU times between two decades."""
    parts = []
    for power in range(low, high + 1):
        x = place(10.0**power)
        parts += [_stroke([(x, top), (x, bottom)], "#DDDDDD", width=1)]
        parts += [_text(x, bottom + 17, f"{10.0**power:,g}", "middle")]
    middle = (place(10.0**low) + place(10.0**high)) / 2
    return [*parts, _text(middle, bottom + 38, "CPU time of training (s)", "middle")]


def _between(low: float, high: float) -> list[float]:
    """Return the powers of ten between two decades, with 3 times each where there are few."""
    heads = (1.0, 3.0) if high - low < 2.5 else (1.0,)
    powers = range(math.floor(low), math.ceil(high) + 1)
    every = [head * 10.0**power for power in powers for head in heads]
    return [tick for tick in every if low - 1e-9 <= math.log10(tick) <= high + 1e-9]


def _stairs(
    place: Callable[[float, float], ProfileStep], steps: Sequence[ProfileStep]
) -> Iterator[ProfileStep]:
    """Yield the corners of a profile, from 0 at the left to the right edge."""
    share = 0.0
    yield place(1.0, 0.0)
    for ratio, reached in steps:
        yield place(ratio, share)
        yield place(ratio, reached)
        share = reached
    yield place(math.inf, share)


def _ticks(decades: float) -> list[float]:
    """Return round ratios over some decades, few enough not to overlap."""
    heads = (1, 1.2, 1.5, 2, 3, 5) if decades < 0.8 else (1, 2, 5) if decades < 2 else (1,)
    every = [head * 10.0**power for power in range(math.ceil(decades) + 1) for head in heads]
    return [ratio for ratio in every if math.log10(ratio) <= decades]


def _stroke(
    points: Sequence[ProfileStep], colour: str = "#000000", *, width: float = 1.5, dash: str = ""
) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    pen = f'fill="none" stroke="{colour}" stroke-width="{width:g}"{dashes}'
    return f'<polyline points="{path}" {pen}/>'


def _dot(x: float, y: float, style: int) -> str:
    colour = COLOURS[style % len(COLOURS)]
    look = f'fill="{colour if style < len(COLOURS) else "white"}" stroke="{colour}"'
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" {look}/>'


def _text(x: float, y: float, text: str, anchor: str, *, longest: int = _MAX_LABEL_CHARS) -> str:
    shown = escape.html(escape.line(text, longest))
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{shown}</text>'


def _svg(height: float, parts: Sequence[str], width: int = _WIDTH) -> str:
    size = f'width="{width}" height="{height:.0f}" viewBox="0 0 {width} {height:.0f}"'
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="13">'
    )
    return "\n".join([head, *parts, "</svg>\n"])
