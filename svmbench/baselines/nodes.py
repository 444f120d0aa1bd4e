"""Build LIBLINEAR's and LIBSVM's input format: a list of (index, value) nodes for each row.

Both packages convert dense inputs in a Python loop, and sparse inputs only from scipy's old matrix
type. This module builds the same memory at the speed of a copy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

#: A C struct of int and double with the compilers' layout: sixteen bytes.
NODE = np.dtype([("index", np.int32), ("value", np.float64)], align=True)


def node_lists(X: Any, *, bias: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Return the nodes of all rows, and the address of the first node of each row.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        Zeros of a dense matrix are left out, as in the programs' text format.
    bias : float
        Value of a constant feature at the end of every row; 0 for none.

    Returns
    -------
    nodes : structured ndarray
        Indices count from 1; each row ends with a node of index -1. Must outlive the addresses.
    addresses : ndarray of uint64 of shape (n_samples,)
    """
    X = sp.csr_array(X)
    n_samples, n_features = X.shape
    extra = 2 if bias else 1
    rows = np.arange(n_samples + 1, dtype=np.int64)
    starts = X.indptr.astype(np.int64) + extra * rows
    nodes = np.empty(X.nnz + extra * n_samples, dtype=NODE)
    is_entry = np.ones(len(nodes), dtype=bool)
    ends = starts[1:] - 1
    is_entry[ends] = False
    nodes["index"][ends], nodes["value"][ends] = -1, 0.0
    if bias:
        is_entry[ends - 1] = False
        nodes["index"][ends - 1], nodes["value"][ends - 1] = n_features + 1, bias
    nodes["index"][is_entry] = X.indices + 1
    nodes["value"][is_entry] = X.data
    addresses = nodes.ctypes.data + starts[:-1] * NODE.itemsize
    return nodes, addresses.astype(np.uint64)
