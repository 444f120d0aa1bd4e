"""What a model is scored by: each score declared once, with all that others need to know of it.

A score is a function from an :class:`Exam` (a fitted model, the rows it is tested on, and what it
says of them) to a number; :func:`score` enters it into :data:`SCORES` with its unit, its direction
and the gate's tolerance. Protocols call :func:`evaluate`; plans carry :func:`describe`, from which
tables, plots and comparisons learn the rest.

A score may be undefined on some rows: the area under the curve of one class is no number. Its
function then raises :class:`Undefined` with the reason, which is recorded in the value's place. No
score is ever NaN, and none that is undefined costs a cell its result.

The positive class of precision, recall and F1 is the later of two classes: the one that decision
values above 0 speak for. In novelty detection that is the normal class, 1, against -1, as
scikit-learn's outlier detectors have it. With more classes they are the mean over the classes.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from svmbench.errors import UnknownNameError

#: Predictions are repeated until their CPU time sums to this many seconds …
PREDICT_TOTAL_S = 0.05
#: … or until there are so many.
PREDICT_REPEATS = 50

Needs = Literal["predict", "decision_function", "training", "model"]


class Undefined(Exception):  # noqa: N818 - no error: an outcome of its own
    """A score that has no value on these rows; its text is the reason, one sentence."""


@dataclass(frozen=True)
class Score:
    """A score as it is declared.

    Attributes
    ----------
    name : str
        As configs spell it: ``auc``.
    metric : str
        As records and tables spell it; the ending says the unit: ``auc_pct``.
    function : callable
        From a `Exam` to a finite number, or raising `Undefined`.
    caption : str
        What a table's head or an axis says.
    unit : str
        ``"%"``, ``"s"``, ``"nats"``, or nothing for a count.
    better : str
        ``"higher"`` or ``"lower"``.
    tolerance : float or None
        By how much the mean over folds may worsen before the gate calls it a regression, in the
        metric's own unit; None for what the gate does not judge (times: a race compares those).
    relative : bool
        Whether `tolerance` is a share of the value before.
    needs : tuple of str
        What it asks of a model: ``predict``, ``decision_function``, ``training`` (the rows that
        the model was fitted to, with their labels), ``model`` (its fitted attributes).
    """

    name: str
    metric: str
    function: Callable[[Exam], float]
    caption: str
    unit: str
    better: Literal["higher", "lower"]
    tolerance: float | None
    relative: bool = False
    needs: tuple[Needs, ...] = ("predict",)

    def for_plan(self) -> dict[str, Any]:
        """Return what a report needs of it, as JSON values."""
        return {
            "caption": self.caption,
            "unit": self.unit,
            "better": self.better,
            "tolerance": self.tolerance,
            "relative": self.relative,
        }


#: Every score by its name, in the order of declaration.
SCORES: dict[str, Score] = {}


def score(name: str, **what: Any) -> Callable[[Callable[[Exam], float]], Callable[[Exam], float]]:
    """Enter a score, the decorated function, into :data:`SCORES`; keywords as in `Score`."""

    def enter(function: Callable[[Exam], float]) -> Callable[[Exam], float]:
        declared = Score(name=name, function=function, **what)
        for known in SCORES.values():
            is_same = known.name == name or known.metric == declared.metric
            if is_same and _place(known.function) != _place(function):
                msg = f"two scores are declared as {name!r} ({declared.metric})"
                raise ValueError(msg)
        SCORES[name] = declared
        return function

    return enter


@dataclass
class Exam:
    """A fitted model and the rows that it is tested on.

    Attributes
    ----------
    estimator : object
        The fitted model; None where only what it says is at hand (`given`).
    X : ndarray or csr_array of shape (n_samples, n_features)
        Inputs of the test rows.
    y : ndarray of shape (n_samples,)
        Their labels.
    training : tuple of (X, y) or None
        The rows that the model was fitted to; y is None where it saw no labels.
    """

    estimator: Any
    X: Any
    y: np.ndarray
    training: tuple[Any, Any] | None = None
    _classes: np.ndarray | None = None
    _said: dict[str, np.ndarray] = field(default_factory=dict)

    @classmethod
    def answered(
        cls,
        y: np.ndarray,
        classes: np.ndarray,
        *,
        predicted: np.ndarray | None = None,
        decisions: np.ndarray | None = None,
    ) -> Exam:
        """Return test rows with what some model said of them, where the model itself is gone."""
        said = {"predict": predicted, "decision_function": decisions}
        if predicted is None and decisions is not None and len(classes) == 2:
            said["predict"] = classes[(decisions >= 0).astype(np.intp)]
        known = {name: values for name, values in said.items() if values is not None}
        return cls(None, None, np.asarray(y), _classes=np.asarray(classes), _said=known)

    @cached_property
    def classes(self) -> np.ndarray:
        """The classes that the model tells apart, ascending; -1 and 1 for a novelty detector."""
        if self._classes is not None:
            return self._classes
        own = getattr(self.estimator, "classes_", None)
        return np.asarray(own) if own is not None and len(own) > 1 else np.array([-1, 1])

    @cached_property
    def predicted(self) -> np.ndarray:
        """The class that the model gives each row."""
        return self._say("predict", self.X)

    @cached_property
    def decisions(self) -> np.ndarray:
        """The decision value of each row, large for the positive class.

        Raises
        ------
        Undefined
            Where the model has none, or more than one a row.
        """
        if len(self.classes) > 2:
            raise Undefined(f"one decision value cannot order {len(self.classes)} classes")
        values = np.asarray(self._say("decision_function", self.X), dtype=np.float64)
        if values.shape != (len(self.y),):
            raise Undefined("the model has several decision values a row")
        if not np.all(np.isfinite(values)):
            raise Undefined("some decision values are not finite")
        return values

    @cached_property
    def positive(self) -> np.ndarray:
        """Whether each row is of the positive class.

        Raises
        ------
        Undefined
            Where the model tells more than two classes apart.
        """
        if len(self.classes) > 2:
            raise Undefined(f"there is no positive one among {len(self.classes)} classes")
        return np.asarray(self.y == self.classes[1])

    @cached_property
    def confusion(self) -> np.ndarray:
        """Rows by true class and predicted class, both in the order of `classes`."""
        pairs = [(self.y == true) for true in self.classes]
        given = [(self.predicted == other) for other in self.classes]
        return np.array([[int(np.sum(a & b)) for b in given] for a in pairs])

    def _say(self, what: str, X: Any) -> np.ndarray:
        if self.estimator is None:
            if what not in self._said:
                raise Undefined(f"nothing is kept of the model's {what}")
            return self._said[what]
        method = getattr(self.estimator, what, None)
        if method is None:
            raise Undefined(f"{_named(self.estimator)} has no {what}")
        return np.asarray(method(X))


def evaluate(
    names: Iterable[str],
    estimator: Any,
    X: Any,
    y: np.ndarray,
    *,
    training: tuple[Any, Any] | None = None,
) -> tuple[dict[str, float], dict[str, str]]:
    """Score a fitted model on rows that it has not seen.

    Parameters
    ----------
    names : iterable of str
        Names of scores (``accuracy``, ``auc`` …).
    estimator : object
        A fitted classifier or novelty detector, with what the scores need of it.
    X : ndarray or csr_array of shape (n_samples, n_features)
        The test rows.
    y : ndarray of shape (n_samples,)
        Their labels.
    training : tuple of (X, y), optional
        The rows that the model was fitted to, for scores that need them; y is None where it was
        fitted without labels.

    Returns
    -------
    metrics : dict of str to float
        Finite values by the names that records use (``accuracy_pct``, ``auc_pct`` …).
    undefined : dict of str to str
        For each score without a value, by the same names, the reason.

    Raises
    ------
    svmbench.errors.UnknownNameError
        For a score that does not exist.
    """
    return mark(names, Exam(estimator, X, np.asarray(y), training))


def mark(names: Iterable[str], exam: Exam) -> tuple[dict[str, float], dict[str, str]]:
    """Score as :func:`evaluate` does, what is at hand as an `Exam` already."""
    metrics: dict[str, float] = {}
    undefined: dict[str, str] = {}
    for name in names:
        one = find(name)
        try:
            if not len(exam.y):
                raise Undefined("there are no test rows")
            value = float(one.function(exam))
            if not math.isfinite(value):
                raise Undefined("its value is not finite")
        except Undefined as reason:
            undefined[one.metric] = str(reason)
        else:
            metrics[one.metric] = value
    return metrics, undefined


def find(name: str) -> Score:
    """Return the score of this name.

    Raises
    ------
    svmbench.errors.UnknownNameError
        With the nearest name that exists.
    """
    if name not in SCORES:
        raise UnknownNameError("score", name, list(SCORES))
    return SCORES[name]


def describe(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return what a plan says of these scores: what a report needs, by the metrics' names."""
    return {(one := find(name)).metric: one.for_plan() for name in names}


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
    margins = np.asarray(exam._say("decision_function", X), dtype=np.float64)
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
    raise Undefined(f"{_named(model)} has no support vectors")


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
    _ = exam.predicted
    seconds: list[float] = []
    while sum(seconds) < PREDICT_TOTAL_S and len(seconds) < PREDICT_REPEATS:
        start = time.process_time()
        exam.estimator.predict(exam.X)
        seconds.append(time.process_time() - start)
    return statistics.median(seconds) / len(exam.y)


def platt_sigmoid(margins: np.ndarray, positive: np.ndarray) -> tuple[float, float]:
    """Fit P(positive) = 1 / (1 + exp(-(slope * margin + offset))) by maximum likelihood.

    Targets are Platt's (Probabilistic outputs for support vector machines, 1999):
    (n₊ + 1) / (n₊ + 2) and 1 / (n₋ + 2), which keep the optimum finite where margins separate the
    classes. Newton steps, halved until the likelihood grows, as Lin, Lin and Weng (2007) advise.

    Parameters
    ----------
    margins : ndarray of shape (n_samples,)
        Decision values; finite.
    positive : ndarray of bool of shape (n_samples,)

    Returns
    -------
    slope, offset : float
    """
    spread = float(np.std(margins)) or 1.0
    x = (margins - float(np.mean(margins))) / spread
    n_positive = int(np.sum(positive))
    high = (n_positive + 1.0) / (n_positive + 2.0)
    low = 1.0 / (len(x) - n_positive + 2.0)
    target = np.where(positive, high, low)
    design = np.column_stack([x, np.ones_like(x)])

    def loss(theta: np.ndarray) -> float:
        z = design @ theta
        return float(np.sum(np.logaddexp(0.0, z) - target * z))

    theta = np.array([0.0, math.log((n_positive + 1.0) / (len(x) - n_positive + 1.0))])
    before = loss(theta)
    for _ in range(100):
        probability = 1.0 / (1.0 + np.exp(-np.clip(design @ theta, -500.0, 500.0)))
        gradient = design.T @ (probability - target)
        if np.max(np.abs(gradient)) < 1e-8 * len(x):
            break
        weights = probability * (1.0 - probability)
        # The ridge keeps the step defined where all margins are equal.
        hessian = design.T @ (weights[:, np.newaxis] * design) + 1e-12 * len(x) * np.eye(2)
        step = np.linalg.solve(hessian, gradient)
        length = 1.0
        while length > 1e-10 and loss(theta - length * step) >= before:
            length /= 2.0
        if length <= 1e-10:
            break
        theta = theta - length * step
        before = loss(theta)
    slope = float(theta[0]) / spread
    return slope, float(theta[1]) - slope * float(np.mean(margins))


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


def _place(function: Callable[..., Any]) -> tuple[str, str]:
    return function.__module__, function.__qualname__


def _named(model: Any) -> str:
    return type(model).__name__
