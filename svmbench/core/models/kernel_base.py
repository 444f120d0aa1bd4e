"""Base classes of kernel solvers: a dual problem is solved, and the model is an expansion.

`KernelSolver` serves one class and two; `KernelClassifier` adds one-vs-one for more classes, and
kernels that are handed in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from numbers import Real
from time import perf_counter
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from svmbench.core.contract.base import (
    Along,
    BinaryClassifier,
    PathPoint,
    Solver,
    Splits,
    TrainingData,
    UntimedSeconds,
    now,
    require_count,
    require_n_jobs,
    require_positive,
    require_squares,
    validated,
    warn_if_useless,
    warn_without_margin,
)
from svmbench.core.contract.declaration import KERNELS
from svmbench.core.contract.problems import FREE, NO_OFFSET, Offset, Values, absorbed
from svmbench.core.kernels import prediction, products
from svmbench.core.kernels.kernels import (
    GAMMA_RULES,
    PRECOMPUTED,
    GivenKernel,
    KernelFunction,
    KernelSource,
    gamma_value,
    is_given,
    require_kernel,
    square_kernel,
    values_with,
)
from svmbench.core.kernels.prediction import require_precision, weighted_sums
from svmbench.core.models import ovo_model
from svmbench.core.models.multiclass import training_of_pairs
from svmbench.core.models.ovo_model import JointData, JointSolution, OvoModel, SharedPoints
from svmbench.core.numeric.arrays import canonical_csr


@contextmanager
def untimed() -> Iterator[None]:
    """Leave what runs in this context out of every measurement."""
    wall, cpu = now()
    try:
        yield
    finally:
        end_wall, end_cpu = now()
        UntimedSeconds.wall_s += end_wall - wall
        UntimedSeconds.cpu_s += end_cpu - cpu


@dataclass(frozen=True)
class Expansion:
    """The model of every kernel solver: f(x) = sum_j beta_j K(z_j, x) + b over points z_j.

    The points are training rows with their positions, or computed ones, such as a reduced basis.

    Attributes
    ----------
    function : KernelFunction
    points : ndarray or csr_array of shape (n_points, n_features)
    coefficients : ndarray of shape (n_points,)
        beta, signed: alpha_i y_i if there are multipliers and labels.
    b : float
        Offset.
    rows : ndarray of int of shape (n_points,) or None
        Positions of the points in the training samples; None for computed points.
    square : float or None
        ``||w||^2 = coefficients' K(points, points) coefficients``; None until it is evaluated.
    rho : float
        The margin of nu-svc and one-class, the squared radius of svdd; else 0.
    """

    function: KernelFunction
    points: Any
    coefficients: np.ndarray
    b: float
    rows: np.ndarray | None = None
    square: float | None = None
    rho: float = 0.0

    @staticmethod
    def over_rows(
        function: KernelFunction, X: Any, coefficients: np.ndarray, b: float, rho: float = 0.0
    ) -> Expansion:
        """Return the expansion over the rows of X with a coefficient other than 0."""
        rows = np.flatnonzero(coefficients)
        return Expansion(
            function, function.take(X, rows), coefficients[rows], b, rows=rows, rho=rho
        )

    @property
    def dual_coef(self) -> np.ndarray:
        """The coefficients, shape (1, n_points)."""
        return self.coefficients.reshape(1, -1)

    @property
    def intercept(self) -> np.ndarray:
        """The offset, shape (1,)."""
        return np.array([self.b])

    def normals(self) -> np.ndarray:
        """Return the normal vector of a linear kernel, shape (1, n_features)."""
        return np.asarray(self.coefficients @ self.points).reshape(1, -1)

    def decide(self, X: Any, *, precision: str = "double", n_jobs: int = 1) -> np.ndarray:
        """Return f of each row of `X`, shape (n_samples,).

        Options are those of :func:`~svmbench.core.kernels.prediction.weighted_sums`.
        """
        values = weighted_sums(
            self.function, self.points, self.coefficients, X, precision=precision, n_jobs=n_jobs
        )
        values += self.b
        return values

    def squared_norm(self) -> float:
        """Return ``||w||^2``, evaluated on the points by blocks unless it is known."""
        if self.square is not None:
            return self.square
        f = Expansion(self.function, self.points, self.coefficients, 0.0).decide(self.points)
        return float(self.coefficients @ f)


#: Parameters of the kernel itself.
KERNEL_PARAMETERS = ("kernel", "gamma", "degree", "coef0")

#: Decision values that the search has kept serve for the objective, unless their largest error
#: could change it by more than this share. The errors of all partly cancel.
WORST_OBJECTIVE_ERROR = 1e-4

#: If the search doesn't know their errors, they are compared at so many samples.
COMPARED_DECISIONS = 64

#: Up to this number of samples all are evaluated in double precision (milliseconds), unless errors
#: that the search knows could change the objective by at most this share of `tol`.
EXACT_OBJECTIVE_MAX_SAMPLES, WORST_SHARE_OF_TOL = 2000, 0.1


@dataclass
class KernelSolution:
    """Result of a kernel solver's inner function.

    Attributes
    ----------
    coefficients : ndarray of shape (n_samples,), or (n_points,) with `points`
        Signed: beta_i = alpha_i y_i if there are labels.
    b : float
        Offset: f(x) = sum_i beta_i K(x_i, x) + b.
    n_iter : int
        Iterations in the solver's own unit.
    stop_reason : str
        ``"converged"``, ``"max_iter"`` or ``"stalled"``; ``"epochs"`` for a fixed number of steps.
    counters : dict of str to int
        Work done.
    points : ndarray or csr_array of shape (n_points, n_features) or None
        The points in the place of the x_i above, if they are no training rows.
    rho : float
        The margin of nu-svc and one-class, the squared radius of svdd; else 0.
    decisions : ndarray of shape (n_samples,) or None
        f of the training samples, if the search has kept it.
    decisions_error : float or None
        The largest error of it that the search has found and corrected, 0 if all kernel values were
        in double precision; None if the search doesn't know.
    matrix : ndarray of shape (n_samples, n_samples) or None
        The kernel matrix, in the search's order, if a warning will read it; None else.
    """

    coefficients: np.ndarray
    b: float
    n_iter: int
    stop_reason: str
    counters: dict[str, int] = field(default_factory=dict)
    points: Any = None
    rho: float = 0.0
    decisions: np.ndarray | None = None
    decisions_error: float | None = None
    matrix: np.ndarray | None = None

    @property
    def alpha(self) -> np.ndarray:
        """Multipliers of a problem with nonnegative ones: the coefficients without signs."""
        return np.abs(self.coefficients)


@dataclass(eq=False, repr=False, kw_only=True)
class KernelParameters:
    """The parameters of the kernel, for solvers that take all of them."""

    kernel: str = "rbf"
    gamma: float | str = "scale"
    degree: int = 3
    coef0: float = 0.0


class KernelSolver(Solver):
    """A solver of a dual problem with a kernel, for two classes or one.

    Subclasses define `solve`, or `train` if they work on the inputs themselves.

    Parameters
    ----------
    kernel : {kernels}
        The kernel K(x, z); a function takes two sets of samples and returns a matrix of values.
    gamma : float, "scale" or "auto"
        Width of the kernel; "scale" is 1 / (n_features * variance of X), "auto" 1 / n_features.
    degree : int
        Of the polynomial kernel.
    coef0 : float
        Of the polynomial and the sigmoid kernel.
    cache_mb : float
        Memory for kernel rows, MiB; any amount works, and more saves time.

    Attributes
    ----------
    support_ : ndarray of int of shape (n_support,)
        Positions of the support vectors in the training samples; missing for computed points.
    support_vectors_ : ndarray or csr_array of shape (n_support, n_features)
        The support vectors.
    dual_coef_ : ndarray of shape (1, n_support)
        Signed coefficients of the support vectors.
    intercept_ : ndarray of shape (1,)
        Offset.
    objective_, dual_objective_ : float
        Primal value at the offset, and dual value.
    """

    # Treatment of the offset: "free"; "absorbed", with `intercept_scaling`^2, or 1, added
    # to the kernel; or "none", as with fit_intercept=False.
    treats_offset: ClassVar[str] = "free"

    needs_parameters: ClassVar[tuple[str, ...]] = KERNEL_PARAMETERS

    kernel: Any
    gamma: float | str
    degree: int
    coef0: float
    tol: float
    max_iter: int
    cache_mb: float
    n_iter_: Any
    #: The search's lower bound of the optimum in the span of its points, where they are computed.
    _dual = -np.inf
    #: The model; ``support_``, ``dual_coef_`` … are views of it.
    expansion_: Expansion

    @property
    def offset(self) -> Offset:
        """Treatment of the offset, by the class and its parameters."""
        if not getattr(self, "fit_intercept", True):
            return NO_OFFSET
        if self.treats_offset == "absorbed":
            return absorbed(getattr(self, "intercept_scaling", 1.0))
        return FREE if self.treats_offset == "free" else NO_OFFSET

    @property
    def _model(self) -> Any:
        """The model: an expansion, or the models of several classes as one."""
        return self.expansion_

    @property
    def support_(self) -> np.ndarray:
        """Positions of the support vectors in the training samples, ascending in each class."""
        if self._model.rows is None:
            msg = "the points of this model are no training rows"
            raise AttributeError(msg)
        return self._model.rows

    @property
    def support_vectors_(self) -> Any:
        """The support vectors, or the computed points of the model."""
        return self._model.points

    @property
    def dual_coef_(self) -> np.ndarray:
        """Signed coefficients of the support vectors, shape (1 or n_classes - 1, n_support)."""
        return self._model.dual_coef

    @property
    def intercept_(self) -> np.ndarray:
        """The offset, shape (1,); for more than two classes one a pair, (n_pairs,)."""
        return self._model.intercept

    @property
    def coef_(self) -> np.ndarray:
        """The normal vectors of a linear kernel, shape (1 or n_pairs, n_features); read-only."""
        if self.kernel != "linear":
            msg = f"only a linear kernel has coef_, and this one is {self.kernel!r}"
            raise AttributeError(msg)
        (weights := self._model.normals()).flags.writeable = False
        return weights

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if is_given(self.kernel):
            self._require_solve()
        else:
            require_kernel(self.declaration.name, self.declaration.kernels, self.kernel)
        if isinstance(self.gamma, str) and self.gamma not in GAMMA_RULES:
            msg = f"gamma must be a positive number, 'scale' or 'auto', got gamma={self.gamma!r}"
            raise ValueError(msg)
        if self.gamma not in GAMMA_RULES:
            require_positive("gamma", self.gamma)
        require_count("degree", self.degree)
        if not (isinstance(self.coef0, Real) and np.isfinite(float(self.coef0))):
            msg = f"coef0 must be a finite number, got coef0={self.coef0!r}"
            raise ValueError(msg)
        mb = getattr(self, "cache_mb", 0.0)
        if not (isinstance(mb, Real) and 0.0 <= float(mb) < np.inf):
            msg = f"cache_mb must be a number of MiB, finite and at least 0, got cache_mb={mb!r}"
            raise ValueError(msg)

    def _require_solve(self) -> None:
        """Raise ValueError if the solver can't work on a given kernel."""
        if not self.takes_given_kernel():
            msg = (
                f"{self.declaration.name} works on inputs, not on a given kernel: kernel must be "
                f"one of {', '.join(KERNELS)}"
            )
            raise ValueError(msg)

    @classmethod
    def takes_given_kernel(cls) -> bool:
        """Return True if `kernel` may be ``"precomputed"`` or a function; for classifiers."""
        return False

    def _convert(self, data: TrainingData) -> TrainingData:
        """Settle gamma: see :func:`svmbench.core.kernels.kernels.gamma_value`.

        ``native`` has the inputs without empty columns, if there are far more columns than entries.
        """
        if is_given(self.kernel):
            self.gamma_ = 0.0
        else:
            self.gamma_ = gamma_value(self.gamma, data.X)
        (data.native,) = products.without_empty_columns(data.X)
        return data

    def solve(
        self, source: KernelSource, y: np.ndarray, start: np.ndarray | None = None
    ) -> KernelSolution:
        """Run the algorithm on one kernel matrix, without validation.

        A protocol can call it for thousands of small problems.

        Parameters
        ----------
        source : KernelSource
        y : ndarray of shape (source.n_samples,)
            Labels ±1, both present.
        start : ndarray of shape (source.n_samples,), optional
            Multipliers to start from, feasible for this C; a solver without a warm start ignores
            them.
        """
        msg = f"{self.declaration.name} works on inputs, not on a kernel matrix"
        raise NotImplementedError(msg)

    def solve_along(
        self, source: KernelSource, y: np.ndarray, over: str, values: Sequence[Any]
    ) -> Iterable[KernelSolution]:
        """Return the solution at each value of a parameter `over` that the kernel does not have.

        The default is a lazy loop over `solve`. A solver that shares work returns a list: the parts
        of the shared time are unknown, and each solution is charged an equal one.
        """
        for value in values:
            yield clone(self).set_params(**{over: value}).solve(source, y)

    def _path(self, data: Any, y: np.ndarray | None, along: Along) -> Iterator[PathPoint]:
        """Solve for each value; if the kernel lacks the parameter, share one matrix for a fold."""
        over, values, splits = along
        of_kernel = over in KERNEL_PARAMETERS
        if is_given(self.kernel) and not isinstance(data, KernelSource):
            msg = "a path on a given kernel takes KernelSource.precomputed(K) in place of samples"
            raise ValueError(msg)
        if isinstance(data, KernelSource):
            if of_kernel:
                msg = f"a kernel matrix has one {over}; its path needs prepared inputs"
                raise ValueError(msg)
            assert y is not None, "a kernel matrix comes with its labels"
            # No generator within a generator: a search asks for thousands of short paths.
            if splits is None:
                return self._points(data, y, over, values)
            return chain.from_iterable(
                self._points(data.subset(train), y[train], over, values) for train, _ in splits
            )
        # A model by another `train` has more than a solution on a kernel matrix.
        if of_kernel or type(self).train is not KernelSolver.train:
            return super()._path(data, y, along)
        return self._path_of_inputs(data, over, values, splits)

    def _path_of_inputs(
        self, data: TrainingData, over: str, values: Sequence[Any], splits: Splits | None
    ) -> Iterator[PathPoint]:
        """Yield trained estimators, fold by fold on one source of kernel values."""
        models = [self._sibling(**{over: value}) for value in values]
        for model in models:
            model._check_parameters()
        for train, part in self._parts(data, splits):
            first = self._sibling()
            if train is None:
                first.gamma_ = self.gamma_
            else:
                first.prepare(part.X, part.y)
            source = KernelSource.from_inputs(part.X, first.function)
            points, is_said = first._points(source, part.y, over, values), False
            for unfitted, (solution, cost, statistics) in zip(models, points, strict=True):
                with untimed():
                    model = unfitted._sibling()
                    model.gamma_ = first.gamma_
                    model._store(solution, part)
                    # Once for a path: the warning names a useful nu.
                    is_said = is_said or warn_without_margin(model, part)
                yield PathPoint(model, cost, statistics)

    def _points(
        self, source: KernelSource, y: np.ndarray, over: str, values: Sequence[Any]
    ) -> Iterator[PathPoint]:
        """Yield the solutions on one kernel matrix, each with its cost."""
        start = perf_counter()
        solutions = self.solve_along(source, y, over, values)
        share = (perf_counter() - start) / max(1, len(values))
        if isinstance(solutions, list):
            for solution in solutions:
                yield PathPoint(solution, share, solution.counters)
            return
        start = perf_counter()
        for solution in solutions:
            yield PathPoint(solution, share + perf_counter() - start, solution.counters)
            start = perf_counter()

    @classmethod
    def takes_kernel_matrix(cls) -> bool:
        """Return True if there is a `solve`, so that a protocol may call it with a kernel matrix.

        The parameter `kernel` may still be refused as "precomputed"; see `takes_given_kernel`.
        """
        return cls.solve is not KernelSolver.solve

    @classmethod
    def warm_up_rest(cls) -> None:
        """Compile the evaluation of kernels and models; subclasses add their own code."""
        super().warm_up_rest()
        products.warm_up_products()
        prediction.warm_up_prediction()

    @classmethod
    def open_methods(cls) -> list[str]:
        """Return the missing methods: `solve` or a `train` of its own is needed."""
        open_ones = super().open_methods()
        if cls.train is KernelSolver.train and not cls.takes_kernel_matrix():
            open_ones.append("solve")
        return open_ones

    def train(self, data: TrainingData) -> Self:
        """Solve on the kernel matrix of the samples, and store the model."""
        weighted = {} if data.weights is None else {"weights": data.weights}
        return self._store(self.solve(self._source(data), data.y, **weighted), data)

    def _source(self, data: TrainingData) -> KernelSource:
        """Return the kernel matrix of the samples."""
        if is_given(self.kernel):
            return KernelSource.precomputed(data.X)
        return KernelSource.from_inputs(data.X, self.function)

    @property
    def function(self) -> KernelFunction:
        """The kernel with its settled parameters."""
        if is_given(self.kernel):
            return GivenKernel()
        return KernelFunction(self.kernel, self.gamma_, int(self.degree), float(self.coef0))

    def _store(self, solution: KernelSolution, data: TrainingData) -> Self:
        if not (np.all(np.isfinite(solution.coefficients)) and np.isfinite(solution.b)):
            msg = f"{type(self).__name__} produced a solution with NaN or infinite coefficients"
            raise FloatingPointError(msg)
        data.decisions, data.decisions_error = solution.decisions, solution.decisions_error
        data.matrix = solution.matrix
        coefficients, b, rho = solution.coefficients, float(solution.b), float(solution.rho)
        bounded = 0
        if solution.points is not None:
            self.expansion_ = Expansion(self.function, solution.points, coefficients, b, rho=rho)
        else:
            self.expansion_ = Expansion.over_rows(self.function, data.X, coefficients, b, rho)
            _, upper = self.problem.bounds(self._problem_parameter(data), len(data.y))
            rows = self.expansion_.rows
            share = 1.0 if data.weights is None else data.weights[rows]
            bounded = int(np.sum(np.abs(coefficients[rows]) >= upper * share))
        return self._store_counters_and_reason(
            solution.n_iter, solution.stop_reason, solution.counters, bounded
        )

    def _store_counters_and_reason(
        self, n_iter: int, reason: str, counters: dict[str, int], bounded: int
    ) -> Self:
        """Store a search's iterations, stop reason and counters; warn unless it converged."""
        self.n_iter_ = max(1, n_iter)
        self.stop_reason_ = reason
        self.counters_ = {
            **counters,
            "support_vectors": len(self.expansion_.coefficients),
            "bounded_support_vectors": bounded,
        }
        self._warn_unless_finished(reason)
        return self

    def evaluate_objective(self, data: TrainingData) -> Self:
        """Set ``objective_`` (primal, at the returned offset) and ``dual_objective_``.

        Decision values are computed in double precision from the model and the samples alone. A
        model over computed points has no multipliers; its dual value is the search's bound of the
        optimum in their span, or -inf.
        """
        return self._set_objectives(data, self._values(data))

    def finish_fit(self, data: TrainingData) -> Self:
        """End `fit`: as `evaluate_objective`, or from the search's own gradient.

        The gradient is used if the search converged on kernel values in double precision. Some of
        it may be from single-precision rows, whose errors the search's checks have measured. It is
        used if an error as large as the largest one, at all samples, would change the objective by
        at most 1e-4 of its value, and up to 2,000 samples ``tol / 10``; since errors partly cancel,
        the objective is then right to about 1e-6. If the search doesn't know the errors, the
        gradient is compared with the model at 64 samples, above 2,000 samples. For the linear
        kernel it is not used.
        """
        values = self._known_values(data)
        return (
            self.evaluate_objective(data) if values is None else self._set_objectives(data, values)
        )

    def _known_values(self, data: TrainingData) -> Values | None:
        # A search on single precision checks the gradient before it converges.
        f, is_done = data.decisions, self.stop_reason_ == "converged"
        error = data.decisions_error if is_done else None
        if f is None:
            return None
        if error == 0.0:
            return self._values(data, f)
        are_few, worst = len(f) <= EXACT_OBJECTIVE_MAX_SAMPLES, WORST_OBJECTIVE_ERROR
        if self.kernel == "linear" or (are_few and error is None):
            return None
        if error is None:
            rows = np.unique(np.linspace(0, len(f) - 1, COMPARED_DECISIONS).astype(np.intp))
            error = float(np.max(np.abs(self.expansion_.decide(data.X[rows]) - f[rows])))
        elif are_few:
            worst = min(worst, WORST_SHARE_OF_TOL * float(self.tol))
        values = self._values(data, f)
        value = self.problem.primal(values, self._problem_parameter(data))
        change = error * float(np.sum(np.abs(self.expansion_.coefficients)))
        return values if change <= worst * abs(value) else None

    def _set_objectives(self, data: TrainingData, values: Values) -> Self:
        """Set the objectives of the problem at some values; warn if the model is useless."""
        parameter = self._problem_parameter(data)
        self.objective_ = self.problem.primal(values, parameter)
        has_dual = values.alpha is not None
        self.dual_objective_ = self.problem.dual(values, parameter) if has_dual else self._dual
        if not np.isfinite(self.objective_):
            name = f"{type(self).__name__} has decision values that are NaN or infinite on its own"
            msg = f"{name} training samples: the {self.kernel} kernel overflows there"
            raise FloatingPointError(msg)
        warn_if_useless(self, data)
        return self

    def _values(self, data: TrainingData, f: np.ndarray | None = None) -> Values:
        """Return the values of the problem, from f or new decision values; store ||w||^2."""
        f = self.expansion_.decide(data.X) if f is None else f
        model, alpha = self.expansion_, None
        if model.rows is None:
            square = model.squared_norm()
        else:
            square = float(model.coefficients @ (f[model.rows] - model.b))
            alpha = np.zeros(len(f))
            alpha[model.rows] = model.coefficients * data.y[model.rows]
        self.expansion_ = replace(model, square=square)
        if self.offset.kind == "absorbed":
            square += (model.b / self.offset.value) ** 2
        return Values(
            f=f, square=square, y=data.y, alpha=alpha, rho=model.rho, weights=data.weights
        )

    def _problem_parameter(self, data: TrainingData) -> float:
        """Return the parameter of the problem, converted from the solver's own."""
        raise AssertionError("a kind of kernel solver defines _problem_parameter")

    def decision_function(
        self, X: Any, *, precision: str = "double", n_jobs: int | None = None
    ) -> np.ndarray:
        """Return f(x) for each row of `X`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Finite.
        precision : {"double", "single"}, default="double"
            Precision of RBF values on dense inputs; sums and other kernels are double. Single
            values are right to 2e-6, most to 2e-7; where float32 can't reach that, they are double.
        n_jobs : int, optional
            Threads; -1 for one a processor. Default: the estimator's `n_jobs`, or 1. The number of
            threads changes no bit of the result.

        Returns
        -------
        ndarray of shape (n_samples,)

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before `fit`.
        ValueError
            On inputs that are not finite, kernel values that overflow, or an invalid option.
        """
        return self._guarded(self._decide, X, precision, n_jobs)

    def _guarded(
        self, decide: Callable[..., np.ndarray], X: Any, precision: str, n_jobs: int | None
    ) -> np.ndarray:
        """Check inputs and options, call `decide`, and check its result."""
        check_is_fitted(self)
        require_precision(precision)
        n_jobs = getattr(self, "n_jobs", 1) if n_jobs is None else n_jobs
        require_n_jobs(n_jobs)
        X = self._validate_more(X)
        with np.errstate(over="ignore", invalid="ignore"):
            values = decide(X, precision=precision, n_jobs=n_jobs)
        if not np.all(np.isfinite(values)):
            msg = f"the {self.kernel} kernel overflows on these inputs; scale the features"
            raise ValueError(msg)
        return values

    def _decide(self, X: Any, *, precision: str = "double", n_jobs: int = 1) -> np.ndarray:
        """Return f of validated inputs."""
        return self.expansion_.decide(X, precision=precision, n_jobs=n_jobs)

    def _validate_more(self, X: Any) -> Any:
        """Return validated inputs of a prediction in float64, C-ordered or CSR."""
        X = validated(self, X, reset=False)
        X = canonical_csr(X) if sp.issparse(X) else X
        if not is_given(self.kernel):
            require_squares(X)
        return X


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

    def _problem_parameter(self, data: TrainingData) -> float:
        """Return the problem's parameter, the weight of the summed losses: C, unless overridden."""
        return float(self.C)

    def lower_bound(self) -> float:
        """Return a lower bound of the optimum: the dual objective, -inf if there is none."""
        return float(self.dual_objective_)

    @classmethod
    def takes_given_kernel(cls) -> bool:
        """Return True if `kernel` may be "precomputed" or a function.

        That is so if there is a `solve`, and `train`, not overridden, only calls it on the matrix.
        """
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
        """Validate; if `kernel` is a function, return its values with the training rows."""
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
        codes = np.searchsorted(self.classes_, y)
        alone = self._alone()
        if callable(self.kernel):
            alone.kernel = PRECOMPUTED  # X is the matrix of its values
        pairs = training_of_pairs(alone, X, codes)
        data = pairs.prepare(X, codes, self._weigh(y, sample_weight))
        pairs.train(data)
        primal, dual = pairs.finish_fit(data)
        assert dual is not None, "every kernel solver has a dual value"
        self.objective_, self.dual_objective_ = primal, dual
        self.several_ = OvoModel(pairs, len(self.classes_))
        self.gamma_, self.n_iter_ = float(pairs.kernel_model.gamma_), pairs.iterations
        self.stop_reason_, self.counters_ = pairs.stop_reason, pairs.counters
        return self

    def trains_pairs_together(self, sizes: np.ndarray) -> bool:
        """Return True if `train_jointly` can train all pairs of classes with these class sizes."""
        return False

    def train_jointly(self, joint: JointData) -> JointSolution:
        """Solve the problems of all pairs together; solvers that share work define it."""
        raise AssertionError("a solver that trains pairs together defines train_jointly")

    def keep_pair(self, shared: SharedPoints, p: int) -> None:
        """Store the model of pair `p`, over rows of the pair's samples."""
        pair, starts = shared.pairs[p], shared.starts
        a, b = pair.negative, pair.positive
        places = np.r_[starts[a] : starts[a + 1], starts[b] : starts[b + 1]]
        other = np.repeat([b - 1, a], [starts[a + 1] - starts[a], starts[b + 1] - starts[b]])
        coefficients = shared.coefficients[other, places]
        used = np.flatnonzero(coefficients)
        used = used[np.argsort(shared.rows[places[used]])]
        self.expansion_ = Expansion(
            shared.function,
            shared.function.take(shared.points, places[used]),
            coefficients[used],
            float(shared.b[p]),
            rows=np.searchsorted(pair.rows, shared.rows[places[used]]),
        )

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
