"""A linear SVM on an explicit feature map that spans some of the training samples.

With basis samples J and K_JJ = L L', the features of x are phi(x) = L^-1 k_J(x): their inner
products are the kernel's projection on the span of J, and a linear f(x) = w'phi(x) is the expansion
sum_j c_j K(x_j, x) over the basis with c = L^-T w. Its squared norm ||w||^2 is exact, and so is f:
only the room in which f is looked for is smaller than the exact SVM's.
"""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.blas import dtrsm, strsm
from sklearn.utils import check_random_state

from svmbench.core.contract.base import TrainingData, require_count
from svmbench.core.contract.problems import HINGE
from svmbench.core.kernels import columns
from svmbench.core.kernels.kernels import KernelSource
from svmbench.core.kernels.products import LARGEST_GAMMA
from svmbench.core.kernels.rows import float32_rows
from svmbench.core.linear.dcd import DescentParameters, descend
from svmbench.core.models.kernel_base import KernelSolution
from svmbench.core.models.kernel_classifier import KernelClassifier

#: Up to so many feature values are kept in double precision.
DOUBLE_UP_TO = 1 << 22

#: Pivots of a factorisation below this, relative to the largest kernel value of a sample with
#: itself, are dropped: what is left is rounding. Of values in double and in single precision.
LEAST_PIVOT = {np.float64: 1e-10, np.float32: 1e-6}


@dataclass
class FeatureMap:
    """Features of the training samples over a basis of some of them."""

    basis: np.ndarray  # int (n_basis,): samples
    # (n_basis, n_basis): lower triangular, ``L L'`` is the kernel matrix of the basis
    L: np.ndarray
    features: np.ndarray  # (n_samples, n_basis): row i is ``L^-1 k_J(x_i)``

    def coefficients(self, w: np.ndarray) -> np.ndarray:
        """Return the expansion's coefficients over the basis, for weights of the features."""
        return np.asarray(solve_triangular(self.L, w, lower=True, trans="T"))


def precision_of(source: KernelSource, n_basis: int) -> tuple[Any, float]:
    """Return the type that the features are kept in, and the smallest pivot that means anything."""
    inputs = source.inputs()
    large = inputs is not None and inputs[1].gamma > LARGEST_GAMMA
    single = source.n_samples * n_basis > DOUBLE_UP_TO and not large
    # Stored values may come from single precision, whatever they are handed out as.
    least = LEAST_PIVOT[np.float32 if single or inputs is None else np.float64]
    return np.float32 if single else np.float64, least


def project(source: KernelSource, basis: np.ndarray, L: np.ndarray, dtype: Any) -> np.ndarray:
    """Return the features of all samples, C-ordered of shape (n_samples, n_basis)."""
    n, everyone = source.n_samples, np.arange(source.n_samples)
    features = np.empty((n, len(basis)), dtype=dtype)
    if dtype is np.float32:
        rows = float32_rows(source)
        rows.fill(everyone, rows.columns(basis), 0, len(basis), features, everyone)
    else:
        features[:] = source.block(everyone, basis)
    # The transpose of C-ordered rows is a Fortran matrix, which is solved for in place.
    solve = strsm if dtype is np.float32 else dtrsm
    solved = solve(1.0, L.astype(dtype), features.T, lower=1, overwrite_b=1)
    return np.asarray(solved).T


@dataclass(eq=False, repr=False)
class FeatureMapSVM(KernelClassifier):
    """A linear SVM on the features of Nyström's method or of ICF.

    Parameters
    ----------
    tol : float
        Largest difference of two projected gradients of the linear SVM at the end.
    max_iter : int
        Largest number of passes of the linear SVM.

    Attributes
    ----------
    basis_ : ndarray of int of shape (n_used,)
        The basis samples that the model uses.
    support_vectors_ : ndarray or csr_array of shape (n_used, n_features)
        Inputs of the basis samples.
    dual_coef_ : ndarray of shape (1, n_used)
        Coefficients of the expansion.
    objective_, dual_objective_ : float
        The exact problem's primal value at this model, and -inf.
    n_iter_ : int
        Passes of the linear solver.
    counters_ : dict
        ``basis_vectors``, ``dropped_pivots``, ``kernel_evaluations``, and the linear solver's
        ``passes``, ``visits``, ``updates``.
    """

    C: float = 1.0
    _: KW_ONLY
    n_basis: int = 1000
    kernel: str = "rbf"
    gamma: float | str = "scale"
    degree: int = 3
    coef0: float = 0.0
    tol: float = 0.1
    max_iter: int = 1000
    random_state: Any = 0

    treats_offset = "none"
    #: The dual value of the last linear SVM.
    _dual = -np.inf

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_count("n_basis", self.n_basis)

    @classmethod
    def warm_up_rest(cls) -> None:
        """Call the linear solver in single precision, and all makers of kernel values."""
        super().warm_up_rest()
        columns.warm_up_columns()
        X, y = np.eye(2, dtype=np.float32), np.array([1.0, -1.0])
        descend(X, y, HINGE, DescentParameters(C=1.0, eps=0.1, max_iter=2, bias=0.0, seed=1))

    def _map(self, source: KernelSource, m: int) -> FeatureMap:
        """Return the feature map over at most m samples."""
        raise AssertionError("a feature-map solver defines _map")

    def solve(
        self, source: KernelSource, y: np.ndarray, start: np.ndarray | None = None
    ) -> KernelSolution:
        """Map the samples, and train the linear SVM there; coefficients are 0 outside the basis."""
        made, m = self._map(source, min(int(self.n_basis), source.n_samples)), int(self.n_basis)
        seed = int(check_random_state(self.random_state).randint(1, 2**31 - 1))
        parameters = DescentParameters(
            C=float(self.C),
            eps=float(self.tol),
            max_iter=int(self.max_iter),
            bias=0.0,
            seed=seed,
        )
        found, _ = descend(made.features, y, HINGE, parameters)
        coefficients = np.zeros(source.n_samples)
        coefficients[made.basis] = made.coefficients(found.w)
        counters = {
            **found.counters,
            "basis_vectors": len(made.basis),
            "dropped_pivots": min(m, source.n_samples) - len(made.basis),
            "kernel_evaluations": source.n_samples * len(made.basis),
        }
        self._dual = found.dual
        return KernelSolution(coefficients, 0.0, found.n_iter, found.stop_reason, counters)

    def lower_bound(self) -> float:
        """Return the dual value of the linear SVM: a bound of the optimum in the span."""
        return self._dual

    def train(self, data: TrainingData) -> Self:
        """Map, solve, and store the expansion over the basis."""
        n = data.X.shape[0]
        if int(self.n_basis) > n:
            warnings.warn(
                f"n_basis={self.n_basis} is more than there are training samples: all {n} are used",
                UserWarning,
                stacklevel=3,
            )
        solution = self.solve(KernelSource.from_inputs(data.X, self.function), data.y)
        self.basis_ = np.flatnonzero(solution.coefficients)
        solution.points = data.X[self.basis_]
        solution.coefficients = solution.coefficients[self.basis_]
        return self._store(solution, data)
