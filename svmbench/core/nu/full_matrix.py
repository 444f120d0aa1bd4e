"""Base class of the solvers that keep the whole matrix Q in memory, shared along a path.

Q_ij = y_i y_j (K_ij + s^2), where s is the constant feature's value of an absorbed offset, and 0
without one. It is made when data are prepared, so that training times leave it out, as the paper's
do; the estimators' `solve` makes it from its kernel source.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise as neighbours
from math import ceil, sqrt
from time import perf_counter
from typing import Any, ClassVar, Self

import numpy as np

from svmbench.base.compiled import compiled
from svmbench.core.contract.base import (
    Along,
    PathPoint,
    Splits,
    TrainingData,
    warn_without_margin,
)
from svmbench.core.contract.declaration import COUNTERS
from svmbench.core.kernels.kernels import MIB, KernelFunction, KernelSource
from svmbench.core.models.kernel_base import (
    KERNEL_PARAMETERS,
    KernelParameters,
    KernelSolution,
    KernelSolver,
    untimed,
)
from svmbench.core.nu import qp_solvers

#: What these solvers count beside the common words.
OWN_COUNTERS = ("newton_steps", "screened_zero", "screened_one", "left", "unscreened_values")
assert not set(OWN_COUNTERS) & set(COUNTERS)


@dataclass
class ScreenedSolution(KernelSolution):
    """A solution of a path, with the times of its parts."""

    # ``delta_s``, ``screening_s``, ``solve_s``: wall time, seconds
    times: dict[str, float] = field(default_factory=dict)
    # ``alpha'Q alpha``, from the gradient; not `SignedMatrix.s_squared`
    squared_norm: float = float("nan")
    screening: str = "none"
    # int8 (n,): -1 where the multiplier was settled at 0, 1 where at its upper bound, 0 where it
    # was left
    screened: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int8))


@dataclass(frozen=True)
class SignedMatrix:
    """Q, with the kernel and the offset that it was made of."""

    Q: np.ndarray
    function: KernelFunction
    s_squared: float  # s^2, which is added to the kernel; 0 without an offset


@compiled
def _sign(K: np.ndarray, y: np.ndarray, s_squared: float) -> None:
    """Make Q of K, in place."""
    for i in range(len(y)):
        row = K[i]
        for j in range(len(y)):
            row[j] = (row[j] + s_squared) * (y[i] * y[j])


def signed_matrix(
    source: KernelSource,
    y: np.ndarray,  # (n,): labels ±1; all of them 1 where there are none
    s_squared: float,  # what an absorbed offset adds to the kernel
    cache_mb: float,  # MiB that the matrix may take
) -> np.ndarray:
    """Return Q of a kernel source, a matrix of its own; ValueError if it takes more memory."""
    n = source.n_samples
    needed = n * n * 8 / MIB
    K = source.whole(cache_mb) if needed <= cache_mb else None
    if K is None:
        msg = (
            f"the matrix of {n} samples takes {ceil(needed)} MiB, cache_mb={cache_mb:g} allows"
            f" less: set cache_mb={ceil(needed)}, or train on at most"
            f" {int(sqrt(cache_mb * MIB / 8))} samples"
        )
        raise ValueError(msg)
    if source.inputs() is None or K.dtype != np.float64 or not K.flags.writeable:
        K = np.array(K, dtype=np.float64, order="C")
    if not np.all(np.isfinite(K[:, 0])) or not np.isfinite(K.sum()):
        raise FloatingPointError("the kernel matrix has values that are NaN or infinite")
    _sign(K, np.ascontiguousarray(y, dtype=np.float64), s_squared)
    return K


@dataclass(eq=False, repr=False, kw_only=True)
class OnFullMatrix(KernelParameters, KernelSolver):
    """A kernel solver that keeps Q in memory, and solves for many values of one parameter.

    Subclasses name the parameter of their path in `along`, and define `follow`.

    Parameters
    ----------
    solver : str
        ``dcdm-pairwise``; ``dcdm``, which stops short of the optimum as printed; or ``qp``,
        ``qp-clarabel`` or ``qp-cvxopt``, libraries in the role of the paper's quadprog.
    screen : str
        ``srbo`` (the paper's rule: delta, the step from the last solution to a point that is
        feasible at the next nu, by a bi-level problem; with safe bounds of the margin),
        ``srbo-descent`` (delta by a few warm-started steps, and only where it pays), ``gap-safe``
        (by the duality gap of the last solution, moved to the next nu), ``none``, or
        ``corollary-2``: the rule as it is printed, which is *unsafe*.
    tol : float
        Duality gap, relative to the objective.
    cache_mb : float
        MiB that the matrix may take, 8 bytes a value; more samples are refused.
    fit_intercept : bool
        Whether 1 is added to the kernel. The paper's program does not for an RBF kernel.

    Attributes
    ----------
    times_ : dict of str to float
        Of a solution of a path: ``delta_s``, ``screening_s``, ``solve_s``, seconds of wall time.
    screening_ : str
        Of a solution of a path: ``"on"``, ``"first"`` (nothing to screen with), ``"tested"``
        (solved whole: that was forecast to be faster, or corollary 2 fixes more than the sum
        allows), ``"off"`` (not tested: it has not paid of late, or a larger nu is known to have
        no margin) or ``"none"``.
    screened_ : ndarray of int8 of shape (n_samples,)
        Of a solution of a path: -1 where screening settled the multiplier at 0, 1 where at its
        upper bound, 0 where it was left.
    n_iter_ : int
        Steps.
    counters_ : dict
        ``updates`` (pair steps, updates of `dcdm`, iterations of a library), ``newton_steps``,
        ``support_vectors``, ``bounded_support_vectors``, and of a path ``screened_zero``,
        ``screened_one``, ``left`` (multipliers that were not screened), ``unscreened_values`` (1
        where `screening_` is ``"off"`` or ``"tested"``).
    """

    #: The parameter along which `path` shares the matrix and carries solutions.
    along: ClassVar[str]

    solver: str = "dcdm-pairwise"
    tol: float = 1e-6
    max_iter: int = 10_000_000
    cache_mb: float = 2048.0

    def _check_parameters(self) -> None:
        super()._check_parameters()
        qp_solvers.require_solver(self.solver)

    @property
    def s_squared(self) -> float:
        """Square of the constant feature, which is added to the kernel; 0 without an offset."""
        return float(self.offset.value) ** 2

    def follow(
        self, Q: np.ndarray, y: np.ndarray, values: Sequence[float]
    ) -> Iterator[KernelSolution]:
        """Yield the solution at each value of the path's parameter; the values ascend."""
        raise AssertionError("a solver on the whole matrix defines follow")

    def _convert(self, data: TrainingData) -> TrainingData:
        """Settle gamma and make Q: ``cache_mb`` bounds it."""
        data = super()._convert(data)
        data.native = self._signed(KernelSource.from_inputs(data.X, self.function), data.y)
        return data

    def _signed(self, source: KernelSource, y: np.ndarray) -> SignedMatrix:
        function = getattr(self, "gamma_", None) and self.function
        Q = signed_matrix(source, y, self.s_squared, float(self.cache_mb))
        return SignedMatrix(Q, function or KernelFunction(self.kernel), self.s_squared)

    def _matrix_of(self, data: TrainingData) -> np.ndarray:
        """Return the Q of prepared data; make it again if a parameter of Q has changed since."""
        held = data.native
        if held.function != self.function or held.s_squared != self.s_squared:
            held = data.native = self._signed(
                KernelSource.from_inputs(data.X, self.function), data.y
            )
        return np.asarray(held.Q)

    def train(self, data: TrainingData) -> Self:
        """Solve on the matrix that `prepare` has made, and store the model."""
        Q = self._matrix_of(data)
        (solution,) = self.follow(Q, data.y, [float(getattr(self, self.along))])
        return self._store(solution, data)

    def solve(
        self, source: KernelSource, y: np.ndarray, start: np.ndarray | None = None
    ) -> KernelSolution:
        """Solve on one kernel matrix; `start` is ignored."""
        Q = signed_matrix(source, y, self.s_squared, float(self.cache_mb))
        (solution,) = self.follow(Q, y, [float(getattr(self, self.along))])
        solution.counters = {"kernel_evaluations": Q.size, **solution.counters}
        return solution

    def solve_along(
        self, source: KernelSource, y: np.ndarray, over: str, values: Sequence[Any]
    ) -> Iterable[KernelSolution]:
        """Along ascending values of the path's parameter the matrix is made once."""
        if over != self.along or not self._ascend(values):
            yield from super().solve_along(source, y, over, values)
            return
        Q = signed_matrix(source, y, self.s_squared, float(self.cache_mb))
        for position, solution in enumerate(self.follow(Q, y, [float(value) for value in values])):
            made = 0 if position else Q.size
            solution.counters = {"kernel_evaluations": made, **solution.counters}
            yield solution

    def _ascend(self, values: Sequence[Any]) -> bool:
        """Return True if the values ascend; a solver that needs ascending values refuses others."""
        return all(before < after for before, after in neighbours(values))

    def _path(self, data: Any, y: np.ndarray | None, along: Along) -> Iterator[PathPoint]:
        """Solve for each value; along the path's own parameter, on the one prepared matrix."""
        over, values, splits = along
        shares = over == self.along and self._ascend(values) and over not in KERNEL_PARAMETERS
        if isinstance(data, KernelSource) or not shares:
            return super()._path(data, y, along)
        return self._path_on_matrix(data, values, splits)

    def _path_on_matrix(
        self, data: TrainingData, values: Sequence[Any], splits: Splits | None
    ) -> Iterator[PathPoint]:
        models = [self._sibling(**{self.along: value}) for value in values]
        for model in models:
            model._check_parameters()
        for train, part in self._parts(data, splits):
            prepared, first = part, self
            if train is not None:
                first = self._sibling()
                prepared = first.prepare(part.X, part.y)
            points = first.follow(
                first._matrix_of(prepared), prepared.y, [float(value) for value in values]
            )
            start, is_said = perf_counter(), False
            for unfitted, solution in zip(models, points, strict=True):
                cost = perf_counter() - start
                with untimed():
                    model = unfitted._sibling()
                    model.gamma_ = first.gamma_
                    model._store(solution, prepared)
                    # Once for a path: the warning names a useful nu.
                    is_said = is_said or warn_without_margin(model, prepared)
                yield PathPoint(model, cost, dict(model.counters_))
                start = perf_counter()

    def _where_it_stalls(self) -> str:
        if self.solver == "dcdm":
            return "moves no multiplier any more, as Algorithm 2 is printed,"
        return super()._where_it_stalls()

    def _store(self, solution: KernelSolution, data: TrainingData) -> Self:
        super()._store(solution, data)
        if isinstance(solution, ScreenedSolution):
            self.times_, self.screening_ = solution.times, solution.screening
            self.squared_norm_, self.screened_ = solution.squared_norm, solution.screened
        return self
