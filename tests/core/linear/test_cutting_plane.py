"""Cutting planes within their stated precision, and the small QPs they stand on."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from small_problems import make_problem, needs_jit

from svmbench.baselines.liblinear import LiblinearL1
from svmbench.core.linear import cutting_plane
from svmbench.core.linear.cutting_plane import SVMPerf
from svmbench.core.linear.dcd import DCDL1
from svmbench.core.numeric import qp
from svmbench.core.numeric.qp import simplex_qp


def test_qp_by_hand():
    # On a1 + a2 = 1: a1^2/2 + a2^2 is least at (2/3, 1/3).
    a = np.array([1.0, 0.0])
    _, gap = simplex_qp(np.diag([1.0, 2.0]), np.zeros(2), 1.0, a, 1e-12, 1000)
    assert_allclose(a, [2 / 3, 1 / 3])
    assert gap <= 1e-12


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 6), st.integers(1, 6), st.sampled_from([0.1, 1, 50]))
def test_qp_against_a_general_solver(seed, n, rank, s):
    rng = np.random.default_rng(seed)
    B = rng.normal(size=(n, rank))
    H, b = B @ B.T, rng.normal(size=n)
    a = np.full(n, s / n)
    _, gap = simplex_qp(H, b, s, a, 1e-9, 100_000)
    assert gap <= 1e-9
    assert np.all(a >= 0)
    assert np.sum(a) == pytest.approx(s)
    other = minimize(
        lambda u: 0.5 * u @ H @ u - b @ u,
        np.full(n, s / n),
        jac=lambda u: H @ u - b,
        bounds=[(0, None)] * n,
        constraints={"type": "eq", "fun": lambda u: u.sum() - s},
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    ours = 0.5 * a @ H @ a - b @ a
    assert ours <= other.fun + 1e-6 * max(1.0, abs(other.fun))


def test_qp_stops_when_told_and_says_how_far_it_came():
    rng = np.random.default_rng(0)
    B = rng.normal(size=(30, 20))
    a = np.full(30, 1 / 30)
    steps, gap = simplex_qp(B @ B.T, rng.normal(size=30), 1.0, a, 0.0, 3)
    assert steps == 3
    assert gap > 0
    assert np.sum(a) == pytest.approx(1.0)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("eps", [1e-2, 1e-4])
@pytest.mark.parametrize("bias", [0.0, 1.0])
def test_ends_within_its_precision(form, eps, bias):
    X, y = make_problem(n=100, d=6)
    C = 0.3
    model = SVMPerf(C=C, tol=eps, fit_intercept=bias > 0).fit(form(X), y)
    best = DCDL1(C=C, tol=1e-8, max_iter=20000, fit_intercept=bias > 0).fit(X, y).objective_
    assert -1e-6 <= model.objective_ - best <= 100 * C * eps
    assert model.stop_reason_ == "converged"


def test_cuts_without_weight_are_dropped_and_few_cuts_are_said():
    X, y = make_problem(n=200, d=12)
    model = SVMPerf(C=5.0, tol=1e-4, trace=True).fit(X, y)
    assert 0 < model.counters_["dropped"] < model.counters_["cuts"]
    assert model.trace_[-1][2] == pytest.approx(model.objective_)
    stopped = SVMPerf(C=5.0, tol=1e-4, max_iter=3).fit(X, y)
    assert (stopped.n_iter_, stopped.stop_reason_) == (3, "max_iter")


@pytest.mark.mirror
@needs_jit
def test_ends_within_its_precision_on_a9a(mirrored):
    X, y = mirrored("a9a")
    best = LiblinearL1(C=0.05, tol=1e-4).fit(X, y).objective_
    model = SVMPerf(C=0.05, tol=1e-3).fit(X, y)
    assert model.objective_ - best <= len(y) * 0.05 * 1e-3


def test_cuts_are_in_use_or_counted_as_dropped(monkeypatch):
    made = []

    class Watched(cutting_plane.CutSet):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            made.append(self)

    monkeypatch.setattr(cutting_plane, "CutSet", Watched)
    X, y = make_problem(n=80, d=4)
    for qps_without_weight, drops in ((1000, False), (2, True)):
        monkeypatch.setattr(qp, "MAX_QPS_WITHOUT_WEIGHT", qps_without_weight)
        counters = SVMPerf(C=10.0, tol=1e-3).fit(X, y).counters_
        in_use = len(made.pop().alpha) - 1  # the first is no cut that was found
        assert counters["dropped"] == counters["cuts"] - in_use
        assert (counters["dropped"] > 0) is drops
