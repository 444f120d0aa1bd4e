"""The problems of all pairs of classes as one: where their variables are, and what was found.

Samples stand class by class, so that those of a pair are two runs of them; the variables of all
pairs stand one pair after another, its first class before the second.
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
    """Where the samples of each class and the variables of each pair are.

    Attributes
    ----------
    order : ndarray of int of shape (n_samples,)
        Positions of the samples in the training data, class by class. A place is a position here.
    starts : ndarray of int of shape (n_classes + 1,)
        The place where each class begins.
    first, second : ndarray of int of shape (n_pairs,)
        The negative and the positive class of each pair.
    offsets : ndarray of int of shape (n_pairs + 1,)
        Where the variables of each pair begin.
    places : ndarray of int of shape (n_variables,)
        The sample of each variable.
    signs : ndarray of shape (n_variables,)
        Its label in its pair: -1.0 or 1.0.
    """

    order: np.ndarray
    starts: np.ndarray
    first: np.ndarray
    second: np.ndarray
    offsets: np.ndarray
    places: np.ndarray
    signs: np.ndarray

    @staticmethod
    def of(codes: np.ndarray, first: ArrayLike, second: ArrayLike) -> Layout:
        """Return the layout of pairs of classes.

        Parameters
        ----------
        codes : ndarray of int of shape (n_samples,)
            Classes, numbered from 0.
        first, second : array-like of int
            The negative and the positive class of each pair; the first has the lower number.
        """
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
        """Return the places of the samples that any pair has a coefficient for, and a matrix.

        Parameters
        ----------
        coefficients : ndarray of shape (n_variables,)

        Returns
        -------
        used : ndarray of int of shape (n_used,)
            Ascending.
        starts : ndarray of int of shape (n_classes + 1,)
            Where those of each class begin.
        matrix : ndarray of shape (n_classes - 1, n_used)
            Their coefficients, as ``SharedPoints`` has them.
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
        """The other class of each variable's pair, among those that are not the sample's own."""
        classes = np.column_stack([self.first, self.second]).ravel()
        others = np.column_stack([self.second - 1, self.first]).ravel()
        return np.repeat(others, np.diff(self.starts)[classes])

    def variables(self, p: int) -> slice:
        """Return where the variables of pair `p` are."""
        return slice(int(self.offsets[p]), int(self.offsets[p + 1]))


@dataclass
class JointData:
    """The samples of all pairs, for a solver that trains these together.

    Attributes
    ----------
    layout : Layout
    points : ndarray or csr_array of shape (n_samples, n_features)
        Inputs, class by class.
    weights : ndarray of shape (n_samples,) or None
        Weights of the samples, in that order.
    """

    layout: Layout
    points: Any
    weights: np.ndarray | None = None


@dataclass
class JointSolution:
    """What was found for all pairs.

    Attributes
    ----------
    layout : Layout
    coefficients : ndarray of shape (n_variables,)
        Signed: alpha_i y_i.
    b : ndarray of shape (n_pairs,)
        Offsets.
    decisions : ndarray of shape (n_variables,)
        Decision values of the samples of each pair, as the search ends with them: what `fit` has
        its objective from.
    n_iter : ndarray of int of shape (n_pairs,)
    stop_reasons : list of str
        One for each pair.
    counters : dict of str to int
        Work done, for all pairs.
    """

    layout: Layout
    coefficients: np.ndarray
    b: np.ndarray
    decisions: np.ndarray
    n_iter: np.ndarray
    stop_reasons: list[str]
    counters: dict[str, int]

    def shared_points(self, function: Any, points: Any, pairs: Pairs) -> SharedPoints:
        """Return the models over the samples that are support vectors of any pair.

        Parameters
        ----------
        function : KernelFunction
        points : ndarray or csr_array of shape (n_samples, n_features)
            The samples, class by class.
        pairs : Pairs
        """
        layout = self.layout
        used, starts, coefficients = layout.gather(self.coefficients)
        taken, rows = function.take(points, used), layout.order[used]
        return SharedPoints(function, taken, rows, starts, coefficients, self.b, pairs)

    def with_decisions(self, decisions: np.ndarray) -> JointSolution:
        """Return the same with decision values of samples in the pairs of their own class.

        Parameters
        ----------
        decisions : ndarray of shape (n_samples, n_classes - 1)
            Class by class, as from ``SharedPoints.decide_own``.
        """
        return replace(self, decisions=decisions[self.layout.places, self.layout.others])

    def values(self, weights: np.ndarray | None, p: int | None = None) -> Values:
        """Return what the problem of pair `p`, or the sum of all, is evaluated from.

        Parameters
        ----------
        weights : ndarray of shape (n_samples,) or None
            Of the samples, class by class.
        p : int, optional
            All pairs by default: the sum of their problems is one with their samples together.
        """
        layout, beta = self.layout, self.coefficients
        own = slice(None) if p is None else layout.variables(p)
        b = np.repeat(self.b, np.diff(layout.offsets)) if p is None else self.b[p]
        f, y = self.decisions[own], layout.signs[own]
        square = float(beta[own] @ (f - b))
        weighted = None if weights is None else weights[layout.places[own]]
        return Values(f=f, square=square, y=y, alpha=beta[own] * y, weights=weighted)
