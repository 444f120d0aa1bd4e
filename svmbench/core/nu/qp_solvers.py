"""The interchangeable solvers of the wing's problem, as the parameter ``solver`` names them."""

from __future__ import annotations

from svmbench.core.nu import dcdm, pairwise, quadratic
from svmbench.core.nu.box_qp import Point, UnitProblem

#: Names of the solvers, the default first.
SOLVERS = ("dcdm-pairwise", "dcdm", *quadratic.LIBRARIES)

#: Those that go on from a given point.
WARM = ("dcdm-pairwise", "dcdm")


def require(name: str) -> None:
    """Raise ValueError for a name that there is not, or whose library is not installed."""
    if name not in SOLVERS:
        msg = f"solver must be one of {', '.join(SOLVERS)}, got solver={name!r}"
        raise ValueError(msg)
    if name in quadratic.LIBRARIES:
        quadratic.require(name)


def solve(
    problem: UnitProblem,
    *,
    name: str,  # one of `SOLVERS`
    # tol, max_iter: duality gap relative to the objective; largest number of steps
    tol: float,
    max_iter: int,
    start: Point | None = None,  # feasible; changed in place by the solvers that go on from a point
) -> Point:
    """Return the solution of a problem."""
    if name in quadratic.LIBRARIES:
        return quadratic.solve(problem, name=name, tol=tol)
    point = problem.uniform() if start is None else start
    module = pairwise if name == "dcdm-pairwise" else dcdm
    module.solve(problem, point, tol=tol, max_iter=max_iter)
    return point
