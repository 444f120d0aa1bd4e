"""The solvers that optimise a part of the variables at a time: one optimum, LIBSVM's."""

import numpy as np
import pytest
import scipy.sparse as sp
from kernel_oracles import assert_same_as_libsvm, residual, violation
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning
from small_problems import make_problem, needs_jit

from svmbench.base.errors import BudgetError, SvmbenchError
from svmbench.core.contract.declaration import KERNELS
from svmbench.core.kernel_svm import decomposition, projected_gradient
from svmbench.core.kernel_svm.decomposition import Chunking, Osuna, SVMLight
from svmbench.core.kernel_svm.working_set import Variables
from svmbench.core.kernels.kernels import KernelFunction, KernelSource

#: Working sets far smaller than the problems below, so that there are many of them.
SOLVERS = [
    (SVMLight, {}),
    (SVMLight, {"q": 2}),
    (Osuna, {"q": 20}),
    (Chunking, {"M": 20}),
    (Chunking, {"M": 20, "storage": "dense"}),
]
IDS = ["svm-light", "svm-light-2", "osuna", "chunking", "chunking-dense"]
every_solver = pytest.mark.parametrize(("solver", "options"), SOLVERS, ids=IDS)


@needs_jit
@every_solver
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("C", [0.05, 1.0, 20.0])
def test_same_optimum_as_libsvm(solver, options, kernel, C):
    X, y = make_problem(n=120, d=6)
    parameters = {"C": C, "kernel": kernel, "gamma": 0.7, "coef0": 1.0}
    model = solver(tol=1e-6, **options, **parameters).fit(sp.csr_array(X), y)
    assert_same_as_libsvm([model], X, y, **parameters)
    assert violation(model, X, y) <= 1e-6 + 1e-9 * C
    assert model.objective_ == pytest.approx(model.dual_objective_, rel=1e-4)


@needs_jit
@every_solver
def test_matrix_or_inputs_and_a_warm_start(solver, options):
    X, y = make_problem(n=80, d=5)
    y = y.astype(float)
    function = KernelFunction("rbf", 0.7)
    model = solver(C=2.0, tol=1e-5, **options)
    inputs = model.solve(KernelSource.from_inputs(X, function), y)
    matrix = model.solve(KernelSource.precomputed(function.between(X, X)), y)
    assert_allclose(matrix.alpha, inputs.alpha, atol=1e-3)
    assert matrix.b == pytest.approx(inputs.b, abs=2e-5)
    again = model.solve(KernelSource.from_inputs(X, function), y, start=inputs.alpha)
    assert again.n_iter == 0
    assert_allclose(again.alpha, inputs.alpha)


@needs_jit
def test_svm_light_leaves_out_samples_and_checks_them():
    X, y = make_problem(n=300, d=4, noise=1.0)
    model = SVMLight(C=10.0, gamma=1.0, q=2, tol=1e-4).fit(X, y)
    assert model.n_iter_ > 200
    assert residual(model, X, y) <= 2.1e-4
    # Had nobody been left out, each row that was asked for would have all columns.
    assert model.counters_["kernel_evaluations"] % 300 != 0


@pytest.mark.mirror
@needs_jit
@pytest.mark.parametrize("solver", [SVMLight, Osuna, Chunking])
def test_reference_bed(solver, mirrored):
    X, y = mirrored("a9a")
    X, y = X[:1605], y[:1605]
    model = solver(gamma=0.05, C=1.0, tol=1e-5).fit(X, y)
    assert model.dual_objective_ == pytest.approx(584.787722, abs=1e-5)
    # Pairs of near twins may share one multiplier or not.
    assert abs(len(model.support_) - 706) <= 2
    assert abs(model.counters_["bounded_support_vectors"] - 597) <= 2
    assert violation(model, X, y) <= 1.01e-5


@every_solver
def test_two_points_on_paper(solver, options):
    model = solver(C=10.0, kernel="linear", **options).fit([[1.0], [3.0]], [0, 1])
    assert_allclose(model.dual_coef_, [[-0.5, 0.5]])
    assert_allclose(model.intercept_, [-2.0])


@every_solver
def test_identical_samples_with_opposite_labels(solver, options):
    X, y = np.array([[1.0], [1.0], [0.0], [2.0]]), np.array([1, -1, -1, 1])
    model = solver(C=1.0, kernel="linear", **options).fit(X, y)
    assert residual(model, X, y) <= 2e-3
    assert model.objective_ >= 2.0 - 1e-3


@every_solver
@pytest.mark.parametrize("kernel", KERNELS)
def test_all_zero_features(solver, options, kernel):
    y = np.array([1, 1, -1])
    model = solver(C=2.0, kernel=kernel, gamma=1.0, **options).fit(np.zeros((3, 2)), y)
    assert model.objective_ == pytest.approx(4.0)
    assert model.predict([[0.0, 0.0]])[0] == 1


@needs_jit
@every_solver
@pytest.mark.parametrize("gamma", [1e-12, 1e6])
def test_flat_and_spiked_kernels(solver, options, gamma):
    X, y = make_problem(n=30, d=3)
    X += 0.01 * np.arange(30)[:, None]
    y[:10] = 1
    few = min(np.sum(y > 0), np.sum(y < 0))
    model = solver(gamma=gamma, tol=1e-5, **options).fit(X, y)
    assert residual(model, X, y) <= 2.1e-5
    # K = I: alpha is min(C, 1 -+ b), and y'alpha = 0 settles b; K = 1: the smaller class errs.
    spiked = 2 * few - 0.5 * (few + few**2 / (30 - few))
    assert model.dual_objective_ == pytest.approx(spiked if gamma > 1 else 2 * few, rel=1e-4)


@needs_jit
@every_solver
@pytest.mark.parametrize("C", [1e-6, 1e8])
def test_extreme_C(solver, options, C):
    X, y = make_problem(n=40, d=4)
    model = solver(C=C, gamma=5.0, tol=1e-4, **options).fit(X, y)
    assert model.stop_reason_ == "converged"
    assert residual(model, X, y) <= 2.1e-4


@needs_jit
@every_solver
def test_one_sample_of_a_class_and_an_indefinite_kernel(solver, options):
    X, y = make_problem(n=40, d=4)
    alone = np.where(np.arange(40) == 7, 1, -1)
    model = solver(C=10.0, gamma=1.0, **options).fit(X, alone)
    assert residual(model, X, alone) <= 2.1e-3
    model = solver(kernel="sigmoid", gamma=2.0, coef0=-1.0, **options).fit(X, y)
    assert residual(model, X, y) <= 2.1e-3 or model.stop_reason_ != "converged"
    assert np.all(np.isfinite(model.decision_function(X)))


@every_solver
def test_max_iter_is_said(solver, options):
    X, y = make_problem(n=60, d=4)
    name = solver.declaration.name
    with pytest.warns(ConvergenceWarning, match=f"{name} stopped at max_iter=1 before"):
        model = solver(C=10.0, max_iter=1, tol=1e-5, **options).fit(X, y)
    assert model.stop_reason_ == "max_iter"


@needs_jit
@every_solver
def test_permuted_samples(solver, options):
    X, y = make_problem(n=60, d=5)
    order = np.random.default_rng(0).permutation(60)
    there = solver(tol=1e-6, **options).fit(X, y)
    back = solver(tol=1e-6, **options).fit(X[order], y[order])
    assert_allclose(back.decision_function(X), there.decision_function(X), atol=1e-4)


def test_svm_light_says_what_its_rows_need():
    X, y = make_problem(n=60, d=5)
    with pytest.raises(SvmbenchError, match="holds 2 kernel rows of 60 samples; 10 are needed"):
        SVMLight(cache_mb=0.001).fit(X, y)


def test_osuna_says_what_its_matrix_needs():
    X, y = make_problem(n=60, d=5)
    with pytest.raises(BudgetError, match=r"its 50 working examples, 0\.0191 MiB, but may use"):
        Osuna(q=50, cache_mb=0.01).fit(X, y)


def test_osuna_exchanges_as_many_as_enter(monkeypatch):
    X, y = make_problem(n=60, d=5)
    sizes = []
    solve_inner = decomposition.solve_inner

    def watched(K, part, tol):
        sizes.append((K.shape, len(part.beta)))
        return solve_inner(K, part, tol)

    monkeypatch.setattr(decomposition, "solve_inner", watched)
    Osuna(q=10, gamma=1.0).fit(X, y)
    assert len(sizes) > 2
    assert set(sizes) == {((10, 10), 10)}


def test_chunking_refuses_before_it_allocates(monkeypatch):
    X, y = make_problem(n=60, d=5)
    # 50 x 50 values fit, and the third chunk is larger.
    budget = 50 * 50 * 8 / 2**20
    allocated = []
    empty = np.empty

    def watched(shape, *rest, **options):
        allocated.append(shape)
        return empty(shape, *rest, **options)

    monkeypatch.setattr(np, "empty", watched)
    with pytest.raises(BudgetError, match=r"values of \d+ active examples now, 1 MiB, but may"):
        Chunking(C=0.01, M=20, cache_mb=budget).fit(X, y)
    squares = [shape for shape in allocated if isinstance(shape, tuple) and len(shape) == 2]
    assert max(shape[0] for shape in squares if shape[0] == shape[1]) == 50
    with pytest.raises(BudgetError, match="values of 20 active examples now"):
        Chunking(M=20, cache_mb=0.001).fit(X, y)


@needs_jit
def test_chunking_starts_with_both_classes_and_keeps_its_support_vectors():
    X, y = make_problem(n=200, d=6)
    model = Chunking(C=1.0, gamma=0.7, M=30, tol=1e-5).fit(X[np.argsort(y)], np.sort(y))
    counters = model.counters_
    assert counters["support_vectors"] <= counters["largest_chunk"]
    assert counters["largest_chunk"] <= counters["support_vectors"] + 60
    assert model.n_iter_ >= counters["support_vectors"] // 30


@needs_jit
@pytest.mark.parametrize("threshold", [1e-3, 1e-7, 1e-14])
def test_conjugate_gradient_stops_at_its_threshold(threshold):
    X, labels = make_problem(n=100, d=30)
    y = labels.astype(float)
    K = KernelFunction("rbf", 0.3).between(X, X)
    best = SVMLight(C=1.0, gamma=0.3, tol=1e-8).fit(X, labels).dual_objective_
    state = Variables.at_zero(y, 1.0)
    projected_gradient.maximise(
        K, y, state.beta, state.v, state.low, state.high, threshold, 1e-9, 10_000
    )
    assert_allclose(state.v, y - K @ state.beta, atol=1e-10)
    assert abs(state.beta.sum()) < 1e-10
    assert np.all((state.beta >= state.low) & (state.beta <= state.high))
    lost = 1.0 - 0.5 * state.beta @ (y + state.v) / best
    assert -1e-12 < lost < 30 * threshold + 1e-12


def test_close_up_keeps_rows_and_columns():
    K = np.arange(36.0).reshape(6, 6)
    keep = np.array([1, 2, 5])
    expected = K[np.ix_(keep, keep)]
    decomposition.close_up(K, keep)
    assert np.array_equal(K[:3, :3], expected)


@pytest.mark.parametrize(
    ("solver", "parameters", "message"),
    [
        (SVMLight, {"q": 1}, "q must be at least 2"),
        (SVMLight, {"q": 2.5}, "q must be an integer"),
        (SVMLight, {"cache_mb": -1}, "cache_mb must be a number"),
        (Osuna, {"q": 1}, "q must be at least 2"),
        (Chunking, {"M": 1}, "M must be at least 2"),
        (Chunking, {"storage": "csr"}, "storage must be 'sparse' or 'dense'"),
    ],
)
def test_parameters_out_of_range(solver, parameters, message):
    with pytest.raises(ValueError, match=message):
        solver(**parameters).fit(np.eye(2), [0, 1])
