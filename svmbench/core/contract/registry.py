"""The registry of solvers: `declare` checks a class and enters it.

Importing a module registers the solvers that it declares. An incomplete class is an error at once,
in one sentence, and not in the first run that needs the missing part.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from svmbench.core.contract import problems
from svmbench.core.contract.base import Solver
from svmbench.core.contract.declaration import KERNELS, PROMISES, READS, TASKS, Declaration
from svmbench.core.contract.docstrings import document
from svmbench.core.contract.problems import Problem

#: Every declared solver class by its name, in the order of declaration.
REGISTRY: dict[str, type[Solver]] = {}

SolverType = TypeVar("SolverType", bound=type[Solver])


def declare(*, problem: str | Problem | None, **what: Any) -> Callable[[SolverType], SolverType]:
    """Class decorator: attach a `Declaration` and enter the class into the registry.

    The class docstring is completed: see :mod:`svmbench.core.contract.docstrings`.

    Parameters
    ----------
    problem : str, Problem or None
        The name of a known problem, or one that the solver brings along. None for a solver that
        minimises no objective: it is compared by scores and times alone.
    **what
        The other attributes of :class:`~svmbench.core.contract.declaration.Declaration`.

    Raises
    ------
    ValueError
        If the name is taken, the declaration makes no sense, or the class lacks a part of the
        contract.
    """
    brought = problem if isinstance(problem, Problem) else None
    problem_name = brought.name if brought else str(problem or "")
    declaration = Declaration(problem=problem_name, **what)

    def enter(cls: SolverType) -> SolverType:
        who = f"solver {declaration.name!r}"
        known = REGISTRY.get(declaration.name)
        if known is not None and (known.__module__, known.__qualname__) != (
            cls.__module__,
            cls.__qualname__,
        ):
            msg = f"two solvers are declared as {declaration.name!r}: {known} and {cls}"
            raise ValueError(msg)
        if brought:
            problems.check_name(brought)
        is_known = bool(brought) or problem is None
        mistakes = [f"{who} {text}" for text in _mistakes(declaration, knows_problem=is_known)]
        if missing := lacks(cls, declaration):
            mistakes.append(f"{who}: the class {cls.__name__} lacks {' and '.join(missing)}")
        if mistakes:
            raise ValueError("; ".join(mistakes))
        # Last, so that a declaration that is refused leaves nothing behind.
        if brought:
            problems.enter(brought)
        cls.declaration = _with_kernel(cls, declaration)
        REGISTRY[declaration.name] = cls
        return document(cls)

    return enter


def _with_kernel(cls: type[Solver], declaration: Declaration) -> Declaration:
    """Return the declaration, with ``kernel`` in `reads` if the class solves on kernel matrices."""
    takes_matrix = getattr(cls, "takes_kernel_matrix", None)
    if takes_matrix is None or not takes_matrix() or "kernel" in declaration.reads:
        return declaration
    return replace(declaration, reads=(*declaration.reads, "kernel"))


def _mistakes(declaration: Declaration, *, knows_problem: bool) -> list[str]:
    """Return the mistakes of a declaration, as predicates of sentences."""
    mistakes = []
    if not knows_problem and declaration.problem not in problems.PROBLEMS:
        mistakes.append(f"declares the unknown problem {declaration.problem!r}")
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", declaration.name):
        mistakes.append("needs a name in kebab case: lower case letters and digits, joined by '-'")
    if declaration.task not in TASKS:
        mistakes.append(
            f"declares the unknown task {declaration.task!r}; known are {', '.join(TASKS)}"
        )
    if declaration.promise and declaration.promise not in PROMISES:
        known = ", ".join(PROMISES)
        mistakes.append(f"declares the unknown promise {declaration.promise!r}; known are {known}")
    unknown = [kernel for kernel in declaration.kernels if kernel not in KERNELS]
    if unknown:
        mistakes.append(
            f"declares the unknown kernel {unknown[0]!r}; known are {', '.join(KERNELS)}"
        )
    strange = [kind for kind in declaration.reads if kind not in READS]
    if strange or not declaration.reads:
        what = f"to read {strange[0]!r}" if strange else "to read nothing"
        mistakes.append(f"declares {what}; known are {', '.join(READS)}")
    if not declaration.problem and declaration.promise:
        mistakes.append("promises something of an objective that it doesn't have")
    return mistakes


def lacks(cls: type, declaration: Declaration) -> list[str]:
    """Return the missing parts of a declared class, such as ``"the method train"``."""
    if not issubclass(cls, Solver):
        return ["the base class `Solver`, or one that is made for its kind"]
    known = cls._get_param_names()
    stated = "{}" in PROMISES.get(declaration.promise, "")
    read_by = [
        name for kind in declaration.reads for name in READS.get(kind, ()) if not hasattr(cls, name)
    ]
    return [f"the method {name}" for name in (*cls.open_methods(), *read_by)] + [
        f"the parameter {name}"
        for name in (
            *cls.needs_parameters,
            *declaration.paths,
            *((declaration.promised_by,) if stated else ()),
        )
        if name not in known
    ]
