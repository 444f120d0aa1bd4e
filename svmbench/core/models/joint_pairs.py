"""The problems of all pairs of classes as one: the layout of their variables, and their solution.

Samples are sorted by class, so that a pair has two runs of samples. The variables are sorted by
pair, with the first class of a pair before the second.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from svmbench.core.contract.problems import Values
from svmbench.core.models.ovo_model import SharedPoints

if TYPE_CHECKING:
    from svmbench.core.models.pairs import Pairs


@dataclass(frozen=True)
class Layout:
    """The positions of the samples of each class and of the variables of each pair."""

    order: np.ndarray  # int (n_samples,): samples sorted by class; a place is a position in it
    starts: np.ndarray  # int (n_classes + 1,): first place of each class
    first: np.ndarray  # int (n_pairs,): negative class of each pair
    second: np.ndarray  # int (n_pairs,): positive class of each pair
    offsets: np.ndarray  # int (n_pairs + 1,): first variable of each pair
    places: np.ndarray  # int (n_variables,): place of each variable's sample
    signs: np.ndarray  # (n_variables,): label of the sample in the pair, -1.0 or 1.0

    @staticmethod
    def of(
        codes: np.ndarray,  # int (n_samples,): classes, numbered from 0
        first: ArrayLike,  # int (n_pairs,): negative classes
        second: ArrayLike,  # int (n_pairs,): positive classes, of the higher numbers
    ) -> Layout:
        """Return the layout of pairs of classes."""
        a, b = np.array(first, dtype=np.int64), np.array(second, dtype=np.int64)
        sizes = np.bincount(codes)
        starts = np.append(0, np.cumsum(sizes))
        # Two runs of places a pair, one after another.
        classes = np.column_stack([a, b]).ravel()
        lengths = sizes[classes]
        runs = np.append(0, np.cumsum(lengths))
        places = np.arange(runs[-1]) + np.repeat(starts[classes] - runs[:-1], lengths)
        signs = np.repeat(np.tile([-1.0, 1.0], len(a)), lengths)
        order = np.argsort(codes, kind="stable")
        return Layout(order, starts, a, b, runs[::2].copy(), places, signs)

    def gather(self, coefficients: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the support vectors of all pairs, from coefficients (n_variables,).

        These are their places (n_used,), ascending; the first of each class (n_classes + 1,); and
        the coefficients (n_classes - 1, n_used) in the order of `SharedPoints`.
        """
        support = np.flatnonzero(coefficients)
        places = self.places[support]
        is_used = np.zeros(len(self.order), dtype=bool)
        is_used[places] = True
        used = np.flatnonzero(is_used)
        matrix = np.zeros((len(self.starts) - 2, len(used)))
        matrix[self.others[support], (np.cumsum(is_used) - 1)[places]] = coefficients[support]
        return used, np.searchsorted(used, self.starts), matrix

    @property
    def codes(self) -> np.ndarray:
        """The class of each place, int of shape (n_samples,)."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    @property
    def others(self) -> np.ndarray:
        """The other class of each variable's pair, numbered without the sample's own class."""
        classes = np.column_stack([self.first, self.second]).ravel()
        others = np.column_stack([self.second - 1, self.first]).ravel()
        return np.repeat(others, np.diff(self.starts)[classes])

    def variables(self, p: int) -> slice:
        """Return the positions of the variables of pair `p`."""
        return slice(int(self.offsets[p]), int(self.offsets[p + 1]))


@dataclass
class JointData:
    """The samples of all pairs, for a solver that trains all pairs together."""

    layout: Layout
    points: Any  # dense or CSR (n_samples, n_features), sorted by class
    weights: np.ndarray | None = None  # (n_samples,): in the same order


@dataclass
class JointSolution:
    """The solution of all pairs."""

    layout: Layout
    coefficients: np.ndarray  # (n_variables,), signed: alpha_i y_i
    b: np.ndarray  # (n_pairs,): offsets
    decisions: np.ndarray  # (n_variables,): decision values that the search has kept, for `fit`
    n_iter: np.ndarray  # int (n_pairs,)
    stop_reasons: list[str]  # one a pair
    counters: dict[str, int]  # of all pairs together

    def shared_points(self, function: Any, points: Any, pairs: Pairs) -> SharedPoints:
        """Return the models over the support vectors of all pairs; `points` as in `JointData`."""
        layout = self.layout
        used, starts, coefficients = layout.gather(self.coefficients)
        taken, rows = function.take(points, used), layout.order[used]
        return SharedPoints(function, taken, rows, starts, coefficients, self.b, pairs)

    def with_decisions(self, decisions: np.ndarray) -> JointSolution:
        """Return the solution with the decision values of `SharedPoints.decide_own`."""
        return replace(self, decisions=decisions[self.layout.places, self.layout.others])

    def values(self, weights: np.ndarray | None, p: int | None = None) -> Values:
        """Return the values of the problem of pair `p`, by default of the sum of all problems.

        `weights` (n_samples,) are sorted by class. The sum of the problems is one problem on the
        samples of all pairs.
        """
        layout, beta = self.layout, self.coefficients
        own = slice(None) if p is None else layout.variables(p)
        b = np.repeat(self.b, np.diff(layout.offsets)) if p is None else self.b[p]
        f, y = self.decisions[own], layout.signs[own]
        square = float(beta[own] @ (f - b))
        weighted = None if weights is None else weights[layout.places[own]]
        return Values(f=f, square=square, y=y, alpha=beta[own] * y, weights=weighted)
