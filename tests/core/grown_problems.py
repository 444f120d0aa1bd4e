"""Hard problems that are drawn, solved by every solver that can, and held against an oracle.

A problem is drawn with its kind of data, its kernel, its parameter and its weights of classes.
Every solver of it that states a promise fits it; with C, now and then, by a path. A solver that has
not warned has to keep its promise: the objective of its model, in extended precision, is held
against certified bounds of the optimum (``promises``, ``certified``).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from certified import optimum
from promises import complaints, kernel_of, parameter_of
from sklearn.exceptions import ConvergenceWarning

from svmbench.baselines import catalogue
from svmbench.core.contract.problems import PROBLEMS, LossProblem
from svmbench.core.contract.registry import REGISTRY

#: Iterations, so that a problem that is too hard for a solver costs no minutes: it then warns.
LIMITS = {"osuna": 40, "dcd-l1": 20_000, "dcd-l2": 20_000}
MOST_ITERATIONS = 20_000


def long_row(X, y, rng):
    """Make one row 10 to 10,000 times as long."""
    X[rng.integers(len(X))] *= 10.0 ** rng.integers(1, 5)
    return X, y


def scaled(X, y, rng):
    """Give each feature a unit of its own."""
    return X * 10.0 ** rng.integers(-3, 4, size=X.shape[1]), y


def doubled(X, y, rng):
    """Repeat rows, some with the other label."""
    twice = rng.integers(len(X), size=len(X))
    return X[twice], np.where(rng.random(len(X)) < 0.1, -y[twice], y[twice])


def one_of_a_class(X, y, rng):
    """Leave one row to a class."""
    return X, np.where(np.arange(len(X)) == rng.integers(len(X)), 1.0, -1.0)


def apart(X, y, rng):
    """Move the classes apart."""
    return X + np.outer(y, np.full(X.shape[1], float(rng.integers(1, 5)))), y


def sparse(X, y, rng):
    """Set most values to 0, and whole rows with them."""
    return X * (rng.random(X.shape) < 0.3), y


#: Kinds of data, each made of rows and noisy labels.
KINDS = {
    "plain": lambda X, y, rng: (X, y),
    "long row": long_row,
    "shifted": lambda X, y, rng: (X + 10.0 ** rng.integers(1, 5), y),
    "units": scaled,
    "large": lambda X, y, rng: (1e3 * X, y),
    "small": lambda X, y, rng: (1e-3 * X, y),
    "repeated rows": doubled,
    "one of a class": one_of_a_class,
    "equal rows": lambda X, y, rng: (np.tile(X[:1], (len(X), 1)), y),
    "random labels": lambda X, y, rng: (X, rng.permutation(y)),
    "apart": apart,
    "sparse": sparse,
}

#: Problems whose solvers are compared. The first three come more often.
STATED = ("hinge", "hinge", "hinge-no-offset", "hinge-no-offset", "squared-hinge")
STATED += ("half-squared-hinge", "least-squares", "nu-svc", "one-class", "one-class-hard", "svdd")


@dataclass(frozen=True)
class HardProblem:
    """A drawn problem."""

    kind: str
    problem: str
    kernel: str
    value: float  # C, or the share of the largest nu
    weight: int  # of the class 1, where a solver has weights
    by_path: bool
    X: np.ndarray
    y: np.ndarray

    def __str__(self) -> str:
        n, d = self.X.shape
        weighted = f", weight {self.weight}" if self.weight > 1 else ""
        way = ", by a path" if self.by_path else ""
        return (
            f"{self.problem}, {self.kernel}, {self.value:.3g}{weighted}{way}, {self.kind} {n}x{d}"
        )


def draw(seed: int) -> HardProblem:
    """Return the problem of a seed."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(8, 41)), int(rng.integers(1, 7))
    # Short in binary, so that moving the rows is exact.
    X = np.round(1024.0 * rng.normal(size=(n, d))) / 1024.0
    score = X @ rng.normal(size=d) + rng.normal(size=n)
    y = np.where(score > np.quantile(score, rng.uniform(0.2, 0.8)), 1.0, -1.0)
    kind = str(rng.choice(list(KINDS)))
    X, y = KINDS[kind](X, y, rng)
    if len(np.unique(y)) == 1:
        y[0] = -y[0]
    return HardProblem(
        kind,
        problem=str(rng.choice(STATED)),
        kernel=str(rng.choice(["linear", "rbf"])),
        value=float(10.0 ** rng.uniform(-4.0, 5.0)),
        weight=int(rng.choice([1, 1, 2, 5])),
        by_path=bool(rng.random() < 0.2),
        X=np.ascontiguousarray(X),
        y=y,
    )


def solvers_of(drawn: HardProblem) -> dict[str, Any]:
    """Return a configured solver by each name that solves the drawn problem."""
    catalogue.solvers()
    found = {}
    for name, solver in sorted(REGISTRY.items()):
        declared = solver.declaration
        is_own = declared.promise and solver.__module__.startswith("svmbench.core.")
        if not is_own or drawn.kernel not in declared.kernels:
            continue
        model, known = solver(), solver._get_param_names()
        if model.objective_id.problem != drawn.problem and declared.problem != drawn.problem:
            continue
        if "C" in known:
            model.set_params(C=drawn.value)
        elif "nu" in known:
            # From 1e-4 to 1e5 on a logarithmic scale: shares from 0.01 to 1.
            share = 10.0 ** (2.0 * (np.log10(drawn.value) - 5.0) / 9.0)
            is_split = declared.problem == "nu-svc" and model.offset.kind == "free"
            smaller = min(np.mean(drawn.y > 0), np.mean(drawn.y < 0))
            model.set_params(nu=float(share * (2.0 * smaller if is_split else 1.0)))
        if "kernel" in known:
            model.set_params(kernel=drawn.kernel)
        if getattr(model, declared.promised_by, 0.0) is None:
            model.set_params(**{declared.promised_by: 1e-3})
        if "max_iter" in known:
            model.set_params(max_iter=min(model.max_iter, LIMITS.get(name, MOST_ITERATIONS)))
        if drawn.weight > 1 and "class_weight" in known:
            model.set_params(class_weight={1.0: drawn.weight})
        found[name] = model
    return found


def fitted(model: Any, drawn: HardProblem) -> tuple[Any, list[str]]:
    """Return the trained model, and what it has warned of."""
    C = getattr(model, "C", None)
    is_path = drawn.by_path and C is not None and getattr(model, "class_weight", None) is None
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        if is_path:
            data = model.prepare(drawn.X, drawn.y)
            for point in model.path(data, None, "C", [1e-2 * C, 0.1 * C, C]):
                model = point.solution
            model.evaluate_objective(data)
        elif model.declaration.task == "binary":
            model.fit(drawn.X, drawn.y)
        else:
            model.fit(drawn.X)
    return model, [str(each.message) for each in told if each.category is ConvergenceWarning]


def silent_cases(drawn: HardProblem, names: tuple[str, ...] = ()) -> tuple[int, list[str]]:
    """Return the number of fits, and a line for each that broke its promise without a word."""
    optima: dict[Any, Any] = {}
    found, n_fits = [], 0
    for name, solver in solvers_of(drawn).items():
        if names and name not in names:
            continue
        n_fits += 1
        model, told = fitted(solver, drawn)
        if told:
            continue
        X, y = drawn.X, drawn.y
        if getattr(model, "class_weight", None) is not None:
            times = np.where(y > 0.0, drawn.weight, 1)
            X, y = np.repeat(X, times, axis=0), np.repeat(y, times)
        stated, kernel = model.declaration.problem, kernel_of(model)
        has_labels = isinstance(PROBLEMS[stated], LossProblem) or stated == "nu-svc"
        key = stated, parameter_of(model, len(y)), kernel, model.offset, len(y)
        if key not in optima:
            own = y if has_labels else np.ones(len(y))
            optima[key] = optimum(stated, key[1], kernel, X, own, model.offset)
        for wrong in complaints(model, X, y, optima[key]):
            # Where the oracle leaves more open than is promised, it says nothing.
            if "leaves open" not in wrong:
                found.append(f"{name}: {drawn}: {wrong}; {model.stop_reason_}")
    return n_fits, found
