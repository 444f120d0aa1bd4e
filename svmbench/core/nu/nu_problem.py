"""The ν-SVC's problem in signed variables, and the range of ν in which it has a model.

Problem
    That of ``nu_svc``, times N: multipliers are at most 1, each class has the sum nu N/2.
The smallest useful nu
    The optimum is w = 0, rho = 0, a model of no use, for every nu up to nu_min, the smallest mean
    hinge loss of any (w, b). If (w, b) has a mean hinge loss below nu, then (t w, t b) with rho = t
    has a primal value below 0 for small t > 0. Conversely, if a feasible alpha of sum nu gives
    w = 0, the optimum is 0, and no mean hinge loss is below nu. The C-SVC's sum of alpha over C N
    falls with C, down to nu_min as C grows, and at each C the two problems have the same f / rho
    for that nu (Chang and Lin 2001).
The largest feasible nu
    With a free offset each class has the sum nu/2 of multipliers at most 1/N.
Reference
    Chang and Lin 2001.
"""

from __future__ import annotations

import numpy as np

from svmbench.core.csvc.problem import (
    SUM_ROUNDING,
    QPProblem,
    csvc_problem,
    make_qp,
    start_of_sum,
    thresholds,
)
from svmbench.core.csvc.solver import solve_qp
from svmbench.core.kernels.kernels import KernelSource

#: Samples from which the scale of the kernel is taken; a rough one is enough to choose C.
SCALE_SAMPLES = 100

#: C of the C-SVC of `useful_nu`, in units of 1 / (mean squared distance from the mean).
C_IN_SCALE = 10.0

#: The C-SVC of `useful_nu` stops once its duality gap is at most C_SVC_GAP, in units of C N, or its
#: violation at most C_SVC_TOL; or after C_SVC_STEPS steps for each sample.
C_SVC_GAP, C_SVC_TOL, C_SVC_STEPS = 1e-2, 1e-2, 20


def no_margin(
    nu: float,
    useful: float,  # a nu that has a margin
    largest: float = 1.0,  # the largest feasible nu
) -> str:
    """Return the warning that there is no margin, without its first word, the solver's name."""
    start = f"finds no margin at nu={nu:g}"
    if useful >= (1.0 - 1e-6) * largest:
        return f"{start}, where the model is w = 0, and knows of none at a larger nu"
    if useful > nu:
        # Below `useful` there may be none.
        return f"{start}, where the model is w = 0: nu={_rounded_up(useful, largest)} has one"
    return f"{start} within its steps, where there is a narrow one: take a larger nu"


def _rounded_up(value: float, largest: float) -> str:
    """Return a number from `value` to `largest` in as few digits as there is one, from two on."""
    for digits in range(2, 17):
        unit = 10.0 ** (np.floor(np.log10(value)) + 1.0 - digits)
        text = f"{float(np.ceil(value / unit)) * unit:.{digits}g}"
        if value <= float(text) <= largest:
            return text
    return repr(largest)


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
    require_feasible(nu, largest_nu(y, weights))
    start = start_of_sum(0.5 * nu * n, high) - start_of_sum(0.5 * nu * n, -low)
    return make_qp(np.zeros(n), low, high, (y < 0.0).astype(np.int64)), start


def require_feasible(nu: float, largest: float) -> None:
    """Raise ValueError if nu is above the largest feasible one by more than rounding."""
    if nu > largest * (1.0 + SUM_ROUNDING):
        msg = f"nu={nu:g} is too large: with this smaller class it can be {largest:g} at most"
        raise ValueError(msg)


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
    problem = csvc_problem(signs, C, offset=not is_signed, weights=weights)
    result = solve_qp(source, problem, tol=C_SVC_TOL, max_iter=C_SVC_STEPS * n, gap=C_SVC_GAP)
    b = float(thresholds(problem, result.beta, result.v).sum())
    losses = np.maximum(0.0, 1.0 - signs * (problem.linear - result.v + b))
    squared_norm = float(result.beta @ (problem.linear - result.v))
    mean = float(losses.mean() if weights is None else weights @ losses / n)
    return mean + squared_norm / (C * n)
