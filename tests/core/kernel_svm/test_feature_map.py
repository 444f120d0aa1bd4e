"""Nyström and ICF: their maps against dense algebra, and the exact SVM where the basis is whole."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import small_problems
from kernel_oracles import box_qp
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning
from small_problems import needs_jit

from svmbench.core.kernel_svm import feature_map
from svmbench.core.kernel_svm.feature_map import ICF, Nystrom, icf_map, nystrom_map
from svmbench.core.kernels.kernels import KernelFunction, KernelSource

BOTH = pytest.mark.parametrize("solver", [Nystrom, ICF])
RBF = KernelFunction("rbf", gamma=0.7)


def make_problem(n, d):
    """Return a problem of different samples."""
    return small_problems.make_problem(n=n, d=d, density=1.0)


@pytest.fixture
def single(monkeypatch):
    """Make everything single precision."""
    monkeypatch.setattr(feature_map, "FLOAT64_MAX_FEATURE_VALUES", 0)


def maps(source, m):
    drawn = np.random.default_rng(0).permutation(source.n_samples)[:m]
    return nystrom_map(source, drawn), icf_map(source, m)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("m", [1, 7, 40])
def test_features_are_the_projection_on_the_basis(form, m):
    X, _ = make_problem(n=80, d=5)
    K = RBF.between(X, X)
    for made in maps(KernelSource.from_inputs(form(X), RBF), m):
        J = made.basis
        assert len(J) == m
        assert_allclose(made.L @ made.L.T, K[np.ix_(J, J)], atol=1e-10)
        projection = K[:, J] @ np.linalg.solve(K[np.ix_(J, J)], K[J])
        assert_allclose(made.features @ made.features.T, projection, atol=1e-7)
        w = np.random.default_rng(1).normal(size=m)
        assert_allclose(K[:, J] @ made.coefficients(w), made.features @ w, atol=1e-6)


def test_a_sample_near_another_is_kept_in_double_precision():
    """Its pivot is 1e-8 of the kernel's largest value, 1e8 times the rounding of float64."""
    X = np.array([[0.0, 0.0], [9.0, 0.0], [1e-4 / np.sqrt(1.4), 0.0]])
    for made in maps(KernelSource.from_inputs(X, RBF), 3):
        assert sorted(made.basis) == [0, 1, 2]
        assert np.diag(made.L).min() == pytest.approx(1e-4, rel=0.01)


@needs_jit
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_single_precision_gives_the_same_features(single, form):
    X, _ = make_problem(n=300, d=5)
    for made in maps(KernelSource.from_inputs(form(X), RBF), 30):
        assert made.features.dtype == np.float32
        K = RBF.between(X, X)
        projection = K[:, made.basis] @ np.linalg.solve(
            K[np.ix_(made.basis, made.basis)], K[made.basis]
        )
        assert_allclose(made.features @ made.features.T, projection, atol=1e-3)


def test_pivots_are_those_of_the_printed_factorisation():
    X, _ = make_problem(n=50, d=5)
    K = RBF.between(X, X)
    G, pivots = np.zeros((50, 12)), []
    for k in range(12):
        residual = [K[i, i] - sum(G[i, q] ** 2 for q in range(k)) for i in range(50)]
        p = int(np.argmax(residual))
        pivots.append(p)
        for i in range(50):
            G[i, k] = (K[i, p] - sum(G[i, q] * G[p, q] for q in range(k))) / residual[p] ** 0.5
    made = icf_map(KernelSource.from_inputs(X, RBF), 12)
    assert made.basis.tolist() == pivots
    assert_allclose(made.features, G, atol=1e-7)


@needs_jit
@BOTH
@pytest.mark.parametrize("C", [0.5, 5.0])
def test_a_whole_basis_gives_the_exact_svm_without_offset(solver, C):
    X, y = make_problem(n=120, d=5)
    model = solver(C=C, gamma=0.7, n_basis=120, tol=1e-9, max_iter=200_000).fit(X, y)
    K = RBF.between(X, X)
    alpha = box_qp(y[:, None] * K * y + 1e-12 * np.eye(120), C)
    assert_allclose(model.decision_function(X), K @ (y * alpha), atol=1e-4)
    assert model.counters_["dropped_pivots"] == 0
    assert model.objective_ == pytest.approx(alpha.sum() - 0.5 * (y * alpha) @ K @ (y * alpha))


@BOTH
def test_the_objective_is_the_exact_problem_s_and_falls_with_the_basis(solver):
    X, y = make_problem(n=100, d=5)
    values = []
    for m in (5, 20, 100):
        model = solver(C=1.0, gamma=0.7, n_basis=m, tol=1e-6, max_iter=100_000).fit(X, y)
        c, J = model.dual_coef_[0], model.basis_
        K = RBF.between(X[J], X[J])
        losses = np.maximum(0.0, 1.0 - y * model.decision_function(X))
        assert model.objective_ == pytest.approx(0.5 * c @ K @ c + losses.sum(), rel=1e-9)
        values.append(model.objective_)
    assert values[0] > values[1] > values[2]


@BOTH
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_samples_that_come_twice_are_dropped_and_counted(solver, kernel):
    X, y = make_problem(n=30, d=4)
    X, y = np.vstack([X] * 3), np.concatenate([y] * 3)
    model = solver(n_basis=90, kernel=kernel, gamma=5.0, tol=1e-3).fit(X, y)
    kept = 30 if kernel == "rbf" else 4
    assert model.counters_["basis_vectors"] == kept
    assert model.counters_["dropped_pivots"] == 90 - kept
    assert np.all(np.isfinite(model.decision_function(X)))


@BOTH
def test_a_basis_larger_than_the_samples_is_said_and_cut(solver):
    X, y = make_problem(n=30, d=4)
    with pytest.warns(UserWarning, match="n_basis=31 is more than there are .* all 30 are used"):
        model = solver(n_basis=31).fit(X, y)
    assert model.counters_["basis_vectors"] <= 30


@BOTH
@pytest.mark.parametrize("gamma", [1e-300, 1e-12, 1e12, 1e300])
def test_flat_and_steep_kernels_end_in_a_model(solver, gamma):
    X, y = make_problem(n=60, d=4)
    model = solver(n_basis=50, gamma=gamma).fit(X, y)
    assert np.all(np.isfinite(model.decision_function(X)))
    assert model.counters_["basis_vectors"] == (1 if gamma < 1 else 50)


@BOTH
def test_solve_on_a_matrix_gives_the_same_model(solver):
    X, y = make_problem(n=60, d=4)
    model = solver(n_basis=20, gamma=0.7, tol=1e-6, max_iter=50_000).fit(X, y)
    K = RBF.between(X, X)
    found = solver(n_basis=20, gamma=0.7, tol=1e-6, max_iter=50_000).solve(
        KernelSource.precomputed(K), y.astype(float)
    )
    assert np.array_equal(np.flatnonzero(found.coefficients), model.basis_)
    assert_allclose(K @ found.coefficients, model.decision_function(X), atol=1e-4)


def test_seeds_draw_other_samples():
    X, y = make_problem(n=60, d=4)
    one, two = Nystrom(n_basis=9).fit(X, y), Nystrom(n_basis=9, random_state=3).fit(X, y)
    assert one.basis_.tolist() != two.basis_.tolist()
    assert one.basis_.tolist() == Nystrom(n_basis=9).fit(X, y).basis_.tolist()


@needs_jit
@pytest.mark.parametrize("solver", [Nystrom, ICF])
def test_a_long_row_leaves_the_others_in_the_basis(solver):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(60, 12))
        y = np.where(X[:, 0] * X[:, 1] > 0.0, 1, -1)
        X[seed] *= 1000.0
        model = solver(n_basis=60, kernel="poly", degree=2, gamma=1.0, coef0=1.0)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always", ConvergenceWarning)
            model.fit(X, y)
        # Products of two of 12 features, these and a constant: 91 dimensions, and 60 samples.
        assert model.counters_["dropped_pivots"] == 0
        K = (X @ X.T + 1.0) ** 2
        best = box_qp(np.outer(y, y) * K, model.C)
        optimum = best.sum() - 0.5 * (best * y) @ K @ (best * y)
        assert told or model.objective_ <= optimum + model.C * 60 * model.tol


@needs_jit
@pytest.mark.parametrize("solver", [Nystrom, ICF])
def test_multiples_of_a_row_are_dropped_whatever_their_length(solver):
    X = np.array([[1.0, 2.0], [1e4, 2e4], [1e-3, 2e-3], [2.0, -1.0]])
    model = solver(n_basis=4, kernel="linear").fit(X, [1, 1, -1, -1])
    assert model.counters_["dropped_pivots"] == 2
