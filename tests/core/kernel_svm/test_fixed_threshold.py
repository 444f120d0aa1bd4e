"""The fixed-threshold SMO against a box-constrained QP, hand-solved cases and odd inputs."""

import numpy as np
import pytest
import scipy.sparse as sp
from kernel_oracles import box_qp, multipliers, violation
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning
from small_problems import make_problem, needs_jit

from svmbench.core.contract.declaration import KERNELS
from svmbench.core.kernel_svm.smo import SMO, FixedThresholdSMO


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


@pytest.mark.mirror
@needs_jit
def test_reference_bed(mirrored):
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
def test_all_zero_features(kernel):
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
def test_one_sample_of_a_class_and_an_indefinite_kernel():
    X, y = make_problem(n=40, d=4)
    alone = np.where(np.arange(40) == 7, 1, -1)
    model = FixedThresholdSMO(C=10.0, gamma=1.0).fit(X, alone)
    assert violation(model, X, alone) <= 1.1e-3
    model = FixedThresholdSMO(kernel="sigmoid", gamma=2.0, coef0=-1.0).fit(X, y)
    assert violation(model, X, y) <= 1.1e-3 or model.stop_reason_ != "converged"
    assert np.all(np.isfinite(model.decision_function(X)))


def test_max_iter_is_said():
    X, y = make_problem(n=60, d=4)
    with pytest.warns(ConvergenceWarning, match="smo-fixed-threshold stopped at max_iter=1 before"):
        model = FixedThresholdSMO(C=10.0, max_iter=1, tol=1e-5).fit(X, y)
    assert model.stop_reason_ == "max_iter"


def test_storage_out_of_range():
    with pytest.raises(ValueError, match="storage must be 'sparse' or 'dense'"):
        FixedThresholdSMO(storage="csr").fit(np.eye(2), [0, 1])
