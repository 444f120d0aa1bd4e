"""NL-SGD and kernel Pegasos against a naive run of the printed algorithm, and what they cost."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from sklearn.datasets import load_wine
from small_problems import make_problem, needs_jit, solutions

from svmbench.core.kernel_svm import nl_sgd
from svmbench.core.kernel_svm.nl_sgd import NLSGD, KernelPegasos
from svmbench.core.kernels.kernels import KernelFunction, KernelSource
from svmbench.core.numeric.random import generator

SOLVERS = [NLSGD, KernelPegasos]


def order_of(model, n):
    """Return the sample of each step, as the model draws them."""
    random = generator(model.random_state)
    if isinstance(model, NLSGD):
        return np.tile(random.permutation(n), model.epochs)
    return (random.random(model.epochs * n) * n).astype(int)


def naive(model, K, y):
    """Run the algorithm as it is printed, keeping every alpha^(t); return the mean of the last."""
    n, lam = len(y), 1.0 / model.C
    beta, history = np.zeros(n), []
    for t, i in enumerate(order_of(model, n), start=1):
        if y[i] * (beta / (lam * t)) @ K[:, i] < 1.0:
            beta[i] += y[i]
        history.append(beta / (lam * t))
    kept = max(1, round(model.average * len(history)))
    return np.mean(history[-kept:], axis=0)


def full(model, n):
    values = np.zeros(n)
    values[model.support_] = model.dual_coef_[0]
    return values


def without_small_matrices(monkeypatch):
    """Make the solvers compute rows on demand, in several blocks."""
    monkeypatch.setattr(nl_sgd, "WHOLE_MATRIX_MAX_SAMPLES", 0)
    monkeypatch.setattr(nl_sgd, "BLOCK_STEPS", 16)


@pytest.mark.parametrize("cls", SOLVERS)
@pytest.mark.parametrize("average", [0.0, 0.25, 0.5, 1.0])
@pytest.mark.parametrize("epochs", [1, 3])
@pytest.mark.parametrize("on_demand", [False, True])
def test_equals_the_naive_mean_of_all_iterates(cls, average, epochs, on_demand, monkeypatch):
    if on_demand:
        without_small_matrices(monkeypatch)
    X, y = make_problem(n=41, d=4)
    K = KernelFunction("rbf", 3.0).between(X, X)
    for C in (0.25, 60.0):
        model = cls(C=C, gamma=3.0, epochs=epochs, average=average, random_state=3).fit(X, y)
        expected = naive(model, K, y)
        assert_allclose(full(model, 41), expected, rtol=0, atol=1e-12 * np.abs(expected).max())
        assert model.counters_["updates"] >= np.count_nonzero(expected)
        assert (model.counters_["updates"] < model.n_iter_) == (C > 1.0)


@pytest.mark.parametrize("average", [0.0, 0.25, 0.5])
def test_the_printed_mean_lacks_the_update_of_each_averaged_step(average):
    X, y = make_problem(n=41, d=4)
    K = KernelFunction("rbf", 3.0).between(X, X)
    model = NLSGD(C=60.0, gamma=3.0, epochs=3, average=average, random_state=3).fit(X, y)
    n, lam = len(y), 1.0 / model.C
    beta, printed, updates = np.zeros(n), [], []
    for t, i in enumerate(order_of(model, n), start=1):
        printed.append(beta / (lam * t))
        updates.append(np.zeros(n))
        if y[i] * printed[-1] @ K[:, i] < 1.0:
            beta[i] += y[i]
            updates[-1][i] = y[i] / (lam * t)
    m = max(1, round(average * len(printed)))
    lacks = np.mean(updates[-m:], axis=0)
    assert_allclose(np.mean(printed[-m:], axis=0) + lacks, full(model, n), atol=1e-12)
    # With average = 0, only an update at the very last step makes a difference.
    assert np.any(lacks) or average == 0.0


@pytest.mark.parametrize("cls", SOLVERS)
@pytest.mark.parametrize("kernel", ["linear", "poly", "sigmoid"])
def test_other_kernels(cls, kernel):
    X, y = make_problem(n=40, d=4)
    model = cls(C=50.0, kernel=kernel, gamma=0.5, coef0=0.5, epochs=2).fit(X, y)
    K = KernelFunction(kernel, 0.5, 3, 0.5).between(X, X)
    expected = naive(model, K, y)
    assert_allclose(full(model, 40), expected, atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize("cls", SOLVERS)
@pytest.mark.parametrize("on_demand", [False, True])
def test_path_is_each_C_alone(cls, on_demand, monkeypatch):
    if on_demand:
        without_small_matrices(monkeypatch)
    X, y = make_problem(n=60, d=4)
    y = y.astype(np.float64)
    C = [0.25, 1.0, 16.0, 256.0]
    source = KernelSource.from_inputs(X, KernelFunction("rbf", 2.0))
    path = solutions(cls(gamma=2.0).path(source, y, "C", C))
    for value, solution in zip(C, path, strict=True):
        alone = cls(C=value, gamma=2.0).solve(source, y)
        assert_allclose(solution.alpha, alone.alpha, rtol=1e-9, atol=1e-12 * value)
        for counter in ("steps", "updates", "kernel_rows"):
            assert solution.counters[counter] == alone.counters[counter]


@pytest.mark.parametrize("cls", SOLVERS)
def test_whole_part_and_nothing_in_memory_is_the_same_model(cls, monkeypatch):
    X, y = make_problem(n=80, d=4)
    whole = cls(C=200.0, gamma=2.0, epochs=4).fit(X, y)
    without_small_matrices(monkeypatch)
    counts = []
    # Room for all rows, for 20 of them, for none.
    for cache_mb in (1.0, 20 * 80 * 8 / 2**20, 0.0):
        model = cls(C=200.0, gamma=2.0, epochs=4, cache_mb=cache_mb).fit(X, y)
        assert_allclose(full(model, 80), full(whole, 80), rtol=1e-10)
        counts.append(model.counters_["kernel_evaluations"])
    assert counts[0] < counts[1] < counts[2]


@pytest.mark.parametrize("cls", SOLVERS)
def test_stored_matrices_of_both_precisions(cls):
    X, y = make_problem(n=50, d=4)
    y = y.astype(np.float64)
    K = KernelFunction("rbf", 2.0).between(X, X)
    model = cls(C=10.0, gamma=2.0)
    reference = model.solve(KernelSource.from_inputs(X, KernelFunction("rbf", 2.0)), y)
    kept = np.arange(0, 50, 2)
    half = model.solve(KernelSource.from_inputs(X[kept], KernelFunction("rbf", 2.0)), y[kept])
    for precision, error in ((np.float64, 1e-12), (np.float32, 1e-6)):
        source = KernelSource.precomputed(K.astype(precision))
        assert_allclose(model.solve(source, y).alpha, reference.alpha, atol=error)
        part = model.solve(source.subset(kept), y[kept])
        assert_allclose(part.alpha, half.alpha, atol=error)


def test_every_step_updates_up_to_C_of_1():
    X, y = make_problem(n=50, d=4)
    for C in (2.0**-4, 1.0):
        model = NLSGD(C=C, gamma=0.1, epochs=3, average=0.0).fit(X, y)
        assert model.counters_["updates"] == model.n_iter_ == 150
        # A Parzen window: every sample weighs the same.
        assert_allclose(np.abs(model.dual_coef_[0]), C / 50, rtol=1e-12)


@needs_jit
def test_suboptimality_falls_with_the_steps():
    X, y = make_problem(seed=2, n=150, d=5, noise=0.05)
    C, gamma = 400.0, 2.0
    Q = KernelFunction("rbf", gamma).between(X, X) * np.outer(y, y)
    best = minimize(
        lambda a: (0.5 * a @ Q @ a - a.sum(), Q @ a - 1.0),
        np.zeros(150),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, C / 150)] * 150,
        options={"maxiter": 5000, "maxfun": 50000, "ftol": 1e-15, "gtol": 1e-10},
    )
    epochs = 2 ** np.arange(1, 10)
    excess = []
    for n_epochs in epochs:
        models = [
            NLSGD(C=C, gamma=gamma, epochs=int(n_epochs), random_state=seed).fit(X, y)
            for seed in range(5)
        ]
        excess.append(np.mean([model.objective_ + best.fun for model in models]))
        assert models[0].counters_["updates"] < 0.7 * models[0].n_iter_
    slope = np.polyfit(np.log(epochs), np.log(excess), 1)[0]
    assert min(excess) > 0.0
    assert slope <= -0.7


@pytest.mark.slow
@pytest.mark.mirror
@needs_jit
def test_five_epochs_touch_few_rows(mirrored):
    X, y = mirrored("ijcnn1")
    X, y = X[:10000].toarray(), y[:10000]
    model = NLSGD(C=1024.0, gamma=1.0, epochs=5).fit(X, y)
    assert model.counters_["kernel_rows"] <= 3000
    # With the blocks that tell which rows are needed, and the rows computed once each.
    assert model.counters_["kernel_evaluations"] <= 0.35 * 10000**2


@pytest.mark.parametrize("cls", SOLVERS)
def test_a_kernel_that_overflows_is_no_model(cls):
    X, y = load_wine(return_X_y=True)
    with (
        np.errstate(all="ignore"),
        pytest.raises(FloatingPointError, match="poly kernel overflows"),
    ):
        cls(kernel="poly", gamma=1e3, degree=60).fit(X, y == 0)


@pytest.mark.parametrize("cls", SOLVERS)
def test_inputs_that_say_nothing(cls):
    y = np.array([1, 1, -1])
    model = cls(C=10.0, gamma=1.0, epochs=4).fit(np.zeros((3, 2)), y)
    f = model.decision_function(np.zeros((1, 2)))
    assert_allclose(f, naive(model, np.ones((3, 3)), y).sum())
    # Twins with opposite labels outweigh each other.
    X, y = np.array([[1.0], [1.0], [0.0], [2.0]]), np.array([1, -1, -1, 1])
    model = cls(C=10.0, gamma=1.0, epochs=20).fit(X, y)
    assert list(model.predict([[-1.0], [3.0]])) == [-1, 1]


@needs_jit
@pytest.mark.parametrize("cls", SOLVERS)
@pytest.mark.parametrize("gamma", [1e-12, 1e6])
@pytest.mark.parametrize("C", [1e-8, 1e8])
def test_extremes(cls, gamma, C):
    X, y = make_problem(n=40, d=4)
    X += 0.01 * np.arange(40)[:, None]
    alone = np.where(np.arange(40) == 7, 1, -1)
    for labels in (y, alone):
        model = cls(gamma=gamma, C=C).fit(X, labels)
        expected = naive(model, KernelFunction("rbf", gamma).between(X, X), labels)
        assert_allclose(full(model, 40), expected, atol=1e-11 * np.abs(expected).max())


def test_objective_is_that_of_the_weights():
    X, y = make_problem(n=40, d=4)
    model = NLSGD(C=20.0, kernel="linear").fit(sp.csr_array(X), y)
    w = X.T @ full(model, 40)
    losses = np.maximum(0.0, 1.0 - y * (X @ w))
    assert model.objective_ == pytest.approx(0.5 * w @ w + 20.0 / 40 * losses.sum())
    assert model.intercept_[0] == 0.0


@pytest.mark.parametrize("cls", SOLVERS)
def test_multipliers_above_their_bound_have_no_dual_value(cls):
    """It would lie above the optimum, and pass for a lower bound."""
    X, y = make_problem(n=40, d=4)
    model = cls(C=100.0, gamma=1.0).fit(X, y)
    assert np.any(np.abs(full(model, 40)) > 100.0 / 40)
    assert model.dual_objective_ == -np.inf
    assert np.isfinite(model.objective_)


@pytest.mark.parametrize(
    ("parameter", "value", "message"),
    [
        ("epochs", 0, "epochs must be an integer of at least 1"),
        ("average", 1.5, "average must be a share"),
        ("average", "last", "average must be a share"),
        ("kernel", "rbff", "kernel must be one of linear, rbf"),
    ],
)
def test_parameters_out_of_range(parameter, value, message):
    with pytest.raises(ValueError, match=message):
        NLSGD(**{parameter: value}).fit(np.eye(2), [0, 1])
