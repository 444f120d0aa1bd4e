"""From the parts of a claim to its verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from svmbench.papers.judging.entries import Claim
from svmbench.papers.judging.measures import Answer
from svmbench.report.records import CellResult
from svmbench.report.summary import measured
from svmbench.schema.rechecks import Ages as Ages  # the site takes it from here

REPRODUCED, PARTLY, NOT_REPRODUCED, OPEN = (
    "reproduced",
    "partly",
    "not reproduced",
    "open",
)
STATES = (REPRODUCED, PARTLY, NOT_REPRODUCED, OPEN)
#: Largest number of words of the finding in a table.
MAX_FOUND_WORDS = 12
#: Of what a cut part has fewer than the paper's protocol.
CUT_KINDS = ("rows", "folds", "repeats", "values")
#: Statuses of cells whose data are not available. Cells beyond a budget are not among them.
UNAVAILABLE_STATUSES = ("unavailable", "skipped")


@dataclass(frozen=True)
class Part:
    """One thing that a claim says, as the records have it.

    Attributes
    ----------
    what : str
        Of which data set, solver or figure.
    answer : Answer or None
        What decides it; None where nothing was measured.
    measured, printed : str
        The numbers, with what is uncertain about them; what the paper has there.
    cells : tuple of Cell
        The records that it rests on.
    stand_in : bool
        Whether it is of data that stand in for the paper's own.
    unavailable : bool
        Whether it is open because the data can't be had.
    cut : str
        Why the records decide neither way although they have numbers: fewer rows, folds, repeats or
        values of a grid than the paper's, or a profile that only shows that everything runs.
    """

    what: str
    answer: Answer | None
    measured: str
    printed: str = ""
    cells: tuple[CellResult, ...] = field(default=(), repr=False)
    stand_in: bool = False
    unavailable: bool = False
    cut: str = ""

    @property
    def holds(self) -> bool | None:
        """True if the part holds; None if its interval crosses a limit, or it was cut."""
        # Anything else than an answer, such as a bool of somebody's check, has no interval.
        return self.answer.holds if isinstance(self.answer, Answer) and not self.cut else None

    @property
    def single_times(self) -> bool:
        """True if the part rests on the margin of times that were measured once."""
        return isinstance(self.answer, Answer) and self.answer.single

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON holds them."""
        return {
            "what": self.what,
            "holds": self.holds,
            "measured": self.measured,
            "printed": self.printed,
            "stand_in": self.stand_in,
            "unavailable": self.unavailable,
            "cut": self.cut,
            "single_times": self.single_times,
            "criteria": [
                one.to_json() for one in (self.answer.criteria if self.answer is not None else ())
            ],
            "records": sorted({cell.key for cell in self.cells}),
        }


@dataclass(frozen=True)
class MachineVerdict:
    """The verdict on a claim from the records of one machine alone.

    Attributes
    ----------
    name : str
        The CPU models of its records.
    origin : str
        ``ours``, ``confirmed here`` or ``from elsewhere``.
    state, reason, freshness : str
        As those of a `Verdict`.
    """

    name: str
    origin: str
    state: str
    reason: str
    freshness: str = ""


@dataclass(frozen=True)
class Verdict:
    """The verdict on one claim, with its parts.

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
        ``fresh``, ``rechecked``, ``changed``, ``older``, or nothing where nobody looked.
    age : tuple of str
        How many results that word holds for, and which cells changed; without an end.
    commands : tuple of str
        What makes the records that it rests on; without records, what would make them.
    to_decide : str
        Of an open claim the cells and hours of the full protocol, where kept runs tell them.
    from_kept : bool
        Whether it rests on kept records because the runs that were to be judged leave it open.
    cpus : tuple of str
        The CPU models of the records that it rests on.
    machines : tuple of MachineVerdict
        The verdict of each machine that has records of the claim, where there are several, or where
        none of the records are ours; this verdict is that of the first machine that decides.
    """

    claim: Claim
    state: str
    reason: str
    parts: tuple[Part, ...] = ()
    notes: tuple[str, ...] = ()
    sources: tuple[tuple[str, str, str], ...] = ()
    freshness: str = ""
    age: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    to_decide: str = ""
    from_kept: bool = False
    cpus: tuple[str, ...] = ()
    machines: tuple[MachineVerdict, ...] = ()

    @property
    def on_machines(self) -> str:
        """The verdicts of all machines in a few words: ``reproduced on 2 of 2 machines``."""
        counts = Counter(one.state for one in self.machines)
        others = [state for state in STATES if counts[state] and state != self.state]
        n_machines = "1 machine" if len(self.machines) == 1 else f"{len(self.machines)} machines"
        said = [f"{self.state} on {counts[self.state]} of {n_machines}"]
        said += [f"{state} on {counts[state]}" for state in others]
        return ", ".join(said) if self.machines else ""

    @property
    def cells(self) -> list[CellResult]:
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

    def found(self, most: int = 60) -> str:
        """Return the findings in at most twelve words; failed parts first.

        Parameters
        ----------
        most : int, default=60
            Characters at most: names of parts that don't fit are left out.
        """
        held, failed, left = _three(self.parts)
        decided = len(held) + len(failed)
        if not decided:
            return self._undecided(left, most)
        if failed:
            said = "fails" if decided == 1 else f"{len(failed)} of {decided} fail"
        else:
            said = "holds" if decided == 1 else f"all {decided} hold"
        return _with_names(said, failed or held, f"; {len(left)} open" if left else "", most)

    def _undecided(self, left: Sequence[Part], most: int) -> str:
        """Return why no part is decided, as `found` has it."""
        cut = [part.cut for part in left if part.cut]
        kinds = [kind for kind in CUT_KINDS if any(f" {kind}" in one for one in cut)]
        if kinds:
            n_parts = "cut" if len(cut) == len(left) else f"{len(cut)} of {len(left)} parts cut"
            return f"{n_parts} to fewer {' and '.join(kinds)}"
        if cut:
            return "the profile quick alone"
        if not left:
            return " ".join(self.reason.partition(" (")[0].split()[:MAX_FOUND_WORDS])
        return _with_names(
            "undecided" if len(left) == 1 else f"{len(left)} undecided", left, "", most
        )

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON holds them."""
        claim, rows = self.claim, self.rows()
        return {
            "id": claim.id,
            "paper": claim.paper,
            "where": claim.where,
            "page": claim.page,
            "quote": claim.quote,
            "statement": claim.statement,
            "state": self.state,
            "reason": self.reason,
            "rule": claim.rule,
            "rule_hash": claim.rule_hash,
            "fixed": claim.fixed,
            "after_records": claim.after_records,
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
            "commands": list(self.commands or claim.commands()),
            "to_decide": self.to_decide,
            "notes": list(self.notes),
            "freshness": self.freshness,
            "age": list(self.age),
            "from_kept": self.from_kept,
            "cpus": list(self.cpus),
            "machines": [asdict(one) for one in self.machines],
            "together": self.on_machines,
        }


def _with_names(said: str, parts: Sequence[Part], end: str, most: int) -> str:
    """Return a finding with as many names of its parts as fit between it and its end.

    Where not even the first fits, their last words, after a comma, stand for them.
    """
    names = [part.what.partition(", profile ")[0] for part in parts]
    for shown in (names, dict.fromkeys(name.rpartition(", ")[2] for name in names)):
        found, longer = "", said
        for name in shown:
            longer += f"{', ' if found else ': '}{name}"
            if len(longer + end) > most or len((longer + end).split()) > MAX_FOUND_WORDS:
                break
            found = longer + end
        if found:
            return found
    return said + end


def size_of(cell: CellResult) -> float | None:
    """Return the number of rows that a cell trained on."""
    rows = cell.dimensions.get("rows")
    if isinstance(rows, int | float):
        return float(rows)
    return measured(cell, "n_train")


def decide(parts: Sequence[Part], missing: Sequence[str]) -> tuple[str, str]:
    """Return the state that the parts of a claim come to, and why.

    A claim is reproduced where all its parts are decided and hold, not reproduced where all that
    are decided fail, partly where some hold and some fail or are open, and open where none is
    decided. Failures are named first.

    Parameters
    ----------
    parts : sequence of Part
    missing : sequence of str
        What is not kept, a sentence each.
    """
    held, failed, left = _three(parts)
    lost = [part for part in left if part.unavailable]
    left = [part for part in left if not part.unavailable]
    decided = len(held) + len(failed)
    if not decided:
        crossed = [part for part in left if not part.cut]
        said = [f"undecided: {_texts(crossed)}"] if crossed else []
        cut = [part for part in left if part.cut]
        said += [_beside(cut, lost, missing).removeprefix("; ")] if cut or lost or missing else []
        return OPEN, "; ".join(said) or "no kept record to judge it from"
    beside = _beside(left, lost, missing)
    if not failed:
        state = PARTLY if left or lost or missing else REPRODUCED
        said_of = f"held in all {decided} decided parts" if decided > 1 else "held"
    else:
        state = PARTLY if held else NOT_REPRODUCED
        said_of = f"failed in {len(failed)} of {decided} parts" if decided > 1 else "did not hold"
    if all(part.stand_in for part in (*held, *failed)):
        said_of += ", on stand-ins alone"
    return state, f"{said_of}: {_named(held, failed)}{beside}"


def _three(parts: Iterable[Part]) -> tuple[list[Part], list[Part], list[Part]]:
    found = list(parts)
    return (
        [part for part in found if part.holds is True],
        [part for part in found if part.holds is False],
        [part for part in found if part.holds is None],
    )


#: Largest number of parts named in a reason; more are counted.
_MOST_NAMED_PARTS = 3


def _named(held: Sequence[Part], failed: Sequence[Part]) -> str:
    """Name what failed, then what held; without a failure what held alone."""
    if not (held and failed):
        return _texts([*failed, *held])
    return f"{_texts(failed)}; held: {_list(part.what for part in held)}"


def _texts(parts: Sequence[Part]) -> str:
    shown = "; ".join(f"{part.what}: {part.measured}" for part in parts[:_MOST_NAMED_PARTS])
    return shown + (
        f"; and {len(parts) - _MOST_NAMED_PARTS} more" if len(parts) > _MOST_NAMED_PARTS else ""
    )


def _beside(left: Sequence[Part], lost: Sequence[Part], missing: Sequence[str]) -> str:
    """Return the undecided parts, as the end of a sentence."""
    said = []
    cut = [part for part in left if part.cut]
    crossed = [part for part in left if not part.cut]
    if crossed:
        said.append(f"undecided: {_list(part.what for part in crossed)}")
    if cut:
        n_cells = len({cell.key for part in cut for cell in part.cells})
        said.append(f"open, {cut[0].cut}, {n_cells} results: {_list(part.what for part in cut)}")
    if lost:
        said.append(f"data not available: {_list((part.what for part in lost), most=len(lost))}")
    return "".join(f"; {one}" for one in [*said, *missing])


def _list(names: Iterable[str], most: int = _MOST_NAMED_PARTS) -> str:
    known = list(dict.fromkeys(names))
    separator = " / " if any(", " in name for name in known) else ", "
    shown = separator.join(known[:most])
    return shown + (f" and {len(known) - most} more" if len(known) > most else "")
