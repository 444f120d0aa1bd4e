"""Oracles of the kernel solvers' tests: LIBSVM's values, and what optimality asks of a model."""

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import lsq_linear

from svmbench.baselines.libsvm import Libsvm


def multipliers(model, y):
    """Return the multipliers of a fitted model, which must be feasible in their box."""
    alpha = np.zeros(len(y))
    alpha[model.support_] = model.dual_coef_[0] * y[model.support_]
    assert alpha.min() >= 0.0
    assert alpha.max() <= model.C
    return alpha


def residual(model, X, y, f=None):
    """Return how far a model with a free offset is from optimal: LIBSVM's gap."""
    alpha = multipliers(model, y)
    assert abs(alpha @ y) <= 1e-9 * max(1.0, alpha.sum())
    F = (model.decision_function(X) if f is None else f) - model.intercept_[0] - y
    up = np.where(y > 0, alpha < model.C, alpha > 0)
    low = np.where(y > 0, alpha > 0, alpha < model.C)
    return F[low].max() - F[up].min()


def violation(model, X, y):
    """Return the largest violation of the conditions at the model's own offset."""
    alpha = multipliers(model, y)
    slack = y * model.decision_function(X) - 1.0
    return max(np.max(-slack[alpha < model.C], initial=0), np.max(slack[alpha > 0], initial=0))


def assert_same_as_libsvm(models, X, y, **parameters):
    """Hold fitted models against LIBSVM with these parameters, all at tol 1e-6."""
    theirs = Libsvm(tol=1e-6, cache_size=500.0, **parameters).fit(X, y)
    best, g = theirs.dual_objective_, theirs.decision_function(X)
    for model in models:
        name, f = model.declaration.name, model.decision_function(X)
        assert model.stop_reason_ == "converged", name
        assert abs(model.dual_objective_ - best) <= 1e-6 * best, name
        assert residual(model, X, y, f) <= 2.0 * model.tol + 1e-9 * max(1.0, model.C), name
        far = np.abs(g) > 10.0 * model.tol
        assert np.array_equal(f[far] > 0, g[far] > 0), name


def box_qp(Q, C):
    """Return the minimiser of 1/2 a'Qa - e'a over [0, C]^n by bounded least squares."""
    root = cholesky(Q)
    target = solve_triangular(root, np.ones(len(Q)), trans="T")
    return lsq_linear(root, target, bounds=(0.0, C), method="bvls", tol=1e-14).x
