"""Scores of the predictions and decision values of a model.

The positive class of precision, recall and F1 is the second of two classes, which has decision
values above 0. In novelty detection it is the normal class, 1, as in scikit-learn. With more
classes, these scores are means over the classes.
"""

from __future__ import annotations

import numpy as np

from svmbench.schema.scores.contract import Evaluation, Undefined, score


@score(
    "balanced-accuracy", metric="balanced_accuracy_pct", caption="balanced accuracy (%)",
    unit="%", better="higher", tolerance=0.5,
)  # fmt: skip
def balanced_accuracy(evaluation: Evaluation) -> float:
    """Return the mean over the classes of their recall, in per cent."""
    return _share(
        evaluation, np.diag(evaluation.confusion), _true(evaluation), "has no test rows", every=True
    )


@score(
    "auc", metric="auc_pct", caption="AUC (%)", unit="%", better="higher", tolerance=0.5,
    needs=("decision_function",),
)  # fmt: skip
def auc(evaluation: Evaluation) -> float:
    """Return the percentage of ordered pairs of a positive and a negative row; ties count half."""
    from scipy.stats import rankdata

    positive = evaluation.positive
    n_positive, n_negative = int(np.sum(positive)), int(np.sum(~positive))
    if not (n_positive and n_negative):
        raise Undefined(f"all test rows belong to one class, {evaluation.y[0]}")
    ranks = rankdata(evaluation.decisions)[positive].sum() - n_positive * (n_positive + 1) / 2
    return 100.0 * float(ranks) / (n_positive * n_negative)


@score(
    "f1", metric="f1_pct", caption="F1 (%)", unit="%", better="higher", tolerance=0.5,
)  # fmt: skip
def f1(evaluation: Evaluation) -> float:
    """Return the harmonic mean of precision and recall, in per cent."""
    either = _true(evaluation) + _predicted(evaluation)
    right = 2 * np.diag(evaluation.confusion)
    return _share(evaluation, right, either, "has no test rows and is predicted for none")


@score(
    "precision", metric="precision_pct", caption="precision (%)", unit="%",
    better="higher", tolerance=0.5,
)  # fmt: skip
def precision(evaluation: Evaluation) -> float:
    """Return the percentage of positive rows among the rows predicted positive."""
    return _share(
        evaluation, np.diag(evaluation.confusion), _predicted(evaluation), "is predicted for no row"
    )


@score(
    "recall", metric="recall_pct", caption="recall (%)", unit="%", better="higher", tolerance=0.5,
)  # fmt: skip
def recall(evaluation: Evaluation) -> float:
    """Return the percentage of positive rows that are predicted positive."""
    right = np.diag(evaluation.confusion)
    return _share(evaluation, right, _true(evaluation), "has no test rows")


def _true(evaluation: Evaluation) -> np.ndarray:
    """Return the number of test rows of each class."""
    return np.array([int(np.sum(evaluation.y == label)) for label in evaluation.classes])


def _predicted(evaluation: Evaluation) -> np.ndarray:
    """Return the number of test rows predicted for each class."""
    return np.array([int(np.sum(evaluation.predicted == label)) for label in evaluation.classes])


def _share(
    evaluation: Evaluation, part: np.ndarray, whole: np.ndarray, why: str, *, every: bool = False
) -> float:
    """Return 100 part / whole of the positive class of two, else the mean over the classes."""
    counted = range(len(evaluation.classes)) if every or len(evaluation.classes) > 2 else [1]
    for c in counted:
        if not whole[c]:
            raise Undefined(f"the class {evaluation.classes[c]} {why}")
    return 100.0 * float(np.mean([part[c] / whole[c] for c in counted]))
