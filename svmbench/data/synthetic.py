"""Generate artificial data sets from seeds, and load those of scikit-learn.

An entry of the registry names a function of this module in ``builtin``, and its arguments in
``parameters``. Every function returns the training part and the test part (or None). A generator
never changes its result for a seed; a changed generator gets a new name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from svmbench.data.derive import LabelledRows

TrainAndTest = tuple[LabelledRows, LabelledRows | None]

#: Largest number of values (rows times features) of a generated data set: 400 MB, and twice as
#: much during its generation.
MAX_GENERATED_VALUES = 50_000_000
#: Largest number of features of a generated data set.
MAX_GENERATED_FEATURES = 1_000_000
#: `separable` needs at least this share of rows outside the margin; else it would not end.
MIN_ACCEPTANCE_RATE = 0.001

#: Default number of features.
_USUAL_FEATURES = 300


def refuse_large(parameters: Mapping[str, Any]) -> None:
    """Raise an error for parameters of a data set that would be too large.

    Parameters
    ----------
    parameters : mapping
        Parameters of one of the functions below, which check values that are not numbers.

    Raises
    ------
    ValueError
        If a count is not a positive whole number, or if there are too many values or features.
    """
    counts = {key: value for key, value in parameters.items() if key.startswith("n_")}
    for key, value in counts.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ValueError(f"{key} must be a whole number of at least 1")
    for key in ("n_features", "n_classes"):
        if counts.get(key, 0) > MAX_GENERATED_FEATURES:
            raise ValueError(f"{key} is {counts[key]:,}, more than {MAX_GENERATED_FEATURES:,}")
    positive, negative = counts.get("n_positive", 0), counts.get("n_negative", 0)
    n_classes = counts.get("n_classes", 1)
    n_rows = max(counts.get("n_samples", 0), positive + negative, n_classes)
    n_rows = max(n_rows, n_classes * counts.get("n_per_class", 0))
    in_the_plane = "n_positive" in counts
    n_values = n_rows * counts.get("n_features", 2 if in_the_plane else _USUAL_FEATURES)
    if n_values > MAX_GENERATED_VALUES:
        raise ValueError(
            f"the data set would have {n_values:,} values (rows times features), more than"
            f" {MAX_GENERATED_VALUES:,}"
        )


def _shuffled(X: Any, y: np.ndarray, rng: np.random.Generator) -> TrainAndTest:
    order = rng.permutation(len(y))
    return LabelledRows(X[order], y[order]), None


def linear(*, n_samples: int, n_features: int, noise: float, seed: int) -> TrainAndTest:
    """Generate dense standard-normal inputs with labels from a random hyperplane and label noise.

    Parameters
    ----------
    n_samples, n_features : int
        Shape.
    noise : float
        Share of labels that are flipped, so the best accuracy is about ``1 - noise``.
    seed : int
        Random seed.
    """
    rng = np.random.default_rng(seed)
    w = rng.standard_normal(n_features)
    X = rng.standard_normal((n_samples, n_features))
    y = np.where(X @ w > 0, 1, -1)
    y[rng.random(n_samples) < noise] *= -1
    return LabelledRows(X, y), None


def sparse_linear(
    *, n_samples: int, n_features: int, density: float, noise: float, seed: int
) -> TrainAndTest:
    """Generate sparse binary inputs with labels from a hyperplane through the median, and noise.

    Parameters
    ----------
    n_samples, n_features : int
        Shape.
    density : float
        Probability of each value to be 1.
    noise : float
        Share of labels that are flipped.
    seed : int
        Random seed.
    """
    rng = np.random.default_rng(seed)
    X = _random_bits(rng, n_samples, n_features, density)
    score = X @ rng.standard_normal(n_features)
    y = np.where(score > np.median(score), 1, -1)
    y[rng.random(n_samples) < noise] *= -1
    return LabelledRows(X, y), None


def _random_bits(
    rng: np.random.Generator, n_samples: int, n_features: int, density: float
) -> sp.csr_array:
    """Return a CSR array of independent bits with probability `density`."""
    counts = rng.binomial(n_features, density, size=n_samples)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    indices = np.empty(indptr[-1], dtype=np.int32)
    for i in range(n_samples):
        row = rng.choice(n_features, size=counts[i], replace=False)
        row.sort()
        indices[indptr[i] : indptr[i + 1]] = row
    return sp.csr_array(
        (np.ones(len(indices)), indices, indptr.astype(np.int32)), shape=(n_samples, n_features)
    )


def separable(
    *, n_samples: int, n_features: int = _USUAL_FEATURES, density: float = 0.1, seed: int = 0
) -> TrainAndTest:
    """Generate Platt's linearly separable set: random bits, a random weight vector, a margin.

    The weights are uniform in [−1, 1]. A row with w·x > 1 is positive, one with w·x < −1
    negative, and a row between is drawn again.

    Parameters
    ----------
    n_samples : int
        Number of rows outside the margin.
    n_features : int, default=300
        Binary inputs.
    density : float, default=0.1
        Share of ones.
    seed : int, default=0
        Random seed.

    Raises
    ------
    ValueError
        If hardly any row lies outside the margin.
    """
    rng = np.random.default_rng(seed)
    w = rng.uniform(-1, 1, n_features)
    rows_outside: list[sp.csr_array] = []
    scores: list[np.ndarray] = []
    n_kept = drawn = 0
    while n_kept < n_samples:
        X = _random_bits(rng, 2048, n_features, density)
        score = X @ w
        outside = np.abs(score) > 1
        rows_outside.append(X[outside])
        scores.append(score[outside])
        n_kept, drawn = n_kept + int(outside.sum()), drawn + len(outside)
        if n_kept < MIN_ACCEPTANCE_RATE * drawn:
            raise ValueError("hardly any row lies outside the margin; raise density or n_features")
    X = sp.csr_array(sp.vstack(rows_outside, format="csr"))[:n_samples]
    y = np.where(np.concatenate(scores)[:n_samples] > 0, 1, -1)
    return LabelledRows(X, y), None


def noise(
    *, n_samples: int, n_features: int = _USUAL_FEATURES, density: float = 0.1, seed: int = 0
) -> TrainAndTest:
    """Generate Platt's noise set: random bits with independent random labels.

    Parameters
    ----------
    n_samples : int
        Rows.
    n_features : int, default=300
        Binary inputs.
    density : float, default=0.1
        Share of ones.
    seed : int, default=0
        Random seed.
    """
    rng = np.random.default_rng(seed)
    X = _random_bits(rng, n_samples, n_features, density)
    return LabelledRows(X, np.where(rng.random(n_samples) < 0.5, 1, -1)), None


def gaussians(
    *, mean_positive: float, mean_negative: float, n_positive: int, n_negative: int, seed: int
) -> TrainAndTest:
    """Draw two classes in the plane, each from a normal distribution N(m·(1, 1), I).

    Parameters
    ----------
    mean_positive, mean_negative : float
        m of each class.
    n_positive, n_negative : int
        Rows of each class.
    seed : int
        Random seed.
    """
    rng = np.random.default_rng(seed)
    X = np.vstack(
        [
            rng.standard_normal((n_positive, 2)) + mean_positive,
            rng.standard_normal((n_negative, 2)) + mean_negative,
        ]
    )
    return _shuffled(X, _signs(n_positive, n_negative), rng)


def circle(*, n_positive: int, n_negative: int, seed: int, spread: float = 0.15) -> TrainAndTest:
    """Draw a disc of radius 1 (positive) inside a ring of radii 1.2 to 2, both blurred.

    Parameters
    ----------
    n_positive, n_negative : int
        Rows of each class.
    seed : int
        Random seed.
    spread : float, default=0.15
        Standard deviation of the blur.
    """
    rng = np.random.default_rng(seed)
    # The square root makes the points uniform in area.
    radius = np.concatenate(
        [np.sqrt(rng.uniform(0, 1, n_positive)), np.sqrt(rng.uniform(1.44, 4, n_negative))]
    )
    angle = rng.uniform(0, 2 * np.pi, n_positive + n_negative)
    X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    X += rng.normal(scale=spread, size=X.shape)
    return _shuffled(X, _signs(n_positive, n_negative), rng)


def exclusive(*, n_positive: int, n_negative: int, seed: int, spread: float = 0.4) -> TrainAndTest:
    """Draw the XOR problem: positive around (1, 1) and (−1, −1), negative around the other corners.

    Parameters
    ----------
    n_positive, n_negative : int
        Rows of each class.
    seed : int
        Random seed.
    spread : float, default=0.4
        Standard deviation around each corner.
    """
    rng = np.random.default_rng(seed)
    y = _signs(n_positive, n_negative)
    first = np.where(rng.random(len(y)) < 0.5, 1.0, -1.0)
    X = np.column_stack([first, first * y]) + rng.normal(scale=spread, size=(len(y), 2))
    return _shuffled(X, y, rng)


def spiral(
    *, n_positive: int, n_negative: int, seed: int, turns: float = 1.5, spread: float = 0.1
) -> TrainAndTest:
    """Draw two interleaved Archimedean spirals, turned against each other by half a circle.

    Parameters
    ----------
    n_positive, n_negative : int
        Rows of each class.
    seed : int
        Random seed.
    turns : float, default=1.5
        Turns of each arm.
    spread : float, default=0.1
        Standard deviation of the blur.
    """
    rng = np.random.default_rng(seed)
    y = _signs(n_positive, n_negative)
    # The square root spaces the points evenly along the arm.
    angle = 2 * np.pi * turns * np.sqrt(rng.uniform(0.02, 1, len(y)))
    radius = angle / np.pi
    phase = angle + np.where(y > 0, 0.0, np.pi)
    X = np.column_stack([radius * np.cos(phase), radius * np.sin(phase)])
    X += rng.normal(scale=spread, size=X.shape)
    return _shuffled(X, y, rng)


def clusters(
    *, n_classes: int, n_per_class: int, n_features: int, seed: int, spread: float = 0.5
) -> TrainAndTest:
    """Draw classes of equal size, each normal around a standard-normal centre.

    Parameters
    ----------
    n_classes, n_per_class, n_features : int
    seed : int
        Random seed.
    spread : float, default=0.5
        Standard deviation of the samples in every direction.
    """
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((n_classes, n_features))
    y = np.repeat(np.arange(n_classes), n_per_class)
    X = centres[y] + rng.normal(scale=spread, size=(len(y), n_features))
    return _shuffled(X, y, rng)


def _signs(n_positive: int, n_negative: int) -> np.ndarray:
    return np.concatenate([np.ones(n_positive, np.int64), -np.ones(n_negative, np.int64)])


def sklearn_breast_cancer() -> TrainAndTest:
    """Load scikit-learn's Wisconsin diagnostic breast cancer data; benign is positive."""
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer()
    return LabelledRows(bunch.data, np.array(bunch.target_names)[bunch.target]), None


def sklearn_digits() -> TrainAndTest:
    """Load scikit-learn's 8 × 8 digits (the test part of optdigits), labelled 0 … 9."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    return LabelledRows(bunch.data, bunch.target), None


def sklearn_wine() -> TrainAndTest:
    """Load scikit-learn's wine data, labelled 0, 1 and 2."""
    from sklearn.datasets import load_wine

    bunch = load_wine()
    return LabelledRows(bunch.data, bunch.target), None


def sklearn_iris() -> TrainAndTest:
    """Load scikit-learn's iris data, which has Fisher's values, with the names of the species."""
    from sklearn.datasets import load_iris

    bunch = load_iris()
    return LabelledRows(bunch.data, np.array(bunch.target_names)[bunch.target]), None


#: The functions that an entry's ``builtin`` may name.
BUILTINS: dict[str, Callable[..., TrainAndTest]] = {
    make.__name__: make
    for make in (
        linear,
        sparse_linear,
        separable,
        noise,
        gaussians,
        circle,
        exclusive,
        spiral,
        clusters,
        sklearn_breast_cancer,
        sklearn_digits,
        sklearn_wine,
        sklearn_iris,
    )
}
