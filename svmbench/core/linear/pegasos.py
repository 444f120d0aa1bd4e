"""Pegasos: primal estimated sub-gradient steps for the linear L1-SVM.

Problem
    min_w  lambda/2 ||w||^2 + 1/N sum_i max(0, 1 - y_i w'x_i),   lambda = 1 / (N C),
    over samples x with a constant feature ("bias absorbed"); N C times this is the hinge problem
    in sum form, which objective_ is the value of.
Given
    X (N, d), y in {-1, +1}, C, T steps, sub-samples A_t of k examples drawn with replacement.
Returned
    w after T steps, each with eta = 1 / (lambda t):
        A+ = the examples of A_t with y w'x < 1
        w  <- (1 - eta lambda) w + eta / k sum_{A+} y x
        w  <- min(1, 1 / (sqrt(lambda) ||w||)) w          (the projection, where it is asked for)
Reference
    Shalev-Shwartz, Singer and Srebro 2007, Figure 1.
Deviations
    - w is stored as s v with a scalar s, so that a step costs the nonzeros of its examples;
      ||v||^2 is kept up to date with it.
    - Optionally the mean of the last T/2 iterates (Rakhlin, Shamir and Sridharan 2012) is returned:
      the last iterate keeps the noise of its last steps. The sum of the iterates is S v - u with S
      the sum of their s, so that keeping it costs the nonzeros of the updates.
    - The authors' program starts at eta = 1 / (2 lambda) and has no bias; the paper's text starts
      at 1 / lambda, and so does this.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from svmbench.base.compiled import compiled, compiled_sums, prefetch
from svmbench.core.contract.base import TrainingData, require_count
from svmbench.core.contract.linear_base import LinearClassifierWithC, LinearSolution
from svmbench.core.contract.problems import HINGE, linear
from svmbench.core.contract.registry import declare
from svmbench.core.numeric.arrays import csr_parts, raw

#: Examples drawn at a time: limits the memory for draws, and spaces the points of a trace.
EXAMPLES_PER_DRAW = 1 << 16

#: If s falls below this, s is multiplied into v, and S v is taken into u: the mean of the iterates
#: S v - u is a difference, which loses as many digits as s has leading zeros.
SMALLEST_SCALE = 1e-6

#: Entries of a run's `state`: the scale s, ||v||^2, and the sum S of s over the averaged steps.
SCALE, SQUARE, SCALES = 0, 1, 2

#: Memory is prefetched for examples this many places ahead: a row's values, and its address.
VALUES_AHEAD, ADDRESS_AHEAD = 4, 12


@compiled_sums
def steps_dense(
    X: np.ndarray,
    y: np.ndarray,
    draws: np.ndarray,
    t: int,
    lam: float,
    project: bool,
    average: bool,
    v: np.ndarray,
    u: np.ndarray,
    state: np.ndarray,
) -> int:
    """Take one step for each row of `draws` (n_steps, k), from step t on; return the updates.

    w = s v, and with `average` the sum of the iterates is S v - u. All is updated in place.
    """
    d = len(v)
    n_steps, k = draws.shape
    margins = np.empty(k)
    updates = 0
    s, square, S = state[SCALE], state[SQUARE], state[SCALES]
    for step in range(n_steps):
        eta = 1.0 / (lam * t)
        for j in range(k):
            i = draws[step, j]
            f = 0.0
            for p in range(d):
                f += v[p] * X[i, p]
            margins[j] = y[i] * s * f
        # w <- (1 - eta lambda) w, with eta lambda = 1 / t
        if t > 1:
            s *= 1.0 - 1.0 / t
        # w <- w + eta / k sum_{A+} y x
        for j in range(k):
            if margins[j] < 1.0:
                i = draws[step, j]
                c = eta * y[i] / (k * s)
                dot, length = 0.0, 0.0
                for p in range(d):
                    x = X[i, p]
                    dot += v[p] * x
                    length += x * x
                    v[p] += c * x
                square += c * (2.0 * dot + c * length)
                updates += 1
                if average:
                    for p in range(d):
                        u[p] += c * S * X[i, p]
        if project and lam * s * s * square > 1.0:
            s = 1.0 / np.sqrt(lam * square)
        if s < SMALLEST_SCALE:
            for p in range(d):
                u[p] -= S * v[p]
                v[p] *= s
            square *= s * s
            s, S = 1.0, 0.0
        if average:
            S += s
        t += 1
    state[SCALE], state[SQUARE], state[SCALES] = s, square, S
    return updates


@compiled
def steps_csr(
    data: np.ndarray,
    indices: np.ndarray,
    indptr: np.ndarray,
    y: np.ndarray,
    draws: np.ndarray,
    t: int,
    lam: float,
    project: bool,
    average: bool,
    v: np.ndarray,
    u: np.ndarray,
    state: np.ndarray,
) -> int:
    """Take steps on CSR rows; see :func:`steps_dense`."""
    n_steps, k = draws.shape
    coming = draws.ravel()
    margins = np.empty(k)
    updates = 0
    s, square, S = state[SCALE], state[SQUARE], state[SCALES]
    for step in range(n_steps):
        eta = 1.0 / (lam * t)
        for j in range(k):
            now = step * k + j
            if now + ADDRESS_AHEAD < len(coming):
                prefetch(indptr, coming[now + ADDRESS_AHEAD])
                prefetch(y, coming[now + ADDRESS_AHEAD])
            if now + VALUES_AHEAD < len(coming):
                ahead = coming[now + VALUES_AHEAD]
                for line in range(indptr[ahead], indptr[ahead + 1], 8):
                    prefetch(data, line)
                    prefetch(indices, line)
            i = coming[now]
            f, f1 = 0.0, 0.0
            q: Any = np.uint32(indptr[i])
            end = np.uint32(indptr[i + 1])
            # Two sums at a time: one alone would wait for its own last addition.
            while q + np.uint32(1) < end:
                f += v[np.uint32(indices[q])] * data[q]
                f1 += v[np.uint32(indices[q + np.uint32(1)])] * data[q + np.uint32(1)]
                q += np.uint32(2)
            if q < end:
                f += v[np.uint32(indices[q])] * data[q]
            margins[j] = y[i] * s * (f + f1)
        if t > 1:
            s *= 1.0 - 1.0 / t
        for j in range(k):
            if margins[j] < 1.0:
                i = coming[step * k + j]
                c = eta * y[i] / (k * s)
                dot, length = 0.0, 0.0
                for entry in range(indptr[i], indptr[i + 1]):
                    column, x = np.uint32(indices[entry]), data[entry]
                    value = v[column]
                    dot += value * x
                    length += x * x
                    v[column] = value + c * x
                square += c * (2.0 * dot + c * length)
                updates += 1
                if average:
                    for entry in range(indptr[i], indptr[i + 1]):
                        u[np.uint32(indices[entry])] += c * S * data[entry]
        if project and lam * s * s * square > 1.0:
            s = 1.0 / np.sqrt(lam * square)
        if s < SMALLEST_SCALE:
            for p in range(len(v)):
                u[p] -= S * v[p]
                v[p] *= s
            square *= s * s
            s, S = 1.0, 0.0
        if average:
            S += s
        t += 1
    state[SCALE], state[SQUARE], state[SCALES] = s, square, S
    return updates


@declare(
    name="pegasos",
    problem="hinge",
    paper="alsvm",
    summary="sub-gradient steps of size 1/(lambda t) on sub-samples",
    reference="Shalev-Shwartz, Singer and Srebro 2007, Figure 1",
)
@dataclass(eq=False, repr=False, kw_only=True)
class Pegasos(LinearClassifierWithC):
    """Pegasos with sub-samples of k examples; the last iterate is the model, or a mean of many.

    Parameters
    ----------
    C : float
        Weight of the summed hinge losses; lambda = 1 / (N C).
    max_iter : int
        Number of steps T, of which there is no earlier end.
    batch_size : int
        Examples of a step, k.
    project : bool
        Whether to project on the ball of radius 1/sqrt(lambda), which contains the optimum.
    average : bool
        Whether the model is the mean of the second half of the iterates instead of the last one.
    trace : bool
        Whether to record (seconds, steps, objective) at steps 1, 2, 4 …, from then on every
        65,536 drawn examples, and at T; evaluating the objective is outside these seconds.

    Attributes
    ----------
    n_iter_ : int
        T.
    counters_ : dict
        ``steps``, ``examples`` drawn and ``updates`` (examples that violated their margin).

    Examples
    --------
    >>> from svmbench.core.linear.pegasos import Pegasos
    >>> Pegasos(max_iter=100).fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]).predict([[4.0]])
    array([1])
    """

    max_iter: int = 10000
    batch_size: int = 1
    project: bool = False
    average: bool = False
    random_state: Any = 0
    trace: bool = False

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_count("batch_size", self.batch_size)

    def train(self, data: TrainingData) -> Self:
        """Take `max_iter` steps."""
        parameters = PegasosParameters(
            C=float(self.C),
            T=self.max_iter,
            k=self.batch_size,
            project=self.project,
            average=self.average,
            bias=self.bias,
        )
        random = check_random_state(self.random_state)
        return self._store(pegasos(data.native, data.y, parameters, random, trace=self.trace))


@dataclass(frozen=True)
class PegasosParameters:
    """Parameters of the steps."""

    C: float
    T: int  # its `max_iter`
    k: int  # `batch_size`
    project: bool
    average: bool
    bias: float  # value of the constant feature that samples carry; 0 for none


def pegasos(
    X: Any,  # (N, d)
    y: np.ndarray,  # (N,): labels ±1
    parameters: PegasosParameters,
    random: np.random.RandomState,  # of the draws
    *,
    trace: bool = False,
) -> LinearSolution:
    """Run Pegasos on samples that carry the constant feature as their last column."""
    T, k, average, bias = parameters.T, parameters.k, parameters.average, parameters.bias
    N, d = X.shape
    lam = 1.0 / (N * parameters.C)
    v, u = np.zeros(d), np.zeros(d)
    state = np.array([1.0, 0.0, 0.0])
    half = T // 2 if average else T
    points: list[tuple[float, int, float]] = []
    updates, done, seconds = 0, 0, 0.0

    def model() -> np.ndarray:
        if done > half:
            return (state[SCALES] * v - u) / (done - half)
        return state[SCALE] * v

    parts = csr_parts(X) if sp.issparse(X) else (raw(X),)
    run = steps_csr if sp.issparse(X) else steps_dense
    while done < T:
        n_steps = min(max(1, EXAMPLES_PER_DRAW // k), (half if done < half else T) - done)
        if trace:
            n_steps = min(n_steps, max(1, done))
        start = perf_counter()
        draws = random.randint(0, N, size=(n_steps, k), dtype=np.int32)
        averaging = done >= half
        how = done + 1, lam, parameters.project, averaging
        updates += run(*parts, raw(y), raw(draws), *how, v, u, state)
        done += n_steps
        seconds += perf_counter() - start
        if trace:
            value = HINGE.primal(linear(X, model(), 0.0, y), parameters.C)
            points.append((seconds, done, value))
    w = model()
    return LinearSolution(
        w=w[:-1] if bias else w,
        b=float(w[-1] * bias) if bias else 0.0,
        n_iter=T,
        stop_reason="max_iter",
        counters={"steps": T, "examples": T * k, "updates": updates},
        trace=points,
    )
