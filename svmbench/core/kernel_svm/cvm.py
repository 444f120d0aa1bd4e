"""CVM: the L2-SVM as a smallest enclosing ball of a core set.

Problem
    min_alpha  alpha' Q alpha,   sum alpha = 1,  alpha >= 0,
    Q_ij = y_i y_j (K_ij + 1) + delta_ij / C: the smallest ball around psi(x_i), and the dual of
    1/2 (||w||^2 + b^2) + C/2 sum_i max(0, 1 - y_i f(x_i))^2 up to scale.
Given
    X, y in {-1, +1}, C, the RBF kernel (Q's diagonal must be constant), eps.
Returned
    alpha / ||c||^2 once no sample is found outside the ball (1 + eps) R around c, with
    R^2 = q - ||c||^2; then 1 - D(alpha)/D* <= (2 eps + eps^2) q / ||c||^2 for the dual value D.
Reference
    Tsang, Kwok and Cheung 2005, Algorithm 1: while a sample is outside, the farthest of 59 random
    ones joins the core set, and the ball of the core set is computed anew.
Deviations
    - As the authors' program: 60 draws, half of each class, repeated 7 times where none is outside;
      20 members at the start; eps halved from 0.1 on.
    - The ball of the core set is found by pair steps from the last one, up to a tenth of what eps
      allows a sample to be outside.
"""

from __future__ import annotations

import numpy as np

from svmbench.base.compiled import compiled
from svmbench.core.contract.registry import declare
from svmbench.core.kernel_svm.core_set import (
    FULL,
    INSIDE,
    MEMBERS,
    NO_DRAWS,
    NO_ROOM,
    ROUND,
    STEPS,
    TINY,
    TIRED,
    Core,
    CoreSetMachine,
    farthest,
    join,
    settle,
)
from svmbench.core.kernels.member_rows import MemberInputs

#: Share of what eps allows that the inner problem is solved to.
INNER = 0.1


@compiled
def smallest_ball(core: Core, C: float, tol: float, max_iter: int) -> bool:
    """Move weight between members until their products differ by at most `tol` where they may not.

    Returns whether that was reached before `max_iter` steps in all.
    """
    m = core.counts[MEMBERS]
    alpha, g, Q = core.alpha, core.g, core.Q
    while True:
        i, j = 0, -1
        for s in range(m):
            if g[s] < g[i]:
                i = s
            if alpha[s] > 0.0 and (j < 0 or g[s] > g[j]):
                j = s
        if g[j] - g[i] <= tol:
            break
        if core.counts[STEPS] >= max_iter:
            settle(core)
            return False
        curvature = np.float64(Q[i, i]) + np.float64(Q[j, j]) - 2.0 * np.float64(Q[i, j]) + 2.0 / C
        t = min((g[j] - g[i]) / max(curvature, TINY), alpha[j])
        alpha[j] = 0.0 if t == alpha[j] else alpha[j] - t
        alpha[i] += t
        first, second = Q[i], Q[j]
        for s in range(m):
            g[s] += t * (np.float64(first[s]) - np.float64(second[s]))
        g[i] += t / C
        g[j] -= t / C
        core.counts[STEPS] += 1
    settle(core)
    return True


@compiled
def advance(
    inputs: MemberInputs,
    core: Core,
    row: np.ndarray,
    y: np.ndarray,
    positive: np.ndarray,
    negative: np.ndarray,
    uniform: np.ndarray,
    C: float,
    eps: float,
    most: int,
    max_iter: int,
    by_all: bool,
) -> int:
    """Let the farthest sample join and compute the ball anew, until none is found outside."""
    q = 2.0 + 1.0 / C
    slack = eps + 0.5 * eps * eps
    while True:
        if not smallest_ball(core, C, INNER * slack * (q - core.square[0]), max_iter):
            return TIRED
        if core.counts[MEMBERS] >= most:
            return FULL
        if core.counts[MEMBERS] == len(core.sample):
            return NO_ROOM
        if core.counts[ROUND] == len(uniform):
            return NO_DRAWS
        # Outside: ||c||^2 - 2 g + q > (1 + eps)^2 (q - ||c||^2).
        nearest = core.square[0] - slack * (q - core.square[0])
        draws = uniform[core.counts[ROUND]]
        core.counts[ROUND] += 1
        i = farthest(inputs, core, row, y, positive, negative, draws, nearest, by_all)
        if i < 0:
            return INSIDE
        join(inputs, core, row, i, y[i])


@declare(
    name="cvm",
    problem="half-squared-hinge",
    paper="cpsp",
    summary="smallest enclosing ball of a core set (core vector machine)",
    reference="Tsang, Kwok and Cheung 2005, Algorithm 1",
    kernels=("rbf",),
    counters=("core_set",),
)
class CVM(CoreSetMachine):
    """L2-SVM with the offset absorbed, by the smallest ball around a core set.

    Parameters
    ----------
    tol : float
        eps: no sample is found farther from the centre than (1 + eps) R.
    max_iter : int
        Largest number of pair steps.

    Attributes
    ----------
    n_iter_ : int
        Pair steps.
    counters_ : dict
        ``core_set``, ``updates`` (pair steps), ``kernel_evaluations``, ``support_vectors``.

    Examples
    --------
    >>> from svmbench.core.kernel_svm.cvm import CVM
    >>> X, y = [[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]
    >>> CVM(gamma=1.0, C=10.0).fit(X, y).predict([[3.5]])
    array([1])
    """

    starts, repeats = 20, 7

    def _advance(
        self,
        inputs: MemberInputs,
        core: Core,
        y: np.ndarray,
        eps: float,
        most: int,
        uniform: np.ndarray,
    ) -> int:
        return int(
            advance(
                inputs,
                core,
                np.empty(len(y), dtype=np.float32),
                y,
                np.flatnonzero(y > 0.0),
                np.flatnonzero(y < 0.0),
                uniform,
                float(self.C),
                eps,
                most,
                int(self.max_iter),
                len(y) <= uniform.shape[1] * uniform.shape[2],
            )
        )
