"""Check the folder of a new paper: `svmbench validate --paper FOLDER`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from svmbench.base import paths
from svmbench.base.errors import SvmbenchError
from svmbench.base.paper_folders import FULL_PROFILE, Paper, papers
from svmbench.papers.judging.checks import CHECKS, load_checks
from svmbench.papers.judging.entries import Claim, limit_problems, read_claims


def paper_problems(folder: Path | str, *, trust: bool = False) -> list[str]:
    """Return a sentence for each missing part of a paper's folder, and for each contradiction.

    The files of the folder, its data sets and its configs are checked. For a paper that ships with
    this package, the tests that name the paper are checked, too. The list is empty if nothing is
    missing.

    Parameters
    ----------
    folder : Path or str
    trust : bool, default False
        True to import ``checks.py`` of a paper that doesn't ship with this package; otherwise it is
        only looked for.
    """
    path = Path(folder).resolve()
    if not (path / "paper.toml").is_file():
        return [f"{folder}: paper.toml is missing, with title and authors"]
    try:
        paper = _read(path)
        return [f"{folder}: {problem}" for problem in _problems(paper, trust=trust)]
    except SvmbenchError as error:
        return str(error).splitlines()


def _read(path: Path) -> Paper:
    """Return the paper of a folder.

    A paper that isn't registered yet is registered for the rest of the process.
    """
    known = [known_paper.folder.resolve() for known_paper in papers().values()]
    if path not in known:
        earlier = os.environ.get(paths.FURTHER_PAPERS, "")
        os.environ[paths.FURTHER_PAPERS] = os.pathsep.join(filter(None, (earlier, str(path))))
    return next(
        known_paper for known_paper in papers().values() if known_paper.folder.resolve() == path
    )


def _problems(paper: Paper, *, trust: bool) -> Iterator[str]:
    from svmbench.report.reading.published import numbers

    numbers(paper.key)  # a file that can't be read raises an error; a paper may print no numbers
    yield from _dataset_problems(paper)
    yield from _config_problems(paper, trust=trust)
    if not (paper.folder / "claims.toml").is_file():
        yield "claims.toml is missing, with what the paper claims"
        return
    claims = read_claims(paper.folder / "claims.toml", paper=paper.key)
    yield from _check_problems(paper, claims, trust=trust)
    if paper.ships:
        yield from _repository_problems(paper, claims)


def _dataset_problems(paper: Paper) -> Iterator[str]:
    from svmbench import data

    if not paper.datasets:
        yield "paper.toml: [datasets] is missing, with the data sets of the paper"
    data.names_of_paper(paper.key)  # an unregistered name is an error of the registry


def _config_problems(paper: Paper, *, trust: bool) -> Iterator[str]:
    from svmbench.experiment.config.find import find_config
    from svmbench.experiment.config.loader import check_config

    if not paper.configs:
        yield "paper.toml: 'configs' is missing, with the configs of the paper's tables and figures"
    for name in paper.configs:
        try:
            # The config of a paper that doesn't ship may lie in the present folder.
            here = Path(f"{name}.yaml")
            config = check_config(here if here.is_file() else find_config(name), trust=trust)
        except SvmbenchError as error:
            yield f"config {name}: {str(error).splitlines()[0]}"
            continue
        if config.paper != paper.key:
            yield f"config {name}: it lacks the line 'paper: {paper.key}'"
        if FULL_PROFILE not in config.profiles:
            yield f"config {name}: it has no profile {FULL_PROFILE}, the paper's full protocol"


def _check_problems(paper: Paper, claims: list[Claim], *, trust: bool) -> Iterator[str]:
    if not (paper.folder / "checks.py").is_file():
        yield "checks.py is missing, with a check for each claim"
        return
    if not load_checks(paper, trust=trust):
        return
    for claim in claims:
        declared = CHECKS.get(claim.id)
        if declared is None:
            yield f'checks.py: {claim.id} has no check: @check("{claim.id}", …)'
        else:
            problems = limit_problems(claim.limits, declared.limits)
            yield from (f"claims.toml: {claim.id}: {problem}" for problem in problems)
        if not (claim.configs or claim.command):
            yield f"claims.toml: {claim.id} names no config, and no command that makes its records"


def _repository_problems(paper: Paper, claims: list[Claim]) -> Iterator[str]:
    """Yield the entries about a paper that other files of the checkout lack."""
    tests = paths.PACKAGE.parent / "tests" / "papers"
    if not tests.is_dir():
        return
    orders = {other.order for other in papers().values() if other.ships and other.key != paper.key}
    if paper.order in orders or paper.order > len(orders) + 1:
        free = next(n for n in range(1, len(orders) + 2) if n not in orders)
        yield f"paper.toml: its order is taken or leaves a gap; write order = {free}"
    lines = (tests / "rules.csv").read_text(encoding="utf-8").splitlines()
    for claim in claims:
        line = f"{claim.id},{claim.fixed},{claim.rule_hash}"
        if line not in lines:
            yield f"tests/papers/rules.csv: append {line}"
    scenes = (tests / "claimed_runs.py").read_text(encoding="utf-8")
    for claim in claims:
        if claim.configs and f'"{claim.id}"' not in scenes:
            yield f"tests/papers/claimed_runs.py: {claim.id} has no scene (records that decide it)"
    results = paths.PACKAGE.parent / "results" / paper.key
    if results.is_dir():
        if not (results / "README.md").is_file():
            yield f"results/{paper.key}/README.md is missing beside the kept results"
        if not (paper.folder / "outcome.toml").is_file():
            yield "outcome.toml is missing: kept results need a sentence that sums up the verdicts"
