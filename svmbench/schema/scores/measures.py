"""The scores that ship: each whole in its place.

The positive class of precision, recall and F1 is the later of two classes: the one that decision
values above 0 speak for. In novelty detection that is the normal class, 1, against -1, as
scikit-learn's outlier detectors have it. With more classes they are the mean over the classes.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping

import numpy as np

from svmbench.schema.scores.calibration import platt_sigmoid
from svmbench.schema.scores.contract import Exam, Undefined, named, score

#: Predictions are repeated until their CPU time sums to this many seconds …
PREDICT_TOTAL_S = 0.05
#: … or until there are so many.
PREDICT_REPEATS = 50


@score(
    "accuracy", metric="accuracy_pct", caption="accuracy (%)", unit="%",
    better="higher", tolerance=0.5,
)  # fmt: skip
def accuracy(exam: Exam) -> float:
    """Share of the rows that get their own class."""
    return 100.0 * float(np.mean(exam.predicted == exam.y))


@score(
    "balanced-accuracy", metric="balanced_accuracy_pct", caption="balanced accuracy (%)",
    unit="%", better="higher", tolerance=0.5,
)  # fmt: skip
def balanced_accuracy(exam: Exam) -> float:
    """Mean over the classes of the share of each class's rows that get it."""
    of = _labelled(exam)
    return _share(exam, np.diag(exam.confusion), of, "has no test rows", every=True)


@score(
    "auc", metric="auc_pct", caption="AUC (%)", unit="%", better="higher", tolerance=0.5,
    needs=("decision_function",),
)  # fmt: skip
def auc(exam: Exam) -> float:
    """Share of the pairs of a positive and a negative row that are in order; half for a tie."""
    from scipy.stats import rankdata

    positive = exam.positive
    n_positive, n_negative = int(np.sum(positive)), int(np.sum(~positive))
    if not (n_positive and n_negative):
        raise Undefined(f"all test rows are of one class, {exam.y[0]}")
    ranks = rankdata(exam.decisions)[positive].sum() - n_positive * (n_positive + 1) / 2
    return 100.0 * float(ranks) / (n_positive * n_negative)


@score(
    "f1", metric="f1_pct", caption="F1 (%)", unit="%", better="higher", tolerance=0.5,
)  # fmt: skip
def f1(exam: Exam) -> float:
    """Harmonic mean of precision and recall."""
    either = _labelled(exam) + _given(exam)
    right = 2 * np.diag(exam.confusion)
    return _share(exam, right, either, "has no test rows and is predicted for none")


@score(
    "precision", metric="precision_pct", caption="precision (%)", unit="%",
    better="higher", tolerance=0.5,
)  # fmt: skip
def precision(exam: Exam) -> float:
    """Share of the rows predicted positive that are."""
    return _share(exam, np.diag(exam.confusion), _given(exam), "is predicted for no row")


@score(
    "recall", metric="recall_pct", caption="recall (%)", unit="%", better="higher", tolerance=0.5,
)  # fmt: skip
def recall(exam: Exam) -> float:
    """Share of the positive rows that are predicted so."""
    return _share(exam, np.diag(exam.confusion), _labelled(exam), "has no test rows")


@score(
    "log-loss", metric="log_loss", caption="log-loss of calibrated margins (nats)", unit="nats",
    better="lower", tolerance=0.02, needs=("decision_function", "training"),
)  # fmt: skip
def log_loss(exam: Exam) -> float:
    """Mean negative log-likelihood of the test labels under calibrated decision values.

    The probability of the positive class is Platt's sigmoid of the decision value, fitted to the
    decision values of the model's own training rows with his smoothed targets: no row is held out
    for it, so that the same model is scored by every score. It is a calibration in sample; a model
    that separates its training rows is too sure of itself, and its log-loss says so.
    """
    if exam.training is None or exam.training[1] is None:
        raise Undefined("a calibration needs the training rows with their labels")
    decisions, positive = exam.decisions, exam.positive
    strangers = ~np.isin(exam.y, exam.classes)
    if np.any(strangers):
        raise Undefined(f"the model has never seen the class {exam.y[strangers][0]}")
    X, y = exam.training
    margins = np.asarray(exam.say("decision_function", X), dtype=np.float64)
    labels = np.asarray(y) == exam.classes[1]
    if np.all(labels) or not np.any(labels):
        raise Undefined("a calibration needs training rows of two classes")
    if not np.all(np.isfinite(margins)):
        raise Undefined("some decision values of training rows are not finite")
    slope, offset = platt_sigmoid(margins, labels)
    z = slope * decisions + offset
    return float(np.mean(np.logaddexp(0.0, np.where(positive, -z, z))))


@score(
    "support-vectors", metric="n_support_vectors", caption="support vectors", unit="",
    better="lower", tolerance=0.1, relative=True, needs=("model",),
)  # fmt: skip
def support_vectors(exam: Exam) -> float:
    """How many training rows the model is made of; one against one: the sum over the pairs."""
    model = exam.estimator
    for attribute, count in (("support_", len), ("n_support_", np.sum)):
        if (values := getattr(model, attribute, None)) is not None:
            return float(count(values))
    counters = getattr(model, "counters_", None)
    if isinstance(counters, Mapping) and "support_vectors" in counters:
        return float(counters["support_vectors"])
    raise Undefined(f"{named(model)} has no support vectors")


@score(
    "predict-time", metric="predict_time_per_row_s", caption="CPU time of prediction a row (s)",
    unit="s", better="lower", tolerance=None,
)  # fmt: skip
def predict_time(exam: Exam) -> float:
    """CPU seconds of `predict` on all test rows, median of its repeats, a row.

    The call that gave the other scores their predictions was the first, and is not timed.
    """
    if exam.estimator is None:
        raise Undefined("the model itself is not at hand")
    if exam.X is None:
        raise Undefined("the rows are not in memory")
    _ = exam.predicted
    # What runs a program knows what that took.
    now = getattr(exam.estimator, "cpu_clock", time.process_time)
    seconds: list[float] = []
    while sum(seconds) < PREDICT_TOTAL_S and len(seconds) < PREDICT_REPEATS:
        start = now()
        exam.estimator.predict(exam.X)
        seconds.append(now() - start)
    return statistics.median(seconds) / len(exam.y)


def _labelled(exam: Exam) -> np.ndarray:
    """Return how many test rows each class has."""
    return np.array([int(np.sum(exam.y == one)) for one in exam.classes])


def _given(exam: Exam) -> np.ndarray:
    """Return how many test rows each class is predicted for."""
    return np.array([int(np.sum(exam.predicted == one)) for one in exam.classes])


def _share(
    exam: Exam, part: np.ndarray, whole: np.ndarray, why: str, *, every: bool = False
) -> float:
    """Return 100 part / whole of the positive one of two classes, else the mean over classes."""
    counted = range(len(exam.classes)) if every or len(exam.classes) > 2 else [1]
    for c in counted:
        if not whole[c]:
            raise Undefined(f"the class {exam.classes[c]} {why}")
    return 100.0 * float(np.mean([part[c] / whole[c] for c in counted]))
