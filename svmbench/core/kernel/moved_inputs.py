"""Inputs far from zero, moved for solvers that take RBF values one by one from products."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from svmbench.core.arrays import canonical_csr, central_row
from svmbench.core.kernels import KernelFunction, squared_lengths


def moved(X: Any, function: KernelFunction) -> Any:
    """Return inputs that products tell the RBF distances of, where those of `X` lose digits.

    They are moved by a sample, which changes no distance; sparse ones along the features that every
    sample has an entry of. Others come back as they are.
    """
    lengths = squared_lengths(X)
    if function.name != "rbf" or not function.cancels(lengths, lengths):
        return X
    if not sp.issparse(X):
        return X - central_row(X)
    X = canonical_csr(X).copy()
    is_full = np.bincount(X.indices, minlength=X.shape[1]) == X.shape[0]
    X.data -= np.where(is_full, X[[0]].toarray()[0], 0.0)[X.indices]
    return X
