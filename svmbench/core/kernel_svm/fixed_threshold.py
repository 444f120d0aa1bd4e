"""Sequential minimal optimisation with the threshold held at zero: one multiplier at a time.

Problem
    min_alpha  1/2 alpha' Q alpha - e'alpha,   0 <= alpha_i <= C,
    Q_ij = y_i y_j K(x_i, x_j);  f(x) = sum_j alpha_j y_j K(x_j, x): without an offset there is no
    equality constraint, and the optimum differs from the optimum of `smo`.
Given
    X (n_samples, d), dense or CSR; y in {-1, +1}; C; kernel; tol.
Returned
    alpha, once no example is further than tol from its side of the margin.
Reference
    Platt 1998 (MSR-TR-98-14), equation 23, with the first choice heuristic of section 2.2.
Deviations
    - Equation 23 prints alpha + y E / K; with E = f - y as everywhere else in the report it must
      be alpha - y E / K, clipped to [0, C].
    - Where K(x, x) <= 0, the multiplier goes to the bound that the slope points to.
    - The error cache is recomputed at each full sweep: increments carry their rounding errors.
    - A multiplier within 1e-12 C of a bound is put on it.
"""

from __future__ import annotations

from typing import ClassVar

from svmbench.base.compiled import compiled
from svmbench.core.contract.declaration import KERNELS
from svmbench.core.contract.registry import declare
from svmbench.core.kernel_svm.smo_common import (
    FREE,
    Examples,
    PlattClassifier,
    output,
    set_multiplier,
    solution,
    to_bound,
)
from svmbench.core.kernels.storage import LINEAR, Storage, add_sample, kernel_values
from svmbench.core.models.kernel_base import KernelSolution


@compiled
def minimise_along(s: Storage, v: Examples, i: int, C: float, tol: float, refresh: bool) -> bool:
    """Minimise over the multiplier of example i if it violates; return whether it has moved."""
    # With the linear kernel an error is one inner product, so none is cached.
    if refresh or s.kind == LINEAR or v.place[FREE, i] < 0:
        v.errors[i] = output(s, v, i) - v.y[i]
    slope, a = v.errors[i] * v.y[i], v.alpha[i]
    if not ((slope < -tol and a < C) or (slope > tol and a > 0.0)):
        return False
    # Equation 23: alpha - y E / K, clipped to [0, C].
    k = s.diagonal[i]
    bound = 0.0 if slope > 0.0 else C
    new = to_bound(min(max(a - slope / k, 0.0), C), C) if k > 0.0 else bound
    if new == a:
        return False
    t = v.y[i] * (new - a)
    set_multiplier(v, i, new, C)
    if s.kind == LINEAR:
        add_sample(s, v.w, i, t)
    else:
        free, n_free = v.members[FREE], v.sizes[FREE]
        kernel_values(s, i, free, n_free, v.work, v.values, v.counters)
        for m in range(n_free):
            # The list has example i if it has just left its bound: its error is known.
            v.errors[free[m]] += t * v.values[m]
    v.counters[0]["steps"] += 1
    return True


@compiled
def sweep_singly(s: Storage, v: Examples, C: float, tol: float, max_iter: int) -> float:
    """Sweep until all examples keep the conditions; return the largest remaining violation."""
    N = len(v.alpha)
    # The literal True would have Numba compile everything below for it, and again for a bool.
    examine_all, changed = N > 0, 0
    while (changed > 0 or examine_all) and v.counters[0]["sweeps"] < max_iter:
        changed = 0
        for i in range(N):
            if examine_all or v.place[FREE, i] >= 0:
                changed += minimise_along(s, v, i, C, tol, examine_all)
        v.counters[0]["sweeps"] += 1
        if examine_all:
            examine_all = False
        elif changed == 0:
            examine_all = True
    worst = 0.0
    for i in range(N):
        if changed > 0 or examine_all:
            # Stopped early: only a full sweep without a change leaves every error as it is.
            v.errors[i] = output(s, v, i) - v.y[i]
        slope = v.errors[i] * v.y[i]
        if v.alpha[i] < C:
            worst = max(worst, -slope)
        if v.alpha[i] > 0.0:
            worst = max(worst, slope)
    return worst


@declare(
    name="smo-fixed-threshold",
    problem="hinge-no-offset",
    promise="violation",
    summary="Platt's SMO without a threshold: one multiplier at a time",
    reference="Platt 1998, equation 23",
    paper="smo",
    kernels=KERNELS,
)
class FixedThresholdSMO(PlattClassifier):
    """Platt's SMO for a threshold that is fixed at zero.

    It solves another problem than :class:`~svmbench.core.kernel_svm.smo.SMO`, the one without an
    offset, by coordinate descent: a step needs no partner, and so no second choice.

    Parameters
    ----------
    tol : float
        Largest distance of an example from its side of the margin, in units of f.

    Attributes
    ----------
    intercept_ : ndarray of shape (1,)
        Zero.

    Examples
    --------
    >>> from svmbench.core.kernel_svm.fixed_threshold import FixedThresholdSMO
    >>> FixedThresholdSMO(kernel="linear").fit([[-2.0], [2.0], [4.0]], [0, 1, 1]).dual_coef_
    array([[-0.25]])
    """

    treats_offset: ClassVar[str] = "none"

    def optimise(self, s: Storage, v: Examples) -> KernelSolution:
        """Sweep over single examples."""
        tol = float(self.tol)
        worst = sweep_singly(s, v, float(self.C), tol, self.max_iter)
        reason = "max_iter" if v.counters[0]["sweeps"] >= self.max_iter else "stalled"
        return solution(v, 0.0, "converged" if worst <= tol else reason)
