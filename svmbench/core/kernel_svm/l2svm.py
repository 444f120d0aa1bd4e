"""Base class of the two solvers of the kernel L2-SVM: parameters, path, work.

    min 1/2 (||w||^2 + b^2) + C/2 sum_i max(0, 1 - y_i f(x_i))^2,   f(x) = w'phi(x) + b.

Its dual is min 1/2 alpha' Q alpha - e'alpha over alpha >= 0, Q_ij = y_i y_j (K_ij + 1) +
delta_ij / C: the 1 that is added to the kernel absorbs the offset, and the loss is a ridge.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np

from svmbench.base.compiled import compiled
from svmbench.core.kernels.kernels import KernelSource
from svmbench.core.kernels.source_row_cache import SourceRowCache, warm_up_row_cache
from svmbench.core.models.kernel_base import KernelSolution
from svmbench.core.models.kernel_classifier import KernelClassifier

#: Kernels of which the dual is bounded: the sigmoid's matrix is not positive semidefinite.
MERCER = ("linear", "rbf", "poly")

#: From this tolerance on float32 kernel values are tried first; the share of the tolerance that
#: is left for their errors; how many samples those are measured on, and by what they are multiplied
#: for the samples that they are not measured on.
SINGLE, MARGIN, MEASURED, SAFETY = 1e-4, 0.1, 64, 4.0

#: Curvature of a direction that has none.
TINY = 1e-12


@compiled
def add_weighted_rows(
    values: np.ndarray,
    slots: np.ndarray,
    rows: np.ndarray,
    beta: np.ndarray,
    first: int,
    f: np.ndarray,
) -> None:
    """Add ``beta[rows] @ (K[rows, first:] + 1)`` to `f`; every one of the rows has a slot."""
    for m in range(len(rows)):
        row, factor = values[slots[rows[m]], first:], beta[rows[m]]
        for j in range(len(f)):
            f[j] += factor * (np.float64(row[j]) + 1.0)


def outputs(store: SourceRowCache, beta: np.ndarray) -> np.ndarray:
    """Return the outputs ``f = (K + 1) beta`` of signed multipliers, shape (n_samples,)."""
    f = np.zeros(len(beta))
    support = np.flatnonzero(beta)
    # Once at least, so that no first call is left for later.
    for start in range(0, max(1, len(support)), store.batch):
        rows = support[start : start + store.batch]
        store.bring(rows)
        add_weighted_rows(store.values, store.slots, rows, beta, 0, f)
    return f


def rounding_error(
    source: KernelSource,
    y: np.ndarray,  # (n,): labels
    beta: np.ndarray,  # (n,): signed multipliers
    f: np.ndarray,  # (n,): their outputs as the solver had them
) -> float:
    """Return the largest error of `f` on the samples nearest to violating a condition."""
    support = np.flatnonzero(beta)
    m = min(MEASURED, len(y))
    nearest = np.argpartition(y * f, m - 1)[:m]
    exact = source.block(nearest, support) @ beta[support] + beta.sum()
    return float(np.abs(exact - f[nearest]).max())


class L2Classifier(KernelClassifier):
    """A solver of the kernel L2-SVM; subclasses define `_minimise`.

    Parameters
    ----------
    C : float
        Weight of half the summed squared hinge losses, above 0: twice LIBLINEAR's C.
    max_iter : int
        Largest number of steps.

    Attributes
    ----------
    intercept_ : ndarray of shape (1,)
        The sum of ``dual_coef_``.
    n_iter_ : int
        Steps.
    """

    treats_offset: ClassVar[str] = "absorbed"
    # On float32 and on float64 rows.
    warm_with: ClassVar[tuple[dict[str, Any], ...]] = ({}, {"tol": 1e-6})

    @classmethod
    def warm_up_rest(cls) -> None:
        """Call what only larger problems need."""
        super().warm_up_rest()
        warm_up_row_cache()

    def _minimise(
        self,
        store: SourceRowCache,
        diag: np.ndarray,
        y: np.ndarray,
        C: float,
        tol: float,
        beta: np.ndarray,
        f: np.ndarray,
    ) -> tuple[str, dict[str, int]]:
        """Solve from the signed multipliers `beta` with outputs `f`; change both in place.

        Return the stop reason and the counters, with ``updates``, the number of steps.
        """
        raise AssertionError("an L2 solver defines _minimise")

    def _takes_single(self) -> bool:
        """Tell if float32 kernel values are tried first."""
        return float(self.tol) >= SINGLE

    def _restart(
        self, y: np.ndarray, C: float, beta: np.ndarray, f: np.ndarray, steps: int
    ) -> None:
        """Turn a solution, which took so many steps, into the start for another C, in place."""

    def _margin_tolerance(self, diag: np.ndarray, C: float, beta: np.ndarray) -> float:
        """Return the violation that `tol` allows at a solution, in units of the margin ``y f``."""
        raise AssertionError("an L2 solver defines _margin_tolerance")

    def solve(
        self, source: KernelSource, y: np.ndarray, start: np.ndarray | None = None
    ) -> KernelSolution:
        """Solve on one kernel matrix; any multipliers that are not negative may be the start."""
        return self._follow(source, y, [self.C], None if start is None else start * y)[0]

    def solve_along(
        self, source: KernelSource, y: np.ndarray, over: str, values: Sequence[Any]
    ) -> Iterable[KernelSolution]:
        """Along C each solution starts from the last, on the same kernel rows."""
        if over != "C":
            return super().solve_along(source, y, over, values)
        return self._follow(source, y, values, None)

    def _follow(
        self,
        source: KernelSource,
        y: np.ndarray,
        values: Sequence[float],
        beta: np.ndarray | None,
    ) -> list[KernelSolution]:
        tol = float(self.tol)
        before = source.kernel_evaluations
        store = SourceRowCache(source, float(self.cache_mb), single=self._takes_single())
        diag = source.diag() if store.K is None else store.K.diagonal().astype(np.float64)
        beta = np.zeros(len(y)) if beta is None else beta
        f = outputs(store, beta)
        found: list[KernelSolution] = []
        for C in map(float, values):
            if found:
                self._restart(y, C, beta, f, found[-1].n_iter)
            inner = (1.0 - MARGIN) * tol if store.rounded else tol
            reason, counters = self._minimise(store, diag, y, C, inner, beta, f)
            allowed = MARGIN * self._margin_tolerance(diag, C, beta)
            if store.rounded and SAFETY * rounding_error(source, y, beta, f) > allowed:
                store = SourceRowCache(source, float(self.cache_mb))
                f[:] = outputs(store, beta)
                reason, more = self._minimise(store, diag, y, C, tol, beta, f)
                counters = {name: counters[name] + more[name] for name in counters}
            counters["kernel_evaluations"] = source.kernel_evaluations - before
            before = source.kernel_evaluations
            found.append(
                KernelSolution(
                    coefficients=beta.copy(),
                    b=float(beta.sum()),
                    n_iter=counters["updates"],
                    stop_reason=reason,
                    counters=counters,
                )
            )
        return found
