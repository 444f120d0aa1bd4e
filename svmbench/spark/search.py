"""The result of a search over values of C and folds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from svmbench.core.contract.base import PathPoint


@dataclass(frozen=True)
class SearchResult:
    """The models of every fold and C, and of every C on all rows.

    Attributes
    ----------
    values : list of float
        Values of C.
    models : list of list of ALSVMSpark
        ``models[fold][c]`` is trained on the rows outside a fold.
    all_rows : list of ALSVMSpark
        Models trained on all rows, one for each C.
    held_out_loss : ndarray of shape (n_folds, n_values)
        Mean squared loss ``(1 - y f(x))^2`` on the rows of the fold, from the same sums.
    counters : dict
        ``passes`` and ``visits`` of the whole search.
    """

    values: list[float]
    models: list[list[Any]]
    all_rows: list[Any]
    held_out_loss: np.ndarray
    counters: dict[str, int]

    @classmethod
    def of(cls, points: Sequence[PathPoint], values: list[float], n_folds: int) -> SearchResult:
        """Build the result from the points of each fold, followed by those of all rows."""
        m = len(values)
        rows = [[p.solution for p in points[i * m : (i + 1) * m]] for i in range(n_folds + 1)]
        losses = [[model.held_out_loss_ for model in row] for row in rows[:-1]]
        counters = {
            name: sum(point.statistics[name] for point in points) for name in ("passes", "visits")
        }
        return cls(values, rows[:-1], rows[-1], np.array(losses), counters)

    @property
    def best(self) -> Any:
        """The model of all rows at the C with the smallest mean held-out loss."""
        order = np.lexsort((self.values, self.held_out_loss.mean(axis=0)))
        return self.all_rows[order[0]]
