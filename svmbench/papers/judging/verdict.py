"""From the parts of a claim to a verdict that says no more than the records do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from svmbench.papers.judging.entries import Claim
from svmbench.report.records import Cell
from svmbench.report.summary import measured

REPRODUCED, PARTLY, NOT_REPRODUCED, NOT_TESTED = (
    "reproduced",
    "partly",
    "not reproduced",
    "not tested",
)
STATES = (REPRODUCED, PARTLY, NOT_REPRODUCED, NOT_TESTED)
#: What of a run that was not reached is no data set that can't be had.
CANT_BE_HAD = ("unavailable", "skipped")


@dataclass(frozen=True)
class Part:
    """One thing that a claim says, as the records have it.

    Attributes
    ----------
    what : str
        Of which data set, solver or figure.
    holds : bool or None
        None where the records leave it open.
    measured, printed : str
        The numbers, with what is uncertain about them; what the paper has there.
    cells : tuple of Cell
        The records that it rests on.
    stand_in : bool
        Whether it is of data that stand in for the paper's own.
    unavailable : bool
        Whether it is open because the data can't be had.
    """

    what: str
    holds: bool | None
    measured: str
    printed: str = ""
    cells: tuple[Cell, ...] = field(default=(), repr=False)
    stand_in: bool = False
    unavailable: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        return {
            "what": self.what,
            "holds": self.holds,
            "measured": self.measured,
            "printed": self.printed,
            "stand_in": self.stand_in,
            "unavailable": self.unavailable,
            "records": sorted({cell.key for cell in self.cells}),
        }


@dataclass(frozen=True)
class Verdict:
    """What became of a claim.

    Attributes
    ----------
    claim : Claim
    state : str
        One of `STATES`.
    reason : str
        In a sentence, what the state rests on.
    parts : tuple of Part
    notes : tuple of str
        What was left out, is unfinished, or was measured beside other work.
    sources : tuple of (str, str, str)
        Folder, profile and environment of each run that it rests on.
    freshness : str
        ``fresh``, ``stale``, ``unknown``, or nothing where nobody looked.
    stale : tuple of str
        What has changed since, a sentence each.
    from_kept : bool
        Whether it rests on kept records because the runs that were to be judged leave it open.
    """

    claim: Claim
    state: str
    reason: str
    parts: tuple[Part, ...] = ()
    notes: tuple[str, ...] = ()
    sources: tuple[tuple[str, str, str], ...] = ()
    freshness: str = ""
    stale: tuple[str, ...] = ()
    from_kept: bool = False

    @property
    def cells(self) -> list[Cell]:
        """Return the records that it rests on, each once."""
        found = {id(cell): cell for part in self.parts for cell in part.cells}
        return list(found.values())

    def datasets(self) -> list[str]:
        """Return the data sets that it rests on."""
        return list(dict.fromkeys(str(cell.dataset) for cell in self.cells if cell.dataset))

    def rows(self) -> tuple[int, int] | None:
        """Return the smallest and the largest number of training rows, where records say it."""
        sizes = [size for cell in self.cells if (size := size_of(cell)) is not None]
        return (int(min(sizes)), int(max(sizes))) if sizes else None

    def to_json(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        claim, rows = self.claim, self.rows()
        return {
            "id": claim.id,
            "paper": claim.paper,
            "where": claim.where,
            "statement": claim.statement,
            "state": self.state,
            "reason": self.reason,
            "decided_by": claim.decided_by,
            "threshold": dict(claim.limits),
            "uncertainty": claim.uncertainty,
            "printed": claim.printed,
            "parts": [part.to_json() for part in self.parts],
            "datasets": self.datasets(),
            "rows": list(rows) if rows else None,
            "runs": [
                dict(zip(("folder", "profile", "environment"), one, strict=True))
                for one in self.sources
            ],
            "commands": claim.commands(),
            "notes": list(self.notes),
            "freshness": self.freshness,
            "stale": list(self.stale),
            "from_kept": self.from_kept,
        }


def size_of(cell: Cell) -> float | None:
    """Return the number of rows that a cell trained on."""
    rows = cell.dimensions.get("rows")
    if isinstance(rows, int | float):
        return float(rows)
    return measured(cell, "n_train")


def decide(parts: Sequence[Part], missing: Sequence[str]) -> tuple[str, str]:
    """Return the state that the parts of a claim come to, and why.

    A claim is reproduced where every part holds that could be tested, and nothing that could be is
    untested; not reproduced where more parts fail than hold. Stand-ins decide nothing where the
    paper's own data were measured, and elsewhere no more than that it held on them.

    Parameters
    ----------
    parts : sequence of Part
    missing : sequence of str
        What is not kept, a sentence each.
    """
    own = [part for part in parts if not part.stand_in and not part.unavailable]
    lost = [part for part in parts if part.unavailable]
    held, failed, left = _three(own)
    beside = _beside(left, lost, missing)
    if held or failed:
        total = len(held) + len(failed)
        if not failed:
            state = PARTLY if left or missing else REPRODUCED
            said = f"held in all {total} that were decided" if total > 1 else "held"
        else:
            state = PARTLY if len(held) >= len(failed) else NOT_REPRODUCED
            said = f"held in {len(held)} of {total}" if total > 1 else "did not hold"
        return state, f"{said}: {_named(held, failed)}{beside}"
    if left:
        return NOT_TESTED, f"undecided: {_texts(left)}{_beside([], lost, missing)}"
    return _by_stand_ins(parts, lost, missing)


def _by_stand_ins(
    parts: Sequence[Part], lost: Sequence[Part], missing: Sequence[str]
) -> tuple[str, str]:
    held, failed, left = _three([part for part in parts if part.stand_in])
    beside = _beside(left if held else [], lost, missing)
    if held and not failed:
        return PARTLY, f"held on stand-ins alone: {_texts(held)}{beside}"
    if held or failed or left:
        decided = [*held, *failed] or left
        return (
            NOT_TESTED,
            f"the paper's own data were not run; on stand-ins {_texts(decided)}{beside}",
        )
    if lost or missing:
        return NOT_TESTED, beside.removeprefix("; ")
    return NOT_TESTED, "the kept runs hold nothing that it could be judged from"


def _three(parts: Iterable[Part]) -> tuple[list[Part], list[Part], list[Part]]:
    found = list(parts)
    return (
        [part for part in found if part.holds is True],
        [part for part in found if part.holds is False],
        [part for part in found if part.holds is None],
    )


#: How many parts a reason names before it only counts them.
_NAMED = 3


def _named(held: Sequence[Part], failed: Sequence[Part]) -> str:
    """Name the fewer of what held and what failed, with its numbers where it is one."""
    few = held if held and (not failed or len(held) < len(failed)) else failed
    if len(held) + len(failed) <= 2:
        return _texts([*held, *failed])
    word = "" if not (held and failed) else ("holds: " if few is held else "fails: ")
    return word + _texts(few)


def _texts(parts: Sequence[Part]) -> str:
    shown = "; ".join(f"{part.what}: {part.measured}" for part in parts[:_NAMED])
    return shown + (f"; and {len(parts) - _NAMED} more" if len(parts) > _NAMED else "")


def _beside(left: Sequence[Part], lost: Sequence[Part], missing: Sequence[str]) -> str:
    """Return what could not be decided, as the end of a sentence."""
    said = []
    if left:
        said.append(f"undecided: {_list(part.what for part in left)}")
    if lost:
        said.append(f"can't be had: {_list((part.what for part in lost), most=len(lost))}")
    return "".join(f"; {one}" for one in [*said, *missing])


def _list(names: Iterable[str], most: int = _NAMED) -> str:
    known = list(dict.fromkeys(names))
    return ", ".join(known[:most]) + (f" and {len(known) - most} more" if len(known) > most else "")
