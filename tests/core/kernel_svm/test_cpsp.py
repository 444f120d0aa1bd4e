"""CPSP: its cutting-plane step against a naive transcription, and the exact machine's optimum."""

import numpy as np
import pytest
import scipy.sparse as sp
import small_problems
from kernel_oracles import box_qp
from numpy.testing import assert_allclose
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import minmax_scale
from small_problems import needs_jit

from svmbench.core.kernel_svm import basis, cpsp, preimage
from svmbench.core.kernel_svm.basis import Basis
from svmbench.core.kernel_svm.cpsp import CPSP, CPSPTr
from svmbench.core.kernel_svm.preimage import Residual, SampleValues, fixed_point, near_sums
from svmbench.core.kernels.kernels import KernelFunction
from svmbench.core.linear.cutting_plane import SVMPerf
from svmbench.core.numeric import qp

BOTH = pytest.mark.parametrize("solver", [CPSP, CPSPTr])
FORMS = pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
RBF = KernelFunction("rbf", gamma=0.7)


def make_problem(n, d=5):
    return small_problems.make_problem(n=n, d=d, density=1.0)


def optimum(K, y, C):
    """Return the optimal value of the hinge problem without an offset."""
    alpha = box_qp(y[:, None] * K * y + 1e-12 * np.eye(len(y)), C)
    return alpha.sum() - 0.5 * (y * alpha) @ K @ (y * alpha)


@needs_jit
@BOTH
@FORMS
@pytest.mark.parametrize("C", [0.5, 5.0])
@pytest.mark.parametrize("eps", [1e-2, 1e-4])
def test_a_basis_of_any_size_ends_within_the_precision(solver, form, C, eps):
    X, y = make_problem(n=80)
    model = solver(C=C, gamma=0.7, n_basis=80, tol=eps).fit(form(X), y)
    best = optimum(RBF.between(X, X), y, C)
    assert model.stop_reason_ == "converged"
    assert -1e-6 * best <= model.objective_ - best <= 80 * C * eps
    assert model.counters_["basis_vectors"] == len(model.dual_coef_[0])


@needs_jit
@pytest.mark.parametrize("eps", [1e-3, 1e-4])
def test_a_basis_that_does_not_fill_up_ends_at_the_exact_machine_s_optimum(eps):
    X, labels = load_breast_cancer(return_X_y=True)
    X, y = minmax_scale(X), 2.0 * labels - 1.0
    model = CPSP(C=1.0, gamma=0.5, n_basis=len(y) - 1, tol=eps).fit(X, y)
    best = optimum(KernelFunction("rbf", 0.5).between(X, X), y, 1.0)
    assert model.stop_reason_ == "converged"
    assert model.counters_["basis_vectors"] < len(y) - 1
    assert 0.0 <= model.objective_ - best <= len(y) * eps


@needs_jit
@BOTH
def test_as_many_points_as_samples_make_the_whole_problem_s_optimum(solver):
    """Noisy binary features, of which as many free points as there are samples span too little."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 4, size=(120, 20))
    X = np.hstack([codes == value for value in range(3)]).astype(float)
    y = np.where(X @ rng.normal(size=60) + 3.0 * rng.normal(size=120) > 0.0, 1.0, -1.0)
    K = KernelFunction("rbf", 0.1).between(X, X)
    best = optimum(K, y, 10.0)
    model = solver(C=10.0, gamma=0.1, n_basis=120, tol=1e-4).fit(X, y)
    assert model.stop_reason_ == "converged"
    assert 0.0 <= model.objective_ - best <= 120 * 10.0 * 1e-4
    fewer = solver(C=10.0, gamma=0.1, n_basis=60, tol=1e-4).fit(X, y)
    assert fewer.stop_reason_ == "basis full"
    assert fewer.objective_ > 1.1 * best


@needs_jit
@BOTH
def test_a_program_that_does_not_end_is_left(solver):
    X, y = make_problem(n=40, d=3)
    y = np.roll(y, 7)
    with pytest.warns(ConvergenceWarning, match="stopped at max_iter=4"):
        model = solver(C=1e8, kernel="linear", n_basis=20, tol=1e-9, max_iter=4).fit(X, y)
    assert model.counters_["qp_steps"] <= 4 * qp.STEPS_A_CUT
    assert np.all(np.isfinite(model.decision_function(X)))


@needs_jit
@FORMS
def test_single_precision_ends_there_too(form, monkeypatch):
    monkeypatch.setattr(basis, "FLOAT64_MAX_BASIS_VALUES", 0)
    X, y = make_problem(n=80)
    model = CPSP(C=1.0, gamma=0.7, n_basis=79, tol=1e-3).fit(form(X), y)
    best = optimum(RBF.between(X, X), y, 1.0)
    assert -1e-6 * best <= model.objective_ - best <= 80 * 1e-3 * 1.01


@FORMS
@pytest.mark.parametrize("n_cuts", [1, 3, 8, 15])
def test_linear_with_a_point_a_cut_is_svm_perf(form, n_cuts, monkeypatch):
    # QPs that are solved far enough have one solution, whatever the order of the sums.
    monkeypatch.setattr(qp, "QP_GAP_SHARE", 1e-7)
    X, y = small_problems.make_problem(n=60, d=20)
    theirs = SVMPerf(C=0.5, tol=1e-4, max_iter=n_cuts, fit_intercept=False)
    ours = CPSP(C=0.5, tol=1e-4, max_iter=n_cuts, kernel="linear", n_basis=60)
    with pytest.warns(match="cpsp stopped at max_iter"):
        ours.fit(form(X), y)
    theirs.fit(X, y)
    assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-4)
    assert ours.objective_ == pytest.approx(theirs.objective_, rel=1e-4)
    assert ours.n_iter_ == theirs.n_iter_ == n_cuts


def transcribed(X, y, C, rows, n_cuts):
    """Follow Algorithm 3 with given basis samples: projections by least squares, QPs by a solver.

    Each new cut is projected, and every older one again, on the basis that has just grown.
    """
    K, N = RBF.between(X, X), len(y)
    cuts, f = [np.zeros(N)], np.zeros(N)
    for k in range(1, n_cuts + 1):
        cuts.append((y * f < 1.0).astype(float))
        B = rows[:k]
        # beta = 1/N G^-1 K (c o y), and the Gram matrix of the projections.
        beta = [np.linalg.solve(K[np.ix_(B, B)], K[B] @ (c * y)) / N for c in cuts]
        H = np.array([[p @ K[np.ix_(B, B)] @ q for q in beta] for p in beta])
        Delta = np.array([c.mean() for c in cuts])
        alpha = np.full(len(cuts), N * C / len(cuts))
        qp.simplex_qp(H, Delta, N * C, alpha, 1e-12, 1_000_000)
        f = K[:, B] @ sum(a * b for a, b in zip(alpha, beta, strict=True))
    return f


@needs_jit
@pytest.mark.parametrize("n_cuts", [1, 2, 4, 7, 11])
def test_cuts_are_those_of_the_printed_algorithm(n_cuts, monkeypatch):
    monkeypatch.setattr(qp, "QP_GAP_SHARE", 1e-10)
    X, y = make_problem(n=50)
    model = CPSPTr(C=1.0, gamma=0.7, n_basis=50, tol=1e-9, max_iter=n_cuts)
    with pytest.warns(match="cpsp-tr stopped at max_iter"):
        model.fit(X, y)
    assert len(model.basis_) == n_cuts
    f = transcribed(X, y, 1.0, model.basis_, n_cuts)
    assert_allclose(model.decision_function(X), f, atol=1e-5)


@FORMS
@pytest.mark.parametrize("of_ones", [True, False])
@pytest.mark.parametrize("n_points", [1, 2, 4, 6])
def test_pulls_and_values_are_the_sums_that_they_are_called(form, of_ones, n_points):
    n = preimage.NEAR_PIECE + 100
    X, _ = small_problems.make_problem(n=n, d=40, density=0.1)
    X = (X != 0.0).astype(float) if of_ones else X
    rng = np.random.default_rng(0)
    rows, weights = np.arange(5, n - 10), rng.normal(size=n - 15)
    near = near_sums(form(X), 0.7)
    chosen = [3, 9, 21, 40, 58, 66][:n_points]
    Z = np.stack([near.point(i) for i in chosen])
    pull, height = near.select(rows, weights).sums(Z)
    points = near.to_points(Z)
    K = RBF.between(points, X[rows]) * weights
    assert_allclose(points, X[chosen], atol=1e-6)
    assert_allclose(height, K.sum(axis=1), atol=1e-5)
    assert_allclose(pull, K @ (X[rows] - near.to_points(0.0)), atol=1e-4)
    column = np.empty(n, dtype=np.float32)
    near.column(Z[0], column)
    assert_allclose(column, RBF.between(points[:1], X)[0], atol=1e-6)


def residual_of(X, weights, points, near):
    """Return a residual after projection on points, and its function of z."""
    K = RBF.between(points, points)
    coefficients = np.linalg.solve(K, RBF.between(points, X) @ weights)
    found = Residual(np.arange(len(X)), weights, coefficients, points, points - near.to_points(0.0))

    def value(z):
        one = z[np.newaxis]
        return (RBF.between(one, X) @ weights - RBF.between(one, points) @ coefficients)[0] ** 2

    return found, value


def test_a_pre_image_is_a_fixed_point_and_better_than_its_starts():
    X, y = make_problem(n=60)
    near = near_sums(X, 0.7)
    residual, value = residual_of(X, y / 60.0, X[[1, 2, 3]] + 0.05, near)
    drawn = np.array([4, 8, 15, 16])
    near_z, reached, n_sums, fell_back = fixed_point(near, residual, 0.7, drawn)
    z = near.to_points(near_z)
    assert not fell_back
    assert reached == pytest.approx(value(z), rel=1e-3)
    assert reached > max(value(X[i]) for i in drawn)
    # At a maximum the gradient vanishes: nothing near is better.
    for step in np.vstack([np.eye(5), -np.eye(5)]) * 0.05:
        assert value(z + step) <= value(z) * 1.002
    assert n_sums <= 4 * preimage.COMMON_ITERATIONS + preimage.MAX_ITERATIONS


def test_a_search_that_leads_nowhere_falls_back_to_the_best_start():
    X, _ = make_problem(n=40)
    near = near_sums(X, 0.7)
    # Nothing is left: every divisor is rounding.
    nothing, _ = residual_of(X, np.zeros(40), X[:2] + 0.05, near)
    z, value, _, fell_back = fixed_point(near, nothing, 0.7, np.array([3, 7]))
    assert fell_back
    assert value == 0.0
    assert_allclose(near.to_points(z), X[3], atol=1e-6)


def test_the_best_of_the_draws_is_the_largest_reduction():
    X, y = make_problem(n=40)
    residual, value = residual_of(X, y / 40.0, X[[1, 2]], near_sums(X, 0.7))
    rng, again = np.random.RandomState(5), np.random.RandomState(5)
    best = SampleValues(X, RBF, single=False).best(residual, rng)
    drawn = again.randint(40, size=59)
    assert best == max(drawn, key=lambda i: value(X[i]))


@needs_jit
def test_a_residual_s_length_is_exact_on_few_samples_and_unbiased_on_draws(monkeypatch):
    X, y = make_problem(n=60)
    residual, _ = residual_of(X, y / 60.0, X[[1, 2]], near_sums(X, 0.7))
    w, c = residual.weights, residual.coefficients
    P = X[[1, 2]]
    square = w @ RBF.between(X, X) @ w - c @ RBF.between(P, P) @ c
    inputs, rng = SampleValues(X, RBF, single=False), np.random.RandomState(0)
    assert preimage.probe(inputs, residual, 60, rng).square == pytest.approx(square)
    draws = [preimage.probe(inputs, residual, 20, rng) for _ in range(400)]
    values = np.array([draw.square for draw in draws])
    assert abs(values.mean() - square) < 4.0 * values.std() / 20.0
    assert np.mean([draw.error for draw in draws]) == pytest.approx(values.std(), rel=0.2)


def test_coordinates_grow_by_one_and_stay_the_projections(monkeypatch):
    X, y = make_problem(n=30)
    made = Basis(X, RBF, None, 6)
    cuts = np.array([[1] * 30, [0, 1] * 15], dtype=np.uint8)
    P = np.zeros((2, 0))
    for i in range(6):
        before = P
        assert made.add(X[3 * i] + 0.1, None, 0.0)
        P = np.column_stack([P, made.last_coordinates(y.astype(float), cuts, P)])
        assert np.array_equal(P[:, :i], before)
        G, K = RBF.between(made.points, made.points), RBF.between(made.points, X)
        beta = np.linalg.solve(G, K @ (cuts * y).T).T / 30
        assert_allclose(P @ P.T, beta @ G @ beta.T, atol=1e-10)
        assert_allclose(made.coefficients(P[1]), beta[1], atol=1e-8)
    assert made.is_full
    assert not made.add(X[3] + 0.1, None, 0.0)
    assert made.refused == 1


@needs_jit
def test_free_points_do_better_than_samples_on_a_small_basis():
    X, y = make_problem(n=200, d=8)
    values = {}
    for solver in (CPSP, CPSPTr):
        models = [solver(gamma=0.5, n_basis=8, random_state=s).fit(X, y) for s in range(5)]
        assert all(model.counters_["basis_vectors"] == 8 for model in models)
        values[solver] = np.mean([model.objective_ for model in models])
    assert values[CPSP] < values[CPSPTr]


@BOTH
def test_the_objective_is_the_exact_problem_s(solver):
    X, y = make_problem(n=60)
    model = solver(C=2.0, gamma=0.7, n_basis=10).fit(X, y)
    Z, c = model.support_vectors_, model.dual_coef_[0]
    losses = np.maximum(0.0, 1.0 - y * (RBF.between(X, Z) @ c))
    assert model.objective_ == pytest.approx(0.5 * c @ RBF.between(Z, Z) @ c + 2.0 * losses.sum())
    assert model.intercept_ == 0.0


@BOTH
def test_samples_that_come_twice_need_no_second_point(solver):
    X, y = make_problem(n=15)
    X, y = np.vstack([X] * 3), np.concatenate([y] * 3)
    model = solver(C=5.0, gamma=5.0, n_basis=45, tol=1e-3).fit(X, y)
    assert np.all(np.isfinite(model.decision_function(X)))
    if solver is CPSPTr:
        assert model.counters_["basis_vectors"] <= 15
    best = optimum(KernelFunction("rbf", 5.0).between(X, X) + 1e-9 * np.eye(45), y, 5.0)
    assert model.objective_ - best <= 45 * 5.0 * 1e-3 * 1.01


@BOTH
def test_without_a_violator_the_program_is_solved_better(solver):
    X, y = load_iris(return_X_y=True)
    model = solver(C=10.0, n_basis=5).fit(X[y != 1], y[y != 1])
    assert model.stop_reason_ == "basis full"
    assert model.score(X[y != 1], y[y != 1]) == 1.0


@BOTH
def test_a_basis_larger_than_the_samples_is_said_and_cut(solver):
    X, y = make_problem(n=30)
    with pytest.warns(UserWarning, match="n_basis=31 is more .*: all 30 are used"):
        model = solver(n_basis=31).fit(X, y)
    assert model.counters_["basis_vectors"] <= 30


@BOTH
@FORMS
@pytest.mark.parametrize("gamma", [1e-300, 1e-12, 1e12, 1e300])
def test_flat_and_steep_kernels_end_in_a_model(solver, form, gamma):
    X, y = make_problem(n=30)
    model = solver(n_basis=12, gamma=gamma, max_iter=40)
    model.fit(form(X), y)
    assert np.all(np.isfinite(model.decision_function(X)))
    assert 1 <= model.counters_["basis_vectors"] <= 12


@BOTH
def test_what_can_not_be_asked_is_one_sentence(solver):
    X, y = make_problem(n=20)
    for wrong, sentence in (
        ({"tol": 0.0}, "tol must be a positive finite number"),
        ({"n_basis": 0}, "n_basis must be an integer of at least 1"),
        ({"kernel": "poly"}, "takes the kernels linear and rbf; got kernel='poly'"),
    ):
        with pytest.raises(ValueError, match=sentence):
            solver(**wrong).fit(X, y)


def test_cuts_without_weight_are_dropped_with_their_members(monkeypatch):
    monkeypatch.setattr(qp, "MAX_QPS_WITHOUT_WEIGHT", 1)
    X, y = make_problem(n=60)
    model = CPSP(C=0.5, gamma=0.7, n_basis=60, tol=1e-3).fit(X, y)
    assert 0 < model.counters_["dropped"] < model.counters_["cuts"]
    best = optimum(RBF.between(X, X), y, 0.5)
    assert model.objective_ - best <= 60 * 0.5 * 1e-3


@needs_jit
def test_a_basis_that_no_point_can_join_is_complete_and_ends_the_search(monkeypatch):
    grow, refused = cpsp.grow, []

    def refuse_once_the_gap_is_small(growth, cuts, left, measured=None):
        if measured is None:
            return grow(growth, cuts, left)
        refused.append(len(growth.basis.points))
        return False

    monkeypatch.setattr(cpsp, "grow", refuse_once_the_gap_is_small)
    X, labels = load_breast_cancer(return_X_y=True)
    X, y = minmax_scale(X), 2.0 * labels - 1.0
    model = CPSP(C=1.0, gamma=0.5, n_basis=len(y) - 1, tol=1e-4).fit(X, y)
    assert len(refused) == 1
    assert model.stop_reason_ == "converged"
    # A cut that is needed afterwards still adds its own point, under some arithmetics.
    assert refused[0] <= model.counters_["basis_vectors"] < len(y) - 1


def test_the_header_declares_how_cuts_are_dropped_and_points_drawn():
    text = " ".join(cpsp.__doc__.split())
    assert f"no weight in {qp.MAX_QPS_WITHOUT_WEIGHT} QPs in a row" in text
    assert "the authors' program drops it after 5" in text
    assert f"the best of {preimage.BEST_OF_DRAWS} samples of the cut's violators" in text
    assert f"or on {preimage.CERTAIN_DRAWS}, drawn" in text


@needs_jit
@pytest.mark.parametrize("solver", [CPSP, CPSPTr])
def test_a_full_basis_far_from_the_optimum_of_its_span_is_said(solver):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=60) > 0.0, 1, -1)
    with pytest.warns(ConvergenceWarning, match="far from the optimum"):
        model = solver(C=88_435.0, n_basis=5).fit(X + y[:, None], y)
    assert model.stop_reason_ == "basis full"
    gap = model.objective_ - model.dual_objective_
    assert 20.0 * model.dual_objective_ < gap <= model.C * 60 * model.tol * (1.0 + 1e-9)


def test_a_basis_takes_values_in_single_precision_for_points_in_its_coordinates(monkeypatch):
    monkeypatch.setattr(basis, "FLOAT64_MAX_BASIS_VALUES", 0)
    X = np.random.default_rng(5).normal(size=(7, 2))

    class Near:
        def column(self, z, out):
            out[:] = z[0]

    made = basis.Basis(X, RBF, Near(), 3)
    assert made.add(X[0], np.array([0.25]), 1.0)
    assert made.add(X[1], None, 1.0)
    assert_allclose(made.values[:, 0], 0.25)
    assert_allclose(made.values[:, 1], RBF.between(X[1:2], X)[0], rtol=1e-6)
