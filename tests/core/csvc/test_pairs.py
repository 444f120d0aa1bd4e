"""All pairs of classes on shared kernel rows, against each pair alone and by hand."""

import pickle
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC
from small_problems import needs_jit

from svmbench import CSVC
from svmbench.base.compiled import JIT_DISABLED
from svmbench.core.csvc import pairs
from svmbench.core.csvc.pairs import ask_ahead
from svmbench.core.kernels.kernels import KernelFunction, KernelSource, ThreadPool
from svmbench.core.kernels.rows import DenseRows, SourceRows
from svmbench.core.models.multiclass import OneVsOne
from svmbench.core.models.ovo_model import Layout
from svmbench.core.models.pairs import Pairs

TIGHT = {"C": 3.0, "gamma": 0.4, "tol": 1e-8}

#: Ways to the rows: all in float64; all in float32; some in float32, as they are asked for; some in
#: float64.
SINGLE = {"PAIRS_FLOAT32_MIN_SAMPLES": 1, "PAIRS_FLOAT32_MIN_CLASS": 1}
WAYS = {
    "exact": {},
    "single": SINGLE,
    "asked": {**SINGLE, "CHECK_ALL_MAX_SAMPLES": 1, "ALL_ROWS_MAX_SAMPLES": 1},
    "asked-double": {
        "PAIRS_FLOAT32_MIN_SAMPLES": 10_000,
        "PAIRS_FLOAT32_MIN_CLASS": 0,
        "ALL_ROWS_MAX_SAMPLES": 1,
    },
}


def classes(n=90, d=4, k=4, seed=0):
    """Return overlapping classes of different sizes, in no order, one of a single sample."""
    draw = np.random.default_rng(seed)
    y = draw.choice(k, size=n, p=np.arange(1, k + 1) / (k * (k + 1) / 2))
    X = draw.normal(size=(n, d)) + draw.normal(size=(k + 1, d))[y]
    y[7] = k
    return X, y


def violations(model, X, y, weights=None):
    """Return by how much each pair violates its conditions, with kernel values from differences."""
    found = []
    for pair, one in zip(Pairs(y), model.estimators_, strict=True):
        Z = X[pair.rows]
        K = np.exp(-one.gamma_ * ((Z[:, None, :] - Z[None, :, :]) ** 2).sum(axis=2))
        beta = np.zeros(len(Z))
        beta[one.support_] = one.dual_coef_[0]
        high = one.C * (1.0 if weights is None else weights[pair.rows])
        alpha, v = beta * pair.signs, pair.signs - K @ beta
        assert np.all(alpha >= 0.0)
        assert np.all(alpha <= high + 1e-12)
        assert abs(beta.sum()) < 1e-9
        up = np.where(pair.signs > 0, alpha < high, alpha > 0.0)
        down = np.where(pair.signs > 0, alpha > 0.0, alpha < high)
        found.append(v[up].max() - v[down].min())
    return np.array(found)


@pytest.fixture(params=WAYS)
def way(request, monkeypatch):
    for name, value in WAYS[request.param].items():
        monkeypatch.setattr(pairs, name, value)
    return request.param


def alone(monkeypatch):
    monkeypatch.setattr(pairs, "suits_joint_training", lambda sizes: False)


@needs_jit
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_each_pair_is_what_it_is_alone(way, kernel, form, monkeypatch):
    X, y = classes()
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    chosen = {**TIGHT, "kernel": kernel, "coef0": 1.0}
    together = CSVC(**chosen).fit(form(X), y, sample_weight=weights)
    alone(monkeypatch)
    apart = CSVC(**chosen).fit(form(X), y, sample_weight=weights)
    # Of many samples the objective is of single-precision rows where no sample can violate.
    rel = 1e-5 if way == "asked" else 1e-6
    assert together.objective_ == pytest.approx(apart.objective_, rel=rel)
    assert together.dual_objective_ == pytest.approx(apart.dual_objective_, rel=rel)
    assert together.stop_reason_ == "converged"
    assert_allclose(together.decision_function(X), apart.decision_function(X), atol=1e-5)
    for one, other in zip(together.estimators_, apart.estimators_, strict=True):
        assert_array_equal(one.support_, other.support_)
        assert_allclose(one.dual_coef_, other.dual_coef_, atol=1e-4)
        assert_allclose(one.intercept_, other.intercept_, atol=1e-5)
        assert one.objective_ == pytest.approx(other.objective_, rel=rel)
        assert one.dual_objective_ == pytest.approx(other.dual_objective_, rel=rel)
    for name in ("support_vectors", "bounded_support_vectors"):
        assert together.counters_[name] == apart.counters_[name]
        own = [one.counters_[name] for one in together.estimators_]
        assert own == [other.counters_[name] for other in apart.estimators_]
        assert sum(own) == together.counters_[name] > 0


def test_conditions_hold_in_float64(way):
    X, y = classes(n=150)
    weights = np.random.default_rng(2).uniform(0.1, 2.0, len(y))
    model = CSVC(C=10.0, gamma=0.3).fit(X, y, sample_weight=weights)
    assert violations(model, X, y, weights).max() <= 1e-3 + 1e-9


@pytest.mark.parametrize("factor", [1.003, 0.3])
def test_what_single_precision_gets_wrong_is_found(factor, monkeypatch):
    # Rows that are wrong in the third digit: the check has to send every pair on. In the first:
    # steps on them get nowhere, and each pair has to go on alone, in the end in float64.
    for name, value in WAYS["asked"].items():
        monkeypatch.setattr(pairs, name, value)
    honest = DenseRows.fill

    def wrong(self, samples, columns, start, stop, out, at, left=0):
        honest(self, samples, columns, start, stop, out, at, left)
        out[at, left : left + stop - start] *= factor

    X, y = classes(d=60)
    monkeypatch.setattr(DenseRows, "fill", wrong)
    model = CSVC(C=10.0, gamma=0.01, max_iter=20_000).fit(X, y)
    assert model.stop_reason_ == "converged"
    assert model.counters_["checks"] > len(model.estimators_)
    monkeypatch.undo()
    assert violations(model, X, y).max() <= 1e-3 + 1e-9


def test_only_rows_that_are_asked_for_are_made(monkeypatch):
    for name, value in WAYS["asked"].items():
        monkeypatch.setattr(pairs, name, value)
    # Classes far from each other: few samples are support vectors.
    draw = np.random.default_rng(0)
    y = np.repeat(np.arange(3), 60)
    X = 6.0 * np.eye(3)[y] + draw.normal(size=(180, 3))
    model = CSVC(gamma=0.05).fit(X, y)
    assert len(model.support_) < 60
    assert model.counters_["kernel_evaluations"] < 180 * 120


def test_without_room_for_the_rows_each_pair_goes_on_alone(monkeypatch):
    for name, value in WAYS["asked"].items():
        monkeypatch.setattr(pairs, name, value)
    X, y = classes(n=60 if JIT_DISABLED else 200)
    wide, narrow = CSVC(**TIGHT).fit(X, y), CSVC(**TIGHT, cache_mb=0.02).fit(X, y)
    assert narrow.objective_ == pytest.approx(wide.objective_, rel=1e-6)
    assert_allclose(narrow.decision_function(X), wide.decision_function(X), atol=1e-5)
    # Each pair makes a row of its own samples for every support vector, in float32.
    rows = zip(narrow.estimators_, Pairs(y), strict=True)
    least = sum(len(model.support_) * len(pair.rows) for model, pair in rows)
    assert narrow.counters_["kernel_evaluations"] >= least


@needs_jit
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_threads_change_nothing(form, monkeypatch):
    for name, value in WAYS["asked"].items():
        monkeypatch.setattr(pairs, name, value)
    # More samples than a part of a row has that one thread makes.
    X, y = classes(n=1500)
    one, two = (CSVC(C=5.0, gamma=0.5, n_jobs=jobs).fit(form(X), y) for jobs in (1, 3))
    assert_array_equal(one.dual_coef_, two.dual_coef_)
    assert_array_equal(one.intercept_, two.intercept_)
    assert one.counters_ == two.counters_
    assert one.objective_ == two.objective_


def test_three_steps_and_a_second_training(way):
    X, y = classes()
    model = OneVsOne(CSVC(C=2.0))
    data = model.prepare(X, y)
    first = model.train(data).finish_fit(data).objective_
    assert model.evaluate_objective(data).objective_ == pytest.approx(first, rel=1e-6)
    before = model.pair_decisions(X)
    again = model.train(data).finish_fit(data)
    assert_array_equal(again.pair_decisions(X), before)
    assert again.objective_ == first
    assert again.objective_ == pytest.approx(sum(one.objective_ for one in again.estimators_))
    assert again.n_iter_ == sum(one.n_iter_ for one in again.estimators_)


def test_certify_does_not_believe_the_search(monkeypatch):
    X, y = classes()
    model = OneVsOne(CSVC(C=2.0))
    data = model.prepare(X, y)
    right = model.train(data).evaluate_objective(data).objective_
    assert model.train(data).finish_fit(data).objective_ == pytest.approx(right)
    honest = CSVC.train_jointly

    def lies(self, joint):
        found = honest(self, joint)
        return replace(found, decisions=np.zeros_like(found.decisions))

    monkeypatch.setattr(CSVC, "train_jointly", lies)
    assert model.train(data).finish_fit(data).objective_ > 1.1 * right
    assert model.evaluate_objective(data).objective_ == right


def test_a_limit_of_steps_is_told():
    X, y = classes()
    with pytest.warns(ConvergenceWarning, match="csvc stopped at max_iter=2 before") as told:
        model = CSVC(C=100.0, max_iter=2).fit(X, y)
    assert len(told) == 1
    assert model.stop_reason_ == "max_iter"
    assert model.n_iter_.max() == 2


ALONE = [{"fit_intercept": False}, {"class_weight": {1: 3.0}}, {"stop": "gap"}]


@pytest.mark.parametrize("change", ALONE)
def test_what_is_not_solved_together_is_solved_alone(change, monkeypatch):
    X, y = classes()
    asked = OneVsOne(CSVC(**change)).fit(X, y)
    alone(monkeypatch)
    assert_array_equal(
        asked.pair_decisions(X), OneVsOne(CSVC(**change)).fit(X, y).pair_decisions(X)
    )


def test_pairs_that_are_too_large_are_solved_alone():
    assert pairs.suits_joint_training(np.array([2000, 2000, 5]))
    assert not pairs.suits_joint_training(np.array([2001, 5, 2000]))


def test_a_model_is_no_larger_than_its_support_vectors_ask_for():
    draw = np.random.default_rng(0)
    y = np.repeat(np.arange(3), 100 if JIT_DISABLED else 300)
    X = 9.0 * np.eye(3, 50)[y] + draw.normal(size=(len(y), 50))
    model = CSVC(gamma=0.001).fit(X, y)
    size = len(pickle.dumps(model))
    assert size < X.nbytes / 2
    loaded = pickle.loads(pickle.dumps(model))
    assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    assert [len(one.support_) for one in loaded.estimators_] == [
        len(one.support_) for one in model.estimators_
    ]


@pytest.mark.parametrize("scale", [1e8, 1e40])
def test_long_rows_do_not_cancel(scale):
    # All samples are far from each other: K = I, every multiplier is at its bound of 1, and so
    # a pair of 2m samples has the objective m.
    y = np.repeat([0, 1, 2], 20)
    X = scale * np.random.default_rng(0).normal(size=(60, 3))
    model = CSVC(gamma=1.0).fit(X, y)
    assert model.objective_ == pytest.approx(60.0)
    assert model.dual_objective_ == pytest.approx(60.0)


@pytest.mark.filterwarnings("ignore:overflow encountered")
@pytest.mark.filterwarnings("ignore:invalid value")
def test_what_overflows_is_told():
    X, y = classes()
    with pytest.raises(FloatingPointError, match="the poly kernel overflows on the training"):
        CSVC(kernel="poly", gamma=1.0).fit(1e80 * X, y)


def test_labels_and_one_sample_classes_are_svcs():
    X, y = classes()
    names = np.array(["d", "b", "e", "a", "c"])[y]
    ours, theirs = CSVC(**TIGHT).fit(X, names), SVC(**TIGHT).fit(X, names)
    assert_array_equal(ours.predict(X), theirs.predict(X))
    assert_array_equal(ours.support_, theirs.support_)
    assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-4)


def test_the_layout_is_two_runs_of_samples_a_pair():
    codes = np.array([2, 0, 1, 0, 2])
    layout = Layout.of(codes, [0, 0, 1], [1, 2, 2])
    assert layout.order.tolist() == [1, 3, 2, 0, 4]
    assert layout.offsets.tolist() == [0, 3, 7, 10]
    assert layout.order[layout.places[layout.variables(1)]].tolist() == [1, 3, 0, 4]
    assert layout.signs[layout.variables(1)].tolist() == [-1.0, -1.0, 1.0, 1.0]
    assert layout.codes.tolist() == [0, 0, 1, 2, 2]
    assert layout.others.tolist() == [0, 0, 0, 1, 1, 0, 0, 1, 1, 1]
    # The first sample of class 0 with class 2, and the first of class 2 with class 0.
    used, starts, matrix = layout.gather(np.array([0, 0, 0, -1.0, 0, 1.0, 0, 0, 0, 0]))
    assert used.tolist() == [0, 3]
    assert starts.tolist() == [0, 1, 1, 2]
    assert matrix.tolist() == [[0.0, 1.0], [-1.0, 0.0]]


@pytest.mark.parametrize("sizes", [[3, 5, 1], [90, 7, 60, 20, 1, 130], [90, 200]])
def test_all_runs_are_blocks_of_two_classes(sizes):
    X = np.random.default_rng(0).normal(size=(sum(sizes), 2))
    source = KernelSource.from_inputs(X, KernelFunction("rbf", 1.0))
    starts = np.append(0, np.cumsum(sizes))
    runs = pairs.ClassRows(SourceRows(source, np.float64), starts, 1000.0, ThreadPool(1))
    assert runs.are_whole
    K = source.rows(np.arange(len(X)))
    for c, (begin, end) in enumerate(pairwise(starts)):
        for i in range(len(X)):
            at = runs.slots[c, i]
            assert_allclose(runs.values[at : at + end - begin], K[i, begin:end], rtol=1e-13)
    assert runs.values.size == len(X) ** 2


def test_runs_end_where_their_memory_does():
    X = np.random.default_rng(0).normal(size=(5000, 2))
    source = KernelSource.from_inputs(X, KernelFunction("rbf", 1.0))
    starts = np.array([0, 2000, 5000])
    runs = pairs.ClassRows(pairs.float32_rows(source), starts, 0.1, ThreadPool(1))
    assert len(runs.values) == 26214  # 0.1 MiB of float32
    wanted = np.zeros((2, 5000), dtype=bool)
    wanted[0, [1, 9, 3000]] = wanted[1, [9, 7, 8, 4999]] = True
    assert runs.make(wanted)
    # A run of 3,000 zeros, three of 2,000 and four of 3,000: one of 3,000 more finds room.
    wanted[:] = False
    wanted[1, [0, 1]] = True
    assert not runs.make(wanted)
    assert np.all(runs.slots[:, 0] == -1)
    wanted[1, 1] = False
    assert runs.make(wanted)
    assert sorted(np.flatnonzero(runs.slots[1] >= 0)) == [0, 7, 8, 9, 4999]
    for c, samples in enumerate(([1, 9, 3000], [0, 7, 8, 9, 4999])):
        for i in samples:
            at, own = runs.slots[c, i], X[starts[c] : starts[c + 1]]
            expected = np.exp(-((own - X[i]) ** 2).sum(axis=1))
            assert_allclose(runs.values[at : at + len(own)], expected, atol=1e-6)


def asked(beta, v, up, down, missing, needed=0):
    """Return the samples of each class whose runs a pair asks for.

    Samples 0 to 9 are of the first class of the pair, 10 to 12 of another, 13 to 22 of its second.
    """
    slots, wanted = np.zeros((2, 23), dtype=int), np.zeros((2, 23), dtype=bool)
    slots[:, missing] = -1
    penalties = tuple(np.where(each, 0.0, -np.inf).astype(np.float32) for each in (up, down))
    ask_ahead((0, 10, 13, 23), (beta, v), penalties, tuple(slots), tuple(wanted), needed)
    assert np.array_equal(*wanted)
    return np.flatnonzero(wanted[0]).tolist()


def test_a_pair_asks_for_what_it_needs_and_for_both_ends_of_each_class():
    v = np.concatenate([np.arange(10.0), -np.arange(10.0)])
    up, down = np.ones(20, dtype=bool), np.ones(20, dtype=bool)
    everything, few = np.arange(23), np.zeros(20)
    # Upwards 9 and 13, downwards 0 and 22, and what waits.
    assert asked(few, v, up, down, everything, needed=5) == [0, 5, 9, 13, 22]
    # 9 can't rise, and 22 has its runs.
    up[9] = False
    assert asked(few, v, up, down, np.delete(everything, 22), needed=5) == [0, 5, 8, 13, 21]


@pytest.mark.parametrize(("moved", "several"), [(3, 1), (8, 2), (13, 3), (20, 5)])
def test_a_pair_asks_for_more_samples_once_many_have_moved(moved, several):
    draw = np.random.default_rng(moved)
    beta, v = np.where(np.arange(20) < moved, 0.5, 0.0), draw.normal(size=20)
    up, down = draw.random(20) < 0.8, draw.random(20) < 0.8
    places, missing = np.r_[0:10, 13:23], np.flatnonzero(draw.random(23) < 0.8)
    likely = {0}
    for own in (np.arange(10), np.arange(10, 20)):
        lacks = own[np.isin(places[own], missing) & (own != 0)]
        for can_move, order in ((up, -v), (down, v)):
            ends = lacks[can_move[lacks]]
            likely.update(places[ends[np.argsort(order[ends])]][:several].tolist())
    assert asked(beta, v, up, down, missing) == sorted(likely & set(missing.tolist()))


def test_at_most_eight_samples_of_an_end_of_a_class_are_asked_for():
    v = np.arange(200.0)
    slots, wanted = np.full((2, 200), -1), np.zeros((2, 200), dtype=bool)
    no, yes = np.full(200, -np.inf, dtype=np.float32), np.zeros(200, dtype=np.float32)
    ask_ahead((0, 100, 100, 200), (v, v), (yes, no), tuple(slots), tuple(wanted), 0)
    assert np.flatnonzero(wanted[0]).tolist() == [0, *range(92, 100), *range(192, 200)]


def test_a_row_is_made_at_the_classes_of_its_pairs_alone(monkeypatch):
    for name, value in WAYS["asked"].items():
        monkeypatch.setattr(pairs, name, value)
    draw = np.random.default_rng(0)
    y = np.repeat(np.arange(6), 80)
    X = np.column_stack([3.0 * y, np.zeros_like(y)]) + draw.normal(size=(len(y), 2))
    model = CSVC(gamma=0.05).fit(X, y)
    whole_rows = len(y) * len(model.support_)
    assert model.counters_["kernel_evaluations"] < 0.7 * whole_rows


def search_of_three_classes(function):
    """Return a search on samples of three classes, with a gradient that errs by about 1e-3."""
    draw = np.random.default_rng(3)
    y = np.sort(draw.integers(0, 3, size=30))
    source = KernelSource.from_inputs(draw.normal(size=(30, 4)), function)
    layout = Layout.of(y, [0, 0, 1], [1, 2, 2])
    bound = np.ones(len(layout.places))
    search = pairs.PairSearch(
        source, layout, bound, ThreadPool(1), tol=1e-3, max_iter=9, cache_mb=1.0
    )
    (beta, v), share = search.variables, draw.choice([0.0, 0.4, 1.0], size=len(bound))
    beta[:] = share * layout.signs
    for p in range(3):
        chosen = layout.variables(p)
        at = layout.places[chosen]
        v[chosen] = layout.signs[chosen] - source.block(at, at) @ beta[chosen]
    exact = v.copy()
    v += draw.normal(scale=1e-3, size=len(v))
    return search, exact


@pytest.mark.parametrize("name", ["rbf", "linear"])
def test_pairs_are_corrected_together_as_each_alone(name):
    function = KernelFunction(name, 0.3)
    (search, exact), (alone, _) = (search_of_three_classes(function) for _ in range(2))
    search.correct_some(np.array([0, 2]))
    for p in (0, 2):
        alone.correct(p)
    assert_allclose(search.variables[1], alone.variables[1], rtol=1e-12, atol=1e-12)
    others = search.layout.variables(1)
    is_right = np.abs(search.variables[1] - exact) < 1e-10
    assert not np.any(is_right[others])
    assert np.count_nonzero(is_right) > 0
