"""Base class of the two solvers of the kernel L2-SVM: parameters, path, work.

    min 1/2 (||w||^2 + b^2) + C/2 sum_i max(0, 1 - y_i f(x_i))^2,   f(x) = w'phi(x) + b.

Its dual is min 1/2 alpha' Q alpha - e'alpha over alpha >= 0, Q_ij = y_i y_j (K_ij + 1) +
delta_ij / C: the 1 that is added to the kernel absorbs the offset, and the loss is a ridge.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from svmbench.base.compiled import compiled
from svmbench.core.kernels.kernels import KernelSource
from svmbench.core.kernels.source_row_cache import SourceRowCache, warm_up_row_cache
from svmbench.core.models.kernel_base import ClassifierWithC, KernelSolution

#: Kernels of which the dual is bounded: the sigmoid's matrix is not positive semidefinite.
MERCER = ("linear", "rbf", "poly")

#: From this tolerance on float32 kernel values are tried first.
FLOAT32_MIN_TOL = 1e-4

#: Share of the tolerance that is left for errors of float32 kernel values.
ROUNDING_TOL_SHARE = 0.1

#: Number of samples that the errors are measured on.
CHECKED_SAMPLES = 64

#: Factor from the largest measured error to the largest of all samples.
UNCHECKED_FACTOR = 4.0

#: Least curvature along a direction.
MIN_CURVATURE = 1e-12

#: Samples of a piece of a pass: the pass notes the piece that holds an extreme, and the sample
#: itself is looked for in that piece alone.
EXTREME_PIECE = 256


class RowSlots(NamedTuple):
    """The kernel rows of a `SourceRowCache`, as compiled loops read them."""

    values: np.ndarray  # (n_slots, n): a row each
    slots: np.ndarray  # int (n,): where a sample's row is; -1 if it is missing
    last_use: np.ndarray  # int (n_slots,): by the clock
    clock: int  # time at the start of the loop


class L2State(NamedTuple):
    """A problem of the kernel L2-SVM, and the point that its solver moves in place."""

    store: SourceRowCache  # kernel rows
    diag: np.ndarray  # (n,): of the kernel matrix
    y: np.ndarray  # (n,): labels ±1
    C: float
    beta: np.ndarray  # (n,): signed multipliers ``y alpha``
    f: np.ndarray  # (n,): their outputs ``(K + 1) beta``

    @property
    def curvature(self) -> np.ndarray:
        """The diagonal of Q, kept off 0."""
        return np.maximum(self.diag + (1.0 + 1.0 / self.C), MIN_CURVATURE)

    @property
    def rows(self) -> RowSlots:
        """The present rows."""
        store = self.store
        return RowSlots(store.values, store.slots, store.last_use, store.clock)

    def rebuild(self) -> None:
        """Compute the outputs anew."""
        self.f[:] = 0.0
        support = np.flatnonzero(self.beta)
        # Once at least, so that no first call is left for later.
        for start in range(0, max(1, len(support)), self.store.batch):
            rows = support[start : start + self.store.batch]
            self.store.bring(rows)
            add_weighted_rows(self.store.values, self.store.slots, rows, self.beta, 0, self.f)

    def rounding_error(self, source: KernelSource) -> float:
        """Return the largest error of `f` on the samples nearest to violating a condition."""
        support = np.flatnonzero(self.beta)
        m = min(CHECKED_SAMPLES, len(self.y))
        nearest = np.argpartition(self.y * self.f, m - 1)[:m]
        exact = source.block(nearest, support) @ self.beta[support] + self.beta.sum()
        return float(np.abs(exact - self.f[nearest]).max())


@compiled
def add_weighted_rows(
    values: np.ndarray,
    slots: np.ndarray,
    rows: np.ndarray,  # int: rows that have a slot
    beta: np.ndarray,
    first: int,
    f: np.ndarray,
) -> None:
    """Add ``beta[rows] @ (K[rows, first:] + 1)`` to `f`."""
    for m in range(len(rows)):
        row, factor = values[slots[rows[m]], first:], beta[rows[m]]
        for j in range(len(f)):
            f[j] += factor * (np.float64(row[j]) + 1.0)


@dataclass(eq=False, repr=False, kw_only=True)
class L2Classifier(ClassifierWithC):
    """A solver of the kernel L2-SVM; subclasses define `_minimise`.

    Parameters
    ----------
    C : float
        Weight of half the summed squared hinge losses, above 0: twice LIBLINEAR's C.

    Attributes
    ----------
    intercept_ : ndarray of shape (1,)
        The sum of ``dual_coef_``.
    n_iter_ : int
        Steps.
    """

    tol: float = 1e-3
    max_iter: int = 10_000_000
    cache_mb: float = 1024.0

    treats_offset: ClassVar[str] = "absorbed"
    # On float32 and on float64 rows.
    warm_with: ClassVar[tuple[dict[str, Any], ...]] = ({}, {"tol": 1e-6})

    @classmethod
    def warm_up_rest(cls) -> None:
        """Run the compiled code that only larger problems need."""
        super().warm_up_rest()
        warm_up_row_cache()

    def _minimise(self, state: L2State, tol: float) -> tuple[str, dict[str, int]]:
        """Solve in place; return the stop reason and the counters, steps as ``updates``."""
        raise AssertionError("an L2 solver defines _minimise")

    def _takes_single(self) -> bool:
        """Return True if float32 kernel values are tried first."""
        return float(self.tol) >= FLOAT32_MIN_TOL

    def _restart(self, state: L2State, steps: int) -> None:
        """Turn the last C's solution, which took `steps` steps, into a start, in place."""

    def _margin_tolerance(self, state: L2State) -> float:
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
        state = L2State(store, diag, y, float(self.C), beta, np.empty(len(y)))
        state.rebuild()
        solutions: list[KernelSolution] = []
        for C in map(float, values):
            state = state._replace(C=C)
            if solutions:
                self._restart(state, solutions[-1].n_iter)
            rounded = state.store.rounded
            inner = (1.0 - ROUNDING_TOL_SHARE) * tol if rounded else tol
            reason, counters = self._minimise(state, inner)
            allowed = ROUNDING_TOL_SHARE * self._margin_tolerance(state)
            if rounded and UNCHECKED_FACTOR * state.rounding_error(source) > allowed:
                # Float32 does not suffice: go on in double precision, here and along the path.
                state = state._replace(store=SourceRowCache(source, float(self.cache_mb)))
                state.rebuild()
                reason, more = self._minimise(state, tol)
                counters = {name: counters[name] + more[name] for name in counters}
            counters["kernel_evaluations"] = source.kernel_evaluations - before
            before = source.kernel_evaluations
            solution = KernelSolution(
                beta.copy(), float(beta.sum()), counters["updates"], reason, counters
            )
            solutions.append(solution)
        return solutions
