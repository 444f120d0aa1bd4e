"""The pre-image of a residual: the point whose image reduces it most.

Given
    a residual  r = sum_i g_i phi(x_i) - sum_j c_j phi(b_j)  over samples and basis points, where
    the second sum is the first one's projection on the span of the basis.
Returned
    z that maximises <r, phi(z)>^2 (RBF kernel: phi(z) has length 1), to a local optimum; the
    residual's squared length falls by at least that when z joins the basis.

Methods
-------
    - `fixed_point`: z <- sum g_i K(x_i, z) x_i / sum g_i K(x_i, z) over both sums, from several
      training samples (Schölkopf and Smola 2002, Section 18.2.2; CPSP paper, Section 5.2);
    - `SampleValues.best`: the best of 59 random training samples (Smola and Schölkopf 2000).
    With the linear kernel the residual itself is a point of the input space: `as_point`.
Deviations
    - Several starts take a few iterations together; the best goes on alone until the value hardly
      grows: on a9a a basis of 100 such points ends 0.02 % above one of points at rest.
    - A start whose divisor comes near zero, or whose point is not finite, ends at its best point.
      If no point is better than the best start, that training sample is the answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from svmbench.core.kernel_svm.preimage_inputs import NearSums, Selected
from svmbench.core.kernels.kernels import KernelFunction, KernelSource
from svmbench.core.kernels.products import squared_lengths
from svmbench.core.kernels.rows import Rows, float32_rows

#: Random training samples of which one is among the best 5 % with probability 0.95.
BEST_OF_DRAWS = 59

#: Samples that a residual is measured on where the end of the search depends on it.
CERTAIN_DRAWS = 256

#: Largest number of samples at which such a residual is measured on all of them.
CERTAIN_MAX_SAMPLES = 1024

#: Samples of a residual that others are compared with at a time.
BLOCK_COLUMNS = 1 << 14

#: Starts, iterations that all of them take, and the most that the best of them takes.
STARTS, COMMON_ITERATIONS, MAX_ITERATIONS = 4, 3, 30

#: The step towards the fixed point: at first, its growth an iteration, and after a fall of the
#: value for good.
FIRST_STEP, STEP_GROWTH, SAFE_STEP = 0.2, 0.1, 0.1

#: Cosine of a point with the next from which it has come to rest.
REST_COSINE = 0.99999

#: Growth of the value, as a share of itself, up to which a point has come to rest: a basis point
#: that is a little beside its best place serves as well.
REST_GAIN = 1e-3

#: A divisor is zero below this share of the sum of its terms' absolute values.
ZERO_DIVISOR_SHARE = 1e-9


@dataclass
class Residual:
    """Residual of a vector after its projection on the basis."""

    rows: np.ndarray  # int (n,): samples
    weights: np.ndarray  # (n,): their weights g
    coefficients: np.ndarray  # (k,): the projection's coefficients c
    points: np.ndarray  # (k, n_features): basis points
    near_points: np.ndarray  # the same in the coordinates of the search


def _pulls(
    selected: Selected,
    residual: Residual,
    lengths: np.ndarray,  # (k,): squared lengths of the near points
    Z: np.ndarray,
    gamma: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Return numerators (m, n_features) and values <r, phi(z)> (m,) of the fixed point."""
    pull, height = selected.sums(Z)
    B = residual.near_points
    if len(B):
        squares = np.einsum("ij,ij->i", Z, Z)[:, None] + lengths
        squares -= 2.0 * (Z @ B.T)
        K = np.exp(-gamma * np.maximum(squares, 0.0)) * residual.coefficients
        pull -= K @ B
        height -= K.sum(axis=1)
    return pull, height


def random_starts(residual: Residual, rng: Any) -> np.ndarray:
    """Return samples of the residual to start from, drawn with replacement."""
    return np.asarray(residual.rows[rng.randint(len(residual.rows), size=STARTS)])


def fixed_point(
    near: NearSums,
    residual: Residual,
    gamma: float,
    drawn: np.ndarray,  # int: samples to start from
) -> tuple[np.ndarray, float, int, bool]:
    """Return the best point z found, in the coordinates of the search, and ``<r, phi(z)>^2``.

    Also return the number of points that sums were made for, and whether z is a training sample
    because no iteration gave anything better.
    """
    Z = np.stack([near.point(int(i)) for i in drawn])
    limit = ZERO_DIVISOR_SHARE * float(
        np.abs(residual.weights).sum() + np.abs(residual.coefficients).sum()
    )
    selected = near.select(residual.rows, residual.weights)
    own = squared_lengths(residual.near_points)
    best_of, best = Z.copy(), np.full(len(Z), -np.inf)
    first: np.ndarray | None = None
    last = np.full(len(Z), -np.inf)
    step, grows = np.full(len(Z), FIRST_STEP), np.ones(len(Z), dtype=bool)
    n_sums = 0
    for iteration in range(MAX_ITERATIONS + 1):
        if iteration == COMMON_ITERATIONS and len(Z) > 1:
            one = [int(np.argmax(best))]
            Z, best_of, best, last = Z[one], best_of[one], best[one], last[one]
            step, grows = step[one], grows[one]
        with np.errstate(all="ignore"):
            pull, height = _pulls(selected, residual, own, Z, gamma)
            value = np.where(np.isfinite(height), height * height, -np.inf)
            n_sums += len(Z)
            first = value.copy() if first is None else first
            better = value > best
            best_of[better], best[better] = Z[better], value[better]
            # The step grows until the value falls for the first time, then stays small.
            gain = value - last
            settled = (gain >= 0.0) & (gain <= REST_GAIN * value)
            grows &= gain >= 0.0
            step = np.where(grows, np.minimum(1.0, step + STEP_GROWTH * (iteration > 0)), SAFE_STEP)
            last = value
            # A step towards the fixed point, pull / height.
            target = Z + step[:, None] * (pull / height[:, None] - Z)
            usable = (np.abs(height) > limit) & np.all(np.isfinite(target), axis=1)
            lengths = np.linalg.norm(Z, axis=1) * np.linalg.norm(target, axis=1)
            turned = np.einsum("ij,ij->i", Z, target) / np.where(lengths > 0.0, lengths, 1.0)
        moving = usable & (turned < REST_COSINE) & ~settled
        if not np.any(moving):
            break
        Z = np.where(usable[:, None], target, best_of)
    assert first is not None
    fell_back = not best.max() > first.max()
    z = near.point(int(drawn[np.argmax(first)])) if fell_back else best_of[np.argmax(best)]
    return z, float(best.max()), n_sums, fell_back


class SampleValues:
    """Values of residuals at training samples."""

    def __init__(
        self,
        X: Any,  # (n_samples, n_features)
        function: KernelFunction,
        single: bool,  # whether kernel values in single precision will do
    ) -> None:
        self.X, self.function = X, function
        self._single: Rows | None = None
        if single:
            self._single = float32_rows(KernelSource.from_inputs(X, function))
        self.evaluations = 0

    def values(self, residual: Residual, samples: np.ndarray) -> np.ndarray:
        """Return <r, phi(x)> at training samples, shape (len(samples),)."""
        at = self.X[samples]
        self.evaluations += len(samples) * (len(residual.rows) + len(residual.points))
        if self._single is None:
            values = self.function.between(at, self.X[residual.rows]) @ residual.weights
        else:
            values, weights = np.zeros(len(samples)), residual.weights.astype(np.float32)
            for first in range(0, len(residual.rows), BLOCK_COLUMNS):
                some = residual.rows[first : first + BLOCK_COLUMNS]
                K = np.empty((len(samples), len(some)), dtype=np.float32)
                columns = self._single.columns(some)
                self._single.fill(samples, columns, 0, len(some), K, np.arange(len(samples)))
                values += K @ weights[first : first + BLOCK_COLUMNS]
        if len(residual.points):
            values -= self.function.between(at, residual.points) @ residual.coefficients
        return np.asarray(values)

    def best(self, residual: Residual, rng: Any) -> int:
        """Return the best of 59 samples of the residual, drawn with replacement."""
        drawn = np.unique(residual.rows[rng.randint(len(residual.rows), size=BEST_OF_DRAWS)])
        lengths = np.maximum(self.function.diagonal(self.X[drawn]), np.finfo(float).tiny)
        return int(drawn[np.argmax(self.values(residual, drawn) ** 2 / lengths)])


def as_point(X: Any, residual: Residual) -> np.ndarray:
    """Return the residual of the linear kernel: a vector of the input space."""
    signed = np.zeros(X.shape[0])
    signed[residual.rows] = residual.weights
    return np.asarray(X.T @ signed).ravel() - residual.coefficients @ residual.points


@dataclass
class Probe:
    """A residual's squared length, and its values at the samples that it was measured on."""

    square: float  # the squared length, or an estimate from some samples
    error: float  # standard error of the estimate; 0 if all samples were used
    samples: np.ndarray  # int (m,)
    values: np.ndarray  # (m,): <r, phi(x)> at each

    def best(self, m: int) -> np.ndarray:
        """Return up to m of the samples, by falling absolute value."""
        return np.asarray(self.samples[np.argsort(-np.abs(self.values), kind="stable")[:m]])


def probe(inputs: SampleValues, residual: Residual, n_draws: int, rng: Any) -> Probe:
    """Measure a residual on `n_draws` of its samples, drawn at random, or on all if they are few.

    As the basis is orthogonal to it, ``||r||^2 = sum_i g_i <r, phi(x_i)>``: a mean over the
    samples, which drawing them in proportion to |g_i| estimates without bias.
    """
    weights = residual.weights
    if len(weights) <= (CERTAIN_MAX_SAMPLES if n_draws == CERTAIN_DRAWS else n_draws):
        values = inputs.values(residual, residual.rows)
        return Probe(float(weights @ values), 0.0, residual.rows, values)
    total = float(np.abs(weights).sum())
    drawn = rng.choice(len(weights), size=n_draws, p=np.abs(weights) / total)
    values = inputs.values(residual, residual.rows[drawn])
    terms = np.sign(weights[drawn]) * values * total
    error = float(terms.std() / np.sqrt(n_draws))
    return Probe(float(terms.mean()), error, residual.rows[drawn], values)
