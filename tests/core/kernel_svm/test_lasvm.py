"""LASVM step by step against a naive transcription, and its finished model against LIBSVM."""

import numpy as np
import pytest
import scipy.sparse as sp
from kernel_oracles import multipliers
from numpy.testing import assert_allclose
from small_problems import make_problem, needs_jit

from svmbench.baselines.libsvm import Libsvm
from svmbench.core.kernel_svm import lasvm
from svmbench.core.kernel_svm.lasvm import (
    LASVM,
    bring_best,
    extremes,
    insert,
    make_room,
    process,
    reprocess,
)
from svmbench.core.kernels.kernels import KernelFunction
from svmbench.core.kernels.member_inputs import member_inputs
from svmbench.core.numeric.random import generator

FORMS = pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
RBF = KernelFunction("rbf", 0.7)


class Transcribed:
    """The printed PROCESS and REPROCESS, with whole vectors and no places."""

    def __init__(self, K, y, C, tau):
        self.K, self.y, self.C, self.tau = K, y, C, tau
        self.alpha, self.S, self.tied = np.zeros(len(y)), [], False
        self.A, self.B = np.minimum(0.0, C * y), np.maximum(0.0, C * y)

    @property
    def g(self):
        return self.y - self.K @ self.alpha

    def extremes(self):
        g = self.g
        up = sorted((s for s in self.S if self.alpha[s] < self.B[s]), key=lambda s: -g[s])
        down = sorted((s for s in self.S if self.alpha[s] > self.A[s]), key=lambda s: g[s])
        # A step that ends within the box leaves two gradients equal: which is next is rounding.
        self.tied |= any(
            len(some) > 1 and abs(g[some[0]] - g[some[1]]) < 2e-5 for some in (up, down)
        )
        return up[0] if up else None, down[0] if down else None

    def step(self, i, j):
        g, K = self.g, self.K
        if g[i] - g[j] <= self.tau:
            return
        step = (g[i] - g[j]) / (K[i, i] + K[j, j] - 2.0 * K[i, j])
        step = min(step, self.B[i] - self.alpha[i], self.alpha[j] - self.A[j])
        self.alpha[i] += step
        self.alpha[j] -= step
        for s in (i, j):
            for bound in (0.0, self.A[s], self.B[s]):
                if abs(self.alpha[s] - bound) < 1e-12:
                    self.alpha[s] = bound

    def process(self, k):
        if k in self.S:
            return
        self.S.append(k)
        i, j = self.extremes()
        i, j = (k, j) if self.y[k] > 0 else (i, k)
        if i is not None and j is not None:
            self.step(i, j)

    def reprocess(self):
        i, j = self.extremes()
        if i is None or j is None:
            return 0.0
        self.step(i, j)
        i, j = self.extremes()
        g = self.g
        for s in list(self.S):
            if self.alpha[s] == 0.0 and (g[s] >= g[i] if self.y[s] < 0 else g[s] <= g[j]):
                self.S.remove(s)
        return g[i] - g[j]


def state(kept, n):
    """Return multipliers by sample, and the set of samples that are kept."""
    alive = kept.sample >= 0
    alpha = np.zeros(n)
    alpha[kept.sample[alive]] = kept.alpha[alive]
    return alpha, set(kept.sample[alive].tolist())


@needs_jit
@FORMS
@pytest.mark.parametrize("cache_mb", [0.0, 100.0])
def test_steps_are_those_of_the_printed_algorithm(form, cache_mb):
    n, C, tau = 150, 2.0, 1e-3
    X, y = make_problem(n=n, d=4, density=1.0)
    y = y.astype(float)
    inputs, kept = member_inputs(form(X), RBF), make_room(n, n, cache_mb)
    machine, compared = Transcribed(RBF.between(X, X), y, C, tau), 0
    for label in (1.0, -1.0):
        for i in np.flatnonzero(y == label)[:5]:
            insert(inputs, kept, int(i), label)
    gap = np.inf
    for i in [*generator(0).permutation(n), *[-1] * 300]:
        for part in ("process", "reprocess"):
            machine.alpha, S = state(kept, n)
            machine.S, machine.tied = sorted(S), False
            if part == "process" and i >= 0 and i not in S:
                process(inputs, kept, C, tau, i, y[i])
                machine.process(i)
            elif part == "reprocess":
                gap = reprocess(inputs, kept, C, tau)
                assert gap == pytest.approx(machine.reprocess(), abs=1e-4) or machine.tied
            alpha, S = state(kept, n)
            if not machine.tied:
                assert_allclose(alpha, machine.alpha, atol=1e-4)
                assert set(machine.S) == S
                compared += 1
    assert compared > 200
    assert gap <= tau
    assert len(S) > 0


@pytest.mark.parametrize("by_margin", [False, True])
def test_the_best_candidate_comes_first(by_margin):
    X, y = make_problem(n=60, d=4, density=1.0)
    y = y.astype(float)
    inputs, kept = member_inputs(X, RBF), make_room(60, 60, 1.0)
    for i in range(12):
        process(inputs, kept, 1.0, 1e-3, i, y[i])
        reprocess(inputs, kept, 1.0, 1e-3)
    alpha, _ = state(kept, 60)
    i, j = extremes(kept, 1.0)
    f = RBF.between(X, X) @ alpha + 0.5 * (kept.g[i] + kept.g[j])
    order, uniform = np.arange(60), np.random.default_rng(0).random(50)
    left = 12 + (uniform * 48).astype(int)
    score = np.abs(f[left]) if by_margin else y[left] * f[left]
    bring_best(inputs, kept, y, 1.0, order, 12, uniform, by_margin)
    assert order[12] == left[np.argmin(score)]
    assert sorted(order) == list(range(60))


def test_places_and_rows_run_out_and_nothing_changes(monkeypatch):
    X, y = make_problem(n=120, d=4, density=1.0)
    roomy = LASVM(C=2.0, gamma=0.7, epochs=2).fit(X, y)
    monkeypatch.setattr(lasvm, "FIRST_PLACES", 16)
    tight = LASVM(C=2.0, gamma=0.7, epochs=2, cache_mb=0.0).fit(X, y)
    assert tight.dual_objective_ == pytest.approx(roomy.dual_objective_, rel=1e-3)
    assert tight.counters_["kernel_evaluations"] > roomy.counters_["kernel_evaluations"]


@needs_jit
@FORMS
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize(
    ("selection", "within"), [("gradient", 1e-3), ("random", 0.03), ("margin", 0.03)]
)
def test_finishing_is_optimal_on_what_was_kept(form, kernel, selection, within):
    X, y = make_problem(n=300, d=6)
    model = LASVM(C=1.0, gamma=0.7, kernel=kernel, selection=selection).fit(form(X), y)
    theirs = Libsvm(C=1.0, gamma=0.7, kernel=kernel, tol=1e-6).fit(X, y)
    assert model.stop_reason_ == "converged"
    assert -1e-6 <= 1.0 - model.dual_objective_ / theirs.dual_objective_ <= within
    alpha = multipliers(model, y)
    assert abs(alpha @ y) <= 1e-9
    own = model.support_
    g = (y - model.decision_function(X) + model.intercept_[0])[own]
    up = np.where(y[own] > 0, alpha[own] < 1.0, True)
    down = np.where(y[own] > 0, True, alpha[own] < 1.0)
    assert g[up].max() - g[down].min() <= 1e-3 + 1e-5


@pytest.mark.slow
@needs_jit
@FORMS
@pytest.mark.parametrize("far", [0.0, 1e3, 1e4, 1e6])
def test_linear_values_keep_the_digits_of_differences(form, far):
    X, y = make_problem(n=160, d=6, density=1.0)
    X[:, 5] *= 100.0
    best = Libsvm(C=1.0, kernel="linear", tol=1e-6).fit(X, y)
    model = LASVM(C=1.0, kernel="linear", selection="gradient").fit(form(X + far), y)
    assert model.stop_reason_ == "converged"
    assert model.dual_objective_ == pytest.approx(best.dual_objective_, rel=2e-3)
    assert model.objective_ == pytest.approx(best.objective_, rel=1e-2)
    f, expected = model.decision_function(X + far), best.decision_function(X)
    assert np.mean((f > 0) == (expected > 0)) > 0.98


@FORMS
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("selection", ["random", "gradient", "margin"])
@pytest.mark.parametrize("n_positive", [12, 20, 31, 48])
def test_equal_rows_are_of_the_larger_class(form, kernel, selection, n_positive):
    # The closed form: w = 0, |b| <= 1 with the sign of the larger class, the loss of the smaller.
    X, y = np.full((60, 3), 2.0), np.where(np.arange(60) % 60 < n_positive, 1, -1)
    model = LASVM(kernel=kernel, selection=selection).fit(form(X), y)
    assert model.predict(X[:1])[0] == (1 if n_positive > 30 else -1)
    assert model.objective_ == pytest.approx(2.0 * min(n_positive, 60 - n_positive))


def test_the_offset_has_the_least_loss_of_its_interval():
    rng = np.random.default_rng(0)
    for n in (2, 7, 30):
        f, y = rng.normal(size=n), np.where(np.arange(n) % 3, 1.0, -1.0)
        low, high = np.sort(rng.normal(size=2))
        for ends in ((low, high), (-np.inf, high), (low, np.inf)):
            b = lasvm.best_offset(f, y, *ends)
            grid = np.clip(np.linspace(-6.0, 6.0, 2001), *ends)
            least = np.maximum(0.0, 1.0 - y * (f + grid[:, None])).sum(axis=1).min()
            assert ends[0] <= b <= ends[1]
            assert np.maximum(0.0, 1.0 - y * (f + b)).sum() <= least + 1e-9


@pytest.mark.slow
@needs_jit
@pytest.mark.mirror
def test_dual_values_on_adult_are_those_of_the_authors_program(mirrored):
    X, y = mirrored("a9a")
    X, y = X[:1605], y[:1605]
    for selection, value in (("random", 578.839), ("gradient", 584.788), ("margin", 573.227)):
        model = LASVM(C=1.0, gamma=0.05, selection=selection).fit(X, y)
        assert model.dual_objective_ == pytest.approx(value, rel=0.01)


def test_a_bound_on_what_is_kept_ends_the_epoch():
    X, y = make_problem(n=200, d=4, density=1.0)
    model = LASVM(gamma=0.7, n_basis=20).fit(X, y)
    assert 2 <= model.counters_["support_vectors"] <= model.counters_["kept"] <= 20
    assert model.stop_reason_ == "converged"


def test_finishing_that_is_cut_short_says_so():
    X, y = make_problem(n=100, d=4, density=1.0)
    with pytest.warns(match="lasvm stopped at max_iter=1 before"):
        model = LASVM(C=100.0, gamma=0.7, tol=1e-9, max_iter=1).fit(X, y)
    assert model.stop_reason_ == "max_iter"


@FORMS
@pytest.mark.parametrize("gamma", [1e-300, 1e-12, 1e12, 1e300])
def test_flat_and_steep_kernels_end_in_a_model(form, gamma):
    X, y = make_problem(n=40, d=4)
    X[7] = X[3]
    model = LASVM(gamma=gamma).fit(form(X), y)
    assert np.all(np.isfinite(model.decision_function(X)))


def test_what_can_not_be_asked_is_one_sentence():
    X, y = make_problem(n=20, d=3)
    for wrong, sentence in (
        ({"tol": 0.0}, "tol must be a positive finite number"),
        ({"n_basis": 0}, "n_basis must be an integer of at least 1"),
        ({"epochs": 0}, "epochs must be an integer of at least 1"),
        ({"kernel": "poly"}, "lasvm takes the kernels linear and rbf; got kernel='poly'"),
        ({"selection": "best"}, "selection must be one of random, gradient, margin, got 'best'"),
    ):
        with pytest.raises(ValueError, match=sentence):
            LASVM(**wrong).fit(X, y)


def test_more_room_keeps_the_rows_that_it_holds(monkeypatch):
    old = make_room(10, 4, 1.0)
    old.K[:3] = np.arange(12).reshape(3, 4)
    old.owner[:3], old.slot[:3], old.counts[lasvm.ROWS] = [2, 0, 1], [1, 2, 0], 3
    wider = make_room(10, 8, 1.0, old)
    assert wider.counts[lasvm.ROWS] == 3
    assert np.array_equal(wider.K[:3, :4], old.K[:3])
    assert wider.owner[:4].tolist() == [2, 0, 1, -1]
    assert wider.slot.tolist() == [1, 2, 0, -1, -1, -1, -1, -1]
    # In less memory a row without a place is no place's any more.
    monkeypatch.setattr(lasvm, "MIN_ROWS", 2)
    few = make_room(10, 8, 0.0, old)
    assert len(few.K) == few.counts[lasvm.ROWS] == 2
    assert few.slot[:3].tolist() == [1, -1, 0]
