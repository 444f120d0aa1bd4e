"""Values of categories side by side, grouped."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from svmbench.report.axes import FILLS, HATCHES, categories, errors, log_ticks
from svmbench.report.curves import Curves, Panel
from svmbench.report.kinds import Kind
from svmbench.report.wording import is_timing

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw(axes: Axes, curves: Curves, panel: Panel, styles: dict[str, int], hollow: bool) -> None:
    """Draw one panel."""
    places = categories(panel)
    shown = [series for series in panel.series if series.points]
    bar = 0.8 / max(1, len(shown))
    values = [point.y for series in shown for point in series.points]
    # Times of fast and slow solvers differ by orders of magnitude.
    if values and min(values) > 0 and is_timing(curves.y) and max(values) > 30 * min(values):
        axes.set_yscale("log", nonpositive="clip")
        highest = max(max(point.y, point.high) for series in shown for point in series.points)
        axes.set_ylim(min(values) / 2, highest * 1.5)
        log_ticks(axes, "y")
    for index, series in enumerate(shown):
        style = styles[series.name] % len(FILLS)
        offset = (index - (len(shown) - 1) / 2) * bar
        axes.bar(
            [places.index(point.x) + offset for point in series.points],
            [point.y for point in series.points],
            width=bar * 0.94,
            yerr=errors(series),
            color=FILLS[style],
            hatch=HATCHES[style],
            edgecolor="black",
            linewidth=0.6,
            error_kw={"elinewidth": 0.9, "capsize": 2, "ecolor": "#D55E00"},
            label=series.name,
        )
        for point in series.points:
            if hollow and point.busy:
                axes.annotate(
                    "*", (places.index(point.x) + offset, point.high),
                    ha="center", xytext=(0, 1), textcoords="offset points",
                )  # fmt: skip
    if curves.y.endswith("_pct") and values:
        # Accuracies live near the top; the axis says where it starts.
        axes.set_ylim(max(0.0, math.floor((min(values) - 5) / 10) * 10), 101)
    axes.grid(visible=False, axis="x")
    texts = [str(category) for category in places]
    crowded = sum(map(len, texts)) + 2 * len(texts) > 62
    axes.set_xticks(
        range(len(places)), texts, rotation=30 if crowded else 0,
        ha="right" if crowded else "center", rotation_mode="anchor",
    )  # fmt: skip
    axes.set_ylabel(curves.y_label)


KIND = Kind(x="dataset", y="train_time_s", draw=draw, busy_mark="*")
