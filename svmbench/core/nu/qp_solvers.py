"""The interchangeable solvers of the problem of ``box_qp``, by the names of `solver`.

``dcdm-pairwise`` and ``dcdm`` are in ``pairwise``. The others hand the problem to a maintained
library, in the role of the paper's ``quadprog``: ``qp`` is PIQP (proximal interior point, BSD);
``qp-clarabel`` (interior point, Apache 2) and ``qp-cvxopt`` (interior point, GPL) take part where
'.[qp]' is installed. In the scale of ``box_qp`` interior-point methods reach gaps that they miss by
five digits where multipliers are at most 1/l. A library's solution is put on bounds that are next
to it, and its sum is made exact.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp

from svmbench.base.errors import MissingPackageError
from svmbench.core.nu.box_qp import QPPoint, UnitProblem, restore_sum
from svmbench.core.nu.pairwise import solve_dcdm, solve_pairwise

#: Nearer to a bound than this is on it.
ON_BOUND = 1e-9

#: Residuals of the constraints that libraries are asked for.
LIBRARY_RESIDUAL = 1e-10

_find_spec = cache(importlib.util.find_spec)  # the check of a grid asks for each value


def _piqp(problem: UnitProblem, tol: float) -> tuple[np.ndarray, int]:
    import piqp

    n = len(problem.Q)
    solver = piqp.DenseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = LIBRARY_RESIDUAL
    solver.settings.check_duality_gap = True
    solver.settings.eps_duality_gap_abs = problem.rounding_gap()
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
    settings.tol_gap_abs, settings.tol_gap_rel = problem.rounding_gap(), 0.1 * tol
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
    solution = clarabel.DefaultSolver(upper, problem.linear, A, b, cones, settings).solve()
    return np.asarray(solution.x), int(solution.iterations)


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
        "abstol": problem.rounding_gap(),
        "reltol": 0.1 * tol,
        "feastol": LIBRARY_RESIDUAL,
    }
    solution = cvxopt.solvers.coneqp(
        cvxopt.matrix(problem.Q),
        cvxopt.matrix(problem.linear),
        G,
        h,
        **summed,
        options=options,
    )
    return np.asarray(solution["x"]).ravel(), int(solution["iterations"])


#: Solver's name → package, and what calls it.
LIBRARIES: dict[str, tuple[str, Callable[[UnitProblem, float], tuple[np.ndarray, int]]]] = {
    "qp": ("piqp", _piqp),
    "qp-clarabel": ("clarabel", _clarabel),
    "qp-cvxopt": ("cvxopt", _cvxopt),
}


def is_library_there(name: str) -> bool:
    """Return True if the library of a solver is installed."""
    return _find_spec(LIBRARIES[name][0]) is not None


def require_library(name: str) -> None:
    """Raise MissingPackageError, saying how to get it, unless the library is installed."""
    if not is_library_there(name):
        msg = (
            f"solver={name!r} needs the package {LIBRARIES[name][0]}, which is not installed:"
            " pip install '.[qp]'"
        )
        raise MissingPackageError(msg)


def solve_with_library(
    problem: UnitProblem,
    *,
    name: str,  # one of `LIBRARIES`
    tol: float,  # duality gap, relative to the objective
) -> QPPoint:
    """Return the library's solution; raise MissingPackageError if the library is not installed."""
    require_library(name)
    n = len(problem.Q)
    total = problem.total
    if n == 0 or (total is not None and not 0.0 < total < n):
        # Nothing to choose: some libraries fail where no point is inside.
        solution, iterations = np.full(n, 1.0 if total else 0.0), 0
    else:
        solution, iterations = LIBRARIES[name][1](problem, tol)
    a = np.clip(np.nan_to_num(solution, nan=problem.uniform().a.mean() if n else 0.0), 0.0, 1.0)
    a[a < ON_BOUND] = 0.0
    a[a > 1.0 - ON_BOUND] = 1.0
    if total is not None:
        restore_sum(a, total)
    point = problem.at(a)
    point.steps = iterations
    point.gap = problem.gap(point)
    point.reason = problem.reason(point, 10.0 * tol)
    return point


#: Names of the solvers, the default first.
QP_SOLVERS = ("dcdm-pairwise", "dcdm", *LIBRARIES)

#: Those that go on from a given point.
WARM_SOLVERS = ("dcdm-pairwise", "dcdm")


def require_solver(name: str) -> None:
    """Raise ValueError for a name that there is not, or whose library is not installed."""
    if name not in QP_SOLVERS:
        msg = f"solver must be one of {', '.join(QP_SOLVERS)}, got solver={name!r}"
        raise ValueError(msg)
    if name in LIBRARIES:
        require_library(name)


def solve_by_name(
    problem: UnitProblem,
    *,
    name: str,  # one of `QP_SOLVERS`
    # tol, max_iter: duality gap relative to the objective; largest number of steps
    tol: float,
    max_iter: int,
    # feasible; changed in place by the solvers that go on from a point
    start: QPPoint | None = None,
) -> QPPoint:
    """Return the solution of a problem."""
    if name in LIBRARIES:
        return solve_with_library(problem, name=name, tol=tol)
    point = problem.uniform() if start is None else start
    solve = solve_pairwise if name == "dcdm-pairwise" else solve_dcdm
    solve(problem, point, tol=tol, max_iter=max_iter)
    return point
