"""The estimator contract: what every solver of the suite is, declares and leaves behind.

A solver is a scikit-learn estimator in three steps, so that a benchmark can time each alone::

    data = estimator.prepare(X, y)   # validate; convert to the solver's own input format
    estimator.train(data)            # THE ALGORITHM, and nothing else: this is `train_time`
    estimator.certify(data)          # objective_ of the declared problem at the solution

``fit(X, y)`` is the three in a row. `train` calls one function on raw arrays and stores what it
returns; it may be called again on the same data and then gives the same model.

After `fit`: ``coef_`` (1, n_features) and ``intercept_`` (1,) for a linear solver,
``n_iter_``, ``objective_``, ``stop_reason_`` and ``counters_`` (work done, in units that no
noise touches: updates, passes, kernel evaluations). With ``trace=True``, where a solver has that
parameter, also ``trace_``: rows of (seconds, iterations, objective).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from svmbench.core import problems


@dataclass(frozen=True)
class Declaration:
    """What a solver says of itself, checked against a config before anything runs.

    Attributes
    ----------
    name : str
        The paper's name in kebab case, as configs, records and tables spell it.
    problem : str
        The entry of :data:`svmbench.core.problems.PROBLEMS` that it minimises.
    summary : str
        One line for ``svmbench list solvers``.
    reference : str
        Paper with equation or algorithm numbers, or the program and its option.
    paper : str
        Key of the paper it comes from (``alsvm``, ``smo`` …); empty for a baseline.
    kernels : tuple of str
        ``("linear",)`` or the kernels it takes.
    sparse : bool
        Whether CSR input is used as it is; if not, a sparse data set is a skipped cell.
    task : str
        ``"binary"`` or ``"one-class"``.
    shares : str
        The parameter along which ``fit_path`` shares work; empty where there is no such method.
    """

    name: str
    problem: str
    summary: str
    reference: str
    paper: str = ""
    kernels: tuple[str, ...] = ("linear",)
    sparse: bool = True
    task: str = "binary"
    shares: str = ""


#: Every declared solver class by its name, in the order of declaration.
REGISTRY: dict[str, type[Solver]] = {}

SolverType = TypeVar("SolverType", bound="type[Solver]")


def declare(**what: Any) -> Callable[[SolverType], SolverType]:
    """Class decorator: attach a :class:`Declaration` and enter the class into the registry."""
    declaration = Declaration(**what)

    def enter(cls: SolverType) -> SolverType:
        known = REGISTRY.get(declaration.name)
        if known is not None and (known.__module__, known.__qualname__) != (
            cls.__module__,
            cls.__qualname__,
        ):
            msg = f"two solvers are declared as {declaration.name!r}: {known} and {cls}"
            raise ValueError(msg)
        if declaration.problem not in problems.PROBLEMS:
            msg = (
                f"solver {declaration.name!r} declares the unknown problem {declaration.problem!r}"
            )
            raise ValueError(msg)
        cls.declaration = declaration
        REGISTRY[declaration.name] = cls
        return cls

    return enter


@dataclass
class TrainingData:
    """Samples in the form in which a solver's `train` wants them.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        The validated inputs, float64, without a bias column: what `certify` evaluates on.
    y : ndarray of shape (n_samples,)
        Labels as float64 in {-1, +1}.
    native : object
        What `train` reads: often ``X`` with the bias column, or a foreign program's structure.
    """

    X: Any
    y: np.ndarray
    native: Any = None


@dataclass
class LinearSolution:
    """What a linear solver's inner function returns.

    Attributes
    ----------
    w : ndarray of shape (n_features,)
        The normal vector.
    b : float
        The offset of ``f(x) = w·x + b``.
    n_iter : int
        Iterations in the solver's own unit.
    stop_reason : str
        ``"converged"``, ``"max_iter"``, ``"closed form"`` …
    counters : dict of str to int
        Work done.
    trace : list of (float, int, float)
        Seconds, iterations, objective; empty unless asked for.
    """

    w: np.ndarray
    b: float
    n_iter: int
    stop_reason: str
    counters: dict[str, int] = field(default_factory=dict)
    trace: list[tuple[float, int, float]] = field(default_factory=list)


class Solver(BaseEstimator):
    """Base of every solver: three-step `fit`, validation, and a declaration."""

    declaration: ClassVar[Declaration]

    def prepare(self, X: Any, y: Any) -> TrainingData:
        """Validate `X` and `y` and convert them to the solver's own input format."""
        raise AssertionError("a solver defines prepare")

    def train(self, data: TrainingData) -> Self:
        """Run the algorithm on prepared data and store the model."""
        raise AssertionError("a solver defines train")

    def certify(self, data: TrainingData) -> Self:
        """Evaluate the declared problem's objective at the solution."""
        raise AssertionError("a solver defines certify")

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training inputs; finite.
        y : array-like of shape (n_samples,)
            Labels of exactly two classes.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            On NaN or infinite inputs, a single class or more than two, or a parameter out of range.
        """
        data = self.prepare(X, y)
        return self.train(data).certify(data)


class BinaryClassifier(ClassifierMixin, Solver):
    """A two-class solver: labels in, {-1, +1} inside, labels out."""

    classes_: np.ndarray

    def _validate(self, X: Any, y: Any) -> TrainingData:
        """Check inputs and labels; return float64 C-ordered or CSR inputs and labels ±1."""
        self._check_parameters()
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse="csr" if self.declaration.sparse else False,
            dtype=np.float64,
            order="C",
            y_numeric=False,
        )
        check_classification_targets(y)
        kind = type_of_target(y)
        classes = np.unique(y)
        if len(classes) > 2:
            msg = f"Only binary classification is supported. The type of the target is {kind}."
            raise ValueError(msg)
        if len(classes) < 2:
            msg = (
                f"{type(self).__name__} needs samples of two classes; "
                f"the data has one class only: {classes[0]!r}"
            )
            raise ValueError(msg)
        self.classes_ = classes
        signed = np.where(y == classes[1], 1.0, -1.0)
        if sp.issparse(X):
            X.sort_indices()
        return TrainingData(X=X, y=signed)

    def _check_parameters(self) -> None:
        """Raise ValueError for a parameter out of range; `C` is checked wherever there is one."""
        C = getattr(self, "C", None)
        if C is not None and not (np.isscalar(C) and np.isfinite(C) and C > 0):
            msg = f"C must be a positive finite number, got C={C!r}"
            raise ValueError(msg)

    def predict(self, X: Any) -> np.ndarray:
        """Predict the class of each row of `X`, shape (n_samples,); a tie (f = 0) goes to the second.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before `fit`.
        """
        positive = self.decision_function(X) >= 0
        return self.classes_[positive.astype(np.intp)]

    def decision_function(self, X: Any) -> np.ndarray:
        """Return f(x) for each row of `X`, shape (n_samples,)."""
        raise AssertionError("a solver defines decision_function")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = self.declaration.sparse
        return tags


class LinearClassifier(BinaryClassifier):
    """A two-class solver whose model is one normal vector and an offset.

    Subclasses have the parameters `fit_intercept` and `intercept_scaling`: with an intercept a
    constant feature of that value is appended to every sample ("bias absorbed"), so the offset is
    regularised like any other weight, as in LIBLINEAR's option -B and scikit-learn's LinearSVC.
    """

    fit_intercept: bool
    intercept_scaling: float
    coef_: np.ndarray
    intercept_: np.ndarray
    objective_: float

    @property
    def bias(self) -> float:
        """The value of the appended constant feature; 0 without an intercept."""
        return float(self.intercept_scaling) if self.fit_intercept else 0.0

    def prepare(self, X: Any, y: Any) -> TrainingData:
        """Validate, and append the constant feature."""
        data = self._validate(X, y)
        data.native = append_bias(data.X, self.bias)
        return data

    def _store(self, solution: LinearSolution) -> Self:
        if not (np.all(np.isfinite(solution.w)) and np.isfinite(solution.b)):
            msg = f"{type(self).__name__} produced a solution with NaN or infinite weights"
            raise FloatingPointError(msg)
        self.coef_ = solution.w.reshape(1, -1)
        self.intercept_ = np.array([solution.b])
        self.n_iter_ = solution.n_iter
        self.stop_reason_ = solution.stop_reason
        self.counters_ = solution.counters
        if solution.trace:
            self.trace_ = solution.trace
        return self

    def certify(self, data: TrainingData) -> Self:
        """Set ``objective_``: the primal value of the declared problem at (w, b)."""
        problem = problems.PROBLEMS[self.declaration.problem]
        self.objective_ = problem.primal(
            data.X,
            data.y,
            self.coef_[0],
            float(self.intercept_[0]),
            self._effective_C(data),
            bias=self.bias,
        )
        return self

    def _effective_C(self, data: TrainingData) -> float:
        """Return C of the sum-of-losses form; a solver with another parameter converts it here."""
        return float(self.C)  # type: ignore[attr-defined]

    def decision_function(self, X: Any) -> np.ndarray:
        """Return ``X @ w + b``, shape (n_samples,)."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, order="C", reset=False)
        return np.asarray(X @ self.coef_[0]).ravel() + self.intercept_[0]


def append_bias(X: Any, bias: float) -> Any:
    """Return `X` with a constant last column of value `bias`, or `X` itself when `bias` is 0."""
    if bias == 0.0:
        return X
    n_samples, n_features = X.shape
    if not sp.issparse(X):
        extended = np.empty((n_samples, n_features + 1))
        extended[:, :n_features] = X
        extended[:, n_features] = bias
        return extended
    # One more entry at the end of every row: sorted indices stay sorted.
    lengths = np.diff(X.indptr)
    indptr = X.indptr + np.arange(n_samples + 1, dtype=X.indptr.dtype)
    is_bias = np.zeros(X.nnz + n_samples, dtype=bool)
    is_bias[indptr[1:] - 1] = True
    data = np.empty(len(is_bias))
    indices = np.empty(len(is_bias), dtype=X.indices.dtype)
    data[is_bias], indices[is_bias] = bias, n_features
    data[~is_bias], indices[~is_bias] = X.data[: lengths.sum()], X.indices[: lengths.sum()]
    return sp.csr_array((data, indices, indptr), shape=(n_samples, n_features + 1))
