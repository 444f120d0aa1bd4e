"""The hard-margin one-class problem, and the FOSVM paper's bound of the iterations it takes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from svmbench.core.contract.problems import Problem, Values, not_one


@dataclass(frozen=True)
class HardOneClass(Problem):
    """The plane that is farthest from the origin with every sample beyond it.

    min  1/2 ||w||^2 - rho,   <w, phi(x_i)> >= rho;   f(x) = <w, phi(x)> - rho;
    max  -1/2 alpha' K alpha,   alpha >= 0,  sum alpha = 1.

    It has no parameter. The primal value of a w is that at the largest rho it allows,
    min_i <w, phi(x_i)>: where the rho of f is larger, f is an approximation, and the gap says of
    how much.
    """

    def primal(self, values: Values, parameter: float = 0.0) -> float:
        """Return the primal value at w; f has -rho in it."""
        return 0.5 * values.square - (float(np.min(values.f)) + values.rho)

    def dual(self, values: Values, parameter: float = 0.0) -> float:
        """Return -1/2 square."""
        return -0.5 * values.square

    def bounds(self, parameter: float, n_samples: int) -> tuple[float, float]:
        """Return 0 and infinity."""
        return 0.0, np.inf

    def sum_violation(self, values: Values, parameter: float, offset: Any) -> str:
        """Return a sentence if the multipliers do not sum up to 1, else ""."""
        return not_one(values, self.name)


HARD_MARGIN = HardOneClass(
    name="one-class-hard",
    formula="1/2 ||w||^2 - min of <w, phi(x)>, 0 <= alpha, sum alpha = 1",
)


def iteration_bound(
    theta: float,  # in (0, 1)
    margin: float,  # d, in (0, 1]; at 1 (one point) two samples are enough
) -> int:
    """Return the size of the active set at which Theorem 2 of the FOSVM paper ends the search.

    It is the smallest n of at least 2 with ``n/2 + 1 >= sqrt(2) (sqrt(2t + 1) + 1) / (2t)`` for
    ``t = theta d^2 / (1 - d^2)``, as far as the copy that was read can be made out: a kernel with
    K(x, x) = 1, and d the margin of all data, at most 1.
    """
    if margin >= 1.0:
        return 2
    t = theta * margin**2 / (1.0 - margin**2)
    if t < 1e-18:
        return int(np.iinfo(np.int64).max)
    least = math.sqrt(2.0) * (math.sqrt(2.0 * t + 1.0) + 1.0) / (2.0 * t)
    return max(2, math.ceil(2.0 * (least - 1.0)))
