"""What the core tests share: a small random problem, and a mark for what needs compiled loops."""

import numpy as np
import pytest

from svmbench.base.compiled import JIT_DISABLED
from svmbench.core.contract.problems import Values, absorbed, linear

needs_jit = pytest.mark.skipif(JIT_DISABLED, reason="too slow as plain Python")


def make_problem(seed=0, n=200, d=12, density=0.4, noise=0.3):
    """Return a dense random problem with features in [0, 1], many zeros and noisy ±1 labels."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, d)) * (rng.random((n, d)) < density)
    scores = X @ rng.normal(size=d) + noise * rng.normal(size=n)
    return X, np.where(scores > np.median(scores), 1, -1)


def linear_gap(problem, X, y, w, b, C, *, bias, alpha=None):
    """Return the gap of a linear model with an absorbed offset, or with none.

    The dual value is that of `alpha`, or of the multipliers that the margins imply, with the
    weights that those make.
    """
    values = linear(X, w, b, y, bias=bias)
    if alpha is None:
        alpha = problem.multipliers(values.margins, C)
    signed = y * alpha
    own = np.append(X.T @ signed, bias * signed.sum())
    dual = Values(values.f, float(own @ own), y, alpha=alpha)
    problem.check(dual, C, absorbed(bias))
    return problem.primal(values, C) - problem.dual(dual, C)


def solutions(path):
    """Return what a path yields without costs and statistics, as a list."""
    return [point.solution for point in path]
