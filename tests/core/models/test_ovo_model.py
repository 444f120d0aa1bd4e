"""Sums of pairs of classes over shared points, against sums over dense coefficients."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from svmbench import CSVC
from svmbench.core.contract.declaration import KERNELS
from svmbench.core.kernels import prediction
from svmbench.core.kernels.kernels import KernelFunction
from svmbench.core.models import ovo_model, pairs
from svmbench.core.models.multiclass import OneVsOne
from svmbench.core.models.ovo_model import SharedPoints
from svmbench.core.models.pairs import Pairs

#: Points of each class; the third class has none, and the fourth is larger than a tile.
SIZES = [3, 5, 0, 21, 2]
CODES = np.repeat(np.arange(5), SIZES)
PAIRS = Pairs(np.arange(5))


@pytest.fixture(autouse=True)
def narrow(monkeypatch):
    """Let tiles end within classes, and blocks after few rows."""
    monkeypatch.setattr(prediction, "TILE_POINTS", 8)
    monkeypatch.setattr(ovo_model, "SUMS_AT_A_TIME", 7 * 5 * 4)
    monkeypatch.setattr(ovo_model, "SUMS_MIN_ROWS", 1)


def problem(kernel, form):
    rng = np.random.default_rng(3)
    points, X = rng.normal(size=(31, 4)), rng.normal(size=(40, 4))
    starts = np.append(0, np.cumsum(SIZES))
    coefficients, b = rng.normal(size=(4, 31)), rng.normal(size=10)
    function = KernelFunction(kernel, gamma=0.3, coef0=0.5, degree=2)
    shared = SharedPoints(function, form(points), np.arange(31), starts, coefficients, b, PAIRS)
    return shared, X, expected(shared, function.between(X, points))


def expected(shared, K):
    """Every sum by a row of dense coefficients of its own."""
    values = []
    for pair, b in zip(PAIRS, shared.b, strict=True):
        own = np.zeros(K.shape[1])
        is_first, is_second = pair.negative == CODES, pair.positive == CODES
        own[is_first] = shared.coefficients[pair.positive - 1, is_first]
        own[is_second] = shared.coefficients[pair.negative, is_second]
        values.append(K @ own + b)
    return np.column_stack(values)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_pair_is_its_own_sum(kernel, form):
    shared, X, values = problem(kernel, form)
    assert_allclose(shared.decide(form(X)), values, rtol=1e-10, atol=1e-10)
    single = shared.decide(form(X), precision="single", n_jobs=2)
    assert_allclose(single, values, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("kernel", KERNELS)
def test_rows_of_a_class_in_its_own_pairs(kernel, form):
    shared, X, values = problem(kernel, form)
    codes = np.arange(len(X)) % 5
    found = shared.decide_own(form(X), codes)
    for i, c in enumerate(codes):
        own = [p for p, pair in enumerate(PAIRS) if c in (pair.negative, pair.positive)]
        assert_allclose(found[i], values[i, own], rtol=1e-10, atol=1e-10)


def test_points_in_parts_and_threads_change_nothing(monkeypatch):
    shared, X, values = problem("rbf", np.asarray)
    once = shared.decide(X)
    assert_array_equal(shared.decide(X, n_jobs=3), once)
    monkeypatch.setattr(prediction, "DENSE_POINTS_BYTES", 8 * 8 * 4)
    assert_allclose(shared.decide(X), values, rtol=1e-12, atol=1e-12)


def test_more_classes_than_a_square_of_pairs():
    rng, n = np.random.default_rng(0), 35
    points, X, every = rng.normal(size=(2 * n, 2)), rng.normal(size=(9, 2)), Pairs(np.arange(n))
    starts, coefficients = 2 * np.arange(n + 1), rng.normal(size=(n - 1, 2 * n))
    function = KernelFunction("rbf", 0.5)
    b = rng.normal(size=len(every))
    shared = SharedPoints(function, points, np.arange(2 * n), starts, coefficients, b, every)
    K, found = function.between(X, points), shared.decide(X)
    for p, pair in enumerate(every):
        a, c = pair.negative, pair.positive
        first = K[:, starts[a] : starts[a + 1]] @ coefficients[c - 1, starts[a] : starts[a + 1]]
        second = K[:, starts[c] : starts[c + 1]] @ coefficients[a, starts[c] : starts[c + 1]]
        assert_allclose(found[:, p], first + second + b[p], rtol=1e-12, atol=1e-12)


def test_values_that_are_handed_in_are_added_by_blocks_of_rows(monkeypatch):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 5
    X = rng.normal(size=(60, 3)) + rng.normal(size=(5, 3))[y]
    K = KernelFunction("rbf", 0.3).between(X, X)
    model = CSVC(C=10.0, kernel="precomputed", decision_function_shape="ovo").fit(K, y)
    inputs = CSVC(C=10.0, gamma=0.3, decision_function_shape="ovo").fit(X, y)
    monkeypatch.setattr(ovo_model, "SUMS_MIN_ROWS", 1)
    assert_allclose(model.decision_function(K), inputs.decision_function(X), atol=5e-3)
    once = model.decision_function(K)
    monkeypatch.setattr(ovo_model, "SUMS_AT_A_TIME", 1 << 20)
    assert_allclose(model.decision_function(K), once, rtol=1e-13, atol=1e-13)


def test_votes_of_many_rows_are_counted_by_blocks(monkeypatch):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 5
    X = rng.normal(size=(60, 3)) + rng.normal(size=(5, 3))[y]
    model = CSVC(C=10.0).fit(X, y)
    first = CSVC(C=10.0, break_ties=False).fit(X, y)
    values, sums, elected = model.decision_function(X), model.predict(X), first.predict(X)
    together = OneVsOne(CSVC(C=10.0)).fit(X, y)
    voted = together.predict(X)
    monkeypatch.setattr(pairs, "MAX_HELD_DECISIONS", 70)
    assert_array_equal(together.predict(X), voted)
    assert_array_equal(together.predict(sp.csr_array(X)), voted)
    assert_array_equal(together.predict(X.tolist()), voted)
    assert_array_equal(model.decision_function(X), values)
    assert_array_equal(model.predict(X), sums)
    assert_array_equal(first.predict(X), elected)
    assert_array_equal(first.predict(sp.csr_array(X)), elected)
