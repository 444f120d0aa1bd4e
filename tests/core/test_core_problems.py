"""The problems' primal, dual and gap against hand-solved cases and weak duality."""

import numpy as np
import pytest
from scipy.optimize import minimize
from small_problems import make_problem

from svmbench.core.problems import HINGE, LEAST_SQUARES, PROBLEMS, SQUARED_HINGE


def test_one_pair_by_hand():
    # x = 1 with y = +1 and x = -1 with y = -1, w = 1/2, no offset: margins 1/2 and 1/2.
    X, y, w = np.array([[1.0], [-1.0]]), np.array([1.0, -1.0]), np.array([0.5])
    assert HINGE.primal(X, y, w, 0.0, 2.0, bias=0) == pytest.approx(0.125 + 2 * 1.0)
    assert LEAST_SQUARES.primal(X, y, w, 0.0, 2.0, bias=0) == pytest.approx(0.125 + 2 * 0.5)
    assert SQUARED_HINGE.primal(X, y, 4 * w, 0.0, 2.0, bias=0) == pytest.approx(2.0)


def test_absorbed_offset_counts_in_units_of_its_feature():
    X, y, w = np.zeros((1, 1)), np.array([1.0]), np.array([0.0])
    assert HINGE.primal(X, y, w, 3.0, 1.0, bias=2.0) == pytest.approx(0.5 * 1.5**2)
    assert HINGE.primal(X, y, w, 3.0, 1.0, bias=0.0) == 0.0


@pytest.mark.parametrize("name", sorted(PROBLEMS))
def test_dual_never_exceeds_primal_and_meets_it_at_the_optimum(name):
    problem = PROBLEMS[name]
    X, labels = make_problem(seed=3, n=60, d=4)
    y = labels.astype(float)
    C = 0.7
    rng = np.random.default_rng(0)
    best = minimize(
        lambda u: problem.primal(X, y, u[:4], u[4], C, bias=1.0),
        np.zeros(5),
        method="Powell",
        options={"maxiter": 20000, "xtol": 1e-9, "ftol": 1e-14},
    )
    for _ in range(20):
        alpha = rng.uniform(0, min(problem.upper(C), 2 * C), size=60)
        assert problem.dual(X, y, alpha, C) <= best.fun + 1e-9
    if problem.loss is not HINGE.loss:  # the hinge's multipliers are not determined at its kink
        gap = problem.gap(X, y, best.x[:4], best.x[4], C)
        assert gap + 1e-9 >= 0
        assert gap < 1e-5 * best.fun


def test_dual_refuses_what_is_not_feasible():
    X, y = np.eye(2), np.array([1.0, -1.0])
    with pytest.raises(ValueError, match="leaves the box"):
        HINGE.dual(X, y, np.array([3.0, 0.0]), 1.0)
    with pytest.raises(ValueError, match="y·alpha = 0"):
        HINGE.dual(X, y, np.array([1.0, 0.0]), 1.0, bias=None)
