"""A small quadratic program over a simplex, and the cuts of a 1-slack cutting-plane loop over it.

Problem
    min_a  1/2 a'H a - b'a   over the simplex  a >= 0, sum_i a_i = s.
Given
    H (n, n) positive semidefinite, b, s > 0, a feasible start, a gap.
Returned
    a with a'g - s min_i g_i <= gap, g = H a - b: an upper bound of how far its value is from the
    optimum (the Frank-Wolfe gap, which is also the duality gap).
Method
    Sequential minimal optimisation: move mass to the coordinate with the least gradient from the
    one with mass that promises the largest decrease (second-order choice, Fan, Chen, Lin 2005).
"""

from __future__ import annotations

import numpy as np

from svmbench.base.compiled import compiled

#: Lower bound of a curvature, relative to the largest diagonal entry.
SMALLEST_CURVATURE = 1e-14


@compiled
def simplex_qp(
    H: np.ndarray, b: np.ndarray, s: float, a: np.ndarray, gap: float, max_iter: int
) -> tuple[int, float]:
    """Minimise in place from a feasible `a`, in at most `max_iter` steps; return steps and gap."""
    n = len(b)
    g = np.empty(n)
    flat = 0.0
    for i in range(n):
        total = -b[i]
        for j in range(n):
            total += H[i, j] * a[j]
        g[i] = total
        flat = max(flat, SMALLEST_CURVATURE * H[i, i])
    if flat == 0.0:
        flat = SMALLEST_CURVATURE
    reached = np.inf
    for step in range(max_iter + 1):
        i = 0
        weighted = 0.0
        for k in range(n):
            weighted += a[k] * g[k]
            if g[k] < g[i]:
                i = k
        reached = weighted - s * g[i]
        if reached <= gap or step == max_iter:
            return step, reached
        j, best = -1, 0.0
        for k in range(n):
            if a[k] > 0.0 and g[k] > g[i]:
                slope = g[k] - g[i]
                curvature = max(H[i, i] + H[k, k] - 2.0 * H[i, k], flat)
                # The mass a_k limits the step and its gain.
                t = min(slope / curvature, a[k])
                gain = t * (slope - 0.5 * t * curvature)
                if gain > best:
                    j, best = k, gain
        if j < 0:
            return step, reached
        curvature = max(H[i, i] + H[j, j] - 2.0 * H[i, j], flat)
        t = (g[j] - g[i]) / curvature
        if t >= a[j]:
            t = a[j]
            a[j] = 0.0
        else:
            a[j] -= t
        a[i] += t
        for k in range(n):
            g[k] += t * (H[i, k] - H[j, k])
    return max_iter, reached


#: A cut is dropped once it has had no weight in more than this many QPs in a row.
MAX_QPS_WITHOUT_WEIGHT = 50

#: Share of the gap that is left to which each QP is solved.
QP_GAP_SHARE = 0.1

#: Largest number of pair steps of one QP; a QP that needs more goes on at the next cut.
QP_MAX_STEPS = 200_000

#: Pair steps of all QPs together for each cut that is allowed; scaled features take a third.
STEPS_A_CUT = 500


class CutSet:
    """The cuts in use: their vectors, their Gram matrix and their weights.

    The cuts' constraints are <w, p_k> >= Delta_k - xi, and the dual of the problem over them is
    max sum_k alpha_k Delta_k - 1/2 ||w||^2 with w = sum_k alpha_k p_k, alpha >= 0, sum alpha = N C.
    """

    def __init__(
        self,
        total: float,  # sum of the weights: N C
        n_coordinates: int = 0,
        n_samples: int = 0,  # 0 if `members` are not kept
    ) -> None:
        self.total = total
        # (n_cuts, n_coordinates): the cuts' vectors, of which the first is the cut c = 0
        self.P = np.zeros((1, n_coordinates))
        self.H = np.zeros((1, 1))  # (n_cuts, n_cuts): P P'
        self.Deltas = np.zeros(1)  # (n_cuts,): shares of violated samples
        self.alpha = np.array([total])  # (n_cuts,): weights
        # uint8 (n_cuts, n_samples): the cuts themselves; empty once they are forgotten
        self.members = np.zeros((1 if n_samples else 0, n_samples), dtype=np.uint8)
        # int (n_cuts,): the last QPs in a row in which the cut had no weight
        self._qps_without_weight = np.zeros(1, dtype=np.int64)
        self.n_dropped = 0

    @property
    def w(self) -> np.ndarray:
        """Weighted sum of the cuts' vectors, shape (n_coordinates,)."""
        return self.alpha @ self.P

    def dual(self) -> float:
        """Return the dual value of the weights."""
        return float(self.Deltas @ self.alpha) - 0.5 * float(np.sum(self.w**2))

    def lengthen(self, coordinates: np.ndarray) -> None:
        """Append a coordinate to each vector, shape (n_cuts,)."""
        self.P = np.column_stack([self.P, coordinates])
        self.H += np.outer(coordinates, coordinates)

    def add(self, p: np.ndarray, Delta: float, violated: np.ndarray | None = None) -> None:
        """Append a cut, of weight 0; `violated` are its members, if they are kept."""
        products = self.P @ p
        last = np.array([[p @ p]])
        self.H = np.block([[self.H, products[:, None]], [products[None, :], last]])
        self.P, self.Deltas = np.vstack([self.P, p]), np.append(self.Deltas, Delta)
        self.alpha = np.append(self.alpha, 0.0)
        self._qps_without_weight = np.append(self._qps_without_weight, 0)
        if violated is not None:
            self.members = np.vstack([self.members, violated])

    def forget_members(self) -> None:
        """Free the memory of the cuts' members: a full basis needs them no more."""
        self.members = self.members[:0]

    def optimise(self, gap: float, max_steps: int) -> int:
        """Solve the QP to a share of `gap`, drop unused cuts, return the number of pair steps."""
        max_steps = min(max_steps, QP_MAX_STEPS)
        target = QP_GAP_SHARE * gap
        steps, _ = simplex_qp(self.H, self.Deltas, self.total, self.alpha, target, max_steps)
        n_qps = np.where(self.alpha > 0.0, 0, self._qps_without_weight + 1)
        # The cut c = 0 stands for xi >= 0 and always stays.
        n_qps[0] = 0
        kept = np.flatnonzero(n_qps <= MAX_QPS_WITHOUT_WEIGHT)
        self._qps_without_weight = n_qps[kept]
        if len(kept) < len(n_qps):
            self.n_dropped += len(n_qps) - len(kept)
            self.H, self.P, self.Deltas = (
                self.H[np.ix_(kept, kept)],
                self.P[kept],
                self.Deltas[kept],
            )
            self.alpha = self.alpha[kept]
            if len(self.members):
                self.members = self.members[kept]
        return steps
