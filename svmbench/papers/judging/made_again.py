"""Whether tables and figures of a paper were made again, and whether they agree (CODECHECK).

A table or figure is made by a config, whose kept runs tell how much of it was made. Whether it
agrees comes from the verdicts: from the decided parts of the claims that are judged from this
config's records.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from svmbench.base.paper_folders import FULL_PROFILE, dataset_names_of, shipped_config
from svmbench.papers.judging.cuts import fewer_settings
from svmbench.papers.judging.entries import VALUE
from svmbench.papers.judging.evidence import NOT_RUN_STATUSES, SMOKE_TEST_PROFILE
from svmbench.papers.judging.verdict import FULL, UNAVAILABLE_STATUSES, Part, Verdict
from svmbench.report.numbers.summary import cut_to
from svmbench.report.reading import published
from svmbench.report.reading.records import Run

#: Whether a table or figure was made again: at the paper's size, in part, or not at all.
MADE, MADE_IN_PART, NOT_MADE = ("yes", "in part", "no")
#: Whether it agrees. All decided parts hold, and one of them belongs to a claim about a value
#: (`IN_VALUE`), or none does (`IN_DIRECTION`); more hold than fail (`IN_SOME_PARTS`); at least half
#: fail (`DISAGREES`); no part is decided; no claim is about it.
IN_VALUE, IN_DIRECTION, IN_SOME_PARTS, DISAGREES, UNDECIDED, NO_CLAIM = (
    "in value", "in direction", "in some parts", "no", "undecided", "no claim",
)  # fmt: skip
#: Added if all decided parts are about data that stand in for the paper's.
ON_OTHER_DATA = ", on other data"
#: The name of the paper before the name of a table or figure in a config's title.
_PAPER = re.compile(r"^[\w-]+, (?=(?:Tables?|Figures?) )")
#: Largest number of data sets named as cut or missing.
_MAX_NAMED = 3


@dataclass(frozen=True)
class MadeAgain:
    """A table or figure of a paper: whether it was made again, and whether it agrees.

    Attributes
    ----------
    what : str
        Its title.
    made : str
        ``yes``, ``in part`` or ``no``.
    less : str
        The rows, folds, values or sets that the kept results lack; "" if nothing is missing.
    agrees : str
        ``in value``, ``in direction``, ``in some parts``, ``no``, ``undecided`` or ``no claim``;
        with ``, on other data`` where only stand-ins are decided.
    claims : tuple of str
        The claims that are judged from it.
    """

    what: str
    made: str
    less: str
    agrees: str
    claims: tuple[str, ...]


def made_again(
    paper: str, configs: Sequence[str], verdicts: Sequence[Verdict], runs: Sequence[Run]
) -> list[MadeAgain]:
    """Return whether each table and figure of a paper was made again, and whether it agrees.

    Parameters
    ----------
    paper : str
        The key of the paper.
    configs : sequence of str
        The configs of its tables and figures, in its order.
    verdicts : sequence of Verdict
        The verdicts on the paper's claims.
    runs : sequence of Run
        The kept runs; runs of other configs don't count.

    Returns
    -------
    list of MadeAgain
        One for each config, then one for each printed table that no config makes and that a claim
        is about.
    """
    tables = [
        _of_config(config, verdicts, [run for run in runs if run.name == config])
        for config in configs
    ]
    return tables + [
        made
        for table in _tables_without_config(paper, configs)
        if (made := _of_claims(table, verdicts)) is not None
    ]


def _of_config(config: str, verdicts: Sequence[Verdict], runs: Sequence[Run]) -> MadeAgain:
    title = str(shipped_config(config).get("title") or next((run.title for run in runs), config))
    keys = {cell.key for run in runs for cell in run.cells}
    parts = [
        (verdict, part)
        for verdict in _about(config, verdicts)
        for part in verdict.parts
        if any(cell.key in keys for cell in part.cells)
    ]
    made, less = _was_made(config, runs)
    if made == MADE:  # a check may find less, such as fewer values than in the paper's path
        cuts = dict.fromkeys(
            part.cut for _, part in parts if all(cell.key in keys for cell in part.cells)
        )
        less = "; ".join(filter(None, cuts))
        made = MADE_IN_PART if less else MADE
    claims = dict.fromkeys(verdict.claim.id for verdict, _ in parts)
    return MadeAgain(_PAPER.sub("", title), made, less, _agrees(parts), tuple(claims))


def _about(config: str, verdicts: Sequence[Verdict]) -> Sequence[Verdict]:
    """Return the verdicts that are judged from a config's records.

    If no claim names the config, because it shows another config's cells, return the verdicts on
    claims about its table, or else all verdicts.
    """
    table = config.partition("_")[2]
    judged = [verdict for verdict in verdicts if config in verdict.claim.configs]
    return judged or [verdict for verdict in verdicts if table in _places(verdict)] or verdicts


def _places(verdict: Verdict) -> list[str]:
    """Return the names of the tables and figures that a claim is about."""
    return re.split(r"[,;]\s*", verdict.claim.where)


def _was_made(config: str, runs: Sequence[Run]) -> tuple[str, str]:
    """Return whether runs make a table again, and what they lack of the paper's protocol.

    A run that lacks nothing counts first, then the run of the full protocol, then the one with more
    results; the profile ``quick`` only shows that everything runs.
    """
    results = {
        id(run): sum(cell.status == "ok" for cell in run.cells)
        for run in runs
        if run.profile != SMOKE_TEST_PROFILE
    }
    done = [run for run in runs if results.get(id(run))]
    if not done:
        return NOT_MADE, ""
    lacking = {id(run): _lacking(run) for run in done}
    best = min(
        done,
        key=lambda run: (
            bool(lacking[id(run)]),
            run.profile != FULL_PROFILE,
            -results[id(run)],
        ),
    )
    phrases = [lacking[id(best)]]
    known = {str(cell.dataset) for run in runs for cell in run.cells}
    missing = [name for name in _datasets(config) if name not in known]
    phrases += [f"without {', '.join(_first_names(missing))}"] if missing else []
    phrases = [phrase for phrase in phrases if phrase]
    return (MADE_IN_PART if phrases else MADE), "; ".join(phrases)


def _datasets(config: str) -> list[str]:
    """Return the data sets of a config's blocks."""
    blocks = shipped_config(config).get("blocks", [])
    return list(dict.fromkeys(name for block in blocks for name in dataset_names_of(block)))


def _lacking(run: Run) -> str:
    """Return the parts of the full protocol and of the paper's data that a run lacks."""
    done = [cell for cell in run.cells if cell.status == "ok"]
    phrases = list(fewer_settings(run, done))
    by_set = {name: [cell for cell in done if cell.dataset == name]
              for name in dict.fromkeys(cell.dataset for cell in done)}  # fmt: skip
    cut = [f"{name} {rows}" for name, cells in by_set.items() if (rows := cut_to(run, cells))]
    phrases += _first_names(cut)
    n_missing = sum(cell.status in NOT_RUN_STATUSES for cell in run.cells)
    phrases += [f"{n_missing} of {len(run.cells)} cells not run"] if n_missing else []
    statuses: dict[str, set[str]] = {}
    for cell in run.cells:
        statuses.setdefault(str(cell.dataset), set()).add(cell.status)
    without_data = [name for name, found in statuses.items() if found <= set(UNAVAILABLE_STATUSES)]
    phrases += [f"no data of {', '.join(_first_names(without_data))}"] if without_data else []
    return "; ".join(phrases)


def _first_names(names: Sequence[str]) -> list[str]:
    """Return the first names, and the number of the others."""
    rest = len(names) - _MAX_NAMED
    return [*names[:_MAX_NAMED], *([f"{rest} more"] if rest > 0 else [])]


def _agrees(parts: Sequence[tuple[Verdict, Part]]) -> str:
    """Return whether decided parts agree with the paper."""
    held = [verdict for verdict, part in parts if part.holds is True]
    failed = sum(part.holds is False for _, part in parts)
    if not held and not failed:
        return UNDECIDED if parts else NO_CLAIM
    if failed:
        agreement = DISAGREES if failed >= len(held) else IN_SOME_PARTS
    else:
        of_values = any(verdict.claim.quantifier == VALUE for verdict in held)
        agreement = IN_VALUE if of_values else IN_DIRECTION
    stand_ins = all(part.stand_in for _, part in parts if part.holds is not None)
    return agreement + (ON_OTHER_DATA if stand_ins else "")


def _tables_without_config(paper: str, configs: Sequence[str]) -> list[str]:
    """Return the printed tables that no config makes."""
    made = {
        table.get("published")
        for name in configs
        for table in shipped_config(name).get("tables", [])
    }
    made |= {name.removeprefix(f"{paper}_") for name in configs}
    return [name for name in dict.fromkeys(number.table for number in published.numbers(paper))
            if name not in made]  # fmt: skip


def _of_claims(table: str, verdicts: Sequence[Verdict]) -> MadeAgain | None:
    """Return the entry of a table made of other tables' records; None without a claim."""
    about = [verdict for verdict in verdicts if table in _places(verdict)]
    if not about:
        return None
    parts = [(verdict, part) for verdict in about for part in verdict.parts]
    made = MADE_IN_PART if any(verdict.scale.kind for verdict in about) else NOT_MADE
    if all(verdict.scale.kind == FULL for verdict in about):
        made = MADE
    less = "; ".join(dict.fromkeys(cut for verdict in about for cut in verdict.scale.cut))
    title = re.sub(r"^table(\d+)$", r"Table \1", table)
    return MadeAgain(
        title, made, less, _agrees(parts), tuple(verdict.claim.id for verdict in about)
    )
