"""Rows and scaling: fixed by the seed, stratified, without leaks."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given
from hypothesis import strategies as st

from svmbench.experiment.config.capabilities import fewest_rows
from svmbench.experiment.protocols import folds
from svmbench.experiment.protocols.kernel_search import save_distances
from svmbench.experiment.run.worker import save_shared_arrays

Y = np.array([-1] * 70 + [1] * 30)


def test_seeds_depend_on_every_part_and_nothing_else() -> None:
    assert folds.derive_seed(1, "a", 2) == folds.derive_seed(1, "a", 2)
    seeds = {folds.derive_seed(*parts) for parts in [(1, "a"), (2, "a"), (1, "b"), (1, "a", None)]}
    assert len(seeds) == 4
    assert all(0 <= s < 2**31 for s in seeds)


def test_subsets_are_stratified_nested_and_sorted() -> None:
    small = folds.subset_rows(Y, 20, seed=3)
    large = folds.subset_rows(Y, 50, seed=3)
    assert len(small) == 20
    assert len(large) == 50
    assert set(small) <= set(large)
    assert np.all(np.diff(large) > 0)
    assert np.sum(Y[small] == 1) == 6
    assert np.sum(Y[large] == 1) == 15
    assert not np.array_equal(small, folds.subset_rows(Y, 20, seed=4))
    assert np.array_equal(folds.subset_rows(Y, None, seed=3), np.arange(100))


@example([10] * 7, 2 / 7, 0)  # six of seven classes may have a row more than the last
@given(st.lists(st.integers(1, 60), min_size=2, max_size=7), st.floats(0.0, 1.0), st.integers(0, 9))
def test_no_class_has_fewer_rows_in_a_subset_than_is_known_without_drawing(
    sizes: list[int], share: float, seed: int
) -> None:
    y = np.repeat(np.arange(len(sizes)), sizes)
    n_rows = round(share * len(y))
    drawn = y[folds.subset_rows(y, n_rows, seed)]
    fewest = np.bincount(drawn, minlength=len(sizes)).min()
    known = fewest_rows(np.array(sizes), n_rows)
    assert known <= fewest
    assert known >= fewest - 1 - len(sizes) / 2  # and it is no empty promise


def test_outer_splits_cover_every_row_once_in_proportion() -> None:
    splits = folds.outer_splits(Y, 5, seed=0)
    assert np.array_equal(np.sort(np.concatenate([test for _, test in splits])), np.arange(100))
    for train, test in splits:
        assert not set(train) & set(test)
        assert np.sum(Y[test] == 1) == 6


def test_most_frequent_features_dense_and_sparse() -> None:
    X = np.array([[1.0, 0, 1, 1], [1, 0, 0, 1], [0, 1, 0, 1]])
    assert folds.subset_features(X, 2).tolist() == [0, 3]
    assert folds.subset_features(sp.csr_array(X), 2).tolist() == [0, 3]
    assert folds.subset_features(X, None) is None
    assert folds.subset_features(X, 4) is None


def test_scaler_sees_only_its_rows() -> None:
    X = np.array([[0.0], [10.0], [20.0]])
    assert folds.scale(X, "minmax", np.array([0, 1])).ravel().tolist() == [0.0, 1.0, 2.0]
    assert folds.scale(X, "minmax").ravel().tolist() == [0.0, 0.5, 1.0]
    sparse = folds.scale(sp.csr_array(X), "minmax")
    assert sp.issparse(sparse)
    assert sparse.toarray().ravel().tolist() == [0.0, 0.5, 1.0]


def test_constant_features_scale_to_finite_values() -> None:
    X = np.array([[3.0, 1.0], [3.0, 2.0]])
    scaled = folds.scale(X, "minmax")
    assert np.all(np.isfinite(scaled))
    assert scaled[:, 0].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "csr"])
def test_arrays_are_written_whole_and_mapped(tmp_path: Path, make: object) -> None:
    X = make(np.arange(12.0).reshape(4, 3))
    folder = tmp_path / "shared" / "node"
    save_shared_arrays(folder, X, 0.5)
    again, seconds = folds.open_arrays(folder)
    assert seconds == 0.5
    dense = again.toarray() if sp.issparse(again) else again
    assert np.array_equal(dense, np.arange(12.0).reshape(4, 3))
    save_shared_arrays(folder, X, 0.7)  # another worker was first: its arrays stay
    assert folds.open_arrays(folder)[1] == 0.5
    assert [p.name for p in folder.parent.iterdir()] == ["node"]


@pytest.mark.parametrize(("precision", "size"), [("single", 4), ("double", 8)])
def test_distances_are_kept_in_the_precision_that_is_asked_for(
    tmp_path: Path, precision: str, size: int
) -> None:
    X = np.random.default_rng(0).random((9, 3))
    spec = {"n_rows": 9, "precision": precision}
    save = partial(save_distances, dtype=folds.distance_type(spec))
    save_shared_arrays(tmp_path / "node", X, 0.0, save_distances=save)
    opened = folds.open_distances(tmp_path / "node")
    assert opened is not None
    kept, seconds = opened
    assert seconds >= 0.0
    assert kept.nbytes == folds.distance_bytes(spec) == size * 81
    exact = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    error = np.abs(np.asarray(kept) - exact).max()
    assert (error < 1e-14) == (precision == "double")
    assert error < 1e-6
    save_shared_arrays(tmp_path / "without", X, 0.0)
    assert folds.open_distances(tmp_path / "without") is None


def test_subsets_may_be_the_first_rows() -> None:
    assert folds.subset_rows(Y, 20, seed=3, kind="first").tolist() == list(range(20))
    assert len(folds.subset_rows(Y, 200, seed=3, kind="first")) == 100
