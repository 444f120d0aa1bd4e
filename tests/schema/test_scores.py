"""Scores against scikit-learn's metrics, cases by hand, and what is undefined."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from sklearn import metrics
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_blobs, make_classification
from sklearn.ensemble import IsolationForest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC, NuSVC, OneClassSVM

from svmbench.base.errors import UnknownNameError
from svmbench.schema import scores
from svmbench.schema.scores import SCORES, Evaluation, Score, compute_scores, evaluate
from svmbench.schema.scores.calibration import platt_sigmoid

ALL = list(SCORES)


def values(y: Any, decisions: Any, names: list[str]) -> tuple[dict[str, float], dict[str, str]]:
    evaluation = Evaluation.of_predictions(
        np.array(y), np.array([-1, 1]), decisions=np.array(decisions, float)
    )
    return compute_scores(names, evaluation)


def test_two_classes_as_scikit_learn_counts() -> None:
    X, y = make_classification(400, 6, n_informative=3, flip_y=0.2, weights=[0.7], random_state=0)
    train, test = slice(0, 250), slice(250, None)
    model = NuSVC(nu=0.4).fit(X[train], y[train])
    got, undefined = evaluate(ALL, model, X[test], y[test], training=(X[train], y[train]))
    predicted, decisions = model.predict(X[test]), model.decision_function(X[test])
    assert undefined == {}
    assert got["predict_time_per_row_s"] > 0.0
    assert got["n_support_vectors"] == len(model.support_)
    expected = {
        "accuracy_pct": metrics.accuracy_score(y[test], predicted),
        "balanced_accuracy_pct": metrics.balanced_accuracy_score(y[test], predicted),
        "auc_pct": metrics.roc_auc_score(y[test], decisions),
        "f1_pct": metrics.f1_score(y[test], predicted),
        "precision_pct": metrics.precision_score(y[test], predicted),
        "recall_pct": metrics.recall_score(y[test], predicted),
    }
    assert {name: got[name] for name in expected} == pytest.approx(
        {name: 100 * value for name, value in expected.items()}
    )
    # Its sigmoid is the same one, fitted to the same rows.
    calibrated = CalibratedClassifierCV(FrozenEstimator(model), ensemble=False)
    calibrated.fit(X[train], y[train])
    loss = metrics.log_loss(y[test], calibrated.predict_proba(X[test]))
    assert got["log_loss"] == pytest.approx(loss, abs=1e-5)


def test_several_classes_as_scikit_learn_counts() -> None:
    X, y = make_blobs(300, centers=4, cluster_std=4.0, random_state=3)
    model = SVC(C=1.0).fit(X[:200], y[:200])
    got, undefined = evaluate(ALL, model, X[200:], y[200:], training=(X[:200], y[:200]))
    true, predicted = y[200:], model.predict(X[200:])
    expected = {
        "accuracy_pct": metrics.accuracy_score(true, predicted),
        "balanced_accuracy_pct": metrics.balanced_accuracy_score(true, predicted),
        "f1_pct": metrics.f1_score(true, predicted, average="macro"),
        "precision_pct": metrics.precision_score(true, predicted, average="macro"),
        "recall_pct": metrics.recall_score(true, predicted, average="macro"),
    }
    assert {name: got[name] for name in expected} == pytest.approx(
        {name: 100 * value for name, value in expected.items()}
    )
    assert got["n_support_vectors"] == len(model.support_)
    assert undefined == {
        "auc_pct": "none of 4 classes is the positive one",
        "log_loss": "one decision value can't order 4 classes",
    }


@pytest.mark.parametrize("model", [OneClassSVM(nu=0.2), IsolationForest(random_state=0)])
def test_novelty_detectors_as_scikit_learn_counts(model: Any) -> None:
    rng = np.random.default_rng(1)
    normal, novel = rng.normal(size=(150, 2)), rng.normal(loc=2.5, size=(40, 2))
    model.fit(normal[:100])
    X, y = np.vstack([normal[100:], novel]), np.repeat([1, -1], [50, 40])
    got, undefined = evaluate(ALL, model, X, y, training=(normal[:100], None))
    predicted, decisions = model.predict(X), model.decision_function(X)
    assert got["auc_pct"] == pytest.approx(100 * metrics.roc_auc_score(y, decisions))
    assert got["auc_pct"] > 80.0
    assert got["recall_pct"] == pytest.approx(100 * metrics.recall_score(y, predicted))
    assert got["f1_pct"] == pytest.approx(100 * metrics.f1_score(y, predicted))
    assert undefined["log_loss"] == "calibration needs the training rows with their labels"
    if isinstance(model, OneClassSVM):
        assert got["n_support_vectors"] == len(model.support_)
    else:
        assert undefined["n_support_vectors"] == "IsolationForest has no support vectors"


def test_by_hand() -> None:
    # True: 3 positive, 2 negative. Predicted positive: 2 right, 1 wrong. Of six pairs five are
    # in order: 0.5 is above 0.2 and 2 are above both, -1 is above neither 0.2 nor below -3.
    got, undefined = values([1, 1, 1, -1, -1], [0.5, 2.0, -1.0, 0.2, -3.0], ALL[:6])
    assert undefined == {}
    assert got == pytest.approx(
        {
            "accuracy_pct": 60.0,
            "balanced_accuracy_pct": 100 * (2 / 3 + 1 / 2) / 2,
            "auc_pct": 100 * 5 / 6,
            "f1_pct": 100 * 4 / 6,
            "precision_pct": 100 * 2 / 3,
            "recall_pct": 100 * 2 / 3,
        }
    )


def test_a_tie_is_half_in_order_and_zero_is_positive() -> None:
    got, _ = values([1, -1], [0.0, 0.0], ["auc", "accuracy", "recall"])
    assert got == {"auc_pct": 50.0, "accuracy_pct": 50.0, "recall_pct": 100.0}


def test_one_class_alone_leaves_undefined_what_needs_both() -> None:
    got, undefined = values([1, 1], [1.0, -1.0], ALL[:6])
    assert undefined == {
        "auc_pct": "all test rows belong to one class, 1",
        "balanced_accuracy_pct": "the class -1 has no test rows",
    }
    assert got["recall_pct"] == 50.0
    assert got["precision_pct"] == 100.0
    got, undefined = values([-1, -1], [-1.0, -1.0], ALL[:6])
    assert got == {"accuracy_pct": 100.0}
    assert undefined == {
        "auc_pct": "all test rows belong to one class, -1",
        "balanced_accuracy_pct": "the class 1 has no test rows",
        "f1_pct": "the class 1 has no test rows and is predicted for none",
        "precision_pct": "the class 1 is predicted for no row",
        "recall_pct": "the class 1 has no test rows",
    }


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_no_score_is_nan(bad: float) -> None:
    got, undefined = values([1, -1], [bad, 0.0], ["auc", "log-loss"])
    assert got == {}
    assert undefined["auc_pct"] == "some decision values are not finite"
    assert all(math.isfinite(value) for value in got.values())
    score = Score("x", "x", lambda _: bad, "x", "", "higher", None)
    SCORES["x"] = score
    try:
        assert values([1, -1], [1.0, 0.0], ["x"]) == ({}, {"x": "its value is not finite"})
    finally:
        del SCORES["x"]


def test_no_rows_and_no_decision_values_are_undefined_with_their_reason() -> None:
    got, undefined = values([], [], ["accuracy"])
    assert got == {}
    assert undefined == {"accuracy_pct": "there are no test rows"}

    class Votes:
        classes_ = np.array([0, 1])

        def predict(self, X: Any) -> Any:
            return np.zeros(len(X), dtype=int)

    got, undefined = evaluate(["accuracy", "auc", "support-vectors"], Votes(), [[0], [1]], [0, 1])
    assert got == {"accuracy_pct": 50.0}
    assert undefined == {
        "auc_pct": "Votes has no decision_function",
        "n_support_vectors": "Votes has no support vectors",
    }


def test_the_sigmoid_is_the_optimum_of_the_smoothed_likelihood() -> None:
    rng = np.random.default_rng(2)
    margins = 3.0 + 5.0 * rng.normal(size=300)
    positive = rng.random(300) < 1.0 / (1.0 + np.exp(-(0.6 * margins - 2.0)))
    slope, offset = platt_sigmoid(margins, positive)
    high = (positive.sum() + 1) / (positive.sum() + 2)
    low = 1 / ((~positive).sum() + 2)
    # Each row once as positive, weighted by its target, and once as negative.
    weights = np.where(positive, high, low)
    oracle = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(
        np.r_[margins, margins].reshape(-1, 1),
        np.repeat([1, 0], 300),
        sample_weight=np.r_[weights, 1 - weights],
    )
    assert slope == pytest.approx(oracle.coef_[0, 0], rel=1e-4)
    assert offset == pytest.approx(oracle.intercept_[0], rel=1e-3)


def test_the_sigmoid_stays_finite_where_margins_separate_or_are_equal() -> None:
    slope, offset = platt_sigmoid(
        np.array([-2.0, -1.0, 1.0, 2.0]), np.array([False, False, True, True])
    )
    assert 0 < slope < 100
    assert offset == pytest.approx(0.0, abs=1e-6)
    slope, offset = platt_sigmoid(np.ones(5), np.array([True, False, True, True, True]))
    assert math.isfinite(slope)
    # All alike: the mean of the targets, 5/6 four times and 1/3 once.
    share = (4 * 5 / 6 + 1 / 3) / 5
    assert slope + offset == pytest.approx(math.log(share / (1 - share)), abs=1e-6)


def test_log_loss_of_a_model_that_has_seen_another_class_is_undefined() -> None:
    X = np.array([[0.0], [0.2], [1.0], [1.2]])
    model = SVC(kernel="linear").fit(X, [0, 0, 1, 1])
    _, undefined = evaluate(["log-loss"], model, X, [0, 0, 1, 2], training=(X, [0, 0, 1, 1]))
    assert undefined == {"log_loss": "the model has never seen the class 2"}
    _, undefined = evaluate(["log-loss"], model, X, [0, 0, 1, 1])
    assert undefined == {"log_loss": "calibration needs the training rows with their labels"}
    _, undefined = evaluate(["log-loss"], model, X, [0, 0, 1, 1], training=(X[:2], [0, 0]))
    assert undefined == {"log_loss": "calibration needs training rows of two classes"}


def test_a_plan_can_carry_what_a_report_needs() -> None:
    described = scores.describe_scores(["accuracy", "log-loss"])
    assert json.loads(json.dumps(described)) == described
    assert described["accuracy_pct"] == {
        "caption": "accuracy (%)",
        "unit": "%",
        "better": "higher",
        "tolerance": 0.5,
        "relative": False,
    }
    assert described["log_loss"]["better"] == "lower"


@pytest.mark.parametrize("one", SCORES.values(), ids=lambda one: one.name)
def test_every_score_is_declared_whole(one: Score) -> None:
    endings = {"%": "_pct", "s": "_s"}
    assert one.metric.endswith(endings.get(one.unit, ""))
    assert one.better in {"higher", "lower"}
    assert one.caption
    assert one.function.__doc__
    assert one.tolerance is None or one.tolerance > 0


def test_a_misspelt_score_is_named_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="unknown score 'acu'; did you mean 'auc'"):
        scores.describe_scores(["acu"])


def test_a_metric_says_its_unit() -> None:
    declare = scores.score(
        "misses", metric="misses", caption="", unit="%", better="lower", tolerance=None
    )
    with pytest.raises(ValueError, match="a metric in % must end in '_pct'"):
        declare(lambda _: 0.0)
    assert "misses" not in SCORES


def test_a_score_of_ones_own_joins_and_a_name_is_taken_once() -> None:
    @scores.score(
        "rejected", metric="rejected_pct", caption="rejected (%)", unit="%", better="lower",
        tolerance=None,
    )  # fmt: skip
    def rejected(evaluation: Evaluation) -> float:
        return 100.0 * float(np.mean(evaluation.predicted == evaluation.classes[0]))

    try:
        assert values([1, -1], [-1.0, -2.0], ["rejected"]) == ({"rejected_pct": 100.0}, {})
        with pytest.raises(ValueError, match="two scores are declared as 'auc'"):
            scores.score(
                "auc", metric="auc_pct", caption="", unit="%", better="higher", tolerance=None
            )(rejected)
    finally:
        del SCORES["rejected"]
