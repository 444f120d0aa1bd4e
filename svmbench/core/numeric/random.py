"""Random numbers: a seeded generator for Python, and a 32-bit xorshift for compiled loops."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from svmbench.base.compiled import compiled


@compiled
def xorshift(seed: int) -> int:
    """Return the number after `seed`, both from 1 to 2^32 - 1; the same in plain Python."""
    seed ^= (seed << 13) & 0xFFFFFFFF
    seed ^= seed >> 17
    seed ^= (seed << 5) & 0xFFFFFFFF
    return seed


@compiled
def below(state: np.ndarray, entry: int, n: int) -> int:
    """Return a random number below `n`; the seed is an entry of `state`."""
    seed = xorshift(int(state[entry]))
    state[entry] = seed
    return (seed * n) >> 32


def generator(random_state: Any) -> Any:
    """Return a generator with `random` and `permutation`, seeded by `random_state`."""
    # Seeding scikit-learn's Mersenne twister takes longer (0.2 ms) than training on 100 samples.
    if isinstance(random_state, Integral):
        return np.random.default_rng(int(random_state))
    return check_random_state(random_state)
