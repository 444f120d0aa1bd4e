"""The linear SVM with squared hinge for data in a cluster, by truncated Newton.

Problem
    min_w  f(w) = 1/2 ||w||^2 + C sum_i max(0, 1 - y_i w'x_i)^2
    over samples x with a constant feature ("bias absorbed"). With A = {i : y_i w'x_i < 1},
    g = w - 2C sum_A y_i (1 - y_i w'x_i) x_i   and   H = I + 2C sum_A x_i x_i'.
Given
    Rows in partitions, y in {-1, +1}, C, tol.
Returned
    w with ||g(w)|| <= tol min(n+, n-) / n ||g(0)||, LIBLINEAR's rule for its -s 2.
Method
    The rows stay on the executors as blocks. One pass computes f and g, and one pass each product
    with H. ``treeAggregate`` adds the results of the partitions. The driver holds vectors of d
    numbers only, no matrix.
Reference
    Lin, Weng and Keerthi 2008 (`core/linear/trust_region.py`); Lin, Tsai, Lee and Lin 2014
    (Large-scale logistic regression and linear support vector machines using Spark).
Deviations
    - The second paper maps partitions to arrays of rows in each pass; here it is done once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np

from svmbench.core.contract.base import TrainingData
from svmbench.core.contract.declaration import Declaration
from svmbench.core.contract.linear_base import LinearClassifier, LinearSolution
from svmbench.core.linear import trust_region
from svmbench.spark.frames import is_arrays, predicted, to_frame
from svmbench.spark.packed import Packed, PackedBlock
from svmbench.spark.source import FrameColumns, SparkRows, rows_to_read


class PassArguments(NamedTuple):
    """The arguments of a pass.

    Attributes
    ----------
    vectors : ndarray of shape (1 or 2, d)
        w, and v for a product with the Hessian at w.
    bias : float
        Value of the constant feature, the last of d; 0 for none.
    """

    vectors: np.ndarray
    bias: float


def losses(block: PackedBlock, at: PassArguments) -> np.ndarray:
    """Return the sum of squared slacks, followed by ``sum y slack x``; shape (1 + d,)."""
    slack = np.maximum(0.0, 1.0 - block.y * block.times(at.vectors, at.bias)[:, 0])
    (sides,) = block.back((block.y * slack)[:, np.newaxis], at.bias)
    return np.concatenate([[slack @ slack], sides])


def curvature(block: PackedBlock, at: PassArguments) -> np.ndarray:
    """Return ``sum_A x_i (x_i'v)``, shape (d,)."""
    f, along = block.times(at.vectors, at.bias).T
    (sides,) = block.back(np.where(block.y * f < 1.0, along, 0.0)[:, np.newaxis], at.bias)
    return np.asarray(sides)


class L2SVMSpark(LinearClassifier):
    """The linear SVM with squared hinge, for a Spark data frame or a file that Spark reads.

    The model is that of :class:`~svmbench.core.linear.newton.NewtonL2`, and predicts arrays;
    `transform` predicts a data frame.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the summed squared hinge losses; above 0.
    tol : float, default=0.01
        Norm of the gradient at the end, relative to its value at 0, times the smaller class's
        share: LIBLINEAR's eps.
    max_iter : int, default=1000
        Largest number of steps.
    fit_intercept : bool, default=True
        Whether there is a constant feature.
    intercept_scaling : float, default=1.0
        Its value.
    features, label : str
        As for :class:`~svmbench.spark.alsvm.ALSVMSpark`.
    n_features : int, optional
        Number of features; a higher index is an error. By default, found in the first pass.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
    intercept_ : ndarray of shape (1,)
    classes_ : ndarray of shape (2,)
    objective_ : float
    gradient_norm_ : float
        Norm of the gradient at the solution.
    n_iter_ : int
        Number of tried steps.
    stop_reason_ : str
        ``"converged"``, ``"max_iter"``, or ``"stalled"`` if no step changes the weights.
    counters_ : dict
        ``steps``, ``conjugate_gradient_steps`` (products with the Hessian), ``passes``.
    """

    declaration = Declaration(
        name="l2svm-spark",
        problem="squared-hinge",
        summary="squared hinge by Spark: truncated Newton, one pass over the data per product",
        reference="Lin, Weng and Keerthi 2008, Algorithms 1 and 2",
    )

    def __init__(
        self,
        C: float = 1.0,
        *,
        tol: float = 0.01,
        max_iter: int = 1000,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        features: str | Sequence[str] = "features",
        label: str = "label",
        n_features: int | None = None,
    ) -> None:
        self.C = C
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.features = features
        self.label = label
        self.n_features = n_features

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit a data frame or a file; arrays are sent to a session on this machine.

        Parameters and errors are the same as for ``ALSVMSpark.fit``.
        """
        if is_arrays(X, y):
            return super().fit(X, y)
        self._check_parameters()
        return self._minimise(rows_to_read(X, self._columns()))

    def _convert(self, data: TrainingData) -> TrainingData:
        """Send arrays to a session on this machine as a data frame."""
        data.native = to_frame(data.X, data.y)
        return data

    def train(self, data: TrainingData) -> Self:
        """Take Newton steps until the gradient reaches `tol`."""
        classes = self.classes_
        self._minimise(SparkRows(data.native))
        self.classes_ = classes
        return self

    def transform(self, frame: Any, column: str = "prediction") -> Any:
        """Return a data frame with the predicted label of each row as a further column."""
        return predicted(self, frame, self._columns(), column)

    def _columns(self) -> FrameColumns:
        return FrameColumns(self.features, self.label, n_features=self.n_features)

    def _minimise(self, rows: SparkRows) -> Self:
        with Packed(rows, n_features=self.n_features) as packed:
            share = min(packed.by_class) / packed.n_samples
            d = packed.n_features + bool(self.bias)
            result = trust_region.trust_region_newton(
                partial(self._value, packed),
                partial(self._product, packed),
                np.zeros(d),
                lambda first: float(self.tol) * share * first,
                self.max_iter,
            )
            self.classes_, self.n_features_in_ = packed.classes, packed.n_features
            passes = packed.passes
        self.objective_, self.gradient_norm_ = result.f, float(np.linalg.norm(result.g))
        w = result.w
        return self._store(
            LinearSolution(
                w=w[: packed.n_features],
                b=float(w[-1] * self.bias) if self.bias else 0.0,
                n_iter=max(1, result.steps),
                stop_reason=result.stop_reason,
                counters={
                    "steps": result.steps,
                    "conjugate_gradient_steps": result.products,
                    "passes": passes,
                },
            )
        )

    def _value(self, packed: Packed, w: np.ndarray) -> tuple[float, np.ndarray]:
        total = packed.sum(losses, PassArguments(w[np.newaxis], self.bias))
        value = 0.5 * float(w @ w) + self.C * float(total[0])
        return value, w - 2.0 * self.C * total[1:]

    def _product(self, packed: Packed, w: np.ndarray, v: np.ndarray) -> np.ndarray:
        return v + 2.0 * self.C * packed.sum(curvature, PassArguments(np.stack([w, v]), self.bias))
