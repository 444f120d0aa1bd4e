"""Pegasos against a step-by-step transcription of its definition, and against the optimum."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from small_problems import make_problem, needs_jit

from svmbench.core.linear.pegasos import Pegasos


def by_definition(X, y, C, draws, project, average):
    """Return w (or the mean of its second half) as the paper prints it, nothing stored cleverly."""
    X = np.column_stack([X, np.ones(len(X))])
    lam = 1 / (len(X) * C)
    T, k = draws.shape
    w = np.zeros(X.shape[1])
    iterates = []
    for t in range(1, T + 1):
        A = draws[t - 1]
        wrong = A[y[A] * (X[A] @ w) < 1]
        eta = 1 / (lam * t)
        w = (1 - eta * lam) * w + eta / k * (y[wrong] @ X[wrong])
        if project:
            w = w * min(1.0, 1 / (np.sqrt(lam) * np.linalg.norm(w)))
        iterates.append(w)
    return np.mean(iterates[T // 2 :], axis=0) if average else w


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("project", [False, True])
@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("k", [1, 5])
def test_follows_its_definition(form, project, average, k):
    # Rows without zeros: a row of zeros has the margin y b, which may be 1 up to rounding.
    X, y = make_problem(n=40, d=5, density=1.0)
    model = Pegasos(
        C=0.5, max_iter=201, batch_size=k, project=project, average=average, random_state=4
    )
    model.fit(form(X), y)
    draws = np.random.RandomState(4)  # the program draws each half apart when it averages
    halves = [100, 101] if average else [201]
    rows = np.vstack([draws.randint(0, 40, size=(n, k), dtype=np.int32) for n in halves])
    expected = by_definition(X, y, 0.5, rows, project, average)
    assert_allclose(np.append(model.coef_, model.intercept_), expected, rtol=1e-8, atol=1e-10)
    assert model.n_iter_ == 201
    assert model.counters_["examples"] == 201 * k


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_projection_of_huge_steps_does_not_exhaust_the_scale(form):
    """Every step of 1e6 is projected back: the scale is soon multiplied into the weights."""
    X, y = make_problem(n=40, d=5, density=1.0)
    X = 1e3 * X
    model = Pegasos(C=100.0, max_iter=60, project=True, average=True, random_state=4)
    model.fit(form(X), y)
    draws = np.random.RandomState(4)
    rows = np.vstack([draws.randint(0, 40, size=(30, 1), dtype=np.int32) for _ in range(2)])
    expected = by_definition(X, y, 100.0, rows, True, True)
    assert_allclose(np.append(model.coef_, model.intercept_), expected, rtol=1e-6)


def test_two_mirrored_samples_by_hand():
    # One feature, samples ±1: step 1 gives w = 1/lambda = 2, margins hold, then w = 2/t.
    model = Pegasos(C=1.0, max_iter=2, fit_intercept=False).fit([[1.0], [-1.0]], [1, -1])
    assert model.coef_[0, 0] == pytest.approx(1.0)


def test_trace_ends_at_the_model_and_changes_nothing():
    X, y = make_problem()
    traced = Pegasos(max_iter=1000, trace=True).fit(X, y)
    assert [point[1] for point in traced.trace_] == [2**i for i in range(10)] + [1000]
    assert traced.trace_[-1][2] == pytest.approx(traced.objective_)
    assert traced.trace_[-1][0] > 0
    assert traced.trace_[-1][2] < traced.trace_[0][2]


def test_same_seed_same_model():
    X, y = make_problem()
    first, again = (Pegasos(max_iter=300, random_state=9).fit(X, y) for _ in range(2))
    assert np.array_equal(first.coef_, again.coef_)
    assert not np.array_equal(first.coef_, Pegasos(max_iter=300).fit(X, y).coef_)


@needs_jit
def test_approaches_the_optimum():
    from svmbench.baselines.liblinear import LiblinearL1

    X, y = make_problem(n=300)
    best = LiblinearL1(C=0.1, tol=1e-6).fit(X, y).objective_
    reached = Pegasos(C=0.1, max_iter=200_000).fit(X, y).objective_
    assert best - 1e-6 <= reached < 1.01 * best
    with_projection = Pegasos(C=0.1, max_iter=200_000, project=True).fit(X, y).objective_
    assert with_projection < 1.01 * best


@pytest.mark.parametrize("wrong", [{"batch_size": 0}, {"max_iter": 0}, {"C": -1.0}])
def test_parameters_out_of_range(wrong):
    X, y = make_problem(n=20)
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be"):
        Pegasos(**wrong).fit(X, y)


@pytest.mark.slow
@pytest.mark.mirror
@needs_jit
def test_rate_and_precision_on_a9a(mirrored):
    """At lambda = 1e-4: within 2 % after 50 epochs, and suboptimality falling like 1/T."""
    from svmbench.core.linear.dcd import DCDL1

    X, y = mirrored("a9a")
    N = X.shape[0]
    C = 1 / (N * 1e-4)
    best = DCDL1(C=C, tol=1e-4, max_iter=20000).fit(X, y).objective_

    def excess(T, **how):
        runs = [Pegasos(C=C, max_iter=T, random_state=s, **how).fit(X, y) for s in range(5)]
        return np.mean([run.objective_ for run in runs]) / best - 1

    assert 0 < excess(50 * N, average=True) < 0.02
    assert 0 < excess(50 * N, project=True) < 0.03
    steps = [10**3, 10**4, 10**5, 10**6]
    slope = np.polyfit(np.log(steps), np.log([excess(T) for T in steps]), 1)[0]
    assert slope <= -0.7
