"""Kernels by name, or handed in: ``kernel="precomputed"``, or a function of two sets of samples.

Both of the latter come down to a matrix of kernel values: with all training samples against
themselves, and later with new samples against the training samples. What stands for a support
vector is its position.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from svmbench.core.contract.declaration import KERNELS
from svmbench.core.kernels.kernels import KernelFunction

PRECOMPUTED = "precomputed"

#: The named kernel whose matrix need not be positive semidefinite.
INDEFINITE = "sigmoid"


@dataclass(frozen=True)
class GivenKernel(KernelFunction):
    """A kernel whose values with all training samples are what is known of a sample."""

    name: str = PRECOMPUTED

    def take(self, X: Any, rows: np.ndarray) -> Any:
        """Return what stands for these training samples: their positions."""
        return rows

    def between(self, A: Any, B: Any) -> np.ndarray:
        """Return the values of samples (m, n_train) with training samples at positions B."""
        return np.ascontiguousarray(A[:, B])

    def diagonal(self, A: Any) -> np.ndarray:
        """Return nothing: a sample's value with itself is not among those with others."""
        raise AssertionError("a given kernel has no diagonal")


def is_given(kernel: Any) -> bool:
    """Return whether a parameter `kernel` is no name of a kernel of ours."""
    return callable(kernel) or (isinstance(kernel, str) and kernel == PRECOMPUTED)


def require_kernel(solver: str, taken: Sequence[str], kernel: Any) -> None:
    """Raise ValueError unless a kernel is one of those that a solver is declared with.

    Parameters
    ----------
    solver : str
        Its name.
    taken : sequence of str
        The kernels that it takes.
    kernel : object
        The value of the parameter.
    """
    if kernel in taken:
        return
    if kernel not in KERNELS:
        msg = f"kernel must be one of {', '.join(KERNELS)}, got kernel={kernel!r}"
    elif set(taken) == set(KERNELS) - {INDEFINITE}:
        msg = (
            f"{solver} needs a positive semidefinite kernel, one of {', '.join(taken)}; "
            f"got kernel={kernel!r}"
        )
    else:
        msg = f"{solver} takes the kernel{'s'[: len(taken) - 1]} {' and '.join(taken)}"
        msg += f"; got kernel={kernel!r}"
    raise ValueError(msg)


def values_with(kernel: Callable[[Any, Any], Any], X: Any, others: Any) -> np.ndarray:
    """Return what a function gives of two sets of samples, as float64.

    Raises
    ------
    ValueError
        If that is no matrix with a row for each of the first and a column for each of the others.
    """
    found = kernel(X, others)
    # A product of sparse samples is sparse.
    values = np.asarray(found.toarray() if sp.issparse(found) else found, dtype=np.float64)
    expected = (_length(X), _length(others))
    if values.shape != expected:
        msg = f"kernel returned values of shape {values.shape}, and there are {expected} samples"
        raise ValueError(msg)
    return values


def square(K: Any) -> Any:
    """Return a kernel matrix of training samples if it can be one.

    Raises
    ------
    TypeError
        If it is sparse.
    ValueError
        If it is not square.
    """
    if sp.issparse(K):
        msg = "Sparse precomputed kernels are not supported."
        raise TypeError(msg)
    if np.ndim(K) == 2 and np.shape(K)[0] != np.shape(K)[1]:
        n, m = np.shape(K)
        msg = f"Precomputed matrix must be a square matrix. Input is a {n}x{m} matrix."
        raise ValueError(msg)
    return K


def _length(samples: Any) -> int:
    return int(samples.shape[0]) if hasattr(samples, "shape") else len(samples)
