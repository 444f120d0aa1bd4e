"""Verdicts on the papers' claims, from kept records alone.

``entries.py`` reads the ``claims.toml`` of a paper: its claims, their rules and limits.
``checks.py`` loads the paper's own ``checks.py``, which has a check for each claim. A check judges
the records that ``evidence.py`` finds below the folders of results, and returns *parts*. A part is
one statement of the claim about one data set or figure, with its numbers and its answer;
``measures.py`` gives no answer if the uncertainty is too large. ``verdict.py`` makes an
outcome of the parts, and says at what scale it is. ``export.py`` shows verdicts in a terminal, as
JSON, Markdown or LaTeX.

``parts.py`` has parts that several papers share; ``cuts.py`` says what runs lack of the paper's
protocol; ``printed_evidence.py`` judges the printed numbers; ``outcomes.py``, ``made_again.py`` and
``picture.py`` show results.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from svmbench.base.errors import ConfigError, SvmbenchError, suggestion
from svmbench.base.escape import line
from svmbench.base.paper_folders import FULL_PROFILE, Paper, papers
from svmbench.papers.judging.checks import CHECKS, load_checks
from svmbench.papers.judging.cuts import (
    is_repeatable,
    mark_smoke_tests,
    runs_by_key,
    to_decide,
    with_cut,
)
from svmbench.papers.judging.entries import Claim, limit_problems, read_claims
from svmbench.papers.judging.evidence import Evidence, Source, gather_by_machine, gather_evidence
from svmbench.papers.judging.measures import Answer
from svmbench.papers.judging.verdict import (
    NOT_TESTED,
    JudgedRun,
    MachineVerdict,
    Part,
    Verdict,
    decide,
    scale_of,
)
from svmbench.report.numbers.estimates import (
    N_REPEATED_TIMES,
    SHORTEST_SINGLE_S,
    SINGLE_TIME_MARGIN,
)
from svmbench.report.reading.folders import OURS
from svmbench.report.reading.records import CellResult
from svmbench.schema.rechecks import CHANGED, OLDER, RECHECKED, Ages, worst

__all__ = [
    "Claim",
    "Evidence",
    "Part",
    "Verdict",
    "fill_in_from_kept",
    "gather_by_machine",
    "gather_evidence",
    "judge",
    "judge_together",
    "read_all_claims",
]

#: A function from a run to the ages of its results.
AgesOfSource = Callable[[Source], Ages]


def read_all_claims(
    path: Path | None = None, *, metrics: Collection[str] = (), trust: bool = False
) -> list[Claim]:
    """Read the claims of all papers, or those of a file.

    The papers' own claims are read as data. The claims of a file may name only limits and metrics
    that the checks read.

    Parameters
    ----------
    path : Path, optional
    metrics : collection of str, default=()
        Further metrics that a file's claims may read, beside scores and the metrics of the papers'
        own claims.
    trust : bool, default=False
        Whether a file may name claims of papers that don't ship with this package: their checks are
        imported.

    Raises
    ------
    svmbench.base.errors.ConfigError
        For a file with claims, limits or metrics that no check knows.
    """
    known = papers()
    claims = [
        claim
        for paper in known.values()
        if (file := paper.folder / "claims.toml").is_file()
        for claim in read_claims(file, paper=paper.key)
    ]
    if path is None:
        return claims
    from svmbench.schema.scores import SCORES

    read_by_own = dict.fromkeys(metric for claim in claims for metric in claim.metrics)
    of_scores = (score.metric for score in SCORES.values())
    may_read = list(dict.fromkeys([*read_by_own, *of_scores, *metrics]))
    for paper in known.values():
        load_checks(paper, trust=trust)
    limits = {name: declared.limits for name, declared in CHECKS.items()}
    return read_claims(path, metrics=may_read, limits=limits, like=claims)


def judge(
    claims: Sequence[Claim],
    evidence: Evidence,
    ages_of_source: AgesOfSource | None = None,
    *,
    trust: bool = False,
) -> list[Verdict]:
    """Return a verdict on every claim.

    Parameters
    ----------
    claims : sequence of Claim
    evidence : Evidence
    ages_of_source : callable, optional
        A function from a run to the ages of its results: fresh, rechecked, changed or older.
        Default: ages are not looked up.
    trust : bool, default=False
        Whether the checks of papers run that don't ship with this package. Without it their claims
        are not tested, and the verdicts say so.

    Raises
    ------
    svmbench.base.errors.SvmbenchError
        If there is no check of a claim, it reads other limits, or other people's check fails.
    """
    ages_of: dict[int, Ages] = {}  # by the id of the run
    verdicts = []
    for claim in claims:
        verdict = _judged(claim, evidence, trust=trust)
        if ages_of_source is not None and verdict.cells:
            used = _used(claim, evidence, verdict.cells)
            for source in used:
                if id(source) not in ages_of:
                    ages_of[id(source)] = ages_of_source(source)
            verdict = _with_age(verdict, [ages_of[id(source)] for source in used])
        verdicts.append(verdict)
    return verdicts


def fill_in_from_kept(ours: Sequence[Verdict], of_kept_records: Sequence[Verdict]) -> list[Verdict]:
    """Replace the verdicts that don't decide a claim by verdicts from kept records.

    Parameters
    ----------
    ours, of_kept_records : sequence of Verdict
        On the same claims in the same order, from some runs and from kept records.
    """
    return [
        verdict if verdict.is_decided or not kept.is_decided else _from_kept(verdict, kept)
        for verdict, kept in zip(ours, of_kept_records, strict=True)
    ]


def judge_together(
    by_machine: Mapping[str, Sequence[Verdict]], origin: Callable[[Verdict], str]
) -> list[Verdict]:
    """Return one verdict on each claim, with the outcome on every machine.

    Parameters
    ----------
    by_machine : dict of str to sequence of Verdict
        By machine, the verdicts on the same claims in the same order. Machines without a record of
        a claim don't count; the verdict is that of the first machine that decides it.
    origin : callable
        Returns whether the records of a verdict are ours, confirmed here, or from elsewhere.
    """
    judged = []
    for verdicts in zip(*by_machine.values(), strict=True):
        on_machine = dict(zip(by_machine, verdicts, strict=True))
        counted = {name: verdict for name, verdict in on_machine.items() if verdict.cells}
        # Without a record anywhere, the first machine stands for all.
        counted = counted or dict(list(on_machine.items())[:1])
        deciding = [verdict for verdict in counted.values() if verdict.is_decided]
        machines = tuple(
            MachineVerdict(name, origin(verdict), verdict.outcome, verdict.reason, verdict.age)
            for name, verdict in counted.items()
        )
        chosen = (deciding or list(counted.values()))[0]
        is_plain = len(machines) == 1 and machines[0].origin == OURS
        judged.append(chosen if is_plain else replace(chosen, machines=machines))
    return judged


def _from_kept(ours: Verdict, of_kept_records: Verdict) -> Verdict:
    return replace(
        of_kept_records,
        reason=f"from kept records: {of_kept_records.reason}",
        notes=(f"These runs alone: {ours.reason}.", *of_kept_records.notes),
        from_kept=True,
    )


def _judged(claim: Claim, evidence: Evidence, *, trust: bool) -> Verdict:
    paper = papers()[claim.paper]
    if not load_checks(paper, trust=trust):
        why = f"its check is other people's code, which --trust runs: {paper.folder}/checks.py"
        return Verdict(claim, NOT_TESTED, why, trusted=False)
    source_of = runs_by_key(claim, paper, evidence)
    names_datasets = bool(CHECKS[claim.id].datasets)
    parts = [
        part if part.smoke_test else with_cut(part, source_of, names_datasets=names_datasets)
        for part in mark_smoke_tests(_parts(claim, evidence, paper), source_of)
    ]
    sources = _used(claim, evidence, [cell for part in parts for cell in part.cells])
    sources = sources or [
        source for config in claim.configs for source in evidence.runs_that_count(config)
    ]
    # Two configs may be views of the same cells: a run of one of them is enough.
    missing = [config for config in claim.configs if not evidence.runs_that_count(config)]
    if sources and not any(source.run.name in claim.configs for source in sources):
        missing = []
    outcome, reason = decide(
        claim.quantifier, parts, [*evidence.why_none(missing), *_left_out(claim, evidence, parts)]
    )
    others = [name for name, facts in paper.datasets.items() if "stands_in_for" in facts]
    stand_ins = {*claim.stand_ins, *others, *(f"{name}+test" for name in others)}
    scale = scale_of(outcome, parts, CHECKS[claim.id].datasets, stand_ins)
    verdict = _with_profiles(Verdict(claim, outcome, reason, tuple(parts), scale), sources)
    text, n_missing = (
        ("", None) if verdict.is_decided else to_decide(parts, sources, evidence.forecaster)
    )
    return replace(
        verdict,
        notes=_notes(verdict, evidence, sources),
        runs=tuple(
            JudgedRun(source.run.path.as_posix(), source.profile, source.environments)
            for source in sources
        ),
        commands=tuple(_commands(claim, sources)),
        cpus=tuple(dict.fromkeys(cpu for source in sources if (cpu := source.cpu))),
        to_decide=text,
        missing_cells=n_missing,
    )


def _notes(verdict: Verdict, evidence: Evidence, sources: Sequence[Source]) -> tuple[str, ...]:
    """Return what a verdict leaves out or rests on, a sentence each: its `notes`."""
    claim = verdict.claim
    notes = [
        note for source in sources for note in (*source.notes, *_note_on_missing_results(source))
    ]
    notes += [
        f"The profile {source.run.profile} of {source.run.name} has changed since this run: the "
        "command makes other records now."
        for source in sources
        if not (is_repeatable(source.run) or source.is_printed)
    ]
    notes += [
        f"{config}: {note}" for config in claim.configs for note in evidence.notes.get(config, ())
    ]
    if any(part.holds is not None for part in verdict.parts):
        notes.append(claim.rule_date_note(_first_record(sources)))
    notes.append(_of_single_times(verdict.parts))
    busy = sum(cell.contended or cell.disturbed for cell in verdict.cells)
    if busy and any(metric.endswith("_s") for metric in claim.metrics):
        n_cells = len(verdict.cells)
        notes.append(f"{busy} of {n_cells} results were timed while other programs or cells ran.")
    return tuple(note for note in dict.fromkeys(notes) if note)


def _of_single_times(parts: Sequence[Part]) -> str:
    """Return the sentence on parts that rest on times measured once; "" if there are none."""
    n_single = sum(part.single_times for part in parts)
    if not n_single:
        return ""
    return (
        f"Single times: {n_single} of {len(parts)} parts rest on times that were measured once. "
        f"Such a time has a margin of {100 * SINGLE_TIME_MARGIN:g} %, from {N_REPEATED_TIMES:,} "
        f"kept times with repeats; below {1e3 * SHORTEST_SINGLE_S:g} ms it decides nothing."
    )


def _first_record(sources: Sequence[Source]) -> str:
    """Return the date (ISO) on which the first of some runs began; "" where none says it."""
    starts = [
        str(load["at"])[:10]
        for source in sources
        for content in source.run.environments.values()
        if isinstance(content.get("load"), list)
        for load in content["load"]
        if isinstance(load, dict) and "at" in load
    ]
    return min(starts, default="")


def _parts(claim: Claim, evidence: Evidence, paper: Paper) -> list[Part]:
    """Return the parts that a claim's check finds in the records."""
    entry = f"{paper.folder.name}/claims.toml: {claim.id}"
    if claim.id not in CHECKS:
        known = [name for name in CHECKS if name.startswith(f"{paper.key}-")]
        raise ConfigError(f"{entry}: no check is known by this name{suggestion(claim.id, known)}")
    declared = CHECKS[claim.id]
    problems = limit_problems(claim.limits, declared.limits)
    if problems:
        raise ConfigError([f"{entry}: {problem}" for problem in problems])
    try:
        parts = list(declared.check(claim, evidence))
        for part in parts:
            if not isinstance(part.answer, Answer | None):
                raise ConfigError(
                    f"{entry}: its check gives {line(part.what, 60)!r} the answer"
                    f" {line(repr(part.answer), 60)}: it must be an Answer of"
                    " svmbench.papers.judging.measures, or None"
                )
        return parts
    except SvmbenchError:
        raise
    except Exception as error:
        if paper.ships:
            raise
        reason = line(f"{type(error).__name__}: {error}", 300)
        raise SvmbenchError(
            f"{paper.folder}/checks.py: the check of {claim.id}: {reason}"
        ) from error


def _left_out(claim: Claim, evidence: Evidence, parts: Sequence[Part]) -> list[str]:
    """Return which of a claim's data sets no kept run includes, in a sentence."""
    judged = {cell.dataset for part in parts for cell in part.cells}
    planned = {
        cell.dataset
        for config in claim.configs
        for source in evidence.runs_that_count(config)
        for cell in source.cells
    }
    lacking = [
        name.partition("|")[0]
        for name in CHECKS[claim.id].datasets
        if not set(name.split("|")) & (judged | planned)
    ]
    return [f"no kept run has {', '.join(lacking)}"] if lacking and judged | planned else []


def _commands(claim: Claim, sources: Sequence[Source]) -> list[str]:
    """Return the commands that made the records of a verdict."""
    if not sources:
        return claim.commands()
    made = [f"svmbench run {source.run.name} --profile {source.profile}" for source in sources]
    return list(dict.fromkeys(made)) + ([claim.command] if claim.command else [])


def _with_profiles(verdict: Verdict, sources: Sequence[Source]) -> Verdict:
    """Return a verdict that names the profiles of its runs, where they aren't the full protocol."""
    cuts: dict[str, list[str]] = {}
    for source in sources:
        if source.profile != FULL_PROFILE:
            note = f": {source.run.profile_note}" if source.run.profile_note else ""
            cuts.setdefault(f"profile {source.profile}{note}", []).append(source.run.name)
    if not cuts:
        return verdict
    names_runs = len(cuts) > 1
    profiles = "; ".join(
        f"{', '.join(names)}: {note}" if names_runs else note for note, names in cuts.items()
    )
    return replace(verdict, reason=f"{verdict.reason} ({profiles})")


def _used(claim: Claim, evidence: Evidence, cells: Iterable[CellResult]) -> list[Source]:
    """Return the runs of a claim's paper that have some of the cells."""
    keys = {cell.key for cell in cells}
    used = [
        source
        for sources in evidence.sources.values()
        for source in sources
        if source.run.paper == claim.paper and any(cell.key in keys for cell in source.cells)
    ]
    # Two figures may be views of the same cells: the one that the claim names counts.
    of_claim = [source for source in used if source.run.name in claim.configs]
    return of_claim or used


def _note_on_missing_results(source: Source) -> list[str]:
    """Name a run with cells that have no result, also if these failed or reached a time limit."""
    n_missing = sum(
        cell.status not in {"ok", "unavailable", "skipped"} for cell in source.run.cells
    )
    if not n_missing:
        return []
    return [
        f"{source.run.path.name} is unfinished: no result for {n_missing} of "
        f"{len(source.run.cells)} cells."
    ]


def _with_age(verdict: Verdict, known: Sequence[Ages]) -> Verdict:
    """Return a verdict that says whether its records are fresh, rechecked, changed or older."""
    words = {
        cell.key: next((ages.words[cell.key] for ages in known if cell.key in ages.words), OLDER)
        for cell in verdict.cells
    }
    word = worst(words.values())
    sentences = []
    if word in {OLDER, CHANGED}:
        count = sum(age == word for age in words.values())
        sentences.append(f"{count} of {len(words)} results")
    if word == CHANGED:
        sentences += [text for ages in known for key, text in ages.changed.items() if key in words]
    if word == RECHECKED:
        sentences = [
            f"{ages.n_agreed} of {len(ages.words)} cells of a run were repeated, and agreed"
            for ages in known
            if RECHECKED in ages.words.values()
        ]
    return replace(verdict, age=word, age_details=tuple(sentences))
