"""The form of a score, the fitted model that it sees, its evaluation; and accuracy, the default."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from svmbench.base.errors import UnknownNameError

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


#: How a metric's name says its unit: tables format by it.
_ENDINGS = {"%": "_pct", "s": "_s"}

#: Every score by its name, in the order of declaration.
SCORES: dict[str, Score] = {}


def score(name: str, **what: Any) -> Callable[[Callable[[Exam], float]], Callable[[Exam], float]]:
    """Enter a score, the decorated function, into :data:`SCORES`; keywords as in `Score`."""

    def enter(function: Callable[[Exam], float]) -> Callable[[Exam], float]:
        declared = Score(name=name, function=function, **what)
        ending = _ENDINGS.get(declared.unit, "")
        if not declared.metric.endswith(ending):
            msg = f"a metric in {declared.unit} ends in {ending!r}, not as {declared.metric!r} does"
            raise ValueError(msg)
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
        Inputs of the test rows; None where only what the model said of them is kept (`told`).
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

    def told(self, decisions: np.ndarray) -> Exam:
        """Take a two-class model's decision values of the test rows as known; return itself.

        Those of many models on the same rows may be one product, cheaper than asking each.
        """
        chosen = self.classes[(decisions >= 0).astype(np.intp)]
        self._said.update(decision_function=decisions, predict=chosen)
        return self

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
        return self.say("predict", self.X)

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
        values = np.asarray(self.say("decision_function", self.X), dtype=np.float64)
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

    def say(self, what: str, X: Any) -> np.ndarray:
        """Return what a method of the model says of some rows.

        Raises
        ------
        Undefined
            Where the model has no such method.
        """
        if what in self._said and X is self.X:
            return self._said[what]
        if self.estimator is None:
            raise Undefined(f"nothing is kept of the model's {what}")
        method = getattr(self.estimator, what, None)
        if method is None:
            raise Undefined(f"{named(self.estimator)} has no {what}")
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
    svmbench.base.errors.UnknownNameError
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


def decision_values(models: Sequence[Any], X: Any) -> np.ndarray:
    """Return the decision values (n_models, n_samples) of models of two classes.

    Those of linear models are one product.
    """
    if all(hasattr(model, "coef_") for model in models):
        W = np.vstack([model.coef_ for model in models])
        offsets = np.concatenate([model.intercept_ for model in models])
        return np.asarray((X @ W.T + offsets).T)
    return np.array([model.decision_function(X) for model in models])


def find(name: str) -> Score:
    """Return the score of this name.

    Raises
    ------
    svmbench.base.errors.UnknownNameError
        With the nearest name that exists.
    """
    if name not in SCORES:
        raise UnknownNameError("score", name, list(SCORES))
    return SCORES[name]


def describe(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return what a plan says of these scores: what a report needs, by the metrics' names."""
    return {(one := find(name)).metric: one.for_plan() for name in names}


def _place(function: Callable[..., Any]) -> tuple[str, str]:
    return function.__module__, function.__qualname__


def named(model: Any) -> str:
    """Return what a message calls a model."""
    return type(model).__name__


# The score of every protocol that is asked for no other stands here, so that the keys of its cells
# cover no code of other scores.
@score(
    "accuracy", metric="accuracy_pct", caption="accuracy (%)", unit="%",
    better="higher", tolerance=0.5,
)  # fmt: skip
def accuracy(exam: Exam) -> float:
    """Share of the rows that get their own class."""
    return 100.0 * float(np.mean(exam.predicted == exam.y))
