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
    the same f / rho, whose C is 1 / (N rho); see ``csvc/margin_tolerance``.
Reference
    Schölkopf, Smola, Williamson and Bartlett 2000; Chang and Lin 2001 (e'alpha = nu at an optimum,
    so that each class has the sum nu/2; pairs of one class).
"""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np

from svmbench.core.base import TrainingData, most_iterations
from svmbench.core.kernel.csvc import Box, ShareOfMargin, fill, make_box, solve_box, thresholds
from svmbench.core.kernel_base import KernelSolution
from svmbench.core.kernel_classifier import KernelClassifier
from svmbench.core.kernels import KERNELS, KernelSource
from svmbench.core.registry import declare
from svmbench.core.weights import Weighted


def box_and_start(
    y: np.ndarray, nu: float, weights: np.ndarray | None = None
) -> tuple[Box, np.ndarray]:
    """Return the problem times N in signed variables ``N alpha_i y_i``, and a feasible start.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Labels ±1.
    nu : float
    weights : ndarray of shape (n,), optional
        Upper bounds in place of 1; their mean is 1.

    Raises
    ------
    ValueError
        If a class has too few samples for half of nu; says how much there can be.
    """
    n = len(y)
    low, high = np.minimum(y, 0.0), np.maximum(y, 0.0)
    if weights is not None:
        low, high = low * weights, high * weights
    most = 2.0 * min(float(high.sum()), -float(low.sum())) / n
    if nu > most:
        msg = f"nu={nu:g} is too large: with this smaller class it can be {most:g} at most"
        raise ValueError(msg)
    start = fill(0.5 * nu * n, high) - fill(0.5 * nu * n, -low)
    return make_box(np.zeros(n), low, high, (y < 0.0).astype(np.int64)), start


@declare(
    name="nu-svc",
    problem="nu-svc",
    summary="ν-SVC with a free offset: pairs within a class, on csvc's rows and blocks",
    reference="Schölkopf, Smola, Williamson and Bartlett 2000; Chang and Lin 2001",
    paper="",
    kernels=KERNELS,
)
class NuSVC(Weighted, KernelClassifier):
    """ν-SVC, as LIBSVM's but for the scale: here that of the paper, where margins are rho wide.

    LIBSVM's decision values are these over rho. Weights of samples count relative to their mean, so
    that nu is a share of their sum; there are none of classes, which would leave nu no room.

    Parameters
    ----------
    nu : float, default=0.5
        Upper bound of the share of samples within the margin, and lower bound of the share of
        support vectors; above 0, and at most twice the share of the smaller class.
    kernel : {"linear", "rbf", "poly", "sigmoid", "precomputed"} or callable, default="rbf"
        As a function, of two sets of samples; it returns a matrix of values.
    gamma : float, "scale" or "auto", default="scale"
        Width of the kernel; "scale" is 1 / (n_features * variance of X), "auto" 1 / n_features.
    degree : int, default=3
        Of the polynomial kernel.
    coef0 : float, default=0.0
        Of the polynomial and the sigmoid kernel.
    tol : float, default=1e-3
        Largest violation of the optimality conditions: as a share of rho, and in LIBSVM's scale
        (its eps) where rho is above 1 in that scale. Rounding of kernel values is allowed for.
    max_iter : int, default=10000000
        Largest number of steps; -1 for no limit.
    cache_mb : float, default=1024.0
        Memory for kernel rows, MiB; any amount will do, and more saves work.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        What `decision_function` gives of more than two classes: a value a class, or a pair.
    break_ties : bool, default=False
        Whether equal votes of more than two classes go to the largest decision value ("ovr") in
        place of the first class.

    Attributes
    ----------
    support_ : ndarray of int of shape (n_support,)
    support_vectors_ : ndarray or csr_array of shape (n_support, n_features)
    dual_coef_ : ndarray of shape (1, n_support)
        ``alpha_i y_i``.
    intercept_ : ndarray of shape (1,)
    expansion_ : Expansion
        The model; its `rho` is half of the margin's width.
    objective_, dual_objective_ : float
        Primal value at b and rho, and dual value.
    n_iter_ : int
        Pair steps.
    stop_reason_ : str
        ``"converged"``, ``"max_iter"`` or ``"stalled"`` (no step is left that float64 can see).
    counters_ : dict
        ``kernel_evaluations``, ``updates`` (pair steps), ``checks`` (of the gradient in float64),
        ``support_vectors``, ``bounded_support_vectors``.

    Raises
    ------
    ValueError
        If `nu` is too large for the smaller class.

    Examples
    --------
    >>> from svmbench.core.kernel.nu_svc import NuSVC
    >>> NuSVC(kernel="linear").fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]).predict([[1.9]])
    array([0])
    """

    needs_parameters: ClassVar[tuple[str, ...]] = ("nu", "kernel", "gamma", "degree", "coef0")

    may_run_on: ClassVar[bool] = True

    def __init__(
        self,
        nu: float = 0.5,
        *,
        kernel: str = "rbf",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        tol: float = 1e-3,
        max_iter: int = 10_000_000,
        cache_mb: float = 1024.0,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
    ) -> None:
        self.nu = nu
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.max_iter = max_iter
        self.cache_mb = cache_mb
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not (isinstance(self.nu, Real) and 0.0 < float(self.nu) <= 1.0):
            msg = f"nu must be a number above 0 and at most 1, got nu={self.nu!r}"
            raise ValueError(msg)

    @classmethod
    def warm_up_rest(cls) -> None:
        """Call what problems of a given matrix need."""
        super().warm_up_rest()
        for dtype in (np.float32, np.float64):
            source = KernelSource.precomputed(np.eye(2, dtype=dtype))
            cls().solve(source, np.array([1.0, -1.0]))

    def _sum_weight(self, data: TrainingData) -> float:
        return float(self.nu)

    def _weigh(self, labels: np.ndarray, sample_weight: Any) -> np.ndarray | None:
        weights = super()._weigh(labels, sample_weight)
        return None if weights is None else weights / weights.mean()

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
        box, first = box_and_start(y, float(self.nu), weights)

        def rho(beta: np.ndarray, v: np.ndarray) -> float:
            positive, negative = thresholds(box, beta, v)
            return 0.5 * float(negative - positive)

        found = solve_box(
            source,
            box,
            start=first,
            tol=ShareOfMargin(float(self.tol), rho),
            max_iter=most_iterations(self.max_iter),
            cache_mb=float(self.cache_mb),
        )
        # On the margin of a class, -v = sum_j beta_j K_ij is +-rho - b, in this scale.
        positive, negative = thresholds(box, found.beta, found.v)
        b = 0.5 * float(positive + negative) / n
        return KernelSolution(
            found.beta / n,
            b=b,
            rho=0.5 * float(negative - positive) / n,
            n_iter=found.steps,
            stop_reason=found.stop_reason,
            counters=found.counters,
            decisions=b - found.v / n,
        )
