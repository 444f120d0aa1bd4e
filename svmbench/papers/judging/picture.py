"""Draw the parts of a claim as an SVG: intervals beside the claimed region and printed values.

Each part has a row with its name, and below it the interval of every criterion with a point at the
estimate. The claimed region is shaded. Parts whose claims have the same form (a band, at
least, at most, a sign) share an axis. The picture adapts to a dark page, and its text stays text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from svmbench.base import escape
from svmbench.papers.judging.measures import Criterion
from svmbench.papers.judging.verdict import Part

#: Largest number of parts that a page shows before it folds the others.
MAX_SHOWN_PARTS = 20
#: Width and margins of a picture in pixels; a telephone shows this width without scaling.
_WIDTH, _MARGIN = 440, 14
#: Height of a row in pixels, and the distances from its top to its text and to its interval.
_ROW, _TO_TEXT, _TO_LINE = 36, 14, 25
#: Height of an axis and of a line of the legend in pixels.
_AXIS, _LEGEND = 44, 24
#: Characters of a part's name, and of a sentence in place of an interval.
_MAX_LABEL_CHARS, _MAX_SENTENCE_CHARS = 58, 66
#: An axis is logarithmic if the ratio of its largest to its smallest number is above this; the axis
#: of a claim about a sign is logarithmic on both sides of 0.
_MAX_LINEAR_RATIO = 25.0
#: A limit nearer to 0 than this excludes 0: the number must be above it, or below it.
_TINY = 1e-300
#: Share of an axis beyond its outermost numbers.
_ROOM = 0.06
#: An outcome's class in the picture, and the sign before its name.
_SIGNS = {True: ("holds", "✓"), False: ("fails", "✗"), None: ("undecided", "○")}
_STYLE = """
.ground{fill:#fff}.text{fill:#1b1f24}.quiet{fill:#57606a}.rule{stroke:#d0d7de}.band{fill:#dbe7f5}
.holds{fill:#116329;stroke:#116329}.fails{fill:#a40e26;stroke:#a40e26}
.undecided{fill:#57606a;stroke:#57606a}.hollow{fill:#fff}.cross{stroke:#1b1f24}
text{stroke:none}
@media (prefers-color-scheme:dark){
.ground{fill:#14181d}.text{fill:#e6e9ed}.quiet{fill:#a3adb8}.rule{stroke:#3a424c}.band{fill:#22354d}
.holds{fill:#63cf7e;stroke:#63cf7e}.fails{fill:#ff8a93;stroke:#ff8a93}
.undecided{fill:#a3adb8;stroke:#a3adb8}.hollow{fill:#14181d}.cross{stroke:#e6e9ed}}
"""
_PLAIN_NUMBER = re.compile(r"[-−+]?\d[\d,]*(?:\.\d+)?(?= ?×?$)")


@dataclass(frozen=True)
class _Row:
    """A part, its criteria that have a number, and the paper's number."""

    part: Part
    criteria: tuple[Criterion, ...]
    printed: float | None

    @property
    def numbers(self) -> list[float]:
        """All finite numbers of the row, without the limits."""
        ends = [end for criterion in self.criteria for end in _ends(criterion)]
        return ends if self.printed is None else [*ends, self.printed]

    @property
    def limits(self) -> list[float]:
        """The finite limits of the row; the number next to 0 counts as 0."""
        limits = [
            x
            for criterion in self.criteria
            for x in (criterion.at_least, criterion.at_most)
            if math.isfinite(x)
        ]
        return [0.0 if abs(x) < _TINY else x for x in limits]


@dataclass(frozen=True)
class _Axis:
    """Converts the numbers of a panel to pixels."""

    low: float
    high: float
    logarithmic: bool = False
    least: float = 0.0  # above 0: logarithmic on both sides of 0, from about this number on

    def scaled(self, value: float) -> float:
        """Return a number on the axis's scale."""
        if self.logarithmic:
            return math.log10(value) if value > 0.0 else -math.inf
        if self.least and math.isfinite(value):
            return math.copysign(math.log10(1.0 + abs(value) / self.least), value)
        return value

    def place(self, value: float) -> float:
        """Return the x of a number; numbers beyond the axis are at its end."""
        value = self.scaled(value)
        share = (value - self.low) / (self.high - self.low)
        return _MARGIN + min(max(share, 0.0), 1.0) * (_WIDTH - 2 * _MARGIN)


def draw_parts(parts: Sequence[Part], *, most: int | None = MAX_SHOWN_PARTS) -> str:
    """Return the picture of a claim's parts; parts without a number that say the same share a row.

    Parameters
    ----------
    parts : sequence of Part
    most : int, optional
        How many rows to draw at most, failed parts first, parts without a number last; None draws
        all.
    """
    rows = [_row(part) for part in parts]
    measured, others = [row for row in rows if row.numbers], _alike(rows)
    n_omitted = 0
    if most is not None and len(measured) + len(others) > most:
        order = (False, True, None)
        measured.sort(key=lambda row: order.index(row.part.holds))
        cut = max(most - len(measured), 0)
        n_omitted = len(measured[most:]) + sum(map(len, others[cut:]))
        measured, others = measured[:most], others[:cut]
    drawn: list[str] = []
    y = 6.0
    for panel in _panels(measured):
        y = _draw_panel(panel, y, drawn)
    for group in others:
        ending = "data not available" if group[0].unavailable else ""
        drawn += _label(group, y, ending)
        if not ending:
            drawn.append(_text(_MARGIN + 16, y + _TO_LINE + 4, _sentence(group[0]), "quiet"))
        y += _ROW - (_TO_TEXT if ending else 0)
    if n_omitted:
        word = "1 more part" if n_omitted == 1 else f"{n_omitted} more parts"
        drawn.append(_text(_MARGIN, y + _TO_TEXT, f"and {word}", "quiet"))
        y += _LEGEND
    if measured:
        drawn += _legend(y, printed=any(row.printed is not None for row in measured))
        y += _LEGEND
    size = f'width="{_WIDTH}" height="{y:.0f}" viewBox="0 0 {_WIDTH} {y:.0f}"'
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">'
    )
    ground = f'<rect class="ground" width="{_WIDTH}" height="{y:.0f}"/>'
    return "\n".join([head, f"<style>{_STYLE}</style>", ground, *drawn, "</svg>\n"])


def alternative_text(parts: Sequence[Part]) -> str:
    """Return the alternative text of a picture: how many parts hold, fail or are undecided."""
    answers = [part.holds for part in parts]
    counts = (("holding", True), ("failing", False), ("undecided", None))
    phrases = [f"{n} {word}" for word, answer in counts if (n := answers.count(answer))]
    word = "1 part" if len(parts) == 1 else f"{len(parts)} parts"
    return f"Intervals of {word} of the claim: {', '.join(phrases)}"


def _row(part: Part) -> _Row:
    criteria = part.criteria
    known = tuple(
        criterion for criterion in criteria if isinstance(criterion, Criterion) and _ends(criterion)
    )
    printed = part.printed_value
    plain = _PLAIN_NUMBER.match(part.printed)
    if printed is None and plain:
        printed = float(plain[0].replace(",", "").replace("−", "-"))
    return _Row(part, known, printed if known else None)


def _alike(rows: Sequence[_Row]) -> list[list[Part]]:
    """Return the parts without a number, those with one outcome and one sentence together."""
    alike: dict[tuple[bool | None, bool, str], list[Part]] = {}
    for row in rows:
        if not row.numbers:
            part = row.part
            sentence = "" if part.unavailable else _sentence(part)
            alike.setdefault((part.holds, bool(part.unavailable), sentence), []).append(part)
    return list(alike.values())


def _sentence(part: Part) -> str:
    """Return the sentence that a part without an interval shows in its place."""
    return part.measured or "not measured"


def _ends(criterion: Criterion) -> list[float]:
    """Return the finite numbers of an interval."""
    interval = criterion.interval
    known = (interval.low, interval.value, interval.high)
    return [value for value in known if value is not None and math.isfinite(value)]


def _panels(rows: Sequence[_Row]) -> list[list[_Row]]:
    """Group rows whose claims are of the same form: bands, at least, at most, above or below 0."""
    panels: dict[tuple[bool, bool, bool], list[_Row]] = {}
    for row in rows:
        criterion = row.criteria[0]
        key = (math.isfinite(criterion.at_least), math.isfinite(criterion.at_most), _is_sign(row))
        panels.setdefault(key, []).append(row)
    return list(panels.values())


def _is_sign(row: _Row) -> bool:
    """Return True if the claim only says on which side of 0 a number lies."""
    criterion = row.criteria[0]
    both = math.isfinite(criterion.at_least) and math.isfinite(criterion.at_most)
    return not both and not any(row.limits)


#: Most powers of ten that an axis shows; more would run into each other.
_MAX_POWERS = 6


def _axis(rows: Sequence[_Row]) -> _Axis:
    numbers = [x for row in rows for x in (*row.numbers, *row.limits)]
    reach = [max(map(abs, row.numbers)) for row in rows]
    known = [number for number in reach if number > 0.0]
    spread = max(known) / min(known) if known else 1.0
    low, high = min(numbers), max(numbers)
    if _is_sign(rows[0]) and spread > _MAX_LINEAR_RATIO:
        two_sided = _Axis(0.0, 0.0, least=min(known))
        low, high = two_sided.scaled(min(low, 0.0)), two_sided.scaled(max(high, 0.0))
        room = _ROOM * (high - low)
        return _Axis(low - room, high + room, least=min(known))
    if min(numbers) > 0.0 and high / low > _MAX_LINEAR_RATIO:
        low, high = math.log10(low), math.log10(high)
        room = _ROOM * (high - low)
        return _Axis(low - room, high + room, logarithmic=True)
    room = _ROOM * (high - low) or 0.1 * abs(high) or 1.0
    return _Axis(low - room, high + room)


def _draw_panel(rows: Sequence[_Row], y: float, drawn: list[str]) -> float:
    """Draw rows above their axis; return where the next panel begins."""
    axis = _axis(rows)
    bottom = y + _ROW * len(rows)
    for number, row in enumerate(rows):
        top = y + _ROW * number
        criterion = row.criteria[0]
        x, end = axis.place(criterion.at_least), axis.place(criterion.at_most)
        drawn.append(
            f'<rect class="band" x="{x:.1f}" y="{top + 18:.1f}" width="{max(end - x, 1.5):.1f}"'
            f' height="{_ROW - 21}"/>'
        )
    for tick, label in _ticks(axis):
        x = axis.place(tick)
        drawn.append(_line(x, y + 18, x, bottom + 3, "rule"))
        drawn.append(_text(x, bottom + 15, label, "quiet", anchor="middle"))
    for number, row in enumerate(rows):
        top = y + _ROW * number
        drawn += _label([row.part], top)
        if axis.least and row.part.printed:
            printed = f"printed: {row.part.printed}"
            room = _MAX_SENTENCE_CHARS - len(_name(row.part))
            end = _WIDTH - _MARGIN
            drawn.append(_text(end, top + _TO_TEXT, printed, "quiet", room, anchor="end"))
        drawn += _intervals(row, axis, top + _TO_LINE)
    drawn.append(_text(_MARGIN, bottom + 31, _claimed(rows, axis), "quiet"))
    return bottom + _AXIS


def _label(parts: Sequence[Part], y: float, ending: str = "") -> list[str]:
    """Return a row's name: that of its part, or of as many parts as there is room for."""
    kind, sign = _SIGNS[parts[0].holds]
    names = [_name(part) for part in parts]
    ending = f": {ending}" if ending else ""
    n = len(names)
    while n > 1 and len(_counted_names(names, n) + ending) > _MAX_LABEL_CHARS:
        n -= 1
    label = escape.html(escape.line(_counted_names(names, n) + ending, _MAX_LABEL_CHARS))
    return [
        f'<text x="{_MARGIN}" y="{y + _TO_TEXT:.1f}" class="text">'
        f'<tspan class="{kind}" stroke="none">{sign}</tspan> {label}</text>'
    ]


def _name(part: Part) -> str:
    """Return a part's name with the profile of its run, unless the name would be cut."""
    ending = " (stand-in)" if part.stand_in else ""
    name = part.what.replace(", profile paper", "") + ending
    return name if len(name) <= _MAX_LABEL_CHARS else part.subject + ending


def _counted_names(names: Sequence[str], n: int) -> str:
    """Return the first n names and the number of the others."""
    more = f" and {len(names) - n} more" if n < len(names) else ""
    return ", ".join(names[:n]) + more


def _intervals(row: _Row, axis: _Axis, y: float) -> Iterator[str]:
    """Yield the intervals of a row, the deciding one last and strongest."""
    kind = _SIGNS[row.part.holds][0]
    order = (True, None, False)
    ordered = sorted(row.criteria, key=lambda criterion: order.index(criterion.holds))
    for criterion in ordered:
        is_last = criterion is ordered[-1]
        interval = criterion.interval
        low, high = interval.low, interval.high
        if low is not None and high is not None and math.isfinite(low) and math.isfinite(high):
            x, end = axis.place(low), axis.place(high)
            pen = 'stroke-width="3"' if is_last else 'stroke-width="1.5" opacity="0.5"'
            yield _line(x, y, end, y, kind, pen)
        if math.isfinite(interval.value):
            x, size = axis.place(interval.value), 4.5 if is_last else 2.5
            yield _mark(x, y, kind, size)
    if row.printed is not None:
        x = axis.place(row.printed)
        yield _line(x - 4.5, y - 4.5, x + 4.5, y + 4.5, "cross", 'stroke-width="2"')
        yield _line(x - 4.5, y + 4.5, x + 4.5, y - 4.5, "cross", 'stroke-width="2"')


def _mark(x: float, y: float, kind: str, size: float) -> str:
    """Return a point whose shape says the outcome, too: a disc, a diamond or a ring."""
    if kind == "fails":
        corners = f"M{x - size:.1f},{y:.1f}l{size},-{size}l{size},{size}l-{size},{size}z"
        return f'<path class="fails" d="{corners}"/>'
    if kind == "undecided":
        ring = f'<circle class="undecided" cx="{x:.1f}" cy="{y:.1f}" r="{size}"/>'
        return ring + f'<circle class="hollow" cx="{x:.1f}" cy="{y:.1f}" r="{size - 1.5}"/>'
    return f'<circle class="holds" cx="{x:.1f}" cy="{y:.1f}" r="{size}"/>'


def _claimed(rows: Sequence[_Row], axis: _Axis) -> str:
    """Return the sentence below an axis."""
    regions = {(row.criteria[0].at_least, row.criteria[0].at_most) for row in rows}
    if _is_sign(rows[0]):
        criterion = rows[0].criteria[0]
        side = "above" if math.isfinite(criterion.at_least) else "below"
        if 0.0 in (criterion.at_least, criterion.at_most):
            side = "at least" if math.isfinite(criterion.at_least) else "at most"
        return f"claimed: {side} 0" + ("; logarithmic on both sides" if axis.least else "")
    if len(regions) > 1:
        return "claimed: the band of each row" + ("; logarithmic" if axis.logarithmic else "")
    least, most = next(iter(regions))
    if math.isfinite(least) and math.isfinite(most):
        side = f"claimed: {_spelt(least)}" + (f" to {_spelt(most)}" if most > least else "")
    elif math.isfinite(most):
        side = f"claimed: at most {_spelt(most)}"
    else:
        side = f"claimed: at least {_spelt(least)}"
    return side + ("; logarithmic" if axis.logarithmic else "")


def _ticks(axis: _Axis) -> list[tuple[float, str]]:
    from matplotlib.ticker import MaxNLocator

    if axis.least:
        ends = math.floor(math.log10(axis.least)), math.ceil(axis.low), math.floor(axis.high)
        step = max(1, math.ceil((ends[2] - ends[1]) / _MAX_POWERS))
        powers = range(ends[0] + step, ends[0] + max(-ends[1], ends[2]) + 2, step)
        numbers = [0.0, *(sign * 10.0**power for power in powers for sign in (1, -1))]
        known = [tick for tick in numbers if axis.low <= axis.scaled(tick) <= axis.high]
        return [(tick, _spelt(tick)) for tick in known]
    if axis.logarithmic:
        heads = (1.0,) if axis.high - axis.low > 1.6 else (1.0, 3.0)
        step = math.ceil((axis.high - axis.low) / _MAX_POWERS)
        powers = range(step * math.floor(axis.low / step), math.ceil(axis.high) + 1, step)
        numbers = [head * 10.0**power for power in powers for head in heads]
        known = [tick for tick in numbers if axis.low <= math.log10(tick) <= axis.high]
        return [(tick, _spelt(tick)) for tick in known]
    ticks = MaxNLocator(5).tick_values(axis.low, axis.high)
    return [(float(tick), _spelt(float(tick))) for tick in ticks if axis.low <= tick <= axis.high]


def _spelt(value: float) -> str:
    return re.sub(r"e−0+", "e−", f"{value:,.6g}".replace("-", "−"))


def _legend(y: float, *, printed: bool) -> list[str]:
    x, base = float(_MARGIN), y + 10
    marks = [("holds", "holds"), ("fails", "fails"), ("undecided", "undecided")]
    drawn = []
    for kind, label in marks:
        drawn += [_mark(x + 5, base, kind, 4.5), _text(x + 14, base + 4, label, "quiet")]
        x += 26 + 7 * len(label)
    drawn.append(f'<rect class="band" x="{x:.1f}" y="{base - 6:.1f}" width="14" height="12"/>')
    drawn.append(_text(x + 19, base + 4, "claimed", "quiet"))
    x += 31 + 7 * len("claimed")
    if printed:
        for sign in (1, -1):
            ends = (x, base - 4.5 * sign, x + 9, base + 4.5 * sign)
            drawn.append(_line(*ends, "cross", 'stroke-width="2"'))
        drawn.append(_text(x + 14, base + 4, "printed", "quiet"))
    return drawn


def _line(x: float, y: float, end: float, down: float, kind: str, pen: str = "") -> str:
    ends = f'x1="{x:.1f}" y1="{y:.1f}" x2="{end:.1f}" y2="{down:.1f}"'
    return f'<line class="{kind}" {ends} {pen}/>'


def _text(
    x: float,
    y: float,
    text: str,
    kind: str,
    most: int = _MAX_SENTENCE_CHARS,
    *,
    anchor: str = "start",
) -> str:
    shown = escape.html(escape.line(text, most))
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{shown}</text>'
