"""Compute decision values by LIBSVM's function `svm_predict_values`, to measure its cost.

Given
    Points and rows, which are copied to LIBSVM's nodes. A call of the C function from Python takes
    about a microsecond per row, which is included in measured times.
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


def libsvm_decision_values(
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
        In LIBSVM's layout; one row for one or two classes.
    rho : ndarray of shape (n_sums,)
        Offsets that are subtracted from the sums: one for each pair of classes, or one.
    n_support : ndarray of int of shape (n_classes,)
        Number of support vectors of each class.
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
    # Own argument types: those of the package would create an object for each address.
    function_at = ctypes.cast(svm.libsvm.svm_predict_values, ctypes.c_void_p).value
    assert function_at is not None
    evaluate = _PREDICT_VALUES(function_at)
    model_at = ctypes.addressof(model)
    for row_at, values_at in zip(starts.tolist(), at.tolist(), strict=True):
        evaluate(model_at, row_at, values_at)
    # The memory behind the addresses must live until here.
    del model, nodes, rows
    return values


class NativePoints(SharedPoints):
    """The models of all pairs of classes, evaluated by LIBSVM."""

    def decide(self, X: Any, **_options: Any) -> np.ndarray:
        """Return the decision values of each row of `X` for each pair, (n_samples, n_pairs).

        LIBSVM uses double precision and one thread, whatever the options.
        """
        n_support = np.diff(self.starts)
        # LIBSVM's value of a pair is positive for its first class, and ours for its second: reverse
        # the signs of coefficients and result. LIBSVM subtracts the offset, so b keeps its sign.
        reversed_signs = -self.coefficients
        return -libsvm_decision_values(
            self.function, self.points, reversed_signs, self.b, n_support, X
        )
