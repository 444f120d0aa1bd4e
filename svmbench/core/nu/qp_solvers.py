"""The interchangeable solvers of the problem of ``box_qp``, by the names of `solver`."""

from __future__ import annotations

from svmbench.core.nu import quadratic
from svmbench.core.nu.box_qp import QPPoint, UnitProblem
from svmbench.core.nu.dcdm import solve_dcdm
from svmbench.core.nu.pairwise import solve_pairwise

#: Names of the solvers, the default first.
QP_SOLVERS = ("dcdm-pairwise", "dcdm", *quadratic.LIBRARIES)

#: Those that go on from a given point.
WARM_SOLVERS = ("dcdm-pairwise", "dcdm")


def require_solver(name: str) -> None:
    """Raise ValueError for a name that there is not, or whose library is not installed."""
    if name not in QP_SOLVERS:
        msg = f"solver must be one of {', '.join(QP_SOLVERS)}, got solver={name!r}"
        raise ValueError(msg)
    if name in quadratic.LIBRARIES:
        quadratic.require_library(name)


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
    if name in quadratic.LIBRARIES:
        return quadratic.solve_with_library(problem, name=name, tol=tol)
    point = problem.uniform() if start is None else start
    solve = solve_pairwise if name == "dcdm-pairwise" else solve_dcdm
    solve(problem, point, tol=tol, max_iter=max_iter)
    return point
