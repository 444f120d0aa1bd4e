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

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Integral, Real
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
    #: Parameters of the tiny fits that `warm_up` makes: each kind of compiled code must be called.
    warm_with: ClassVar[tuple[dict[str, Any], ...]] = ({},)

    @classmethod
    def warm_up_rest(cls) -> None:
        """Call the compiled code that no tiny problem gets to; most solvers have none."""

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
    #: Parameters that may be None, which means "without".
    optional: ClassVar[tuple[str, ...]] = ()

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
                f"the data has one class only: {classes[0]}"
            )
            raise ValueError(msg)
        self.classes_ = classes
        signed = np.where(y == classes[1], 1.0, -1.0)
        return TrainingData(X=canonical_csr(X) if sp.issparse(X) else X, y=signed)

    def _check_parameters(self) -> None:
        """Raise ValueError for a parameter out of range; `C` is checked wherever there is one."""
        for name in ("C", "tol"):
            may_be_none = name in self.optional and getattr(self, name) is None
            if hasattr(self, name) and not may_be_none:
                require_positive(name, getattr(self, name))
        if hasattr(self, "max_iter"):
            require_count("max_iter", self.max_iter)
        if getattr(self, "fit_intercept", False):
            require_positive("intercept_scaling", getattr(self, "intercept_scaling", 1.0))

    def predict(self, X: Any) -> np.ndarray:
        """Predict the class of each row of `X`, shape (n_samples,); f = 0 goes to the second class.

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
            self._sum_weight(data),
            bias=self.bias,
        )
        return self

    def _sum_weight(self, data: TrainingData) -> float:
        """Return the weight of the summed losses; a solver with another parameter converts it."""
        return float(self.C)  # type: ignore[attr-defined]

    def decision_function(self, X: Any) -> np.ndarray:
        """Return ``X @ w + b``, shape (n_samples,)."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, order="C", reset=False)
        return np.asarray(X @ self.coef_[0]).ravel() + self.intercept_[0]


def require_positive(name: str, value: Any) -> None:
    """Raise ValueError, naming the parameter, unless `value` is a finite number above 0."""
    if not (isinstance(value, Real) and np.isfinite(float(value)) and float(value) > 0):
        msg = f"{name} must be a positive finite number, got {name}={value!r}"
        raise ValueError(msg)


def require_count(name: str, value: Any) -> None:
    """Raise ValueError, naming the parameter, unless `value` is an integer of at least 1."""
    if not (isinstance(value, Integral) and int(value) >= 1):
        msg = f"{name} must be an integer of at least 1, got {name}={value!r}"
        raise ValueError(msg)


def canonical_csr(X: Any) -> sp.csr_array:
    """Return `X` as CSR with sorted, unique, 32-bit indices, sharing memory where it already is."""
    X = sp.csr_array(X)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    if X.nnz < np.iinfo(np.int32).max and X.indptr.dtype != np.int32:
        X = sp.csr_array(
            (X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape
        )
    return X


def raw(array: np.ndarray) -> np.ndarray:
    """Return a read-only plain view of `array`, whether it was mapped, writeable or neither.

    Compiled code is specialised by type, and Numba takes a read-only array for another type than
    a writeable one: with every input read-only there is one version to compile and to warm up.
    """
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view


def csr_parts(X: sp.csr_array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return ``data, indices, indptr`` of a CSR matrix as :func:`raw` arrays for compiled code."""
    return raw(X.data), raw(X.indices), raw(X.indptr)


def warm_up(cls: type[Solver]) -> None:
    """Load (or compile) everything a solver's `fit` calls, by fitting tiny dense and CSR problems.

    Parameters
    ----------
    cls : type
        A declared solver class; it is built with each of the parameters in its `warm_with`.
    """
    X = np.array([[0.0, 1.0], [0.2, 0.9], [1.0, 0.0], [0.8, 0.0], [0.1, 0.7], [0.9, 0.2]])
    y = np.array([0, 0, 1, 1, 0, 1])
    # The CSR problem is mostly zeros: some solvers treat a sparse matrix that is not as dense.
    inputs = [X, sp.csr_array(np.pad(X, ((0, 0), (0, 30))))] if cls.declaration.sparse else [X]
    for each in inputs:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for parameters in cls.warm_with:
                cls(**parameters).fit(each, y)
    cls.warm_up_rest()


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
