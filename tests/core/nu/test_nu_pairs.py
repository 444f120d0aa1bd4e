"""All pairs of classes of nu-svc on shared rows: against LIBSVM, each pair alone, by hand."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import NuSVC as Theirs
from small_problems import needs_jit

from svmbench.base.compiled import JIT_DISABLED
from svmbench.core.csvc import pairs
from svmbench.core.csvc.smo import ROWS_MISSING, Bounds, StoppingCriteria, grouped_steps
from svmbench.core.kernels.kernels import KernelFunction, KernelSource
from svmbench.core.kernels.rows import DenseRows
from svmbench.core.models.multiclass import OneVsOne
from svmbench.core.models.ovo_model import Layout
from svmbench.core.models.pairs import Pairs
from svmbench.core.nu import nu_pairs, nu_svc
from svmbench.core.nu.nu_problem import nu_svc_problem
from svmbench.core.nu.nu_svc import NuSVC
from svmbench.core.numeric.arrays import raw

#: Ways to the rows: all in float64; all in float32; some in float32, as they are asked for; some in
#: float64; and pairs that go on alone at once, on a copy of their matrix or on their samples.
SINGLE = {"PAIRS_FLOAT32_MIN_SAMPLES": 1, "PAIRS_FLOAT32_MIN_CLASS": 1}
ASKED = {**SINGLE, "CHECK_ALL_MAX_SAMPLES": 1, "ALL_ROWS_MAX_SAMPLES": 1}
WAYS = {
    "exact": {},
    "single": SINGLE,
    "asked": ASKED,
    "asked-double": {
        "PAIRS_FLOAT32_MIN_SAMPLES": 10_000,
        "PAIRS_FLOAT32_MIN_CLASS": 0,
        "ALL_ROWS_MAX_SAMPLES": 1,
    },
    "copied": {**SINGLE, "COPY_STEPS": 2},
    "alone": {**ASKED, "STEPS_A_SAMPLE": 0},
}


#: Constants of compiled loops, which have their values at compilation. To set them would write
#: loops with other values into the cache of compiled code, for all later processes.
COMPILED_IN = ("COPY_STEPS", "STEPS_A_SAMPLE")


def set_way(name, monkeypatch):
    for constant, value in WAYS[name].items():
        if constant in COMPILED_IN and not JIT_DISABLED:
            continue
        monkeypatch.setattr(pairs if hasattr(pairs, constant) else nu_pairs, constant, value)


@pytest.fixture(params=WAYS)
def way(request, monkeypatch):
    if not JIT_DISABLED and not WAYS[request.param].keys().isdisjoint(COMPILED_IN):
        honest = nu_pairs.NuPairSearch.take_steps_of

        def few(self, runs, table, so_far):
            limit, self.max_iter = self.max_iter, 2
            honest(self, runs, table, so_far)
            self.max_iter = limit

        monkeypatch.setattr(nu_pairs.NuPairSearch, "take_steps_of", few)
    set_way(request.param, monkeypatch)
    return request.param


def alone(monkeypatch):
    monkeypatch.setattr(nu_svc, "suits_joint_training", lambda sizes: False)


def classes(n=90, d=4, k=4, seed=0):
    """Return overlapping classes of different sizes, in no order."""
    draw = np.random.default_rng(seed)
    y = np.concatenate([np.arange(k), draw.choice(k, size=n - k)])
    X = draw.normal(size=(n, d)) + 1.5 * draw.normal(size=(k, d))[y]
    return X, y


def violations(model, X, y, weights=None):
    """Return the violation of each pair in LIBSVM's scale, and its rho, from differences."""
    found = []
    for pair, one in zip(Pairs(y), model.estimators_, strict=True):
        Z, n = X[pair.rows], len(pair.rows)
        K = np.exp(-one.gamma_ * ((Z[:, None, :] - Z[None, :, :]) ** 2).sum(axis=2))
        beta = np.zeros(n)
        beta[one.support_] = n * one.dual_coef_[0]
        high = np.ones(n) if weights is None else weights[pair.rows]
        high = high / high.mean()
        alpha, v, widest = beta * pair.signs, -K @ beta, -np.inf
        assert np.all(alpha >= 0.0)
        assert np.all(alpha <= high + 1e-12)
        for sign in (-1.0, 1.0):
            own = pair.signs == sign
            assert alpha[own].sum() == pytest.approx(0.5 * model.nu * n, rel=1e-9)
            rises = alpha < high * (1 - 1e-12) if sign > 0 else alpha > 0.0
            falls = alpha > 0.0 if sign > 0 else alpha < high * (1 - 1e-12)
            m, M = v[own & rises].max(initial=-np.inf), v[own & falls].min(initial=np.inf)
            widest = max(widest, m - M)
        found.append((widest, n * one.expansion_.rho))
    return np.array(found).T


@needs_jit
@pytest.mark.parametrize("nu", [0.1, 0.3, 0.5])
@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_each_pair_is_libsvm_s(way, nu, kernel):
    X, y = classes()
    chosen = {"nu": nu, "kernel": kernel, "gamma": 0.3, "coef0": 1.0, "tol": 1e-8}
    model = NuSVC(**chosen).fit(X, y)
    assert model.stop_reason_ == "converged"
    for pair, one in zip(Pairs(y), model.estimators_, strict=True):
        Z, n = X[pair.rows], len(pair.rows)
        theirs = Theirs(**chosen).fit(Z, pair.signs)
        # LIBSVM's multipliers have the sum nu N over its rho.
        rho = nu * n / np.abs(theirs.dual_coef_).sum()
        beta = np.zeros(n)
        beta[theirs.support_] = theirs.dual_coef_[0] * rho
        K = model.function.between(Z, Z)
        best = 0.5 * beta @ K @ beta / n**2
        # Of many samples the objective is of single-precision rows where no sample can violate.
        rel = 1e-5 if way in ("asked", "alone") else 1e-6
        assert -one.dual_objective_ == pytest.approx(best, rel=rel)
        assert one.objective_ == pytest.approx(-best, rel=10 * rel)
        assert n * one.expansion_.rho == pytest.approx(rho, rel=1e-5)
        f = one.decision_function(Z) / one.expansion_.rho
        assert_allclose(f, theirs.decision_function(Z), atol=1e-4 * np.abs(f).max())


@needs_jit
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("weighted", [False, True])
def test_each_pair_is_what_it_is_alone(way, form, weighted, monkeypatch):
    X, y = classes()
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(y)) if weighted else None
    chosen = {"nu": 0.3, "gamma": 0.4, "tol": 1e-8}
    together = NuSVC(**chosen).fit(form(X), y, sample_weight=weights)
    alone(monkeypatch)
    apart = NuSVC(**chosen).fit(form(X), y, sample_weight=weights)
    assert together.stop_reason_ == "converged"
    # Of many samples the objective is of single-precision rows where no sample can violate.
    rel = 1e-5 if way in ("asked", "alone") else 1e-6
    assert together.objective_ == pytest.approx(apart.objective_, rel=rel)
    assert together.dual_objective_ == pytest.approx(apart.dual_objective_, rel=rel)
    assert_allclose(together.decision_function(X), apart.decision_function(X), atol=1e-5)
    assert_array_equal(together.predict(X), apart.predict(X))
    assert_array_equal(together.support_, apart.support_)
    for one, other in zip(together.estimators_, apart.estimators_, strict=True):
        assert_array_equal(one.support_, other.support_)
        assert_allclose(one.dual_coef_, other.dual_coef_, atol=1e-6)
        assert one.expansion_.rho == pytest.approx(other.expansion_.rho, rel=1e-5)
        assert one.objective_ == pytest.approx(other.objective_, rel=10 * rel)
        assert one.counters_.items() <= other.counters_.items()
    for name in ("support_vectors", "bounded_support_vectors"):
        own = [one.counters_[name] for one in together.estimators_]
        assert sum(own) == together.counters_[name] == apart.counters_[name] > 0
    total = sum(one.objective_ for one in together.estimators_)
    assert together.objective_ == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize("times", [1.0, 1e-3])
def test_conditions_hold_in_float64(way, times):
    X, y = classes(n=30 if JIT_DISABLED else 150, k=3)
    weights = np.random.default_rng(2).uniform(0.1, 2.0, len(y))
    # Of nearly equal samples, rho is small: the tolerance is relative to it.
    model = NuSVC(nu=0.4, gamma=0.3).fit(times * X, y, sample_weight=weights)
    assert model.stop_reason_ == "converged"
    violation, rho = violations(model, times * X, y, weights)
    assert np.all(rho < 1.0) or times == 1.0
    # Beside the tolerance: rounding of kernel values near 1, and of their sums.
    assert np.all(violation <= 1e-3 * np.minimum(1.0, rho) * (1.0 + 1e-6) + 1e-13 * len(y))


@pytest.mark.parametrize("error", [0.003, 0.5])
def test_what_single_precision_gets_wrong_is_found(error, monkeypatch):
    set_way("asked", monkeypatch)
    honest = DenseRows.fill

    def wrong(self, samples, columns, start, stop, out, at, left=0):
        honest(self, samples, columns, start, stop, out, at, left)
        out[at, left : left + stop - start] *= 1.0 + error * np.cos(np.arange(start, stop))

    X, y = classes(n=30 if JIT_DISABLED else 90, k=3, d=60)
    monkeypatch.setattr(DenseRows, "fill", wrong)
    model = NuSVC(nu=0.4, gamma=0.01).fit(X, y)
    assert model.stop_reason_ == "converged"
    # Where kernel values are far from right, pairs go on alone.
    assert error > 0.1 or model.counters_["checks"] > len(model.estimators_)
    monkeypatch.undo()
    violation, rho = violations(model, X, y)
    assert np.all(violation <= 1e-3 * np.minimum(1.0, rho) + 1e-12)


def test_only_rows_that_are_asked_for_are_made(monkeypatch):
    set_way("asked", monkeypatch)
    draw = np.random.default_rng(0)
    y = np.repeat(np.arange(3), 60)
    X = 6.0 * np.eye(3)[y] + draw.normal(size=(180, 3))
    model = NuSVC(nu=0.02, gamma=0.05).fit(X, y)
    assert len(model.support_) < 60
    assert model.counters_["kernel_evaluations"] < 180 * 120


def test_steps_of_a_pair_are_those_on_its_matrix():
    X, y = classes(n=40, k=2)
    X, y = X[np.argsort(y, kind="stable")], np.sort(y)
    layout = Layout.of(y, [0], [1])
    K = KernelFunction("rbf", 0.5).between(X, X)
    high = np.ones(40)
    start = nu_pairs.starts_of_all(layout, 0.4, high)
    signed, first = nu_svc_problem(layout.signs, 0.4)
    assert_allclose(start * layout.signs, first)
    m, n = int(layout.starts[1]), len(y)
    slots = n * np.arange(n), n * np.arange(n) + m
    bounds = Bounds(signed.low, signed.high)
    wanted = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
    for most in (1, 2, 5, 10_000):
        criteria, ours, theirs = StoppingCriteria(1e-6, most), start * layout.signs, first.copy()
        v, u = -K @ ours, -K @ theirs
        diag = raw(np.ascontiguousarray(K.diagonal()))
        steps, reason = nu_pairs.steps_of_nu_pair(
            raw(K.ravel()), slots, diag, (0, m, m, n), bounds, criteria, (ours, v), wanted
        )
        group = np.repeat([0, 1], [m, n - m])
        found = grouped_steps(raw(K), diag, group, bounds, criteria, theirs, u)
        assert (steps, reason) == found
        assert_array_equal(ours, theirs)
        assert_allclose(v, -K @ ours, atol=1e-12)
        assert not np.any(wanted)
    # Without its runs at the second class, the first sample that rises is asked for.
    slots[1][:] = -1
    ours = start * layout.signs
    part = (ours, -K @ ours), wanted
    steps, reason = nu_pairs.steps_of_nu_pair(
        raw(K.ravel()), slots, diag, (0, m, m, n), bounds, criteria, *part
    )
    assert (steps, reason) == (0, ROWS_MISSING)
    assert np.any(wanted[1])
    assert not np.any(wanted[0])


def test_no_room_for_rows(monkeypatch):
    X, y = classes(n=24 if JIT_DISABLED else 90, k=3)
    first = NuSVC(nu=0.4, tol=1e-6).fit(X, y)
    set_way("asked", monkeypatch)
    second = NuSVC(nu=0.4, tol=1e-6, cache_mb=0.0).fit(X, y)
    assert second.stop_reason_ == "converged"
    assert_allclose(second.decision_function(X), first.decision_function(X), atol=1e-4)


def test_a_nu_that_a_pair_can_not_have_is_told_as_of_the_pair_alone(monkeypatch):
    X, y = classes(n=40, k=3)
    y[np.flatnonzero(y == 2)[2:]] = 1
    with pytest.raises(ValueError, match=r"nu=0\.5 is too large: with this") as told:
        NuSVC(nu=0.5).fit(X, y)
    alone(monkeypatch)
    with pytest.raises(ValueError, match=r"nu=0\.5 is too large") as again:
        NuSVC(nu=0.5).fit(X, y)
    assert str(told.value) == str(again.value)


@needs_jit
def test_a_nu_without_a_margin_is_told_with_one_that_serves_all_pairs(monkeypatch):
    draw = np.random.default_rng(0)
    y = np.arange(120) % 3
    X = draw.normal(size=(120, 3))
    X[:, 0] += 0.6 * (y == 1) + 9.0 * (y == 2)
    said = r"nu-svc finds no margin at nu=0.05, where the model is w = 0: nu=(0[.]\d+) has one$"
    with pytest.warns(ConvergenceWarning, match=said) as told:
        model = NuSVC(nu=0.05, kernel="linear").fit(X, y)
    assert model.stop_reason_ == "no margin"
    reasons = [one.stop_reason_ for one in model.estimators_]
    assert reasons == ["no margin", "converged", "converged"]
    alone(monkeypatch)
    with pytest.warns(ConvergenceWarning, match=said) as again:
        apart = NuSVC(nu=0.05, kernel="linear").fit(X, y)
    assert str(told[0].message) == str(again[0].message)
    assert [one.stop_reason_ for one in apart.estimators_] == reasons
    assert model.objective_ == pytest.approx(apart.objective_, rel=1e-3)
    monkeypatch.undo()
    useful = float(str(told[0].message).split("nu=")[-1].split()[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert NuSVC(nu=useful, kernel="linear").fit(X, y).stop_reason_ == "converged"


def test_a_limit_of_steps_is_told():
    X, y = classes(n=40, k=3)
    with pytest.warns(ConvergenceWarning, match="stopped at max_iter=3"):
        model = NuSVC(nu=0.4, max_iter=3).fit(X, y)
    assert model.stop_reason_ == "max_iter"
    assert np.all(model.n_iter_ <= 3)


def test_three_steps_of_a_benchmark_and_a_pickle():
    X, y = classes(n=30, k=3)
    model = OneVsOne(NuSVC(nu=0.4))
    data = model.prepare(X, y)
    model.train(data).evaluate_objective(data)
    fitted = NuSVC(nu=0.4).fit(X, y)
    assert model.objective_ == pytest.approx(fitted.objective_, rel=1e-9)
    assert model.dual_objective_ <= model.objective_
    # The sums of the problems' own values, and LIBSVM's decision values times rho.
    for name in ("objective_", "dual_objective_"):
        total = sum(getattr(one, name) for one in fitted.estimators_)
        assert getattr(fitted, name) == pytest.approx(total, rel=1e-12)
    rho = [one.expansion_.rho for one in fitted.estimators_]
    fitted.decision_function_shape = "ovo"
    theirs = Theirs(nu=0.4, decision_function_shape="ovo").fit(X, y).decision_function(X)
    assert_allclose(fitted.decision_function(X) / rho, theirs, atol=0.01)
    again = pickle.loads(pickle.dumps(fitted))
    assert_array_equal(again.decision_function(X), fitted.decision_function(X))


def test_bounds_and_starts_of_weighted_pairs():
    y = np.repeat([0, 1, 2], [3, 4, 5])
    layout = Layout.of(y, [0, 0, 1], [1, 2, 2])
    high = np.random.default_rng(0).uniform(0.5, 1.5, len(layout.places))
    start = nu_pairs.starts_of_all(layout, 0.3, high)
    for p in range(3):
        own = layout.variables(p)
        _, alone_start = nu_svc_problem(layout.signs[own], 0.3, high[own])
        assert_allclose(start[own] * layout.signs[own], alone_start, atol=1e-15)


def test_judge_is_the_primal_and_the_dual_value():
    X, y = classes(n=30, k=2)
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    signs = np.where(y == 1, 1.0, -1.0)
    K = KernelFunction("rbf", 0.5).between(X, X)
    problem, beta = nu_svc_problem(signs, 0.4)
    bounds, m = Bounds(problem.low, problem.high), int(np.sum(y == 0))
    v = -K @ beta
    violation, rho, _ = nu_pairs.judge(m, bounds, (beta, v))
    model = NuSVC(nu=0.4, gamma=0.5, tol=1e-9).fit(X, y)
    alpha = np.zeros(30)
    alpha[model.support_] = 30 * model.dual_coef_[0]
    there = nu_pairs.judge(m, bounds, (alpha, -K @ alpha))
    assert there[0] <= 1e-9 < 1e-2 < violation
    assert there[1] == pytest.approx(30 * model.expansion_.rho, rel=1e-6)
    assert there[2]
    assert rho != pytest.approx(there[1], rel=1e-3)
    # w = 0 proves nothing.
    assert not nu_pairs.judge(m, bounds, (beta, 0.0 * v))[2]


def test_a_source_of_pairs_counts_its_kernel_values():
    X, y = classes(n=30, k=3)
    layout = Layout.of(y, [0, 0, 1], [1, 2, 2])
    source = KernelSource.from_inputs(X[layout.order], KernelFunction("rbf", 0.5))
    found = nu_pairs.solve_nu_pairs(source, layout, 0.4)
    assert found.counters["kernel_evaluations"] >= 30 * 30 / 2


@needs_jit
def test_a_pair_without_a_margin_ends_as_alone_and_nu_is_limited_by_every_pair():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(200, 2)), rng.normal(size=(20, 2)) + 40.0])
    y = np.repeat([0, 1, 2], [100, 100, 20])
    with pytest.warns(ConvergenceWarning) as caught:
        model = NuSVC(nu=0.3, gamma=0.1).fit(X, y)
    # The first pair has a margin at about nu = 0.8, where 20 of 120 samples are too few.
    (sentence,) = {str(one.message) for one in caught}
    assert sentence.endswith("where the model is w = 0, and knows of none at a larger nu")
    assert [pair.stop_reason_ for pair in model.estimators_] == ["no margin", *["converged"] * 2]
    with pytest.warns(ConvergenceWarning):
        alone = NuSVC(nu=0.3, gamma=0.1).fit(X[:200], y[:200])
    assert model.n_iter_[0] <= 2 * alone.n_iter_
    # Of two complaints, the one about steps is told.
    with pytest.warns(ConvergenceWarning, match="stopped at max_iter=3 before"):
        model = NuSVC(nu=0.3, gamma=0.1, max_iter=3).fit(X, y)
    assert model.stop_reason_ == "max_iter"


def repeated(n, k, seed=0):
    """Return points that are there ten times, with labels at random: no pair has a margin."""
    draw = np.random.default_rng(seed)
    return draw.random((n // 10, 5))[draw.integers(n // 10, size=n)], draw.integers(k, size=n)


@needs_jit
def test_a_pair_that_rounding_leaves_without_a_margin_is_solved_once(monkeypatch):
    solved, honest = [], pairs.solve_qp
    monkeypatch.setattr(
        pairs, "solve_qp", lambda *given, **how: solved.append(how) or honest(*given, **how)
    )
    with pytest.warns(ConvergenceWarning, match="no margin"):
        model = NuSVC(gamma="scale").fit(*repeated(150, 5))
    reasons = [each.stop_reason_ for each in model.estimators_]
    without = [each for each in model.estimators_ if each.stop_reason_ == "no margin"]
    assert len(without) >= 5
    assert set(reasons) <= {"no margin", "converged"}
    for each in without:
        assert abs(each.dual_objective_) < 1e-14
    assert len(solved) <= len(without) // 3


@needs_jit
def test_a_pair_without_a_margin_takes_few_steps_in_float32():
    with pytest.warns(ConvergenceWarning, match="no margin"):
        model = NuSVC(gamma="scale").fit(*repeated(900, 3))
    assert [each.stop_reason_ for each in model.estimators_] == 3 * ["no margin"]
    for each in model.estimators_:
        assert abs(each.dual_objective_) < 1e-14
    # Each of 3 pairs of some 600 samples takes nu_pairs.COPY_STEPS steps before its copy.
    assert model.counters_["updates"] <= 3 * 2500
