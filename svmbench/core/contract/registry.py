"""The registry of solvers: what each says of itself, checked where its class stands.

Importing a module registers the solvers that it declares. What a class lacks is said at once, in
one sentence, and not by the first run that would have needed it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from svmbench.core.contract import problems
from svmbench.core.contract.base import Solver
from svmbench.core.contract.problems import Problem
from svmbench.core.kernels.kernels import KERNELS

#: The words in which solvers count their work, so that the same work has the same name: what a
#: table may ask for. A solver that counts something else declares it.
COUNTERS = (
    "basis_vectors", "bounded_support_vectors", "checks", "columns", "conjugate_gradient_steps",
    "cuts", "draws", "dropped", "dropped_pivots", "epochs", "examples", "faces",
    "factorisations", "fallbacks", "gram_rows", "iterations", "kernel_evaluations",
    "kernel_rows", "largest_chunk", "passes", "products", "projections", "qp_steps", "rebuilt",
    "refinements", "refreshes", "removals", "samples", "searches_failed", "steps",
    "support_vectors", "sweeps", "updates", "visits",
)  # fmt: skip

#: What a solver can be for.
TASKS = ("binary", "one-class")

#: What a solver may read, and the methods that it then has beside `prepare`, `train` and `certify`:
#: arrays in memory; a kernel matrix that others share (`KernelSource`); blocks of rows, one of them
#: in memory at a time; a file that a program opens.
READS: dict[str, tuple[str, ...]] = {
    "arrays": (),
    "kernel": ("solve",),
    "blocks": ("fit_blocks", "path_blocks"),
    "file": (),
}


#: What holds where a solver ends without a warning; {} stands for the parameter it is stated with.
#: A violation is in units of the margin: of y f(x) >= 1 where a multiplier is below its bound, and
#: of y f(x) <= 1 where it is above 0 (with the quadratic losses' own term).
PROMISES: dict[str, str] = {
    "violation": "no sample violates its optimality condition by more than {}",
    "violation relative to rho": "no sample violates its optimality condition by more than {} "
    "times rho (R^2 for a ball), nor by more than {} in LIBSVM's scale",
    "gap relative to C n": "the objective is at most {} times C n_samples above the optimum",
    "gap relative to the objective": "the objective is at most {} times itself above the optimum",
    "residual": "the linear system's residual is at most {} times as long as its right-hand side",
    "margin": "every training sample has at least 1 - {} of the margin",
    "rounding": "the solution is exact but for rounding",
}


@dataclass(frozen=True)
class Declaration:
    """What a solver says of itself, checked against a config before anything runs.

    Attributes
    ----------
    name : str
        The paper's name in kebab case, as configs, records and tables spell it.
    problem : str
        The entry of `PROBLEMS` that it minimises. A solver may bring
        a problem of its own: :func:`declare` takes a `Problem` here and enters it.
    summary : str
        One line for ``svmbench list solvers``.
    reference : str
        Paper with equation or algorithm numbers, or the program and its option.
    paper : str
        Key of the paper it comes from (``alsvm``, ``smo`` …); empty for a baseline.
    kernels : tuple of str
        ``("linear",)`` or the kernels it takes.
    sparse : bool
        Whether CSR input is used as it is; if not, a sparse data set is a skipped cell.
    task : str
        ``"binary"`` or ``"one-class"``; ``"multiclass"`` of a foreign class, which nobody declares.
    paths : tuple of str
        The parameters along which `path` shares work between the solutions.
    reads : tuple of str
        What it takes its samples from, of :data:`READS`. That a kernel solver reads ``kernel`` is
        known from its class and need not be said.
    counters : tuple of str
        What it counts beside the words of :data:`COUNTERS`.
    promise : str
        What holds of the solution where `fit` ends without a warning, of :data:`PROMISES`. Empty
        where nothing does: a solver that ends after a number of steps, that looks at some of the
        samples, or that finds no violation among those that it draws. A solver that works on a
        span of samples or points promises it of the optimum in that span.
    promised_by : str
        The parameter that the promise is stated with; where it is None, nothing is promised.
    suits : str
        Where to take it and where another solver of the same problem, from measured ratios.
    """

    name: str
    problem: str
    summary: str
    reference: str
    paper: str = ""
    kernels: tuple[str, ...] = ("linear",)
    sparse: bool = True
    task: str = "binary"
    paths: tuple[str, ...] = ()
    reads: tuple[str, ...] = ("arrays",)
    counters: tuple[str, ...] = ()
    promise: str = ""
    promised_by: str = "tol"
    suits: str = ""


#: Every declared solver class by its name, in the order of declaration.
REGISTRY: dict[str, type[Solver]] = {}

SolverType = TypeVar("SolverType", bound=type[Solver])


def declare(*, problem: str | Problem, **what: Any) -> Callable[[SolverType], SolverType]:
    """Class decorator: attach a :class:`Declaration` and enter the class into the registry.

    Parameters
    ----------
    problem : str or Problem
        The name of a known problem, or one that the solver brings along.
    **what
        The other attributes of :class:`Declaration`.

    Raises
    ------
    ValueError
        In one sentence, if the name is taken, what is declared makes no sense, or the class lacks
        something of the contract.
    """
    named = problem if isinstance(problem, str) else problem.name
    declaration = Declaration(problem=named, **what)

    def enter(cls: SolverType) -> SolverType:
        who = f"solver {declaration.name!r}"
        known = REGISTRY.get(declaration.name)
        if known is not None and (known.__module__, known.__qualname__) != (
            cls.__module__,
            cls.__qualname__,
        ):
            msg = f"two solvers are declared as {declaration.name!r}: {known} and {cls}"
            raise ValueError(msg)
        if not isinstance(problem, str):
            problems.check_name(problem)
        for mistake in _mistakes(declaration, brings_problem=not isinstance(problem, str)):
            msg = f"{who} {mistake}"
            raise ValueError(msg)
        missing = lacks(cls, declaration)
        if missing:
            msg = f"{who}: the class {cls.__name__} lacks {' and '.join(missing)}"
            raise ValueError(msg)
        # Last, so that a declaration that is refused leaves nothing behind.
        if not isinstance(problem, str):
            problems.enter(problem)
        cls.declaration = _with_kernel(cls, declaration)
        REGISTRY[declaration.name] = cls
        return cls

    return enter


def _with_kernel(cls: type[Solver], declaration: Declaration) -> Declaration:
    """Return the declaration of a class, which reads kernels if it solves on a kernel matrix."""
    takes_matrix = getattr(cls, "takes_kernel_matrix", None)
    if takes_matrix is None or not takes_matrix() or "kernel" in declaration.reads:
        return declaration
    return replace(declaration, reads=(*declaration.reads, "kernel"))


def _mistakes(declaration: Declaration, *, brings_problem: bool) -> list[str]:
    """Return what can't be meant in a declaration, as ends of sentences."""
    found = []
    if not brings_problem and declaration.problem not in problems.PROBLEMS:
        found.append(f"declares the unknown problem {declaration.problem!r}")
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", declaration.name):
        found.append("needs a name in kebab case: lower case letters and digits, joined by '-'")
    if declaration.task not in TASKS:
        found.append(
            f"declares the unknown task {declaration.task!r}; known are {', '.join(TASKS)}"
        )
    if declaration.promise and declaration.promise not in PROMISES:
        known = ", ".join(PROMISES)
        found.append(f"declares the unknown promise {declaration.promise!r}; known are {known}")
    unknown = [kernel for kernel in declaration.kernels if kernel not in KERNELS]
    if unknown:
        found.append(f"declares the unknown kernel {unknown[0]!r}; known are {', '.join(KERNELS)}")
    strange = [kind for kind in declaration.reads if kind not in READS]
    if strange or not declaration.reads:
        what = f"to read {strange[0]!r}" if strange else "to read nothing"
        found.append(f"declares {what}; known are {', '.join(READS)}")
    return found


def lacks(cls: type, declaration: Declaration) -> list[str]:
    """Return what a class lacks to be the solver that it is declared as.

    Parameters
    ----------
    cls : type
    declaration : Declaration

    Returns
    -------
    list of str
        Such as ``"the method train"`` and ``"the parameter C"``; empty if all is there.
    """
    if not issubclass(cls, Solver):
        return ["the base class `Solver`, or one that is made for its kind"]
    known = cls._get_param_names()
    stated = "{}" in PROMISES.get(declaration.promise, "")
    read_by = [name for kind in declaration.reads for name in READS[kind] if not hasattr(cls, name)]
    return [f"the method {name}" for name in (*cls.open_methods(), *read_by)] + [
        f"the parameter {name}"
        for name in (
            *cls.needs_parameters,
            *declaration.paths,
            *((declaration.promised_by,) if stated else ()),
        )
        if name not in known
    ]
