"""The ν-SVC with a free offset: the pair solver with two kept sums.

Problem
    min_alpha  1/2 alpha' Q alpha,   0 <= alpha_i <= 1/N,   e'alpha >= nu,   y'alpha = 0,
    Q_ij = y_i y_j K(x_i, x_j);   f(x) = sum_j alpha_j y_j K(x_j, x) + b:
    the dual of 1/2 ||w||^2 - nu rho + 1/N sum_i max(0, rho - y_i f(x_i)).
Given
    A kernel source, y in {-1, +1}, nu, tol.
Returned
    alpha, b and rho, once the conditions hold within tol for the problem times N (LIBSVM's scale,
    in which a multiplier is at most 1 and f is N times as large), or within tol times rho in that
    scale, where rho is below 1 there. Relative to rho, they are the conditions of the C-SVC with
    the same f / rho, whose C is 1 / (N rho); see ``csvc/solver``.
The smallest useful nu
    The optimum is w = 0, rho = 0, a model of no use, for every nu up to nu_min, the smallest mean
    hinge loss of any (w, b): with (t w, t b, t) for small t > 0 the primal value is below 0 if the
    mean hinge loss of (w, b) is below nu, and at alpha with w = 0 and sum nu no mean hinge loss is
    below nu. The C-SVC's sum of alpha over C N falls with C, down to nu_min as C grows, and at each
    C the two problems have the same f / rho for that nu (Chang and Lin 2001).
Reference
    Schölkopf, Smola, Williamson and Bartlett 2000; Chang and Lin 2001 (e'alpha = nu at an optimum,
    so that each class has the sum nu/2; pairs of one class; the range of nu).
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from svmbench.core.contract.base import NO_MARGIN, TrainingData, Weighted, most_iterations
from svmbench.core.contract.declaration import KERNELS
from svmbench.core.contract.registry import declare
from svmbench.core.csvc.problem import (
    QPProblem,
    csvc_problem,
    make_qp,
    start_of_sum,
    thresholds,
)
from svmbench.core.csvc.solver import ShareOfMargin, solve_qp, warm_up_solver
from svmbench.core.kernels.kernels import KernelSource
from svmbench.core.models.kernel_base import KernelClassifier, KernelParameters, KernelSolution

#: Samples from which the scale of the kernel is taken.
SCALE_SAMPLES = 300

#: C of the C-SVC of `useful_nu`, in units of 1 / (mean squared distance from the mean).
C_IN_SCALE = 10.0

#: It stops once mean hinge loss plus ``||w||^2 / (2 C N)`` is so near to the least; or at a
#: violation of C_SVC_TOL, or after so many steps a sample.
C_SVC_GAP, C_SVC_TOL, C_SVC_STEPS = 1e-2, 1e-2, 20


def no_margin(
    nu: float,
    useful: float,  # a nu that has a margin
    most: float = 1.0,  # the largest that is feasible
) -> str:
    """Return the predicate of the warning that there is no margin."""
    start = f"finds no margin at nu={nu:g}"
    if useful >= (1.0 - 1e-6) * most:
        return f"{start}, where the model is w = 0, and knows of none at a larger nu"
    if useful > nu:
        # Two digits, rounded up: below `useful` there may be none.
        unit = 10.0 ** (np.floor(np.log10(useful)) - 1.0)
        told = min(most, float(np.ceil(useful / unit)) * unit)
        return f"{start}, where the model is w = 0: nu={told:.2g} has one"
    return f"{start} within its steps, where there is a narrow one: take a larger nu"


def nu_svc_problem(
    y: np.ndarray,  # (n,): labels ±1
    nu: float,
    weights: np.ndarray | None = None,  # (n,): upper bounds in place of 1; their mean is 1
) -> tuple[QPProblem, np.ndarray]:
    """Return the problem times N in signed variables ``N alpha_i y_i``, and a feasible start.

    Raise ValueError if a class has too few samples for half of nu; says how much there can be.
    """
    n = len(y)
    low, high = np.minimum(y, 0.0), np.maximum(y, 0.0)
    if weights is not None:
        low, high = low * weights, high * weights
    most = largest_nu(y, weights)
    if nu > most:
        msg = f"nu={nu:g} is too large: with this smaller class it can be {most:g} at most"
        raise ValueError(msg)
    start = start_of_sum(0.5 * nu * n, high) - start_of_sum(0.5 * nu * n, -low)
    return make_qp(np.zeros(n), low, high, (y < 0.0).astype(np.int64)), start


def largest_nu(y: np.ndarray, weights: np.ndarray | None = None) -> float:
    """Return the largest feasible nu with a free offset: twice the share of the smaller class."""
    shares = np.ones(len(y)) if weights is None else weights
    positive = float(shares[y > 0.0].sum())
    return 2.0 * min(positive, float(shares.sum()) - positive) / len(y)


def useful_nu(
    source: KernelSource,
    y: np.ndarray,  # (n,): labels ±1
    weights: np.ndarray | None = None,  # (n,): of the samples, of mean 1
    *,
    # whether the matrix is Q, which has the labels in it; f has no free offset then
    is_signed: bool = False,
) -> float:
    """Return a nu at which the ν-SVM certainly has a margin; the largest feasible if none is known.

    It is the mean hinge loss of a C-SVC plus ``||w||^2 / (C N)``, which at the C-SVC's optimum is
    the sum of its multipliers over C N, and at any (w, b), the optimum or not, a nu that has a
    margin. A larger C would find narrower margins, at smaller nu, in many more steps.
    """
    n, y = len(y), np.asarray(y, dtype=np.float64)
    some = np.unique(np.linspace(0, n - 1, min(n, SCALE_SAMPLES)).astype(np.int64))
    K = source.block(some, some)
    if is_signed:
        K = K * np.outer(y[some], y[some])
    # The mean squared distance from the mean in feature space.
    scale = float(np.trace(K)) / len(some) - float(K.mean())
    if scale <= np.finfo(np.float64).eps * float(np.abs(K).max()):
        return largest_nu(y, weights)
    C, signs = C_IN_SCALE / scale, np.ones(n) if is_signed else y
    box = csvc_problem(signs, C, offset=not is_signed, weights=weights)
    found = solve_qp(source, box, tol=C_SVC_TOL, max_iter=C_SVC_STEPS * n, gap=C_SVC_GAP)
    b = float(thresholds(box, found.beta, found.v).sum())
    losses = np.maximum(0.0, 1.0 - signs * (box.linear - found.v + b))
    square = float(found.beta @ (box.linear - found.v))
    mean = float(losses.mean() if weights is None else weights @ losses / n)
    return mean + square / (C * n)


@declare(
    name="nu-svc",
    problem="nu-svc",
    promise="violation relative to rho",
    summary="ν-SVC with a free offset: pairs within a class, on csvc's rows and blocks",
    reference="Schölkopf, Smola, Williamson and Bartlett 2000; Chang and Lin 2001",
    paper="",
    kernels=KERNELS,
)
@dataclass(eq=False, repr=False)
class NuSVC(KernelParameters, Weighted, KernelClassifier):
    """ν-SVC, as LIBSVM's but for the scale: here that of the paper, where margins are rho wide.

    LIBSVM's decision values are these over rho. Weights of samples count relative to their mean, so
    that nu is a share of their sum; there are none of classes, which would leave nu no room.

    Parameters
    ----------
    nu : float
        Upper bound of the share of samples within the margin, and lower bound of the share of
        support vectors; above 0, and at most twice the share of the smaller class.
    tol : float
        Largest violation of the optimality conditions: as a share of rho, and in LIBSVM's scale
        (its eps) where rho is above 1 in that scale. Rounding of kernel values is allowed for.
    max_iter : int
        Largest number of steps; -1 for no limit.

    Attributes
    ----------
    expansion_ : Expansion
        The model; its `rho` is half of the margin's width.
    objective_, dual_objective_ : float
        Primal value at b and rho, and dual value.
    n_iter_ : int
        Pair steps, and on up to 2,000 samples Newton steps of all free multipliers.
    stop_reason_ : str
        ``"converged"``, ``"max_iter"``, ``"stalled"`` (no step is left that float64 can see) or
        ``"no margin"``: nu is too small for the data, and the model is w = 0; a warning names a
        nu that has a margin.
    counters_ : dict
        ``kernel_evaluations``, ``updates`` (steps), ``checks`` (of the gradient in float64),
        ``support_vectors``, ``bounded_support_vectors``.

    Raises
    ------
    ValueError
        If `nu` is too large for the smaller class.

    Examples
    --------
    >>> from svmbench.core.nu.nu_svc import NuSVC
    >>> NuSVC(kernel="linear").fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]).predict([[1.9]])
    array([0])
    """

    nu: float = 0.5
    _: KW_ONLY
    tol: float = 1e-3
    max_iter: int = 10_000_000
    cache_mb: float = 1024.0
    decision_function_shape: str = "ovr"
    break_ties: bool = False

    needs_parameters: ClassVar[tuple[str, ...]] = ("nu", "kernel", "gamma", "degree", "coef0")

    may_run_on: ClassVar[bool] = True

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not (isinstance(self.nu, Real) and 0.0 < float(self.nu) <= 1.0):
            msg = f"nu must be a number above 0 and at most 1, got nu={self.nu!r}"
            raise ValueError(msg)

    @classmethod
    def warm_up_rest(cls) -> None:
        """Call what larger problems need, and problems of a given matrix."""
        super().warm_up_rest()
        warm_up_solver(np.array([0, 0, 1, 1]))
        for dtype in (np.float32, np.float64):
            source = KernelSource.precomputed(np.eye(2, dtype=dtype))
            cls().solve(source, np.array([1.0, -1.0]))

    def _sum_weight(self, data: TrainingData) -> float:
        return float(self.nu)

    def _weigh(self, labels: np.ndarray, sample_weight: Any) -> np.ndarray | None:
        weights = super()._weigh(labels, sample_weight)
        return None if weights is None else weights / weights.mean()

    def what_is_useless(self, data: TrainingData) -> str:
        """Return the predicate of a warning where there is no margin, else ""."""
        if self.stop_reason_ != NO_MARGIN:
            return ""
        useful = useful_nu(self._source(data), data.y, data.weights)
        return no_margin(self.nu, useful, largest_nu(data.y, data.weights))

    def solve(
        self,
        source: KernelSource,
        y: np.ndarray,
        start: np.ndarray | None = None,
        weights: np.ndarray | None = None,
    ) -> KernelSolution:
        """Solve on one kernel matrix; `start` is ignored, since it fits one nu alone.

        The mean of `weights` (n_samples,) is 1, and so is each of them by default.
        """
        n = len(y)
        # Sorted by class, so that steps in a class read one run of a kernel row. A stored matrix
        # stays as it is: sorting would copy it.
        order = np.arange(n) if source.is_stored else np.argsort(-y, kind="stable")
        sorted_weights = None if weights is None else weights[order]
        box, first = nu_svc_problem(y[order], float(self.nu), sorted_weights)

        def rho(beta: np.ndarray, v: np.ndarray) -> float:
            positive, negative = thresholds(box, beta, v)
            return 0.5 * float(negative - positive)

        found = solve_qp(
            source if source.is_stored else source.subset(order),
            box,
            start=first,
            tol=ShareOfMargin(float(self.tol), rho),
            max_iter=most_iterations(self.max_iter),
            cache_mb=float(self.cache_mb),
        )
        # On the margin of a class, -v = sum_j beta_j K_ij is +-rho - b, in this scale.
        positive, negative = thresholds(box, found.beta, found.v)
        b = 0.5 * float(positive + negative) / n
        beta, v = np.empty(n), np.empty(n)
        beta[order], v[order] = found.beta, found.v
        return KernelSolution(
            beta / n,
            b=b,
            rho=0.5 * float(negative - positive) / n,
            n_iter=found.steps,
            stop_reason=found.stop_reason,
            counters=found.counters,
            decisions=b - v / n,
        )
