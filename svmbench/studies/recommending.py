"""Which of some fitted solvers to take, and how certain its score is.

:func:`recommended` chooses by the scores over folds of the training rows and by prediction times.
The test rows only judge the choice: an interval of its score, comparisons with the baselines, and
warnings.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

#: The metrics by scikit-learn's names, with their names in the table.
METRICS = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "roc_auc": "area under the ROC curve",
}
ACCURACY, BALANCED, ROC_AUC = METRICS
#: A solver is not recommended if its score is more percentage points below the best.
MAX_POINTS_BELOW_BEST = 1.0
#: A solver is preferred to a simpler one of the same score if it predicts faster by this factor.
MUCH_FASTER = 2.0
#: Folds and test rows disagree if their scores differ by more standard errors of the difference.
CLEAR_STANDARD_ERRORS = 2.0


@dataclass(frozen=True)
class Fitted:
    """A trial with its pipeline, its predictions of the test rows and its influence values.

    ``influences`` has an array for each group of test rows. The variance of the score, and that of
    a difference between two scores on the same rows, is the sum over groups of the variance of
    these values divided by the number of rows (for the area under the ROC curve: DeLong et al.
    1988, equation 5). ``searched`` is the search of its parameters, None for the most frequent
    class.
    """

    trial: Trial
    model: Any
    predicted: np.ndarray
    influences: list[np.ndarray]
    searched: Searched | None = None

    @property
    def folds(self) -> Searched:
        """The search of the solver's parameters.

        Raises
        ------
        ValueError
            For the most frequent class.
        """
        if self.searched is None:
            msg = f"{self.trial.solver} was not searched"
            raise ValueError(msg)
        return self.searched


@dataclass(frozen=True)
class Trial:
    """A solver on the leaderboard.

    Attributes
    ----------
    solver : str
    score_pct : float
        The score on the test rows, by the metric that chooses the solver. It has no part in
        the choice.
    interval_pct : tuple of float
        The 95 % interval of the score over random draws of the test rows.
    folds_pct, folds_spread_pct : float or None
        Mean and standard deviation of the same metric over the folds of the search, which consist
        of training rows. The mean chooses the solver. None for the most frequent class.
    accuracy_pct, balanced_accuracy_pct : float
        Scores on the test rows.
    fit_s, predict_s : float
        Seconds of the last fit, and of predicting all test rows (the median of several times).
    size_kb : float
        Size of the pipeline's file.
    params : dict
        Chosen parameters.
    n_train : int
        Number of rows that the model was fitted on, which are all or a part of the training rows.
    """

    solver: str
    score_pct: float
    accuracy_pct: float
    balanced_accuracy_pct: float
    fit_s: float
    predict_s: float
    size_kb: float
    params: dict[str, Any]
    n_train: int = 0
    interval_pct: tuple[float, float] = (0.0, 100.0)
    folds_pct: float | None = None
    folds_spread_pct: float | None = None


@dataclass(frozen=True)
class Searched:
    """The result of a search.

    Attributes
    ----------
    params : dict
        The point with the best mean score.
    scores : ndarray of shape (n_folds,)
        Its scores.
    n_tried, n_points : int
        Points that were tried, and points of the grid.
    seconds : float
        Wall time of the search.
    n_predicted : int
        Largest number of classes that the best point predicted in a fold.
    """

    params: dict[str, Any]
    scores: np.ndarray
    n_tried: int
    n_points: int
    seconds: float
    n_predicted: int = 1

    @property
    def seconds_of_all(self) -> float:
        """About the time that all points would take."""
        return self.seconds / self.n_tried * self.n_points


def influences_on(metric: str, y: np.ndarray, predicted: np.ndarray, values: Any) -> list[Any]:
    """Return the arrays from which the standard error of a score follows.

    Parameters
    ----------
    metric : {"accuracy", "balanced_accuracy", "roc_auc"}
    y, predicted : ndarray of shape (n_samples,)
    values : ndarray of shape (n_samples,) or None
        Decision values, which "roc_auc" needs.
    """
    import numpy as np
    from scipy.stats import rankdata

    right = (predicted == y).astype(np.float64)
    classes = np.unique(y)
    if metric == ACCURACY:
        return [right]
    if metric == BALANCED:
        return [right[y == label] / len(classes) for label in classes]
    positive = y == classes[1]
    ranks = rankdata(values)
    # For each row the share of the rows of the other class that lie on the right side of it.
    below = (ranks[positive] - rankdata(values[positive])) / int((~positive).sum())
    above = 1 - (ranks[~positive] - rankdata(values[~positive])) / int(positive.sum())
    return [below, above]


def interval_of(metric: str, influences: list[np.ndarray]) -> tuple[float, float]:
    """Return the 95 % interval, in per cent, of a score on random test rows.

    An accuracy gets Wilson's interval of a share. For the mean of the classes' accuracies, each
    class gets Wilson's interval, and the squares of their half-lengths are added (Zou and Donner
    2008). The area under the ROC curve gets Wilson's interval of a share of as many rows as give
    the same variance; if the variance is 0, of as many rows as the smaller class has.

    Parameters
    ----------
    metric : {"accuracy", "balanced_accuracy", "roc_auc"}
    influences : list of ndarray
        As `influences_on` returns them.
    """
    import numpy as np

    from svmbench.report.numbers.comparisons import share_interval

    if metric == ROC_AUC:
        area = float(np.mean(influences[0]))
        variance = sum(float(np.var(values)) / len(values) for values in influences)
        n_rows = area * (1 - area) / variance if variance > 0 else min(map(len, influences))
        low, high = share_interval(area, n_rows)
        return 100 * low, 100 * high
    shares = [float(values.mean()) * len(influences) for values in influences]
    bounds = [share_interval(p, len(values)) for p, values in zip(shares, influences, strict=True)]
    mean = float(np.mean(shares))
    down = math.hypot(*(p - low for p, (low, _) in zip(shares, bounds, strict=True)))
    up = math.hypot(*(high - p for p, (_, high) in zip(shares, bounds, strict=True)))
    return 100 * (mean - down / len(shares)), 100 * (mean + up / len(shares))


def recommended(
    fitted: list[Fitted], metric: str, simplest_first: Sequence[str]
) -> tuple[Fitted, str]:
    """Return the solver to take and a sentence with the reason.

    The choice rests on the scores over folds of the training rows and on prediction times. Solvers
    whose score over folds is below the best by at most a standard error, and by at most
    `MAX_POINTS_BELOW_BEST` points, are equally good. Of the equally good solvers, those that
    predict the largest number of classes remain; of these, those whose prediction takes at most
    `MUCH_FASTER` times the least time; of these, the first of `simplest_first`
    is chosen.
    """
    best = max(fitted, key=over_folds)
    top = over_folds(best)
    near = [
        candidate
        for candidate in fitted
        if top - over_folds(candidate)
        <= min(error_over_folds(best, candidate), MAX_POINTS_BELOW_BEST)
    ]
    others = [
        f"{o.trial.solver} ({over_folds(o):.2f} %, {error_over_folds(best, o):.2f} points)"
        for o in near
        if o is not best
    ]
    n_classes = max(candidate.folds.n_predicted for candidate in near)
    near = [candidate for candidate in near if candidate.folds.n_predicted == n_classes]
    fastest_s = min(candidate.trial.predict_s for candidate in near)
    quick = [
        candidate for candidate in near if candidate.trial.predict_s <= MUCH_FASTER * fastest_s
    ]
    chosen = min(quick, key=lambda candidate: simplest_first.index(candidate.trial.solver))
    name, n_folds = chosen.trial.solver, len(best.folds.scores)
    if chosen is best:
        equal = (
            "; not clearly worse, by the standard error (in brackets) of the mean difference over"
            f" {n_folds} folds: {', '.join(others)}"
            if others
            else ""
        )
        return best, (
            f"Take {name}: {top:.2f} % is the best {METRICS[metric]} of the SVMs over"
            f" {n_folds} folds of the training rows{equal}."
        )
    reason = (
        "predicts more of the classes"
        if best.folds.n_predicted < n_classes
        else f"predicts {best.trial.predict_s / chosen.trial.predict_s:.2g} times as fast"
        if best.trial.predict_s > MUCH_FASTER * chosen.trial.predict_s
        else "is the simpler model"
    )
    return chosen, (
        f"Take {name}: it {reason}, and its {METRICS[metric]} of {over_folds(chosen):.2f} % over"
        f" {n_folds} folds of the training rows is as good as the {top:.2f} % of"
        f" {best.trial.solver}: the standard error of the mean difference over these folds is"
        f" {error_over_folds(best, chosen):.2f} points."
    )


def over_folds(solver: Fitted) -> float:
    """Return the mean score over the folds of the search, in per cent."""
    return 100 * float(solver.folds.scores.mean())


def error_over_folds(first: Fitted, second: Fitted) -> float:
    """Return the standard error, in points, of the mean difference between scores over folds."""
    differences = first.folds.scores - second.folds.scores
    return 100 * float(differences.std(ddof=1)) / math.sqrt(len(differences))


def beaten_by(chosen: Fitted, baselines: list[Fitted], metric: str) -> str:
    """Return a sentence on a baseline that scores above the chosen solver; "" if none does."""
    best = max(baselines, key=lambda baseline: baseline.trial.score_pct)
    if best.trial.score_pct <= chosen.trial.score_pct:
        return ""
    error = standard_error(best, chosen)
    near = best.trial.score_pct - chosen.trial.score_pct <= error
    return (
        f" On the test rows the baseline {best.trial.solver} reaches {best.trial.score_pct:.2f} %"
        f" ({'within' if near else 'beyond'} the standard error of the difference between both,"
        f" {error:.2f} points): an SVM gains nothing over it here."
    )


def standard_error(first: Fitted, second: Fitted) -> float:
    """Return the standard error, in points, of a difference between scores of the test rows."""
    import numpy as np

    groups = zip(first.influences, second.influences, strict=True)
    variance = sum(np.var(ours - theirs) / len(ours) for ours, theirs in groups)
    return 100 * float(np.sqrt(variance))


def cautions(chosen: Fitted, frequent: Fitted, metric: str, y: np.ndarray) -> Iterator[str]:
    """Yield warnings about the recommended model.

    Parameters
    ----------
    chosen, frequent : Fitted
        The recommended model, and the one that always predicts the most frequent class.
    metric : str
    y : ndarray of shape (n_test,)
        Labels of the test rows.
    """
    if metric == ROC_AUC:
        gain, error = chosen.trial.score_pct - 50, standard_error(chosen, frequent)
    else:
        gain = chosen.trial.balanced_accuracy_pct - frequent.trial.balanced_accuracy_pct
        of_chosen, of_frequent = (
            replace(model, influences=influences_on(BALANCED, y, model.predicted, None))
            for model in (chosen, frequent)
        )
        error = standard_error(of_chosen, of_frequent)
    if gain <= CLEAR_STANDARD_ERRORS * error:
        yield (
            "Caution: the model is not clearly better than always predicting the most frequent"
            " class. Perhaps these columns don't tell the classes apart."
        )
    never = sorted(set(map(str, frequent.model.classes_)) - set(map(str, chosen.predicted)))
    if never:
        yield f"Caution: the model predicts none of the test rows as {', '.join(never)}."


def disagreement(chosen: Fitted, solvers: list[Fitted], metric: str) -> str:
    """Return a sentence if folds and test rows disagree, else "".

    They disagree if the mean over folds and the score on the test rows of the chosen solver differ
    by more than `CLEAR_STANDARD_ERRORS`, or if another solver is that much better on the test rows.
    """
    from svmbench.report.numbers.estimates import NORMAL_95

    low, high = chosen.trial.interval_pct
    spread = float(chosen.folds.scores.std(ddof=1))
    error = math.hypot(
        100 * spread / math.sqrt(len(chosen.folds.scores)), (high - low) / (2 * NORMAL_95)
    )
    apart = abs(over_folds(chosen) - chosen.trial.score_pct)
    if apart > CLEAR_STANDARD_ERRORS * error:
        return (
            f"Folds and test rows disagree: the {METRICS[metric]} of {chosen.trial.solver} is"
            f" {over_folds(chosen):.2f} % over the folds, which train on fewer rows, and"
            f" {chosen.trial.score_pct:.2f} % on the test rows: {apart:.2f} points apart, with a"
            f" standard error of {error:.2f}. Other splits (--seed) tell more."
        )
    first = max(solvers, key=lambda solver: solver.trial.score_pct)
    gain, error = first.trial.score_pct - chosen.trial.score_pct, standard_error(first, chosen)
    if gain > CLEAR_STANDARD_ERRORS * error:
        return (
            f"Folds and test rows disagree: on the test rows {first.trial.solver} is"
            f" {gain:.2f} points better than {chosen.trial.solver} (standard error {error:.2f}"
            " points). Other splits (--seed) tell more."
        )
    return ""


def number_to_quote(chosen: Fitted, n_test: int, metric: str) -> str:
    """Return a sentence with the score of the recommended model to quote, and its interval."""
    low, high = chosen.trial.interval_pct
    return (
        f"To quote: {METRICS[metric]} {chosen.trial.score_pct:.2f} % (95 % interval {low:.1f} to"
        f" {high:.1f} %) on {n_test:,} test rows, on which nothing was trained or chosen. Other"
        " test rows (--seed) give another number."
    )
