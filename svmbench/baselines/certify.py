"""The function `certify`: certificates of whatever model a solver, a class or a program shows.

It turns a model into the parts that :mod:`svmbench.core.models.certificates` evaluates, one for
each two-class problem. Every kind of model has its own scale: docs/certificates.md lists them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array

from svmbench.base.errors import SvmbenchError
from svmbench.base.escape import line
from svmbench.baselines.program_models import (
    LIBLINEAR_PROBLEMS,
    header_of,
    kernel_of,
    read_model,
    split_at_vectors,
    support_vectors_of,
)
from svmbench.baselines.programs import Program
from svmbench.core.contract.base import Solver, TrainingData, as_weights, class_weights
from svmbench.core.contract.problems import (
    FREE,
    NO_OFFSET,
    PROBLEMS,
    Offset,
    Problem,
    absorbed,
)
from svmbench.core.kernels.kernels import PRECOMPUTED, GivenKernel, KernelFunction, gamma_value
from svmbench.core.models.certificates import Certificate, Part, certify_part, sum_of
from svmbench.core.models.kernel_base import Expansion
from svmbench.core.models.multiclass import OneVsOne
from svmbench.core.numeric.arrays import canonical_csr

#: Problems without labels; and those whose parameter is nu, a share of the samples, so that
#: weights of samples count relative to their mean.
ONE_CLASS_PROBLEMS = ("one-class", "one-class-hard", "svdd")
OF_SHARES = ("nu-svc", "one-class")

#: Significant digits by which a support vector of a file is found among the training rows.
EQUAL_DIGITS = 7

#: Decision values alone are certified if there are at most this many features or samples, since
#: finding w is a least-squares problem.
MOST_DECIDED = 4000


class Asked(NamedTuple):
    """The arguments of :func:`certify` that complete the facts that a model shows."""

    problem: str | None = None
    parameter: float | None = None
    offset: str | float | None = None
    sample_weight: Any = None


@dataclass(frozen=True)
class _Samples:
    """Training rows in float64, their labels, and the caller's weights."""

    X: Any
    y: np.ndarray | None
    weights: np.ndarray | None

    @property
    def labels(self) -> np.ndarray:
        if self.y is None:
            raise SvmbenchError("a certificate of a classifier needs the labels of its samples")
        return self.y

    def part(self, rows: np.ndarray | None = None) -> tuple[Any, np.ndarray | None]:
        """Return inputs and weights of some rows."""
        if rows is None:
            return self.X, self.weights
        return self.X[rows], None if self.weights is None else self.weights[rows]


def certify(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    problem: str | None = None,
    parameter: float | None = None,
    offset: str | float | None = None,
    sample_weight: Any = None,
) -> Certificate:
    """Return a certificate of how near to its optimum a fitted model is, in float64.

    Parameters
    ----------
    model : estimator, path or array
        A fitted solver of this package; a fitted class with ``dual_coef_`` and ``support_``, or
        with ``coef_``, like scikit-learn's SVC, NuSVC, OneClassSVM, LinearSVC, SGDClassifier and
        RidgeClassifier; the file of a model of LIBSVM (or ThunderSVM), LIBLINEAR, SVM-light or
        LaSVM; or the decision values of the training rows, which have a primal value alone.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The rows that the model was trained on, in their order.
    y : array-like of shape (n_samples,), optional
        Their labels; none for a novelty detector.
    problem : str, optional
        ``hinge``, ``squared-hinge``, ``least-squares``, ``nu-svc``, ``one-class``, ``svdd`` or
        another problem of a solver. Default: what the model says.
    parameter : float, optional
        C or nu. Default: the model's; a file has none.
    offset : {"free", "none"} or float, optional
        How the problem treats the offset; a number is the value of the constant feature that
        absorbs it. Default: what the model says.
    sample_weight : array-like of shape (n_samples,), optional
        The weights that the model was trained with; those of its classes are the model's own.

    Returns
    -------
    Certificate

    Raises
    ------
    svmbench.base.errors.SvmbenchError
        If the model doesn't show what a certificate needs; the message says what is missing.

    Examples
    --------
    >>> import svmbench
    >>> from sklearn.svm import SVC
    >>> X, y = [[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]
    >>> found = svmbench.certify(SVC(kernel="linear", C=10.0, tol=1e-6).fit(X, y), X, y)
    >>> round(found.primal, 4), found.solved_to(1e-5)
    (0.5, True)
    """
    return certificate_of(model, X, y, Asked(problem, parameter, offset, sample_weight))


def declared_problem(model: Any) -> tuple[str, str | float | None] | None:
    """Return the problem and the offset of an estimator that needs no fit to say them, else None.

    The two are written as :func:`certify` takes them. Solvers of this package, scikit-learn's SVMs,
    and classes that are named with a problem say them.
    """
    if declared := getattr(model, "certified_as", None):
        return str(declared[0]), declared[1]
    if isinstance(model, Solver):
        if model.declaration.problem == "mean-embedding":
            return None
        problem, offset = model.problem.name, model.offset
    elif _is(model, "RidgeClassifier") or hasattr(model, "loss"):
        if getattr(model, "penalty", "l2") not in ("l2", "deprecated"):
            return None
        problem, _, offset = _linear_terms(model, 1)
    else:
        of_kernels = {"SVC": "hinge", "NuSVC": "nu-svc", "OneClassSVM": "one-class"}
        problem, offset = (
            next((of_kernels[name] for name in of_kernels if _is(model, name)), ""),
            FREE,
        )
    return (problem, offset.value or offset.kind) if problem else None


def certificate_of(model: Any, X: Any, y: Any, asked: Asked, *, search: bool = True) -> Certificate:
    """Return a certificate.

    With `search`, quadratic programs and Newton steps look for a better lower bound of the optimum
    of a linear model. Without it, a certificate takes about the time of a prediction.
    """
    parts = parts_of(model, X, y, asked)
    certificates = [certify_part(part, search=search) for part in parts]
    if isinstance(model, np.ndarray | list | tuple):
        certificates = [
            replace(certificate, shows="decision values", dual=None, kkt=None)
            for certificate in certificates
        ]
    return sum_of(certificates, X.shape[0] if hasattr(X, "shape") else len(X))


def parts_of(model: Any, X: Any, y: Any, asked: Asked) -> list[Part]:
    """Return the problems that a model solves, each with its part of the model."""
    if asked.problem is None and (declared := getattr(model, "certified_as", None)):
        asked = asked._replace(problem=declared[0], offset=declared[1])
    if asked.problem is not None and asked.problem not in PROBLEMS:
        known = ", ".join(sorted(PROBLEMS))
        raise SvmbenchError(f"there is no problem {line(asked.problem, 60)!r}; there are {known}")
    X = check_array(X, accept_sparse="csr", dtype=np.float64, order="C")
    X = canonical_csr(X) if sp.issparse(X) else X
    labels = None if y is None else np.asarray(y).ravel()
    if labels is not None and len(labels) != X.shape[0]:
        raise SvmbenchError(f"there are {X.shape[0]} rows and {len(labels)} labels")
    weights = None
    if asked.sample_weight is not None:
        given = as_weights(asked.sample_weight, np.zeros(X.shape[0]))
        weights = None if given is None else np.maximum(given, 0.0)
    return list(_parts(model, _Samples(X, labels, weights), asked))


def _parts(model: Any, samples: _Samples, asked: Asked) -> Iterator[Part]:
    """Return the problems that a model solves, each with its part of the model."""
    if isinstance(model, str | Path):
        return _of_file(Path(model), samples, asked)
    if isinstance(model, np.ndarray | list | tuple):
        return iter([_of_decisions(np.asarray(model, dtype=np.float64), samples, asked)])
    if isinstance(model, Program):
        codes = np.searchsorted(model.classes_, samples.labels)
        in_file_labels = replace(samples, y=model._file_labels(codes).astype(np.float64))
        parameter = getattr(model, "C", None) if asked.parameter is None else asked.parameter
        return _of_file(model._model_file, in_file_labels, asked._replace(parameter=parameter))
    if isinstance(model, Solver):
        return _of_solver(model, samples, asked)
    if getattr(model, "dual_coef_", None) is not None and hasattr(model, "support_"):
        return _of_kernel_class(model, samples, asked)
    if hasattr(model, "coef_"):
        return _of_linear_class(model, samples, asked)
    if hasattr(model, "decision_function"):
        decisions = np.asarray(model.decision_function(samples.X), dtype=np.float64)
        return iter([_of_decisions(decisions, samples, _filled(model, asked))])
    name = type(model).__name__
    raise SvmbenchError(
        f"{name} shows no model: no coef_, no dual_coef_ with support_, no decision_function"
    )


def _offset(asked: Asked, default: Offset) -> Offset:
    """Return the treatment of the offset that the caller names, or a default."""
    offset = asked.offset
    if offset is None:
        return default
    if isinstance(offset, str):
        if offset not in ("free", "none"):
            raise SvmbenchError(f"an offset is free, none or a number, not {line(offset, 40)!r}")
        return FREE if offset == "free" else NO_OFFSET
    return absorbed(float(offset))


def _problem(asked: Asked, default: str) -> Problem:
    name = asked.problem or default
    if not name:
        raise SvmbenchError("the model doesn't say which problem it solves: name one as problem")
    if name == "mean-embedding":
        raise SvmbenchError("a mean of kernel functions is no optimum: it has no certificate")
    return PROBLEMS[name]


def _parameter(asked: Asked, default: Any, problem: Problem) -> float:
    value = default if asked.parameter is None else asked.parameter
    if problem.name == "one-class-hard":
        return 0.0
    if not isinstance(value, int | float | np.number) or not float(value) > 0.0:
        name = "nu" if problem.name in OF_SHARES else "C"
        raise SvmbenchError(f"the model doesn't say its {name}: give it as its parameter")
    return float(value)


def _weighed(problem: Problem, weights: np.ndarray | None) -> np.ndarray | None:
    """Return weights as the problem counts them."""
    if weights is None or problem.name not in OF_SHARES:
        return weights
    return weights / weights.mean()


def _of_solver(model: Any, samples: _Samples, asked: Asked) -> Iterator[Part]:
    """Yield the parts of a fitted solver of this package."""
    several = getattr(model, "several_", None)
    if isinstance(model, OneVsOne) or several is not None:
        if isinstance(several, list):
            for label, alone in zip(model.classes_, several, strict=True):
                y = np.where(samples.labels == label, 1.0, -1.0)
                given = samples.weights
                weights = model._weigh_against_rest(samples.labels, label, given)
                yield _of_fitted(alone, samples.X, y, weights, asked)
            return
        pairs = model.pairs_ if several is None else several.pairs
        models = model.estimators_
        whole = samples.weights
        if not isinstance(model, OneVsOne) and hasattr(model, "_weigh"):
            whole = model._weigh(samples.labels, samples.weights)
        for pair, alone in zip(pairs, models, strict=True):
            is_given = getattr(alone, "kernel", None) == PRECOMPUTED
            X = samples.X[np.ix_(pair.rows, pair.rows)] if is_given else samples.X[pair.rows]
            weights_of_pair = None if whole is None else whole[pair.rows]
            if isinstance(model, OneVsOne) and hasattr(alone, "_weigh"):
                weights_of_pair = alone._weigh(pair.signs, weights_of_pair)
            yield _of_fitted(alone, X, pair.signs, weights_of_pair, asked)
        return
    if model.declaration.task == "one-class":
        yield _of_fitted(model, samples.X, np.ones(samples.X.shape[0]), samples.weights, asked)
        return
    weigh = getattr(model, "_weigh", None)
    weights = weigh(samples.labels, samples.weights) if weigh is not None else samples.weights
    y = np.where(samples.labels == model.classes_[1], 1.0, -1.0)
    yield _of_fitted(model, samples.X, y, weights, asked)


def _of_fitted(model: Any, X: Any, y: np.ndarray, weights: np.ndarray | None, asked: Asked) -> Part:
    """Return the part of one fitted model of this package."""
    problem = _problem(asked, model.problem.name)
    parameter = model._problem_parameter(TrainingData(X=X, y=y, weights=weights))
    shown: dict[str, Any] = {
        "problem": problem,
        "parameter": _parameter(asked, parameter, problem),
        "offset": _offset(asked, model.offset),
        "weights": _weighed(problem, weights),
    }
    expansion = getattr(model, "expansion_", None)
    if isinstance(expansion, Expansion):
        return Part(X, y, model=expansion, rho=expansion.rho, **shown)
    if hasattr(model, "coef_"):
        w = np.asarray(model.coef_.toarray() if sp.issparse(model.coef_) else model.coef_)
        return Part(X, y, model=w.ravel(), b=float(model.intercept_[0]), **shown)
    raise SvmbenchError(f"{model.declaration.name} has no model in a form that can be certified")


def _kernel_of(model: Any, X: Any) -> KernelFunction:
    """Return the kernel of a class with scikit-learn's parameters."""
    name = getattr(model, "kernel", "linear")
    if name == PRECOMPUTED:
        return GivenKernel()
    if not isinstance(name, str):
        raise SvmbenchError("a kernel that is a function has no certificate here: pass its matrix")
    gamma = getattr(model, "_gamma", None)
    if gamma is None:
        gamma = gamma_value(getattr(model, "gamma", 1.0), X)
    degree, coef0 = getattr(model, "degree", 3), getattr(model, "coef0", 0.0)
    return KernelFunction(name, float(gamma), int(degree), float(coef0))


def _is(model: Any, name: str) -> bool:
    return any(base.__name__ == name for base in type(model).__mro__)


def _of_kernel_class(model: Any, samples: _Samples, asked: Asked) -> Iterator[Part]:
    """Yield the parts of a class that shows its support vectors as scikit-learn's do."""
    name = (
        "nu-svc" if _is(model, "NuSVC") else "one-class" if _is(model, "OneClassSVM") else "hinge"
    )
    problem = _problem(asked, name)
    is_share = problem.name in OF_SHARES
    parameter = _parameter(asked, getattr(model, "nu" if is_share else "C", None), problem)
    function, support = _kernel_of(model, samples.X), np.asarray(model.support_)
    dual_coef = model.dual_coef_
    coefficients = np.atleast_2d(
        np.asarray(dual_coef.toarray() if sp.issparse(dual_coef) else dual_coef)
    )
    intercepts = np.atleast_1d(np.asarray(model.intercept_, dtype=np.float64))
    offset = _offset(asked, FREE)
    if problem.name in ONE_CLASS_PROBLEMS:
        # LIBSVM's multipliers are nu N times those that sum up to 1.
        scale = _one_class_scale(problem, parameter, samples.X.shape[0])
        expansion = Expansion(
            function,
            function.take(samples.X, support),
            coefficients[0] * scale,
            float(intercepts[0]) * scale,
            rows=support,
        )
        yield Part(
            samples.X,
            np.ones(samples.X.shape[0]),
            problem,
            parameter,
            expansion,
            weights=_weighed(problem, samples.weights),
            rho=-float(intercepts[0]) * scale,
        )
        return
    classes, labels = np.asarray(model.classes_), samples.labels
    codes = np.searchsorted(classes, labels)
    weights = samples.weights
    if getattr(model, "class_weight_", None) is not None and not is_share:
        class_factors = np.asarray(model.class_weight_, dtype=np.float64)[codes]
        if np.any(class_factors != 1.0):
            weights = class_factors if weights is None else class_factors * weights
    two = len(classes) == 2
    margin = None if is_share else 0.0
    for p, (i, j) in enumerate(itertools.combinations(range(len(classes)), 2)):
        rows = np.flatnonzero((codes == i) | (codes == j))
        # The function of two classes is positive for the second, that of a pair for the first.
        y = np.where(codes[rows] == (j if two else i), 1.0, -1.0)
        position = np.full(len(codes), -1)
        position[rows] = np.arange(len(rows))
        of_support = codes[support]
        used = np.flatnonzero((of_support == i) | (of_support == j))
        beta = (
            coefficients[0, used]
            if two
            else np.where(of_support[used] == i, coefficients[j - 1, used], coefficients[i, used])
        )
        is_given = isinstance(function, GivenKernel)
        X = samples.X[np.ix_(rows, rows)] if is_given else samples.X[rows]
        of_rows = None if weights is None else weights[rows]
        at = position[support[used]]
        expansion = Expansion(function, function.take(X, at), beta, float(intercepts[p]), rows=at)
        yield Part(
            X,
            y,
            problem,
            parameter,
            expansion,
            offset=offset,
            weights=_weighed(problem, of_rows),
            rho=margin,
        )


def _one_class_scale(problem: Problem, parameter: float, n: int) -> float:
    return 1.0 / (parameter * n) if problem.name == "one-class" else 1.0


def _filled(model: Any, asked: Asked) -> Asked:
    """Return the arguments, with the parameter C or nu of a foreign class filled in."""
    if asked.parameter is not None:
        return asked
    name = "nu" if asked.problem in OF_SHARES else "C"
    return asked._replace(parameter=getattr(model, name, None))


def _linear_terms(model: Any, n: int) -> tuple[str, Any, Offset]:
    """Return problem, C and offset of a linear class, as far as it says."""
    has_offset = bool(getattr(model, "fit_intercept", True))
    free = FREE if has_offset else NO_OFFSET
    if _is(model, "RidgeClassifier"):
        return "least-squares", 0.5 / float(model.alpha), free
    if _is(model, "SGDClassifier"):
        problem = {"hinge": "hinge", "squared_hinge": "squared-hinge"}.get(model.loss, "")
        return problem, 1.0 / (float(model.alpha) * n), free
    # Passive-aggressive classifiers have a loss and a C, too, and minimise no sum of losses.
    loss = None if _is(model, "BaseSGD") else getattr(model, "loss", None)
    problem = {"hinge": "hinge", "squared_hinge": "squared-hinge"}.get(str(loss), "")
    scaling = float(getattr(model, "intercept_scaling", 0.0)) if has_offset else 0.0
    if has_offset and not hasattr(model, "intercept_scaling"):
        return problem, getattr(model, "C", None), FREE
    return problem, getattr(model, "C", None), absorbed(scaling)


def _of_linear_class(model: Any, samples: _Samples, asked: Asked) -> Iterator[Part]:
    """Yield the parts of a class that shows weights: one, or one for each class."""
    if getattr(model, "multi_class", "ovr") == "crammer_singer":
        raise SvmbenchError("Crammer and Singer's problem has no certificate here")
    if getattr(model, "penalty", "l2") not in ("l2", "deprecated"):
        raise SvmbenchError(f"a model with the penalty {model.penalty!r} has no certificate here")
    declared, C, free = _linear_terms(model, samples.X.shape[0])
    problem = _problem(asked, declared)
    parameter, offset = _parameter(asked, C, problem), _offset(asked, free)
    coef = model.coef_.toarray() if sp.issparse(model.coef_) else model.coef_
    W = np.atleast_2d(np.asarray(coef, dtype=np.float64))
    b = np.broadcast_to(np.asarray(getattr(model, "intercept_", 0.0), dtype=np.float64), len(W))
    classes, labels = np.unique(samples.labels), samples.labels
    if len(W) not in (1, len(classes)) or (len(W) == 1 and len(classes) > 2):
        raise SvmbenchError(f"coef_ has {len(W)} rows for {len(classes)} classes")
    given = getattr(model, "class_weight", None)
    for k in range(len(W)):
        label = classes[1] if len(W) == 1 else classes[k]
        weights = samples.weights
        if given is not None:
            class_factors = class_weights(
                given, labels, weights if _is(model, "LinearSVC") else None
            )
            if len(W) > 1 and _is(model, "LinearSVC"):
                class_factors = np.where(labels == label, class_factors, 1.0)
            weights = class_factors if weights is None else class_factors * weights
        y = np.where(labels == label, 1.0, -1.0)
        yield Part(
            samples.X, y, problem, parameter, W[k], float(b[k]), offset=offset, weights=weights
        )


def _of_decisions(f: np.ndarray, samples: _Samples, asked: Asked) -> Part:
    """Return the part of the shortest w that has these decision values, of a linear model."""
    problem = _problem(asked, "")
    if problem.name in (*ONE_CLASS_PROBLEMS, "nu-svc"):
        raise SvmbenchError(f"decision values alone don't say the margin of {problem.name}")
    parameter, offset = _parameter(asked, None, problem), _offset(asked, FREE)
    n = samples.X.shape[0]
    if f.shape != (n,):
        raise SvmbenchError(f"decision values have shape {f.shape}, and there are {n} rows")
    if min(samples.X.shape) > MOST_DECIDED:
        raise SvmbenchError(f"decision values alone are certified up to {MOST_DECIDED} features")
    classes = np.unique(samples.labels)
    y = np.where(samples.labels == classes[-1], 1.0, -1.0)
    A = samples.X.toarray() if sp.issparse(samples.X) else samples.X
    if offset.kind == "free":
        # The offset is chosen so that w is shortest.
        middle = A.mean(axis=0)
        w = np.linalg.lstsq(A - middle, f - f.mean(), rcond=None)[0]
        b = float(f.mean() - middle @ w)
    else:
        bias = offset.value
        extended = np.column_stack([A, np.full(n, bias)]) if bias else A
        w = np.linalg.lstsq(extended, f, rcond=None)[0]
        b = float(bias * w[-1]) if bias else 0.0
        w = w[:-1] if bias else w
    error = float(np.max(np.abs(A @ w + b - f), initial=0.0))
    if error > 1e-6 * max(1.0, float(np.max(np.abs(f), initial=0.0))):
        raise SvmbenchError("no linear model of these rows has these decision values")
    return Part(samples.X, y, problem, parameter, w, b, offset=offset, weights=samples.weights)


def _of_file(path: Path, samples: _Samples, asked: Asked) -> Iterator[Part]:
    """Return the parts of a model file."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise SvmbenchError(f"can't read {path}: {error.strerror}") from error
    try:
        if content.startswith(b"svm_type "):
            return iter(list(_of_libsvm(content, samples, asked)))
        if content.startswith(b"solver_type "):
            return iter(list(_of_liblinear(content, samples, asked)))
    except (ValueError, LookupError, ArithmeticError, UnicodeDecodeError) as error:
        raise SvmbenchError(
            f"the model in {path.name} can't be read: {line(error, 200)}"
        ) from error
    model = read_model(path, samples.X.shape[1])
    if model is None or not isinstance(model.model, Expansion):
        raise SvmbenchError(f"{path.name} is no model of LIBSVM, LIBLINEAR, SVM-light or LaSVM")
    y = _signs_of(samples.labels, [1.0, -1.0])
    problem = _problem(asked, model.problem)
    return iter([_of_support_vectors(samples, y, None, model.model, (problem, asked))])


def _signs_of(labels: np.ndarray, of_file: list[float]) -> np.ndarray:
    """Return +1 for the first label of a model file and -1 for the second."""
    codes = _codes_of(labels, of_file)
    return np.where(codes == 0, 1.0, -1.0)


def _codes_of(labels: np.ndarray, of_file: list[float]) -> np.ndarray:
    """Return the position of each label among those of a model file."""
    try:
        numbers = labels.astype(np.float64)
    except ValueError:
        numbers = np.full(len(labels), np.nan)
    if set(np.unique(numbers).tolist()) != set(of_file):
        shown = ", ".join(f"{label:g}" for label in sorted(of_file))
        have = ", ".join(map(str, np.unique(labels)[:10]))
        raise SvmbenchError(f"the model has the labels {shown}, and the data {line(have, 100)}")
    return np.array([of_file.index(label) for label in numbers.tolist()], dtype=np.int64)


def _of_libsvm(content: bytes, samples: _Samples, asked: Asked) -> Iterator[Part]:
    head, vectors = split_at_vectors(content)
    header_fields = header_of(head)
    kind = {"c_svc": "hinge", "nu_svc": "nu-svc", "one_class": "one-class"}.get(
        header_fields["svm_type"][0]
    )
    function = kernel_of(header_fields)
    if kind is None or function is None:
        what = f"{header_fields['svm_type'][0]} with the kernel {header_fields['kernel_type'][0]}"
        raise SvmbenchError(f"a model of {line(what, 60)} has no certificate here")
    problem = _problem(asked, kind)
    rhos = [float(word) for word in header_fields["rho"]]
    total, k = int(header_fields["total_sv"][0]), int(header_fields["nr_class"][0])
    width = 1 if kind == "one-class" else k - 1
    coefficients, points = _table(vectors, width, samples.X.shape[1], total)
    if kind == "one-class":
        n = samples.X.shape[0]
        scale = _one_class_scale(problem, _parameter(asked, None, problem), n)
        model = Expansion(function, points, coefficients[0] * scale, -rhos[0] * scale)
        yield _of_support_vectors(samples, np.ones(n), None, model, (problem, asked))
        return
    names = [float(word) for word in header_fields["label"]]
    codes = _codes_of(samples.labels, names)
    starts = np.r_[0, np.cumsum([int(word) for word in header_fields["nr_sv"]])]
    for p, (i, j) in enumerate(itertools.combinations(range(k), 2)):
        rows = np.flatnonzero((codes == i) | (codes == j))
        y = np.where(codes[rows] == i, 1.0, -1.0)
        of_pair = np.r_[starts[i] : starts[i + 1], starts[j] : starts[j + 1]]
        beta = np.r_[
            coefficients[j - 1, starts[i] : starts[i + 1]],
            coefficients[i, starts[j] : starts[j + 1]],
        ]
        used = np.flatnonzero(beta)
        model = Expansion(function, points[of_pair[used]], beta[used], -rhos[p])
        yield _of_support_vectors(samples, y, rows, model, (problem, asked))


def _table(text: bytes, width: int, n_features: int, total: int) -> tuple[np.ndarray, Any]:
    """Return the coefficients (width, n_points) and the points of LIBSVM's support vectors."""
    firsts, rest = [], []
    for row in text.splitlines():
        words = row.split(None, width)
        if len(words) >= width:
            firsts.append([float(word) for word in words[:width]])
            rest.append(b"0 " + (words[width] if len(words) > width else b""))
    points, _ = support_vectors_of(b"\n".join(rest), n_features, total)
    return np.array(firsts, dtype=np.float64).reshape(-1, width).T, points


def _of_support_vectors(
    samples: _Samples,
    y: np.ndarray,
    rows: np.ndarray | None,
    model: Expansion,
    what: tuple[Problem, Asked],
) -> Part:
    """Return the part of support vectors from a file, with their places in the training rows."""
    problem, asked = what
    X, weights = samples.part(rows)
    places = _places(model.points, model.coefficients, X, y, problem.name not in ONE_CLASS_PROBLEMS)
    if places is not None:
        at, coefficients = _shared_out(model.coefficients, places)
        model = replace(
            model, points=model.function.take(X, at), coefficients=coefficients, rows=at
        )
    elif not sp.issparse(X):
        X = sp.csr_array(X)
    one_class = problem.name in ONE_CLASS_PROBLEMS
    return Part(
        X,
        y,
        problem,
        _parameter(asked, None, problem),
        model,
        offset=_offset(asked, FREE),
        weights=_weighed(problem, weights),
        rho=None if problem.name == "nu-svc" else -model.b if one_class else 0.0,
    )


def _places(
    points: Any, coefficients: np.ndarray, X: Any, y: np.ndarray, has_classes: bool
) -> list[np.ndarray] | None:
    """Return the training rows that each support vector may be; None if one is none of them.

    A row counts if it is equal to `EQUAL_DIGITS` digits and, where there are classes, has the sign
    of the coefficient.
    """
    signs = np.sign(coefficients) if has_classes else np.ones(len(coefficients))
    known: dict[tuple[float, bytes], list[int]] = {}
    for i, key in enumerate(_keys(X)):
        known.setdefault((float(y[i]), key), []).append(i)
    places = []
    for key, sign in zip(_keys(points), signs.tolist(), strict=True):
        rows = known.get((sign, key)) or known.get((-sign, key))
        if rows is None:
            return None
        places.append(np.array(rows))
    return places


def _keys(X: Any) -> Iterator[bytes]:
    """Yield a key of each row, equal where the rows are equal to `EQUAL_DIGITS` digits."""
    rows = sp.csr_array(X)
    rows = canonical_csr(rows).copy()
    rows.eliminate_zeros()
    with np.errstate(divide="ignore"):
        exponent = np.floor(np.log10(np.abs(rows.data)))
    unit = 10.0 ** (EQUAL_DIGITS - 1 - exponent)
    digits = np.round(rows.data * unit).astype(np.int64)
    # 9999999.6 is rounded to one digit more than 1000000.
    carried = np.abs(digits) >= 10**EQUAL_DIGITS
    digits[carried] //= 10
    exponent[carried] += 1
    for i in range(rows.shape[0]):
        of_row = slice(rows.indptr[i], rows.indptr[i + 1])
        yield b"|".join(
            np.ascontiguousarray(part[of_row]).tobytes()
            for part in (rows.indices, digits, exponent.astype(np.int64))
        )


def _shared_out(
    coefficients: np.ndarray, places: list[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and coefficients; equal rows share what their support vectors have in sum."""
    sums: dict[tuple[int, ...], float] = {}
    for beta, rows in zip(coefficients.tolist(), places, strict=True):
        key = tuple(rows.tolist())
        sums[key] = sums.get(key, 0.0) + beta
    at = np.array([row for rows in sums for row in rows], dtype=np.int64)
    each = [total / len(rows) for rows, total in sums.items() for _ in rows]
    return at, np.array(each, dtype=np.float64)


def _of_liblinear(content: bytes, samples: _Samples, asked: Asked) -> Iterator[Part]:
    head, separator, text = content.partition(b"\nw\n")
    if not separator:
        msg = "it has no weights"
        raise ValueError(msg)
    header_fields = header_of(head)
    problem = _problem(asked, LIBLINEAR_PROBLEMS.get(header_fields["solver_type"][0], ""))
    bias, known, k = (
        float(header_fields["bias"][0]),
        int(header_fields["nr_feature"][0]),
        int(header_fields["nr_class"][0]),
    )
    width = 1 if k == 2 else k
    W = np.array([float(word) for word in text.split()]).reshape(-1, width)
    if len(W) != known + (bias >= 0) or known > samples.X.shape[1]:
        msg = f"it has {len(W)} weights for {known} of {samples.X.shape[1]} features"
        raise ValueError(msg)
    names = [float(word) for word in header_fields["label"]]
    codes = _codes_of(samples.labels, names)
    parameter, offset = _parameter(asked, None, problem), _offset(asked, absorbed(max(bias, 0.0)))
    for c in range(width):
        w = np.zeros(samples.X.shape[1])
        w[:known] = W[:known, c]
        b = float(W[known, c] * bias) if bias > 0 else 0.0
        y = np.where(codes == c, 1.0, -1.0)
        yield Part(samples.X, y, problem, parameter, w, b, offset=offset, weights=samples.weights)


__all__ = ["Certificate", "certify", "certify_part", "sum_of"]
