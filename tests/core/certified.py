"""Certified optima: bounds of an optimal value, whatever an interior-point method made of it.

Clarabel solves the dual. Its multipliers are made feasible and moved to the minimum of the face
that they are on; the dual value at them is a lower bound of the optimum, and the primal value at
their weights, with the best offset for these, is an upper bound. Both are evaluated in extended
precision, for a linear kernel from the weights, as features far from zero cancel in kernel values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import clarabel
import numpy as np
import scipy.sparse as sp

from svmbench.core.contract.problems import PROBLEMS, Values

#: numpy's widest floating-point type: 80 bits on x86, nowhere less than float64.
WIDE = np.longdouble

#: Share of the optimum that may be left open, and what Clarabel is asked for to get there.
ENOUGH, PRECISE = 1e-8, 1e-14

#: Minima of faces that are tried from one point.
FACES = 6

#: Where the optimum is 0 a share of it means nothing: this share of the kernel's diagonal.
NOTHING = 1e-9


class Bounds(NamedTuple):
    """A dual value and a primal value, between which the optimum is."""

    lower: float
    upper: float


@dataclass(frozen=True)
class Kernel:
    """A kernel in extended precision."""

    name: str
    gamma: float = 1.0

    def __call__(self, A, B):
        if self.name == "linear":
            return A @ B.T
        return np.exp(-WIDE(self.gamma) * ((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2))


class Space:
    """The samples in the space of a kernel: what linear combinations of them are there.

    Parameters
    ----------
    kernel : Kernel
    X : ndarray of shape (n, d)
    constant : float
        Value of the constant feature that absorbs the offset; 0 for none.
    is_free : bool
        Whether combinations whose coefficients sum up to 0 are all that counts: then the samples
        may be moved.
    """

    def __init__(self, kernel, X, *, constant=0.0, is_free=False):
        X = np.asarray(X, dtype=WIDE)
        self.features = None
        if kernel.name == "linear":
            moved = X - X.mean(axis=0) if is_free else X
            self.features = np.column_stack([moved, np.full(len(X), WIDE(constant))])
            self.K = self.features @ self.features.T
        else:
            self.K = kernel(X, X) + WIDE(constant) ** 2
            if is_free:
                means = self.K.mean(axis=0)
                self.K = self.K - means[None, :] - means[:, None] + means.mean()

    def outputs(self, beta):
        """Return the products of all samples with ``sum_i beta_i phi(x_i)``, and its square."""
        if self.features is None:
            outputs = self.K @ beta
            return outputs, beta @ outputs
        w = self.features.T @ beta
        return self.features @ w, w @ w


@dataclass(frozen=True)
class Program:
    """min 1/2 a'(Q + ridge I)a - c'a, 0 <= a <= upper, with y'a = 0 and a sum where asked for.

    Attributes
    ----------
    Q : ndarray of shape (n, n)
    c : ndarray of shape (n,)
    ridge, upper : float
    y : ndarray of shape (n,) or None
    total : float or None
        The sum of a; with `at_least`, the least sum.
    at_least : bool
    """

    Q: np.ndarray
    c: np.ndarray
    ridge: float = 0.0
    upper: float = np.inf
    y: np.ndarray | None = None
    total: float | None = None
    at_least: bool = False

    def scales(self):
        """Yield the sizes of multipliers in which the problem may be well scaled."""
        if self.total is not None:
            yield from (self.total / len(self.c), min(self.upper, self.total))
            return
        size = float(np.diagonal(self.Q).max()) + self.ridge
        for factor in (1.0, len(self.c), 1e4, 1e6):
            yield min(self.upper, factor / size) if size > 0.0 else self.upper

    def clarabel(self, scale):
        """Return Clarabel's solution, with multipliers in units of `scale`."""
        n = len(self.c)
        # In the coordinates z = F'a, small eigenvalues keep digits that Q as a matrix has lost.
        values, vectors = np.linalg.eigh(self.Q.astype(float))
        kept = values > 1e-18 * abs(values[-1])
        F = vectors[:, kept] * np.sqrt(values[kept])
        size, r = float(np.sqrt(values[-1])) if kept.any() else 1.0, int(kept.sum())
        unit = max(scale * float(np.abs(self.c).max()), (scale * size) ** 2)
        squares = np.full(n + r, (scale * size) ** 2 / unit)
        squares[:n] = self.ridge * scale**2 / unit
        nothing, one, every = sp.csc_matrix((n, r)), sp.csc_matrix((1, r)), np.ones((1, n))
        rows = [sp.hstack([sp.csc_matrix(F.T / size), -sp.eye(r)])]
        right, cones = [np.zeros(r)], [clarabel.ZeroConeT(r)]
        if self.y is not None:
            rows.append(sp.hstack([sp.csc_matrix(self.y[None, :]), one]))
            right.append(np.zeros(1))
            cones.append(clarabel.ZeroConeT(1))
        if self.total is not None:
            rows.append(sp.hstack([sp.csc_matrix(-every), one]))
            right.append(np.array([-self.total / scale]))
            cones.append((clarabel.NonnegativeConeT if self.at_least else clarabel.ZeroConeT)(1))
        rows.append(sp.hstack([-sp.eye(n), nothing]))
        right.append(np.zeros(n))
        if np.isfinite(self.upper):
            rows.append(sp.hstack([sp.eye(n), nothing]))
            right.append(np.full(n, self.upper / scale))
        cones.append(clarabel.NonnegativeConeT(n * (1 + np.isfinite(self.upper))))
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = PRECISE
        q = np.concatenate([-self.c * scale / unit, np.zeros(r)])
        parts = sp.vstack(rows).tocsc(), np.concatenate(right), cones, settings
        found = clarabel.DefaultSolver(sp.diags(squares).tocsc(), q, *parts).solve()
        return scale * np.array(found.x[:n])

    def feasible(self, a):
        """Return multipliers near `a` that keep the constraints to extended precision."""
        a = np.clip(np.nan_to_num(np.asarray(a, dtype=WIDE)), 0.0, self.upper)
        if self.y is None:
            return a if self.total is None else with_sum(a, self.total, self.upper, self.at_least)
        classes = self.y > 0, self.y < 0
        half = min(a[own].sum() for own in classes)
        if self.total is not None:
            half = max(half, WIDE(self.total) / 2)
        for own in classes:
            a[own] = with_sum(a[own], half, self.upper)
        return a

    def on_face(self, a):
        """Return the minimum over the multipliers strictly between their bounds at `a`."""
        top = self.upper if np.isfinite(self.upper) else float(a.max())
        inside = (a > 1e-7 * top) & ~(a > (1.0 - 1e-7) * self.upper)
        if self.ridge > 0.0:
            # Newton's method in the primal: a quadratic loss has multipliers where it is not 0.
            inside = self.c - self.Q @ a > 0.0
            a = np.where(inside, a, WIDE(0))
        free = np.flatnonzero(inside)
        if not len(free):
            return a
        sums = [row[free] for row in (self.y,) if row is not None]
        sums += [np.ones(len(free))] if self.total is not None else []
        m, k = len(free), len(sums)
        size = float(np.diagonal(self.Q)[free].max()) + self.ridge or 1.0
        M = np.zeros((m + k, m + k))
        M[:m, :m] = self.Q[np.ix_(free, free)].astype(float) / size
        M[:m, :m] += self.ridge / size * np.eye(m)
        for j, row in enumerate(sums):
            M[m + j, :m] = M[:m, m + j] = row
        a = a.copy()
        # Steps of float64 on residuals of extended precision.
        for _ in range(3):
            slope = (self.c - self.Q @ a - self.ridge * a)[free] / size
            right = np.concatenate([slope.astype(float), np.zeros(k)])
            a[free] += np.linalg.lstsq(M, right, rcond=1e-15)[0][:m]
        return a


def with_sum(a, total, upper, at_least=False):
    """Return `a` with this sum: each moves by its share of the room that there is."""
    for _ in range(100):
        missing = WIDE(total) - a.sum()
        if missing == 0.0 or (at_least and missing < 0.0):
            break
        room = a if missing < 0.0 or not np.isfinite(upper) else WIDE(upper) - a
        room = room if room.sum() > 0.0 else np.ones_like(a)
        a = np.clip(a + missing * room / room.sum(), 0.0, upper)
    return a


def quantile(scores, share):
    """Return the score r that minimises ``sum_i max(0, r - score_i) - share r``."""
    costs = np.maximum(0.0, scores[:, None] - scores[None, :]).sum(axis=1) - share * scores
    return scores[np.argmin(costs)]


def best_offset(s, y, margin):
    """Return the b that minimises the sum of max(0, margin - y (s + b)): one of its bends."""
    bends = margin * y - s
    losses = np.maximum(0.0, margin - y * (s + bends[:, None])).sum(axis=1)
    return bends[np.argmin(losses)]


def primal_values(problem, parameter, y, s, square, diagonal, is_free):
    """Yield the values at weights with linear parts `s`: with the best offset, rho or radius."""
    n = len(s)
    if problem in ("one-class", "one-class-hard"):
        rho = quantile(s, parameter * n) if problem == "one-class" else s.min()
        yield Values(f=s - rho, square=square, rho=rho)
    elif problem == "svdd":
        distances = diagonal - 2.0 * s + square
        radius = -quantile(-distances, 1.0 / parameter)
        yield Values(f=radius - distances, square=square, rho=radius)
    elif problem == "nu-svc" and is_free:
        # Each class has a threshold of its own, rho + b and rho - b, where their sum is positive.
        up = quantile(s[y > 0], parameter * n / 2.0)
        down = quantile(-s[y < 0], parameter * n / 2.0)
        rho = max(WIDE(0), (up + down) / 2.0)
        b = (down - up) / 2.0 if rho > 0.0 else best_offset(s, y, 0.0)
        yield Values(f=s + b, square=square, y=y, rho=rho)
    elif problem == "nu-svc":
        yield Values(f=s, square=square, y=y, rho=max(WIDE(0), quantile(y * s, parameter * n)))
    else:
        f = s + best_offset(s, y, 1.0) if is_free else s
        yield Values(f=f, square=square, y=y)
        least = (y * f).min()
        if least > 0.0:
            # A huge C weighs the rounding of margins, which a longer w makes good.
            yield Values(f=f / least, square=square / least**2, y=y)


def optimum(problem, parameter, kernel, X, y, offset):
    """Return bounds of the optimal value of a problem of ``svmbench.core.contract.problems``.

    Parameters
    ----------
    problem : str
    parameter : float
    kernel : Kernel
    X, y : ndarray of shape (n, d), (n,)
        All labels are 1 where there is one class.
    offset : Offset
    """
    stated, n, C = PROBLEMS[problem], len(y), WIDE(parameter)
    constant = offset.value if offset.kind == "absorbed" else 0.0
    is_free = offset.kind == "free" and problem in ("hinge", "nu-svc")
    space = Space(kernel, X, constant=constant, is_free=is_free or problem == "svdd")
    diagonal, Q = np.diagonal(space.K), np.outer(y, y) * space.K
    ones, signs = np.ones(n), y if is_free else None
    lower, upper = -np.inf, np.inf

    def judge(a):
        nonlocal lower, upper
        s, square = space.outputs(a * y)
        values = Values(f=s, square=square, y=y, alpha=a, diagonal=diagonal)
        lower = max(lower, float(stated.dual(values, C)))
        found = primal_values(problem, C, y, s, square, diagonal, is_free)
        upper = min(upper, *(float(stated.primal(each, C)) for each in found), np.inf)

    if problem in ("least-squares", "mean-embedding"):
        beta = solve(space.K + np.eye(n) / (2 * C), y) if parameter else WIDE(1) * ones / n
        s, square = space.outputs(beta)
        values = Values(f=s, square=square, y=y, alpha=beta * y)
        return Bounds(float(stated.dual(values, C)), float(stated.primal(values, C)))
    program = {
        "hinge": lambda: Program(Q, ones, upper=parameter, y=signs),
        "hinge-no-offset": lambda: Program(Q, ones, upper=parameter),
        "squared-hinge": lambda: Program(Q, ones, ridge=0.5 / parameter),
        "half-squared-hinge": lambda: Program(Q, ones, ridge=1.0 / parameter),
        "nu-svc": lambda: Program(
            Q, 0.0 * ones, upper=1.0 / n, y=signs, total=parameter, at_least=True
        ),
        "one-class": lambda: Program(Q, 0.0 * ones, upper=1.0 / (parameter * n), total=1.0),
        "one-class-hard": lambda: Program(Q, 0.0 * ones, total=1.0),
        "svdd": lambda: Program(2.0 * Q, diagonal.astype(float), upper=parameter, total=1.0),
    }[problem]()
    size = float(diagonal.max()) if program.total is not None else 0.0
    for scale in program.scales():
        a = program.feasible(program.clarabel(scale))
        judge(a)
        for _ in range(FACES):
            if upper - lower <= max(ENOUGH * abs(upper), NOTHING * size):
                return Bounds(lower, upper)
            a = program.feasible(program.on_face(a))
            judge(a)
    return Bounds(lower, upper)


def solve(A, right):
    """Return the solution of a positive definite system, by elimination in extended precision."""
    A, x = A.astype(WIDE), right.astype(WIDE)
    n = len(x)
    for i in range(n):
        factors = A[i + 1 :, i] / A[i, i]
        A[i + 1 :, i:] -= factors[:, None] * A[i, i:]
        x[i + 1 :] -= factors * x[i]
    for i in reversed(range(n)):
        x[i] = (x[i] - A[i, i + 1 :] @ x[i + 1 :]) / A[i, i]
    return x
