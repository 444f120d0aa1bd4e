"""BVM: the L2-SVM as an enclosing ball of fixed radius, without any inner problem.

Problem
    find alpha, sum alpha = 1, alpha >= 0, with ||c - psi(x_i)||^2 + ||c||^2 <= (1 + eps)^2 q for
    all i, c = sum_i alpha_i psi(x_i), Q_ij = y_i y_j (K_ij + 1) + delta_ij / C, q its diagonal.
    With eps = 0 these are the optimality conditions g_i >= ||c||^2 of min alpha' Q alpha, the
    L2-SVM's dual up to scale (see ``cvm.py``).
Given
    X, y in {-1, +1}, C, the RBF kernel, eps.
Returned
    alpha / ||c||^2 once no sample is found outside;
    then 1 - D(alpha)/D* <= (2 eps + eps^2) q / ||c||^2 for the dual value D.
Reference
    Tsang, Kocsor and Kwok 2007, Algorithm 1: the centre moves towards a sample outside the ball
    until that lies on it, c <- psi + beta (c - psi), beta = r / distance.
Deviations
    - As the authors' program: the distance is that of the extended space, with ||c||^2 added to its
      square, so that beta = sqrt(q / (||c - psi||^2 + ||c||^2)); 60 draws, half of each class,
      repeated 10 times where none is outside; one member at the start; eps halved from 0.1 on.
    - The farthest member moves first, as its distance is known; samples are drawn once no member
      is outside.
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
    TIRED,
    Core,
    CoreSetMachine,
    farthest,
    join,
    settle,
)
from svmbench.core.kernels.member_rows import MemberInputs


@compiled
def move(core: Core, C: float, i: int) -> None:
    """Move the centre towards member `i` until that lies on the ball."""
    m, q = core.counts[MEMBERS], 2.0 + 1.0 / C
    square, g = core.square[0], core.g
    beta = np.sqrt(q / (2.0 * (square - g[i]) + q))
    rest = 1.0 - beta
    core.square[0] = beta * beta * square + 2.0 * beta * rest * g[i] + rest * rest * q
    row = core.Q[i]
    for s in range(m):
        g[s] = beta * g[s] + rest * np.float64(row[s])
        core.alpha[s] *= beta
        core.signed[s] *= beta
    g[i] += rest / C
    core.alpha[i] += rest
    core.signed[i] += rest * core.y[i]
    core.counts[STEPS] += 1


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
    """Move towards members, then towards samples that are outside, until none is found."""
    q = 2.0 + 1.0 / C
    slack = eps + 0.5 * eps * eps
    while True:
        # Outside: 2 ||c||^2 - 2 g + q > (1 + eps)^2 q.
        while True:
            i = 0
            for s in range(core.counts[MEMBERS]):
                if core.g[s] < core.g[i]:
                    i = s
            if core.g[i] >= core.square[0] - slack * q:
                break
            if core.counts[STEPS] >= max_iter:
                return TIRED
            move(core, C, i)
        settle(core)
        if core.counts[MEMBERS] >= most:
            return FULL
        if core.counts[MEMBERS] == len(core.sample):
            return NO_ROOM
        if core.counts[ROUND] == len(uniform):
            return NO_DRAWS
        nearest = core.square[0] - slack * q
        draws = uniform[core.counts[ROUND]]
        core.counts[ROUND] += 1
        i = farthest(inputs, core, row, y, positive, negative, draws, nearest, by_all)
        if i < 0:
            return INSIDE
        if core.counts[STEPS] >= max_iter:
            return TIRED
        move(core, C, join(inputs, core, row, i, y[i]))


@declare(
    name="bvm",
    problem="half-squared-hinge",
    paper="cpsp",
    summary="enclosing ball of fixed radius (ball vector machine)",
    reference="Tsang, Kocsor and Kwok 2007, Algorithm 1",
    kernels=("rbf",),
    counters=("core_set",),
)
class BVM(CoreSetMachine):
    """L2-SVM with the offset absorbed, by moving a ball of fixed radius; see also ``cvm``.

    Parameters
    ----------
    tol : float
        eps: no sample is found outside the ball of 1 + eps times the radius.
    max_iter : int
        Largest number of moves.

    Attributes
    ----------
    n_iter_ : int
        Moves.
    counters_ : dict
        ``core_set``, ``updates`` (moves), ``kernel_evaluations``, ``support_vectors``.

    Examples
    --------
    >>> from svmbench.core.kernel_svm.bvm import BVM
    >>> X, y = [[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]
    >>> BVM(gamma=1.0, C=10.0).fit(X, y).predict([[3.5]])
    array([1])
    """

    starts, repeats = 1, 10

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
