"""Print how much code the keys of each solver's cells cover: modules and statements, by protocol.

Run from the repository's root:

    python scripts/key_sizes.py                      # all solvers and protocols
    python scripts/key_sizes.py csvc nested-cv       # one kind of cell, module by module
"""

from __future__ import annotations

import ast
import sys
from functools import cache
from typing import NamedTuple

from svmbench.baselines.catalogue import solvers
from svmbench.experiment.plan import keys
from svmbench.experiment.plan.keys import modules_of_kind
from svmbench.experiment.protocols import protocols


class Size(NamedTuple):
    """How much code a key covers."""

    modules: int
    statements: int


def covered(solver: str, protocol: str, task: str = "", input_form: str = "") -> set[str]:
    """Return the modules that a cell's key covers.

    Parameters
    ----------
    solver, protocol : str
        Their names.
    task : str, default=""
        ``binary``, ``multiclass`` or ``one-class``; by default the solver's own.
    input_form : str, default=""
        The form of the cell's input; by default ``kernel`` for a solver that takes a kernel matrix,
        else ``arrays``.
    """
    declared = solvers()[solver]
    usual = "kernel" if "kernel" in declared.reads else "arrays"
    kind = (solver, protocol, task or declared.task, input_form or usual, "accuracy")
    return keys.closure(*modules_of_kind(*kind))


def size(modules: set[str]) -> Size:
    """Return the size of some modules."""
    return Size(len(modules), sum(map(n_statements, modules)))


@cache
def n_statements(module: str) -> int:
    """Return the number of statements in a module's file, those inside others among them."""
    tree = ast.parse(keys.source_path(module).read_bytes())
    return sum(isinstance(node, ast.stmt) for node in ast.walk(tree))


def main() -> None:
    """Print the table, or the modules of one kind of cell."""
    if len(sys.argv) > 1:
        modules = covered(*sys.argv[1:])
        for module in sorted(modules):
            print(f"{n_statements(module):6} {module}")
        print(f"{size(modules).statements:6} statements in {len(modules)} modules")
        return
    width = max(map(len, solvers()))
    print(" " * width, *(f"{name:>11}" for name in protocols()))
    for solver in solvers():
        found = [size(covered(solver, protocol)) for protocol in protocols()]
        print(f"{solver:{width}}", *(f"{f'{n}/{statements}':>11}" for n, statements in found))


if __name__ == "__main__":
    main()
