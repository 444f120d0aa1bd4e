"""The registry of checks: one function for each claim, which turns records into parts.

The checks of a paper are in the ``checks.py`` of its folder, which is loaded when one of its claims
is judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from svmbench.base.errors import SvmbenchError
from svmbench.base.escape import line
from svmbench.base.paper_folders import Paper
from svmbench.papers.judging.entries import Claim
from svmbench.papers.judging.evidence import Evidence, Source
from svmbench.papers.judging.measures import NO_ANSWER, Answer, all_of
from svmbench.papers.judging.verdict import UNAVAILABLE_STATUSES, Part
from svmbench.report.numbers.estimates import Condition, Estimate
from svmbench.report.reading import published
from svmbench.report.reading.records import CellResult

#: A function that yields the parts of a claim from kept evidence; no part without records.
ClaimCheck = Callable[[Claim, Evidence], Iterable[Part]]


@dataclass(frozen=True)
class DeclaredCheck:
    """A check, the limits that it reads, and the data sets that the claim names."""

    check: ClaimCheck
    limits: tuple[str, ...]
    datasets: tuple[str, ...] = ()


CHECKS: dict[str, DeclaredCheck] = {}


def check(
    name: str, *limits: str, datasets: Sequence[str] = ()
) -> Callable[[ClaimCheck], ClaimCheck]:
    """Declare the decorated function as the check of a claim.

    Parameters
    ----------
    name : str
        The claim's id.
    *limits : str
        The limits that it reads.
    datasets : sequence of str, default=()
        The data sets that the claim names; for each, its name and the names of its parts and
        stand-ins here, separated by ``|``.
    """

    def declare(function: ClaimCheck) -> ClaimCheck:
        if name in CHECKS:
            raise ValueError(f"a check of {name} is declared already")
        CHECKS[name] = DeclaredCheck(function, limits, tuple(datasets))
        return function

    return declare


def load_checks(paper: Paper, *, trust: bool = False) -> bool:
    """Import the checks of a paper; return whether that could be done.

    Parameters
    ----------
    paper : Paper
    trust : bool, default=False
        Whether the code of a paper that doesn't ship with this package may run.

    Returns
    -------
    bool
        False for a paper that doesn't ship, without `trust`.

    Raises
    ------
    svmbench.base.errors.SvmbenchError
        If other people's checks can't be imported, or are for claims of another paper.
    """
    if paper.ships:
        import_module(f"svmbench.papers.{paper.key}.checks")
    elif trust and (paper.folder / "checks.py").is_file():
        _load(paper.key, paper.folder / "checks.py")
    return paper.ships or trust


@cache
def _load(key: str, path: Path) -> None:
    """Import other people's checks, once."""
    before = set(CHECKS)
    spec = spec_from_file_location(f"svmbench_checks_{key}", path)
    assert spec is not None
    assert spec.loader is not None
    try:
        spec.loader.exec_module(module_from_spec(spec))
    except Exception as error:
        reason = line(f"{type(error).__name__}: {error}", 300)
        raise SvmbenchError(f"{line(path, 200)}: can't be imported: {reason}") from error
    others = [name for name in CHECKS if name not in before and not name.startswith(f"{key}-")]
    if others:
        raise SvmbenchError(
            f"{line(path, 200)}: {line(others[0], 60)!r} is no claim of this paper: the names"
            f" of its claims begin with '{key}-'"
        )


def part_label(source: Source, *words: object) -> str:
    """Return the `what` of a part; with the profile if runs of several profiles count."""
    parts = [str(word) for word in words if str(word)]
    if not source.alone:
        parts.append(f"profile {source.profile}")
    return ", ".join(parts)


def condition_text(condition: Condition) -> str:
    """Return a condition in words: its data set and swept values."""
    dataset, swept = condition
    return " ".join([dataset, *(f"{name.rpartition('.')[2]}={value}" for name, value in swept)])


def cells_of(*estimates: Estimate | None) -> tuple[CellResult, ...]:
    """Return the cells of some estimates."""
    return tuple(cell for estimate in estimates if estimate is not None for cell in estimate.cells)


def first_missing_cells(
    source: Source, blocks: Sequence[str], dataset: str, solvers: Iterable[str]
) -> dict[str, CellResult]:
    """Return the solvers without a result on a data set, each with a cell that gives the reason.

    Solvers that are not planned there, or whose first cell is skipped, are left out.
    """
    first_cells = {}
    for solver in solvers:
        cells = [
            cell
            for cell in source.all_cells(*blocks)
            if cell.solver == solver and cell.dataset == dataset
        ]
        if cells and all(cell.status != "ok" for cell in cells) and cells[0].status != "skipped":
            first_cells[solver] = cells[0]
    return first_cells


def undecided_if_missing(answer: Answer, missing: Iterable[str]) -> tuple[Answer, str]:
    """Return an answer that can't be yes while solvers are missing, and a phrase with their names.

    While a rival is missing, "is the best" stays undecided; "is not the best" can be decided.
    """
    names = ", ".join(missing)
    return (all_of([answer, NO_ANSWER]), f"; no result of {names}") if names else (answer, "")


def untested(claim: Claim, source: Source, blocks: Sequence[str], *solvers: str) -> list[Part]:
    """Return a part for each data set of some blocks on which a solver has no result.

    Parameters
    ----------
    claim : Claim
    source : Source
    blocks : sequence of str
    *solvers : str
        The solvers that the claim is about.
    """
    parts = []
    for dataset in dict.fromkeys(str(cell.dataset) for cell in source.all_cells(*blocks)):
        missing = first_missing_cells(source, blocks, dataset, solvers)
        if not missing:
            continue
        cell = next(iter(missing.values()))
        has_no_data = cell.status in UNAVAILABLE_STATUSES
        why = cell.status + (f" ({cell.reason})" if cell.reason else "")
        parts.append(
            Part(
                part_label(source, dataset),
                None,
                why if has_no_data or len(solvers) == 1 else f"{', '.join(missing)}: {why}",
                stand_in=dataset in claim.stand_ins,
                unavailable=has_no_data,
            )
        )
    return parts


def printed_text(
    claim: Claim, table: str, dataset: str, metric: str, solvers: Iterable[str], unit: str = ""
) -> str:
    """Return the printed numbers of some solvers on a data set as text; "" if there are none."""
    values = {
        solver: published.lookup(claim.paper, table, dataset, metric, solver) for solver in solvers
    }
    return ", ".join(
        f"{solver} {value:g}{unit}" for solver, value in values.items() if value is not None
    )
