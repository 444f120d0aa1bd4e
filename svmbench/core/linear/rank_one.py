"""The updates of ALSVM and FALSVM: P = (sum x x' + nu I)^-1 by batches, and by loops over samples.

The dense loop reads and writes the lower triangle of P only, which halves the memory traffic of
every update; :func:`symmetrise` fills in the upper triangle after the loop. The sparse loop reads
whole rows of P, and its updates of P wait in blocks.

Letters: X (n_samples, d) and labels y; P (d, d) the inverse, w (d,), ``r = P x``, ``a = x'r``,
``g = 1 / (1 + a)``, ``f = w'x``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.blas import dgemm

from svmbench.base.compiled import compiled, compiled_sums
from svmbench.core.numeric.arrays import csr_parts, raw

#: Number of updates of P that are subtracted at once when the samples are sparse.
MAX_WAITING_UPDATES = 32


def sweep(
    X: Any,
    y: np.ndarray,
    order: np.ndarray,  # int: positions of the rows, in the order in which they come
    P: np.ndarray,
    w: np.ndarray,
    *,
    rejects: bool,  # add only misclassified rows (FALSVM)
    n_before: int = 0,  # number of samples in (P, w) already
) -> np.ndarray:
    """Add rows of `X` to (P, w) in place; return the positions of the added rows."""
    accepted = np.empty(len(order), dtype=np.int64)
    if not sp.issparse(X):
        n_added = sweep_dense(raw(X), raw(y), raw(order), P, w, rejects, n_before, accepted)
        symmetrise(P)
        return accepted[:n_added]
    parts, y, order = csr_parts(X), raw(y), raw(order)
    R = np.empty((MAX_WAITING_UPDATES, len(w)))
    position, n_added = 0, 0
    while position < len(order):
        position, n_new = sweep_csr(
            *parts, y, order, position, P, w, rejects, n_before + n_added, R, accepted[n_added:]
        )
        n_added += n_new
        # P <- P - R'R. P is symmetric, and its transpose is in BLAS's order.
        dgemm(-1.0, R[:n_new].T, R[:n_new].T, beta=1.0, c=P.T, trans_b=1, overwrite_c=1)
    symmetrise(P)
    return accepted[:n_added]


def added(P: np.ndarray, w: np.ndarray, X: Any, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (P, w) with a batch added (equation 3); LinAlgError if I + X P X' is indefinite."""
    R = np.asarray(X @ P)
    S = np.eye(len(y)) + np.asarray(X @ R.T)
    step = cho_solve(cho_factor(S), np.column_stack([R, y - np.asarray(X @ w).ravel()]))
    return P - R.T @ step[:, :-1], w + R.T @ step[:, -1]


def removed(P: np.ndarray, w: np.ndarray, X: Any, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (P, w) with a batch removed (equation 7); LinAlgError if I - X P X' is indefinite."""
    R = np.asarray(X @ P)
    S = np.eye(len(y)) - np.asarray(X @ R.T)
    step = cho_solve(cho_factor(S), np.column_stack([R, np.asarray(X @ w).ravel() - y]))
    return P + R.T @ step[:, :-1], w + R.T @ step[:, -1]


@compiled_sums
def sweep_dense(
    X: np.ndarray,
    y: np.ndarray,
    order: np.ndarray,
    P: np.ndarray,
    w: np.ndarray,
    rejects: bool,
    n_before: int,
    accepted: np.ndarray,
) -> int:
    """Add the rows of dense `X` named by `order` one by one, in place; return how many were added.

    With `rejects` a row is added only if ``y f < 0`` or if nothing has been added before it,
    neither here nor among `n_before` earlier samples (Algorithm 2). The positions of the rows
    that were added go to `accepted`.

    The update of P by one sample and the product of P with the next are one pass over P. That is
    possible because w is updated first: whether the next sample is added depends on w alone.
    """
    d = len(w)
    r = np.zeros(d)
    r_next = np.empty(d)
    g = 0.0
    n_added = 0
    for i in order:
        x = X[i]
        f = 0.0
        for j in range(d):
            f += w[j] * x[j]
        if rejects and n_before + n_added > 0 and y[i] * f >= 0.0:
            continue
        for j in range(d):
            x_j = x[j]
            s = g * r[j]
            below = 0.0
            for k in range(j):
                p = P[j, k] - s * r[k]
                P[j, k] = p
                below += p * x[k]
                r_next[k] += p * x_j
            p = P[j, j] - s * r[j]
            P[j, j] = p
            r_next[j] = below + p * x_j
        a = 0.0
        for j in range(d):
            a += x[j] * r_next[j]
        g = 1.0 / (1.0 + a)
        step = g * (y[i] - f)
        for j in range(d):
            w[j] += step * r_next[j]
        r, r_next = r_next, r
        accepted[n_added] = i
        n_added += 1
    for j in range(d):
        s = g * r[j]
        for k in range(j + 1):
            P[j, k] -= s * r[k]
    return n_added


@compiled_sums
def sweep_csr(
    data: np.ndarray,
    indices: np.ndarray,
    indptr: np.ndarray,
    y: np.ndarray,
    order: np.ndarray,
    begin: int,
    P: np.ndarray,
    w: np.ndarray,
    rejects: bool,
    n_before: int,
    R: np.ndarray,
    accepted: np.ndarray,
) -> tuple[int, int]:
    """Add CSR rows from position `begin` of `order` on; return the next position and n_added.

    w changes as in :func:`sweep_dense`. P stays: its rank-one terms wait in the rows of `R` until
    it is full, and the caller subtracts R'R in one product, far cheaper than single updates.
    """
    d = len(w)
    r = np.empty(d)
    n_added = 0
    for position in range(begin, len(order)):
        i = order[position]
        start, end = np.uint32(indptr[i]), np.uint32(indptr[i + 1])
        f = 0.0
        for q in range(start, end):
            f += w[np.uint32(indices[q])] * data[q]
        if rejects and n_before + n_added > 0 and y[i] * f >= 0.0:
            continue
        # r = P x, corrected by the updates that wait
        for j in range(d):
            r[j] = 0.0
        for q in range(start, end):
            row, value = np.uint32(indices[q]), data[q]
            for j in range(d):
                r[j] += value * P[row, j]
        for k in range(n_added):
            waiting = 0.0
            for q in range(start, end):
                waiting += R[k, np.uint32(indices[q])] * data[q]
            for j in range(d):
                r[j] -= waiting * R[k, j]
        a = 0.0
        for q in range(start, end):
            a += data[q] * r[np.uint32(indices[q])]
        g = 1.0 / (1.0 + a)
        step = g * (y[i] - f)
        # g < 0 if rounding has made P indefinite: NaN tells the caller.
        root = np.sqrt(g) if g >= 0.0 else np.nan
        for j in range(d):
            w[j] += step * r[j]
            R[n_added, j] = root * r[j]
        accepted[n_added] = i
        n_added += 1
        if n_added == len(R):
            return position + 1, n_added
    return len(order), n_added


@compiled
def symmetrise(P: np.ndarray) -> None:
    """Copy the lower triangle of `P` into its upper one, in place."""
    d = len(P)
    for j in range(d):
        for k in range(j):
            P[k, j] = P[j, k]
