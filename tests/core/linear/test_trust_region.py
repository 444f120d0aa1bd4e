"""Truncated Newton within a trust region, against the sequential solver and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from svmbench.core.linear import trust_region
from svmbench.core.linear.newton import NewtonL2


def squared_hinge(X, y, C):
    """Return f with g, and the product with H, of arrays."""

    def function(w):
        slack = np.maximum(0.0, 1.0 - y * (X @ w))
        return 0.5 * w @ w + C * slack @ slack, w - 2.0 * C * X.T @ (y * slack)

    def product(w, v):
        active = y * (X @ w) < 1.0
        return v + 2.0 * C * X[active].T @ (X[active] @ v)

    return function, product


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
def test_it_finds_the_optimum_of_the_squared_hinge(C):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, 12)) * np.geomspace(0.1, 10.0, 12)
    y = np.where(X @ rng.standard_normal(12) + rng.standard_normal(300) > 0, 1.0, -1.0)
    function, product = squared_hinge(X, y, C)
    found = trust_region.trust_region_newton(
        function, product, np.zeros(12), lambda g: 1e-11 * g, 200
    )
    assert found.stop_reason == "converged"
    assert found.products >= found.steps > 1
    oracle = NewtonL2(C=C, tol=1e-12, fit_intercept=False).fit(X, y)
    assert_allclose(found.f, oracle.objective_, rtol=1e-12)
    assert_allclose(found.w, oracle.coef_[0], rtol=1e-7, atol=1e-9)
    assert np.linalg.norm(function(found.w)[1]) <= 1e-11 * np.linalg.norm(function(0 * found.w)[1])


def test_a_step_ends_where_the_region_does():
    H = np.diag([1.0, 10.0, 100.0])
    g = np.array([3.0, -20.0, 5.0])
    inside, r, _ = trust_region.within(lambda v: H @ v, g, 1e6)
    assert np.linalg.norm(H @ inside + g) <= trust_region.FORCING * np.linalg.norm(g)
    assert_allclose(r, -g - H @ inside, atol=1e-12)
    for radius in (1e-3, 0.5, 2.0):
        s, r, _ = trust_region.within(lambda v: H @ v, g, radius)
        assert_allclose(np.linalg.norm(s), radius, rtol=1e-12)
        assert_allclose(r, -g - H @ s, atol=1e-12)
        # No worse than the best point along the gradient within the region: Cauchy's.
        t = min(radius / np.linalg.norm(g), (g @ g) / (g @ H @ g))
        cauchy = -t * g
        assert g @ s + 0.5 * s @ H @ s <= g @ cauchy + 0.5 * cauchy @ H @ cauchy + 1e-12


def test_a_region_follows_how_much_of_the_promise_was_kept():
    # The slope is -2, the model promises 1: the radius stays, shrinks, or grows.
    assert trust_region.region(1.0, 1.0, -2.0, 1.0, 1.0) >= 1.0
    assert trust_region.region(1.0, 1.0, -2.0, 2.0, 1.0) == 4.0
    assert trust_region.region(1.0, 1.0, -2.0, 0.1, 1.0) <= 0.5
    assert trust_region.region(1.0, 1.0, -2.0, -5.0, 1.0) == 0.25


def test_steps_that_fail_are_not_taken():
    """Far from the solution of a function that is steep only near it."""

    def function(w):
        return float(np.sqrt(1.0 + (w @ w))), w / np.sqrt(1.0 + w @ w)

    def product(w, v):
        return v * 1e-3  # too flat a model: each step promises what it can't keep

    found = trust_region.trust_region_newton(
        function, product, np.full(2, 3.0), lambda g: 1e-8 * g, 300
    )
    assert found.f <= np.sqrt(19.0)
    assert_allclose(found.w, 0.0, atol=1e-4)


def test_it_says_where_it_was_stopped():
    function, product = squared_hinge(np.eye(3) * [1.0, 4.0, 9.0], np.ones(3), 1.0)
    start = np.zeros(3)
    assert trust_region.trust_region_newton(
        function, product, start, lambda g: 0.0, 1
    ).stop_reason == ("max_iter")
    stalled = trust_region.trust_region_newton(function, product, start, lambda g: -1.0, 50)
    assert stalled.stop_reason == "stalled"
    squares = np.array([1.0, 16.0, 81.0])
    assert_allclose(stalled.w, 2.0 * np.sqrt(squares) / (1.0 + 2.0 * squares))
