"""Scores of what a model says of the test rows.

The positive class of precision, recall and F1 is the later of two classes: the one that decision
values above 0 speak for. In novelty detection that is the normal class, 1, against -1, as
scikit-learn's outlier detectors have it. With more classes they are the mean over the classes.
"""

from __future__ import annotations

import numpy as np

from svmbench.schema.scores.contract import Exam, Undefined, score


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
