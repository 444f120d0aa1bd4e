"""What the core tests share: a small random problem, and a mark for what needs compiled loops."""

import numpy as np
import pytest

from svmbench.core.compiled import JIT_DISABLED

needs_jit = pytest.mark.skipif(JIT_DISABLED, reason="too slow as plain Python")


def make_problem(seed=0, n=200, d=12, density=0.4, noise=0.3):
    """Return a dense random problem with features in [0, 1], many zeros and noisy ±1 labels."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, d)) * (rng.random((n, d)) < density)
    scores = X @ rng.normal(size=d) + noise * rng.normal(size=n)
    return X, np.where(scores > np.median(scores), 1, -1)
