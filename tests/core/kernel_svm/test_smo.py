"""Platt's SMO against LIBSVM, answers known on paper, and inputs that break a pair step.

The form whose threshold is zero is compared with a box-constrained QP.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from kernel_oracles import assert_same_as_libsvm, box_qp, multipliers, residual, violation
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning
from small_problems import assert_stops_when_interrupted, make_problem, needs_jit

from svmbench.core.contract.declaration import KERNELS
from svmbench.core.kernel_svm import smo
from svmbench.core.kernel_svm.smo import (
    FIRST_EPS,
    SMO,
    FixedThresholdSMO,
    at_zero,
    examine_example,
    first_search,
)
from svmbench.core.kernels.kernels import KernelFunction
from svmbench.core.kernels.storage import store


@needs_jit
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("C", [0.05, 1.0, 20.0])
@pytest.mark.parametrize("storage", ["sparse", "dense"])
def test_same_optimum_as_libsvm(kernel, C, storage):
    X, y = make_problem(n=120, d=6)
    parameters = {"C": C, "kernel": kernel, "gamma": 0.7, "coef0": 1.0}
    model = SMO(storage=storage, tol=1e-6, **parameters).fit(X, y)
    assert_same_as_libsvm([model], X, y, **parameters)
    assert model.objective_ == pytest.approx(model.dual_objective_, rel=1e-4)


@pytest.mark.mirror
@needs_jit
def test_reference_bed(mirrored):
    X, y = mirrored("a9a")
    X, y = X[:1605], y[:1605]
    model = SMO(gamma=0.05, C=1.0, tol=1e-5).fit(X, y)
    assert model.dual_objective_ == pytest.approx(584.787720, abs=1e-5)
    # A pair of near twins may share one multiplier or not.
    assert len(model.support_) in (706, 707)
    assert residual(model, X, y) <= 2.1e-5


def test_two_points_on_paper():
    # w = 2 / distance along the line, b in the middle; alpha = 2 / distance^2 for both.
    model = SMO(C=10.0, kernel="linear").fit([[1.0], [3.0]], [0, 1])
    assert_allclose(model.dual_coef_, [[-0.5, 0.5]])
    assert_allclose(model.intercept_, [-2.0])
    assert model.objective_ == pytest.approx(0.5)
    assert model.counters_["updates"] == 1


@needs_jit
@pytest.mark.parametrize("kernel", KERNELS)
def test_stored_matrix_dense_and_sparse_take_the_same_way(kernel):
    X, y = make_problem(n=60, d=5)
    models = [
        SMO(kernel=kernel, gamma=0.2, **options).fit(X, y)
        for options in ({"storage": "sparse"}, {"storage": "dense"}, {"cache_mb": 1.0})
    ]
    for model in models:
        assert model.objective_ == pytest.approx(models[0].objective_, rel=1e-3)
    if kernel != "linear":
        assert models[2].counters_["kernel_evaluations"] == 60 * 60


def test_identical_samples_with_opposite_labels():
    X, y = np.array([[1.0], [1.0], [0.0], [2.0]]), np.array([1, -1, -1, 1])
    model = SMO(C=1.0, kernel="linear").fit(X, y)
    assert residual(model, X, y) <= 2e-3
    # Nothing separates the twins: one of them, at least, pays for both.
    assert model.objective_ >= 2.0 - 1e-3


@pytest.mark.parametrize("kernel", KERNELS)
def test_all_zero_features(kernel):
    y = np.array([1, 1, -1])
    model = SMO(C=2.0, kernel=kernel, gamma=1.0).fit(np.zeros((3, 2)), y)
    assert model.objective_ == pytest.approx(4.0)
    assert model.predict([[0.0, 0.0]])[0] == 1


@needs_jit
@pytest.mark.parametrize("gamma", [1e-12, 1e6])
def test_flat_and_spiked_kernels(gamma):
    X, y = make_problem(n=30, d=3)
    X += 0.01 * np.arange(30)[:, None]
    y[:10] = 1
    model = SMO(gamma=gamma, tol=1e-5).fit(X, y)
    assert residual(model, X, y) <= 2.1e-5
    if gamma > 1.0:
        # K = I: alpha is min(C, 1 -+ b), and y'alpha = 0 settles b; the smaller class is at C.
        few = min(np.sum(y > 0), np.sum(y < 0))
        assert model.dual_objective_ == pytest.approx(
            2 * few - 0.5 * (few + few**2 / (30 - few)), rel=1e-4
        )
    else:
        assert model.objective_ == pytest.approx(2 * min(np.sum(y > 0), np.sum(y < 0)), rel=1e-4)


@needs_jit
@pytest.mark.parametrize("C", [1e-6, 1e8])
def test_extreme_C(C):
    X, y = make_problem(n=40, d=4)
    model = SMO(C=C, gamma=5.0, tol=1e-4).fit(X, y)
    assert model.stop_reason_ == "converged"
    assert residual(model, X, y) <= 2.1e-4


@needs_jit
def test_one_sample_of_a_class_and_an_indefinite_kernel():
    X, y = make_problem(n=40, d=4)
    alone = np.where(np.arange(40) == 7, 1, -1)
    model = SMO(C=10.0, gamma=1.0).fit(X, alone)
    assert residual(model, X, alone) <= 2.1e-3
    model = SMO(kernel="sigmoid", gamma=2.0, coef0=-1.0).fit(X, y)
    assert residual(model, X, y) <= 2.1e-3 or model.stop_reason_ != "converged"
    assert np.all(np.isfinite(model.decision_function(X)))


def test_max_iter_is_said():
    X, y = make_problem(n=60, d=4)
    with pytest.warns(ConvergenceWarning, match="smo stopped at max_iter=1 before"):
        model = SMO(C=10.0, max_iter=1, tol=1e-5).fit(X, y)
    assert model.stop_reason_ == "max_iter"


@needs_jit
def test_permuted_samples_and_sparse_input():
    X, y = make_problem(n=60, d=5)
    order = np.random.default_rng(0).permutation(60)
    there = SMO(tol=1e-6).fit(X, y)
    back = SMO(tol=1e-6).fit(sp.csr_array(X[order]), y[order])
    assert_allclose(back.decision_function(X), there.decision_function(X), atol=1e-4)


@pytest.mark.parametrize(
    ("parameter", "value", "message"),
    [
        ("kernel", "rbff", "kernel must be one of linear, rbf"),
        ("gamma", -1.0, "gamma must be a positive"),
        ("gamma", "wide", "gamma must be a positive number, 'scale' or 'auto'"),
        ("degree", 0, "degree must be an integer"),
        ("coef0", np.nan, "coef0 must be a finite"),
        ("cache_mb", -1, "cache_mb must be a number"),
        ("cache_mb", np.inf, "cache_mb must be a number of MiB, finite"),
        ("storage", "csr", "storage must be 'sparse' or 'dense'"),
    ],
)
def test_parameters_out_of_range(parameter, value, message):
    with pytest.raises(ValueError, match=message):
        SMO(**{parameter: value}).fit(np.eye(2), [0, 1])


class PrintedSMO:
    """The report's pseudo-code, line by line: a kernel matrix, no cache of errors, no compiling.

    The order in which candidates are tried is the list's, from starts of the same generator.
    """

    def __init__(self, K, y, C, tol, eps):
        self.K, self.y, self.C, self.tol, self.eps = K, y, C, tol, eps
        self.alpha, self.b = np.zeros(len(y)), 0.0
        self.non_bound, self.seed = [], 1
        self.taken = []

    def error(self, i):
        return (self.alpha * self.y) @ self.K[:, i] - self.b - self.y[i]

    def start(self, n):
        self.seed ^= (self.seed << 13) & 0xFFFFFFFF
        self.seed ^= self.seed >> 17
        self.seed ^= (self.seed << 5) & 0xFFFFFFFF
        return (self.seed * n) >> 32

    def put(self, i, value):
        self.alpha[i] = value
        inside = 0.0 < value < self.C
        if inside and i not in self.non_bound:
            self.non_bound.append(i)
        elif not inside and i in self.non_bound:
            place, last = self.non_bound.index(i), self.non_bound.pop()
            if last != i:
                self.non_bound[place] = last

    def take_step(self, i1, i2):
        if i1 == i2:
            return False
        a1, a2, y1, y2 = self.alpha[i1], self.alpha[i2], self.y[i1], self.y[i2]
        E1, E2 = self.error(i1), self.error(i2)
        if y1 != y2:
            L, H = max(0.0, a2 - a1), min(self.C, self.C + a2 - a1)
        else:
            L, H = max(0.0, a2 + a1 - self.C), min(self.C, a2 + a1)
        if L >= H:
            return False
        k11, k12, k22 = self.K[i1, i1], self.K[i1, i2], self.K[i2, i2]
        eta = k11 + k22 - 2.0 * k12
        assert eta > 0.0
        new2 = min(max(a2 + y2 * (E1 - E2) / eta, L), H)
        new2 = 0.0 if new2 < 1e-12 * self.C else self.C if new2 > (1 - 1e-12) * self.C else new2
        if abs(new2 - a2) < self.eps * (new2 + a2 + self.eps):
            return False
        new1 = a1 + y1 * y2 * (a2 - new2)
        new1 = 0.0 if new1 < 1e-12 * self.C else self.C if new1 > (1 - 1e-12) * self.C else new1
        b1 = E1 + y1 * (new1 - a1) * k11 + y2 * (new2 - a2) * k12 + self.b
        b2 = E2 + y1 * (new1 - a1) * k12 + y2 * (new2 - a2) * k22 + self.b
        if 0.0 < new1 < self.C:
            self.b = b1
        elif 0.0 < new2 < self.C:
            self.b = b2
        else:
            self.b = (b1 + b2) / 2.0
        kind = "b1" if 0.0 < new1 < self.C else "b2" if 0.0 < new2 < self.C else "middle"
        self.put(i1, new1)
        self.put(i2, new2)
        self.taken.append((i1, i2, kind))
        return True

    def examine_example(self, i2, among_equals):
        E2 = self.error(i2)
        r2 = E2 * self.y[i2]
        if not (
            (r2 < -self.tol and self.alpha[i2] < self.C) or (r2 > self.tol and self.alpha[i2] > 0.0)
        ):
            return False
        if self.non_bound:
            # A positive error wants the least of the others, a negative one the greatest.
            errors = [self.error(k) if E2 > 0.0 else -self.error(k) for k in self.non_bound]
            # The last pair's errors are both 0, but for rounding, which decides between the two.
            equals = [
                k
                for k, error in zip(self.non_bound, errors, strict=True)
                if error < min(errors) + 1e-12
            ]
            first = next((k for k in equals if k in among_equals), equals[0])
            if self.take_step(first, i2):
                return True
        for candidates in (list(self.non_bound), range(len(self.y))):
            start = self.start(len(candidates)) if len(candidates) else 0
            for m in range(len(candidates)):
                i1 = candidates[(start + m) % len(candidates)]
                seen = len(candidates) == len(self.y) and i1 in self.non_bound
                if not seen and self.take_step(i1, i2):
                    return True
        return False


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_every_step_is_the_printed_one(kernel):
    X, y = make_problem(n=40, d=4, density=1.0)
    y, C, tol = y.astype(float), 1.0, 1e-3
    function = KernelFunction(kernel, 2.0, 3, 0.0)
    s, v = store(X, function, "dense"), at_zero(y, X.shape[1])
    printed = PrintedSMO(function.between(X, X), y, C, tol, FIRST_EPS)
    search = first_search(s)
    examine_all, changed, n_sweeps = True, 0, 0
    while changed or examine_all:
        changed = 0
        for i in range(len(y)):
            if examine_all or i in printed.non_bound:
                before = v.alpha.copy()
                moved = examine_example(s, v, i, C, tol, search, examine_all)
                assert moved == printed.examine_example(i, np.flatnonzero(v.alpha != before))
                assert v.counters[0]["steps"] == len(printed.taken)
                assert_allclose(v.alpha, printed.alpha, atol=1e-9)
                assert_allclose(search.b, printed.b, atol=1e-9)
                changed += moved
        n_sweeps += 1
        examine_all = not changed and not examine_all
        assert n_sweeps < 1000
    # All three rules for the threshold have been followed, and many pairs were chosen.
    assert {kind for _, _, kind in printed.taken} == {"b1", "b2", "middle"}
    assert len(printed.taken) > 40


@needs_jit
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("C", [0.05, 1.0, 20.0])
@pytest.mark.parametrize("options", [{}, {"storage": "dense"}, {"cache_mb": 1.0}])
def test_same_optimum_as_a_box_constrained_qp(kernel, C, options):
    X, y = make_problem(n=60, d=100)
    model = FixedThresholdSMO(C=C, kernel=kernel, gamma=0.1, coef0=1.0, tol=1e-6, **options).fit(
        sp.csr_array(X), y
    )
    Q = model.function.between(X, X) * np.outer(y, y) + 1e-12 * np.eye(60)
    alpha = box_qp(Q, C)
    assert model.dual_objective_ == pytest.approx(alpha.sum() - 0.5 * alpha @ Q @ alpha, rel=1e-6)
    assert model.objective_ == pytest.approx(model.dual_objective_, rel=1e-4)
    assert violation(model, X, y) <= 1e-6 + 1e-9
    assert model.stop_reason_ == "converged"
    assert model.intercept_[0] == 0.0


@pytest.mark.slow
@pytest.mark.mirror
@needs_jit
def test_reference_bed_at_zero_threshold(mirrored):
    X, y = mirrored("a9a")
    X, y = X[:1605], y[:1605]
    model = FixedThresholdSMO(gamma=0.05, C=1.0, tol=1e-5).fit(X, y)
    assert model.objective_ == pytest.approx(585.283, abs=1e-3)
    assert abs(len(model.support_) - 715) <= 3
    assert violation(model, X, y) <= 1.1e-5
    # The offset is worth something: its problem has a lower optimum.
    assert SMO(gamma=0.05, C=1.0).fit(X, y).objective_ < model.objective_ - 0.4


def test_one_point_on_paper():
    # The first point alone is enough for the others: 2 w = 1.
    model = FixedThresholdSMO(C=10.0, kernel="linear").fit([[-2.0], [2.0], [4.0]], [0, 1, 1])
    assert_allclose(model.dual_coef_, [[-0.25]])
    assert model.objective_ == pytest.approx(0.125)


def test_twins_with_opposite_labels_pay_in_full():
    model = FixedThresholdSMO(C=1.0, kernel="linear").fit([[1.0], [1.0]], [-1, 1])
    assert model.objective_ == pytest.approx(2.0)


@pytest.mark.parametrize("kernel", KERNELS)
def test_all_zero_features_at_zero_threshold(kernel):
    y = np.array([1, 1, -1])
    model = FixedThresholdSMO(C=2.0, kernel=kernel, gamma=1.0).fit(np.zeros((3, 2)), y)
    # RBF has K = 1 and f = C; a kernel that vanishes leaves f = 0 and every loss at 1.
    assert model.objective_ == pytest.approx(4.5 if kernel == "rbf" else 6.0)
    assert model.stop_reason_ == "converged"


@needs_jit
@pytest.mark.filterwarnings("ignore:smo-fixed-threshold stopped")
@pytest.mark.parametrize("C", [1e-6, 1e8])
@pytest.mark.parametrize("gamma", [1e-12, 1e6])
def test_extremes(C, gamma):
    X, y = make_problem(n=40, d=4)
    X += 0.01 * np.arange(40)[:, None]
    model = FixedThresholdSMO(C=C, gamma=gamma, tol=1e-4, max_iter=1000).fit(X, y)
    if gamma > 1.0:
        assert_allclose(multipliers(model, y), min(C, 1.0))
    # K = 1 has no curvature but along its one direction: 1e8 of slope is too far to descend.
    assert (model.stop_reason_ == "max_iter") == (gamma < 1.0 < C)
    assert violation(model, X, y) <= 1.1e-4 or gamma < 1.0 < C


@needs_jit
def test_one_sample_of_a_class_and_an_indefinite_kernel_at_zero_threshold():
    X, y = make_problem(n=40, d=4)
    alone = np.where(np.arange(40) == 7, 1, -1)
    model = FixedThresholdSMO(C=10.0, gamma=1.0).fit(X, alone)
    assert violation(model, X, alone) <= 1.1e-3
    model = FixedThresholdSMO(kernel="sigmoid", gamma=2.0, coef0=-1.0).fit(X, y)
    assert violation(model, X, y) <= 1.1e-3 or model.stop_reason_ != "converged"
    assert np.all(np.isfinite(model.decision_function(X)))


def test_max_iter_is_said_at_zero_threshold():
    X, y = make_problem(n=60, d=4)
    with pytest.warns(ConvergenceWarning, match="smo-fixed-threshold stopped at max_iter=1 before"):
        model = FixedThresholdSMO(C=10.0, max_iter=1, tol=1e-5).fit(X, y)
    assert model.stop_reason_ == "max_iter"


def test_storage_out_of_range():
    with pytest.raises(ValueError, match="storage must be 'sparse' or 'dense'"):
        FixedThresholdSMO(storage="csr").fit(np.eye(2), [0, 1])


@needs_jit
@pytest.mark.parametrize("solver", [SMO, FixedThresholdSMO])
@pytest.mark.parametrize("options", [{"kernel": "linear"}, {"gamma": 0.5}, {"cache_mb": 1.0}])
def test_many_short_calls_take_the_same_way(monkeypatch, solver, options):
    X, y = make_problem(n=60, d=5)
    whole = solver(C=10.0, **options).fit(X, y)
    monkeypatch.setattr(smo, "WORK_A_CALL", 1)
    parts = solver(C=10.0, **options).fit(X, y)
    assert parts.counters_ == whole.counters_
    assert np.array_equal(parts.dual_coef_, whole.dual_coef_)
    assert parts.intercept_ == whole.intercept_


@needs_jit
@pytest.mark.parametrize("solver", [SMO, FixedThresholdSMO])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_ctrl_c_is_heard_within_a_fit(solver, kernel):
    assert_stops_when_interrupted(lambda X, y, C: solver(C=C, kernel=kernel).fit(X, y))
