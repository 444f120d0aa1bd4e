"""scikit-learn's own tests of SVC and LinearSVC, run on csvc and dcd behind a thin adapter.

The tests are those of the installed package: its module is executed with the adapters in the place
of the two classes, and its test functions are collected here with their parameters. What is
expected to fail stands in `EXPECTED_FAILURES`, strictly: what is listed and passes fails. What is
about other classes, or about what they alone do, stands in `OF_OTHERS`.
"""

from __future__ import annotations

import importlib.util
import inspect
from types import FunctionType, SimpleNamespace

import numpy as np
import pytest
from sklearn import svm

from svmbench import CSVC, DCDL2
from svmbench.base.compiled import JIT_DISABLED
from svmbench.core.contract.problems import HINGE, SQUARED_HINGE

pytestmark = pytest.mark.skipif(JIT_DISABLED, reason="the tests' problems are too large for it")

PROBABILITY = (
    "Platt scaling inside the classifier is deprecated there; CalibratedClassifierCV does it"
)

#: Tests, or single parameters of them, that are not about what csvc and dcd do.
OF_OTHERS = {
    **dict.fromkeys(
        ("test_svr", "test_linearsvr", "test_linearsvr_fit_sampleweight", "test_svr_errors")
        + ("test_svr_predict", "test_svr_coef_sign", "test_sparse_fit_support_vectors_empty"),
        "regression",
    ),
    **dict.fromkeys(
        ("test_oneclass", "test_oneclass_decision_function", "test_oneclass_score_samples"),
        "OneClassSVM",
    ),
    **dict.fromkeys(
        ("test_probability", "test_hasattr_predict_proba")
        + ("test_probability_raises_futurewarning", "test_svc_nusvc_probA_probB_deprecated"),
        PROBABILITY,
    ),
    **dict.fromkeys(
        ("test_linearsvc_crammer_singer", "test_crammer_singer_binary"), "Crammer and Singer's SVM"
    ),
    **dict.fromkeys(
        ("test_linearsvc", "test_dense_liblinear_intercept_handling"), "the penalty l1"
    ),
    **dict.fromkeys(("test_dual_auto", "test_dual_auto_edge_cases"), "LIBLINEAR's solver types"),
    **dict.fromkeys(
        ("test_tweak_params", "test_svc_raises_error_internal_representation"),
        "private attributes in which LIBSVM's bindings keep the model",
    ),
}

#: Tests that fail, and why.
EXPECTED_FAILURES = {
    "test_bad_input": "csvc predicts of sparse inputs after a fit on dense ones, SVC refuses",
    "test_svc_nonfinite_params": "too large inputs are told before the fit, in other words",
    "test_libsvm_convergence_warnings": "csvc has converged after the two steps it is allowed",
    "test_linear_svm_convergence_warnings": "dcd warns in words of its own",
    "test_svm_with_infinite_C": "C must be finite here: the problem has no other bound",
}


class SVC(CSVC):
    """csvc with the parameters of SVC; ``n_iter_`` is an array of two classes, too."""

    def __init__(
        self,
        *,
        C=1.0,
        kernel="rbf",
        gamma="scale",
        tol=1e-3,
        max_iter=10_000_000,
        class_weight=None,
        decision_function_shape="ovr",
        break_ties=False,
        random_state=None,
    ):
        super().__init__(
            C,
            kernel=kernel,
            gamma=gamma,
            tol=tol,
            max_iter=max_iter,
            class_weight=class_weight,
            decision_function_shape=decision_function_shape,
            break_ties=break_ties,
        )
        self.random_state = random_state

    def __setattr__(self, name, value):
        super().__setattr__(name, np.atleast_1d(value) if name == "n_iter_" else value)

    _gamma = property(lambda self: self.gamma_)


class LinearSVC(DCDL2):
    """dcd with the parameters of LinearSVC: the loss chooses between dcd-l1 and dcd-l2."""

    def __init__(
        self,
        penalty="l2",
        loss="squared_hinge",
        *,
        dual="auto",
        tol=1e-4,
        C=1.0,
        fit_intercept=True,
        intercept_scaling=1.0,
        class_weight=None,
        verbose=0,
        random_state=None,
        max_iter=1000,
    ):
        super().__init__(
            C,
            tol=tol,
            max_iter=max_iter,
            fit_intercept=fit_intercept,
            intercept_scaling=intercept_scaling,
            random_state=random_state,
            class_weight=class_weight,
        )
        self.penalty, self.loss, self.dual, self.verbose = penalty, loss, dual, verbose

    _loss = property(lambda self: HINGE if self.loss == "hinge" else SQUARED_HINGE)
    problem = _loss

    def _check_parameters(self):
        super()._check_parameters()
        if self.penalty != "l2" or (self.loss == "hinge" and self.dual is False):
            asked = f"penalty={self.penalty!r}, loss={self.loss!r}, dual={self.dual}"
            raise ValueError(f"Unsupported set of arguments: {asked}")


ADAPTERS = {"SVC": SVC, "LinearSVC": LinearSVC}

#: What a parameter says whose case is not ours.
OTHER_CLASSES = (svm.NuSVC, svm.SVR, svm.NuSVR, svm.LinearSVR, svm.OneClassSVM)


def adapted_tests():
    """Return the test functions of scikit-learn's module, executed with the adapters in place."""
    spec = importlib.util.find_spec("sklearn.svm.tests.test_svm")
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        for name, adapter in ADAPTERS.items():
            patch.setattr(svm, name, adapter)
        spec.loader.exec_module(module)
        # What the functions look up when they run.
        module.svm = SimpleNamespace(**vars(svm))
    return {
        name: value
        for name, value in vars(module).items()
        if name.startswith("test_") and isinstance(value, FunctionType)
    }


TESTS = adapted_tests()
globals().update({name: test for name, test in TESTS.items() if name not in OF_OTHERS})


@pytest.fixture
def global_random_seed():
    return 42


def is_of_others(value):
    """Return whether a test's parameter names another class, or the penalty l1."""
    if isinstance(value, dict):
        return value.get("penalty") == "l1"
    if isinstance(value, str):
        return value == "l1"
    cls = value if inspect.isclass(value) else type(value)
    return issubclass(cls, OTHER_CLASSES)


@pytest.fixture(autouse=True)
def follow_the_lists(request):
    name = request.node.originalname
    cases = request.node.callspec.params.values() if hasattr(request.node, "callspec") else ()
    if any(is_of_others(value) for value in cases):
        pytest.skip("about another class, or another penalty")
    if name in EXPECTED_FAILURES:
        request.applymarker(pytest.mark.xfail(strict=True, reason=EXPECTED_FAILURES[name]))


def test_the_lists_name_tests_and_the_failures_are_few():
    assert len(TESTS) > 50
    assert {*EXPECTED_FAILURES, *OF_OTHERS} <= set(TESTS)
    assert not set(EXPECTED_FAILURES) & set(OF_OTHERS)
    assert len(EXPECTED_FAILURES) <= 8
    assert all(EXPECTED_FAILURES.values())


def test_the_adapters_are_what_is_tested():
    assert TESTS["test_weight"].__globals__["svm"].SVC is SVC
    assert TESTS["test_weight"].__globals__["svm"].LinearSVC is LinearSVC
    assert svm.SVC.__module__.startswith("sklearn")
