"""Cyanure's squared-hinge SVM, where it is installed, against newton-l2's optimum."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

pytest.importorskip("cyanure", reason="the optional cyanure is not installed")

from svmbench.baselines.cyanure import CYANURE_SOLVERS, CyanureBaseline
from svmbench.core.linear.newton import NewtonL2


def problem():
    rng = np.random.default_rng(0)
    X = rng.random((200, 8)) * (rng.random((200, 8)) < 0.6)
    return X, np.where(X @ rng.normal(size=8) + 0.2 * rng.normal(size=200) > 0.3, 1, -1)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(
    "settings",
    [{"C": 0.1}, {"C": 4.0}, {"C": 1.0, "fit_intercept": False}, {"intercept_scaling": 3.0}],
)
def test_same_optimum_as_newton(form, settings):
    X, y = problem()
    best = NewtonL2(tol=1e-9, **settings).fit(X, y)
    peer = CyanureBaseline(tol=1e-8, solver="qning-miso", **settings).fit(form(X), y)
    assert peer.objective_ == pytest.approx(best.objective_, rel=1e-6)
    np.testing.assert_allclose(peer.decision_function(X), best.decision_function(X), atol=1e-2)
    assert peer.stop_reason_ == "converged"


def test_passes_at_most():
    X, y = problem()
    with pytest.warns(ConvergenceWarning, match="stopped at max_iter=2"):
        model = CyanureBaseline(C=100.0, tol=1e-12, max_iter=2).fit(X, y)
    assert model.stop_reason_ == "max_iter"


def test_a_solver_that_it_has_not():
    X, y = problem()
    with pytest.raises(ValueError, match=f"solver must be one of {', '.join(CYANURE_SOLVERS)}"):
        CyanureBaseline(solver="fista").fit(X, y)
