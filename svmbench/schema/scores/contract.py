"""The contract of scores: declaration, input and evaluation; and accuracy, the default score."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np

from svmbench.base.errors import UnknownNameError

#: A function from an evaluation to a finite number; it may raise `Undefined`.
ScoreFunction: TypeAlias = "Callable[[Evaluation], float]"

Needs = Literal["predict", "decision_function", "training", "model"]


class Undefined(Exception):  # noqa: N818 - an outcome, not an error
    """The score has no value on these rows; the message gives the reason in one sentence."""


@dataclass(frozen=True)
class Score:
    """The declaration of a score.

    Attributes
    ----------
    name : str
        Name in configs: ``auc``.
    metric : str
        Name in records and tables, with an ending for the unit: ``auc_pct``.
    function : callable
        See `ScoreFunction`.
    caption : str
        Text for headers and axes.
    unit : str
        ``"%"``, ``"s"``, ``"nats"``, or nothing for a count.
    better : str
        ``"higher"`` or ``"lower"``.
    tolerance : float or None
        Largest loss of the mean over folds that the gate accepts, in the unit of the metric; None
        if the gate doesn't judge the score (races compare times).
    relative : bool
        True if `tolerance` is relative to the value before.
    needs : tuple of str
        The needed parts of a model: ``predict``, ``decision_function``, ``training`` (the rows that
        the model was fitted to, with their labels), ``model`` (its fitted attributes).
    """

    name: str
    metric: str
    function: ScoreFunction
    caption: str
    unit: str
    better: Literal["higher", "lower"]
    tolerance: float | None
    relative: bool = False
    needs: tuple[Needs, ...] = ("predict",)

    def for_plan(self) -> dict[str, Any]:
        """Return the fields that a report needs, as JSON values."""
        return {
            "caption": self.caption,
            "unit": self.unit,
            "better": self.better,
            "tolerance": self.tolerance,
            "relative": self.relative,
        }


#: The endings of names of metrics by unit; tables format numbers by them.
_ENDINGS = {"%": "_pct", "s": "_s"}

#: Every score by its name, in the order of declaration.
SCORES: dict[str, Score] = {}


def score(name: str, **what: Any) -> Callable[[ScoreFunction], ScoreFunction]:
    """Enter the decorated function into :data:`SCORES`; the keywords are those of `Score`."""

    def enter(function: ScoreFunction) -> ScoreFunction:
        declared = Score(name=name, function=function, **what)
        ending = _ENDINGS.get(declared.unit, "")
        if not declared.metric.endswith(ending):
            msg = f"a metric in {declared.unit} must end in {ending!r}, unlike {declared.metric!r}"
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
class Evaluation:
    """A fitted model with its test rows.

    Attributes
    ----------
    estimator : object
        The fitted model; None if only its predictions are known (`of_predictions`).
    X : ndarray or csr_array of shape (n_samples, n_features)
        Inputs of the test rows; None if only the predictions are known.
    y : ndarray of shape (n_samples,)
        Their labels.
    training : tuple of (X, y) or None
        The training rows; y is None if the model was fitted without labels.
    """

    estimator: Any
    X: Any
    y: np.ndarray
    training: tuple[Any, Any] | None = None
    _classes: np.ndarray | None = None
    _known: dict[str, np.ndarray] = field(default_factory=dict)

    @classmethod
    def of_predictions(
        cls,
        y: np.ndarray,
        classes: np.ndarray,
        *,
        predicted: np.ndarray | None = None,
        decisions: np.ndarray | None = None,
    ) -> Evaluation:
        """Return an evaluation from known predictions, without a model."""
        given = {"predict": predicted, "decision_function": decisions}
        if predicted is None and decisions is not None and len(classes) == 2:
            given["predict"] = classes[(decisions >= 0).astype(np.intp)]
        known = {name: values for name, values in given.items() if values is not None}
        return cls(None, None, np.asarray(y), _classes=np.asarray(classes), _known=known)

    def set_decisions(self, decisions: np.ndarray) -> Evaluation:
        """Set the decision values of a two-class model on the test rows; return the evaluation.

        One matrix product can give the decision values of many models on the same rows.
        """
        chosen = self.classes[(decisions >= 0).astype(np.intp)]
        self._known.update(decision_function=decisions, predict=chosen)
        return self

    @cached_property
    def classes(self) -> np.ndarray:
        """The classes of the model, ascending; -1 and 1 for a novelty detector."""
        if self._classes is not None:
            return self._classes
        classes = getattr(self.estimator, "classes_", None)
        return (
            np.asarray(classes) if classes is not None and len(classes) > 1 else np.array([-1, 1])
        )

    @cached_property
    def predicted(self) -> np.ndarray:
        """The predicted class of each row."""
        return self.call_method("predict", self.X)

    @cached_property
    def decisions(self) -> np.ndarray:
        """The decision value of each row, large for the positive class.

        Raises
        ------
        Undefined
            If the model has no decision values, or several for a row.
        """
        if len(self.classes) > 2:
            raise Undefined(f"one decision value can't order {len(self.classes)} classes")
        values = np.asarray(self.call_method("decision_function", self.X), dtype=np.float64)
        if values.shape != (len(self.y),):
            raise Undefined("the model has several decision values per row")
        if not np.all(np.isfinite(values)):
            raise Undefined("some decision values are not finite")
        return values

    @cached_property
    def positive(self) -> np.ndarray:
        """True for each row of the positive class.

        Raises
        ------
        Undefined
            If the model has more than two classes.
        """
        if len(self.classes) > 2:
            raise Undefined(f"none of {len(self.classes)} classes is the positive one")
        return np.asarray(self.y == self.classes[1])

    @cached_property
    def confusion(self) -> np.ndarray:
        """Number of rows by true class and predicted class, in the order of `classes`."""
        pairs = [(self.y == true) for true in self.classes]
        given = [(self.predicted == other) for other in self.classes]
        return np.array([[int(np.sum(a & b)) for b in given] for a in pairs])

    def call_method(self, what: str, X: Any) -> np.ndarray:
        """Return the result of a method of the model on some rows.

        Raises
        ------
        Undefined
            If the model has no such method.
        """
        if what in self._known and X is self.X:
            return self._known[what]
        if self.estimator is None:
            raise Undefined(f"the model's {what} was not kept")
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
    """Score a fitted model on test rows.

    Parameters
    ----------
    names : iterable of str
        Names of scores (``accuracy``, ``auc`` …).
    estimator : object
        A fitted classifier or novelty detector, with the parts that the scores need.
    X : ndarray or csr_array of shape (n_samples, n_features)
        The test rows.
    y : ndarray of shape (n_samples,)
        Their labels.
    training : tuple of (X, y), optional
        The training rows, for scores that need them; y is None if the model was fitted without
        labels.

    Returns
    -------
    metrics : dict of str to float
        Finite values by their names in records (``accuracy_pct``, ``auc_pct`` …).
    undefined : dict of str to str
        The reason for each undefined score, by the same names.

    Raises
    ------
    svmbench.base.errors.UnknownNameError
        For an unknown score.
    """
    return compute_scores(names, Evaluation(estimator, X, np.asarray(y), training))


def compute_scores(
    names: Iterable[str], evaluation: Evaluation
) -> tuple[dict[str, float], dict[str, str]]:
    """Return the scores of an `Evaluation`, and reasons for undefined ones; see `evaluate`."""
    metrics: dict[str, float] = {}
    undefined: dict[str, str] = {}
    for name in names:
        declared = find(name)
        try:
            if not len(evaluation.y):
                raise Undefined("there are no test rows")
            value = float(declared.function(evaluation))
            if not math.isfinite(value):
                raise Undefined("its value is not finite")
        except Undefined as reason:
            undefined[declared.metric] = str(reason)
        else:
            metrics[declared.metric] = value
    return metrics, undefined


def values_of_models(models: Sequence[Any], X: Any) -> np.ndarray:
    """Return the decision values (n_models, n_samples) of two-class models.

    For linear models, one product computes all values.
    """
    if all(hasattr(model, "coef_") for model in models):
        W = np.vstack([model.coef_ for model in models])
        offsets = np.concatenate([model.intercept_ for model in models])
        return np.asarray((X @ W.T + offsets).T)
    return np.array([model.decision_function(X) for model in models])


def find(name: str) -> Score:
    """Return a score by its name.

    Raises
    ------
    svmbench.base.errors.UnknownNameError
        If the name is unknown; the message suggests the most similar one.
    """
    if name not in SCORES:
        raise UnknownNameError("score", name, list(SCORES))
    return SCORES[name]


def describe_scores(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the fields of scores that a plan holds for reports, by metric."""
    return {(score := find(name)).metric: score.for_plan() for name in names}


def _place(function: Callable[..., Any]) -> tuple[str, str]:
    return function.__module__, function.__qualname__


def named(model: Any) -> str:
    """Return the name of a model in messages."""
    return type(model).__name__


# The score of every protocol that is asked for no other stands here, so that the keys of its cells
# cover no code of other scores.
@score(
    "accuracy", metric="accuracy_pct", caption="accuracy (%)", unit="%",
    better="higher", tolerance=0.5,
)  # fmt: skip
def accuracy(evaluation: Evaluation) -> float:
    """Share of the rows that get their own class."""
    return 100.0 * float(np.mean(evaluation.predicted == evaluation.y))
