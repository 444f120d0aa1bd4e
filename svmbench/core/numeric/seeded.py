"""Random numbers for solvers that are called thousands of times on small problems."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state


def generator(random_state: Any) -> Any:
    """Return an object with `random` and `permutation`, seeded by `random_state`.

    Seeding scikit-learn's Mersenne twister takes longer (0.2 ms) than training on 100 samples.

    Parameters
    ----------
    random_state : int, RandomState or None
        An integer gives the same numbers each time.

    Returns
    -------
    numpy.random.Generator or numpy.random.RandomState
    """
    if isinstance(random_state, Integral):
        return np.random.default_rng(int(random_state))
    return check_random_state(random_state)
