"""Csvc's rows and blocks: single-precision rows, the store of rows, the search by working sets."""

import threading
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.metrics.pairwise import pairwise_kernels
from small_problems import make_problem, needs_jit

from svmbench.base.compiled import JIT_DISABLED
from svmbench.base.errors import SvmbenchError
from svmbench.core.contract.base import warm_up
from svmbench.core.contract.declaration import KERNELS
from svmbench.core.csvc import (
    CSVC,
    problem,
    smo,
    solve_qp,
    solver,
    working_sets,
)
from svmbench.core.csvc.problem import csvc_problem, up_low_sets
from svmbench.core.csvc.smo import ROWS_MISSING
from svmbench.core.csvc.working_sets import ActiveSamples, WorkingSetSearch
from svmbench.core.kernels import rows as rows_module
from svmbench.core.kernels.kernels import (
    MIB,
    SHARES,
    KernelFunction,
    KernelSource,
    ThreadPool,
    processors,
)
from svmbench.core.kernels.rows import (
    BitRows,
    DenseRows,
    DifferenceRows,
    RowCache,
    SourceRows,
    exact_values,
    float32_rows,
    forget_none,
)
from svmbench.core.kernels.source_row_cache import SourceRowCache
from svmbench.core.nu.nu_problem import nu_svc_problem
from svmbench.core.nu.nu_svc import NuSVC
from svmbench.core.oneclass.one_class import OneClass, one_class_problem

MODULES = (
    *(rows_module, problem, smo),
    working_sets,
)


def binary_problem(n=60, d=70):
    rng = np.random.default_rng(3)
    X = (rng.random((n, d)) < 0.3).astype(float)
    return X, np.where(X @ rng.normal(size=d) > 0, 1.0, -1.0)


@pytest.fixture
def in_blocks(monkeypatch):
    """Make the search by working sets serve problems of a few hundred samples."""
    monkeypatch.setattr(solver, "FLOAT32_MIN_SAMPLES", 0)
    monkeypatch.setattr(solver, "FULL_MATRIX_MAX_SAMPLES", 0)
    monkeypatch.setattr(working_sets, "SET_SAMPLES", 24)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("make", [BitRows, DenseRows, DifferenceRows, SourceRows])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_rows_of_every_maker(name, make, form):
    if make is DifferenceRows and name != "rbf":
        pytest.skip("differences make RBF rows alone")
    X = binary_problem(n=30)[0] if make is BitRows else make_problem(n=30, d=70)[0]
    function = KernelFunction(name, gamma=0.05, degree=2, coef0=0.5)
    K = pairwise_kernels(X, metric=name, filter_params=True, gamma=0.05, degree=2, coef0=0.5)
    source = KernelSource.from_inputs(form(X), function)
    rows = make(source, np.float32) if make is SourceRows else make(form(X), function)
    assert_allclose(rows.diagonal, np.diag(K), rtol=1e-6)
    picked, slots = np.array([4, 29, 0]), np.array([2, 0, 3])
    for J in (None, np.array([1, 5, 20, 28, 3])):
        columns, expected = rows.columns(J), K[picked] if J is None else K[np.ix_(picked, J)]
        out = np.full((4, 31), 7.0, dtype=np.float32)
        rows.fill(picked, columns, 1, expected.shape[1], out, slots)
        assert_allclose(out[slots, : expected.shape[1] - 1], expected[:, 1:], rtol=2e-5, atol=1e-6)
        assert np.all(out[1] == 7.0)
        assert np.all(out[:, expected.shape[1] - 1 :] == 7.0)
    assert_allclose(rows.whole(), K, rtol=2e-5, atol=1e-6)
    counted = rows.evaluations + source.kernel_evaluations
    assert counted == 3 * (29 + 4) + 30 * 30 + (30 if make is SourceRows else 0)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("make", [BitRows, DenseRows, DifferenceRows, SourceRows])
def test_sums_of_rows_of_every_maker(monkeypatch, name, make):
    if make is DifferenceRows and name != "rbf":
        pytest.skip("differences make RBF rows alone")
    n = 700
    if JIT_DISABLED:
        n = 100
        monkeypatch.setattr(rows_module, "PIECE_COLUMNS", 64)
        monkeypatch.setattr(rows_module, "PIECE_ROWS", 32)
    # More samples and columns than a piece has.
    assert n > rows_module.PIECE_COLUMNS + 10
    X = binary_problem(n=n)[0] if make is BitRows else make_problem(n=n, d=70)[0]
    function = KernelFunction(name, gamma=0.05, degree=2, coef0=0.5)
    source = KernelSource.from_inputs(X, function)
    K = function.between(X, X)
    rows = make(source, np.float32) if make is SourceRows else make(X, function)
    samples, J = np.arange(3, 3 + 6 * n // 7), np.arange(1, n)
    factors = np.random.default_rng(0).normal(size=len(samples))
    before = rows.evaluations + source.kernel_evaluations
    v = np.ones(n - 1)
    rows.take_off(samples, factors, rows.columns(J), (5, n - 10), v)
    expected = 1.0 - factors @ K[np.ix_(samples, J)]
    expected[:5] = expected[n - 10 :] = 1.0
    assert_allclose(v, expected, atol=2e-6 * np.abs(factors).sum() * np.max(np.abs(K)))
    counted = rows.evaluations + source.kernel_evaluations - before
    assert counted == len(samples) * (n - 15)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_bits_have_exact_values(name, form):
    X = form(binary_problem(n=40)[0])
    function = KernelFunction(name, gamma=0.05, degree=2, coef0=0.5)
    rows, source = BitRows(X, function), KernelSource.from_inputs(X, function)
    assert exact_values(source, rows) is rows
    assert exact_values(source, SourceRows(source, np.float32)) is source
    I, J = np.array([7, 0, 39]), np.arange(4, 40)  # noqa: E741
    values = rows.block(I, J)
    assert values.dtype == np.float64
    assert_allclose(values, source.block(I, J), rtol=1e-14)
    assert rows.evaluations == 3 * 36


def test_the_maker_follows_from_the_inputs():
    function = KernelFunction("rbf", 1.0)
    sparse = sp.random_array((3000, 3000), density=1e-3, rng=0, format="csr")

    def made(X):
        return type(float32_rows(KernelSource.from_inputs(X, function)))

    assert made(binary_problem()[0]) is BitRows
    assert made(sp.csr_array(binary_problem()[0])) is BitRows
    assert made(2.0 * binary_problem()[0]) is DenseRows
    assert made(sp.csr_array(make_problem(d=20)[0])) is DenseRows
    assert made(make_problem(d=8)[0]) is DifferenceRows
    # More features are, too, where a product would lose digits; very many never are.
    assert made(300.0 * make_problem(d=20)[0]) is DifferenceRows
    assert made(300.0 * make_problem(d=70)[0]) is DenseRows
    linear = KernelSource.from_inputs(make_problem(d=8)[0], KernelFunction("linear"))
    assert type(float32_rows(linear)) is DenseRows
    assert made(sparse) is SourceRows
    assert type(float32_rows(KernelSource.precomputed(np.eye(3)))) is SourceRows


@needs_jit
@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_differences_keep_their_digits_on_unscaled_inputs(scale):
    # Distances of about 1 between points up to 1e4 away from the origin.
    rng = np.random.default_rng(0)
    X = scale * rng.integers(0, 10, (200, 6)) + rng.normal(size=(200, 6))
    function = KernelFunction("rbf", 0.1)
    exact = function.between(X, X)
    values = DifferenceRows(X, function).whole()
    # What remains is the rounding of coordinates, to float32, of which differences are taken.
    assert np.max(np.abs(values - exact)) < 3e-8 * scale + 3e-7
    if scale > 1.0:
        assert np.max(np.abs(DenseRows(X, function).whole() - exact)) > 0.01


def test_store_forgets_the_oldest_and_keeps_its_budget():
    store = RowCache(1 << 18, 1 << 18, 3.0, least=2, dtype=np.float32)
    assert store.rows.nbytes <= 3 * MIB
    slots, missing = store.claim(np.array([5, 6, 7]))
    assert missing.all()
    assert sorted(slots) == [0, 1, 2]
    assert not store.claim(np.array([5]))[1].any()
    again, missing = store.claim(np.array([8, 5]))
    assert missing.tolist() == [True, False]
    assert again[1] == slots[0]
    assert again[0] in slots[1:]
    assert not store.claim(np.array([5, 8]))[1].any()


def test_store_places_what_there_is_room_for():
    store = RowCache(1 << 18, 1 << 18, 3.0, dtype=np.float32)
    store.claim(np.array([5, 6]))
    assert store.find(np.array([6, 9])).tolist() == [1, -1]
    # The third slot is free, and 5 may go; 6 was asked for just now, and stays.
    assert store.place(np.array([9, 10, 11])).tolist() == [2, 0]
    assert store.find(np.array([5, 6, 9, 10, 11])).tolist() == [-1, 1, 2, 0, -1]
    assert len(RowCache(1 << 18, 1 << 18, 0.5, dtype=np.float32).place(np.array([1]))) == 0


def test_store_keeps_values_when_columns_are_cut():
    store = RowCache(8, 8, 8 * 3 * 4 / MIB, least=2, dtype=np.float32)
    slots, _ = store.claim(np.array([1, 4, 6]))
    full = np.arange(64, dtype=np.float32).reshape(8, 8)
    store.rows[slots] = full[[1, 4, 6]]
    keep, is_kept = np.array([0, 4, 6]), np.isin(np.arange(8), [0, 4, 6])
    store.cut(keep, is_kept)
    assert store.rows.shape == (8, 3)
    slots, missing = store.claim(np.array([6, 4, 0]))
    assert missing.tolist() == [False, False, True]
    assert np.array_equal(store.rows[slots[:2]], full[np.ix_([6, 4], keep)])


def test_store_says_what_it_needs():
    with pytest.raises(SvmbenchError, match="4 are needed at a time: give cache_mb=4 or more"):
        RowCache(1 << 18, 1 << 18, 3.0, least=4, dtype=np.float32)


def forms(kind):
    if kind == "binary":
        X, y = binary_problem(n=300)
        return X, y, 0.05
    X, y = make_problem(n=300, d=8)
    return (sp.csr_array(X) if kind == "sparse" else X), y.astype(float), 2.0


@needs_jit
@pytest.mark.parametrize("kind", ["dense", "sparse", "binary"])
@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
@pytest.mark.parametrize("tol", [1e-3, 1e-7])
def test_blocks_and_whole_matrix_find_the_same(kind, C, tol, in_blocks):
    X, y, gamma = forms(kind)
    K = KernelFunction("rbf", gamma).between(X, X)
    whole = CSVC(C=C, tol=tol).solve(KernelSource.precomputed(K), y)
    model = CSVC(C=C, gamma=gamma, tol=tol).fit(X, y)
    alpha = np.zeros(300)
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    beta = y * alpha
    assert model.stop_reason_ == "converged"
    assert model.counters_["checks"] >= 1
    assert abs(beta.sum()) <= 1e-9 * alpha.sum()
    assert up_low_sets(csvc_problem(y, C), beta, y - K @ beta).violation <= tol * (1 + 1e-6) + 1e-10
    value = whole.alpha.sum() - 0.5 * (whole.alpha * y) @ K @ (whole.alpha * y)
    assert model.dual_objective_ == pytest.approx(value, rel=max(1e-10, 0.01 * tol))


@needs_jit
@pytest.mark.parametrize(("kind", "error"), [("exact", 1e-10), ("dense", 1e-4), ("binary", 1e-4)])
def test_dropped_samples_get_their_gradient_back(kind, error, monkeypatch):
    monkeypatch.setattr(working_sets, "SET_SAMPLES", 24)
    X, y, gamma = forms("dense" if kind == "exact" else kind)
    source = KernelSource.from_inputs(X, KernelFunction("rbf", gamma))
    rows = SourceRows(source, np.float64) if kind == "exact" else float32_rows(source)
    beta, v = np.zeros(300), y.copy()
    taking_part = ActiveSamples(np.arange(300), csvc_problem(y, 1.0), beta, v)
    search = WorkingSetSearch(rows, taking_part, tol=1e-6, cache_mb=1.0, pool=ThreadPool(1))
    # As if values cost nothing, samples are dropped as soon as they idle.
    rows.effort = 0.0
    assert search.run(10**6) == 0
    assert len(taking_part.members) < 220
    assert search.row_cache.rows.shape[1] == len(taking_part.members)
    taking_part.finish(rows, ThreadPool(1))
    assert_allclose(v, y - source.rows(np.arange(300)) @ beta, atol=error)


@needs_jit
@pytest.mark.parametrize("kind", ["dense", "sparse", "binary"])
@pytest.mark.parametrize("cache_mb", [0.3, 100.0])
@pytest.mark.parametrize("seed", [0, 3])
def test_threads_share_the_work_and_change_nothing(kind, cache_mb, seed):
    # Seed 3 is one where other shapes of the products of matrices would show in the last bits.
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2600, 20))
    X = (X > 0.5).astype(float) if kind == "binary" else X
    y = np.where(X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=2600) > 0.2, 1, -1)
    X = sp.csr_array(X) if kind == "sparse" else X
    one, *more = (CSVC(C=2.0, gamma=0.05, cache_mb=cache_mb, n_jobs=n).fit(X, y) for n in (1, 2, 3))
    assert one.n_iter_ > 1000
    for model in more:
        assert model.counters_ == one.counters_
        assert np.array_equal(model.dual_coef_, one.dual_coef_)
        assert model.intercept_ == one.intercept_


def test_filled_values_do_not_depend_on_where_a_part_ends():
    X = np.random.default_rng(0).normal(size=(1100, 30))
    for rows in (
        DenseRows(X, KernelFunction("rbf", 0.1)),
        BitRows(X > 1, KernelFunction("rbf", 0.1)),
    ):
        whole, parts = np.zeros((2, 65, 1100), dtype=np.float32)
        samples, columns = np.arange(65), rows.columns(None)
        rows.fill(samples, columns, 0, 1100, whole, samples)
        for start in (0, 512, 1024):
            rows.fill(samples, columns, start, min(start + 512, 1100), parts, samples, start)
        assert np.all(whole > 0.0)
        assert np.array_equal(parts, whole)


def test_inputs_in_single_precision_cost_no_second_copy():
    X = np.random.default_rng(0).normal(size=(40_000, 50))
    for inputs in (X, sp.csr_array(X * (X > 1.0))):
        tracemalloc.start()
        rows = DenseRows(inputs, KernelFunction("rbf", 0.1))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak <= rows.points.inputs.nbytes + 6 * MIB


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_every_part_is_done_once(n_jobs):
    with ThreadPool(n_jobs) as pool:
        for n in (0, 1, 7, 64, 65, 1000):
            done = np.zeros(n, dtype=int)
            starts = []

            def task(start, stop, done=done, starts=starts):
                done[start:stop] += 1
                starts.append(start)

            pool.share(n, 8, task)
            assert np.all(done == 1)
            assert len(starts) <= (1 if n_jobs == 1 else SHARES * n_jobs)
            assert all(start % 8 == 0 for start in starts)
        with pytest.raises(ZeroDivisionError):
            pool.share(1000, 8, lambda start, stop: 1 // (0 if stop == 1000 else 1))
    assert ThreadPool(-1).size == processors() >= 1


def test_a_thread_that_is_held_up_leaves_the_rest_to_others():
    others, is_rest_done = [], threading.Event()

    def task(start, stop):
        if start == 0:
            assert is_rest_done.wait(timeout=30.0)
            return
        others.append(stop - start)
        if sum(others) == 1000 - 125:
            is_rest_done.set()

    with ThreadPool(2) as pool:
        pool.share(1000, 1, task)
    assert sum(others) == 1000 - 125


@pytest.mark.parametrize("n_jobs", [0, -2, 1.5])
def test_a_number_of_threads_that_is_none(n_jobs):
    with pytest.raises(ValueError, match="n_jobs must be an integer of at least 1"):
        CSVC(n_jobs=n_jobs).fit([[0.0], [1.0]], [0, 1])


@needs_jit
@pytest.mark.parametrize("cache_mb", [0.0, 0.03])
def test_a_tiny_cache_changes_the_cost_alone(in_blocks, cache_mb):
    X, y, gamma = forms("dense")
    roomy = CSVC(C=100.0, gamma=gamma, tol=1e-6).fit(X, y)
    tight = CSVC(C=100.0, gamma=gamma, tol=1e-6, cache_mb=cache_mb).fit(X, y)
    assert tight.dual_objective_ == pytest.approx(roomy.dual_objective_, rel=1e-9)
    assert tight.counters_["kernel_evaluations"] > roomy.counters_["kernel_evaluations"]


@needs_jit
def test_a_stored_matrix_beyond_the_budget_is_read_by_rows(in_blocks):
    X, y, gamma = forms("dense")
    K = KernelFunction("rbf", gamma).between(X, X)
    source = KernelSource.precomputed(K)
    rows = CSVC(tol=1e-6, cache_mb=0.1).solve(source, y)
    whole = CSVC(tol=1e-6).solve(source, y)
    assert "checks" in rows.counters
    assert "checks" not in whole.counters
    assert_allclose(K @ (rows.alpha * y) + rows.b, K @ (whole.alpha * y) + whole.b, atol=1e-5)


@needs_jit
@pytest.mark.parametrize("C", [1e-6, 1e6])
@pytest.mark.parametrize("blocks", [True, False])
def test_single_precision_gives_way_where_it_does_not_suffice(C, blocks, monkeypatch):
    if blocks:
        monkeypatch.setattr(solver, "FULL_MATRIX_MAX_SAMPLES", 0)
        monkeypatch.setattr(working_sets, "SET_SAMPLES", 24)
    X, y, gamma = forms("dense")
    model = CSVC(C=C, gamma=gamma, tol=1e-4).fit(X, y)
    alpha = np.zeros(300)
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    v = y - (model.decision_function(X) - model.intercept_[0])
    assert model.stop_reason_ == "converged"
    assert up_low_sets(csvc_problem(y, C), y * alpha, v).violation <= 1.1e-4


@pytest.mark.parametrize("seed", [36, *range(8)])
def test_ordinary_data_need_no_kernel_values_in_double_precision(in_blocks, seed):
    # Seed 36: the sample that violates most can only rise, and is the last of the active ones.
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(240, 3))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=240) > 0.0, 1.0, -1.0)
    of_classes, of_one = nu_svc_problem(y, 0.3), one_class_problem(240, 0.1)
    for box, start in ((csvc_problem(y, 1.0), None), of_classes, of_one):
        source = KernelSource.from_inputs(X, KernelFunction("rbf", 0.3))
        found = solve_qp(source, box, start=start)
        assert (found.stop_reason, found.fallbacks) == ("converged", [])


def test_sets_grow_once_the_free_multipliers_settle():
    X, y = make_problem(n=20)
    y = y.astype(float)
    active = ActiveSamples(np.arange(20), csvc_problem(y, 1.0), np.zeros(20), y.copy())
    rows = DenseRows(X, KernelFunction("rbf", 1.0))
    sets = WorkingSetSearch(rows, active, tol=1e-3, cache_mb=1024.0, pool=ThreadPool(1))

    def size(n, *free):
        sets.free.clear()
        sets.free.extend(free)
        return sets.next_size(n)

    few, many, most = np.arange(400), np.arange(2000), np.arange(3900)
    working, largest = working_sets.SET_SAMPLES, working_sets.SET_MAX_SAMPLES
    assert size(5000, few) == working
    assert size(5000, many) == 2 * working
    # Five sets are watched, and of these the oldest and the last are compared.
    assert size(5000, *4 * [many]) == 2 * working
    assert size(5000, *5 * [many]) == 2600
    assert size(5000, *5 * [few]) == 2 * working
    assert size(5000, *5 * [most]) == largest
    assert size(5000, np.arange(300, 2300), *4 * [many]) == 2 * working
    assert size(5000, np.arange(70, 2070), *4 * [many]) == 2600
    # What is left goes in whole, if it is little enough and settled twice as well.
    assert size(largest, *5 * [few]) == largest
    assert size(largest + 1, *5 * [few]) == 2 * working
    assert size(largest, np.arange(70, 2070), *4 * [many]) == 2600
    assert size(3000, np.arange(40, 2040), *4 * [many]) == 3000
    # A quarter of 36 MiB are 1,536 rows and columns of float32.
    sets = WorkingSetSearch(rows, active, tol=1e-3, cache_mb=36.0, pool=ThreadPool(1))
    assert size(5000, *5 * [many]) == 1536
    assert size(1537, *5 * [few]) == 2 * working
    assert size(1536, *5 * [few]) == 1536


#: Samples of which nearly all are support vectors with a multiplier below its bound.
N_FREE = 150 if JIT_DISABLED else 240


@pytest.mark.parametrize("make", [lambda: OneClass(nu=0.05), lambda: NuSVC(nu=0.2), CSVC])
def test_full_matrix_once_most_multipliers_are_free(in_blocks, monkeypatch, make):
    # With so narrow a kernel nearly all multipliers are free at the solution.
    X, y = make_problem(n=N_FREE)
    source = KernelSource.from_inputs(X, KernelFunction("rbf", 30.0))
    whole, calls = DenseRows.whole, []
    monkeypatch.setattr(DenseRows, "whole", lambda rows, K: calls.append(rows) or whole(rows, K))
    monkeypatch.setattr(solver, "float32_rows", lambda source: DenseRows(*source.inputs()))
    by_matrix = make().set_params(tol=1e-4).solve(source, y.astype(float))
    assert len(calls) == 1
    monkeypatch.setattr(working_sets, "MATRIX_MAX_SAMPLES", N_FREE - 1)
    by_sets = make().set_params(tol=1e-4).solve(source, y.astype(float))
    assert len(calls) == 1
    assert by_matrix.stop_reason == by_sets.stop_reason == "converged"
    assert_allclose(by_matrix.coefficients, by_sets.coefficients, atol=1e-3 * by_sets.alpha.max())
    assert by_matrix.b == pytest.approx(by_sets.b, abs=1e-3)


@pytest.mark.parametrize(
    ("share", "cache_mb", "changes"), [(0.5, 1024.0, True), (0.7, 1024.0, False), (0.5, 0.5, False)]
)
def test_no_full_matrix_with_few_free_multipliers_or_little_memory(
    in_blocks, monkeypatch, share, cache_mb, changes
):
    X, _ = make_problem(n=240)
    rows = DenseRows(X, KernelFunction("rbf", 30.0))  # 0.22 MiB as a full matrix
    monkeypatch.setattr(working_sets, "MATRIX_MIN_FREE", share)
    beta = np.where(np.arange(240) < 150, 0.5, 0.0)
    problem = csvc_problem(np.ones(240), 1.0)
    active = ActiveSamples(np.arange(240), problem, beta, np.linspace(-1.0, 1.0, 240))
    sets = WorkingSetSearch(rows, active, 1e-4, cache_mb, ThreadPool(1))
    assert (sets.run(1) == ROWS_MISSING) == changes


def test_limits_hold_after_the_change_to_the_full_matrix(in_blocks, monkeypatch):
    X, y = make_problem(n=240)
    source = KernelSource.from_inputs(X, KernelFunction("rbf", 30.0))
    whole, calls = DenseRows.whole, []
    monkeypatch.setattr(DenseRows, "whole", lambda rows, K: calls.append(rows) or whole(rows, K))
    monkeypatch.setattr(solver, "float32_rows", lambda source: DenseRows(*source.inputs()))
    found = CSVC(tol=1e-6).solve(source, y.astype(float))
    stopped = CSVC(tol=1e-6, max_iter=found.n_iter - 1).solve(source, y.astype(float))
    assert (stopped.n_iter, stopped.stop_reason) == (found.n_iter - 1, "max_iter")
    by_gap = CSVC(tol=1e-6, stop="gap", gap=1e-2).solve(source, y.astype(float))
    assert by_gap.stop_reason == "gap"
    assert by_gap.n_iter < found.n_iter
    assert len(calls) == 3


@needs_jit
def test_max_iter_and_a_start_in_blocks(in_blocks):
    X, y, gamma = forms("dense")
    source = KernelSource.from_inputs(X, KernelFunction("rbf", gamma))
    cold = CSVC(tol=1e-5).solve(source, y)
    warm = CSVC(tol=1e-5).solve(source, y, start=cold.alpha)
    assert cold.n_iter > 100
    assert warm.n_iter == 0
    assert_allclose(warm.alpha, cold.alpha)
    short = CSVC(tol=1e-5, max_iter=100).solve(source, y)
    assert short.stop_reason == "max_iter"
    assert short.n_iter == 100


@needs_jit
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_warm_up_leaves_nothing_to_compile(in_blocks, monkeypatch):
    compiled = [
        value
        for module in MODULES
        for value in vars(module).values()
        if hasattr(value, "nopython_signatures")
    ]
    warm_up(CSVC)
    known = {each.__name__: list(each.signatures) for each in compiled}
    assert all(
        known[name] for name in ("pair_steps", "subtract_rows", "gauss_single", "count_pieces")
    )
    for kind in ("dense", "sparse", "binary"):
        X, y, gamma = forms(kind)
        CSVC(C=10.0, gamma=gamma).fit(X, y)
        CSVC(C=1e6, gamma=gamma, tol=1e-8, max_iter=20000).fit(X, y)
        K = KernelFunction("rbf", gamma).between(X, X)
        CSVC().solve(KernelSource.precomputed(K), y)
    monkeypatch.setattr(solver, "FULL_MATRIX_MAX_SAMPLES", 1000)
    CSVC(gamma=gamma, tol=1e-8).fit(X, y)
    assert {each.__name__: list(each.signatures) for each in compiled} == known


@needs_jit
@pytest.mark.parametrize("C", [10.0, 1e4])
def test_the_gradient_of_few_samples_stays_exact_without_a_check(C):
    X, y = make_problem(n=400, d=3, noise=0.3)
    source = KernelSource.from_inputs(X, KernelFunction("rbf", 0.5))
    found = solver.solve_qp(source, csvc_problem(y.astype(float), C), max_iter=300_000)
    assert found.checks == 0
    assert found.steps > 200
    exact_v = y - source.rows(np.arange(400)) @ found.beta
    assert_allclose(found.v, exact_v, rtol=0.0, atol=1e-12 * C)


@needs_jit
def test_memory_stays_within_the_budget():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 4))
    y = np.where(np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=6000) > 0, 1, -1)

    def peak(cache_mb):
        model = CSVC(C=30.0, gamma=2.0, cache_mb=cache_mb)
        data = model.prepare(X, y)
        model.train(data)
        # The second time nothing is compiled, which takes memory too.
        tracemalloc.start()
        model.train(data)
        found = tracemalloc.get_traced_memory()[1] / MIB
        tracemalloc.stop()
        assert model.stop_reason_ == "converged"
        return found, model.counters_["kernel_evaluations"]

    (small, many), (large, few) = peak(4.0), peak(36.0)
    # The whole matrix would take 137 MiB in float32. Beside the rows there are the values of a
    # working set, pieces of rows, and a few vectors.
    assert small <= 4.0 + 24.0, small
    assert large <= 36.0 + 24.0, large
    assert large - small >= 16.0
    assert few < many


@pytest.mark.parametrize("at_once", [1, 40, 1 << 20])
def test_exact_gradient_in_pieces(at_once, monkeypatch):
    monkeypatch.setattr(solver, "CHECK_VALUES", at_once)
    monkeypatch.setattr(solver, "CHECK_ROWS", 5)
    X, y = make_problem(n=30, d=4)
    source = KernelSource.from_inputs(X, KernelFunction("rbf", 1.0))
    beta = np.where(np.arange(30) % 3 == 0, 0.0, np.linspace(-1.0, 2.0, 30))
    expected = y - source.rows(np.arange(30)) @ beta
    for samples in (np.arange(30), np.arange(4, 20), np.array([0, 3, 6]), np.array([1, 2])):
        found = solver.exact_gradient(source, y.astype(float), beta, samples)
        assert_allclose(found, expected[samples], rtol=1e-12, atol=1e-13)


@needs_jit
def test_dropped_samples_are_looked_at_again_in_double_precision(in_blocks, monkeypatch):
    monkeypatch.setattr(solver, "FLOAT32_MAX_KERNEL", 0.0)
    monkeypatch.setattr(SourceRows, "effort", 0.0)
    X, y, gamma = forms("dense")
    for C in (0.1, 1.0, 30.0):
        model = CSVC(C=C, gamma=gamma, tol=1e-6).fit(X, y)
        alpha = np.zeros(300)
        alpha[model.support_] = np.abs(model.dual_coef_[0])
        v = y - (model.decision_function(X) - model.intercept_[0])
        assert up_low_sets(csvc_problem(y, C), y * alpha, v).violation <= 1e-6 * (1 + 1e-6)
        assert model.counters_["checks"] == 0


@needs_jit
def test_kernel_values_that_float32_can_not_hold():
    X, y = make_problem(n=60, d=4)
    model = CSVC(kernel="poly", degree=9, gamma=1e4, C=1e-36, tol=1e-4).fit(X, y)
    scaled = CSVC(kernel="poly", degree=9, gamma=1.0, C=1.0, tol=1e-4).fit(X, y)
    assert np.max(model.function.diagonal(X)) > 1e38
    assert_allclose(model.decision_function(X), scaled.decision_function(X), rtol=1e-3, atol=1e-3)


def test_a_store_that_forgets_none_keeps_what_came_first():
    store = RowCache(50, 50, 2.5 * 50 * 8 / MIB, rule=forget_none)
    assert store.place(np.array([4, 9, 7])).tolist() == [0, 1]
    assert store.find(np.array([9])).tolist() == [1]
    assert len(store.place(np.array([5]))) == 0
    assert store.find(np.array([4, 9, 5])).tolist() == [0, 1, -1]


def test_a_store_follows_new_names_and_gives_up_what_it_is_told_to():
    store = RowCache(4, 4, 1.0)
    store.rows[store.place(np.array([2, 0]))] = [[2.0] * 4, [0.0] * 4]
    # What was called 2 is called 0 now, and 0 is called 1.
    store.rename(np.array([2, 0, 1]))
    assert store.find(np.array([0, 1, 2, 3])).tolist() == [0, 1, -1, -1]
    store.forget(np.array([1]))
    assert store.find(np.array([0, 1])).tolist() == [0, -1]
    assert store.place(np.array([3, 2])).tolist() == [2, 3]
    assert store.place(np.array([1])).tolist() == [1]
    assert store.slots.tolist() == [0, 1, 3, 2]
    # Rows of samples that are not kept go, and so does what was given up.
    store.forget(np.array([3]))
    store.cut(np.array([0, 1]), np.array([True, True, False, True]))
    assert store.find(np.array([0, 1, 2, 3])).tolist() == [0, 1, -1, -1]


def test_every_row_of_a_matrix_has_its_slot():
    K = np.arange(9.0).reshape(3, 3)
    store = SourceRowCache(KernelSource.precomputed(K), 1.0)
    assert np.array_equal(store.rows[store.find(np.array([2, 0]))], K[[2, 0]])
