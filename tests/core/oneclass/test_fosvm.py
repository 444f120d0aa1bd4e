"""FOSVM1 and FOSVM2: the printed steps, the hard-margin optimum, the theorems, few evaluations."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from scipy.optimize import nnls
from scipy.stats import hypergeom
from sklearn.exceptions import ConvergenceWarning
from small_problems import needs_jit

import svmbench
from svmbench.base.compiled import JIT_DISABLED
from svmbench.core.kernels import columns
from svmbench.core.kernels.kernels import KernelFunction, KernelSource
from svmbench.core.oneclass import fosvm
from svmbench.core.oneclass.active_qp import ActiveSet
from svmbench.core.oneclass.fosvm import (
    FOSVM1,
    FOSVM2,
    LowestOfAll,
    LowestOfDrawn,
    active_set_bound,
    begin_search,
    grow_active_set,
)
from svmbench.core.oneclass.one_class import OneClass

N = 30 if JIT_DISABLED else 150


def samples(n=N, d=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def oracle(K):
    """Return the hard-margin alpha and rho by non-negative least squares.

    With K = R'R, min ||R u||^2 + (1 - sum u)^2 over u >= 0 is reached at a multiple of alpha.
    """
    values, vectors = np.linalg.eigh(K)
    R = (vectors * np.sqrt(np.maximum(values, 0.0))).T
    u, _ = nnls(np.vstack([R, np.ones(len(K))]), np.r_[np.zeros(len(K)), 1.0], maxiter=10_000)
    alpha = u / u.sum()
    return alpha, float(alpha @ K @ alpha)


def hard_margin(K):
    """Return alpha and rho of the active problem, whose points come one by one."""
    active = ActiveSet(K[0, 0])
    for p in range(1, len(K)):
        active.add(K[p, : p + 1])
    return active.alpha, active.rho


@pytest.mark.parametrize(("d", "gamma"), [(1, 2.0), (2, 0.5), (3, 1.0), (5, 0.05), (2, 20.0)])
def test_the_active_problem_is_solved_to_rounding(d, gamma):
    X = samples(d=d)
    K = KernelFunction("rbf", gamma).between(X, X)
    alpha, rho = hard_margin(K)
    scores = K @ alpha
    assert alpha.min() >= 0.0
    assert alpha.sum() == pytest.approx(1.0, abs=1e-12)
    assert np.min(scores) >= rho * (1.0 - 1e-9)
    assert_allclose(scores[alpha > 0], rho, rtol=1e-9)
    assert rho == pytest.approx(oracle(K)[1], rel=1e-8)


def test_each_point_that_comes_leads_to_the_optimum():
    X = np.vstack([samples(40), samples(10), [samples(1)[0]] * 3])
    K = KernelFunction("rbf", 0.3).between(X, X)
    active = ActiveSet(K[0, 0])
    for p in range(1, len(X)):
        active.add(K[p, : p + 1])
        best = oracle(K[: p + 1, : p + 1])[1]
        assert active.rho == pytest.approx(best, rel=1e-8)
        assert set(np.flatnonzero(active.alpha)) == set(active.support)


def printed(K, theta, choose):
    """Follow Algorithms 2 and 3 as printed, with an independent QP; return A, alpha and rho."""
    A = [0, 1]
    while True:
        alpha, rho = oracle(K[np.ix_(A, A)])
        outside = np.setdiff1d(np.arange(len(K)), A)
        B = choose(outside)
        if not len(B):
            return A, alpha, rho
        scores = K[np.ix_(B, A)] @ alpha
        p = B[np.argmin(scores)]
        if scores.min() - rho >= -theta * rho:
            return A, alpha, rho
        A.append(int(p))


@pytest.mark.parametrize("theta", [0.3, 0.05, 0.005])
@pytest.mark.parametrize("gamma", [0.1, 1.0])
def test_fosvm1_takes_the_printed_steps(theta, gamma):
    X = samples()
    source = KernelSource.from_inputs(X, KernelFunction("rbf", gamma))
    state = FOSVM1(theta=theta, gamma=gamma).search(source)
    K = KernelFunction("rbf", gamma).between(X, X)
    A, alpha, rho = printed(K, theta, lambda outside: outside)
    assert state.members == A
    assert_allclose(state.active.alpha, alpha, atol=1e-6)
    assert state.active.rho == pytest.approx(rho, rel=1e-8)
    assert state.iterations == len(A) - 1
    # One pass and one column an iteration, and a column for each of the first two.
    assert state.work["passes"] == state.iterations
    assert state.work["columns"] == len(A)


@pytest.mark.parametrize("m", [1, 7, 59, 1000])
def test_fosvm2_takes_the_printed_steps(m, monkeypatch):
    X, theta, seen = samples(), 0.02, []
    draw = LowestOfDrawn.draw

    def spying(self, members):
        seen.append(draw(self, members))
        return seen[-1]

    monkeypatch.setattr(LowestOfDrawn, "draw", spying)
    source = KernelSource.from_inputs(X, KernelFunction("rbf", 0.5))
    state = FOSVM2(theta=theta, gamma=0.5, n_candidates=m, random_state=3).search(source)
    rounds = iter(list(seen))

    def choose(outside):
        B = next(rounds)
        assert len(B) == min(m, len(outside))
        assert len(set(B.tolist())) == len(B)
        assert set(B.tolist()) <= set(outside.tolist())
        return B

    A, _, rho = printed(KernelFunction("rbf", 0.5).between(X, X), theta, choose)
    assert state.members == A
    assert state.active.rho == pytest.approx(rho, rel=1e-8)
    assert state.work["candidates"] == sum(len(B) for B in seen)
    if m == 1000:  # more than there are: every sample outside A is looked at
        everyone = FOSVM1(theta=theta, gamma=0.5).search(source)
        assert state.members == everyone.members


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_theta_to_zero_is_the_hard_margin_problem(kernel):
    X = samples() + (2.0 if kernel != "rbf" else 0.0)
    parameters = {"kernel": kernel, "gamma": 0.4, "coef0": 1.0, "degree": 2}
    model = FOSVM1(theta=1e-9, **parameters).fit(X)
    K = model.function.between(X, X)
    alpha, rho = oracle(K)
    assert model.offset_ == pytest.approx(rho, rel=1e-6)
    assert_allclose(model.decision_function(X), K @ alpha - rho, atol=1e-6 * np.abs(K).max())
    assert_allclose(model.score_samples(X), K @ alpha, atol=1e-6 * np.abs(K).max())
    assert model.objective_ - model.dual_objective_ <= 1e-6 * abs(model.objective_)
    assert np.all(model.predict(X) == 1)
    assert_allclose(model.offset_, hard_margin(K)[1], rtol=1e-8)


@needs_jit
def test_it_is_the_one_class_svm_that_leaves_nothing_outside():
    X = samples(60)
    hard = FOSVM1(theta=1e-9, gamma=0.5).fit(X)
    soft = OneClass(nu=1e-3, gamma=0.5, tol=1e-9).fit(X)
    assert_allclose(hard.decision_function(X), soft.decision_function(X), atol=1e-6)


@pytest.mark.parametrize("theta", [0.2, 0.03])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_every_training_sample_has_its_share_of_the_margin(theta, form, monkeypatch):
    # Above the samples for which a whole matrix is made columns are in single precision.
    monkeypatch.setattr(columns, "MATRIX_COLUMNS_MAX_SAMPLES", 10)
    monkeypatch.setattr(fosvm, "MATRIX_COLUMNS_MAX_SAMPLES", 10)
    for d in (2, 60):
        X = np.abs(samples(d=d)) * (samples(d=d, seed=1) > 0.9 if d > 2 else 1.0)
        model = FOSVM1(theta=theta, gamma=0.3).fit(form(X))
        scores = model.score_samples(form(X))
        assert np.min(scores) >= (1.0 - theta) * model.offset_
        assert model.smallest_membership_ >= 1.0 - theta
        assert model.smallest_membership_ == pytest.approx(
            min(1.0, scores.min() / model.offset_), abs=1e-12
        )


def test_what_single_precision_got_wrong_is_made_good_in_double(monkeypatch):
    X, theta = samples(), 0.01
    K = KernelFunction("rbf", 0.3).between(X, X)
    wrong = columns.MatrixColumns((K + 0.02 * (X[:, :1] > 1.0)).astype(np.float32))
    monkeypatch.setattr("svmbench.core.oneclass.fosvm.columns_for", lambda *_: wrong)
    model = FOSVM1(theta=theta, gamma=0.3).fit(X)
    assert np.min(K[:, model.support_] @ model.dual_coef_[0]) >= (1.0 - theta) * model.offset_


@pytest.mark.parametrize("cache_mb", [0.0, 0.005])
def test_columns_beyond_the_budget_are_computed_again(cache_mb):
    X = samples()
    ample = FOSVM1(theta=0.01, gamma=1.0).fit(X)
    tight = FOSVM1(theta=0.01, gamma=1.0, cache_mb=cache_mb).fit(X)
    assert np.array_equal(tight.support_, ample.support_)
    assert_allclose(tight.decision_function(X), ample.decision_function(X), atol=1e-9)
    assert tight.counters_["columns"] > ample.counters_["columns"]


@pytest.mark.parametrize("gamma", [0.02, 0.2, 2.0])
def test_the_active_set_is_never_larger_than_theorem_2_allows(gamma):
    X = samples(N, 2)
    margin = hard_margin(KernelFunction("rbf", gamma).between(X, X))[1] ** 0.5
    for theta in (0.5, 0.1, 0.02, 0.004):
        model = FOSVM1(theta=theta, gamma=gamma).fit(X)
        assert model.counters_["active"] <= active_set_bound(theta, margin)
        assert model.counters_["active"] <= model.counters_["iteration_bound"]
        assert model.counters_["iteration_bound"] <= active_set_bound(theta, margin)


def test_the_bound_by_hand():
    # d^2 = 1/2 makes t = theta; at t = 1/2: n/2 + 1 >= sqrt(2) (sqrt(2) + 1) = 3.41.
    assert active_set_bound(0.5, 0.5**0.5) == 5
    assert active_set_bound(0.01, 1.0) == 2
    assert active_set_bound(0.01, 1e-12) > 10**15
    # Once t is small it grows as 1/theta.
    assert active_set_bound(1e-4, 0.5) / active_set_bound(1e-3, 0.5) == pytest.approx(10, rel=1e-2)


def test_59_draws_hit_the_lowest_twentieth_as_often_as_the_paper_says():
    n, m, top = 2000, 59, 100
    source = KernelSource.from_inputs(np.zeros((n, 1)), KernelFunction())
    drawn = LowestOfDrawn(source, m, np.random.default_rng(0))
    trials = 2000
    hits = sum(bool(np.any(drawn.draw([]) < top)) for _ in range(trials))
    expected = 1.0 - hypergeom.pmf(0, n, top, m)
    assert expected > 0.95 > 1.0 - np.exp(-m * top / n) > 0.947
    assert abs(hits / trials - expected) < 4.0 * np.sqrt(expected * (1 - expected) / trials)


def test_fosvm2_reads_as_much_of_ten_thousand_samples_as_of_a_thousand():
    small, large = samples(1000, 2, seed=1), samples(10_000, 2, seed=1)
    for X in (small, large):
        model = FOSVM2(theta=0.1, gamma=0.5).fit(X)
        active, drawn = model.counters_["active"], model.counters_["candidates"]
        assert drawn == 59 * model.n_iter_
        assert model.counters_["kernel_evaluations"] <= drawn * active + active * (active + 1)
        assert model.counters_["kernel_evaluations"] < 1000 * 30


def test_any_selection_ends_at_the_same_precision():
    X, theta = samples(), 0.05
    source = KernelSource.from_inputs(X, KernelFunction("rbf", 0.5))
    K = source.whole(100.0)

    def first_violator(state):
        scores = K[:, state.members] @ state.active.alpha
        scores[state.members] = np.inf
        found = np.flatnonzero(scores < (1.0 - theta) * state.active.rho)
        return (int(found[0]), float(scores[found[0]])) if len(found) else (-1, np.inf)

    state = begin_search(source)
    grow_active_set(source, state, first_violator, theta, 1000)
    scores = K[:, state.members] @ state.active.alpha
    assert state.reason == "converged"
    assert scores.min() >= (1.0 - theta) * state.active.rho * (1.0 - 1e-9)
    best = FOSVM1(theta=theta, gamma=0.5).search(source)
    assert state.members != best.members


@pytest.mark.parametrize("solver", [FOSVM1, FOSVM2])
def test_degenerate_inputs(solver):
    one = solver().fit([[1.0, 2.0]])
    assert one.n_iter_ == 1
    assert list(one.support_) == [0]
    same = solver().fit(np.ones((70, 2)))
    assert len(same.support_) == 1
    assert same.offset_ == pytest.approx(1.0)
    both_sides = solver(kernel="linear").fit(samples(80))
    assert both_sides.stop_reason_ == "no margin"
    assert both_sides.offset_ == pytest.approx(0.0, abs=1e-12)
    assert solver(kernel="linear").fit(np.zeros((5, 2))).stop_reason_ == "no margin"


@pytest.mark.parametrize("solver", [FOSVM1, FOSVM2])
@pytest.mark.parametrize("theta", [0.0, -0.1, 1.0, 2.0, np.nan, "0.1"])
def test_theta_out_of_range_is_one_sentence(solver, theta):
    with pytest.raises(ValueError, match="theta must be a number above 0 and below 1, got theta="):
        solver(theta=theta).fit(samples(10))


def test_m_out_of_range_and_a_limit_of_iterations():
    with pytest.raises(ValueError, match="n_candidates must be an integer of at least 1"):
        FOSVM2(n_candidates=0).fit(samples(10))
    with pytest.warns(match="fosvm1 stopped at max_iter=3 before"):
        model = FOSVM1(theta=1e-3, gamma=2.0, max_iter=3).fit(samples())
    assert model.n_iter_ == 3
    assert model.counters_["active"] == 4


def test_a_kernel_matrix_has_the_same_solution():
    X = samples()
    source = KernelSource.precomputed(KernelFunction("rbf", 0.5).between(X, X))
    for model in (FOSVM1(gamma=0.5), FOSVM2(gamma=0.5)):
        solution = model.solve(source)
        model.fit(X)
        assert_allclose(solution.rho, model.offset_, rtol=1e-9)
        assert_allclose(solution.coefficients[model.support_], model.dual_coef_[0], atol=1e-7)


def test_everyone_finds_nothing_once_everyone_is_in():
    X = samples(4)
    source = KernelSource.from_inputs(X, KernelFunction("rbf", 5.0))
    state = begin_search(source)
    grow_active_set(source, state, LowestOfAll(columns.DoubleColumns(source), 1.0), 1e-12, 100)
    assert sorted(state.members) == [0, 1, 2, 3]
    assert state.reason == "converged"


@pytest.mark.parametrize("theta", [0.01, 0.2])
def test_a_precision_that_is_only_probable_is_counted_and_told(theta):
    """Samples below (1 - theta) of the margin are counted by hand; FOSVM1 never has any."""
    broken = []
    for seed in range(8):
        X = np.random.default_rng(seed).normal(size=(60 if JIT_DISABLED else 300, 3))
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            model = FOSVM2(theta, n_candidates=3, random_state=seed).fit(X)
        scores = model.score_samples(X)
        below = int(np.sum(scores < (1.0 - theta) * model.offset_))
        assert model.n_below_ == below
        assert model.stop_reason_ == "probably converged"
        sentences = [str(w.message) for w in said if issubclass(w.category, ConvergenceWarning)]
        assert len(sentences) == bool(below)
        assert all(f"{below} of the {len(X)} training samples" in each for each in sentences)
        broken.append(below > 0)
    assert any(broken)
    certain = FOSVM1(theta).fit(X)
    assert (certain.n_below_, certain.stop_reason_) == (0, "converged")


def test_the_list_of_solvers_says_that_it_is_probable():
    said = svmbench.solvers()["fosvm2"].summary
    assert "probable, not certain" in said
    assert "probable" not in svmbench.solvers()["fosvm1"].summary
