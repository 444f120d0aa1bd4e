"""The baselines: their input format, their answers, and their silence."""

import ctypes

import numpy as np
import pytest
import scipy.sparse as sp

from svmbench.baselines.liblinear import LiblinearL1
from svmbench.baselines.nodes import NODE, node_lists
from svmbench.baselines.scikit_learn_linear import LinearSVCBaseline
from svmbench.core.contract.problems import HINGE, linear


def make_problem(seed=0, n=200, d=10):
    rng = np.random.default_rng(seed)
    X = rng.random((n, d)) * (rng.random((n, d)) < 0.5)
    scores = X @ rng.normal(size=d) + 0.3 * rng.normal(size=n)
    return X, np.where(scores > np.median(scores), 1, -1)


@pytest.mark.parametrize("bias", [0.0, 1.5])
def test_nodes_spell_the_rows(bias):
    X = np.array([[0.0, 2.0, 3.0], [0.0, 0.0, 0.0], [4.0, 0.0, 0.0]])
    nodes, addresses = node_lists(X, bias=bias)
    rows = []
    for address in addresses:
        row, at = {}, (int(address) - nodes.ctypes.data) // NODE.itemsize
        while nodes["index"][at] != -1:
            row[int(nodes["index"][at])] = float(nodes["value"][at])
            at += 1
        rows.append(row)
    end = {4: bias} if bias else {}
    assert rows == [{2: 2.0, 3: 3.0} | end, end, {1: 4.0} | end]


def test_node_has_the_size_of_the_c_struct():
    from liblinear.liblinear import feature_node
    from libsvm.svm import svm_node

    assert NODE.itemsize == ctypes.sizeof(feature_node) == ctypes.sizeof(svm_node)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("bias", [0.0, 1.0, 3.0])
def test_equals_the_package_s_own_interface(form, bias):
    from liblinear import liblinearutil

    X, y = make_problem()
    model = LiblinearL1(C=0.1, tol=1e-8, fit_intercept=bias > 0, intercept_scaling=bias)
    model.fit(form(X), y)
    options = f"-s 3 -c 0.1 -e 1e-8 -q -B {bias if bias else -1}"
    ctypes.CDLL(None).srand(1)
    w, b = liblinearutil.train(y.astype(float), sp.csr_matrix(X), options).get_decfun()
    np.testing.assert_allclose(model.coef_[0], w, rtol=1e-12)
    np.testing.assert_allclose(model.intercept_[0], b, rtol=1e-12)


@pytest.mark.parametrize("solver", [LiblinearL1, LinearSVCBaseline])
def test_reaches_the_optimum_whichever_class_comes_first(solver):
    X, y = make_problem()
    for order in (np.argsort(y), np.argsort(-y)):
        model = solver(C=0.1, tol=1e-8).fit(X[order], y[order])
        other = LiblinearL1(C=0.1, tol=1e-9).fit(X, y)
        assert model.objective_ == pytest.approx(other.objective_, rel=1e-6)
        assert model.score(X, y) > 0.8
        assert model.n_iter_ > 1


def test_liblinear_does_not_depend_on_what_ran_before():
    X, y = make_problem()
    first = LiblinearL1().fit(X, y).coef_
    LiblinearL1().fit(X[::2], y[::2])
    assert np.array_equal(first, LiblinearL1().fit(X, y).coef_)
    assert not np.array_equal(first, LiblinearL1(random_state=7).fit(X, y).coef_)


def test_liblinear_is_silent(capfd):
    X, y = make_problem()
    LiblinearL1().fit(X, y)
    assert capfd.readouterr() == ("", "")


def test_not_converging_is_said():
    X, y = make_problem()
    model = LinearSVCBaseline(max_iter=2).fit(X, y)
    assert (model.n_iter_, model.stop_reason_) == (2, "max_iter")


def test_gap_of_liblinear_is_small_against_a_feasible_dual_point():
    X, y = make_problem(n=50)
    model = LiblinearL1(tol=1e-8).fit(X, y)
    w, b = model.coef_[0], model.intercept_[0]
    values = linear(X, w, b, y.astype(float), bias=1.0)
    alpha = HINGE.multipliers(values.margins, 1.0)
    dual = linear(X, X.T @ (y * alpha), float(y @ alpha), y.astype(float), bias=1.0, alpha=alpha)
    assert HINGE.primal(values, 1.0) - HINGE.dual(dual, 1.0) >= 0.0
