"""The verdict on a claim, from its parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from svmbench.papers.judging.entries import EVERY, MOST, Claim
from svmbench.papers.judging.measures import Answer, Criterion, SideTest
from svmbench.report.numbers.statistics import Interval
from svmbench.report.numbers.summary import value_of
from svmbench.report.reading.records import CellResult

#: The outcomes of a claim.
SUPPORTED, MIXED, CONTRADICTED, UNDECIDED, NOT_TESTED = OUTCOMES = (
    "supported",
    "mixed",
    "contradicted",
    "undecided",
    "not tested",
)
#: Kinds of scale: the paper's data and protocol, less of them, or other data.
FULL, REDUCED, STAND_IN = ("full", "reduced", "stand-in")
#: The outcomes of a part, by its answer.
PART_OUTCOMES = {True: "holds", False: "fails", None: "undecided"}
#: Largest number of words of the finding in a table.
MAX_FOUND_WORDS = 12
#: Statuses of cells that can't run here: their data are not available, or don't suit the protocol
#: or the solver. Cells beyond a budget are not among them.
UNAVAILABLE_STATUSES = ("unavailable", "skipped")


@dataclass(frozen=True)
class Part:
    """One statement of a claim about a data set, solver or figure, with its records.

    Attributes
    ----------
    what : str
        The data set, solver or figure that the part is about.
    answer : Answer or None
        The answer of its criteria; None if nothing was measured.
    measured, printed : str
        The measured numbers with their uncertainty, and the paper's numbers.
    cells : tuple of CellResult
        The records that it rests on.
    stand_in : bool
        True if its data stand in for the paper's own.
    unavailable : bool
        True if it is undecided because its data are unavailable.
    cut : str
        What the records lack: rows, folds, repeats, values of a grid, or cells of an unfinished
        run.
    smoke_test : bool
        True if its records come from the profile ``quick``, which decides nothing.
    printed_value : float or None
        The value that the same rule gives for the paper's printed numbers.
    """

    what: str
    answer: Answer | None
    measured: str
    printed: str = ""
    cells: tuple[CellResult, ...] = field(default=(), repr=False)
    stand_in: bool = False
    unavailable: bool = False
    cut: str = ""
    smoke_test: bool = False
    printed_value: float | None = None

    @property
    def holds(self) -> bool | None:
        """True if the part holds; None if its interval is too wide or missing."""
        return None if self.smoke_test or self.answer is None else self.answer.holds

    @property
    def subject(self) -> str:
        """The data set, solver or figure that the part is about, without the profile of its run."""
        return self.what.partition(", profile ")[0]

    @property
    def outcome(self) -> str:
        """``holds``, ``fails`` or ``undecided``."""
        return PART_OUTCOMES[self.holds]

    @property
    def criteria(self) -> tuple[Criterion | SideTest, ...]:
        """The criteria of the answer; none without an answer."""
        return () if self.answer is None else self.answer.criteria

    @property
    def deciding(self) -> Criterion | None:
        """The criterion that decides the answer: one that fails, else an undecided one."""
        known = [criterion for criterion in self.criteria if isinstance(criterion, Criterion)]
        order = (False, None, True)
        return min(known, key=lambda criterion: order.index(criterion.holds), default=None)

    @property
    def interval(self) -> Interval | None:
        """The interval that decides the part, with the estimate as its value."""
        return self.deciding.interval if self.deciding is not None else None

    @property
    def region(self) -> tuple[float, float] | None:
        """The claimed limits of the number; infinite without a limit."""
        return (
            (self.deciding.at_least, self.deciding.at_most) if self.deciding is not None else None
        )

    @property
    def single_times(self) -> bool:
        """True if the part rests on the margin of times that were measured once."""
        return self.answer is not None and self.answer.single

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON holds them."""
        return {
            "what": self.what,
            "outcome": self.outcome,
            "measured": self.measured,
            "printed": self.printed,
            "printed_value": self.printed_value,
            "stand_in": self.stand_in,
            "unavailable": self.unavailable,
            "cut": self.cut,
            "smoke_test": self.smoke_test,
            "single_times": self.single_times,
            "criteria": [criterion.to_json() for criterion in self.criteria],
            "records": sorted({cell.key for cell in self.cells}),
        }


@dataclass(frozen=True)
class Scale:
    """The share of the paper's data and protocol on which an outcome rests.

    Attributes
    ----------
    kind : str
        ``full``, ``reduced`` or ``stand-in``; "" where nothing is decided.
    cut : tuple of str
        A phrase for each part of the paper's protocol that the records lack.
    covered, named : int
        How many of the data sets that the claim names have a decided part, and how many it names; 0
        if it names none.
    stand_ins : int
        The number of covered data sets that are stand-ins.
    missing : tuple of str
        The claim's data sets without a decided part.
    """

    kind: str = ""
    cut: tuple[str, ...] = ()
    covered: int = 0
    named: int = 0
    stand_ins: int = 0
    missing: tuple[str, ...] = ()

    @property
    def coverage(self) -> str:
        """How many of the claim's data sets are covered, and how many more by other data."""
        if not self.named:
            return ""
        if self.stand_ins == self.covered:
            return self._of_named(self.covered)
        others = f", {self.stand_ins} more on other data" if self.stand_ins else ""
        return self._of_named(self.covered - self.stand_ins) + others

    def _of_named(self, number: int) -> str:
        return f"{number} of {self.named} {'set' if self.named == 1 else 'sets'}"

    def __str__(self) -> str:
        """Return the kind, and the coverage: ``reduced; decided on 4 of 11 sets``."""
        decided = f"; decided on {self.coverage}" if self.kind and self.coverage else ""
        return f"{self.kind}{decided}"


@dataclass(frozen=True)
class MachineVerdict:
    """The verdict on a claim from the records of one machine alone.

    Attributes
    ----------
    name : str
        The CPU models of its records.
    origin : str
        ``ours``, ``confirmed here`` or ``from elsewhere``.
    outcome, reason, age : str
        As those of a `Verdict`.
    """

    name: str
    origin: str
    outcome: str
    reason: str
    age: str = ""


class JudgedRun(NamedTuple):
    """A run that a verdict rests on: its folder, its profile, and the environments of its results.

    Environments are separated by commas.
    """

    folder: str
    profile: str
    environments: str


@dataclass(frozen=True)
class Verdict:
    """The verdict on one claim, with its parts.

    Attributes
    ----------
    claim : Claim
    outcome : str
        One of `OUTCOMES`.
    reason : str
        A sentence with the reason of the outcome.
    parts : tuple of Part
    scale : Scale
        How much of the paper's data and protocol the records cover.
    notes : tuple of str
        Sentences on what was left out, is unfinished, or was measured beside other work.
    runs : tuple of JudgedRun
        The runs that it rests on.
    age : str
        ``fresh``, ``rechecked``, ``changed`` or ``older``; empty if ages were not looked up.
    age_details : tuple of str
        Sentences on `age`: how many results have this word, and which cells changed; without
        full stops.
    commands : tuple of str
        The commands that make its records.
    to_decide : str
        The missing cells of an undecided claim's full protocol, and how long they take, if kept
        runs tell it.
    missing_cells : int or None
        Their number; None if kept runs don't tell it, or for a decided claim.
    from_kept : bool
        Whether it rests on kept records because the runs that were to be judged don't decide it.
    cpus : tuple of str
        The CPU models of the records that it rests on.
    by_printed : str
        The outcome of the rule on the paper's own printed numbers, where somebody asked and there
        are some (`svmbench.papers.judging.printed_evidence.beside_printed`).
    machines : tuple of MachineVerdict
        The verdict of each machine that has records of the claim, where there are several, or where
        none of the records are ours; this verdict is that of the first machine that decides.
    trusted : bool
        False if the claim's check is other people's code, which did not run.
    """

    claim: Claim
    outcome: str
    reason: str
    parts: tuple[Part, ...] = ()
    scale: Scale = Scale()
    notes: tuple[str, ...] = ()
    runs: tuple[JudgedRun, ...] = ()
    age: str = ""
    age_details: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    to_decide: str = ""
    missing_cells: int | None = None
    from_kept: bool = False
    cpus: tuple[str, ...] = ()
    by_printed: str = ""
    machines: tuple[MachineVerdict, ...] = ()
    trusted: bool = True

    @property
    def on_machines(self) -> str:
        """The verdicts of all machines in a few words: ``supported on 2 of 2 machines``."""
        counts = Counter(verdict.outcome for verdict in self.machines)
        others = [outcome for outcome in OUTCOMES if counts[outcome] and outcome != self.outcome]
        n_machines = "1 machine" if len(self.machines) == 1 else f"{len(self.machines)} machines"
        phrases = [f"{self.outcome} on {counts[self.outcome]} of {n_machines}"]
        phrases += [f"{outcome} on {counts[outcome]}" for outcome in others]
        return ", ".join(phrases) if self.machines else ""

    @property
    def is_decided(self) -> bool:
        """True unless the outcome is undecided or not tested."""
        return self.outcome not in {UNDECIDED, NOT_TESTED}

    @property
    def is_reproduced(self) -> bool:
        """True if supported in every part, at full scale, on every data set that it names."""
        whole = self.scale.covered == self.scale.named and not self.scale.stand_ins
        holds = self.outcome == SUPPORTED and all(part.holds for part in self.parts)
        return holds and self.scale.kind == FULL and whole

    @property
    def cells(self) -> list[CellResult]:
        """Return the records that it rests on, each once."""
        cells = {id(cell): cell for part in self.parts for cell in part.cells}
        return list(cells.values())

    def count_parts(self) -> str:
        """Return how many parts fail, hold and are undecided: ``4 fail, 11 hold, 15 undecided``."""
        return ", ".join(_counts(self.parts))

    def key_number(self) -> str:
        """Return the measured numbers of the most telling part; "" without any.

        That is a failed part of a contradicted claim, else a part that holds, else an undecided
        one; parts on the paper's own data and at their full size come first.
        """
        order = (False, True, None) if self.outcome == CONTRADICTED else (True, False, None)
        telling = min(
            (part for part in self.parts if part.cells or part.answer is not None),
            key=lambda part: (order.index(part.holds), part.stand_in, bool(part.cut)),
            default=None,
        )
        return f"{telling.what}: {telling.measured.partition(';')[0]}" if telling else ""

    def datasets(self) -> list[str]:
        """Return the data sets that it rests on."""
        return list(dict.fromkeys(str(cell.dataset) for cell in self.cells if cell.dataset))

    def rows(self) -> tuple[int, int] | None:
        """Return the smallest and the largest number of training rows, where records say it."""
        sizes = [size for cell in self.cells if (size := size_of(cell)) is not None]
        return (int(min(sizes)), int(max(sizes))) if sizes else None

    def finding(self, most: int = 60) -> str:
        """Return how many parts fail, hold and are undecided, and names of the first of these.

        Parameters
        ----------
        most : int, default=60
            Characters at most: names of parts that don't fit, or would make more than twelve words,
            are left out.
        """
        held, failed, undecided = _by_answer(self.parts)
        if not (held or failed):
            return self._undecided(undecided, most)
        first, *others = _counts(self.parts)
        end = f"; {', '.join(others)}" if others else ""
        return _with_names(first, failed or held, end, most) or self.count_parts()

    def _undecided(self, undecided: Sequence[Part], most: int) -> str:
        """Return the reason why no part is decided, for `finding`."""
        if any(part.smoke_test for part in undecided):
            return "the profile quick alone"
        if self.outcome == NOT_TESTED:
            if not self.trusted:
                return "its check needs --trust"
            return "not run" if undecided else "no kept record"
        return _with_names(self.count_parts(), undecided, "", most) or self.count_parts()

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
            "quantifier": claim.quantifier,
            "outcome": self.outcome,
            "scale": {**asdict(self.scale), "cut": list(self.scale.cut)},
            "reproduced": self.is_reproduced,
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
                {
                    "folder": run.folder,
                    "profile": run.profile,
                    "environment": run.environments,
                }
                for run in self.runs
            ],
            "commands": list(self.commands or claim.commands()),
            "to_decide": self.to_decide,
            "notes": list(self.notes),
            "age": self.age,
            "age_details": list(self.age_details),
            "from_kept": self.from_kept,
            "cpus": list(self.cpus),
            "machines": [asdict(machine) for machine in self.machines],
            "together": self.on_machines,
        }


def _with_names(start: str, parts: Sequence[Part], end: str, most: int) -> str:
    """Return `start`, then as many names of parts as fit, then `end`; "" if none fits.

    If not even the first name fits, only the words after its last comma are used.
    """
    names = [part.subject for part in parts]
    for shown in (names, dict.fromkeys(name.rpartition(", ")[2] for name in names)):
        text, longer = "", start
        for name in shown:
            longer += f"{', ' if text else ': '}{name}"
            if len(longer + end) > most or len((longer + end).split()) > MAX_FOUND_WORDS:
                break
            text = longer + end
        if text:
            return text
    return ""


def size_of(cell: CellResult) -> float | None:
    """Return the size of a cell: the rows of a sweep, or else its training rows."""
    rows = cell.dimensions.get("rows")
    if isinstance(rows, int | float):
        return float(rows)
    return value_of(cell, "n_train")


def decide(quantifier: str, parts: Sequence[Part], missing: Sequence[str]) -> tuple[str, str]:
    """Return the outcome that the parts of a claim come to, and why.

    Without a decided part the claim is undecided if something was measured, and not tested
    otherwise. If no part fails, it is supported. Otherwise, in this order: a claim about most parts
    is supported if more than half of all parts hold; a claim about every part is contradicted; any
    claim is contradicted if more parts fail than hold, a claim about most parts also if at least
    half of all parts fail. Any other claim is mixed. The reason names failures first.

    Parameters
    ----------
    quantifier : str
        How the claim quantifies: one of `QUANTIFIERS`.
    parts : sequence of Part
    missing : sequence of str
        Sentences on configs without kept results, and on data sets that no run has.
    """
    held, failed, undecided = _by_answer(parts)
    without_data = [part for part in undecided if part.unavailable]
    undecided = [part for part in undecided if not part.unavailable]
    if not (held or failed):
        phrases = [f"undecided: {_texts(undecided)}"] if undecided else []
        phrases += _open_phrases([], without_data, missing)
        known = any(part.cells or part.answer is not None for part in undecided)
        outcome = UNDECIDED if known else NOT_TESTED
        return outcome, "; ".join(phrases) or "no kept record to judge it from"
    finding = "fails" if failed else "holds"
    if len(parts) > 1:
        _, *others = _counts(parts)
        which = f"{len(failed or held)} of {len(parts)}" if others else f"all {len(parts)}"
        finding += f" in {which} parts" + (f" ({', '.join(others)})" if others else "")
    outcome = _outcome_of_counts(quantifier, len(held), len(failed), len(parts))
    if all(part.stand_in for part in (*held, *failed)):
        finding += ", on stand-ins alone"
    phrases = _open_phrases(undecided, without_data, missing)
    return outcome, "; ".join([f"{finding}: {_named(held, failed)}", *phrases])


def _outcome_of_counts(quantifier: str, held: int, failed: int, total: int) -> str:
    """Return the outcome of a claim with decided parts."""
    if not failed:
        return SUPPORTED
    if quantifier == MOST and 2 * held > total:
        return SUPPORTED
    if quantifier == EVERY or failed > held or (quantifier == MOST and 2 * failed >= total):
        return CONTRADICTED
    return MIXED


def scale_of(
    outcome: str, parts: Sequence[Part], datasets: Sequence[str], stand_ins: Collection[str]
) -> Scale:
    """Return on how much of the paper's data and protocol an outcome rests.

    A contradiction rests on the failed parts with the fullest scale, any other outcome on all
    decided parts. Parts on stand-ins count only if no other part is left.

    Parameters
    ----------
    outcome : str
    parts : sequence of Part
    datasets : sequence of str
        The data sets that the claim names, each as its name and those of its parts and stand-ins,
        with ``|`` between them.
    stand_ins : collection of str
        The names of data sets that stand in for others.
    """
    held, failed, _ = _by_answer(parts)
    decided = [*held, *failed]
    if not decided:
        return Scale(named=len(datasets))
    judged = {str(cell.dataset) for part in decided for cell in part.cells}
    covered = [names for entry in datasets if (names := set(entry.split("|")) & judged)]
    names_of = [entry.split("|") for entry in datasets]
    coverage: dict[str, Any] = {
        "covered": len(covered),
        "named": len(datasets),
        "stand_ins": sum(names <= set(stand_ins) for names in covered),
        "missing": tuple(names[0] for names in names_of if not judged & set(names)),
    }
    deciding = decided  # the parts that the outcome rests on
    if outcome == CONTRADICTED:
        ranks = [(part.stand_in, bool(part.cut)) for part in failed]
        deciding = [part for part, rank in zip(failed, ranks, strict=True) if rank == min(ranks)]
    on_own_data = [part for part in deciding if not part.stand_in]
    cut = tuple(dict.fromkeys(part.cut for part in on_own_data or deciding if part.cut))
    if not on_own_data:
        return Scale(STAND_IN, cut, **coverage)
    return Scale(REDUCED if cut else FULL, cut, **coverage)


def _by_answer(parts: Iterable[Part]) -> tuple[list[Part], list[Part], list[Part]]:
    """Return the parts that hold, those that fail, and the undecided ones."""
    chosen = list(parts)
    return (
        [part for part in chosen if part.holds is True],
        [part for part in chosen if part.holds is False],
        [part for part in chosen if part.holds is None],
    )


def _counts(parts: Iterable[Part]) -> list[str]:
    """Return a phrase each on how many parts fail, hold and are undecided; none for none."""
    held, failed, undecided = map(len, _by_answer(parts))
    counts = (
        (failed, "fails" if failed == 1 else "fail"),
        (held, "holds" if held == 1 else "hold"),
        (undecided, "undecided"),
    )
    return [f"{count} {words}" for count, words in counts if count]


#: Largest number of parts named in a reason; more are counted.
_MAX_NAMED_PARTS = 3


def _named(held: Sequence[Part], failed: Sequence[Part]) -> str:
    """Name what failed, then what held. If nothing failed, name what held."""
    if not (held and failed):
        return _texts([*failed, *held])
    return f"{_texts(failed)}; holds: {_list(part.what for part in held)}"


def _texts(parts: Sequence[Part]) -> str:
    shown = "; ".join(f"{part.what}: {part.measured}" for part in parts[:_MAX_NAMED_PARTS])
    return shown + (
        f"; and {len(parts) - _MAX_NAMED_PARTS} more" if len(parts) > _MAX_NAMED_PARTS else ""
    )


def _open_phrases(
    undecided: Sequence[Part], without_data: Sequence[Part], missing: Sequence[str]
) -> list[str]:
    """Return a phrase each for undecided parts, for parts without data and for what is missing."""
    phrases = [f"undecided: {_list(part.what for part in undecided)}"] if undecided else []
    if without_data:
        names = _list((part.what for part in without_data), most=len(without_data))
        phrases.append(f"data not available: {names}")
    return [*phrases, *missing]


def _list(names: Iterable[str], most: int = _MAX_NAMED_PARTS) -> str:
    known = list(dict.fromkeys(names))
    separator = " / " if any(", " in name for name in known) else ", "
    shown = separator.join(known[:most])
    return shown + (f" and {len(known) - most} more" if len(known) > most else "")
