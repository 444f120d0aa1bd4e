"""Find kept results that changed or are older than the code, and measure them again.

``refresh(old_runs(["results/smo"]))`` does what ``svmbench refresh results/smo`` does.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from svmbench.experiment.run.session import ignore_text
from svmbench.studies.judging import ages_of

if TYPE_CHECKING:
    from svmbench.experiment.run.batch import ConfigOutcome, Hooks
    from svmbench.experiment.settings.cells import Cell


@dataclass(frozen=True)
class OldRun:
    """A run with results that changed or are older than the code.

    Attributes
    ----------
    folder, config, profile : Path, str, str
        The kept folder, and the config and the profile that made it.
    keys : frozenset of str
        The keys of the changed or older results.
    solvers_by_identity : mapping of str to list of frozenset of str
        For each cell's identity without solvers: the solver sets with a result, of any age.
    n_results : int
    is_race : bool
        True if some of these results are of races.
    decides : bool
        True if a claim names the config.
    seconds : float
        The recorded seconds of these results.
    age : str
        The age of the run's results, with numbers.
    is_changed : bool
        True if a recheck found a cell that disagrees.
    """

    folder: Path
    config: str
    profile: str
    keys: frozenset[str]
    solvers_by_identity: Mapping[str, list[frozenset[str]]]
    n_results: int
    is_race: bool
    decides: bool
    seconds: float
    age: str
    is_changed: bool

    def covers(self, cell: Cell) -> bool:
        """Return True if a cell of today's plan has a result in this run."""
        return has_result(cell, self.solvers_by_identity)

    def sentence(self) -> str:
        """Return a sentence that counts the results to measure."""
        from svmbench.schema.record import duration_text

        kind = "races, " if self.is_race else ""
        return (
            f"{self.folder}: {self.age}; {len(self.keys)} of {self.n_results} results to measure "
            f"({kind}profile {self.profile}, they took {duration_text(self.seconds)})"
        )


def old_runs(folders: Sequence[Path | str]) -> list[OldRun]:
    """Return our runs to measure again, in order.

    Changed runs come first, then races, then runs that decide a claim, then short runs.

    Parameters
    ----------
    folders : sequence of Path or str
        Run folders, or folders with run folders. Runs that were added from packs are left out.
    """
    from svmbench.report.reading.folders import our_runs

    runs = our_runs([Path(folder) for folder in folders])
    deciding = _deciding_configs()
    old = [old_run for folder in runs if (old_run := _old_run(folder, deciding)) is not None]
    return sorted(
        old,
        key=lambda old_run: (
            not old_run.is_changed,
            not old_run.is_race,
            not old_run.decides,
            old_run.seconds,
        ),
    )


def _deciding_configs() -> frozenset[str]:
    """Return the configs whose records decide a claim."""
    from svmbench.papers import judging

    return frozenset(name for claim in judging.read_all_claims() for name in claim.configs)


def _old_run(folder: Path, deciding: frozenset[str]) -> OldRun | None:
    from svmbench.report.reading.records import read_run, result_lines
    from svmbench.schema.rechecks import CHANGED, OLDER

    run = read_run(folder)
    done = {
        line["key"]: line
        for line in result_lines(folder)
        if line["kind"] == "cell" and line["status"] == "ok"
    }
    ages = ages_of(folder, run)
    keys = {key for key, word in ages.words.items() if word in {CHANGED, OLDER}}
    if not keys:
        return None
    walls = [done[key].get("wall_s") for key in keys]
    return OldRun(
        folder=folder,
        config=run.name,
        profile=run.profile,
        keys=frozenset(keys),
        solvers_by_identity=_solvers_by_identity(done.values()),
        n_results=len(done),
        is_race=any(cell.is_race for cell in run.cells if cell.key in keys),
        decides=run.name in deciding,
        seconds=sum(float(wall) for wall in walls if isinstance(wall, int | float)),
        age=ages.sentence(),
        is_changed=ages.word == CHANGED,
    )


def _solvers_by_identity(lines: Iterable[Mapping[str, Any]]) -> dict[str, list[frozenset[str]]]:
    """Return the solvers of each recorded cell, by the other settings that identify it."""
    from svmbench.experiment.plan.present_code import race_identity_of

    solvers_by_identity: dict[str, list[frozenset[str]]] = {}
    for identity, solvers in map(race_identity_of, lines):
        solvers_by_identity.setdefault(identity, []).append(solvers)
    return solvers_by_identity


def results_in(folder: Path) -> list[Any]:
    """Return the records of a folder's results, without failures."""
    from svmbench.report.reading.records import result_lines

    lines = (line for line in result_lines(folder) if line["kind"] == "cell")
    return [line for line in lines if line["status"] == "ok"]


def solvers_in_results(folder: Path) -> dict[str, list[frozenset[str]]]:
    """Return the solvers of each cell that has a result in a folder, by its other settings."""
    return _solvers_by_identity(results_in(folder))


def has_result(cell: Cell, solvers_by_identity: Mapping[str, list[frozenset[str]]]) -> bool:
    """Return True if a cell of today's plan is among the results of `solvers_in_results`.

    A race may have more solvers than its result if optional solvers were not installed then.
    """
    from svmbench.experiment.plan.present_code import race_identity_of

    identity, solvers = race_identity_of(cell.identity)
    return any(recorded <= solvers for recorded in solvers_by_identity.get(identity, ()))


def n_lost(solvers_by_identity: Mapping[str, list[frozenset[str]]], path: Path) -> int:
    """Return how many of these results are missing in a new run folder."""
    new_solvers = solvers_in_results(path)
    return sum(
        not any(old_solvers <= solvers for solvers in new_solvers.get(identity, ()))
        for identity, results in solvers_by_identity.items()
        for old_solvers in results
    )


def refresh(
    runs: Sequence[OldRun],
    *,
    output: Path | str = "results",
    minutes: float | None = None,
    keep: bool = False,
    mirror: str | None = None,
    hooks: Hooks | None = None,
    print_line: Callable[[str], None] = ignore_text,
) -> list[ConfigOutcome]:
    """Run the cells of kept runs again whose results changed or are older than the code.

    Fresh and rechecked results are copied if the cell is the same. If a call was interrupted, the
    same call continues it.

    Parameters
    ----------
    runs : sequence of OldRun
        What :func:`old_runs` returned.
    output : Path or str, default "results"
        Parent of the run folders ``<name>-<profile>``.
    minutes : float, optional
        Start no new cell after so many minutes, and stop the running ones; unfinished configs
        share the minutes equally.
    keep : bool, default False
        Replace a kept run with the new one once it is complete.
    mirror : str, optional
        As for :func:`svmbench.data.ensure`.
    hooks : Hooks, optional
        Functions that show the progress; by default none.
    print_line : callable, optional
        Called with a sentence on the outcome of each run.

    Returns
    -------
    list of ConfigOutcome
        One for each run, in the same order.

    Raises
    ------
    svmbench.studies.batches.BatchInterruptedError
        If Ctrl-C ended it.
    """
    from svmbench.experiment.run.batch import Job
    from svmbench.experiment.run.session import Request
    from svmbench.report.output import kept
    from svmbench.studies.batches import run_batch

    with tempfile.TemporaryDirectory(prefix="svmbench-refresh-") as scratch:
        jobs = []
        for number, run in enumerate(runs):
            fresh = kept.decompress(run.folder, Path(scratch) / str(number), without=run.keys)
            request = Request(
                config=run.config,
                profile=run.profile,
                output=Path(output) / f"{run.folder.name}-{run.profile}",
                mirror=mirror,
                reuse=(fresh,) if run.n_results > len(run.keys) else (),
            )
            jobs.append(Job(request, run.seconds, run.covers))
        outcomes = run_batch(jobs, minutes, hooks)
    for run, outcome in zip(runs, outcomes, strict=True):
        if sentence := _settle(run, outcome, keep=keep):
            print_line(sentence)
    return outcomes


def _settle(run: OldRun, outcome: ConfigOutcome, *, keep: bool) -> str:
    """Return a sentence on a run; with `keep`, keep the new run if no result is lost."""
    from svmbench.report.output import kept

    if outcome.path is None or outcome.error:
        return ""
    lost = n_lost(run.solvers_by_identity, outcome.path)
    if lost:
        return (
            f"{run.folder}: stays as it is, {lost} of its {run.n_results} results are not in "
            f"{outcome.path}"
        )
    if keep:
        kept.keep_run(outcome.path, run.folder)
        return f"{run.folder}: measured again, and kept"
    return f"{run.folder}: measured again in {outcome.path}; --keep puts it in its place"
