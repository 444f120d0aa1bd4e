"""Decision values of a model on a grid of the plane, for plots of kind ``decision``."""

from __future__ import annotations

from typing import Any

import numpy as np

from svmbench.experiment.protocols import folds

#: Nodes of the grid over the plane along each axis, and how far it goes beyond the rows.
RESOLUTION, BORDER = 160, 0.05

#: Marks of the rows that screening settled: multiplier at 0, and at its upper bound.
SETTLED = ("screened, multiplier 0", "screened, multiplier at its bound")


def plane_arrays(
    estimator: Any, X: Any, y: np.ndarray, fitted: np.ndarray
) -> dict[str, np.ndarray]:
    """Return a model's values on the plane, the rows, and the marks of the rows.

    If the model comes from a path with screening (``screening_``), the marks show the rows that
    screening settled; otherwise they show the rows that the model consists of.

    Parameters
    ----------
    estimator : object
    X, y : array
        All rows.
    fitted : ndarray of int
        The rows that the model was trained on, in the order of its samples.

    Raises
    ------
    ValueError
        If the data do not have two features.
    """
    if X.shape[1] != 2:
        msg = f"plane: the data must have 2 features, but have {X.shape[1]}"
        raise ValueError(msg)
    points = folds.dense(X)
    low, high = points.min(axis=0), points.max(axis=0)
    edge = BORDER * (high - low)
    grid_x, grid_y = np.linspace(low - edge, high + edge, RESOLUTION).T
    nodes = np.column_stack([each.ravel() for each in np.meshgrid(grid_x, grid_y)])
    arrays = {"grid_x": grid_x, "grid_y": grid_y, "X": points, "y": y}
    arrays |= _marks(estimator, len(y), fitted)
    # Class numbers where there are several classes: each pair has decision values of its own.
    two = len(np.unique(y)) == 2
    if two and (levels := _levels(estimator)):
        arrays["levels"] = np.array(levels)
    values = np.asarray(estimator.decision_function(nodes) if two else estimator.predict(nodes))
    return {**arrays, "decision" if two else "regions": values.reshape(RESOLUTION, RESOLUTION)}


def _marks(estimator: Any, n: int, fitted: np.ndarray) -> dict[str, np.ndarray]:
    """Return the marked rows of n, with the kind of mark if there are several."""
    if getattr(estimator, "screening_", "none") == "none":
        marked = np.zeros(n, dtype=bool)
        marked[fitted[np.asarray(getattr(estimator, "support_", []), dtype=np.intp)]] = True
        return {"marked": marked}
    marks = np.zeros(n, dtype=np.int64)
    settled = estimator.screened_
    marks[fitted] = np.select([settled < 0, settled > 0], [1, 2], 0)
    return {"marks": marks, "mark_names": np.array(SETTLED)}


def _levels(estimator: Any) -> tuple[float, ...]:
    """Return the decision values at which a plot draws lines; empty for -1, 0 and 1."""
    rho = float(getattr(getattr(estimator, "expansion_", None), "rho", 0.0))
    if hasattr(estimator, "offset_"):
        return (0.0,)
    return (-rho, 0.0, rho) if rho > 0.0 else ()
