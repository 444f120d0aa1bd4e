"""Cholesky factors inside compiled loops, for matrices of at most some hundred rows."""

from __future__ import annotations

import numpy as np

from svmbench.base.compiled import compiled_sums


@compiled_sums
def cholesky(A: np.ndarray) -> bool:
    """Overwrite the lower triangle of A with its Cholesky factor; False if A isn't definite."""
    for i in range(len(A)):
        for j in range(i + 1):
            rest = A[i, j]
            for k in range(j):
                rest -= A[i, k] * A[j, k]
            if j < i:
                A[i, j] = rest / A[j, j]
            elif rest > 0.0:
                A[i, i] = np.sqrt(rest)
            else:
                return False
    return True


@compiled_sums
def solve_cholesky(L: np.ndarray, x: np.ndarray) -> None:
    """Overwrite x with the solution y of ``L L' y = x``."""
    n = len(x)
    for i in range(n):
        rest = x[i]
        for k in range(i):
            rest -= L[i, k] * x[k]
        x[i] = rest / L[i, i]
    for i in range(n - 1, -1, -1):
        x[i] /= L[i, i]
        for k in range(i):
            x[k] -= x[i] * L[i, k]
