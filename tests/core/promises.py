"""What a model's promise lets its objective be, and what is wrong with a model that says nothing.

The objective is computed anew from the model in extended precision, and held against bounds of the
optimum (``certified``).
"""

from __future__ import annotations

import numpy as np
from certified import WIDE, Kernel

from svmbench.core.contract.base import LOOSE_GAP, TrainingData
from svmbench.core.contract.problems import PROBLEMS, LossProblem, Values

#: Where an objective is this many times the optimum, a tolerance that allows it is warned of.
LOOSE = 1.0 + LOOSE_GAP

#: Rounding of an objective: a share of it, and of the kernel's diagonal where it may be 0.
ROUNDING, NOTHING = 1e-8, 1e-9

#: What rounding may do to a closed form: kernel values of 1e9 beside a ridge of 1e-2, at worst.
EXACT = 1e-6


def parameter_of(model, n_samples):
    """Return the number that the model's problem is stated with."""
    nothing = np.zeros(n_samples)
    return float(model._problem_parameter(TrainingData(X=nothing, y=nothing)))


def kernel_of(model):
    """Return the model's kernel in extended precision."""
    return Kernel(model.kernel, model.gamma_) if hasattr(model, "gamma_") else Kernel("linear")


def values_of(model, X, y):
    """Return what the model's problem is evaluated from, in extended precision."""
    X = np.asarray(X, dtype=WIDE)
    if not hasattr(model, "expansion_"):
        w, b = model.coef_[0].astype(WIDE), WIDE(model.intercept_[0])
        square = w @ w + ((b / model.bias) ** 2 if model.bias else 0.0)
        return Values(f=X @ w + b, square=square, y=y)
    found, kernel = model.expansion_, kernel_of(model)
    points, beta = np.asarray(found.points, dtype=WIDE), found.coefficients.astype(WIDE)
    b, rho = WIDE(found.b), WIDE(found.rho)
    if kernel.name == "linear":
        w = points.T @ beta
        s, square, diagonal = X @ w, w @ w, (X * X).sum(axis=1)
    else:
        s, square = kernel(X, points) @ beta, beta @ kernel(points, points) @ beta
        diagonal = np.ones(len(X))
    if model.declaration.problem == "svdd":
        return Values(f=rho - (diagonal - 2.0 * s + square), square=square, rho=rho)
    if model.offset.kind == "absorbed":
        square += (b / model.offset.value) ** 2
    return Values(
        f=s + b, square=square, y=y if model.declaration.task == "binary" else None, rho=rho
    )


def of_violation(model, n_samples, violation):
    """Return how far an objective can be above its optimum at this violation, in margins.

    The duality gap is the sum of what each sample adds: with the hinge at most C times its
    violation, with the quadratic losses at most C (half-squared) or 2C times its square.
    """
    N = n_samples
    C = parameter_of(model, N)
    return {
        "hinge": C * N * violation,
        "hinge-no-offset": C * N * violation,
        "squared-hinge": 2.0 * C * N * violation**2,
        "half-squared-hinge": C * N * violation**2,
        "least-squares": C * N * violation**2,
    }[model.declaration.problem]


def of_rho(model, n_samples, violation):
    """Return the same where the violation is relative to rho; to 1 in LIBSVM's scale, if less."""
    problem, rho = model.declaration.problem, max(0.0, model.expansion_.rho)
    nu, N = model.nu, n_samples
    scale, weight = (N, 1.0) if problem == "nu-svc" else (max(1.0, nu * N), max(1.0, 1.0 / nu))
    weight = 1.0 if problem != "nu-svc" and nu * N < 1.0 else weight
    if problem == "svdd":
        return 2.0 * weight * violation * min(rho, 1.0 / scale)
    return weight * violation * min(rho, 1.0 / scale)


def allowed(model, n_samples, best):
    """Return how far above the optimum the promise lets the objective be."""
    declared = model.declaration
    stated = float(getattr(model, declared.promised_by, 0.0))
    if declared.promise == "violation":
        return of_violation(model, n_samples, stated)
    if declared.promise == "violation relative to rho":
        return of_rho(model, n_samples, stated)
    if declared.promise == "gap relative to C n":
        return stated * parameter_of(model, n_samples) * n_samples
    if declared.promise == "gap relative to the objective":
        return stated * abs(best)
    if declared.promise == "residual":
        # 1/2 r' (K + I/2C)^-1 r <= C r'r, and the right-hand side is the labels.
        return parameter_of(model, n_samples) * n_samples * stated**2
    if declared.promise == "margin":
        # w is the optimum of the active set: 1/2 ||w||^2 - min f with min f >= (1 - theta) rho.
        return stated * max(0.0, model.expansion_.rho)
    assert declared.promise == "rounding"
    return EXACT * abs(best)


def complaints(model, X, y, bounds):
    """Return what is wrong with the model of a solver that has not warned, as sentences.

    `bounds` are those of the optimum on the samples. Where a solver had weights, the samples are
    repeated as often.
    """
    problem, parameter = PROBLEMS[model.declaration.problem], parameter_of(model, len(y))
    kernel = kernel_of(model)
    value = float(problem.primal(values_of(model, X, y), parameter))
    size = float(max(1.0, (X * X).sum(axis=1).max())) if kernel.name == "linear" else 1.0
    rounding = ROUNDING * abs(bounds.upper)
    if not isinstance(problem, LossProblem):
        rounding += NOTHING * size
    most = allowed(model, len(y), bounds.upper)
    wrong = []
    if not bounds.upper - bounds.lower <= 0.1 * most + rounding:
        wrong.append(f"the oracle leaves open {bounds.upper - bounds.lower:.2g}")
    if not abs(model.objective_ - value) <= 1e3 * rounding:
        wrong.append(f"objective_ is {model.objective_:.9g}")
    if not value <= bounds.upper + most + rounding:
        wrong.append(f"more than the promised {most:.3g} above the optimum")
    if isinstance(problem, LossProblem) and value > LOOSE * bounds.upper + rounding:
        wrong.append("useless")
    return [f"{value:.9g} for {bounds.lower:.9g} to {bounds.upper:.9g}: {each}" for each in wrong]
