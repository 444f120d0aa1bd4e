"""Certificates agree with certified optima of Clarabel, and models that lie are seen."""

import copy
import itertools
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from certified import Kernel, optimum
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import (
    LogisticRegression,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.svm import SVC, LinearSVC, NuSVC, OneClassSVM

import svmbench
from svmbench.base.errors import SvmbenchError
from svmbench.core.contract.problems import FREE, NO_OFFSET, absorbed

RBF, LINEAR = Kernel("rbf", 0.7), Kernel("linear")
N = 48
rng = np.random.default_rng(5)
X = np.round(rng.normal(size=(N, 3)), 3)
Y = np.where(X[:, 0] + 0.7 * rng.normal(size=N) > 0, 1, -1)
THREE = np.where(X[:, 1] > 0.6, 2, Y)


class Weights:
    """A class that shows weights alone."""

    def __init__(self, w, b, C):
        self.coef_, self.intercept_, self.C = np.atleast_2d(w), np.atleast_1d(b), C


def fitted(model, *data, **how):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(*data, **how)


def assert_bounds(found, bounds, loose=1e-6):
    """The dual value is the optimum to 1e-8, and the primal value as near as the solver came."""
    middle = 0.5 * (bounds.lower + bounds.upper)
    assert bounds.upper - bounds.lower <= 1e-9 * abs(middle)
    assert found.dual == pytest.approx(middle, rel=1e-8)
    assert found.dual <= bounds.upper + 1e-12 * abs(middle)
    assert found.primal == pytest.approx(middle, rel=loose)
    assert found.primal >= bounds.lower - 1e-12 * abs(middle)
    assert found.solved_to(loose)


LINEAR_SVC = {"C": 2.0, "tol": 1e-10, "max_iter": 10**6, "dual": True}
CASES = {
    "svc": (SVC(C=3.0, gamma=0.7, tol=1e-12), "hinge", 3.0, RBF, FREE),
    "svc-linear": (SVC(C=3.0, kernel="linear", tol=1e-12), "hinge", 3.0, LINEAR, FREE),
    "nu-svc": (NuSVC(nu=0.4, gamma=0.7, tol=1e-12), "nu-svc", 0.4, RBF, FREE),
    "one-class": (OneClassSVM(nu=0.3, gamma=0.7, tol=1e-12), "one-class", 0.3, RBF, FREE),
    "linear-svc": (
        LinearSVC(loss="hinge", intercept_scaling=2.0, **LINEAR_SVC),
        *("hinge", 2.0, LINEAR, absorbed(2.0)),
    ),
    "no-intercept": (
        LinearSVC(loss="hinge", fit_intercept=False, **LINEAR_SVC),
        *("hinge", 2.0, LINEAR, NO_OFFSET),
    ),
    "squared-hinge": (LinearSVC(**LINEAR_SVC), "squared-hinge", 2.0, LINEAR, absorbed(1.0)),
}


@pytest.mark.parametrize("case", CASES)
def test_scikit_learns_classes_agree_with_clarabel(case):
    model, problem, parameter, kernel, offset = CASES[case]
    one_class = problem == "one-class"
    y = np.ones(N) if one_class else Y.astype(float)
    model = fitted(copy.deepcopy(model), X, None if one_class else Y)
    for inputs in (X, sp.csr_array(X)):
        found = svmbench.certify(model, inputs, None if one_class else Y)
        assert_bounds(found, optimum(problem, parameter, kernel, X, y, offset))
        assert found.kkt < 1e-5
        assert found.shows == ("weights" if "LinearSVC" in repr(model) else "multipliers")


@pytest.mark.parametrize("offset", [FREE, absorbed(1.0), NO_OFFSET], ids=str)
@pytest.mark.parametrize("problem", ["hinge", "squared-hinge", "least-squares"])
def test_weights_alone_have_a_bound(problem, offset):
    C = 2.0
    # An independent optimum of the primal, by Clarabel.
    w, b, value = primal_optimum(problem, C, offset, np.ones(N))
    told = offset.value or offset.kind
    found = svmbench.certify(Weights(w, b, C), X, Y, problem=problem, offset=told)
    assert found.primal == pytest.approx(value, rel=1e-8)
    assert found.dual == pytest.approx(value, rel=1e-8)
    assert found.kkt < 1e-4
    # Too short, turned, or with another offset: no longer solved, and the bound still holds.
    others = [(0.5 * w, b), (-w, b), *([(w, b + 0.3)] if offset != NO_OFFSET else [])]
    for wrong in others:
        lie = svmbench.certify(Weights(*wrong, C), X, Y, problem=problem, offset=told)
        assert not lie.solved_to(1e-3)
        assert lie.dual <= value * (1 + 1e-8)
        assert lie.primal > value


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(
    "params", [{}, {"class_weight": {1: 3.0}}, {"fit_intercept": False}], ids=str
)
def test_weights_a_little_off_are_certified_on_many_rows(form, params):
    # The bound at the weights themselves is half of the squared gradient below the optimum.
    draw = np.random.default_rng(0)
    rows = draw.normal(size=(20_000, 4)) + 0.5
    y = np.where(rows @ [1.0, -2.0, 0.5, 0.0] + draw.normal(size=20_000) > 0, 1, -1)
    model = fitted(LinearSVC(tol=1e-8, dual=False, **params), form(rows), y)
    best = svmbench.certify(model, form(rows), y)
    assert best.solved_to(1e-8)
    model.coef_ = model.coef_ * (1.0 + 1e-3)
    found = svmbench.certify(model, form(rows), y)
    assert best.primal < found.primal
    assert found.dual == pytest.approx(best.primal, rel=1e-8)
    assert found.dual <= best.primal * (1.0 + 1e-12)
    assert found.solved_to(1e-5)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(
    "params", [{}, {"class_weight": {1: 3.0}}, {"fit_intercept": False}], ids=str
)
def test_hinge_weights_are_certified_on_many_rows(form, params):
    # Thousands of rows are within the error of the weights of a margin of 1.
    draw = np.random.default_rng(0)
    rows = draw.normal(size=(30_000, 4)) + 0.5
    y = np.where(rows @ [1.0, -2.0, 0.5, 0.0] + draw.normal(size=30_000) > 0, 1, -1)
    model = fitted(LinearSVC(loss="hinge", tol=1e-3, max_iter=3000, **params), form(rows), y)
    best = svmbench.certify(model, form(rows), y)
    assert best.solved_to(1e-4)
    # Others are marked by what they lack: one that stops early, and one that is 5 % too long.
    rough = fitted(LinearSVC(loss="hinge", tol=1e-3, max_iter=10, **params), form(rows), y)
    model.coef_ = model.coef_ * 1.05
    for other in (rough, model):
        found = svmbench.certify(other, form(rows), y)
        assert found.primal > best.primal
        assert found.dual == pytest.approx(best.primal, rel=1e-4)
        assert found.dual <= best.primal


def primal_optimum(problem, C, offset, weights):
    """Return w, b and the optimal value of a linear problem with weights, by Clarabel."""
    import clarabel

    d = X.shape[1]
    bias = offset.value
    A = np.column_stack([X, np.full(N, bias if bias else 1.0)])
    squares = np.r_[np.ones(d), 1.0 if bias else 0.0]
    costs, linear = np.zeros(N), C * weights
    if problem != "hinge":
        costs, linear = 2.0 * C * weights, np.zeros(N)
    # xi >= 1 - y f; xi >= 0 where that is not redundant; b = 0 where there is no offset.
    margin = np.hstack([-(Y[:, None] * A), -np.eye(N)])
    rows, right, cones = [margin], [-np.ones(N)], [clarabel.NonnegativeConeT(N)]
    if problem == "least-squares":
        cones = [clarabel.ZeroConeT(N)]
    elif problem == "hinge":
        rows.append(np.hstack([np.zeros((N, d + 1)), -np.eye(N)]))
        right.append(np.zeros(N))
        cones.append(clarabel.NonnegativeConeT(N))
    if offset == NO_OFFSET:
        rows.append(np.eye(1, d + 1 + N, d))
        right.append(np.zeros(1))
        cones.append(clarabel.ZeroConeT(1))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-13
    P = sp.csc_matrix(np.diag(np.r_[squares, costs]))
    parts = sp.csc_matrix(np.vstack(rows)), np.concatenate(right), cones, settings
    x = np.array(clarabel.DefaultSolver(P, np.r_[np.zeros(d + 1), linear], *parts).solve().x)
    w, b = x[:d], x[d] * (bias if bias else 1.0)
    loss = 1.0 - Y * (X @ w + b)
    loss = np.maximum(0.0, loss) if problem != "least-squares" else loss
    loss = loss if problem == "hinge" else loss**2
    square = w @ w + (x[d] ** 2 if bias else 0.0)
    return w, b, 0.5 * square + C * float(weights @ loss)


def test_weights_of_samples_and_classes_count():
    own, classes = np.where(np.arange(N) % 3, 1.0, 2.0), {1: 1.5, -1: 0.5}
    both = own * np.where(Y > 0, 1.5, 0.5)
    _, _, value = primal_optimum("hinge", 3.0, FREE, both)
    model = SVC(C=3.0, kernel="linear", tol=1e-12, class_weight=classes)
    found = svmbench.certify(fitted(model, X, Y, sample_weight=own), X, Y, sample_weight=own)
    assert (found.dual, found.primal) == pytest.approx((value, value), rel=1e-6)
    linear = LinearSVC(loss="hinge", class_weight=classes, **LINEAR_SVC)
    _, _, value = primal_optimum("hinge", 2.0, absorbed(1.0), both)
    found = svmbench.certify(fitted(linear, X, Y, sample_weight=own), X, Y, sample_weight=own)
    assert (found.dual, found.primal) == pytest.approx((value, value), rel=1e-8)
    # Without the weights it is another problem, which this model does not solve.
    assert not svmbench.certify(model, X, Y).solved_to(1e-3)


def test_least_squares_and_one_against_one():
    ridge = RidgeClassifier(alpha=0.25).fit(X, Y)
    _, _, value = primal_optimum("least-squares", 2.0, FREE, np.ones(N))
    found = svmbench.certify(ridge, X, Y)
    assert (found.dual, found.primal) == pytest.approx((value, value), rel=1e-8)
    for model in (
        SVC(C=3.0, gamma=0.7, tol=1e-12),
        svmbench.CSVC(C=3.0, gamma=0.7, tol=1e-9),
        svmbench.OneVsOne(svmbench.CSVC(C=3.0, gamma=0.7, tol=1e-9)),
    ):
        found = svmbench.certify(model.fit(X, THREE), X, THREE)
        values = []
        for one, other in itertools.combinations(np.unique(THREE), 2):
            rows = np.isin(THREE, (one, other))
            signs = np.where(THREE[rows] == other, 1.0, -1.0)
            values.append(optimum("hinge", 3.0, RBF, X[rows], signs, FREE).lower)
        assert found.n_parts == 3
        assert (found.dual, found.primal) == pytest.approx((sum(values),) * 2, rel=1e-6)


OWN = {
    "csvc": ({"C": 3.0}, "hinge", 3.0, FREE),
    "smo-fixed-threshold": ({"C": 3.0}, "hinge-no-offset", 3.0, NO_OFFSET),
    "nu-svc": ({"nu": 0.4}, "nu-svc", 0.4, FREE),
    "nu-svm": ({"nu": 0.4}, "nu-svc", 0.4, absorbed(1.0)),
    "lssvm": ({"C": 3.0}, "least-squares", 3.0, absorbed(1.0)),
    "one-class": ({"nu": 0.3}, "one-class", 0.3, FREE),
    "svdd": ({"nu": 0.3}, "svdd", 1 / (0.3 * N), FREE),
}


@pytest.mark.parametrize("name", OWN)
def test_solvers_of_the_suite_agree_with_their_own_objectives_and_with_clarabel(name):
    params, problem, parameter, offset = OWN[name]
    alone = problem in ("one-class", "svdd")
    tol = {"tol": 1e-9} if name != "lssvm" else {}
    model = svmbench.solver(name, kernel="rbf", gamma=0.7, **params, **tol)
    model = fitted(model, X) if alone else fitted(model, X, Y)
    found = svmbench.certify(model, X, None if alone else Y)
    assert found.primal == pytest.approx(model.objective_, rel=1e-9)
    y = np.ones(N) if alone else Y.astype(float)
    assert_bounds(found, optimum(problem, parameter, RBF, X, y, offset))


def lies(model):
    """Yield copies of a fitted SVC that are wrong."""
    for change in ("sign", "scale", "offset", "half"):
        lie = copy.deepcopy(model)
        if change == "sign":
            lie.dual_coef_ = -lie.dual_coef_
        elif change == "scale":
            lie.dual_coef_, lie.intercept_ = 0.5 * lie.dual_coef_, 0.5 * lie.intercept_
        elif change == "offset":
            lie.intercept_ = lie.intercept_ + 0.2
        else:
            kept = lie.dual_coef_.copy()
            kept[:, ::2] = 0.0
            lie.dual_coef_ = kept
        yield change, lie


@pytest.mark.parametrize("kind", ["svc", "nu-svc", "one-class"])
def test_models_that_lie_are_seen(kind):
    model, problem, parameter, kernel, offset = CASES[kind]
    alone = problem == "one-class"
    y = None if alone else Y
    model = fitted(copy.deepcopy(model), X, y)
    bounds = optimum(
        problem, parameter, kernel, X, np.ones(N) if alone else Y.astype(float), offset
    )
    for change, lie in lies(model):
        found = svmbench.certify(lie, X, y)
        assert not found.solved_to(1e-3), change
        assert found.kkt > 0.05, change
        if found.dual is not None:
            assert found.dual <= bounds.upper + 1e-12, change
        assert found.primal > bounds.lower, change
    # Half of the steps: what LIBSVM had reached before it was stopped.
    early = fitted(copy.deepcopy(model).set_params(max_iter=12), X, y)
    assert not svmbench.certify(early, X, y).solved_to(1e-3)


def test_multipliers_outside_their_box_are_seen():
    model = SVC(C=3.0, gamma=0.7).fit(X, Y)
    model.dual_coef_ = 1.5 * model.dual_coef_
    found = svmbench.certify(model, X, Y)
    assert found.box_violation == pytest.approx(0.5)
    lone = SVC(C=3.0, gamma=0.7).fit(X, Y)
    lone.dual_coef_ = np.where(lone.dual_coef_ > 0, lone.dual_coef_, 0.5 * lone.dual_coef_)
    assert svmbench.certify(lone, X, Y).sum_violation == pytest.approx(1 / 3)


def test_decision_values_alone_have_a_primal_value():
    model = SVC(C=3.0, kernel="linear", tol=1e-12).fit(X, Y)
    whole = svmbench.certify(model, X, Y)
    found = svmbench.certify(model.decision_function(X), X, Y, problem="hinge", parameter=3.0)
    assert found.primal == pytest.approx(whole.primal, rel=1e-9)
    assert (found.dual, found.shows) == (None, "decision values")
    assert found.with_bound(whole.dual).solved_to(1e-6)
    with pytest.raises(SvmbenchError, match="no linear model"):
        svmbench.certify(np.tanh(X[:, 0] * X[:, 1]), X, Y, problem="hinge", parameter=3.0)


def test_a_class_of_unknown_problem_is_not_certified():
    with pytest.raises(SvmbenchError, match="which problem"):
        svmbench.certify(LogisticRegression().fit(X, Y), X, Y)
    with pytest.raises(SvmbenchError, match="the penalty None"):
        svmbench.certify(SGDClassifier(penalty=None).fit(X, Y), X, Y)


def test_class_weights_of_nu_svc_have_no_effect_in_scikit_learn():
    model = NuSVC(nu=0.4, gamma=0.7, tol=1e-12, class_weight={1: 2.0}).fit(X, Y)
    assert svmbench.certify(model, X, Y).solved_to(1e-6)


def saved_by_libsvm(path, y, options):
    from libsvm import svmutil

    model = svmutil.svm_train(y.tolist(), sp.csr_matrix(X), f"{options} -q")
    svmutil.svm_save_model(str(path), model)
    return path


@pytest.mark.parametrize(
    ("options", "problem", "parameter"),
    [
        ("-s 0 -c 3 -g 0.7 -e 1e-10", "hinge", 3.0),
        ("-s 1 -n 0.4 -g 0.7 -e 1e-10", "nu-svc", 0.4),
        ("-s 2 -n 0.3 -g 0.7 -e 1e-10", "one-class", 0.3),
    ],
)
def test_files_of_libsvm_and_thundersvm(tmp_path, options, problem, parameter):
    y = np.ones(N) if problem == "one-class" else Y.astype(float)
    path = saved_by_libsvm(tmp_path / "model", y, options)
    expected = optimum(problem, parameter, RBF, X, y, FREE)
    assert_bounds(svmbench.certify(path, X, y, parameter=parameter), expected, 1e-5)
    # ThunderSVM ends each line with a blank, writes points with 8 digits and starts where it likes.
    text = path.read_text(encoding="ascii")
    head, _, vectors = text.partition("\nSV\n")
    words = [row.split() for row in vectors.splitlines()]
    rows = [[row[0], *(f"{k}:{float(v):.8g}" for k, v in map(pair, row[1:]))] for row in words]
    blank = " \n".join(head.splitlines()) + " \nSV \n" + "".join(" ".join(r) + " \n" for r in rows)
    path.write_text(blank, encoding="ascii")
    assert_bounds(svmbench.certify(path, X, y, parameter=parameter), expected, 1e-5)
    with pytest.raises(SvmbenchError, match=r"doesn't say its (C|nu)"):
        svmbench.certify(path, X, y)
    # Other rows than those it was trained on: a primal value, no bound.
    other = svmbench.certify(path, X[::-1] + 0.5, y, parameter=parameter)
    assert other.dual is None
    assert other.shows == "points"


def pair(word):
    key, _, value = word.partition(":")
    return key, value


def test_a_file_of_libsvm_with_three_classes(tmp_path):
    path = saved_by_libsvm(tmp_path / "model", THREE.astype(float), "-s 0 -c 3 -g 0.7 -e 1e-10")
    found = svmbench.certify(path, X, THREE, parameter=3.0)
    whole = svmbench.certify(SVC(C=3.0, gamma=0.7, tol=1e-10).fit(X, THREE), X, THREE)
    assert found.n_parts == 3
    assert found.dual == pytest.approx(whole.dual, rel=1e-8)
    assert found.primal == pytest.approx(whole.primal, rel=1e-5)


@pytest.mark.parametrize("labels", [Y, THREE], ids=["two", "three"])
def test_files_of_liblinear(tmp_path, labels):
    from liblinear import liblinearutil

    path = tmp_path / "model"
    options = "-s 2 -c 2 -B 2 -e 1e-12 -q"
    model = liblinearutil.train(labels.astype(float).tolist(), sp.csr_matrix(X), options)
    liblinearutil.save_model(str(path), model)
    found = svmbench.certify(path, X, labels, parameter=2.0)
    value = 0.0
    for one in np.unique(labels)[1:] if len(np.unique(labels)) == 2 else np.unique(labels):
        signs = np.where(labels == one, 1.0, -1.0)
        value += optimum("squared-hinge", 2.0, LINEAR, X, signs, absorbed(2.0)).lower
    assert found.dual == pytest.approx(value, rel=1e-8)
    assert found.primal == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize(
    ("model", "how", "said"),
    [
        (Weights([1.0, 0.0, 0.0], 0.0, 1.0), {}, "which problem"),
        (Weights([1.0, 0.0, 0.0], 0.0, None), {"problem": "hinge"}, "doesn't say its C"),
        (Weights([1.0, 0.0, 0.0], 0.0, 1.0), {"problem": "hinges"}, "no problem 'hinges'"),
        (Weights([1.0, 0.0, 0.0], 0.0, 1.0), {"problem": "hinge", "offset": "some"}, "an offset"),
        (object(), {"problem": "hinge"}, "shows no model"),
        ("/nowhere/model", {}, "can't read"),
    ],
)
def test_what_is_missing_is_said(model, how, said):
    with pytest.raises(SvmbenchError, match=said):
        svmbench.certify(model, X, Y, **how)
