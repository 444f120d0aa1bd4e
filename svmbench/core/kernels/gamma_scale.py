"""The value of a kernel's gamma that depends on the inputs: ``"scale"`` and ``"auto"``."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

#: A variance below this share of the mean square has lost half of its digits to cancellation.
CANCELLED = 1e-8

#: The words that `gamma` may be, as in scikit-learn.
RULES = ("scale", "auto")


def gamma_value(gamma: Any, X: Any) -> float:
    """Return the number that a parameter `gamma` stands for on some inputs.

    Parameters
    ----------
    gamma : float, "scale" or "auto"
        ``"auto"`` is 1 / n_features.
    X : ndarray or csr_array of shape (n_samples, n_features)
    """
    if isinstance(gamma, str):
        return gamma_scale(X) if gamma == "scale" else 1.0 / X.shape[1]
    return float(gamma)


def gamma_scale(X: Any) -> float:
    """Return the gamma that is called ``"scale"``: 1 / (n_features * variance of X); 1 if flat.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
    """
    # Summed over the same numbers in the same order, dense or sparse: a last bit of gamma can fork
    # a solver's way.
    values = X.data if sp.issparse(X) else X.ravel()
    values = values[values != 0.0]
    size = X.shape[0] * X.shape[1]
    mean, square = values.sum() / size, values @ values / size
    variance = float(square - mean**2)
    if variance < CANCELLED * square:
        variance = _variance_by_deviations(values, size)
    return 1.0 / (X.shape[1] * variance) if variance > 0.0 else 1.0


def _variance_by_deviations(values: np.ndarray, size: int) -> float:
    """Return the variance of some nonzero values among zeros, `size` numbers in all.

    As the mean of squared deviations it does not cancel; taken from the first value, numbers that
    are all the same have none, to the last bit.
    """
    n_zeros = size - len(values)
    deviations, of_zeros = values - values[0], -values[0] if n_zeros else 0.0
    mean = (deviations.sum() + n_zeros * of_zeros) / size
    deviations -= mean
    return float((deviations @ deviations + n_zeros * (of_zeros - mean) ** 2) / size)
