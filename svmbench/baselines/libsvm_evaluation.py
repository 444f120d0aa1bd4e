"""Decision values by LIBSVM's own function, `svm_predict_values`: what its predictions cost.

Given
    Points and rows as LIBSVM's nodes, which are made here, the rows' by one copy. A call of the C
    function from Python takes about a microsecond a row, which is part of what is measured.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER
from typing import Any

import numpy as np

from svmbench.baselines.nodes import node_lists
from svmbench.core.kernels.kernels import KernelFunction
from svmbench.core.models.ovo_model import SharedPoints

#: Numbers of LIBSVM's options -s and -t.
C_SVC, ONE_CLASS = 0, 2
KERNEL_NUMBERS = {"linear": 0, "poly": 1, "rbf": 2, "sigmoid": 3}

_PREDICT_VALUES = ctypes.CFUNCTYPE(
    ctypes.c_double, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p
)


def decision_values(
    function: KernelFunction,
    points: Any,
    coefficients: np.ndarray,
    rho: np.ndarray,
    n_support: np.ndarray,
    X: Any,
) -> np.ndarray:
    """Return LIBSVM's decision values of each row of `X`, shape (n_samples, n_sums).

    Parameters
    ----------
    function : KernelFunction
    points : ndarray or csr_array of shape (n_points, n_features)
        The support vectors, class by class.
    coefficients : ndarray of shape (n_classes - 1, n_points)
        In LIBSVM's layout; one row for two classes, and for one.
    rho : ndarray of shape (n_sums,)
        What is taken from the sums: one a pair of classes, or one.
    n_support : ndarray of int of shape (n_classes,)
        Number of support vectors of each class; of one class, of that.
    X : ndarray or csr_array of shape (n_samples, n_features)
    """
    from libsvm import svm

    n_classes = max(2, len(n_support))
    nodes, addresses = node_lists(points)
    rows, starts = node_lists(X)
    coefficients = np.ascontiguousarray(coefficients, dtype=np.float64)
    lines = coefficients.ctypes.data + coefficients.strides[0] * np.arange(len(coefficients))
    lines = lines.astype(np.uint64)
    rho = np.ascontiguousarray(rho, dtype=np.float64)
    sizes = np.ascontiguousarray(n_support, dtype=np.int32)
    labels = np.arange(n_classes, dtype=np.int32)

    model = svm.svm_model()
    parameter = svm.svm_parameter("-q")
    parameter.svm_type = C_SVC if len(n_support) > 1 else ONE_CLASS
    parameter.kernel_type = KERNEL_NUMBERS[function.name]
    parameter.gamma, parameter.degree = function.gamma, function.degree
    parameter.coef0 = function.coef0
    model.param, model.nr_class, model.l = parameter, n_classes, points.shape[0]
    model.SV = ctypes.cast(addresses.ctypes.data, POINTER(POINTER(svm.svm_node)))
    model.sv_coef = ctypes.cast(lines.ctypes.data, POINTER(POINTER(ctypes.c_double)))
    model.rho = rho.ctypes.data_as(POINTER(ctypes.c_double))
    model.nSV = sizes.ctypes.data_as(POINTER(ctypes.c_int))
    model.label = labels.ctypes.data_as(POINTER(ctypes.c_int))

    values = np.empty((len(starts), len(rho)))
    at = values.ctypes.data + values.strides[0] * np.arange(len(values))
    # With argument types of its own: the package's would make an object of each address.
    function_at = ctypes.cast(svm.libsvm.svm_predict_values, ctypes.c_void_p).value
    assert function_at is not None
    evaluate = _PREDICT_VALUES(function_at)
    given = ctypes.addressof(model)
    for row, where in zip(starts.tolist(), at.tolist(), strict=True):
        evaluate(given, row, where)
    # What the addresses are of has to live until here.
    del model, nodes, rows
    return values


class NativePoints(SharedPoints):
    """The models of all pairs of classes, evaluated by LIBSVM."""

    def decide(self, X: Any, **_options: Any) -> np.ndarray:
        """Return the decision values of each row of `X` for each pair, (n_samples, n_pairs).

        LIBSVM's are of double precision, by one thread, whatever the options.
        """
        n_support = np.diff(self.starts)
        # In LIBSVM a pair's value is positive for its first class.
        own = -self.coefficients
        return -decision_values(self.function, self.points, own, self.b, n_support, X)
