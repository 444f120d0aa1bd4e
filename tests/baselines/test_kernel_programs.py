"""LIBSVM and scikit-learn's SVC: one model, whichever program found it."""

import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import SVC

from svmbench.baselines.libsvm import Libsvm
from svmbench.baselines.libsvm_evaluation import libsvm_decision_values
from svmbench.baselines.libsvm_one_class import LibsvmOneClass
from svmbench.baselines.scikit_learn import SVCBaseline
from svmbench.baselines.scikit_learn_linear import SGDBaseline
from svmbench.core.kernels.kernels import KernelFunction
from svmbench.core.models.multiclass import OneVsOne


def make_problem(seed=0, n=150, d=6):
    rng = np.random.default_rng(seed)
    X = rng.random((n, d)) * (rng.random((n, d)) < 0.6)
    scores = np.sin(6 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.2 * rng.normal(size=n)
    return X, np.where(scores > np.median(scores), 1, -1)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "sigmoid"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("solver", [Libsvm, SVCBaseline])
def test_equals_scikit_learn_s_decision_values(solver, kernel, form):
    X, y = make_problem()
    # With these the sigmoid kernel is positive definite enough for one optimum.
    mild = {"gamma": 0.1, "coef0": 0.0} if kernel == "sigmoid" else {"gamma": 0.7, "coef0": 0.3}
    settings = mild | {"C": 2.0, "kernel": kernel, "degree": 2, "tol": 1e-7}
    expected = SVC(**settings).fit(X, y).decision_function(X)
    for order in (np.argsort(y), np.argsort(-y)):
        model = solver(**settings).fit(form(X)[order], y[order])
        np.testing.assert_allclose(model.decision_function(form(X)), expected, atol=1e-4)


@pytest.mark.parametrize("solver", [Libsvm, SVCBaseline])
def test_objectives_bracket_the_optimum(solver):
    X, y = make_problem()
    loose, tight = solver(tol=0.1).fit(X, y), solver(tol=1e-8).fit(X, y)
    assert loose.dual_objective_ <= tight.dual_objective_ + 1e-9
    assert tight.dual_objective_ <= loose.objective_
    assert tight.objective_ == pytest.approx(tight.dual_objective_, rel=1e-6)
    assert tight.counters_["support_vectors"] == len(tight.support_vectors_)
    assert 0 < tight.counters_["bounded_support_vectors"] < len(tight.support_)


def test_gamma_scale_is_scikit_learn_s():
    X, y = make_problem()
    expected = SVC().fit(X, y)._gamma
    for form in (np.asarray, sp.csr_array):
        model = Libsvm()
        model.prepare(form(X), y)
        assert model.gamma_ == pytest.approx(expected)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "sigmoid"])
@pytest.mark.parametrize("solver", [Libsvm, LibsvmOneClass])
def test_decision_values_are_the_program_s_own(solver, kernel, form, monkeypatch):
    X, y = make_problem()
    model = solver(kernel=kernel, gamma=0.3, coef0=0.2).fit(form(X), y)
    new = make_problem(seed=3)[0]
    expected = model.expansion_.decide(form(new))
    monkeypatch.setattr("svmbench.core.models.kernel_base.weighted_sums", None)
    found = model.decision_function(form(new))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    assert np.ptp(expected) > 0.01
    # Its objective is evaluated without the program.
    with pytest.raises(TypeError, match="not callable"):
        model.evaluate_objective(model.prepare(form(X), y))


def test_several_classes_are_evaluated_by_the_program_at_once(monkeypatch):
    X, _ = make_problem()
    y = np.digitize(X[:, 0] + X[:, 1], [0.3, 0.7, 1.1])
    settings = {"C": 3.0, "gamma": 0.7, "tol": 1e-7}
    theirs = SVC(**settings, decision_function_shape="ovo").fit(X, y)
    pairs = OneVsOne(Libsvm(**settings)).fit(X, y)
    alone = Libsvm(**settings).fit(X, y)
    monkeypatch.setattr("svmbench.core.models.kernel_base.weighted_sums", None)
    monkeypatch.setattr("svmbench.core.models.ovo_model.add_up", None)
    new = make_problem(seed=3)[0]
    expected = theirs.decision_function(new)
    np.testing.assert_allclose(-pairs.pair_decisions(new), expected, atol=1e-4)
    np.testing.assert_allclose(-alone.several_.decide(new), expected, atol=1e-4)


def test_a_model_without_support_vectors_is_its_offset():
    function, points = KernelFunction("rbf", 1.0), np.zeros((0, 2))
    values = libsvm_decision_values(
        function, points, np.zeros((1, 0)), np.array([-0.25]), np.array([0, 0]), np.eye(2)
    )
    assert values.tolist() == [[0.25], [0.25]]


def test_parameters_out_of_range():
    X, y = make_problem(n=20)
    with pytest.raises(ValueError, match="kernel must be one of linear, rbf, poly, sigmoid"):
        Libsvm(kernel="cosine").fit(X, y)
    with pytest.raises(ValueError, match="gamma must be a positive finite number"):
        SVCBaseline(gamma=-1.0).fit(X, y)


def test_libsvm_is_silent(capfd):
    X, y = make_problem()
    Libsvm().fit(X, y)
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
@pytest.mark.mirror
def test_known_values_on_a9a_s_first_rows():
    import io
    import lzma

    from sklearn.datasets import load_svmlight_file

    mirror = os.environ.get("SVMBENCH_MIRROR")
    if not mirror or not Path(mirror).is_dir():
        pytest.skip("SVMBENCH_MIRROR names no folder with the real data files")
    content = lzma.decompress(Path(mirror, "libsvm/a9a.xz").read_bytes())
    X, y = load_svmlight_file(io.BytesIO(content))
    model = Libsvm(C=1.0, gamma=0.05, tol=1e-6).fit(X[:1605], y[:1605])
    assert model.dual_objective_ == pytest.approx(584.787720, abs=2e-5)
    assert model.counters_["support_vectors"] == 706
    assert model.counters_["bounded_support_vectors"] == 598


def test_sgd_minimises_the_same_problem():
    from svmbench.baselines.liblinear import LiblinearL1

    X, y = make_problem()
    best = LiblinearL1(C=0.05, tol=1e-6).fit(X, y).objective_
    model = SGDBaseline(C=0.05, max_iter=3000, tol=1e-9, average=True).fit(X, y)
    assert best - 1e-9 <= model.objective_ < 1.02 * best
    assert SGDBaseline(max_iter=2).fit(X, y).stop_reason_ == "max_iter"
