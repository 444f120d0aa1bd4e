"""FOSVM1 and FOSVM2: the hard-margin one-class SVM by cutting planes.

Problem
    min_{w,rho}  1/2 ||w||^2 - rho,   <w, phi(x_i)> >= rho for every sample;
    dual: min_alpha 1/2 alpha' K alpha, alpha >= 0, sum alpha = 1;   w = sum_i alpha_i phi(x_i).
Given
    kernel values, theta in (0, 1); for FOSVM2 m, the number of candidates.
Returned
    The active set A, its w and rho, once o = <w, phi(x_p)> - rho >= -theta rho for the chosen p.
    With FOSVM1 every training sample has <w, phi(x)> >= (1 - theta) rho; with FOSVM2 this is
    probable, not certain.
Reference
    FOSVM paper, Algorithm 1 (any selection: :func:`grow_active_set`), Algorithm 2 (FOSVM1: p is the
    argmin over all that is not in A) and Algorithm 3 (FOSVM2: over m of them, drawn at random).
    A starts as the first two samples.
Deviations
    - The active problem is solved from the last solution (``active_qp``), to rounding.
    - FOSVM1 keeps the <w, phi(x_i)>: an iteration adds to them what changed in the multipliers,
      finds the lowest in the same pass, and computes one kernel column, that of the new point.
    - Columns may be of single precision. The lowest scores are then checked in double at the end,
      and the search goes on in double where one of them is below (1 - theta) rho after all.
    - Where the origin is in the samples' convex hull (which an RBF kernel rules out) rho is 0, no
      margin is left to approximate, and the search ends with that reason.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from svmbench.base.compiled import compiled, compiled_sums
from svmbench.core.contract.base import (
    NO_MARGIN,
    TrainingData,
    require_count,
    warn_if_useless,
    warn_user,
)
from svmbench.core.contract.problems import Problem, Values, not_one
from svmbench.core.contract.registry import declare
from svmbench.core.kernels.columns import (
    MATRIX_COLUMNS_MAX_SAMPLES,
    Columns,
    DoubleColumns,
    columns_of,
    warm_up_columns,
)
from svmbench.core.kernels.kernels import MIB, KernelFunction, KernelSource
from svmbench.core.models.kernel_base import (
    KERNEL_PARAMETERS,
    Expansion,
    KernelParameters,
    KernelSolution,
)
from svmbench.core.models.novelty_base import KernelDetector, require_share
from svmbench.core.numeric.random import generator
from svmbench.core.oneclass.active_qp import HULL_SLACK, ActiveSet

#: Samples of a piece of a pass: scores of it stay in the first-level cache.
SCORES_PIECE = 1024

#: Samples on which the error of single precision is measured, and the largest share of theta rho
#: that the error may be.
CHECKED_SAMPLES, MAX_ERROR_SHARE = 64, 0.1

#: A margin below this share of the largest squared length is rounding.
NO_MARGIN_SHARE = 1e-14


@compiled_sums
def add_columns(
    columns: np.ndarray,  # (n_columns, m)
    places: np.ndarray,  # int (k,): the columns of the multipliers that have changed
    changes: np.ndarray,  # (k,): by how much each of them has changed
    scores: np.ndarray,  # (m,): <w, phi(x)> of each sample of the piece, changed in place
) -> None:
    """Add changes of multipliers to the scores of a piece of the samples.

    Not `rows.subtract_rows`, which takes 1.4 times as long for 40 float32 columns of 8,000 samples:
    it rounds each product before it is added.
    """
    m, k = len(scores), 0
    while k + 3 < len(places):
        c0, c1 = columns[places[k]], columns[places[k + 1]]
        c2, c3 = columns[places[k + 2]], columns[places[k + 3]]
        d0, d1, d2, d3 = changes[k], changes[k + 1], changes[k + 2], changes[k + 3]
        for j in range(m):
            scores[j] += (d0 * c0[j] + d1 * c1[j]) + (d2 * c2[j] + d3 * c3[j])
        k += 4
    while k < len(places):
        c0, d0 = columns[places[k]], changes[k]
        for j in range(m):
            scores[j] += d0 * c0[j]
        k += 1


@compiled
def update_and_find(
    columns: np.ndarray,  # (n_columns, n)
    places: np.ndarray,  # (k,)
    changes: np.ndarray,  # (k,)
    scores: np.ndarray,  # (n,): infinite for the samples of A, so that none is found
) -> int:
    """Add changes of multipliers to all scores; return the position of the lowest."""
    n, lowest, best = len(scores), 0, np.inf
    for start in range(0, n, SCORES_PIECE):
        stop = min(start + SCORES_PIECE, n)
        piece = scores[start:stop]
        add_columns(columns[:, start:stop], places, changes, piece)
        for j in range(stop - start):
            if piece[j] < best:
                lowest, best = start + j, piece[j]
    return lowest


@dataclass
class SearchState:
    """State of a search: the active set A, its solution, and the work so far."""

    members: list[int]  # A, in the order in which its samples came
    active: ActiveSet  # their multipliers and rho
    iterations: int = 0  # solutions of the active problem; A has one sample more
    reason: str = ""
    # ``columns``, ``passes`` over all samples, ``kernel_evaluations``
    work: dict[str, int] = field(default_factory=dict)

    def count(self, name: str, by: int) -> None:
        """Add to a counter."""
        self.work[name] = self.work.get(name, 0) + int(by)


#: A function that chooses a sample outside A, and returns it with its score; (-1, inf) if A has all
#: samples.
SampleSelection = Callable[[SearchState], tuple[int, float]]


def begin_search(source: KernelSource) -> SearchState:
    """Return the start of a search: A holds the first two samples, or the only one."""
    first = source.block(np.arange(1), np.arange(1))
    state = SearchState([0], ActiveSet(float(first[0, 0])))
    state.count("kernel_evaluations", 1)
    if source.n_samples > 1:
        join_active_set(source, state, 1)
    state.iterations = 1
    return state


def join_active_set(source: KernelSource, state: SearchState, sample: int) -> None:
    """Add a sample to A, and solve the active problem."""
    state.members.append(sample)
    row = source.block(np.array([sample]), np.array(state.members))[0]
    state.count("kernel_evaluations", len(row))
    state.active.add(row)


def grow_active_set(
    source: KernelSource,
    state: SearchState,  # changed in place
    select: SampleSelection,  # chooses the next sample: Algorithms 2 and 3 differ in this alone
    theta: float,  # ends at a chosen sample whose score is at least (1 - theta) rho
    max_iter: int,  # largest number of active problems solved
) -> None:
    """Run Algorithm 1 of the paper from the present state on, with any selection."""
    floor = NO_MARGIN_SHARE * max(1.0, abs(state.active.rho))
    while True:
        if state.active.rho <= floor:
            state.reason = NO_MARGIN
            return
        sample, score = select(state)
        if score >= (1.0 - theta) * state.active.rho:
            state.reason = "converged"
            return
        if state.iterations >= max_iter:
            state.reason = "max_iter"
            return
        join_active_set(source, state, sample)
        state.iterations += 1


class LowestOfAll:
    """FOSVM1's selection: the lowest score of all, kept up to date from column to column."""

    def __init__(
        self,
        columns: Columns,
        cache_mb: float,  # memory for columns, MiB; more columns are computed in every iteration
    ) -> None:
        self.columns = columns
        n = columns.n_samples
        self._max_stored = max(1, int(cache_mb * MIB / (n * np.dtype(columns.dtype).itemsize)))
        self._stored = np.empty((min(16, self._max_stored), n), dtype=columns.dtype)
        self._spare = np.empty((1, n), dtype=columns.dtype)
        self.scores = np.zeros(n)
        self._alpha = np.zeros(0)

    def __call__(self, state: SearchState) -> tuple[int, float]:
        """Return the sample with the lowest score outside A, and that score."""
        known = len(self._alpha)
        for place in range(known, len(state.members)):
            self._compute(place, state.members[place])
            state.count("columns", 1)
            state.count("kernel_evaluations", len(self.scores))
            self.scores[state.members[place]] = np.inf
        changes = np.array(state.active.alpha)
        changes[:known] -= self._alpha
        self._alpha = np.array(state.active.alpha)
        places = np.flatnonzero(changes)
        for place in places[places >= self._max_stored]:
            self.columns.column(state.members[place], self._spare[0])
            state.count("columns", 1)
            state.count("kernel_evaluations", len(self.scores))
            add_columns(self._spare, np.zeros(1, np.int64), changes[place : place + 1], self.scores)
        places = places[places < self._max_stored]
        state.count("passes", 1)
        sample = update_and_find(self._stored, places, changes[places], self.scores)
        score = float(self.scores[sample])
        return (sample, score) if np.isfinite(score) else (-1, np.inf)

    def _compute(self, place: int, sample: int) -> None:
        """Compute a column and store it, if there is memory for it."""
        if place >= self._max_stored:
            return
        if place == len(self._stored):
            more = np.empty(
                (min(2 * place, self._max_stored), len(self.scores)), self._stored.dtype
            )
            more[:place] = self._stored
            self._stored = more
        self.columns.column(sample, self._stored[place])


class LowestOfDrawn:
    """FOSVM2's selection: the lowest score of m samples outside A, drawn without replacement."""

    def __init__(
        self,
        source: KernelSource,
        m: int,  # number of samples to draw; all that are outside A, if there are fewer
        random: Any,
    ) -> None:
        self.source, self.m, self.random = source, m, random

    def __call__(self, state: SearchState) -> tuple[int, float]:
        """Return the drawn sample with the lowest score, and that score."""
        drawn = self.draw(state.members)
        if not len(drawn):
            return -1, np.inf
        support = state.active.support
        block = self.source.block(drawn, np.array(state.members)[support])
        state.count("kernel_evaluations", block.size)
        state.count("candidates", len(drawn))
        scores = block @ state.active.alpha[support]
        lowest = int(np.argmin(scores))
        return int(drawn[lowest]), float(scores[lowest])

    def draw(self, members: list[int]) -> np.ndarray:
        """Return m samples outside A, in the order of the draw; all of them if there are fewer."""
        n, in_A = self.source.n_samples, set(members)
        if n - len(in_A) <= 4 * self.m:
            outside = np.array(sorted(set(range(n)) - in_A), dtype=np.int64)
            return outside[self.random.permutation(len(outside))[: self.m]]
        # Draw from all samples and reject those of A: the cost of a draw does not depend on N.
        drawn: dict[int, None] = {}
        while len(drawn) < self.m:
            for sample in (self.random.random(self.m) * n).astype(np.int64).tolist():
                if sample not in in_A and len(drawn) < self.m:
                    drawn[sample] = None
        return np.array(list(drawn), dtype=np.int64)


def columns_for(source: KernelSource, theta: float) -> Columns:
    """Return the maker of columns that is fastest if few are needed, to a precision for theta."""
    if not source.is_stored and source.n_samples <= MATRIX_COLUMNS_MAX_SAMPLES:
        return DoubleColumns(source)
    return columns_of(source, theta)


def is_confirmed(
    source: KernelSource, state: SearchState, scores: np.ndarray, theta: float
) -> bool:
    """Return True if no score is below (1 - theta) rho, by kernel values in double precision.

    The error of the scores, which are of single precision, is measured on `CHECKED_SAMPLES`
    samples. Above `MAX_ERROR_SHARE` of theta rho it confirms nothing; otherwise the scores that may
    be too low are computed again.
    """
    support, limit = state.active.support, (1.0 - theta) * state.active.rho
    alpha, members = state.active.alpha[support], np.array(state.members)[support]

    def exact(samples: np.ndarray) -> np.ndarray:
        block = source.block(samples, members)
        state.count("kernel_evaluations", block.size)
        return block @ alpha

    some = np.unique(np.linspace(0, len(scores) - 1, CHECKED_SAMPLES).astype(np.int64))
    some = some[np.isfinite(scores[some])]
    error = float(np.max(np.abs(exact(some) - scores[some]), initial=0.0))
    if error > MAX_ERROR_SHARE * theta * state.active.rho:
        return False
    in_doubt = np.flatnonzero(scores < limit + 4.0 * error)
    return not np.any(exact(in_doubt) < limit)


@dataclass(frozen=True)
class HardOneClass(Problem):
    """The plane that is farthest from the origin with every sample beyond it.

    min  1/2 ||w||^2 - rho,   <w, phi(x_i)> >= rho;   f(x) = <w, phi(x)> - rho;
    max  -1/2 alpha' K alpha,   alpha >= 0,  sum alpha = 1.

    It has no parameter. The primal value of a w takes the largest rho that w allows: the minimum
    of <w, phi(x_i)>. If the rho of f is larger, f is approximate, and the gap bounds its error.
    """

    def primal(self, values: Values, parameter: float = 0.0) -> float:
        """Return the primal value at w; f has -rho in it."""
        return 0.5 * values.square - (float(np.min(values.f)) + values.rho)

    def dual(self, values: Values, parameter: float = 0.0) -> float:
        """Return -1/2 ||w||^2."""
        return -0.5 * values.square

    def bounds(self, parameter: float, n_samples: int) -> tuple[float, float]:
        """Return 0 and infinity."""
        return 0.0, np.inf

    def sum_violation(self, values: Values, parameter: float, offset: Any) -> str:
        """Return a sentence if the multipliers do not sum up to 1, else ""."""
        return not_one(values, self.name)


HARD_MARGIN = HardOneClass(
    name="one-class-hard",
    formula="1/2 ||w||^2 - min of <w, phi(x)>, 0 <= alpha, sum alpha = 1",
)


def active_set_bound(
    theta: float,  # in (0, 1)
    margin: float,  # d, in (0, 1]; at 1 (one point) two samples are enough
) -> int:
    """Return the size of the active set at which Theorem 2 of the FOSVM paper ends the search.

    It is the smallest n of at least 2 with ``n/2 + 1 >= sqrt(2) (sqrt(2t + 1) + 1) / (2t)`` for
    ``t = theta d^2 / (1 - d^2)``. Here K(x, x) = 1, and d is the margin of all data, at most 1. All
    of this is read from a copy of the paper whose formulas are damaged.
    """
    if margin >= 1.0:
        return 2
    t = theta * margin**2 / (1.0 - margin**2)
    if t < 1e-18:
        return int(np.iinfo(np.int64).max)
    least = math.sqrt(2.0) * (math.sqrt(2.0 * t + 1.0) + 1.0) / (2.0 * t)
    return max(2, math.ceil(2.0 * (least - 1.0)))


#: FOSVM2's stop reason if no sample that it drew has a score below (1 - theta) rho.
PROBABLY = "probably converged"


class Candidates(NamedTuple):
    """The samples that FOSVM2 draws from."""

    outside: np.ndarray  # int (n_outside,): the samples that are not in the active set
    scores: np.ndarray  # (n_outside,): their <w, phi(x)>
    draw: Callable[[], np.ndarray]  # returns the samples that one iteration draws


def rho_with_slack(state: SearchState) -> float:
    """Return rho minus a slack for rounding, so that samples on the margin count as normal."""
    return state.active.rho * (1.0 - HULL_SLACK)


@dataclass(eq=False, repr=False)
class CuttingDetector(KernelParameters, KernelDetector):
    """Base class of FOSVM1 and FOSVM2: a search, and a model over its active set.

    Attributes
    ----------
    members_ : ndarray of int of shape (n_active,)
        The active set A, in the order in which samples joined it.
    support_ : ndarray of int of shape (n_support,)
        Samples of the active set that have weight.
    objective_, dual_objective_ : float
        Of the hard-margin problem: primal at w and the largest rho that w allows, and dual.
    smallest_membership_ : float
        Smallest value of the paper's membership: min_i <w, phi(x_i)> / rho, at most 1.
    n_below_ : int
        Number of training samples with a score below (1 - theta) rho.
    n_iter_ : int
        Active problems solved: the paper's iterations.
    """

    needs_parameters: ClassVar[tuple[str, ...]] = ("theta", "max_iter", *KERNEL_PARAMETERS)

    theta: float = 0.01
    _: KW_ONLY
    max_iter: int = 10_000

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_share("theta", self.theta, below_one=True)

    def _problem_parameter(self, data: TrainingData) -> float:
        return 0.0

    def search(self, source: KernelSource) -> SearchState:
        """Run the search on a kernel matrix, and return its final state."""
        raise AssertionError("a detector by cutting planes defines search")

    def train(self, data: TrainingData) -> Self:
        """Run the search, and store the model; only inputs that the search needs are read."""
        state = self.search(KernelSource.from_inputs(data.X, self.function))
        support, rho = state.active.support, rho_with_slack(state)
        if not np.isfinite(rho):
            msg = f"{type(self).__name__}: the {self.kernel} kernel overflows on these samples"
            raise FloatingPointError(msg)
        support = support[np.argsort(np.array(state.members)[support])]
        self.members_ = np.array(state.members)
        rows = self.members_[support]
        self.expansion_ = Expansion(
            self.function, data.X[rows], state.active.alpha[support], -rho, rows=rows, rho=rho
        )
        counters = {**state.work, "active": len(state.members), "systems": state.active.steps}
        return self._store_counters_and_reason(state.iterations, state.reason, counters, bounded=0)

    def solve(
        self, source: KernelSource, y: np.ndarray | None = None, start: np.ndarray | None = None
    ) -> KernelSolution:
        """Search on one kernel matrix; `y` and `start` are ignored."""
        state = self.search(source)
        coefficients = np.zeros(source.n_samples)
        coefficients[state.members] = state.active.alpha
        rho = rho_with_slack(state)
        return KernelSolution(
            coefficients, -rho, state.iterations, state.reason, dict(state.work), rho=rho
        )

    def evaluate_objective(self, data: TrainingData) -> Self:
        """Set the objectives, the lowest membership, and Theorem 2's bound of the active set.

        The theorem's bound needs the margin ``||w||`` of all samples. The margin of the active set
        is at least as large, so the bound computed from it is no larger than the theorem's.
        """
        values = self._values(data)
        self.objective_ = self.problem.primal(values, 0.0)
        self.dual_objective_ = self.problem.dual(values, 0.0)
        rho = self.expansion_.rho
        scores = values.f + rho
        self.smallest_membership_ = min(1.0, float(np.min(scores)) / rho) if rho > 0.0 else 0.0
        self.n_below_ = int(np.sum(scores < (1.0 - float(self.theta)) * rho))
        if self.kernel == "rbf":
            bound = active_set_bound(float(self.theta), min(1.0, values.square) ** 0.5)
            self.counters_["iteration_bound"] = bound
        warn_if_useless(self, data)
        return self


@declare(
    name="fosvm1",
    problem=HARD_MARGIN,
    promise="margin",
    promised_by="theta",
    paper="fosvm",
    summary="FOSVM1: hard-margin one-class SVM by cutting planes at the lowest score",
    reference="FOSVM paper, Algorithms 1 and 2, Theorems 1 and 2",
    kernels=("linear", "rbf", "poly"),
    task="one-class",
    counters=("active", "iteration_bound", "systems"),
)
@dataclass(eq=False, repr=False)
class FOSVM1(CuttingDetector):
    """Hard-margin one-class SVM on an active set, to a precision theta.

    An iteration is one pass over the scores of all samples, one kernel column and one small QP.
    :class:`FOSVM2` looks at a few samples an iteration instead of all.

    Parameters
    ----------
    theta : float
        Every training sample has a score of at least (1 - theta) rho; above 0 and below 1.
    cache_mb : float
        Memory for kernel columns, MiB. Each iteration recomputes the columns that don't fit.

    Attributes
    ----------
    stop_reason_ : str
        ``"converged"``, ``"max_iter"``, or ``"no margin"`` (the samples' hull has the origin).
    counters_ : dict
        ``columns``, ``passes`` (over all samples; one an iteration),
        ``kernel_evaluations``, ``systems`` (linear systems of the active problems), ``active``
        (size of the active set), ``support_vectors``; after `evaluate_objective`, for RBF,
        ``iteration_bound``: the size of the active set that Theorem 2 allows.

    Examples
    --------
    >>> from svmbench.core.oneclass.fosvm import FOSVM1
    >>> model = FOSVM1(gamma=1.0).fit([[0.0], [0.5], [1.0], [0.6]])
    >>> model.support_
    array([0, 2])
    """

    _: KW_ONLY
    cache_mb: float = 1024.0

    @classmethod
    def warm_up_rest(cls) -> None:
        """Compile the passes over columns, and the columns themselves, in both precisions."""
        super().warm_up_rest()
        for columns in warm_up_columns():
            source = KernelSource.from_inputs(np.eye(columns.n_samples), KernelFunction())
            LowestOfAll(columns, 1.0)(begin_search(source))

    def search(self, source: KernelSource) -> SearchState:
        """Run Algorithm 2, and return its final state."""
        theta, limit, budget = float(self.theta), int(self.max_iter), float(self.cache_mb)
        state = begin_search(source)
        columns = columns_for(source, theta)
        select = LowestOfAll(columns, budget)
        grow_active_set(source, state, select, theta, limit)
        in_doubt = state.reason == "converged" and columns.dtype == np.float32
        if in_doubt and not is_confirmed(source, state, select.scores, theta):
            grow_active_set(source, state, LowestOfAll(DoubleColumns(source), budget), theta, limit)
        return state


@declare(
    name="fosvm2",
    problem=HARD_MARGIN,
    paper="fosvm",
    summary="FOSVM2: hard-margin one-class SVM by cutting planes at the lowest of m drawn scores; "
    "its precision is probable, not certain",
    reference="FOSVM paper, Algorithm 3",
    kernels=("linear", "rbf", "poly"),
    task="one-class",
    counters=("active", "candidates", "iteration_bound", "systems"),
)
@dataclass(eq=False, repr=False)
class FOSVM2(CuttingDetector):
    """Hard-margin one-class SVM on an active set that grows by the lowest of m samples drawn.

    Training reads only the samples that it draws, however many there are. The precision theta is
    probable, not certain (:class:`FOSVM1`: certain). `fit` evaluates the objective on all samples.
    It warns if samples have a score below (1 - theta) rho; ``n_below_`` is their number.

    Parameters
    ----------
    theta : float
        Training ends once no sample that an iteration drew has a score below (1 - theta) rho;
        above 0 and below 1.
    n_candidates : int
        The paper's m: number of samples that each iteration draws. Of 59 samples at least one is
        among the lowest 5 % with probability 0.95. If fewer are left, all are taken.

    Attributes
    ----------
    stop_reason_ : str
        ``"probably converged"`` (no sample that was drawn has a score below (1 - theta) rho),
        ``"max_iter"``, or ``"no margin"`` if the origin is in the convex hull of the samples.
    counters_ : dict
        ``candidates`` (samples drawn),
        ``kernel_evaluations``, ``systems`` (linear systems of the active problems), ``active``
        (size of the active set), ``support_vectors``; after `evaluate_objective`, for RBF,
        ``iteration_bound``: the size of the active set that Theorem 2 allows.

    Examples
    --------
    >>> from svmbench.core.oneclass.fosvm import FOSVM2
    >>> FOSVM2(gamma=1.0).fit([[0.0], [0.5], [1.0], [0.6]]).support_
    array([0, 2])
    """

    _: KW_ONLY
    n_candidates: int = 59
    random_state: Any = 0

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_count("n_candidates", self.n_candidates)

    def candidates(self, data: TrainingData) -> Candidates:
        """Return the samples that the next iteration would draw from, had the search not ended."""
        check_is_fitted(self, "members_")
        source = KernelSource.from_inputs(data.X, self.function)
        select = LowestOfDrawn(source, int(self.n_candidates), generator(self.random_state))
        members = self.members_.tolist()
        outside = np.setdiff1d(np.arange(len(data.y)), self.members_)
        scores = self._decide(data.X[outside]) + self.offset_
        return Candidates(outside, scores, lambda: select.draw(members))

    def search(self, source: KernelSource) -> SearchState:
        """Run Algorithm 3, and return its final state."""
        state = begin_search(source)
        select = LowestOfDrawn(source, int(self.n_candidates), generator(self.random_state))
        grow_active_set(source, state, select, float(self.theta), int(self.max_iter))
        if state.reason == "converged":
            state.reason = PROBABLY
        return state

    def evaluate_objective(self, data: TrainingData) -> Self:
        """Set the same attributes as :class:`FOSVM1`; warn if scores are below (1 - theta) rho."""
        super().evaluate_objective(data)
        if self.n_below_ and self.stop_reason_ == PROBABLY:
            warn_user(
                f"fosvm2's precision holds with a probability: {self.n_below_} of the "
                f"{len(data.y)} training samples are below (1 - theta) of the margin, with "
                f"theta={self.theta:g}; more n_candidates make that rarer, and fosvm1 is certain",
            )
        return self
