"""The search on shared kernel matrices, against scikit-learn's grid search on the same folds."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import minmax_scale
from sklearn.svm import SVC
from small_problems import make_problem

import svmbench
from svmbench.baselines.catalogue import solver_class
from svmbench.core.kernels.kernels import KernelFunction, KernelSource, squared_distances
from svmbench.core.models.kernel_base import KernelClassifier, KernelSolution
from svmbench.core.numeric.submatrix import Workspace
from svmbench.experiment.protocols.folds import outer_splits
from svmbench.experiment.protocols.kernel_search import (
    SearchRows,
    make_folds,
    search_on_kernels,
    sort_by_class_and_fold,
    takes_part,
)

C_VALUES, GAMMAS = [0.25, 4.0, 64.0], [0.0625, 1.0]
GRID = [{"C": C, "gamma": gamma} for C in C_VALUES for gamma in GAMMAS]


class Precomputed(KernelClassifier):
    """scikit-learn's SVC behind the contract: the search is under test, not a solver."""

    solved = 0

    def __init__(self, C=1.0, gamma=1.0, stop_reason="converged"):
        self.C, self.gamma, self.stop_reason = C, gamma, stop_reason

    def solve(self, source, y, start=None):
        type(self).solved += 1
        K = source.whole(100.0)
        model = SVC(kernel="precomputed", C=self.C, tol=1e-6).fit(K, y)
        signed = np.zeros(len(y))
        signed[model.support_] = model.dual_coef_[0]
        return KernelSolution(signed, float(model.intercept_[0]), 1, self.stop_reason)


def problem(load):
    X, y = load(return_X_y=True)
    X = minmax_scale(X)
    return X, y, outer_splits(y, 3, seed=1)


def ours(X, y, splits, **kwargs):
    rows = np.arange(len(y))
    classes, codes = np.unique(y, return_inverse=True)
    distances = squared_distances(X)
    ground = SearchRows(distances, rows, codes, len(classes), splits)
    return search_on_kernels(ground, Precomputed, GRID, **kwargs)


@pytest.mark.parametrize("load", [load_iris, load_breast_cancer])
def test_the_score_table_is_that_of_grid_search(load):
    X, y, splits = problem(load)
    theirs = GridSearchCV(
        SVC(tol=1e-6), {"C": C_VALUES, "gamma": GAMMAS}, cv=splits, refit=False
    ).fit(X, y)
    found = ours(X, y, splits)
    expected = np.stack(
        [theirs.cv_results_[f"split{f}_test_score"].reshape(3, 2) for f in range(3)], axis=2
    )
    np.testing.assert_allclose(found.accuracy_pct, 100.0 * expected, atol=1e-9)
    assert found.best == theirs.best_params_
    assert found.metrics["unconverged_fits"] == 0
    n_pairs = 3 if load is load_iris else 1
    assert found.metrics["search_fits"] == 6 * 3 * n_pairs
    # One matrix a gamma, whatever the number of C, folds and pairs.
    assert found.metrics["search_kernel_evaluations"] == 2 * len(y) ** 2


class KeepsSolutions(Precomputed):
    """It also remembers what it was handed and what it found."""

    seen: list = []  # noqa: RUF012

    def solve(self, source, y, start=None):
        found = super().solve(source, y)
        type(self).seen.append((source.whole(100.0).copy(), found))
        return found


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kernel_values_have_the_precision_of_the_distances(dtype):
    X, y, splits = problem(load_iris)
    rows, KeepsSolutions.seen = np.arange(100), []
    splits = outer_splits(y[:100], 2, seed=1)
    distances = squared_distances(X, dtype=dtype)
    points = [{"C": 1.0, "gamma": 0.7}, {"C": 2.0, "gamma": 0.7}]
    search_on_kernels(SearchRows(distances, rows, y[:100], 2, splits), KeepsSolutions, points)
    K, _ = KeepsSolutions.seen[0]
    train = splits[0][0]
    exact = np.exp(-0.7 * ((X[train][:, None] - X[train][None]) ** 2).sum(axis=2))
    assert K.dtype == dtype
    error = np.abs(K - exact).max()
    assert error < (1e-14 if dtype == np.float64 else 1e-6)
    assert dtype == np.float64 or error > 1e-10


def test_a_part_of_the_rows_is_searched_on_its_own():
    X, y, _ = problem(load_iris)
    rows = np.r_[0:40, 60:150]
    splits = outer_splits(y[rows], 3, seed=1)
    ground = SearchRows(squared_distances(X), rows, y[rows], 3, splits)
    part = search_on_kernels(ground, Precomputed, GRID)
    alone = ours(X[rows], y[rows], splits)
    np.testing.assert_allclose(part.accuracy_pct, alone.accuracy_pct)


def test_equal_scores_go_to_the_smallest_c_then_the_smallest_gamma():
    X = np.repeat([[0.0], [1.0]], 10, axis=0)
    y = np.repeat([0, 1], 10)
    splits = outer_splits(y, 2, seed=0)
    assert ours(X, y, splits).best == {"C": 0.25, "gamma": 0.0625}


def test_an_interrupted_search_goes_on_where_it_was():
    X, y, splits = problem(load_iris)
    points = {}
    whole = ours(X, y, splits, emit=points.__setitem__)
    assert list(points) == ["gamma=0.0625", "gamma=1"]
    Precomputed.solved = 0
    rest = ours(X, y, splits, done={"gamma=0.0625": points["gamma=0.0625"]})
    assert Precomputed.solved == 3 * 3 * 3
    np.testing.assert_array_equal(rest.accuracy_pct, whole.accuracy_pct)
    assert rest.metrics["search_fits"] == whole.metrics["search_fits"]


def test_fits_that_did_not_converge_are_counted():
    X, y, splits = problem(load_iris)
    distances = squared_distances(X)
    found = search_on_kernels(
        SearchRows(distances, np.arange(len(y)), y, 3, splits),
        lambda **params: Precomputed(stop_reason="max_iter", **params),
        GRID,
    )
    assert found.metrics["unconverged_fits"] == found.metrics["search_fits"] == 54


def test_what_takes_part():
    assert takes_part(Precomputed, {}, GRID)
    assert not takes_part(Precomputed, {"kernel": "linear"}, GRID)
    assert not takes_part(Precomputed, {"gamma": 1.0}, [{"C": 1.0}])
    assert not takes_part(SVC, {}, GRID)


def test_rows_stand_by_class_and_fold_and_problems_stay_as_they_are():
    X, y, splits = problem(load_iris)
    shuffled = np.random.default_rng(0).permutation(len(y))
    X, y = X[shuffled], y[shuffled]
    distances = squared_distances(X)
    rows = np.flatnonzero(np.arange(len(y)) % 10 > 0)
    splits = outer_splits(y[rows], 3, seed=1)
    before = SearchRows(distances, rows, y[rows], 3, splits)
    after = sort_by_class_and_fold(before)
    assert np.all(np.diff(after.codes) >= 0)
    for _, validation in after.splits:
        for code in range(3):
            own = validation[after.codes[validation] == code]
            assert np.array_equal(np.sort(own), np.arange(own.min(), own.max() + 1))
    # Sample by sample, a fold's problems are what they were.
    for old, new in zip(
        make_folds(before.codes, before.splits), make_folds(after.codes, after.splits), strict=True
    ):
        assert np.array_equal(before.rows[old.validation], after.rows[new.validation])
        assert np.array_equal(before.codes[old.validation], after.codes[new.validation])
        for one, other in zip(old.rows, new.rows, strict=True):
            assert np.array_equal(before.rows[one], after.rows[other])
        for one, other in zip(old.signs, new.signs, strict=True):
            assert np.array_equal(one, other)


SEARCHED = [
    name
    for name in svmbench.solvers()
    if takes_part(solver_class(name), {}, [{"C": 1.0, "gamma": 1.0}])
    and "C" in solver_class(name)().get_params()
]


@pytest.mark.slow
@pytest.mark.parametrize("name", SEARCHED)
def test_no_solution_lives_in_the_memory_of_the_next_problem(name):
    X, y = make_problem(n=60, d=3)
    K = KernelFunction("rbf", 0.5).between(X, X)
    signs, parts = y.astype(float), (np.arange(0, 60, 2), np.arange(1, 60, 2))
    solver = svmbench.solver(name, gamma=0.5)
    # The one after the other in one memory, and each in its own.
    source = KernelSource.precomputed(K, Workspace())
    found = [list(solver.solve_along(source.subset(p), signs[p], "C", [1.0, 4.0])) for p in parts]
    for part, solutions in zip(parts, found, strict=True):
        apart = KernelSource.precomputed(K).subset(part)
        expected = solver.solve_along(apart, signs[part], "C", [1.0, 4.0])
        for one, other in zip(solutions, expected, strict=True):
            np.testing.assert_array_equal(one.coefficients, other.coefficients)
            assert one.b == other.b
