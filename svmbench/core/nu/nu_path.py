"""``svmbench.NuPath``: every solution of the ν-SVM along a list of nu, with safe screening."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils import ClassifierTags, Tags
from sklearn.utils.validation import check_is_fitted

from svmbench.core.contract.docstrings import document
from svmbench.core.contract.sklearn_bases import Versioned
from svmbench.core.models.kernel_base import KernelParameters
from svmbench.core.nu.box_qp import linear_minimum
from svmbench.core.nu.nu_svm import SRBONuSVM


@document
@dataclass(eq=False, repr=False)
class NuPath(KernelParameters, Versioned):
    """The ν-SVM at several values of nu, each solved from the last, with safe screening.

    ``alpha_`` is in the paper's scale, in which 0 <= alpha_i <= 1/l with l samples, and
    f(x) = sum_i alpha_i y_i K(x_i, x) + b has margins rho. The C-SVC of the same classifier is
    f / rho: its multipliers are alpha / rho, and its C is 1 / (l rho). LIBSVM's ν-SVC, whose offset
    is free, keeps l alpha inside.

    Parameters
    ----------
    nu : sequence of float
        Ascending, each above 0 and at most 1.
    kernel : {"linear", "rbf", "poly", "sigmoid"}
        The kernel K(x, z).
    gamma : float, "scale" or "auto"
        Width of the kernel; "scale" is 1 / (n_features * variance of X), "auto" 1 / n_features.
    degree : int
        Of the polynomial kernel.
    coef0 : float
        Of the polynomial and the sigmoid kernel.
    screen : bool or str
        True: with delta by descent, where it pays (``"srbo-descent"``); False: not at all; or a
        rule's name, as for :class:`~svmbench.core.nu.nu_svm.SRBONuSVM`.
    solver : str
        Inner solver, as for :class:`~svmbench.core.nu.nu_svm.NuSVM`.
    tol : float
        Duality gap, relative to the objective.
    max_iter : int
        Largest number of steps at each nu.
    cache_mb : float
        MiB that the kernel matrix may take.
    fit_intercept : bool
        Whether 1 is added to the kernel, which absorbs the offset.

    Attributes
    ----------
    alpha_ : list of ndarray of shape (n_samples,)
        One a nu, in the paper's scale.
    rho_, intercept_ : ndarray of shape (n_values,)
        Margin and offset.
    objective_, gap_ : ndarray of shape (n_values,)
        ``1/2 alpha'Q alpha``, which the dual problem minimises (`objective_` of other estimators is
        the primal value), and the duality gap in the same scale.
    n_screened_ : ndarray of int of shape (n_values,)
        Multipliers settled before the solution.
    screening_ : list of str
        What was done at each nu: ``"on"``, ``"first"``, ``"tested"``, ``"off"`` or ``"none"``; see
        :class:`~svmbench.core.nu.nu_svm.SRBONuSVM`.
    times_ : ndarray of shape (n_values, 3)
        Wall time of delta, screening test and solution, seconds.
    models_ : list of SRBONuSVM
        The model at each nu.
    classes_ : ndarray of shape (2,)
        Labels, in order.
    n_features_in_ : int
        Number of features.

    Raises
    ------
    ValueError
        If the values of nu do not ascend or leave (0, 1], or the matrix does not fit `cache_mb`.

    Examples
    --------
    >>> import svmbench
    >>> X, y = [[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]
    >>> path = svmbench.NuPath(nu=[0.3, 0.6, 0.9], kernel="linear").fit(X, y)
    >>> [round(float(alpha.sum()), 6) for alpha in path.alpha_]
    [0.3, 0.6, 0.9]
    """

    nu: Sequence[float] = (0.1, 0.3, 0.5, 0.7, 0.9)
    _: KW_ONLY
    screen: bool | str = True
    solver: str = "dcdm-pairwise"
    tol: float = 1e-6
    max_iter: int = 10_000_000
    cache_mb: float = 2048.0
    fit_intercept: bool = True

    def fit(self, X: Any, y: Any) -> Self:
        """Solve at every nu.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels of two classes.
        """
        values = [float(nu) for nu in self.nu]
        if not values:
            raise ValueError("nu must have at least one value")
        params = {name: getattr(self, name) for name in self.get_params() if name != "nu"}
        if isinstance(self.screen, bool):
            params["screen"] = "srbo-descent" if self.screen else "none"
        model = SRBONuSVM(nu=values[0], **params)
        data = model.prepare(X, y)
        models = [point.solution for point in model.path(data, None, "nu", values)]
        model._pass_on(self)
        self.classes_ = model.classes_
        self.models_ = models
        self.alpha_ = [_alpha(model_at, len(data.y)) for model_at in models]
        self.rho_ = np.array([model_at.expansion_.rho for model_at in models])
        self.intercept_ = np.array([model_at.expansion_.b for model_at in models])
        products = [data.native.Q @ alpha for alpha in self.alpha_]
        squares = np.array([float(a @ d) for a, d in zip(self.alpha_, products, strict=True)])
        self.objective_ = 0.5 * squares
        lowest = [
            linear_minimum(d, nu * len(d)) / len(d) for d, nu in zip(products, values, strict=True)
        ]
        self.gap_ = squares - np.array(lowest)
        self.n_screened_ = np.array(
            [
                model_at.counters_["screened_zero"] + model_at.counters_["screened_one"]
                for model_at in models
            ]
        )
        self.screening_ = [model_at.screening_ for model_at in models]
        self.times_ = np.array([list(model_at.times_.values()) for model_at in models])
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Return f(x) at every nu, shape (n_samples, n_values)."""
        check_is_fitted(self, "models_")
        return np.column_stack([model.decision_function(X) for model in self.models_])

    def predict_path(self, X: Any) -> np.ndarray:
        """Return the classes at every nu, shape (n_samples, n_values).

        There is no `predict`, which in scikit-learn returns one class a sample.
        """
        f = self.decision_function(X)
        return self.classes_[(f >= 0.0).astype(np.intp)]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # Of labels it takes two; it is no classifier, since it predicts one for each nu.
        tags.classifier_tags = ClassifierTags(multi_class=False)
        tags.target_tags.required = True
        tags.input_tags.sparse = SRBONuSVM.declaration.sparse
        return tags


def _alpha(model: SRBONuSVM, n_samples: int) -> np.ndarray:
    alpha = np.zeros(n_samples)
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    return alpha
