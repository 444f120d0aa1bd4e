"""Kernel values against scikit-learn's, from every source; the row cache against its budget."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.metrics.pairwise import euclidean_distances, pairwise_kernels
from small_problems import make_problem

from svmbench.core.contract.declaration import KERNELS
from svmbench.core.kernels.kernels import (
    KernelFunction,
    KernelSource,
    gauss_of_distances,
    squared_distances,
)
from svmbench.core.kernels.products import gauss_single, squared_lengths
from svmbench.core.numeric.submatrix import Workspace, gather
from svmbench.core.oneclass.one_class import OneClass

X, _ = make_problem(n=40, d=6)


def expected(name, A, B):
    return pairwise_kernels(A, B, metric=name, filter_params=True, gamma=0.3, degree=2, coef0=0.5)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_rows_blocks_and_subsets(name, form):
    function = KernelFunction(name, gamma=0.3, degree=2, coef0=0.5)
    source = KernelSource.from_inputs(form(X), function)
    K = expected(name, X, X)
    assert_allclose(source.rows([3, 1]), K[[3, 1]], rtol=1e-12, atol=1e-14)
    assert source.kernel_evaluations == 2 * 40
    assert_allclose(source.block([0, 5, 2], [7]), K[np.ix_([0, 5, 2], [7])], rtol=1e-12, atol=1e-14)
    assert_allclose(source.diag(), np.diag(K), rtol=1e-12, atol=1e-14)
    picked = np.array([9, 4, 30])
    part = source.subset(picked)
    assert_allclose(part.rows([0, 2]), K[np.ix_(picked[[0, 2]], picked)], rtol=1e-12, atol=1e-14)
    assert part.n_samples == 3
    assert source.kernel_evaluations == part.kernel_evaluations == 2 * 40 + 3 + 40 + 6


@pytest.mark.parametrize("name", KERNELS)
def test_a_few_sparse_rows_have_the_values_that_matrices_of_them_have(name, monkeypatch):
    dense = np.where(np.random.default_rng(1).random(X.shape) < 0.3, X, 0.0)
    source = KernelSource.from_inputs(
        sp.csr_array(dense), KernelFunction(name, gamma=0.3, degree=2, coef0=0.5)
    )
    K = expected(name, dense, dense)
    made = []
    monkeypatch.setattr(KernelFunction, "between", lambda *_: made.append(1))
    mask = np.arange(40) == 5
    for rows, others in (
        ([7], slice(None)),
        (np.arange(9), np.array([4, 4, 0])),
        ([0], slice(2, 9)),
    ):
        together = np.ix_(np.arange(40)[rows], np.arange(40)[others])
        assert_allclose(source.block(rows, others), K[together], rtol=1e-12, atol=1e-14)
    assert_allclose(source.block(mask, mask), K[5, 5], rtol=1e-12)
    assert not made
    assert source.kernel_evaluations == 40 + 27 + 7 + 1


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("d", [4, 6])
def test_values_of_rows_far_from_zero_are_those_of_differences(form, d):
    # One column is far from zero where it has an entry; the others mostly have none.
    draw = np.random.default_rng(2)
    Z = np.where(draw.random((600, d)) < 0.4, draw.normal(size=(600, d)), 0.0)
    Z[:, 1] = np.where(draw.random(600) < 0.8, 1e8 + np.arange(600) / 512.0, 0.0)
    K = np.exp(-0.3 * ((Z[:, None, :] - Z[None, :, :]) ** 2).sum(axis=2))
    source = KernelSource.from_inputs(form(Z), KernelFunction("rbf", 0.3))
    assert_allclose(source.rows([7, 9, 2]), K[[7, 9, 2]], rtol=1e-12, atol=1e-15)
    picked = np.arange(5, 600, 3)
    block = source.block(picked, np.arange(600))
    assert_allclose(block, K[picked], rtol=1e-12, atol=1e-15)
    mixed = KernelFunction("rbf", 0.3).between(Z[:3], form(Z))
    assert_allclose(mixed, K[:3], rtol=1e-12, atol=1e-15)


def test_an_entry_that_a_sparse_row_has_twice_counts_as_its_sum():
    twice = sp.csr_array((np.array([1.0, 2.0, 1.0]), np.array([0, 0, 1]), np.array([0, 2, 3])))
    source = KernelSource.from_inputs(twice, KernelFunction("rbf", gamma=0.1))
    assert_allclose(source.rows([0, 1]), [[1.0, np.exp(-1.0)], [np.exp(-1.0), 1.0]], rtol=1e-12)


def test_many_sparse_values_at_a_time_are_made_by_matrices(monkeypatch):
    source = KernelSource.from_inputs(sp.csr_array(X), KernelFunction("linear"))
    monkeypatch.setattr("svmbench.core.kernels.products.SPARSE_PRODUCTS_MAX", 100)
    monkeypatch.setattr("svmbench.core.kernels.products.multiply", None)
    assert_allclose(source.rows(np.arange(5)), X[:5] @ X.T, rtol=1e-12)


def test_stored_matrices(tmp_path):
    K = expected("rbf", X, X)
    np.save(tmp_path / "matrix.npy", K)
    source = KernelSource.precomputed(np.load(tmp_path / "matrix.npy", mmap_mode="r"))
    assert_allclose(source.rows([8]), K[[8]], rtol=1e-12)
    assert_allclose(source.diag(), 1.0, rtol=1e-12)
    part = source.subset(np.arange(10, 20)).subset(np.array([1, 0]))
    assert_allclose(part.block([0], [1]), K[11, 10], rtol=1e-12)
    with pytest.raises(ValueError, match="must be square"):
        KernelSource.precomputed(K[:3])


@pytest.mark.parametrize("scale", [0.0, 1e-9, 1.0, 1e4])
def test_exponential_where_it_is_flat_and_where_it_vanishes(scale):
    distances = euclidean_distances(X, squared=True)
    ours = KernelFunction("rbf", gamma=max(scale, 1e-300)).between(X, X)
    assert_allclose(ours, np.exp(-scale * distances), rtol=1e-11 * (1 + scale), atol=1e-300)
    assert np.all(ours <= 1.0 + 1e-15)


def test_single_precision_is_within_a_few_units_of_its_last_place():
    P, squares = (X @ X.T).astype(np.float32), np.einsum("ij,ij->i", X, X).astype(np.float32)
    out = np.full((2 * len(P), len(P)), 7.0, dtype=np.float32)
    gauss_single(P, squares, squares, 0.3, out, 2 * np.arange(len(P)))
    assert_allclose(out[::2], expected("rbf", X, X), rtol=2e-6, atol=2e-7)
    assert np.all(out[1::2] == 7.0)


def test_a_whole_matrix_is_handed_out_within_its_budget_and_in_its_precision():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    function = KernelFunction("rbf", 0.5)
    K = function.between(X, X)
    subset = np.array([3, 5, 20, 39])
    single = K.astype(np.float32)

    inputs = KernelSource.from_inputs(X, function)
    stored = KernelSource.precomputed(single)

    assert inputs.whole(0.0) is None
    np.testing.assert_allclose(inputs.whole(1.0), K, rtol=1e-14)
    assert stored.whole(1.0) is single
    assert stored.subset(subset).whole(1.0).dtype == np.float32
    np.testing.assert_array_equal(stored.subset(subset).whole(1.0), single[np.ix_(subset, subset)])
    assert stored.kernel_evaluations == 1600 + 16 + 16
    assert stored.rows(subset).dtype == np.float64


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_distances_and_their_kernel_are_scikit_learns_in_single_precision(form, monkeypatch):
    monkeypatch.setattr("svmbench.core.kernels.kernels.DISTANCE_ROWS", 17)
    distances = squared_distances(form(X))
    assert distances.dtype == np.float32
    np.testing.assert_array_equal(distances, distances.T)
    assert not distances.diagonal().any()
    assert_allclose(distances, euclidean_distances(X, squared=True), rtol=1e-6, atol=1e-6)
    K = gauss_of_distances(distances[5:30], 0.3)
    assert_allclose(K, np.exp(-0.3 * euclidean_distances(X[5:30], X, squared=True)), atol=1e-6)
    for dtype in (np.float32, np.float64):
        given, out = distances.astype(dtype), np.full((40, 40), np.nan, dtype=dtype)
        assert gauss_of_distances(given, 0.3, out) is out
        np.testing.assert_array_equal(out, gauss_of_distances(given, 0.3))
    out = np.empty((40, 40))
    assert squared_distances(form(X), out=out) is out
    assert_allclose(out, euclidean_distances(X, squared=True), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_distances_of_bits_are_counted(form, dtype, monkeypatch, tmp_path):
    bits = (np.random.default_rng(0).random((70, 130)) < 0.3).astype(float)
    expected = ((bits[:, None, :] - bits[None, :, :]) ** 2).sum(axis=2)
    mapped = np.memmap(tmp_path / "distances", dtype=dtype, mode="w+", shape=(70, 70))
    with monkeypatch.context() as patch:
        patch.setattr("svmbench.core.kernels.kernels.inner_products", None)
        found = squared_distances(form(bits), dtype=dtype)
        assert squared_distances(form(bits), out=mapped) is mapped
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(mapped, expected)
    # Of other values, or more features than are counted, they are computed.
    np.testing.assert_array_equal(squared_distances(form(2.0 * bits)), 4.0 * expected)
    monkeypatch.setattr("svmbench.core.kernels.kernels.BITS_MAX_FEATURES", 129)
    np.testing.assert_array_equal(squared_distances(form(bits), dtype=dtype), expected)


def test_gathering_is_fancy_indexing():
    matrix = np.random.default_rng(0).normal(size=(9, 7)).astype(np.float32)
    rows, columns = np.array([8, 0, 0, 3]), np.array([6, 1])
    found = gather(matrix, rows, columns, np.float64)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, matrix[np.ix_(rows, columns)])


def test_parts_of_a_given_matrix_follow_each_other_in_one_memory():
    rng = np.random.default_rng(0)
    K, workspace = rng.normal(size=(9, 9)), Workspace()
    source = KernelSource.precomputed(K, workspace)
    some, others = np.array([8, 0, 3]), np.array([5, 1])
    first = source.subset(some).whole(1.0)
    np.testing.assert_array_equal(first, K[np.ix_(some, some)])
    second = source.subset(np.arange(5)).subset(others[1:]).whole(1.0)
    np.testing.assert_array_equal(second, K[1:2, 1:2])
    assert np.shares_memory(first, second)
    # What is asked for by blocks lives on, and the matrix itself is not written to.
    block = source.subset(some).block([0, 2], slice(1, 3))
    np.testing.assert_array_equal(block, K[np.ix_([8, 3], [0, 3])])
    assert not np.shares_memory(block, first)
    assert not np.shares_memory(source.whole(1.0), first)
    apart = KernelSource.precomputed(K)
    assert not np.shares_memory(apart.subset(some).whole(1.0), apart.subset(some).whole(1.0))


def test_products_of_wide_rows_take_memory_for_the_columns_that_occur():
    entries = np.array([[3.0, 4.0], [5.0, 1.0]]).ravel(), np.array([7, 2**31 - 9, 9, 2**31 - 9])
    X = sp.csr_array((*entries, [0, 2, 4]), shape=(2, 2**31 - 1))
    tracemalloc.start()
    source = KernelSource.from_inputs(X, KernelFunction("linear"))
    found = source.block(np.arange(2), np.arange(2))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert_allclose(found, [[25.0, 4.0], [4.0, 26.0]])
    assert peak < 2**24


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_squared_lengths_of_sparse_rows_are_those_of_a_product_s_sums_to_the_last_digit(dtype):
    rng = np.random.default_rng(0)
    X = sp.random_array((60, 90), density=0.3, format="csr", rng=rng).astype(dtype)
    X = sp.vstack([X[:20], sp.csr_array((2, 90), dtype=dtype), X[20:]], format="csr")
    for rows in (X, X[:0], X[20:22]):
        lengths = squared_lengths(rows)
        assert lengths.dtype == dtype
        assert np.array_equal(lengths, np.asarray(rows.multiply(rows).sum(axis=1)))
    # An entry that is stored in two parts is their sum.
    halves = sp.csr_array((np.ones(3, dtype=dtype), np.array([1, 0, 1]), np.array([0, 3])), (1, 2))
    assert squared_lengths(halves).tolist() == [5.0]
    assert halves.nnz == 3


def test_a_prediction_of_sparse_rows_multiplies_no_sparse_matrices(monkeypatch):
    """Products of a few rows and sums of theirs took half the time of a prediction."""
    X = sp.random_array((30, 600), density=0.03, format="csr", rng=np.random.default_rng(0))
    model = OneClass(nu=0.5).fit(X)
    expected = model.decision_function(X)

    def refuse(*_):
        raise AssertionError("a sparse product")

    monkeypatch.setattr(sp.csr_array, "multiply", refuse)
    assert np.array_equal(model.decision_function(X), expected)
