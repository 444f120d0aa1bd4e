"""FOSVM1 and FOSVM2: the hard-margin one-class SVM by cutting planes.

Problem, reference and deviations
    FOSVM1 and FOSVM2 share the search of ``cutting.py``; see its header. FOSVM1 selects the lowest
    of all scores (Algorithm 2), FOSVM2 the lowest of m samples drawn at random (Algorithm 3).
Given
    Samples, theta in (0, 1); for FOSVM2 m, the number of candidates.
Returned
    w and rho of the active set. With FOSVM1 every training sample has <w, phi(x)> >= (1 - theta)
    rho; with FOSVM2 this is probable, not certain.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from svmbench.core.contract.base import TrainingData, require_count
from svmbench.core.contract.checks import warn_if_useless
from svmbench.core.contract.problems import Problem, Values, not_one
from svmbench.core.contract.registry import declare
from svmbench.core.kernels.columns import DoubleColumns, warm_up_columns
from svmbench.core.kernels.kernels import KernelFunction, KernelSource
from svmbench.core.models.kernel_base import (
    KERNEL_PARAMETERS,
    Expansion,
    KernelParameters,
    KernelSolution,
)
from svmbench.core.models.novelty_base import KernelDetector, require_share
from svmbench.core.numeric.random import generator
from svmbench.core.oneclass.active_qp import HULL_SLACK
from svmbench.core.oneclass.cutting import (
    Cut,
    Drawn,
    Everyone,
    begin_cut,
    columns_for,
    grow_active_set,
    is_confirmed,
)


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
        """Return -1/2 square."""
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


def iteration_bound(
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


def margin_of(cut: Cut) -> float:
    """Return rho minus a slack for rounding, so that samples on the margin count as normal."""
    return cut.active.rho * (1.0 - HULL_SLACK)


@dataclass(eq=False, repr=False)
class CuttingDetector(KernelParameters, KernelDetector):
    """Base class of FOSVM1 and FOSVM2: a search, and a model over its active set.

    Parameters
    ----------
    max_iter : int
        Largest number of active problems that are solved.

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

    def _sum_weight(self, data: TrainingData) -> float:
        return 0.0

    def search(self, source: KernelSource) -> Cut:
        """Run the search on a kernel matrix, and return its final state."""
        raise AssertionError("a detector by cutting planes defines search")

    def train(self, data: TrainingData) -> Self:
        """Run the search, and store the model; only inputs that the search needs are read."""
        cut = self.search(KernelSource.from_inputs(data.X, self.function))
        support, rho = cut.active.support, margin_of(cut)
        if not np.isfinite(rho):
            msg = f"{type(self).__name__}: the {self.kernel} kernel overflows on these samples"
            raise FloatingPointError(msg)
        support = support[np.argsort(np.array(cut.members)[support])]
        self.members_ = np.array(cut.members)
        rows = self.members_[support]
        self.expansion_ = Expansion(
            self.function, data.X[rows], cut.active.alpha[support], -rho, rows=rows, rho=rho
        )
        counters = {**cut.work, "active": len(cut.members), "systems": cut.active.steps}
        return self._note(cut.iterations, cut.reason, counters, bounded=0)

    def solve(
        self, source: KernelSource, y: np.ndarray | None = None, start: np.ndarray | None = None
    ) -> KernelSolution:
        """Search on one kernel matrix; `y` and `start` are ignored."""
        cut = self.search(source)
        coefficients = np.zeros(source.n_samples)
        coefficients[cut.members] = cut.active.alpha
        rho = margin_of(cut)
        return KernelSolution(
            coefficients, -rho, cut.iterations, cut.reason, dict(cut.work), rho=rho
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
            bound = iteration_bound(float(self.theta), min(1.0, values.square) ** 0.5)
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
    counters=("active", "candidates", "iteration_bound", "systems"),
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
            Everyone(columns, 1.0)(begin_cut(source))

    def search(self, source: KernelSource) -> Cut:
        """Run Algorithm 2, and return its final state."""
        theta, limit, budget = float(self.theta), int(self.max_iter), float(self.cache_mb)
        cut = begin_cut(source)
        columns = columns_for(source, theta)
        select = Everyone(columns, budget)
        grow_active_set(source, cut, select, theta, limit)
        in_doubt = cut.reason == "converged" and columns.dtype == np.float32
        if in_doubt and not is_confirmed(source, cut, select.scores, theta):
            grow_active_set(source, cut, Everyone(DoubleColumns(source), budget), theta, limit)
        return cut


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
        select = Drawn(source, int(self.n_candidates), generator(self.random_state))
        members = self.members_.tolist()
        outside = np.setdiff1d(np.arange(len(data.y)), self.members_)
        scores = self._decide(data.X[outside]) + self.offset_
        return Candidates(outside, scores, lambda: select.draw(members))

    def search(self, source: KernelSource) -> Cut:
        """Run Algorithm 3, and return its final state."""
        cut = begin_cut(source)
        select = Drawn(source, int(self.n_candidates), generator(self.random_state))
        grow_active_set(source, cut, select, float(self.theta), int(self.max_iter))
        if cut.reason == "converged":
            cut.reason = PROBABLY
        return cut

    def evaluate_objective(self, data: TrainingData) -> Self:
        """Set the same attributes as :class:`FOSVM1`; warn if scores are below (1 - theta) rho."""
        super().evaluate_objective(data)
        if self.n_below_ and self.stop_reason_ == PROBABLY:
            warnings.warn(
                f"fosvm2's precision holds with a probability: {self.n_below_} of the "
                f"{len(data.y)} training samples are below (1 - theta) of the margin, with "
                f"theta={self.theta:g}; more n_candidates make that rarer, and fosvm1 is certain",
                ConvergenceWarning,
                stacklevel=3,
            )
        return self
