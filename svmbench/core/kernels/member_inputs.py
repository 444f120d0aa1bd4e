"""Kernel values of one sample with a list of members, in single precision, for compiled loops.

Online and core-set methods ask for the values of one sample with the few thousand that matter so
far: too few for a product of matrices, and another few each time. They keep `MemberInputs`, of
which `fill` takes the exponential in single precision, all values in one vectorised loop.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from svmbench.base.compiled import compiled
from svmbench.core.kernels.kernels import KernelFunction
from svmbench.core.kernels.products import (
    LARGEST_GAMMA,
    gauss_of_squares,
    single_factor,
    squared_lengths,
)
from svmbench.core.kernels.storage import moved
from svmbench.core.numeric.arrays import csr_parts, raw

#: The kernels that :class:`MemberInputs` serve.
MEMBER_KERNELS = ("linear", "rbf")


class MemberInputs(NamedTuple):
    """Samples as compiled loops read them."""

    dense: np.ndarray  # (n_samples, n_features), or (0, 0) for CSR
    # data, indices, starts: CSR; empty for dense samples
    data: np.ndarray
    indices: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray  # (n_samples,): squared
    factor: np.float32  # ``-gamma log2(e)``; 0 for the linear kernel
    # row, squares, power: scratch: of shape (n_features,), (n_samples,) and (n_samples,)
    row: np.ndarray
    squares: np.ndarray
    power: np.ndarray


def member_inputs(X: Any, function: KernelFunction) -> MemberInputs:
    """Return samples with a kernel, linear or RBF, for :func:`fill`."""
    X = moved(X, function)
    n, d = X.shape
    no_parts = (np.empty(0), np.empty(0, dtype=np.int32), np.zeros(1, dtype=np.int32))
    gamma = min(function.gamma, LARGEST_GAMMA) if function.name == "rbf" else 0.0
    is_sparse = sp.issparse(X)
    data, indices, starts = csr_parts(X) if is_sparse else (raw(part) for part in no_parts)
    return MemberInputs(
        raw(np.empty((0, 0)) if is_sparse else X),
        data,
        indices,
        starts,
        raw(np.asarray(squared_lengths(X), dtype=np.float64)),
        single_factor(gamma),
        np.zeros(d),
        np.empty(n, dtype=np.float32),
        np.empty(n, dtype=np.int32),
    )


@compiled
def fill(inputs: MemberInputs, i: int, members: np.ndarray, n: int, out: np.ndarray) -> None:
    """Write the kernel values of sample `i` with the first `n` of `members` to `out`.

    A member below 0 is no sample; its value means nothing.
    """
    lengths, row, squares = inputs.lengths, inputs.row, inputs.squares
    square, is_rbf = lengths[i], inputs.factor != np.float32(0.0)
    if len(inputs.dense) > 0:
        x = inputs.dense[i]
        for k in range(n):
            z = inputs.dense[max(members[k], 0)]
            product = 0.0
            for j in range(len(x)):
                product += x[j] * z[j]
            if is_rbf:
                squares[k] = np.float32(square + lengths[max(members[k], 0)] - 2.0 * product)
            else:
                out[k] = product
    else:
        data, indices, starts = inputs.data, inputs.indices, inputs.starts
        for p in range(starts[i], starts[i + 1]):
            row[indices[p]] = data[p]
        for k in range(n):
            m = max(members[k], 0)
            product = 0.0
            for p in range(np.uint32(starts[m]), np.uint32(starts[m + 1])):
                product += data[p] * row[np.uint32(indices[p])]
            if is_rbf:
                squares[k] = np.float32(square + lengths[m] - 2.0 * product)
            else:
                out[k] = product
        for p in range(starts[i], starts[i + 1]):
            row[indices[p]] = 0.0
    if is_rbf:
        gauss_of_squares(squares[:n], inputs.factor, inputs.power[:n], out[:n])


@compiled
def own_value(inputs: MemberInputs, i: int) -> float:
    """Return K(x_i, x_i)."""
    return 1.0 if inputs.factor != np.float32(0.0) else inputs.lengths[i]
