"""The registry of checks: one function for each claim, which turns records into parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from svmbench.report import published
from svmbench.report.claims.entries import Claim
from svmbench.report.claims.evidence import Evidence, Source
from svmbench.report.claims.measures import Estimate, Place
from svmbench.report.claims.verdict import CANT_BE_HAD, Part
from svmbench.report.records import Cell

#: From a claim and what is kept to its parts; nothing where there is nothing to judge.
Check = Callable[[Claim, Evidence], list[Part]]


@dataclass(frozen=True)
class Declared:
    """A check, and the names of the limits that it reads."""

    check: Check
    limits: tuple[str, ...]


CHECKS: dict[str, Declared] = {}


def check(name: str, *limits: str) -> Callable[[Check], Check]:
    """Declare the function below to be the check of a claim.

    Parameters
    ----------
    name : str
        The claim's id.
    *limits : str
        The limits that it reads.
    """

    def declare(function: Check) -> Check:
        CHECKS[name] = Declared(function, limits)
        return function

    return declare


def label(source: Source, *words: object) -> str:
    """Return what a part is of; with its profile where runs of several count."""
    parts = [str(word) for word in words if str(word)]
    if not source.alone:
        parts.append(f"profile {source.profile}")
    return ", ".join(parts)


def place_text(place: Place) -> str:
    """Return a place in words: its data set, and what is swept."""
    dataset, swept = place
    return " ".join([dataset, *(f"{name.rpartition('.')[2]}={value}" for name, value in swept)])


def cells_of(*found: Estimate | None) -> tuple[Cell, ...]:
    """Return the cells of some estimates."""
    return tuple(cell for one in found if one is not None for cell in one.cells)


def untested(claim: Claim, source: Source, blocks: Sequence[str], solver: str) -> list[Part]:
    """Return a part for each data set of some blocks on which a solver has no result.

    Parameters
    ----------
    claim : Claim
    source : Source
    blocks : sequence of str
    solver : str
        The solver that the claim is of.
    """
    by_set: dict[str, list[Cell]] = {}
    for cell in source.planned(*blocks):
        if cell.solver == solver:
            by_set.setdefault(str(cell.dataset), []).append(cell)
    parts = []
    for dataset, cells in by_set.items():
        if any(cell.status == "ok" for cell in cells):
            continue
        lost = cells[0].status in CANT_BE_HAD
        why = f"{cells[0].status}" + (f" ({cells[0].reason})" if cells[0].reason else "")
        parts.append(
            Part(
                label(source, dataset),
                None,
                why,
                stand_in=dataset in claim.stand_ins,
                unavailable=lost,
            )
        )
    return parts


def printed_text(
    claim: Claim, table: str, dataset: str, metric: str, solvers: Iterable[str], unit: str = ""
) -> str:
    """Return what a paper prints for some solvers on a data set, or nothing."""
    found = {
        solver: published.lookup(claim.paper, table, dataset, metric, solver) for solver in solvers
    }
    return ", ".join(
        f"{solver} {value:g}{unit}" for solver, value in found.items() if value is not None
    )
