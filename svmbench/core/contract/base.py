"""The estimator contract: the base class of every solver, its three steps and its attributes.

A solver is a scikit-learn estimator in three steps, so that a benchmark can time each alone::

    data = estimator.prepare(X, y)       # validate; convert to the solver's own input format
    estimator.train(data)                # THE ALGORITHM, and nothing else: this is `train_time`
    estimator.evaluate_objective(data)   # objective_ of the declared problem at the solution

``fit(X, y)`` takes the steps of `prepare`, then calls `train` and `finish_fit`. A classifier's
`fit` does not call `prepare` itself, since it asks for the number of classes on the way: a subclass
overrides `_convert`. `finish_fit` sets the same attributes as `evaluate_objective`, but may reuse
decision values that the search has kept, where `evaluate_objective` computes them anew from the
model; benchmarks call `evaluate_objective`.
`train` calls one function on raw arrays and stores the result; called again on the same data, it
gives the same model.

After `fit`: ``coef_`` (1, n_features) and ``intercept_`` (1,) for a linear solver, ``n_iter_``,
``objective_``, ``stop_reason_`` and ``counters_`` (work, in units without noise: updates, passes,
kernel evaluations). With ``trace=True``, if a solver has that parameter, also ``trace_``: rows of
(seconds, iterations, objective).

A weight multiplies C in the loss of its sample: a weight of 3 equals repeating the row three times.
A sample of weight 0 or less takes no part, as in LIBSVM, but keeps its position. The weight of a
sample is its own times its class's, as in scikit-learn.
"""

from __future__ import annotations

import math
import sys
import warnings
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from time import perf_counter, process_time
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, check_array, compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from svmbench.core.contract.declaration import Declaration
from svmbench.core.contract.problems import PROBLEMS, ObjectiveId, Offset, Problem
from svmbench.core.contract.sklearn_bases import ClassifierMixin, Versioned
from svmbench.core.numeric.arrays import canonical_csr, largest_value, require_squares


@dataclass
class TrainingData:
    """Samples in the form that a solver's `train` reads.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        The validated inputs, float64, without a bias column; `evaluate_objective` reads them.
    y : ndarray of shape (n_samples,)
        Labels as float64 in {-1, +1}; all of them +1 where a solver learns one class.
    native : object
        The inputs in the solver's own format: ``X`` with the bias column, another library's
        structure, or, for kernel solvers, ``X`` without its empty columns (`KernelSource` leaves
        these out itself).
    weights : ndarray of shape (n_samples,) or None
        Weights of the samples, for a solver that takes them; None for 1 each.
    decisions : ndarray of shape (n_samples,) or None
        Decision values of the samples that the last `train` has kept; None without.
    decisions_error : float or None
        Scale of their errors, 0 for double precision; None if the search knows none.
    matrix : ndarray of shape (n_samples, n_samples) or None
        The kernel matrix, in the search's order, if a warning will read it; None else.
    """

    X: Any
    y: np.ndarray
    native: Any = None
    weights: np.ndarray | None = None
    decisions: np.ndarray | None = None
    decisions_error: float | None = None
    matrix: np.ndarray | None = None


class UntimedSeconds:
    """Seconds of this process that no measurement counts.

    A solver that runs another program adds the time for handing its data over and back. A path adds
    the time between its solutions, in which models are made and warnings are given.
    """

    wall_s = 0.0
    cpu_s = 0.0


def now() -> tuple[float, float]:
    """Return the wall and CPU seconds of this process, without those that are not to be timed."""
    return perf_counter() - UntimedSeconds.wall_s, process_time() - UntimedSeconds.cpu_s


class PathPoint(NamedTuple):
    """One solution of a path.

    Attributes
    ----------
    solution : Solver or KernelSolution
        A trained estimator, or, of a path on a kernel matrix, the bare solution.
    own_cost_s : float
        Wall time of this point in seconds, with its share of the work that several points need.
    statistics : dict of str to int
        Its work counters. The first of the points that share work counts that work.
    """

    solution: Any
    own_cost_s: float
    statistics: dict[str, int]


class Along(NamedTuple):
    """The parameter of a path, its values, and the folds, as `Solver.path` takes them."""

    over: str
    values: Sequence[Any]
    splits: Splits | None


# All values of `stop_reason_`: those below; "epochs" (a fixed number of steps was made); texts that
# begin with "closed form"; and "not told" of foreign classes and of programs.

#: Stop reasons after which the declared promise holds; with "basis full", in the span of the basis.
KEEPING_PROMISE = ("converged", "basis full")

#: The value of `max_iter` that sets no limit, and a number of iterations that no search reaches.
NO_LIMIT, BEYOND_REACH = -1, 1 << 62

#: Stop reasons of a search that did not reach its tolerance.
UNFINISHED = ("max_iter", "stalled")

#: Stop reason of a search that ended because the duality gap was small enough, and stop reason of a
#: margin problem that w = 0 solves.
BY_GAP, NO_MARGIN = "gap", "no margin"

#: Training and test rows of each fold.
Splits = Sequence[tuple[np.ndarray, np.ndarray]]

#: Floats that are labels are below this, so that integers hold them.
MAX_LABEL = 1e15

#: Type of the parameter `class_weight`.
ClassWeight = dict[Any, float] | str | None

#: A promise is loose if the duality gap is more than this many times the dual value. For csvc at
#: its default tolerance the gap is at most 11 times the dual on a9a, ijcnn1 and digits (pixels
#: from 0 to 16) for C from 1 to 100 and a linear or an RBF kernel, and hundreds to thousands of
#: times for C = 1e8.
LOOSE_GAP = 20.0

#: The warning names a tolerance for a gap of about this share of the dual value.
GOOD_GAP = 0.1


class Solver(Versioned):
    """Base of every solver: three-step `fit`, validation, and a declaration.

    A solver's docstring describes its own parameters and attributes; :mod:`docstrings` adds the
    texts below for all others.

    Parameters
    ----------
    tol : float
        Largest violation of the optimality conditions, in units of the margin.
    max_iter : int
        Largest number of iterations, as ``n_iter_`` counts them.
    random_state : int, RandomState or None
        Seed of all that is drawn at random.
    trace : bool
        Whether to record (seconds, iterations, objective) during the search.

    Attributes
    ----------
    objective_ : float
        Value of the declared problem at the solution.
    n_iter_ : int
        Iterations.
    stop_reason_ : str
        ``"converged"``, ``"max_iter"`` or ``"stalled"`` (no step changes the solution in float64).
    counters_ : dict
        Work done, by its unit.
    """

    declaration: ClassVar[Declaration]
    counters_: dict[str, int]
    n_features_in_: int
    #: Parameters of the tiny fits of `warm_up`, which must call all compiled code.
    warm_with: ClassVar[tuple[dict[str, Any], ...]] = ({},)

    #: Parameters that may be None, which means "without".
    optional: ClassVar[tuple[str, ...]] = ()

    #: Whether ``max_iter=-1`` means no limit, as in scikit-learn's class for the same problem.
    max_iter_may_be_unlimited: ClassVar[bool] = False

    #: Parameters that inherited methods read; `declare` requires them.
    needs_parameters: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def open_methods(cls) -> list[str]:
        """Return the names of the contract's methods that the class doesn't define yet."""
        return [
            name for name in dir(cls) if getattr(getattr(cls, name), "__isabstractmethod__", False)
        ]

    @classmethod
    def warm_up_rest(cls) -> None:
        """Call the compiled code that no tiny problem reaches; most solvers have none."""

    @property
    def problem(self) -> Problem:
        """The problem whose primal value is `objective_`."""
        return PROBLEMS[self.declaration.problem]

    @property
    @abstractmethod
    def offset(self) -> Offset:
        """Treatment of the offset by the estimator as it is configured."""

    @property
    def objective_id(self) -> ObjectiveId:
        """Problem and offset; two objectives are comparable if these are equal."""
        return self.problem.objective_id(self.offset)

    def _validate(self, X: Any, y: Any) -> TrainingData:
        """Check inputs and labels; return them as float64, C-ordered or CSR."""
        raise AssertionError("a kind of solver defines _validate")

    def _check_parameters(self) -> None:
        """Raise ValueError for a parameter out of range; `C` is checked wherever there is one."""
        for name in ("C", "tol"):
            may_be_none = name in self.optional and getattr(self, name) is None
            if hasattr(self, name) and not may_be_none:
                require_positive(name, getattr(self, name))
        if hasattr(self, "max_iter"):
            require_count("max_iter", self.max_iter, or_unlimited=self.max_iter_may_be_unlimited)
        if getattr(self, "fit_intercept", False):
            require_positive("intercept_scaling", getattr(self, "intercept_scaling", 1.0))

    def prepare(self, X: Any, y: Any) -> TrainingData:
        """Validate `X` and `y` and convert them to the solver's own input format."""
        return self._convert(self._validate(X, y))

    def _convert(self, data: TrainingData) -> TrainingData:
        """Set ``native`` of validated data, the input of `train`; by default the inputs."""
        data.native = data.X
        return data

    @abstractmethod
    def train(self, data: TrainingData) -> Self:
        """Run the algorithm on prepared data and store the model."""
        raise AssertionError("a solver defines train")

    @abstractmethod
    def evaluate_objective(self, data: TrainingData) -> Self:
        """Evaluate the declared problem's objective at the solution."""
        raise AssertionError("a solver defines evaluate_objective")

    def finish_fit(self, data: TrainingData) -> Self:
        """End `fit`: as `evaluate_objective`, from the search's decision values if it kept them."""
        return self.evaluate_objective(data)

    def path(
        self,
        data: Any,
        y: np.ndarray | None,
        over: str,
        values: Sequence[Any],
        splits: Splits | None = None,
    ) -> Iterator[PathPoint]:
        """Solve for each value of a parameter, on all rows or on the training rows of each fold.

        Parameters
        ----------
        data : TrainingData or KernelSource
            What this estimator's `prepare` returned; a kernel solver also takes a kernel matrix.
        y : ndarray of shape (n_samples,) or None
            Labels ±1 of a kernel matrix; prepared data have their own.
        over : str
            Name of the parameter.
        values : sequence
            Of the parameter; ascending, where each solution may start from the last.
        splits : sequence of (ndarray, ndarray), optional
            Training and test rows of each fold.

        Yields
        ------
        PathPoint
            In the order of `values`, fold after fold.

        Raises
        ------
        ValueError
            For a value out of range, or a fold without two classes.
        """
        return self._path(data, y, Along(over, values, splits))

    def _path(self, data: Any, y: np.ndarray | None, along: Along) -> Iterator[PathPoint]:
        """Fit anew for each value.

        Solvers that share work between the values (`Declaration.paths`) override this, or a method
        that it calls.
        """
        for _, part in self._parts(data, along.splits):
            for value in along.values:
                model = self._sibling(**{along.over: value})
                prepared = model.prepare(part.X, part.y)
                self._pass_on(model)
                start = perf_counter()
                model.train(prepared)
                yield PathPoint(model, perf_counter() - start, dict(model.counters_))

    def _parts(
        self, data: TrainingData, splits: Splits | None
    ) -> Iterator[tuple[np.ndarray | None, TrainingData]]:
        """Yield the training rows of each fold with their data; without folds, None and `data`."""
        if data.weights is not None:
            raise ValueError(
                f"a path of {self.declaration.name} takes no weights of samples or classes"
            )
        if splits is None:
            yield None, data
            return
        for train, _ in splits:
            yield train, TrainingData(X=data.X[train], y=data.y[train])

    def _sibling(self, **params: Any) -> Self:
        """Return an unfitted clone with other parameters.

        It gets the classes and features that `prepare` has found.
        """
        model = clone(self).set_params(**params)
        self._pass_on(model)
        return model

    def _pass_on(self, model: Any) -> None:
        """Copy the classes and features that `prepare` has found to another estimator."""
        for name in ("classes_", "n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(model, name, getattr(self, name))

    def _where_it_stalls(self) -> str:
        """Return the predicate of the warning that the solver stalled."""
        return "can make no more progress in float64"

    def _warn_unless_finished(self, reason: str) -> None:
        """Warn if the stop reason is `UNFINISHED`."""
        if reason not in UNFINISHED:
            return
        # A baseline's program may have a limit that is no parameter.
        limit = f"max_iter={self.max_iter}" if hasattr(self, "max_iter") else "a limit"
        why = f"stopped at {limit}" if reason == "max_iter" else self._where_it_stalls()
        within = f"tol={self.tol:g}" if hasattr(self, "tol") else "its precision"
        warn_user(
            f"{self.declaration.name} {why} before the optimality conditions held within {within}"
        )

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the model: `prepare`, `train` and `finish_fit`."""
        data = self.prepare(X, y)
        return self.train(data).finish_fit(data)


class BinaryClassifier(ClassifierMixin, Solver):
    """A two-class solver: it maps any two labels to {-1, +1}, and back in predictions.

    Linear and kernel solvers also `fit` more than two classes, by several two-class problems;
    `prepare` and `train` always have one two-class problem.

    Parameters
    ----------
    C : float
        Weight of the summed losses of the problem ``{problem}``; above 0.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, in order.
    estimators_ : list
        The models of the two-class problems, if there are more than two classes.
    """

    classes_: np.ndarray
    estimators_: list[Any]
    #: The models of more than two classes: a list for linear solvers, an `OvoModel` for kernel
    #: solvers; None for two classes.
    several_: Any = None

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training inputs; finite.
        y : array-like of shape (n_samples,)
            Labels of two classes or more.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            On NaN or infinite inputs, a single class, or a parameter out of range.
        """
        return self._fit(X, y)

    def _fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Validate, and fit two classes or more: every classifier's `fit`, from top to bottom."""
        X, y = self._validate_samples(X, y)
        if len(self.classes_) > 2:
            return self._fit_several(X, y, sample_weight)
        data = self._convert(self._two_classes(X, y, sample_weight))
        return self.train(data).finish_fit(data)

    def _fit_several(self, X: Any, y: np.ndarray, sample_weight: Any = None) -> Self:
        """Fit validated samples of more than two classes; solvers that can do so define it."""
        self._two_classes(X, y)
        raise AssertionError("more than two classes are refused")

    def _validate(self, X: Any, y: Any, sample_weight: Any = None) -> TrainingData:
        """Check inputs and two-class labels; return float64 C-ordered or CSR, and labels ±1."""
        X, y = self._validate_samples(X, y)
        return self._two_classes(X, y, sample_weight)

    def _two_classes(self, X: Any, y: np.ndarray, sample_weight: Any = None) -> TrainingData:
        """Return the data of validated samples of two classes, with labels ±1 and weights."""
        if len(self.classes_) > 2:
            msg = "Only binary classification is supported. The type of the target is multiclass."
            raise ValueError(msg)
        return TrainingData(
            X=X,
            y=np.where(y == self.classes_[1], 1.0, -1.0),
            weights=self._weigh(y, sample_weight),
        )

    def _validate_samples(self, X: Any, y: Any) -> tuple[Any, np.ndarray]:
        """Check parameters, inputs and labels, and set ``classes_``; return inputs and labels.

        The inputs are float64, C-ordered or CSR.
        """
        self._check_parameters()
        X, y = validated(self, X, y, sparse=self.declaration.sparse)
        if not are_plain(y):
            check_classification_targets(y)
        classes = np.unique(y)
        if len(classes) == 1:
            raise ValueError(
                f"{type(self).__name__} needs samples of two classes; the data has one class only:"
                f" {y[0]}"
            )
        require_squares(X)
        self.classes_ = classes
        self.__dict__.pop("several_", None)  # of an earlier fit
        return X, y

    def _alone(self) -> Self:
        """Return an unfitted copy without class weights, for one of several problems."""
        model = unfitted(self)
        if "class_weight" in vars(model):
            model.class_weight = None
        return model

    def _weigh(self, labels: np.ndarray, sample_weight: Any) -> np.ndarray | None:
        """Return the weight of each sample; None where all are 1, as here."""
        return None

    def _weigh_against_rest(
        self, labels: np.ndarray, label: Any, sample_weight: Any
    ) -> np.ndarray | None:
        """Return the weights for the problem of one class against the rest; None if all are 1."""
        return None

    def predict(self, X: Any) -> np.ndarray:
        """Predict the class of each row of `X`, shape (n_samples,); f = 0 is the second of two.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before `fit`.
        """
        if self.several_ is not None:
            return self.classes_[self._elect(X)]
        positive = self.decision_function(X) >= 0
        return self.classes_[positive.astype(np.intp)]

    def _elect(self, X: Any) -> np.ndarray:
        """Return the positions of the predicted classes in ``classes_``."""
        return np.argmax(self.decision_function(X), axis=1)

    @abstractmethod
    def decision_function(self, X: Any) -> np.ndarray:
        """Return f(x) for each row of `X`, shape (n_samples,)."""
        raise AssertionError("a solver defines decision_function")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        several = type(self)._fit_several is not BinaryClassifier._fit_several
        tags.classifier_tags.multi_class = several
        tags.input_tags.sparse = self.declaration.sparse
        return tags


class Weighted(BinaryClassifier):
    """A classifier whose `fit` takes weights of samples; most have the parameter `class_weight`.

    Its `train` reads ``data.weights``: an array, none of it negative, or None.

    Parameters
    ----------
    class_weight : dict, "balanced" or None
        Factor of C for the samples of each class. A dict has the factors by label, and classes that
        it lacks have 1; "balanced" gives all classes the same total weight; None means 1 for all.
    """

    #: Whether ``"balanced"`` counts a sample by its weight (LinearSVC) or as one (SVC).
    balances_weights: ClassVar[bool] = False

    #: Factor of the weights of a class; solvers may make it a parameter.
    class_weight: ClassWeight = None

    def prepare(self, X: Any, y: Any, sample_weight: Any = None) -> TrainingData:
        """Validate and convert; see the base class, and `fit` for the weights."""
        return self._convert(self._validate(X, y, sample_weight))

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training inputs; finite.
        y : array-like of shape (n_samples,)
            Labels of two classes or more.
        sample_weight : array-like of shape (n_samples,), optional
            Factor of C in the loss of each sample, beside the weight of its class; a sample of 0 or
            less takes no part.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            On NaN or infinite inputs, a single class, a parameter out of range, or weights
            that leave a class without a sample.
        """
        return self._fit(X, y, sample_weight)

    def _weigh(self, labels: np.ndarray, sample_weight: Any) -> np.ndarray | None:
        """Return each sample's weight times its class's, shape (n_samples,); None if all are 1."""
        given = as_weights(sample_weight, labels)
        if given is None and self.class_weight is None:
            return None
        weights = self._class_weights(labels, given)
        return effective(weights if given is None else weights * given, labels)

    def _class_weights(self, labels: np.ndarray, given: np.ndarray | None) -> np.ndarray:
        return class_weights(self.class_weight, labels, given if self.balances_weights else None)

    def _weigh_against_rest(
        self, labels: np.ndarray, label: Any, sample_weight: Any
    ) -> np.ndarray | None:
        """Return the weights where the rest has class weight 1, as in LIBLINEAR; None if all 1."""
        given = as_weights(sample_weight, labels)
        if given is None and self.class_weight is None:
            return None
        is_one = labels == label
        weights = np.where(is_one, self._class_weights(labels, given), 1.0)
        return effective(weights if given is None else weights * given, is_one)

    def _weights_of(self, y: np.ndarray, weights: np.ndarray | None) -> np.ndarray | None:
        """Return the given weights, or the weights of classes -1 and +1; for a bare `solve`."""
        return self._weigh(y, None) if weights is None else weights


def class_weights(
    class_weight: ClassWeight, labels: np.ndarray, counted: np.ndarray | None = None
) -> np.ndarray:
    """Return the weight of each sample's class, shape (n_samples,).

    ``"balanced"`` gives every class the same sum of weights, n_samples in all; a sample counts
    there as its entry of `counted`, by default 1. ValueError for an invalid `class_weight`.
    """
    if not (class_weight is None or class_weight == "balanced" or isinstance(class_weight, dict)):
        msg = f"class_weight must be a dict, 'balanced' or None, got class_weight={class_weight!r}"
        raise ValueError(msg)
    classes, codes = np.unique(labels, return_inverse=True)
    if class_weight == "balanced" and counted is not None:
        sums = np.bincount(codes, weights=counted)
        with np.errstate(divide="ignore"):
            return (counted.sum() / (len(classes) * sums))[codes]
    return compute_class_weight(class_weight, classes=classes, y=labels)[codes]


def as_weights(sample_weight: Any, labels: np.ndarray) -> np.ndarray | None:
    """Return a user's weights as float64 (n_samples,), or None; ValueError for another shape."""
    if sample_weight is None:
        return None
    weights = check_array(
        sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight"
    )
    if weights.shape != labels.shape:
        msg = f"sample_weight has shape {weights.shape}, and there are {len(labels)} samples"
        raise ValueError(msg)
    return weights


def effective(weights: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the weights clipped at 0; ValueError, in LIBSVM's words, if a class has none left."""
    weights = np.maximum(weights, 0.0)
    left = np.unique(labels[weights > 0.0])
    if len(left) == 0:
        msg = "Invalid input - all samples have zero or negative weights."
        raise ValueError(msg)
    if len(left) == 1:
        msg = "Invalid input - all samples with positive weights belong to the same class."
        raise ValueError(msg)
    gone = np.setdiff1d(labels, left)
    if len(gone):
        msg = f"Invalid input - class {gone[0]} has no sample of positive weight."
        raise ValueError(msg)
    return weights


def validated(
    estimator: Any, X: Any, y: Any = "no_validation", *, sparse: bool = True, reset: bool = True
) -> Any:
    """Return inputs, and labels if there are any, as scikit-learn's `validate_data` does.

    Inputs are float64, C-ordered or CSR: canonical, if the estimator is being fitted (`reset`).
    `validate_data` takes longer than the fit of a small problem: it is called where anything has to
    be converted, or is wrong.
    """
    seen, has_labels = vars(estimator), not isinstance(y, str)
    is_array = type(X) is np.ndarray
    is_ready = (
        (is_array or (sparse and type(X) in (sp.csr_array, sp.csr_matrix)))
        and (X.ndim == 2 and X.dtype == np.float64 and min(X.shape) > 0)
        and ((not is_array or X.flags.c_contiguous) and math.isfinite(largest_value(X)))
        and (not has_labels or (are_plain(y) and len(y) == X.shape[0]))
    )
    if is_ready and reset:
        seen["n_features_in_"] = X.shape[1]
        seen.pop("feature_names_in_", None)
    elif not (
        is_ready and seen.get("n_features_in_") == X.shape[1] and "feature_names_in_" not in seen
    ):
        checked = validate_data(
            estimator,
            X,
            y,
            reset=reset,
            accept_sparse="csr" if sparse else False,
            dtype=np.float64,
            order="C",
        )
        X, y = checked if has_labels else (checked, y)
    X = canonical_csr(X) if reset and sp.issparse(X) else X
    return (X, y) if has_labels else X


def are_plain(y: Any) -> bool:
    """Return True if labels are an array (in memory or mapped) of whole numbers or strings.

    For these usual cases scikit-learn's full check takes longer than the fit of a small problem.
    """
    is_array = isinstance(y, np.ndarray) and not isinstance(y, np.ma.MaskedArray)
    is_row = is_array and y.ndim == 1 and len(y) > 0
    if is_row and y.dtype.kind == "f":
        return bool(np.all(np.abs(y) < MAX_LABEL) and np.all(y == np.rint(y)))
    return is_row and y.dtype.kind in "biuU"


def unfitted(estimator: Any) -> Any:
    """Return an unfitted estimator of the same class and parameters.

    Unlike `clone` it neither copies parameters nor reads the signature, which takes longer than the
    fit of a small problem.
    """
    model = object.__new__(type(estimator))
    for name, value in vars(estimator).items():
        if not (name.endswith("_") or name.startswith("_")):
            setattr(model, name, value)
    return model


def reason_of_all(reasons: Sequence[str]) -> str:
    """Return the first stop reason that is not ``"converged"``, or ``"converged"``."""
    return next((reason for reason in reasons if reason != "converged"), reasons[0])


def sum_of_counters(models: Sequence[Any]) -> dict[str, int]:
    """Return the sums of the counters that the first model has."""
    return {
        name: sum(int(model.counters_.get(name, 0)) for model in models)
        for name in models[0].counters_
    }


def require_positive(name: str, value: Any) -> None:
    """Raise ValueError unless `value` is a finite number above 0."""
    if not (isinstance(value, Real) and np.isfinite(float(value)) and float(value) > 0):
        raise ValueError(f"{name} must be a positive finite number, got {name}={value!r}")


def require_count(name: str, value: Any, *, or_unlimited: bool = False) -> None:
    """Raise ValueError unless `value` is an integer of at least 1, or -1 with `or_unlimited`."""
    if isinstance(value, Integral) and (
        int(value) >= 1 or (or_unlimited and int(value) == NO_LIMIT)
    ):
        return
    no_limit = ", or -1 for no limit" if or_unlimited else ""
    raise ValueError(f"{name} must be an integer of at least 1{no_limit}, got {name}={value!r}")


def require_n_jobs(n_jobs: int) -> None:
    """Raise ValueError unless `n_jobs` is a number of threads, or -1 for one a processor."""
    if n_jobs != -1:
        require_count("n_jobs", n_jobs)


def most_iterations(max_iter: int) -> int:
    """Return the number of iterations that a parameter `max_iter` allows."""
    return BEYOND_REACH if max_iter == NO_LIMIT else int(max_iter)


def warn_user(message: str, category: type[Warning] = ConvergenceWarning) -> None:
    """Warn of the line that called this package, however deep in it the cause was found.

    Parameters
    ----------
    message : str
    category : type, optional
        Default: ConvergenceWarning.
    """
    caller, level = sys._getframe(1), 2  # 1 is this function
    while caller.f_back and caller.f_globals.get("__name__", "").startswith("svmbench."):
        caller, level = caller.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def warn_without_margin(model: Any, data: Any) -> bool:
    """Warn, as `fit` does, if a model of a path has no margin; return whether it has none."""
    if model.stop_reason_ != NO_MARGIN:
        return False
    warn_if_useless(model, data)
    return True


def warn_if_useless(model: Any, data: Any) -> None:
    """Warn if a converged model is useless: no margin, or an objective far from the optimum.

    A model's method `no_margin_warning`, if it has one, returns the predicate of a warning, or "".
    """
    ask = getattr(model, "no_margin_warning", None)
    what = ask(data) if ask is not None else ""
    if what:
        warn_user(f"{model.declaration.name} {what}")
    elif hasattr(model, "lower_bound"):
        warn_if_loose(model, model.lower_bound())


def warn_if_loose(model: Any, dual: float) -> None:
    """Warn if the tolerance of a converged solver allows an objective far from the optimum.

    `dual` is a lower bound of the optimum, or -inf. A tolerance in units of the margin, or relative
    to C n, may be large beside the optimum.
    """
    declared = model.declaration
    gap = model.objective_ - dual
    is_loose = math.isfinite(dual) and gap > LOOSE_GAP * abs(dual)
    if not (is_loose and declared.promise and model.stop_reason_ in KEEPING_PROMISE):
        return
    tolerance = float(getattr(model, declared.promised_by))
    # The gap is proportional to the tolerance.
    better = GOOD_GAP * tolerance * max(dual, 0.0) / gap
    advice = f"; set {declared.promised_by}={better:.0e}" if better > 0.0 else ""
    warn_user(
        f"{declared.name} converged within {declared.promised_by}={tolerance:g}, which allows for"
        f" an objective far from the optimum: here {model.objective_:.2g}, where the optimum is at"
        f" least {dual:.2g}{advice}"
    )


def warm_up(cls: type[Solver]) -> None:
    """Compile or load all code of a declared solver's `fit`, by tiny dense and CSR problems."""
    X = np.array([[0.0, 1.0], [0.2, 0.9], [1.0, 0.0], [0.8, 0.0], [0.1, 0.7], [0.9, 0.2]])
    y = np.array([0, 0, 1, 1, 0, 1])
    # The CSR problem is mostly zeros: some solvers convert a fuller sparse matrix to a dense one.
    inputs = [X, sp.csr_array(np.pad(X, ((0, 0), (0, 30))))] if cls.declaration.sparse else [X]
    for each in inputs:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for parameters in cls.warm_with:
                cls(**parameters).fit(each, y)
    cls.warm_up_rest()
