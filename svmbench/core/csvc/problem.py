"""The problem as arrays: linear term, bounds of every variable, and which sums are fixed.

Problem
    max_beta  p'beta - 1/2 beta'K beta,   low <= beta <= high,
    and a fixed sum of beta over each group of variables (an equality constraint; its Lagrange
    multiplier is the group's threshold).
Its gradient
    v = p - K beta. The conditions hold within tol once, in every group, the largest v of those
    that can go up is at most tol above the smallest v of those that can go down. Where no sum is
    fixed the threshold between the two is 0, as if there were one more variable with gradient 0
    that nothing stops.

============================  ====================  ====================  ===================
problem (all in beta = y a)   p                     bounds                fixed sums
============================  ====================  ====================  ===================
C-SVC                         y                     between 0 and C y     one (it is 0)
C-SVC with sample weights     y                     between 0 and C_i y   one (it is 0)
C-SVC without an offset       y                     between 0 and C y     none
nu-SVC                        0                     between 0 and y       one a class
one-class                     0                     0 and 1               one (it is nu n)
SVDD                          half the diagonal     0 and C               one (it is 1)
============================  ====================  ====================  ===================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from svmbench.base.compiled import JIT_DISABLED, compiled, compiled_sums, wide_vectors
from svmbench.core.numeric.arrays import raw

#: Relative rounding of a fixed sum, and of a variable at its bound.
SUM_ROUNDING = 1e-12

#: Rounding of a variable near 0, as a share of the largest absolute value of all variables.
ZERO_ROUNDING = 4.0 * float(np.finfo(np.float64).eps)


def _python_larger(a: float, b: float) -> float:
    """Return the larger of two numbers, neither of them NaN."""
    return a if a > b else b


def _make_larger() -> Any:
    from numba.extending import intrinsic

    @intrinsic
    def larger(typing_context: Any, a: Any, b: Any) -> Any:
        """Return the larger of two numbers of one type, neither of them NaN."""

        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            # Without NaN and signed zero the order of a maximum is free, so it vectorises.
            flags = ("nnan", "nsz")
            return builder.select(builder.fcmp_ordered(">", *args, flags=flags), *args, flags=flags)

        return a(a, a), emit

    return larger


larger: Any = _python_larger if JIT_DISABLED else _make_larger()


@dataclass(frozen=True)
class QPProblem:
    """A problem without its kernel matrix; made by :func:`make_qp`. Arrays are not written to."""

    linear: np.ndarray  # (n,): p
    low: np.ndarray  # (n,)
    high: np.ndarray  # (n,)
    # int (n,): the sum that each variable is part of, from 0; zeros where there is one or none
    group: np.ndarray
    n_sums: int  # the number of fixed sums

    def take(self, positions: np.ndarray) -> QPProblem:
        """Return the problem of some of the variables."""
        linear, low, high = self.linear[positions], self.low[positions], self.high[positions]
        return QPProblem(linear, low, high, self.group[positions], self.n_sums)


def make_qp(
    linear: np.ndarray, low: np.ndarray, high: np.ndarray, fixed: str | np.ndarray = "sum"
) -> QPProblem:
    """Return a problem, with its parts checked.

    Parameters
    ----------
    linear, low, high : ndarray of shape (n,)
        Linear term, lower and upper bounds; a variable whose two bounds are equal never moves.
    fixed : {"sum", "none"} or ndarray of int of shape (n,)
        Which sums the problem fixes: the sum of all variables, none, or the sum of each group; the
        array has the number of each variable's group, from 0.
    """
    shape = np.shape(linear)
    for name, bound in (("low", low), ("high", high)):
        if np.shape(bound) != shape:
            msg = f"linear has shape {shape}, {name} has shape {np.shape(bound)}: make them equal"
            raise ValueError(msg)
    if np.any(np.asarray(low) > np.asarray(high)):
        raise ValueError(
            "a lower bound is above its upper bound: no variable can be in that problem"
        )
    if isinstance(fixed, str):
        if fixed not in ("sum", "none"):
            msg = f"fixed must be 'sum', 'none' or an array of groups, got fixed={fixed!r}"
            raise ValueError(msg)
        group, n_sums = np.zeros(shape, dtype=np.int64), int(fixed == "sum")
    else:
        group = np.asarray(fixed, dtype=np.int64)
        n_sums = int(group.max(initial=-1)) + 1
        if group.shape != shape or group.min(initial=0) < 0:
            msg = f"groups must be {shape} numbers from 0 on, one a variable"
            raise ValueError(msg)
    p, least, most = (np.array(part, dtype=np.float64) for part in (linear, low, high))
    return QPProblem(p, least, most, group, n_sums)


def start_of_sum(total: float, high: np.ndarray) -> np.ndarray:
    """Return a start of a given sum between 0 and `high`: full from the first variable on."""
    high = np.asarray(high, dtype=np.float64)
    before = np.cumsum(high) - high
    start = np.clip(total - before, 0.0, high)
    if start.sum() < total * (1.0 - SUM_ROUNDING):
        msg = f"upper bounds add up to {high.sum():g}, less than the fixed sum {total:g}"
        raise ValueError(msg)
    return start


@compiled
def label_bounds(y: np.ndarray, C: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the bounds of a C-SVC's signed variables: [0, C] for y_i = 1, [-C, 0] for -1."""
    n = len(y)
    low, high = np.empty(n), np.empty(n)
    for k in range(n):
        low[k], high[k] = min(0.0, y[k] * C), max(0.0, y[k] * C)
    return low, high


def csvc_problem(
    y: np.ndarray, C: float, *, offset: bool = True, weights: np.ndarray | None = None
) -> QPProblem:
    """Return the problem of a C-SVC with labels ±1; without an offset no sum is fixed.

    `weights` (n,) multiply C of each sample; a sample of weight 0 never moves.
    """
    low, high = label_bounds(raw(y), C)
    if weights is not None:
        low, high = low * weights, high * weights
    return QPProblem(y, low, high, np.zeros(len(y), dtype=np.int64), int(offset))


class UpLowSets(NamedTuple):
    """The gradient over I_up and I_low, with m(alpha) and M(alpha)."""

    v_up: np.ndarray  # (n,): v over I_up, else -inf
    v_low: np.ndarray  # (n,): v over I_low, else inf
    # the largest of v_up, the smallest of v_low; with several fixed sums, (n,): of each variable's
    # group
    m: float | np.ndarray
    M: float | np.ndarray

    @property
    def violation(self) -> float:
        """The violation m - M; at most 0 at an optimum."""
        widths = self.m - self.M
        return float(widths.max()) if isinstance(widths, np.ndarray) else widths


@compiled
def split_up_low(
    low: np.ndarray,
    high: np.ndarray,
    beta: np.ndarray,
    v: np.ndarray,
    v_up: np.ndarray,
    v_low: np.ndarray,
) -> tuple[float, float]:
    """Write v over I_up (else -inf) and I_low (else inf); return m(alpha) and M(alpha)."""
    m, M = -np.inf, np.inf
    for k in range(len(v)):
        v_up[k] = v[k] if beta[k] < high[k] else -np.inf
        v_low[k] = v[k] if beta[k] > low[k] else np.inf
        m, M = max(m, v_up[k]), min(M, v_low[k])
    return m, M


def up_low_sets(problem: QPProblem, beta: np.ndarray, v: np.ndarray) -> UpLowSets:
    """Return the gradient of I_up and I_low with m(alpha) and M(alpha)."""
    v_up, v_low = np.empty(len(v)), np.empty(len(v))
    m, M = split_up_low(problem.low, problem.high, beta, v, v_up, v_low)
    if problem.n_sums == 0:
        m, M = max(m, 0.0), min(M, 0.0)
    if problem.n_sums <= 1:
        return UpLowSets(v_up, v_low, m, M)
    m_of, M_of = extremes_of_groups(v_up, v_low, problem.group, problem.n_sums)
    return UpLowSets(v_up, v_low, m_of, M_of)


@compiled
def extremes_of_groups(
    v_up: np.ndarray, v_low: np.ndarray, group: np.ndarray, n_sums: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest `v_up` and the smallest `v_low` of each variable's group, (n,) each."""
    m, M = np.full(n_sums, -np.inf), np.full(n_sums, np.inf)
    for k in range(len(group)):
        g = group[k]
        m[g], M[g] = max(m[g], v_up[k]), min(M[g], v_low[k])
    return m[group], M[group]


@compiled
def settle_at_bounds(low: np.ndarray, high: np.ndarray, beta: np.ndarray) -> None:
    """Move variables to the bound that they are at but for rounding, in place.

    Where a sum is fixed, the variable that moves last can end an ulp before its bound. There it
    would count as free, and decide the threshold alone.
    """
    largest = 0.0
    for k in range(len(beta)):
        largest = max(largest, abs(beta[k]))
    for k in range(len(beta)):
        for bound in (low[k], high[k]):
            near = max(SUM_ROUNDING * abs(bound), ZERO_ROUNDING * largest)
            if beta[k] != bound and abs(beta[k] - bound) <= near and low[k] < high[k]:
                beta[k] = bound
                break


@compiled
def threshold(low: np.ndarray, high: np.ndarray, beta: np.ndarray, v: np.ndarray) -> float:
    """Return the threshold of one fixed sum: the mean gradient of its free variables.

    Without a free one it is the middle of m and M, or the finite one if the other is infinite.
    """
    total, free = 0.0, 0
    for k in range(len(beta)):
        if low[k] < beta[k] < high[k]:
            total += v[k]
            free += 1
    if free:
        return total / free
    m, M = up_low_extremes(low, high, beta, v)
    if m == -np.inf:
        return M
    return m if np.inf == M else 0.5 * (m + M)


@compiled_sums
def duality_gap(
    low: np.ndarray, high: np.ndarray, beta: np.ndarray, v: np.ndarray, b: float
) -> float:
    """Return the primal value at the threshold b minus the dual value, where one sum is fixed.

    With u = v - b it is the sum of max(low u, high u) - beta u, no part of which is negative: the
    primal value is 1/2 beta'K beta + b (sum of beta) + the sum of max(low u, high u), the dual
    one p'beta - 1/2 beta'K beta, and p - K beta = v. For a C-SVC max(low u, high u) is
    C max(0, 1 - y f), and b its offset. Where no sum is fixed b is 0.
    """
    total = 0.0
    for k in range(len(v)):
        u = v[k] - b
        total += max(low[k] * u, high[k] * u) - beta[k] * u
    return total


def gap_of_problem(problem: QPProblem, beta: np.ndarray, v: np.ndarray) -> float:
    """Return :func:`duality_gap` of any problem, at the thresholds that a model would have."""
    b = thresholds(problem, beta, v)[problem.group] if problem.n_sums else np.zeros(len(v))
    return float(duality_gap(problem.low, problem.high, beta, v - b, 0.0))


def least_gap(problem: QPProblem, beta: np.ndarray, v: np.ndarray) -> float:
    """Return :func:`duality_gap` at the best threshold of each fixed sum; there must be one.

    It is the most that v'(x - beta) can be for an x within the bounds with the sums of beta: each
    group's largest v get their upper bounds, as far as the sum goes.
    """
    rise = 0.0
    for g in range(problem.n_sums):
        members = np.flatnonzero(problem.group == g)
        members = members[np.argsort(-v[members])]
        low, room = problem.low[members], (problem.high - problem.low)[members]
        x = low + np.clip(beta[members].sum() - low.sum() - (np.cumsum(room) - room), 0.0, room)
        rise += float(v[members] @ (x - beta[members]))
    return rise


def thresholds(problem: QPProblem, beta: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return the threshold of each fixed sum, shape (n_sums,); a C-SVC has one, its offset."""
    if problem.n_sums == 1:
        return np.array([threshold(problem.low, problem.high, beta, v)])
    bounds = problem.low, problem.high
    return thresholds_of_groups(*bounds, problem.group, problem.n_sums, beta, v)


@compiled
def thresholds_of_groups(
    low: np.ndarray,
    high: np.ndarray,
    group: np.ndarray,
    n_sums: int,
    beta: np.ndarray,
    v: np.ndarray,
) -> np.ndarray:
    """Return :func:`threshold` of each group, shape (n_sums,)."""
    levels = np.empty(n_sums)
    for g in range(n_sums):
        members = np.flatnonzero(group == g)
        levels[g] = threshold(low[members], high[members], beta[members], v[members])
    return levels


@compiled
def up_low_extremes(
    low: np.ndarray, high: np.ndarray, beta: np.ndarray, v: np.ndarray
) -> tuple[float, float]:
    """Return m(alpha) and M(alpha), -inf and inf of empty sets; no gradient may be NaN."""
    wide_vectors()
    m, M = -np.inf, -np.inf
    for k in range(len(v)):
        m = larger(m, v[k] if beta[k] < high[k] else -np.inf)
        M = larger(M, -v[k] if beta[k] > low[k] else -np.inf)
    return m, -M
