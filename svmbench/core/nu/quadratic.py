"""``qp``: the problem handed to a maintained library, in the role of the paper's ``quadprog``.

Problem
    As in ``box_qp``: in that scale interior-point methods reach gaps that they miss by five
    digits where multipliers are at most 1/l.
Given
    The problem, a tolerance.
Returned
    The library's solution, put on the bounds that it is next to, with its sum made exact.
Libraries
    ``qp`` is PIQP (proximal interior point, BSD). ``qp-clarabel`` (interior point, Apache 2) and
    ``qp-cvxopt`` (interior point, GPL) take part where they are installed: svmbench[qp].
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from svmbench.base.errors import MissingPackageError
from svmbench.core.nu.box_qp import QPPoint, UnitProblem, mend

#: Nearer to a bound than this is on it.
ON_BOUND = 1e-9

#: Residuals of the constraints that libraries are asked for.
LIBRARY_RESIDUAL = 1e-10


def _piqp(problem: UnitProblem, tol: float) -> tuple[np.ndarray, int]:
    import piqp

    n = len(problem.Q)
    solver = piqp.DenseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = LIBRARY_RESIDUAL
    solver.settings.check_duality_gap = True
    solver.settings.eps_duality_gap_abs = problem.floor()
    solver.settings.eps_duality_gap_rel = 0.1 * tol
    bounds = np.zeros(n), np.ones(n)
    none = (None, None, None)
    summed: tuple[Any, Any] = (None, None)
    if problem.total is not None:
        summed = (np.ones((1, n)), np.array([problem.total]))
    solver.setup(problem.Q, problem.linear, *summed, *none, *bounds)
    solver.solve()
    return np.asarray(solver.result.x), int(solver.result.info.iter)


def _clarabel(problem: UnitProblem, tol: float) -> tuple[np.ndarray, int]:
    import clarabel

    n = len(problem.Q)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs, settings.tol_gap_rel = problem.floor(), 0.1 * tol
    settings.tol_feas = LIBRARY_RESIDUAL
    eye = sp.identity(n, format="csc")
    rows, right, cones = [-eye, eye], [np.zeros(n), np.ones(n)], []
    if problem.total is not None:
        rows.insert(0, sp.csc_matrix(np.ones((1, n))))
        right.insert(0, np.array([problem.total]))
        cones.append(clarabel.ZeroConeT(1))
    cones.append(clarabel.NonnegativeConeT(2 * n))
    A, b = sp.vstack(rows, format="csc"), np.concatenate(right)
    upper = sp.triu(sp.csc_matrix(problem.Q), format="csc")
    found = clarabel.DefaultSolver(upper, problem.linear, A, b, cones, settings).solve()
    return np.asarray(found.x), int(found.iterations)


def _cvxopt(problem: UnitProblem, tol: float) -> tuple[np.ndarray, int]:
    import cvxopt

    n = len(problem.Q)
    each = list(range(n))
    G = cvxopt.spmatrix([-1.0] * n + [1.0] * n, list(range(2 * n)), each + each)
    h = cvxopt.matrix(np.concatenate([np.zeros(n), np.ones(n)]))
    summed = {}
    if problem.total is not None:
        b = np.array([problem.total])
        summed = {"A": cvxopt.matrix(np.ones((1, n))), "b": cvxopt.matrix(b)}
    options = {
        "show_progress": False,
        "abstol": problem.floor(),
        "reltol": 0.1 * tol,
        "feastol": LIBRARY_RESIDUAL,
    }
    found = cvxopt.solvers.coneqp(
        cvxopt.matrix(problem.Q),
        cvxopt.matrix(problem.linear),
        G,
        h,
        **summed,
        options=options,
    )
    return np.asarray(found["x"]).ravel(), int(found["iterations"])


#: Solver's name → package, and what calls it.
LIBRARIES: dict[str, tuple[str, Callable[[UnitProblem, float], tuple[np.ndarray, int]]]] = {
    "qp": ("piqp", _piqp),
    "qp-clarabel": ("clarabel", _clarabel),
    "qp-cvxopt": ("cvxopt", _cvxopt),
}


def is_library_there(name: str) -> bool:
    """Return True if the library of a solver is installed."""
    return importlib.util.find_spec(LIBRARIES[name][0]) is not None


def require_library(name: str) -> None:
    """Raise MissingPackageError, saying how to get it, unless the library is installed."""
    if not is_library_there(name):
        msg = (
            f"solver={name!r} needs the package {LIBRARIES[name][0]}, which is not installed:"
            " pip install svmbench[qp]"
        )
        raise MissingPackageError(msg)


def solve_with_library(
    problem: UnitProblem,
    *,
    name: str,  # one of `LIBRARIES`
    tol: float,  # duality gap, relative to the objective
) -> QPPoint:
    """Return the library's solution.

    Raise MissingPackageError if the library is not installed.
    """
    require_library(name)
    n = len(problem.Q)
    total = problem.total
    if n == 0 or (total is not None and not 0.0 < total < n):
        # Nothing to choose: some libraries fail where no point is inside.
        found, iterations = np.full(n, 1.0 if total else 0.0), 0
    else:
        found, iterations = LIBRARIES[name][1](problem, tol)
    a = np.clip(np.nan_to_num(found, nan=problem.uniform().a.mean() if n else 0.0), 0.0, 1.0)
    a[a < ON_BOUND] = 0.0
    a[a > 1.0 - ON_BOUND] = 1.0
    if total is not None:
        mend(a, total)
    point = problem.at(a)
    point.steps = iterations
    point.gap = problem.gap(point)
    point.reason = problem.reason(point, 10.0 * tol)
    return point
