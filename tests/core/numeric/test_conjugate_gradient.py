"""Conjugate gradients, beside their recurrence as Hestenes and Stiefel print it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from svmbench.core.numeric.conjugate_gradient import ConjugateGradients, conjugate_gradients


def system(d=30):
    draw = np.random.default_rng(0)
    Z = draw.normal(size=(d, d))
    return Z @ Z.T / d + np.eye(d), draw.normal(size=d)


def test_steps_are_those_of_hestenes_and_stiefel():
    A, right = system()
    x, p, r = np.zeros(30), right, right
    for step in range(1, 9):
        a = r @ r / (p @ A @ p)
        x, new = x + a * p, r - a * (A @ p)
        p, r = new + (new @ new) / (r @ r) * p, new
        ours, n_steps, converged = conjugate_gradients(lambda v: A @ v, right, step)
        assert_allclose(ours, x, atol=1e-9)
        assert (n_steps, converged) == (step, False)


@pytest.mark.parametrize("flexible", [False, True])
def test_a_preconditioner_leaves_the_solution_as_it_is(flexible):
    A, right = system()
    state = ConjugateGradients(lambda v: A @ v, right, lambda r: r / np.diag(A), flexible=flexible)
    for _ in range(30):
        assert state.step()
        state.turn()
    assert_allclose(state.x, np.linalg.solve(A, right), atol=1e-9)


@pytest.mark.parametrize("limit", ["residual", "length"])
def test_it_stops_at_the_residual_that_is_asked_for(limit):
    A, right = system()
    aim = 1e-3 * np.linalg.norm(right)
    asked = {"residual": 1e-3} if limit == "residual" else {"length": float(aim)}
    x, steps, converged = conjugate_gradients(lambda v: A @ v, right, 100, **asked)
    assert converged
    assert np.linalg.norm(right - A @ x) <= 1.001 * aim
    before, _, _ = conjugate_gradients(lambda v: A @ v, right, steps - 1)
    assert np.linalg.norm(right - A @ before) > aim


def test_it_stops_where_a_matrix_has_no_curvature():
    x, steps, converged = conjugate_gradients(lambda v: -v, np.ones(3), 10)
    assert (steps, converged) == (0, False)
    assert not x.any()
