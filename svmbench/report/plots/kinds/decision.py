"""Decision values of a model over two features: regions, margins, points, support vectors.

The arrays come from ``artifacts/<key>.npz`` of a cell:

- ``grid_x`` (m,), ``grid_y`` (n,): ascending values of the two features;
- ``decision`` (n, m): decision values, or ``regions`` (n, m): numbers of predicted classes;
- ``X`` (k, 2), ``y`` (k,): points and their classes;
- ``marked`` (k,), optional: True for marked points, for example support vectors;
- ``marks`` (k,) with ``mark_names`` (m,), optional: the mark of each point, as a number
  from 1 in ``mark_names``, or 0 for no mark;
- ``levels``, optional: values of contour lines; -1, 0 and 1 by default.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from svmbench.report.plots.axes import COLOURS, MARKERS
from svmbench.report.plots.kinds import Kind
from svmbench.report.plots.plot_data import (
    DecisionGrid,
    Panel,
    PlotData,
    PlotPoint,
    Series,
    by_panel,
)
from svmbench.report.reading.artifacts import read_arrays, unusable
from svmbench.report.reading.records import Run
from svmbench.schema.specs import PlotSpec

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.contour import ContourSet

_MARKED = "marked"

#: Largest number of points of a panel that an SVG stores as vectors. With more points, the panel is
#: an embedded picture with small marks.
MAX_VECTOR_POINTS = 300

#: Relative area of marks in a panel with many points.
_CROWDED_MARK_AREA = 0.25

#: Styles of marks, in their order.
_LOOKS: tuple[dict[str, Any], ...] = (
    {"marker": "o", "s": 70, "edgecolors": "#000000"},
    {"marker": "D", "s": 70, "edgecolors": "#B3006B"},
    {"marker": "s", "s": 90, "edgecolors": "#555555"},
)
_SHADES = ("#FFFFFF", "#DCDCDC", "#F0F0F0", "#C4C4C4")


def collect_grids(run: Run, spec: PlotSpec) -> PlotData:
    """Collect a panel for each cell that has kept a grid."""
    cells = [cell for cell in run.block_cells(spec.block) if spec.dataset in (None, cell.dataset)]
    several_folds = len({cell.fold for cell in cells}) > 1
    # The points of a path share one key and one grid, which belongs to the last value.
    one_each = {cell.key: cell for cell in cells}
    along = {
        name
        for cell in cells
        for name, value in cell.dimensions.items()
        if one_each[cell.key].dimensions.get(name) != value
    }
    panels, lacking = [], []
    for title, members in by_panel(list(one_each.values()), along).items():
        for cell in members:
            path = run.path / "artifacts" / f"{cell.key}.npz"
            if cell.status == "ok" and path.is_file():
                name = (
                    f"{title}, fold {(cell.fold or 0) + 1}".removeprefix(", ")
                    if several_folds
                    else title
                )
                panels.append(panel_of(name, path))
            elif cell.status == "ok":
                lacking.append(f"{cell.dataset} ({cell.solver})")
    return PlotData(
        spec,
        tuple(panels),
        cells,
        "decision",
        x_label="first feature",
        y_label="grid of decision values",
        lacking=tuple(dict.fromkeys(lacking)),
    )


def panel_of(title: str, path: Path) -> Panel:
    """Read a panel from a file of arrays.

    Raises
    ------
    svmbench.base.errors.DamagedResultsError
        If the file is damaged, or its arrays are inconsistent.
    """
    arrays = read_arrays(path)
    of_classes = "regions" in arrays
    needed = ("grid_x", "grid_y", "X", "y", "regions" if of_classes else "decision")
    for name in needed:
        if name not in arrays:
            raise unusable(path, f"it has no array {name!r}")
    x, y, X, labels, values = (arrays[name] for name in needed)
    levels = arrays.get("levels", np.zeros(1))
    if problem := _inconsistency(x, y, X, labels, values, levels) or _mismarked(arrays, labels):
        raise unusable(path, problem)
    marked = _marked(arrays)
    lines = () if of_classes else tuple(float(v) for v in arrays.get("levels", (-1.0, 0.0, 1.0)))
    chosen = {f"class {name}": labels == name for name in np.unique(labels)}
    chosen |= {name: rows for name, rows in marked.items() if np.any(rows)}
    series = tuple(
        Series(
            name,
            tuple(
                PlotPoint(float(a), float(b), float(b), float(b), False, False) for a, b in X[rows]
            ),
        )
        for name, rows in chosen.items()
    )
    return Panel(title, series, grid=DecisionGrid(x, y, values, lines))


def _marked(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the marked points by their name in the legend."""
    is_marked = {_MARKED: arrays["marked"].astype(bool)} if "marked" in arrays else {}
    for number, name in enumerate(arrays.get("mark_names", ()), start=1):
        is_marked[f"{_MARKED}: {name}"] = arrays["marks"] == number
    return is_marked


def _mismarked(arrays: dict[str, np.ndarray], labels: np.ndarray) -> str:
    """Return the error of inconsistent marks, or an empty text."""
    names = arrays.get("mark_names", np.zeros(0, dtype=str))
    marks = [arrays[name] for name in ("marked", "marks") if name in arrays]
    if any(each.dtype.kind not in "biuf" or each.shape != labels.shape for each in marks):
        return "its points and their marks don't fit together"
    if names.ndim != 1 or (len(names) and "marks" not in arrays):
        return "its marks and their names don't fit together"
    return ""


def _inconsistency(
    x: np.ndarray,
    y: np.ndarray,
    X: np.ndarray,
    labels: np.ndarray,
    values: np.ndarray,
    levels: np.ndarray,
) -> str:
    """Return the error of inconsistent arrays, or an empty text."""
    if not all(axis.ndim == 1 and len(axis) > 1 for axis in (x, y)):
        return "its grid needs two values of each feature"
    if labels.ndim != 1 or X.shape != (len(labels), 2):
        return "its points and their classes don't fit together"
    if values.shape != (len(y), len(x)) or levels.ndim != 1:
        return "its grid and the values on it don't fit together"
    for array in (x, y, X, values, levels):
        # matplotlib's arithmetic overflows for larger values.
        if array.dtype.kind not in "biuf" or not (np.abs(array.astype(float)) < 1e150).all():
            return "it has values that are not finite"
    if not all((np.diff(axis.astype(float)) > 0).all() for axis in (x, y)):
        return "the values of its grid don't ascend"
    return ""


def _draw_sides(axes: Axes, grid: DecisionGrid) -> list[ContourSet]:
    """Shade positive decision values, and draw the contour lines within the grid."""
    low, high = float(np.min(grid.values)), float(np.max(grid.values))
    ends = [min(low, -1e-300), 0.0, max(high, 1e-300)]
    shade = axes.contourf(grid.x, grid.y, grid.values, levels=ends, colors=[*_SHADES[:2]])
    lines = [level for level in sorted(set(grid.levels)) if low < level < high]
    if not lines:
        return [shade]
    drawn = axes.contour(
        grid.x,
        grid.y,
        grid.values,
        levels=lines,
        linestyles=["-" if level == 0.0 else "--" for level in lines],
        colors="#404040",
        linewidths=1.0,
    )
    return [shade, drawn]


def _draw_classes(axes: Axes, grid: DecisionGrid) -> None:
    from matplotlib.colors import ListedColormap

    numbers = np.unique(grid.values, return_inverse=True)[1].reshape(grid.values.shape)
    shades = [_SHADES[i % len(_SHADES)] for i in range(int(numbers.max()) + 1)]
    axes.imshow(
        numbers,
        cmap=ListedColormap(shades),
        extent=(float(grid.x[0]), float(grid.x[-1]), float(grid.y[0]), float(grid.y[-1])),
        origin="lower",
        aspect="auto",
        interpolation="nearest",
    )


def draw_decision(
    axes: Axes, plot: PlotData, panel: Panel, styles: dict[str, int], hollow: bool
) -> None:
    """Draw one panel of decision regions."""
    grid = panel.grid
    assert grid is not None
    crowd = sum(len(series.points) for series in panel.series) > MAX_VECTOR_POINTS
    if grid.levels:
        for drawn in _draw_sides(axes, grid):
            drawn.set_rasterized(crowd)
    else:
        _draw_classes(axes, grid)
    marks = [name for name in styles if name.startswith(_MARKED)]
    for series in panel.series:
        xs, ys = [point.x for point in series.points], [point.y for point in series.points]
        style = styles[series.name] % len(COLOURS)
        if series.name.startswith(_MARKED):
            look = {**_LOOKS[marks.index(series.name) % len(_LOOKS)], "facecolors": "none"}
        else:
            look = {"marker": MARKERS[style], "s": 18, "color": COLOURS[(style + 1) % len(COLOURS)]}
        look["s"] *= _CROWDED_MARK_AREA if crowd else 1.0
        axes.scatter(xs, ys, label=series.name, linewidths=0.8, rasterized=crowd, **look)
    axes.grid(visible=False)
    axes.set_xlim(float(grid.x[0]), float(grid.x[-1]))
    axes.set_ylim(float(grid.y[0]), float(grid.y[-1]))
    axes.set_xlabel("first feature")
    axes.set_ylabel("second feature")


KIND = Kind(
    x="dataset",
    y="decision",
    draw=draw_decision,
    collect=collect_grids,
    axes=(),
    columns=3,
    note="lines: where the decision value is 0 (solid) and at the margins (dashed)",
)
