"""Data sets that need no file: generated ones, each from its seed alone, and scikit-learn's own.

A registry entry names a function of this module in ``builtin`` and its arguments in
``parameters``. Every function returns the training part and the test part (or None). What a seed
gives never changes: a change of a generator is a new name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from svmbench.data.derive import Part

Parts = tuple[Part, Part | None]

#: Values of a generated data set, rows times features, zeros too: twice 400 MB while it is made.
MOST_VALUES = 50_000_000
#: Features of one: each has a weight, however few rows there are.
MOST_FEATURES = 1_000_000
#: The least chance of a row of `separable` to lie outside the margin; else it draws for ever.
LEAST_KEPT = 0.001

#: Features where the parameters don't say how many.
_USUAL_FEATURES = 300


def refuse_large(parameters: Mapping[str, Any]) -> None:
    """Raise for parameters of a data set that would be too large, before any of it is made.

    Parameters
    ----------
    parameters : mapping
        Of one of this module's functions. What is no number is left to that function.

    Raises
    ------
    ValueError
        For a count that is negative or no whole number, and for too many values or features.
    """
    counts = {key: value for key, value in parameters.items() if key.startswith("n_")}
    for key, value in counts.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ValueError(f"{key} should be a whole number of at least 1")
    for key in ("n_features", "n_classes"):
        if counts.get(key, 0) > MOST_FEATURES:
            raise ValueError(f"{key} is {counts[key]:,}, more than {MOST_FEATURES:,}")
    positive, negative = counts.get("n_positive", 0), counts.get("n_negative", 0)
    n_classes = counts.get("n_classes", 1)
    n_rows = max(counts.get("n_samples", 0), positive + negative, n_classes)
    n_rows = max(n_rows, n_classes * counts.get("n_per_class", 0))
    in_the_plane = "n_positive" in counts
    n_values = n_rows * counts.get("n_features", 2 if in_the_plane else _USUAL_FEATURES)
    if n_values > MOST_VALUES:
        raise ValueError(
            f"they ask for {n_values:,} values (rows times features), more than {MOST_VALUES:,}"
        )


def _shuffled(X: Any, y: np.ndarray, rng: np.random.Generator) -> Parts:
    order = rng.permutation(len(y))
    return Part(X[order], y[order]), None


def linear(*, n_samples: int, n_features: int, noise: float, seed: int) -> Parts:
    """Dense standard-normal inputs, labels by a random hyperplane, a share of them flipped.

    Parameters
    ----------
    n_samples, n_features : int
        Shape.
    noise : float
        Share of labels that are flipped, so the best accuracy is about ``1 - noise``.
    seed : int
        Of everything.
    """
    rng = np.random.default_rng(seed)
    w = rng.standard_normal(n_features)
    X = rng.standard_normal((n_samples, n_features))
    y = np.where(X @ w > 0, 1, -1)
    y[rng.random(n_samples) < noise] *= -1
    return Part(X, y), None


def sparse_linear(
    *, n_samples: int, n_features: int, density: float, noise: float, seed: int
) -> Parts:
    """Sparse binary inputs, labels by a random hyperplane through the median, some flipped.

    Parameters
    ----------
    n_samples, n_features : int
        Shape.
    density : float
        Chance of each entry to be 1.
    noise : float
        Share of labels that are flipped.
    seed : int
        Of everything.
    """
    rng = np.random.default_rng(seed)
    X = _random_bits(rng, n_samples, n_features, density)
    score = X @ rng.standard_normal(n_features)
    y = np.where(score > np.median(score), 1, -1)
    y[rng.random(n_samples) < noise] *= -1
    return Part(X, y), None


def _random_bits(
    rng: np.random.Generator, n_samples: int, n_features: int, density: float
) -> sp.csr_array:
    """Return a CSR array whose entries are 1 independently with chance `density`."""
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
) -> Parts:
    """Platt's linearly separable set: random bits, a random weight vector, a margin.

    The weights are uniform in [−1, 1]. A row with w·x > 1 is positive, one with w·x < −1
    negative, and what lies between is drawn again.

    Parameters
    ----------
    n_samples : int
        Rows after discarding.
    n_features : int, default=300
        Binary inputs.
    density : float, default=0.1
        Share of ones.
    seed : int, default=0
        Of everything.

    Raises
    ------
    ValueError
        If hardly any row lies outside the margin.
    """
    rng = np.random.default_rng(seed)
    w = rng.uniform(-1, 1, n_features)
    kept: list[sp.csr_array] = []
    scores: list[np.ndarray] = []
    have = drawn = 0
    while have < n_samples:
        X = _random_bits(rng, 2048, n_features, density)
        score = X @ w
        outside = np.abs(score) > 1
        kept.append(X[outside])
        scores.append(score[outside])
        have, drawn = have + int(outside.sum()), drawn + len(outside)
        if have < LEAST_KEPT * drawn:
            raise ValueError("hardly any row lies outside the margin; raise density or n_features")
    X = sp.csr_array(sp.vstack(kept, format="csr"))[:n_samples]
    y = np.where(np.concatenate(scores)[:n_samples] > 0, 1, -1)
    return Part(X, y), None


def noise(
    *, n_samples: int, n_features: int = _USUAL_FEATURES, density: float = 0.1, seed: int = 0
) -> Parts:
    """Platt's noise set: random bits and random labels; nothing can be learnt from it.

    Parameters
    ----------
    n_samples : int
        Rows.
    n_features : int, default=300
        Binary inputs.
    density : float, default=0.1
        Share of ones.
    seed : int, default=0
        Of everything.
    """
    rng = np.random.default_rng(seed)
    X = _random_bits(rng, n_samples, n_features, density)
    return Part(X, np.where(rng.random(n_samples) < 0.5, 1, -1)), None


def gaussians(
    *, mean_positive: float, mean_negative: float, n_positive: int, n_negative: int, seed: int
) -> Parts:
    """Two normal distributions in the plane, N(m·(1, 1), I) for each class.

    Parameters
    ----------
    mean_positive, mean_negative : float
        m of each class.
    n_positive, n_negative : int
        Rows of each class.
    seed : int
        Of everything.
    """
    rng = np.random.default_rng(seed)
    X = np.vstack(
        [
            rng.standard_normal((n_positive, 2)) + mean_positive,
            rng.standard_normal((n_negative, 2)) + mean_negative,
        ]
    )
    return _shuffled(X, _signs(n_positive, n_negative), rng)


def circle(*, n_positive: int, n_negative: int, seed: int, spread: float = 0.15) -> Parts:
    """Disc of radius 1 (positive) inside a ring of radii 1.2 to 2, both blurred.

    Parameters
    ----------
    n_positive, n_negative : int
        Rows of each class.
    seed : int
        Of everything.
    spread : float, default=0.15
        Standard deviation of the blur.
    """
    rng = np.random.default_rng(seed)
    # The root makes the points uniform in area rather than in radius.
    radius = np.concatenate(
        [np.sqrt(rng.uniform(0, 1, n_positive)), np.sqrt(rng.uniform(1.44, 4, n_negative))]
    )
    angle = rng.uniform(0, 2 * np.pi, n_positive + n_negative)
    X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    X += rng.normal(scale=spread, size=X.shape)
    return _shuffled(X, _signs(n_positive, n_negative), rng)


def exclusive(*, n_positive: int, n_negative: int, seed: int, spread: float = 0.4) -> Parts:
    """XOR: the positive class around (1, 1) and (−1, −1), the negative around the other corners.

    Parameters
    ----------
    n_positive, n_negative : int
        Rows of each class.
    seed : int
        Of everything.
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
) -> Parts:
    """Two interleaved Archimedean spirals, one the other turned by half a circle.

    Parameters
    ----------
    n_positive, n_negative : int
        Rows of each class.
    seed : int
        Of everything.
    turns : float, default=1.5
        Turns of each arm.
    spread : float, default=0.1
        Standard deviation of the blur.
    """
    rng = np.random.default_rng(seed)
    y = _signs(n_positive, n_negative)
    # The root spaces the points evenly along an arm whose radius grows with its angle.
    angle = 2 * np.pi * turns * np.sqrt(rng.uniform(0.02, 1, len(y)))
    radius = angle / np.pi
    phase = angle + np.where(y > 0, 0.0, np.pi)
    X = np.column_stack([radius * np.cos(phase), radius * np.sin(phase)])
    X += rng.normal(scale=spread, size=X.shape)
    return _shuffled(X, y, rng)


def clusters(
    *, n_classes: int, n_per_class: int, n_features: int, seed: int, spread: float = 0.5
) -> Parts:
    """Classes of one size, each a normal distribution around a standard-normal centre.

    Parameters
    ----------
    n_classes, n_per_class, n_features : int
    seed : int
        Of everything.
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


def sklearn_breast_cancer() -> Parts:
    """Wisconsin diagnostic breast cancer as scikit-learn ships it; benign is positive."""
    from sklearn.datasets import load_breast_cancer

    held = load_breast_cancer()
    return Part(held.data, np.array(held.target_names)[held.target]), None


def sklearn_digits() -> Parts:
    """scikit-learn's 8 × 8 digits (the test part of optdigits), labelled 0 … 9."""
    from sklearn.datasets import load_digits

    held = load_digits()
    return Part(held.data, held.target), None


#: What a registry entry's ``builtin`` may name.
BUILTINS: dict[str, Callable[..., Parts]] = {
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
    )
}
