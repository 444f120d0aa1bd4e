"""Foreign classes: trained as they are, with what a record needs beside."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from small_problems import make_problem

from svmbench.base.errors import SvmbenchError
from svmbench.baselines.catalogue import solver, split_problem, with_problem
from svmbench.baselines.certify import declared_problem
from svmbench.baselines.foreign import adapted, is_trusted
from svmbench.experiment.protocols.certified import Certificates
from svmbench.experiment.settings.blocks import SolverSpec
from svmbench.studies.racing import notes_on, parse_racer, parse_racers


@pytest.mark.parametrize(
    ("path", "params"),
    [
        ("sklearn.svm.SVC", {"C": 2.0}),  # n_iter_ is an array
        ("sklearn.linear_model.RidgeClassifier", {}),  # None
        ("sklearn.naive_bayes.GaussianNB", {}),  # not there
        # A property, which can't be set.
        ("sklearn.ensemble.HistGradientBoostingClassifier", {"max_iter": 3}),
    ],
)
def test_a_class_computes_what_it_does_alone(path, params):
    X, y = make_problem(n=60, d=4)
    model = adapted(path)(**params)
    model.train(model.prepare(X, y)).evaluate_objective(None)
    alone = adapted(path).wrapped(**params).fit(X, y)
    assert np.array_equal(model.predict(X), alone.predict(X))
    assert isinstance(model.n_iter_, int)
    assert model.n_iter_ >= 1
    assert all(isinstance(count, int) for count in model.counters_.values())


def test_what_a_class_is_for_is_seen():
    X, _ = make_problem(n=40, d=3)
    novelty = adapted("sklearn.svm.OneClassSVM")
    assert novelty.declaration.task == "one-class"
    model = novelty(nu=0.3)
    model.train(model.prepare(X, None))
    assert model.counters_["support_vectors"] == len(model.support_)
    assert set(model.predict(X)) == {-1, 1}
    for path, sentence in (
        ("sklearn.svm.SVR", "neither a classifier nor a novelty detector"),
        ("sklearn.svm.Nothing", "there is no class"),
        ("SVC", "there is no class"),
        ("sklearn.svm.l1_min_c", "is not an estimator"),
    ):
        with pytest.raises(SvmbenchError, match=sentence):
            adapted(path)
    assert is_trusted("sklearn.svm.SVC")
    assert not is_trusted("sklearnex.svm.SVC")


@pytest.mark.parametrize("offset", [None, "free", "none", 1, 0.5])
def test_a_name_holds_the_problem_that_a_class_is_said_to_solve(offset):
    name = with_problem("sklearn.svm.LinearSVC", "hinge", offset)
    assert split_problem(name) == ("sklearn.svm.LinearSVC", "hinge", offset)
    assert split_problem("sklearn.svm.LinearSVC (binary)") == (
        "sklearn.svm.LinearSVC (binary)", "", None,
    )  # fmt: skip


def test_a_race_certifies_a_class_by_the_problem_that_it_is_said_to_solve():
    X, y = np.array([[0.0], [1.0], [3.0], [4.0]]), np.array([-1, -1, 1, 1])
    identities = []
    for name in (
        "sklearn.linear_model.LogisticRegression [squared-hinge, offset 1]",
        "liblinear-l2",
    ):
        model = solver(name).fit(X, y)
        certificates = Certificates(name, X, y)
        certificates.add("only", model)
        assert certificates.by_setting["only"].problem == "squared-hinge, offset absorbed (1)"
        identities += certificates.identities.values()
    # Both share the best of their bounds.
    assert identities[0] == identities[1]
    bare = Certificates("p", X, y)
    bare.add("only", solver("sklearn.linear_model.LogisticRegression").fit(X, y))
    assert not bare.by_setting


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"class": "a.B", "problem": "hing"}, "there is no problem 'hing'; there are"),
        ({"class": "a.B", "offset": 1}, "an offset is declared together with a problem"),
        ({"class": "a.B", "problem": "hinge", "offset": -1}, "the value of the constant feature"),
        ({"name": "csvc", "problem": "hinge"}, "problem"),
    ],
)
def test_a_problem_that_can_not_be_declared_is_a_sentence(entry, said):
    with pytest.raises(ValueError, match=said):
        SolverSpec.model_validate(entry)


def test_the_words_of_a_race_say_what_a_class_solves():
    racer = parse_racer("sklearn.svm.LinearSVC C=2 problem=squared-hinge offset=1")
    assert racer.params == {"C": 2}
    assert racer.label == "sklearn.svm.LinearSVC C=2"
    spec = SolverSpec.model_validate(racer.entry())
    assert spec.name == "sklearn.svm.LinearSVC [squared-hinge, offset 1]"


@pytest.mark.parametrize(
    ("name", "params", "declared"),
    [
        ("csvc", {}, ("hinge", "free")),
        ("liblinear-l1", {}, ("hinge", 1.0)),
        ("sklearn.svm.LinearSVC", {"loss": "hinge"}, ("hinge", 1.0)),
        ("sklearn.svm.LinearSVC", {"fit_intercept": False}, ("squared-hinge", "none")),
        ("sklearn.svm.LinearSVC", {"penalty": "l1"}, None),
        ("sklearn.svm.NuSVC", {}, ("nu-svc", "free")),
        ("sklearn.linear_model.RidgeClassifier", {}, ("least-squares", "free")),
        ("sklearn.linear_model.LogisticRegression", {}, None),
        ("sklearn.ensemble.GradientBoostingClassifier", {}, None),  # its loss is not a margin's
    ],
)
def test_an_estimator_declares_its_problem_before_its_fit(name, params, declared):
    assert declared_problem(solver(name, **params)) == declared


class Nameless(LogisticRegression):
    """Declares no problem, and is no class of scikit-learn."""


def test_a_class_without_a_problem_is_judged_on_that_of_the_others():
    path = f"{__name__}.Nameless"
    judged, _ = parse_racers([f"{path} C=2", "liblinear-l2"], trust=True)
    assert judged.solves == {"problem": "squared-hinge", "offset": 1.0}
    (said,) = notes_on([judged], lambda _: True)
    assert "those of squared-hinge, offset 1, which liblinear-l2 solves" in said
    (said,) = notes_on([judged], lambda _: False)
    assert "has no certificate" in said
    # Two problems leave it open; a class of scikit-learn would have declared its own.
    for others in (["liblinear-l2", "liblinear-l1"], []):
        bare = parse_racers([path, *others], trust=True)[0]
        assert not bare.solves
        (said,) = notes_on([bare], lambda _: False)
        assert "write problem=squared-hinge offset=free after its name" in said
    known = "sklearn.linear_model.LogisticRegression"
    assert not parse_racers([known, "liblinear-l2"])[0].solves
