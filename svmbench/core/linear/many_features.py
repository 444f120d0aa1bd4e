"""The linear least-squares SVM of so many features that their Gram matrix costs more than it saves.

    (X'X + nu I) w = q,    q = X'y,    nu = 1 / (2C)

Its dual form ``w = X'b``, ``(X X' + nu I) b = y`` has a matrix of samples, for few of these; and
conjugate gradients need no matrix but X. The samples carry no constant feature here: `bias` is its
value, 0 for none.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from svmbench.core.linear import least_squares
from svmbench.core.linear.preconditioners import Diagonal
from svmbench.core.linear.row_products import RowProducts
from svmbench.core.numeric.arrays import append_bias
from svmbench.core.numeric.conjugate_gradient import conjugate_gradients

#: What `stop_reason_` says of each way but the sums'.
BY_SAMPLES_KERNEL = "closed form, of the dual"
BY_STEPS = "conjugate gradients"

#: Up to so many features the sums are always formed: whatever else there is can't save much.
FEW_FEATURES = 512

#: Conjugate gradients end at this residual relative to q, both in the preconditioner's norm; or are
#: given up after so many steps.
RESIDUAL, MOST_STEPS = 1e-10, 2000

#: How many times that the residual may be when it is computed anew.
DRIFT = 10.0

#: Nanoseconds: of a product in BLAS, of one that is scattered, of a nonzero in a step; and how many
#: steps are expected. Measured on an AVX-512 Xeon; only their ratios matter.
BLAS_NS, SCATTER_NS, NONZERO_NS, STEPS_EXPECTED = 1 / 32, 1.5, 2.5, 200

SUMS, KERNEL, STEPS = "sums", "kernel", "steps"


def cheapest(X: Any) -> str:
    """Return the way that is expected to cost least: ``"sums"``, ``"kernel"`` or ``"steps"``.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
    """
    n, d = X.shape
    if d <= FEW_FEATURES:
        return SUMS
    nonzeros = X.nnz if sp.issparse(X) else n * d

    def closed(rows: int, size: int) -> float:
        """Return the cost of a Gram matrix of `size` columns of `rows` values, and a factor."""
        scattered = SCATTER_NS * nonzeros**2 / rows
        products = BLAS_NS * rows * size**2
        factor = BLAS_NS * size**3 / 3.0
        return factor + (min(scattered, products) if sp.issparse(X) else products)

    costs = {
        SUMS: closed(n, d),
        KERNEL: closed(d, n),
        STEPS: STEPS_EXPECTED * NONZERO_NS * nonzeros,
    }
    return min(costs, key=lambda way: costs[way])


def solve_kernel(X: Any, y: np.ndarray, bias: float, nu: float) -> np.ndarray | None:
    """Return w by Cholesky's factorisation of ``X X' + nu I``; None where that isn't sound.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
        Labels ±1.
    bias, nu : float

    Returns
    -------
    ndarray of shape (n_features + 1,), (n_features,) without a bias, or None
    """
    K = X @ X.T
    K = (K.toarray() if sp.issparse(K) else K) + bias * bias
    b = least_squares.solve_sums(K, y, nu)
    if b is None:
        return None
    w = np.asarray(X.T @ b)
    return np.append(w, bias * b.sum()) if bias else w


def solve_steps(X: Any, y: np.ndarray, bias: float, nu: float) -> tuple[np.ndarray | None, int]:
    """Return w by preconditioned conjugate gradients, and their number of steps.

    The parameters are those of :func:`solve_kernel`; w is None where
    :data:`MOST_STEPS` don't do, or float64 does not.
    """
    X = append_bias(X, bias)
    products, everything = RowProducts(X), np.arange(len(y), dtype=np.int32)
    preconditioner = Diagonal(X)
    preconditioner.make(np.ones(len(y), dtype=bool), 1.0 / (2.0 * nu))
    q = products.combine(everything, y)

    def product(p: np.ndarray) -> np.ndarray:
        return nu * p + products.curvature(everything, p)

    w, steps, converged = conjugate_gradients(
        product, q, MOST_STEPS, residual=RESIDUAL, precondition=preconditioner.solve
    )
    # What the steps believe to be the residual drifts away from it where rounding is large.
    left = q - product(w)
    limit = (DRIFT * RESIDUAL) ** 2 * float(q @ preconditioner.solve(q))
    sound = converged and float(left @ preconditioner.solve(left)) <= limit
    return w if sound else None, steps
