"""The changes that a comparison finds, and the line that sums them up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Change:
    """One changed value.

    Attributes
    ----------
    verdict : str
        ``"worse"`` (a regression), ``"better"`` or ``"different"``.
    kind : str
        ``"result"``, ``"accuracy"``, ``"score"``, ``"objective"``, ``"counter"``, ``"time"``,
        ``"memory"`` or ``"params"``.
    where : str
        Block, data set and solver.
    what : str
        The metric, counter or pair of solvers.
    base, new : float, str or None
        The two values; accuracies in per cent; of races, the CPU time of the reference over that
        of the solver, so that a smaller ratio is slower.
    moved : str
        For a ratio of times: the solver whose time changed, and by how much; else "".
    """

    verdict: str
    kind: str
    where: str
    what: str
    base: Any
    new: Any
    moved: str = ""

    @property
    def shown(self) -> list[str]:
        """The two values as text, with as many digits as show their difference."""
        for digits in (6, 12, 17):
            shown = [
                "-"
                if value is None
                else f"{value:.{digits}g}"
                if isinstance(value, float)
                else str(value)
                for value in (self.base, self.new)
            ]
            if shown[0] != shown[1]:
                break
        return shown


@dataclass(frozen=True)
class Comparison:
    """All changes between two sides, and notes on values that were not compared.

    Attributes
    ----------
    changes : tuple of Change
        Regressions first.
    compared : dict of str to int
        Number of compared values of each kind.
    notes : tuple of str
        Values that were not compared, with reasons, one sentence each.
    is_stale : bool
        True if the base is a kept baseline that the new side doesn't match: at equal arithmetic, a
        value other than a time or a memory differs, even for the better, or the new side has more
        cells.
    not_compared : tuple of str
        What was not compared, or only loosely, with reasons in brackets.
    """

    changes: tuple[Change, ...]
    compared: Mapping[str, int]
    notes: tuple[str, ...]
    is_stale: bool = False
    not_compared: tuple[str, ...] = ()

    @property
    def regressions(self) -> tuple[Change, ...]:
        """The regressions."""
        return tuple(change for change in self.changes if change.verdict == "worse")

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as JSON values."""
        return {
            "regressions": len(self.regressions),
            "stale": self.is_stale,
            "compared": dict(self.compared),
            "changes": [asdict(change) for change in self.changes],
            "notes": list(self.notes),
            "not_compared": list(self.not_compared),
        }


class ChangeLog:
    """Collector of changes, of the compared values, and of notes on values left out."""

    def __init__(self) -> None:
        # Several pairs of runs may find the same change: report it once.
        self.changes: dict[tuple[str, ...], Change] = {}
        self.compared: dict[str, set[tuple[str, str]]] = {}
        self.notes: dict[str, None] = {}
        self.left_out: dict[str, None] = {}

    def count(self, kind: str, where: str, what: str) -> None:
        """Count a value as compared."""
        self.compared.setdefault(kind, set()).add((where, what))

    def add(
        self, verdict: str, kind: str, where: str, what: str, base: Any, new: Any, moved: str = ""
    ) -> None:
        """Add a change, with the fields of a `Change`."""
        self.changes.setdefault(
            (verdict, kind, where, what), Change(verdict, kind, where, what, base, new, moved)
        )

    def note(self, sentence: str) -> None:
        """Add a note, once."""
        self.notes[sentence] = None

    def leave_out(self, what: str) -> None:
        """Name something that was not compared, once, for the last line."""
        self.left_out[what] = None


def outcome_line(comparison: Comparison) -> str:
    """Return the outcome in a line, with the values that failed, were compared and were not."""
    worse = comparison.regressions
    outcome = "no regression"
    if worse:
        outcome = f"{len(worse)} regression{'s' if len(worse) > 1 else ''}: {_first(worse)}"
    elif comparison.is_stale and comparison.changes:
        outcome = (
            f"stale baseline, {len(comparison.changes)} values differ: {_first(comparison.changes)}"
        )
    elif comparison.is_stale:
        outcome = "stale baseline, it lacks cells"
    counted = ", ".join(f"{n} {kind}" for kind, n in comparison.compared.items())
    left_out = (
        f"; not compared: {', '.join(comparison.not_compared)}" if comparison.not_compared else ""
    )
    return f"{outcome} (values compared: {counted}){left_out}"


def _first(changes: Sequence[Change]) -> str:
    """Name the first change, and the number of others."""
    first = changes[0]
    others = f" and {len(changes) - 1} more" if len(changes) > 1 else ""
    return f"{first.where}: {first.moved or first.what}{others}"
