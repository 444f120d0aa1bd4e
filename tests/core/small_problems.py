"""What the core tests share: a small random problem, and a mark for what needs compiled loops."""

import signal
import time

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


def assert_stops_when_interrupted(fit):
    """Assert that a fit of minutes ends soon after a signal, whose handler raises.

    `fit` takes X, y and C. Seconds are those of the processor, so that other programs don't count.
    """
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(6000, 20)), np.where(rng.random(6000) < 0.5, 1, -1)
    fit(X[:50], y[:50], 1.0)  # compiles
    before = signal.signal(signal.SIGPROF, signal.default_int_handler)
    start = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, 0.1)
    try:
        with pytest.raises(KeyboardInterrupt):
            fit(X, y, 1e4)
        seconds = time.process_time() - start
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)
    assert seconds < 2.0
