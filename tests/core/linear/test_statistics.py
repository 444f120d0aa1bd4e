"""Sums gathered block by block: equal to the solution in memory, however the rows are cut."""

import pickle
from fractions import Fraction
from functools import reduce
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from small_problems import make_problem

from svmbench import ALSVMBatch
from svmbench.core.linear import least_squares, statistics
from svmbench.core.linear.statistics import Statistics, folds_of_rows, gather_statistics

VALUES = [2.0**-5, 1.0, 2.0**5]


def cut(X, y, *sizes):
    """Return a list of blocks of so many rows, the last with the rest."""
    edges = [0, *np.cumsum(sizes), len(y)]
    return [(X[a:b], y[a:b]) for a, b in pairwise(edges)]


def near(model, other, tolerance=1e-10):
    size = max(1.0, np.abs(other.coef_).max(), abs(other.intercept_[0]))
    assert np.abs(model.coef_ - other.coef_).max() <= tolerance * size
    assert abs(model.intercept_[0] - other.intercept_[0]) <= tolerance * size
    assert_array_equal(model.classes_, other.classes_)


def far_away(n=400, d=6, offset=1e6, seed=3):
    """Return rows whose features are about `offset`, with a spread of 1, and noisy labels."""
    draw = np.random.default_rng(seed)
    Z = draw.normal(size=(n, d))
    y = np.where(Z @ draw.normal(size=d) + 0.3 * draw.normal(size=n) > 0, 1, -1)
    return Z + offset * np.arange(1, d + 1), y


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("bias", [{}, {"fit_intercept": False}, {"intercept_scaling": 3.0}])
@pytest.mark.parametrize("density", [0.1, 0.9])
def test_blocks_give_the_model_of_all_rows_at_once(form, bias, density):
    X, y = make_problem(n=90, d=5, density=density)
    X = form(X)
    whole = ALSVMBatch(C=2.0, **bias).fit(X, y)
    model = ALSVMBatch(C=2.0, **bias).fit_blocks(cut(X, y, 1, 40, 0, 3))
    near(model, whole)
    assert model.objective_ == pytest.approx(whole.objective_, rel=1e-10)
    assert model.stop_reason_ == whole.stop_reason_ == "closed form"
    assert model.counters_ == whole.counters_
    assert_array_equal(model.predict(X), whole.predict(X))


def test_a_generator_is_gone_over_once():
    X, y = make_problem(n=40, d=3)
    near(ALSVMBatch().fit_blocks(iter(cut(X, y, 7, 9))), ALSVMBatch().fit(X, y))


@pytest.mark.parametrize("labels", [(0, 1), (1, 2), (-3, 4), ("no", "yes")])
def test_labels_may_come_in_any_order_and_alone(labels):
    X, y = make_problem(n=60, d=4)
    y = np.array(labels)[(y > 0).astype(int)]
    for order in (np.argsort(y, kind="stable"), np.argsort(y, kind="stable")[::-1]):
        model = ALSVMBatch().fit_blocks(cut(X[order], y[order], 3, 20, 20))
        near(model, ALSVMBatch().fit(X, y))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_every_c_and_fold_comes_from_one_pass(form):
    X, y = make_problem(n=120, d=5)
    folds = folds_of_rows(0, len(y), 4, seed=7)
    assert set(folds) == {0, 1, 2, 3}
    seen = []

    def blocks():
        for part in cut(form(X), y, 50, 11):
            seen.append(len(part[1]))
            yield part

    points = list(ALSVMBatch().path_blocks(blocks(), VALUES, n_folds=4, seed=7))
    assert seen == [50, 11, 59]
    assert sum(point.statistics["passes"] for point in points) == 1
    expected = [(fold, C) for fold in range(4) for C in VALUES]
    assert len(points) == len(expected)
    for point, (fold, C) in zip(points, expected, strict=True):
        rows = folds != fold
        near(point.solution, ALSVMBatch(C=C).fit(form(X[rows]), y[rows]))


def test_folds_may_be_given_and_a_fold_has_its_own_loss():
    X, y = make_problem(n=60, d=4)
    folds = np.arange(60) % 3
    found = Statistics(n_folds=3).update(X, y, folds)
    model = ALSVMBatch(C=0.5).fit_statistics(found, without=1)
    held = folds == 1
    near(model, ALSVMBatch(C=0.5).fit(X[~held], y[~held]))
    signs = np.where(y[held] == model.classes_[1], 1.0, -1.0)
    loss = np.sum((1.0 - signs * model.decision_function(X[held])) ** 2)
    held_out = found.held_out(1, 1.0)
    assert held_out.loss(model.coef_[0], model.intercept_[0]) == pytest.approx(loss, rel=1e-10)
    assert_array_equal(found.counts, [20, 20, 20])


def test_merging_is_associative_and_commutes():
    X, y = far_away(offset=50.0)
    X = np.column_stack([X, np.linspace(0.0, 1.0, len(y))])
    parts = [Statistics().update(*part) for part in cut(X, y, 1, 150, 7)]
    whole = ALSVMBatch().fit(X, y)
    orders = [(0, 1, 2, 3), (3, 1, 0, 2), (2, 3, 1, 0)]
    for order in orders:
        copies = [pickle.loads(pickle.dumps(parts[i])) for i in order]
        left = reduce(Statistics.merge, copies, Statistics())
        right = copies[0]
        copies = [pickle.loads(pickle.dumps(parts[i])) for i in order]
        right = copies[0].merge(copies[1].merge(copies[2].merge(copies[3])))
        for merged in (left, right):
            assert merged.n_samples == len(y)
            near(ALSVMBatch().fit_statistics(merged), whole)


def test_what_is_merged_is_left_as_it_is():
    X, y = far_away(n=50)
    other = Statistics().update(X + 3e3, y)
    before = pickle.dumps(other)
    Statistics().update(X, y).merge(other)
    Statistics().merge(other).update(X, y)
    assert pickle.dumps(other) == before


@pytest.mark.parametrize("offset", [1e4, 1e6, 1e8])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_large_offsets_cost_no_digits(offset, form):
    X, y = far_away(offset=offset)
    model = ALSVMBatch().fit_blocks(iter(cut(form(X), y, 100, 30)))
    assert model.stop_reason_ == statistics.BY_CENTRED_SUMS
    assert model.counters_["passes"] == 1
    w = exact(X, y, 1.0)
    assert_allclose(model.coef_[0], w[:-1], rtol=1e-10, atol=1e-12)
    assert model.intercept_[0] == pytest.approx(w[-1], rel=1e-10)
    # Raw sums would have cost them.
    rows = np.column_stack([X, np.ones(len(y))])
    poor, sound = least_squares.solve(rows.T @ rows, rows.T @ y, 0.5)
    assert offset < 1e6 or not sound or np.abs(poor - w).max() > 1e-6
    without = ALSVMBatch(fit_intercept=False).fit_blocks(cut(form(X), y, 100, 30))
    assert_allclose(without.coef_[0], exact(X, y, 0.0), rtol=1e-10, atol=1e-12)


def exact(X, y, bias, nu=0.5):
    """Return the solution in rational numbers, by elimination."""
    rows = [[Fraction(v) for v in [*row, *([bias] if bias else [])]] for row in X.tolist()]
    d = len(rows[0])
    G = [
        [sum(r[i] * r[j] for r in rows) + (Fraction(nu) if i == j else 0) for j in range(d)]
        for i in range(d)
    ]
    for i in range(d):
        G[i].append(sum(int(label) * r[i] for r, label in zip(rows, y, strict=True)))
    for i in range(d):
        for k in range(d):
            if k != i:
                share = G[k][i] / G[i][i]
                G[k] = [a - share * b for a, b in zip(G[k], G[i], strict=True)]
    return np.array([float(G[i][d] / G[i][i]) for i in range(d)])


def test_parts_with_offsets_of_their_own_merge():
    X, y = far_away(offset=1e5)
    X[200:] -= 300.0
    parts = [Statistics().update(*part) for part in cut(X, y, 50, 150, 60)]
    merged = reduce(Statistics.merge, parts)
    near(ALSVMBatch().fit_statistics(merged), ALSVMBatch().fit_blocks([(X, y)]), 1e-9)


def test_sparse_blocks_may_have_different_widths():
    X, y = make_problem(n=60, d=6, density=0.4)
    X[:30, 4:] = 0.0
    blocks = [(sp.csr_array(X[:30, :4]), y[:30]), (sp.csr_array(X[30:]), y[30:])]
    for order in (blocks, blocks[::-1]):
        near(ALSVMBatch().fit_blocks(order), ALSVMBatch().fit(X, y))
    one, two = (Statistics().update(*block) for block in blocks)
    near(ALSVMBatch().fit_statistics(one.merge(two)), ALSVMBatch().fit(X, y))


def poor(n=80):
    """Return rows with a feature that is another but for a ten-millionth, far from zero or not."""
    draw = np.random.default_rng(5)
    X = draw.normal(size=(n, 3))
    X[:, 2] = X[:, 1] + 1e-7 * draw.normal(size=n)
    return 1e3 * X, np.where(X[:, 0] + 0.2 * draw.normal(size=n) > 0, 1, -1)


def test_where_sums_are_not_enough_rows_that_are_still_there_are_read_again():
    X, y = poor()
    whole = ALSVMBatch(C=1e6).fit(X, y)
    assert whole.stop_reason_ == least_squares.BY_SAMPLES
    model = ALSVMBatch(C=1e6).fit_blocks(cut(X, y, 30, 20))
    assert model.stop_reason_ == least_squares.BY_SAMPLES
    assert model.counters_["passes"] == 2
    assert_allclose(model.decision_function(X), whole.decision_function(X), rtol=0, atol=1e-7)
    gone = ALSVMBatch(C=1e6).fit_blocks(iter(cut(X, y, 30, 20)))
    assert gone.stop_reason_ == least_squares.BY_POOR_SUMS
    folds = np.arange(len(y)) % 2
    blocks = [(X[:33], y[:33], folds[:33]), (X[33:], y[33:], folds[33:])]
    points = list(ALSVMBatch().path_blocks(blocks, [1e6, 1e7], n_folds=2))
    assert [point.statistics["passes"] for point in points] == [2, 0, 0, 0]
    for point, (fold, C) in zip(points, [(0, 1e6), (0, 1e7), (1, 1e6), (1, 1e7)], strict=True):
        alone = ALSVMBatch(C=C).fit(X[folds != fold], y[folds != fold])
        found, known = point.solution.decision_function(X), alone.decision_function(X)
        assert_allclose(found, known, rtol=0, atol=1e-6)


GOOD = (np.array([[1.0, 2.0], [3.0, 5.0], [0.0, 1.0]]), np.array([1, -1, 1]))


@pytest.mark.parametrize(
    ("X", "y", "said"),
    [
        ([[1.0, np.nan]], [1], "there are NaN or infinite values"),
        ([[1.0, -np.inf]], [1], "there are NaN or infinite values"),
        (sp.csr_array([[np.nan, 0.0]]), [1], "there are NaN or infinite values"),
        ([[1e200, 1.0]], [1], "overflow"),
        ([[1.0, 1.0]], [2], "the label 2 is a third beside 1, -1; the problem has two classes"),
        ([[1.0, 1.0]], [np.nan], "the label nan is a third beside 1, -1"),
        ([[1.0, 1.0, 1.0]], [1], "3 columns, those before it had 2"),
        ([[1.0]], [1], "1 columns instead of 2"),
        ([1.0, 1.0], [1], "a matrix"),
        ([[1.0, 1.0]], [1, 1], "1 rows and labels of shape"),
    ],
)
def test_a_bad_block_is_one_sentence_and_adds_nothing(X, y, said):
    found = Statistics().update(*GOOD)
    before = pickle.dumps(found)
    X = X if sp.issparse(X) else np.array(X)
    with pytest.raises(ValueError, match=said):
        found.update(X, np.array(y))
    assert pickle.dumps(found) == before
    with pytest.raises(ValueError, match=rf"rows from 4 on: .*{said}"):
        gather_statistics([GOOD, (X, np.array(y))])


def test_what_there_is_too_much_or_too_little_of():
    with pytest.raises(ValueError, match="there are no rows"):
        gather_statistics([])
    with pytest.raises(ValueError, match="one class only"):
        ALSVMBatch().fit_blocks([(np.ones((2, 1)), [1, 1])])
    with pytest.raises(ValueError, match="the training part of fold 0 has one class only"):
        ALSVMBatch().fit_statistics(Statistics(2).update(*GOOD, folds=[1, 0, 1]), without=0)
    with pytest.raises(ValueError, match="beyond the last, 2"):
        gather_statistics([(sp.csr_array([[0.0, 0.0, 1.0]]), [1])], n_features=2)
    with pytest.raises(ValueError, match="newton-l2"):
        Statistics(n_folds=5, n_features=20_000)
    with pytest.raises(ValueError, match="folds must be one of 0 … 1 for each of 3 rows"):
        Statistics(n_folds=2).update(*GOOD, folds=[0, 2, 1])
    with pytest.raises(ValueError, match="of 1 and of 2 folds"):
        Statistics(1).merge(Statistics(2))
    three = Statistics().update(np.ones((1, 2)), [7])
    with pytest.raises(ValueError, match="the label 7 is a third"):
        Statistics().update(*GOOD).merge(three)
    with pytest.raises(ValueError, match="C must be a positive"):
        ALSVMBatch(C=0.0).fit_blocks([GOOD])


def test_folds_of_rows_do_not_depend_on_blocks():
    whole = folds_of_rows(0, 1000, 5, seed=3)
    assert_array_equal(
        np.concatenate([folds_of_rows(0, 300, 5, 3), folds_of_rows(300, 700, 5, 3)]), whole
    )
    counts = np.bincount(whole)
    assert len(counts) == 5
    assert counts.min() > 150
    assert np.mean(whole == folds_of_rows(0, 1000, 5, seed=4)) < 0.3
    assert np.mean(whole[1:] == folds_of_rows(0, 999, 5, seed=3)) < 0.3
