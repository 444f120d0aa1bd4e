"""The problem that every solver of this package solves, in one scale: multipliers between 0 and 1.

Problem
    min_a  1/2 a'Q a + q'a,   0 <= a_i <= 1,   e'a = total.
Which SVMs it is
    ν-SVM     Q_ij = y_i y_j K(x_i, x_j), q = 0, total = nu l,  alpha = a / l;
    OC-SVM    Q = K,                      q = 0, total = nu l,  alpha = a / (nu l);
    either with some multipliers fixed: Q and a of the others, q = Q[others, fixed] a[fixed].
Reason for a fixed sum, in place of a lower bound of the sum
    Both papers' constraint is e'a >= total. A solution with a larger sum can be scaled down and
    stays one (its w is 0), so that there is always one with e'a = total.
Its gradient
    d = Q a + q. Points keep v = -d, the form that the steps of ``csvc`` take. With q = 0 and
    a = l alpha, d_i is l times y_i <w, phi(x_i)>.
The duality gap
    a'd - min <d, s> over the feasible s: at least the distance to the optimum, for any feasible a.
Reference
    Section 2 of the SRBO paper (problems 2 and 4, table II); Frank and Wolfe 1956 for the gap.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from svmbench.base.compiled import compiled
from svmbench.core.contract.base import NO_MARGIN
from svmbench.core.numeric.arrays import raw

#: A gap may be rounding alone if it is at most this times the squared sum of the multipliers times
#: the largest Q_ii.
GAP_ROUNDINGS = 4.0 * np.finfo(np.float64).eps

#: A gap that may be rounding alone still counts as converged up to this share of the objective.
NEAR_OBJECTIVE = 1e-6

#: The gradient, which steps update, is computed anew if the gap to reach is at most this many times
#: the gap that rounding can make.
FOLLOWED_ROUNDINGS = 100.0

#: `total` within this share of the number of samples is an integer.
INTEGER_ROUNDING = 1e-9


@dataclass
class QPPoint:
    """A feasible point of the problem, changed in place by solvers."""

    # a, v (n,): multipliers, and ``-(Q a + q)``
    a: np.ndarray
    v: np.ndarray
    # steps: pair steps, updates of `dcdm`, or a library's iterations. newton_steps: systems solved
    # for many multipliers at once; a step of ``block_pivoting`` may solve several
    steps: int = 0
    newton_steps: int = 0
    # selected_steps: those of `newton_steps` that moved a selection of too many multipliers
    selected_steps: int = 0
    reason: str = "converged"  # ``"converged"``, ``"max_iter"``, ``"stalled"`` or `NO_MARGIN`
    gap: float = np.inf  # the duality gap once a solver has evaluated it
    drift: int = 0  # changes of the gradient since it was computed

    def copy(self) -> QPPoint:
        """Return a point of its own with the same values."""
        return replace(self, a=self.a.copy(), v=self.v.copy())


@dataclass(frozen=True)
class UnitProblem:
    """The problem as arrays."""

    # (n, n): C-ordered, float64, symmetric, positive semidefinite; not to be written to
    Q: np.ndarray
    # sum of the multipliers, between 0 and n; None where it is free, as the C-SVM's is
    total: float | None
    linear: np.ndarray = field(default_factory=lambda: np.zeros(0))  # (n,): q; zeros by default
    constant: float = 0.0  # what the fixed multipliers add to the objective
    diag: np.ndarray = field(default_factory=lambda: np.zeros(0))  # (n,): of Q

    def __post_init__(self) -> None:
        n = len(self.Q)
        if self.total is not None and not 0.0 <= self.total <= n * (1.0 + INTEGER_ROUNDING):
            msg = f"{n} multipliers of at most 1 can't have the sum {self.total:g}"
            raise ValueError(msg)
        if not len(self.linear):
            object.__setattr__(self, "linear", np.zeros(n))
        if not len(self.diag):
            object.__setattr__(self, "diag", raw(np.ascontiguousarray(self.Q.diagonal())))

    def value(self, point: QPPoint) -> float:
        """Return the objective, with the constant."""
        return 0.5 * float(point.a @ (self.linear - point.v)) + self.constant

    def gap(self, point: QPPoint) -> float:
        """Return the duality gap of a feasible point: at least its distance from the optimum."""
        d = -point.v
        return float(point.a @ d) - linear_minimum(d, self.total)

    def rounding_gap(self, point: QPPoint | None = None) -> float:
        """Return the gap that rounding can make: of the fixed sum, else the point's, else n."""
        most = self.total
        if most is None:
            # A C-SVM's multipliers are a small share of a large C.
            most = len(self.diag) if point is None else float(point.a.sum())
        return GAP_ROUNDINGS * most**2 * float(self.diag.max(initial=0.0))

    def target(self, point: QPPoint, tol: float) -> float:
        """Return the gap to reach: `tol` times the objective, and no less than rounding makes."""
        return max(tol * abs(self.value(point)), self.rounding_gap(point))

    def reason(self, point: QPPoint, tol: float) -> str:
        """Return why a search that ended at this point stopped; `point.gap` is known.

        ``"converged"``: the gap is at most `tol` times the objective, or, where rounding makes a
        larger gap, at most `NEAR_OBJECTIVE` times that. `NO_MARGIN`: a sum is fixed and the
        objective itself is no more than rounding, so that w is 0.
        """
        value, floor = abs(self.value(point)), self.rounding_gap(point)
        if self.vanishes(point) or (self.total is not None and max(value, point.gap) <= floor):
            return NO_MARGIN
        is_near = point.gap <= tol * value or point.gap <= min(floor, NEAR_OBJECTIVE * value)
        return "converged" if is_near else "stalled"

    def reaches(self, point: QPPoint, target: float) -> bool:
        """Return True if the gap is at most `target`; first renew a gradient that is inexact."""
        if point.drift > len(point.a) or (
            point.drift and target <= FOLLOWED_ROUNDINGS * self.rounding_gap(point)
        ):
            self.refresh(point)
        point.gap = self.gap(point)
        return point.gap <= target or self.vanishes(point)

    def vanishes(self, point: QPPoint) -> bool:
        """Return True if a sum is fixed, q = 0, and the objective is no more than rounding.

        No objective is below 0 then: this one is as near to the optimum as float64 can tell, while
        the gap, which is linear in w and not quadratic, may still be far above rounding.
        """
        if self.total is None or self.linear.any():
            return False
        return abs(self.value(point)) <= self.rounding_gap(point)

    def at(self, a: np.ndarray) -> QPPoint:
        """Return a point with its gradient."""
        return QPPoint(a, negative_gradient(self.Q, self.linear, a))

    def refresh(self, point: QPPoint) -> None:
        """Compute the gradient anew, without the rounding of the steps."""
        point.v[:] = negative_gradient(self.Q, self.linear, point.a)
        point.drift = 0

    def uniform(self) -> QPPoint:
        """Return the start that treats all samples alike."""
        n = len(self.Q)
        total = n / 2 if self.total is None else self.total
        return self.at(np.full(n, min(1.0, total / n) if n else 0.0))

    @property
    def sum(self) -> float:
        """The fixed sum of the multipliers."""
        assert self.total is not None, "this problem keeps a sum"
        return self.total


def negative_gradient(Q: np.ndarray, linear: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Return ``-(Q a + q)``; where few multipliers are not 0, of their rows alone."""
    if 2 * np.count_nonzero(a) > len(a):
        return np.asarray(-linear - Q @ a)
    v = -linear
    _subtract_rows(raw(Q), a, v)
    return v


@compiled
def subtract_chosen_rows(
    Q: np.ndarray, rows: np.ndarray, change: np.ndarray, v: np.ndarray
) -> None:
    """Do ``v -= change @ Q[rows]``, in place."""
    for j in range(len(rows)):
        t = change[j]
        if t != 0.0:
            row = Q[rows[j]]
            for k in range(len(v)):
                v[k] -= t * row[k]


@compiled
def _subtract_rows(Q: np.ndarray, change: np.ndarray, v: np.ndarray) -> None:
    """Subtract ``Q change`` from v, in place, by the rows whose change is not 0; Q is symmetric.

    `rows.subtract_rows` needs the positions of those rows. For the 2 rows of a step it took 1.4
    times as long with 5,000 samples and 3 times with 300; for 20 rows and 2,000 samples or more,
    the same.
    """
    for j in range(len(change)):
        if change[j] != 0.0:
            row, t = Q[j], change[j]
            for k in range(len(v)):
                v[k] -= t * row[k]


def move_point(Q: np.ndarray, point: QPPoint, a: np.ndarray) -> None:
    """Move a point to other multipliers; the gradient follows by the rows that change."""
    change = a - point.a
    _subtract_rows(raw(Q), change, point.v)
    point.drift += int(np.count_nonzero(change))
    point.a[:] = a


def linear_minimum(d: np.ndarray, total: float | None) -> float:
    """Return ``min <d, s>`` over 0 <= s <= 1 of sum `total`, or of any sum if that is None."""
    if total is None:
        return float(np.minimum(d, 0.0).sum())
    whole = min(int(total), len(d))
    rest = total - whole
    if whole == len(d):
        return float(d.sum())
    part = np.partition(d, whole)
    return float(part[:whole].sum() + rest * part[whole])


def order_of_margin(n: int, total: float) -> tuple[int, int]:
    """Return the order statistics of d that the margin lies between, from the largest on.

    With ``i = n - total``: if i is no integer, the margin is the ceil(i)-th largest d, and both
    positions are ceil(i). If i is an integer, the margin lies between the (i+1)-th and the i-th.

    Return the position of the upper and of the lower bound, counted from 1 for the largest d. The
    first is 0 without an upper bound, the second n + 1 without a lower bound.
    """
    i = n - total
    nearest = round(i)
    if abs(i - nearest) <= INTEGER_ROUNDING * n:
        return int(nearest), int(nearest) + 1
    k = int(np.ceil(i))
    return k, k


def kth_largest(values: np.ndarray, k: int) -> float:
    """Return the k-th largest, counted from 1; infinite beyond either end."""
    if k < 1:
        return np.inf
    if k > len(values):
        return -np.inf
    return float(np.partition(values, len(values) - k)[len(values) - k])


def margin(
    point: QPPoint,  # optimal
    total: float,
) -> float:
    """Return rho times the scale of d, by the ν-property.

    Where `total` is an integer, several values are right: the mean of the free multipliers' d is
    returned, or the middle.
    """
    d = -point.v
    above, below = order_of_margin(len(d), total)
    high, low = kth_largest(d, above), kth_largest(d, below)
    if high == low:
        return high
    free = (point.a > 0.0) & (point.a < 1.0)
    if np.any(free):
        return float(np.clip(d[free].mean(), low, high))
    if not np.isfinite(high):
        return low
    return high if not np.isfinite(low) else 0.5 * (low + high)


def restore_sum(a: np.ndarray, total: float) -> None:
    """Bring the sum of a point back to `total` where rounding has moved it, in place."""
    for _ in range(3):
        missing = total - float(a.sum())
        if missing == 0.0:
            return
        room = a < 1.0 if missing > 0.0 else a > 0.0
        free = np.flatnonzero(room & (a > 0.0) & (a < 1.0))
        takers = free if len(free) else np.flatnonzero(room)
        if not len(takers):
            return
        a[takers] = np.clip(a[takers] + missing / len(takers), 0.0, 1.0)
