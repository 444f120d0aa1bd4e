"""The linear one-class SVM by Wolfe's algorithm: the point of least norm of a reduced convex hull.

Problem
    min_beta  1/2 ||w||^2,   w = sum_i beta_i x_i,   0 <= beta_i <= u,   sum beta = S,
    the dual of ``one-class`` with a linear kernel, in the scale of ``one_class``: S = nu N and
    u = 1, or S = 1 and u above it for a hard margin. All such w are a convex hull; each of its
    vertices is the sum of S rows, the lowest along some direction (the last one in part).
Given
    Rows of few features, S, u, a tolerance.
Returned
    beta and v = -X w once m - M (``csvc/solver``) is at most ``tol * min(1, rho)``, in float64.
Algorithm of Wolfe 1976 (``Corral``)
    Keep vertices whose affine hull has its point of least norm, w, inside their convex hull. Add
    the vertex of the lowest S rows along w. While the point of least norm of the affine hull lies
    outside, go towards it up to the boundary and drop a vertex whose weight is 0 there.
    Once w has the least norm, no vertex is below it along w: each consists of rows below rho, all
    of them, and of rows at rho. So beta meets the conditions of each sample, but for rounding.
Many rows (``solve_min_norm``)
    Rows far from rho stay at a bound: the algorithm sees a band of rows around rho, and the sum of
    the rows below it. A pass over all rows then finds violations, and the next band has these
    rows. The last point stays feasible, so ||w|| falls. The first w is that of a sample of rows.
Reference
    Wolfe 1976, Finding the nearest point in a polytope; Crisp and Burges 1999 (reduced hulls);
    Schölkopf, Platt, Shawe-Taylor, Smola and Williamson 2001.
"""

from __future__ import annotations

from itertools import compress
from typing import Any

import numpy as np

from svmbench.core.csvc.smo import CONVERGED, MAX_ITER, NO_MARGIN_CODE, STALLED
from svmbench.core.csvc.solver import GRADIENT_ROUNDINGS, QPResult

#: Rows of the sample whose w is the first, and of a band at least: so many, or this share of all.
BAND_ROWS, BAND_SHARE = 2000, 0.02

#: Duality gap, relative to ||w||^2, that is asked of that sample.
SAMPLE_GAP = 1e-4

#: A weight of a vertex at most this is 0.
LEAST_WEIGHT = 1e-13

#: Share of the tolerance that is asked of a band.
SHORT = 0.9

#: Bands without a smaller ||w||, after which the search ends.
PATIENCE = 3


def lowest(f: np.ndarray, total: float, high: float) -> np.ndarray:
    """Return the multipliers of sum `total` that are `high` where f is least, and at most one else.

    They are the vertex of the reduced convex hull in the direction -f; `total` is at most
    ``high * len(f)``.
    """
    whole = min(int(total / high), len(f))
    beta = np.zeros(len(f))
    if whole == len(f):
        beta[:] = total / len(f)
        return beta
    order = np.argpartition(f, whole)
    beta[order[:whole]] = high
    beta[order[whole]] = total - high * whole
    return beta


class Corral:
    """Wolfe's algorithm among some rows; the others give a fixed sum of rows."""

    def __init__(self, X: Any, total: float, high: float, fixed: np.ndarray) -> None:
        self.X, self.total, self.high, self.fixed = X, total, high, fixed
        self.vertices: list[np.ndarray] = []  # (n_features,) each, `fixed` included
        self.betas: list[np.ndarray] = []  # (n_rows,) each
        self.weights = np.zeros(0)  # of the vertices; their sum is 1

    def run(
        self,
        start: np.ndarray,  # (n_rows,): feasible multipliers
        tol: float,
        rounding: float,  # of values of f
        max_iter: int,
        least_gap: float = 0.0,  # a duality gap, relative to ||w||^2, that is enough
    ) -> tuple[np.ndarray, int]:
        """Return multipliers that violate by at most ``tol * min(1, rho)``, and the steps taken."""
        self.vertices, self.betas = [self.fixed + start @ self.X], [start]
        self.weights, step, last = np.ones(1), 0, np.inf
        while step < max_iter:
            w = self.weights @ np.array(self.vertices)
            # Each vertex lowers ||w||, up to rounding.
            square = float(w @ w)
            if square >= last:
                break
            last = square
            f = self.X @ w
            after = lowest(f, self.total, self.high)
            vertex = self.fixed + after @ self.X
            gap = float(w @ (w - vertex))
            if gap <= least_gap * square:
                break
            # The duality gap is at most the violation times the sum of the multipliers.
            if gap <= max(tol, rounding) * self.total:
                beta = self.weights @ np.array(self.betas)
                violation, rho = violation_and_rho(f, beta, self.high)
                if violation <= max(tol * min(1.0, abs(rho)), rounding):
                    break
            self.vertices.append(vertex)
            self.betas.append(after)
            self.weights = np.append(self.weights, 0.0)
            self._shrink()
            step += 1
        return self.weights @ np.array(self.betas), step

    def _shrink(self) -> None:
        """Go to the point of least norm of the affine hull, dropping vertices on the way."""
        while True:
            target = least_norm(np.array(self.vertices))
            if np.all(target > LEAST_WEIGHT):
                self.weights = target
                return
            falls = target <= LEAST_WEIGHT
            with np.errstate(divide="ignore", invalid="ignore"):
                reach = np.where(falls, self.weights / (self.weights - target), np.inf)
            reach[np.isnan(reach)] = 0.0
            first = int(np.argmin(reach))
            weights = self.weights + min(1.0, float(reach[first])) * (target - self.weights)
            weights[first] = 0.0
            keep = weights > LEAST_WEIGHT
            self.vertices = list(compress(self.vertices, keep))
            self.betas = list(compress(self.betas, keep))
            self.weights = weights[keep] / weights[keep].sum()
            if len(self.weights) == 1:
                return


def least_norm(vertices: np.ndarray) -> np.ndarray:
    """Return the weights, of sum 1, of the point of least norm of the affine hull of the rows."""
    edges = vertices[1:] - vertices[0]
    # Edges differ in length by orders of magnitude near the optimum.
    lengths = np.sqrt(np.einsum("ij,ij->i", edges, edges))
    lengths[lengths == 0.0] = 1.0
    along = np.linalg.lstsq((edges / lengths[:, None]).T, -vertices[0], rcond=None)[0] / lengths
    return np.append(1.0 - along.sum(), along)


def violation_and_rho(f: np.ndarray, beta: np.ndarray, high: float) -> tuple[float, float]:
    """Return m - M, and the middle of the two as an estimate of rho."""
    low = float(np.min(f, where=beta < high, initial=np.inf))
    up = float(np.max(f, where=beta > 0.0, initial=-np.inf))
    return up - low, 0.5 * (up + low) if np.isfinite(low) else up


def solve_min_norm(
    X: Any,  # (n, n_features): ndarray or CSR
    total: float,  # S
    high: float,  # u
    *,
    tol: float,
    max_iter: int,  # largest number of vertices that are added
) -> QPResult:
    """Solve the problem; the reason is ``STALLED`` where float64 allows no smaller violation.

    ``steps`` counts vertices that were added, ``evaluations`` products of a row and a w.
    """
    n = X.shape[0]
    rows = np.unique(np.linspace(0, n - 1, min(n, band_rows(n))).astype(np.int64))
    sample = X if len(rows) == n else X[rows]
    squares = sample.multiply(sample) if hasattr(sample, "multiply") else sample * sample
    epsilon = GRADIENT_ROUNDINGS * float(np.finfo(np.float64).eps)
    rounding = epsilon * total * float(squares.sum(axis=1).max())
    share = total * len(rows) / n
    beta = lowest(sample @ np.asarray(sample.mean(axis=0)).ravel(), share, high)
    result = QPResult(beta, np.zeros(n), evaluations=len(rows))
    # Roughly: the rows that are left out move w more.
    corral = Corral(sample, share, high, np.zeros(X.shape[1]))
    beta, result.steps = corral.run(beta, tol, rounding, max_iter, SAMPLE_GAP)
    f = X @ (beta @ sample)
    result.evaluations += result.steps * len(rows) + n
    result.beta = lowest(f, total, high)
    best, waited = np.inf, 0
    while True:
        band = choose_band(f, result.beta, high)
        is_fixed = result.beta > 0.0
        is_fixed[band] = False
        inner = X[band]
        fixed = high * (is_fixed.astype(np.float64) @ X)
        rest = total - high * int(np.count_nonzero(is_fixed))
        corral = Corral(inner, rest, high, fixed)
        beta, steps = corral.run(result.beta[band], SHORT * tol, rounding, max_iter - result.steps)
        # Convex combinations of a bound are that bound but for rounding.
        beta[beta > (1.0 - LEAST_WEIGHT) * high] = high
        beta[beta < LEAST_WEIGHT * high] = 0.0
        result.beta[band] = beta
        w = fixed + beta @ inner
        f = X @ w
        result.steps += steps
        result.evaluations += (steps + 1) * len(band) + n
        violation, rho = violation_and_rho(f, result.beta, high)
        result.v = -f
        if violation <= max(tol * min(1.0, abs(rho)), rounding):
            # The duality gap is at most the violation times the sum of the multipliers; below
            # ||w||^2 it proves that there is a margin (``csvc/solver``).
            result.reason = CONVERGED if violation * total < float(w @ w) else NO_MARGIN_CODE
            return result
        square = float(w @ w)
        waited = 0 if square < best else waited + 1
        best = min(best, square)
        if result.steps >= max_iter or waited == PATIENCE or len(band) == n:
            result.reason = MAX_ITER if result.steps >= max_iter else STALLED
            return result


def band_rows(n: int) -> int:
    """Return the number of rows of a sample of n rows, and of a band of them."""
    return max(BAND_ROWS, int(BAND_SHARE * n))


def choose_band(f: np.ndarray, beta: np.ndarray, high: float) -> np.ndarray:
    """Return the free rows, and as many of I_up and of I_low: the worst ones, or nearest to rho."""
    is_chosen, half = (beta > 0.0) & (beta < high), min(band_rows(len(f)) // 2, len(f) - 1)
    for ends in (np.where(beta < high, f, np.inf), np.where(beta > 0.0, -f, np.inf)):
        is_chosen[np.argpartition(ends, half)[:half]] = True
    return np.flatnonzero(is_chosen)
