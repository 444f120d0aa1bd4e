"""Run many configs in one call: which ones, their expected times, and the run itself."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from svmbench.base.errors import ConfigError, ResultsError, SvmbenchError
from svmbench.experiment.run.batch import ConfigOutcome, Hooks, Job
from svmbench.experiment.run.session import Request
from svmbench.studies.batches import run_batch


def requests_of(
    configs: Sequence[str],
    template: Request,
    *,
    papers: Sequence[str] = (),
    auto_jobs: bool = False,
) -> tuple[list[Request], list[str]]:
    """Return a request for each config, and the shipped configs that lack its profile.

    Parameters
    ----------
    configs : sequence of str
        Names or files; by default all that ship.
    template : Request
        The options of all requests; `output` is the parent of the run folders ``<name>-<profile>``.
    papers : sequence of str, optional
        Only the configs of these papers; by default of all.
    auto_jobs : bool, default False
        Run one cell at a time for configs with races, and as many as there are cores for others.

    Raises
    ------
    svmbench.base.errors.ConfigError
        For an unknown config, or if no config of the papers has this profile.
    """
    from svmbench.experiment.config.loader import find_config, load_config, shipped_configs

    requests, without = [], []
    profile, parent = template.profile, template.output or Path("results")
    for name in configs or tuple(path.stem for path in shipped_configs()):
        path = find_config(name)
        if papers and load_config(path).paper not in papers:
            continue
        if not configs and profile not in load_config(path).profiles:
            without.append(path.stem)
            continue
        request = replace(template, config=name, output=parent / f"{path.stem}-{profile}")
        requests.append(replace(request, jobs=_automatic_jobs(path)) if auto_jobs else request)
    if papers and not requests:
        raise ConfigError(f"no config with a profile {profile} is of {', '.join(papers)}")
    return requests, without


def reproduce(
    requests: Sequence[Request],
    *,
    minutes: float | None = None,
    kept: Path | None = None,
    hooks: Hooks | None = None,
) -> list[ConfigOutcome]:
    """Run configs one after the other, and make the tables and plots of each.

    If a call was interrupted, the same call continues it.

    Parameters
    ----------
    requests : sequence of Request
        What :func:`requests_of` returned, or ``Request(config="quickstart")``.
    minutes : float, optional
        Start no new cell after so many minutes, and stop the running ones; unfinished configs
        share the minutes equally.
    kept : Path, optional
        Folder of kept results, whose times tell how long the configs take.
    hooks : Hooks, optional
        Functions that show the progress; by default none.

    Returns
    -------
    list of ConfigOutcome
        The folder of each run, the states of its cells, and why some failed.

    Raises
    ------
    svmbench.studies.batches.BatchInterruptedError
        If Ctrl-C ended it.
    """
    return run_batch(
        [Job(request, _expected(request, kept)) for request in requests], minutes, hooks
    )


def _automatic_jobs(path: Path) -> int:
    """Return the number of cells to run at a time: 1 with races, else by the number of cores."""
    import joblib

    from svmbench.experiment.config.loader import load_config
    from svmbench.experiment.protocols import protocols

    try:
        config = load_config(path)
    except ConfigError:
        return 1  # the batch reports the mistake
    if any(protocols()[block.protocol].is_race for block in config.blocks):
        return 1
    return max(1, joblib.cpu_count() // config.threads)


def _expected(request: Request, root: Path | None) -> float:
    """Return the seconds that a config is expected to take; 0 if it can't be planned."""
    from svmbench.experiment.run.forecast import expected_seconds_of
    from svmbench.experiment.run.session import plan_run

    try:
        run_plan = plan_run(request, prepare=False)
    except SvmbenchError:
        return 0.0
    older = _kept_cells(root, run_plan.plan.name, request.profile) if root else ()
    return expected_seconds_of(
        run_plan.cells,
        run_plan.path,
        jobs=request.jobs,
        retry=request.retry,
        older_records=older,
    )


def _kept_cells(root: Path, config: str, profile: str) -> Iterator[Any]:
    """Yield the kept records of a config's cells at one profile."""
    from svmbench.report.reading.records import result_lines

    for folder in kept_by_config(root).get((config, profile), []):
        with suppress(ResultsError):  # the estimate leaves damaged runs out
            yield from (line for line in result_lines(folder) if line["kind"] == "cell")


@functools.cache
def kept_by_config(root: Path) -> dict[tuple[str, str], list[Path]]:
    """Return our kept run folders by config and profile."""
    from svmbench.base.files import read_json
    from svmbench.report.reading.folders import our_runs

    folders: dict[tuple[str, str], list[Path]] = {}
    for folder in our_runs([root]):
        try:
            plan = read_json(folder / "plan.json")
            config_and_profile = str(plan["config"]["name"]), str(plan["profile"])
        except (OSError, RecursionError, ValueError, KeyError, TypeError):
            continue  # the estimate leaves damaged runs out
        folders.setdefault(config_and_profile, []).append(folder)
    return folders
