"""The log-loss of calibrated probabilities, with Platt's calibration."""

from __future__ import annotations

import math

import numpy as np

from svmbench.schema.scores.contract import Evaluation, Undefined, score


@score(
    "log-loss", metric="log_loss", caption="log-loss of calibrated margins (nats)", unit="nats",
    better="lower", tolerance=0.02, needs=("decision_function", "training"),
)  # fmt: skip
def log_loss(evaluation: Evaluation) -> float:
    """Return the mean negative log-likelihood of the test labels, after calibration.

    The probability of the positive class is Platt's sigmoid of the decision value, fitted to the
    decision values of the training rows with his smoothed targets. No row is held out, so that all
    scores rate the same model. A model that separates its training rows is therefore overconfident,
    which increases its log-loss.
    """
    if evaluation.training is None or evaluation.training[1] is None:
        raise Undefined("calibration needs the training rows with their labels")
    decisions, positive = evaluation.decisions, evaluation.positive
    strangers = ~np.isin(evaluation.y, evaluation.classes)
    if np.any(strangers):
        raise Undefined(f"the model has never seen the class {evaluation.y[strangers][0]}")
    X, y = evaluation.training
    margins = np.asarray(evaluation.call_method("decision_function", X), dtype=np.float64)
    labels = np.asarray(y) == evaluation.classes[1]
    if np.all(labels) or not np.any(labels):
        raise Undefined("calibration needs training rows of two classes")
    if not np.all(np.isfinite(margins)):
        raise Undefined("some decision values of training rows are not finite")
    slope, offset = platt_sigmoid(margins, labels)
    z = slope * decisions + offset
    return float(np.mean(np.logaddexp(0.0, np.where(positive, -z, z))))


def platt_sigmoid(margins: np.ndarray, positive: np.ndarray) -> tuple[float, float]:
    """Fit P(positive) = 1 / (1 + exp(-(slope * margin + offset))) by maximum likelihood.

    Targets are Platt's (Probabilistic outputs for support vector machines, 1999):
    (n₊ + 1) / (n₊ + 2) and 1 / (n₋ + 2), which keep the optimum finite where margins separate the
    classes. The fit takes Newton steps, halved until the likelihood grows (Lin, Lin and Weng 2007).

    Parameters
    ----------
    margins : ndarray of shape (n_samples,)
        Finite decision values.
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
        # The ridge keeps the Hessian invertible if all margins are equal.
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
