"""Verdicts on claims, the ages of results, and the site that shows both.

:func:`verdicts` does what ``svmbench claims`` does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import svmbench
from svmbench.base.errors import ResultsError, UnknownNameError
from svmbench.base.paths import PACKAGE, shipped_configs

if TYPE_CHECKING:
    from svmbench.papers.judging.entries import Claim
    from svmbench.papers.judging.verdict import Verdict
    from svmbench.report.reading.records import Run
    from svmbench.schema.rechecks import Ages
    from svmbench.site.material import AgesLookup


def verdicts(
    folders: Sequence[Path | str] = (),
    *,
    papers: Sequence[str] = (),
    claims: Sequence[str] = (),
    ages: bool = True,
    trust: bool = False,
) -> list[Verdict]:
    """Judge claims of the papers from kept records alone.

    Parameters
    ----------
    folders : sequence of Path or str, optional
        Run folders, or folders that contain some; by default the folder of kept results.
    papers, claims : sequence of str, optional
        Judge the claims of these papers (``"smo"``), or these claims (``"smo-1"``); by default all.
    ages : bool, default True
        True to look up which results are fresh, rechecked, changed or older than the code.
    trust : bool, default False
        True to run the checks of papers that don't ship with this package.

    Returns
    -------
    list of Verdict
        In the order of the claims; ``papers.judging.export`` writes them as text.

    Raises
    ------
    svmbench.base.errors.ResultsError
        If there is no folder of results.
    svmbench.base.errors.UnknownNameError
        For a paper or a claim that isn't there.
    """
    to_judge = claims_named(papers, claims, trust=trust)
    paths = [Path(folder) for folder in folders] or [kept_results()]
    lookup = lookup_of_ages() if ages else None
    return judge_folders(to_judge, paths, lookup, trust=trust)


def claims_named(
    keys: Sequence[str] = (),
    names: Sequence[str] = (),
    *,
    file: Path | None = None,
    trust: bool = False,
) -> list[Claim]:
    """Return the claims of some papers, or of some names; by default all.

    Parameters
    ----------
    keys : sequence of str, optional
        Keys of papers.
    names : sequence of str, optional
        Names of claims.
    file : Path, optional
        Read claims and limits from this file instead of the papers' own.
    trust : bool, default False
        True to run the checks of papers that don't ship with this package.

    Raises
    ------
    svmbench.base.errors.UnknownNameError
        For a paper or a claim that isn't there.
    """
    from svmbench.base.paper_folders import papers
    from svmbench.papers import judging

    for key in keys:
        if key not in papers():
            raise UnknownNameError("paper", key, list(papers()))
    metrics: list[str] = []
    if file is not None:
        from svmbench.experiment.config.requested_metrics import reported_metrics

        metrics = reported_metrics()
    claims = judging.read_all_claims(file, metrics=metrics, trust=trust)
    for name in names:
        if name not in [claim.id for claim in claims]:
            raise UnknownNameError("claim", name, [claim.id for claim in claims])
    return [
        claim
        for claim in claims
        if (not keys or claim.paper in keys) and (not names or claim.id in names)
    ]


def kept_results() -> Path:
    """Return the folder of kept results: here, or in the checkout that this program runs from."""
    here = Path("results")
    folder = here if here.is_dir() else PACKAGE.parent / "results"
    if not folder.is_dir():
        raise ResultsError("there is no folder results here: name the folders to judge from")
    return folder


def judge_folders(
    claims: Sequence[Claim],
    folders: Sequence[Path],
    ages_of_run: AgesLookup | None,
    *,
    trust: bool,
    tell: Callable[[str], None] = lambda _: None,
) -> list[Verdict]:
    """Judge claims from folders for each machine, and join the verdicts of all machines.

    `tell` is called with the name of each claim before it is judged.
    """
    from svmbench.papers import judging
    from svmbench.report.reading.folders import CONFIRMED, ELSEWHERE, OURS, origin_of

    ages_of_source: judging.AgesOfSource | None = (
        None if ages_of_run is None else lambda source: ages_of_run(source.run.path, source.run)
    )

    def origin(verdict: Verdict) -> str:
        folders = [Path(run.folder) for run in verdict.runs]
        origins = {
            origin_of(path, None if ages_of_run is None else ages_of_run(path)) for path in folders
        }
        return next((name for name in (ELSEWHERE, CONFIRMED) if name in origins), OURS)

    by_machine: dict[Any, list[Verdict]] = {}
    for machine, evidence in judging.gather_by_machine(list(folders)).items():
        by_machine[machine] = []
        for claim in claims:
            tell(f"judging {claim.id}")
            by_machine[machine] += judging.judge([claim], evidence, ages_of_source, trust=trust)
    return judging.judge_together(by_machine, origin)


def lookup_of_ages() -> AgesLookup:
    """Return a function from a run folder to the ages of its results, with a cache."""
    known: dict[Path, Ages] = {}

    def ages_of_run(folder: Path, run: Run | None = None) -> Ages:
        path = folder.resolve()
        if path not in known:
            known[path] = ages_of(path, run)
        return known[path]

    return ages_of_run


def ages_of(folder: Path, run: Run | None = None) -> Ages:
    """Return which results of a run folder are fresh, rechecked, changed or older.

    A caller that has read the run of the folder passes it, so that it isn't read again.
    """
    from svmbench.experiment.plan.present_code import code_changes, has_present_code
    from svmbench.report.reading.records import read_run
    from svmbench.schema.rechecks import KeptResult, ages, read_rechecks

    reasons = code_changes(folder)
    cells = (run or read_run(folder)).cells
    # An unfinished cell has no result, even if some of its points are finished.
    without = {cell.key for cell in cells if cell.status != "ok"}
    results = {
        cell.key: KeptResult(
            cell.key, str(cell.solver), str(cell.dataset), is_fresh=reasons.get(cell.key) == ""
        )
        for cell in cells
        if cell.key not in without
    }
    return ages(results.values(), read_rechecks(folder, has_present_code))


def make_site(
    results: tuple[Path, ...],
    output: Path,
    *,
    file: Path | None = None,
    ages: bool = True,
    beside: Path | None = None,
    trust: bool = False,
    tell: Callable[[str], None] = lambda _: None,
) -> tuple[Path, str]:
    """Make a site of some results; return its first page, and the verdicts in a sentence.

    Parameters
    ----------
    results : tuple of Path
        Folders of results; if empty, the folder of kept results.
    output : Path
    file : Path, optional
        The claims; by default those that ship with the package.
    ages : bool, default=True
        Whether the site shows which results are fresh, rechecked, changed or older.
    beside : Path, optional
        A folder of kept records, for the claims that `results` don't decide.
    trust : bool, default=False
        Whether the checks of papers that don't ship with this package may run.
    tell : callable, optional
        Called with a description of each step before it begins.
    """
    from svmbench.base.paper_folders import papers
    from svmbench.baselines.catalogue import load_plugins
    from svmbench.papers import judging
    from svmbench.papers.judging.export import summary
    from svmbench.site import Material, PaperFacts, SolverFacts, build_site, check_place
    from svmbench.studies.solver_cards import solver_cards

    folders = results or (kept_results(),)
    check_place(output)
    load_plugins()
    cards = solver_cards()
    claims = claims_named(file=file, trust=trust)
    lookup = lookup_of_ages() if ages else None
    judged = judge_folders(claims, folders, lookup, trust=trust, tell=tell)
    if beside is not None:
        judged = judging.fill_in_from_kept(
            judged, judge_folders(claims, [beside], lookup, trust=trust)
        )
    site = build_site(
        Material(
            folders=tuple(folders),
            verdicts=tuple(with_printed_values(judged, trust=trust)),
            papers={
                key: PaperFacts(
                    paper.title, paper.citation, paper.configs, paper.claimed, paper.url
                )
                for key, paper in papers().items()
            },
            solvers={
                name: SolverFacts(facts, tuple(deviations)) for name, facts, deviations in cards
            },
            variants=_variants(),
            datasets=_dataset_facts(),
            repository=repository(),
            ages_of_run=lookup,
            version=svmbench.__version__,
        ),
        output,
        tell,
    )
    return site.index, summary(judged)


def with_printed_values(verdicts: Sequence[Verdict], *, trust: bool) -> list[Verdict]:
    """Return the verdicts, each beside the verdict of the same rules on the printed numbers."""
    from svmbench.papers.judging.printed_evidence import beside_printed

    claims = [verdict.claim for verdict in verdicts]
    return beside_printed(verdicts, printed_verdicts(claims, trust=trust))


def printed_verdicts(claims: Sequence[Claim], *, trust: bool) -> list[Verdict]:
    """Judge claims by the numbers that their papers print; leave out those without such numbers.

    A printed time is that of the paper, whatever it measured.
    """
    from dataclasses import replace

    from svmbench.base.paper_folders import papers
    from svmbench.papers import judging
    from svmbench.papers.judging.printed_evidence import printed_evidence
    from svmbench.papers.judging.verdict import JudgedRun

    printed = JudgedRun("the numbers that the paper prints, which have no uncertainty", "", "")
    return [
        replace(verdict, runs=(printed,))
        for key, paper in papers().items()
        if (of_paper := [claim for claim in claims if claim.paper == key])
        for verdict in judging.judge(of_paper, printed_evidence(paper), trust=trust)
        if any(part.cells for part in verdict.parts)
    ]


def _variants() -> dict[tuple[str, str], str]:
    """Return the solver's name for each label in a config that ships, by config and label."""
    from svmbench.base.paper_folders import shipped_config

    names: dict[tuple[str, str], str] = {}

    def collect(part: Any, config: str) -> None:
        if isinstance(part, dict):
            if isinstance(part.get("name"), str) and isinstance(part.get("label"), str):
                names[config, part["label"]] = part["name"]
            part = list(part.values())
        if isinstance(part, list):
            for item in part:
                collect(item, config)

    for path in shipped_configs():
        collect(shipped_config(path.stem), path.stem)
    return names


def _dataset_facts() -> dict[str, dict[str, Any]]:
    """Return the facts about each data set of the registry, by name."""
    from svmbench import data

    left_out = ("dataset", "where")
    return {
        row["dataset"]: {key: value for key, value in row.items() if key not in left_out}
        for row in data.list_datasets()
    }


def repository() -> str:
    """Return the address of the repository from the project's metadata; "" if it has none."""
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        urls = metadata("svmbench").get_all("Project-URL") or []
    except PackageNotFoundError:
        return ""
    by_label = dict(str(url).split(", ", 1) for url in urls if ", " in str(url))
    return next((by_label[key] for key in ("Repository", "Source") if key in by_label), "")


def require_results(folders: Sequence[Path]) -> None:
    """Raise a ResultsError if no folder has a run or tables: probably another one was meant."""
    from svmbench.report.reading.folders import folders_with_tables, run_folders

    if not any(run_folders(folder) or folders_with_tables(folder) for folder in folders):
        verb = "has" if len(folders) == 1 else "have"
        raise ResultsError(
            f"{', '.join(map(str, folders))} {verb} no results: name run folders, or a folder that "
            "has some; 'svmbench run CONFIG' makes them"
        )


def refuse_claims(folders: Sequence[Path]) -> None:
    """Raise an error if a missing folder has the name of a claim or a paper: an option was meant.

    Parameters
    ----------
    folders : sequence of Path

    Raises
    ------
    svmbench.base.errors.ResultsError
        For such a folder.
    """
    from svmbench.base.paper_folders import papers

    for name in (str(folder) for folder in folders if not folder.exists()):
        key, _, number = name.partition("-")
        if key in papers() and (number.isdecimal() or not number):
            option = "--claim" if number else "--paper"
            raise ResultsError(
                f"{name} is no folder of results; 'svmbench claims {option} {name}' judges it"
            )
