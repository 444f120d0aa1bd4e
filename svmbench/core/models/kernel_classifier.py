"""Base classes of kernel classifiers: two classes, one-vs-one for more, and precomputed kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import Tags

from svmbench.core.contract.base import BinaryClassifier, TrainingData
from svmbench.core.kernels.kernels import PRECOMPUTED, is_given, square_kernel, values_with
from svmbench.core.models import ovo_model
from svmbench.core.models.joint_pairs import JointData, JointSolution
from svmbench.core.models.kernel_base import KERNEL_PARAMETERS, KernelParameters, KernelSolver
from svmbench.core.models.multiclass import OneVsOne
from svmbench.core.models.ovo_model import OvoModel, SharedPoints


class KernelClassifier(KernelSolver, BinaryClassifier):
    """A two-class solver of a dual problem with a kernel, with the parameter `C`.

    More than two classes are fitted one against one. ``support_``, ``dual_coef_``, ``intercept_``
    and ``coef_`` then have the layout and the signs of scikit-learn's SVC, and ``n_iter_`` has a
    number for each pair.

    Parameters
    ----------
    decision_function_shape : {"ovr", "ovo"}
        Values of `decision_function` for more than two classes: one a class, or one a pair.
    break_ties : bool
        Whether ties of votes go to the class with the largest decision value (with "ovr"), instead
        of the first class.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (1, n_support)
        ``alpha_i y_i``.
    """

    needs_parameters: ClassVar[tuple[str, ...]] = ("C", *KERNEL_PARAMETERS)

    #: The class that evaluates the models of several classes together.
    shared_points: ClassVar[type[SharedPoints]] = SharedPoints

    C: float
    decision_function_shape: str = "ovr"
    break_ties: bool = True
    several_: OvoModel | None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.decision_function_shape not in ("ovr", "ovo"):
            shape = self.decision_function_shape
            msg = f"decision_function_shape must be 'ovr' or 'ovo', got {shape!r}"
            raise ValueError(msg)

    def _sum_weight(self, data: TrainingData) -> float:
        """Return the weight of the summed losses: C, unless a solver has another parameter."""
        return float(self.C)

    def lower_bound(self) -> float:
        """Return a lower bound of the optimum: the dual objective, -inf if there is none."""
        return float(self.dual_objective_)

    @classmethod
    def takes_given_kernel(cls) -> bool:
        """Return True if `train` only calls `solve` on a kernel matrix."""
        return cls.takes_kernel_matrix() and cls.train is KernelSolver.train

    def _validate_samples(self, X: Any, y: Any) -> tuple[Any, np.ndarray]:
        """Check inputs and labels; for a given kernel return its matrix in place of inputs."""
        if callable(self.kernel):
            self._require_solve()
            self._fitted_on = X
            X = values_with(self.kernel, X, X)
        elif is_given(self.kernel):
            X = square_kernel(X)
        return super()._validate_samples(X, y)

    def _validate_more(self, X: Any) -> Any:
        if callable(self.kernel):
            X = values_with(self.kernel, X, self._fitted_on)
        return super()._validate_more(X)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == PRECOMPUTED
        tags.input_tags.sparse = tags.input_tags.sparse and not is_given(self.kernel)
        return tags

    def _fit_several(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit a model for each pair of classes, all with the same kernel and `gamma_`."""
        X, y = self._validate_samples(X, y)
        classes = np.unique(y)
        alone = self._alone()
        if callable(self.kernel):
            # X is the matrix of its values.
            alone.set_params(kernel=PRECOMPUTED)
        pairs = OneVsOne(alone)
        data = pairs.prepare_validated(X, y, self._weigh(y, sample_weight))
        pairs.train(data).finish_fit(data)
        self.classes_, self.several_ = classes, OvoModel(pairs)
        self.gamma_ = pairs.gamma_
        self.n_iter_ = pairs.iterations
        self.objective_, self.dual_objective_ = pairs.objective_, pairs.dual_objective_
        self.stop_reason_, self.counters_ = pairs.stop_reason_, pairs.counters_
        return self

    def trains_pairs_together(self, sizes: np.ndarray) -> bool:
        """Return True if `train_jointly` can train all pairs of classes with these class sizes."""
        return False

    def train_jointly(self, joint: JointData) -> JointSolution:
        """Solve the problems of all pairs together; solvers that share work define it."""
        raise AssertionError("a solver that trains pairs together defines train_jointly")

    @classmethod
    def warm_up_rest(cls) -> None:
        """Also compile the evaluation and the votes of pairs."""
        super().warm_up_rest()
        ovo_model.warm_up_ovo()

    @property
    def estimators_(self) -> list[Any]:  # type: ignore[override]
        """The model of each pair; AttributeError for two classes."""
        if self.several_ is None:
            msg = "there are several models of more than two classes only"
            raise AttributeError(msg)
        return self.several_.models

    @property
    def _model(self) -> Any:
        return self.expansion_ if self.several_ is None else self.several_

    @property
    def n_support_(self) -> np.ndarray:
        """Number of support vectors of each class, int32 of shape (n_classes,)."""
        if self.several_ is None:
            is_second = self.expansion_.coefficients > 0.0
            return np.array([np.sum(~is_second), np.sum(is_second)], dtype=np.int32)
        return self.several_.n_support

    def decision_function(
        self, X: Any, *, precision: str = "double", n_jobs: int | None = None
    ) -> np.ndarray:
        """Return f(x) for each row of `X`, shape (n_samples,).

        For more than two classes: "ovr" has shape (n_samples, n_classes), votes plus a sum of
        decision values that is too small to change the order of votes. "ovo" has shape (n_samples,
        n_pairs), positive for the first class of a pair.

        Parameters
        ----------
        X, precision, n_jobs
            As for :meth:`KernelSolver.decision_function`, with the same errors.
        """
        if self.several_ is None:
            return super().decision_function(X, precision=precision, n_jobs=n_jobs)
        if self.decision_function_shape == "ovo":
            return -self._guarded(self.several_.decide, X, precision, n_jobs)
        return self._guarded(self.several_.decide_by_class, X, precision, n_jobs)

    def decide_together(self, shared: SharedPoints, X: Any) -> np.ndarray:
        """Return the decision values of all pairs whose points `shared` holds, (n, n_pairs)."""
        return self._guarded(shared.decide, X, "double", None)

    def predict(
        self, X: Any, *, precision: str = "double", n_jobs: int | None = None
    ) -> np.ndarray:
        """Predict classes, shape (n_samples,); of two classes, f(x) = 0 predicts the second.

        Parameters
        ----------
        X, precision, n_jobs
            As for :meth:`decision_function`, with the same errors.
        """
        if self.several_ is not None:
            return self.classes_[self._elect(X, precision=precision, n_jobs=n_jobs)]
        f = self.decision_function(X, precision=precision, n_jobs=n_jobs)
        return self.classes_[(f >= 0.0).astype(np.intp)]

    def _elect(self, X: Any, *, precision: str = "double", n_jobs: int | None = None) -> np.ndarray:
        assert self.several_ is not None, "two classes need no vote"
        if not self.break_ties:
            return self._guarded(self.several_.elect, X, precision, n_jobs)
        if self.decision_function_shape == "ovo":
            msg = "break_ties must be False when decision_function_shape is 'ovo'"
            raise ValueError(msg)
        f = self.decision_function(X, precision=precision, n_jobs=n_jobs)
        return np.argmax(f, axis=1)


@dataclass(eq=False, repr=False)
class ClassifierWithC(KernelParameters, KernelClassifier):
    """A kernel classifier with the parameter `C`, also by position, and the kernel's parameters."""

    C: float = 1.0
