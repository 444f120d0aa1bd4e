"""Commands that run many configs: everything of a profile, or what is older than the code."""

from __future__ import annotations

import functools
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from svmbench.base import escape
from svmbench.base.errors import (
    EXIT_FAILED_CELLS,
    EXIT_INTERRUPTED,
    ConfigError,
    ResultsError,
    SvmbenchError,
)
from svmbench.base.files import exists_in_results
from svmbench.cli import terminal
from svmbench.cli.completion import ConfigName
from svmbench.cli.options import AUTO, FOLDER, MIRROR, POSITIVE_NUMBER, RESULTS, RETRY, TRUST, Jobs
from svmbench.cli.publishing import ages_of, kept_results
from svmbench.report.reading.newest import PACKED_RECORDS, RECORDS

if TYPE_CHECKING:
    from svmbench.cli.queueing import Queued
    from svmbench.experiment.run.batch import Batch, ConfigOutcome, Job
    from svmbench.experiment.run.session import Request
    from svmbench.experiment.settings.cells import Cell
    from svmbench.papers.judging import Evidence

_BUDGET = click.option(
    "--budget",
    type=POSITIVE_NUMBER,
    metavar="MINUTES",
    help="Start no new cell after this many minutes; unfinished configs share them equally.",
)
_OUTPUT = click.option(
    "--output",
    type=FOLDER,
    metavar="DIR",
    default=Path("results"),
    show_default=True,
    help="Parent of the run folders <name>-<profile>.",
)
_QUIET = click.option(
    "-q", "--quiet", is_flag=True, help="Print errors and the final summary only."
)
#: Largest number of reasons for failed cells shown for one config.
_MOST_REASONS = 3


@click.command()
@click.argument("configs", nargs=-1, type=ConfigName())
@click.option(
    "--profile",
    default="quick",
    show_default=True,
    help="Size of each run: 'quick' takes minutes, 'paper' is the full protocol.",
)
@click.option(
    "--jobs",
    type=Jobs(),
    default=1,
    show_default=True,
    help="Number of cells run at a time. 'auto' runs configs with races one cell at a time, and "
    "others on all CPU cores. Above 1, times are marked as contended.",
)
@click.option(
    "--paper",
    "of_papers",
    multiple=True,
    metavar="KEY",
    help="Only the configs of this paper, such as 'smo'.  [repeatable]",
)
@click.option(
    "--order",
    type=click.Choice(["given", "value"]),
    default="given",
    show_default=True,
    help="'value' runs what has no kept result, at low priority: first what may decide most open "
    "claims in a forecast hour, races last and on an idle machine. It writes no pages.",
)
@click.option(
    "--keep",
    is_flag=True,
    help="With --order value: copy each complete run to the kept results.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="With --order value: prepare data sets, print what would run and how long it takes, and "
    "run nothing.",
)
@_BUDGET
@RETRY
@_OUTPUT
@click.option(
    "--site",
    "pages",
    type=FOLDER,
    metavar="DIR",
    help="Folder of the pages.  [default: site-<profile>]",
)
@MIRROR
@TRUST
@_QUIET
def reproduce(
    configs: tuple[str, ...],
    profile: str,
    jobs: int,
    of_papers: tuple[str, ...],
    order: str,
    keep: bool,
    dry_run: bool,
    budget: float | None,
    retry: str,
    output: Path,
    pages: Path | None,
    mirror: str | None,
    trust: bool,
    quiet: bool,
) -> None:
    r"""Reproduce everything: fetch, run, make tables, judge the claims, make the site.

    Without CONFIGS, run all configs that ship with svmbench. A claim that these runs leave open is
    judged from kept records, if there are any, and the pages say so. After an interruption, the
    same command continues with the missing cells. Failures are listed at the end, and the exit
    code is then 3. Unavailable data sets and cells beyond the budget are no failures.

    \b
    Examples:
      svmbench reproduce --profile quick --jobs auto --budget 120
      svmbench reproduce alsvm_table1 alsvm_table2 --profile paper
      svmbench reproduce --profile paper --order value --budget 600 --keep --dry-run
    """
    from svmbench.cli.publishing import make_site
    from svmbench.experiment.config.loader import find_config, load_config, shipped_configs
    from svmbench.experiment.run.batch import Job
    from svmbench.experiment.run.session import Request
    from svmbench.site import check_place

    by_value = order == "value"
    if (keep or dry_run) and not by_value:
        raise click.UsageError("--keep and --dry-run are for --order value")
    if by_value and pages is not None:
        raise click.UsageError("--order value writes no pages: 'svmbench site' does")
    target = pages or Path(f"site-{profile}")
    if not by_value:
        check_place(target)
    kept = _kept()
    due, without = [], []
    for name in configs or tuple(path.stem for path in shipped_configs()):
        path = find_config(name)
        if of_papers and load_config(path).paper not in of_papers:
            continue
        if not configs and profile not in load_config(path).profiles:
            without.append(path.stem)
            continue
        request = Request(
            config=name,
            profile=profile,
            output=output / f"{path.stem}-{profile}",
            mirror=mirror,
            trust=trust,
            jobs=_automatic_jobs(path) if jobs == AUTO else jobs,
            retry=retry,
        )
        due.append(Job(request, 0.0 if by_value else _expected(request, kept)))
    if of_papers and not due:
        raise ConfigError(f"no config with a profile {profile} is of {', '.join(of_papers)}")
    if without and not by_value:
        terminal.print_line(f"without a profile {profile}: {', '.join(without)}")
    if by_value:
        _run_queue([job.request for job in due], budget, keep=keep, dry_run=dry_run, quiet=quiet)
        return
    batch = _make_batch(due, budget, quiet=quiet)
    outcomes = batch.run()
    _stop_if_interrupted(batch)
    made = [one.path for one in outcomes if one.path is not None]
    if made:
        index, summary = make_site(tuple(made), target, beside=kept, trust=trust)
        terminal.print_line(summary)
        terminal.print_line(index)
    _end(outcomes)


def _run_queue(
    requests: Sequence[Request], budget: float | None, *, keep: bool, dry_run: bool, quiet: bool
) -> None:
    """Run the missing cells of some configs in the order of their value."""
    from svmbench.cli import queueing
    from svmbench.experiment.run.batch import Job
    from svmbench.papers import judging

    root = kept_results()
    evidence = judging.gather_evidence([root])
    claims = queueing.open_claims(evidence)
    end = time.monotonic() + (budget * 60 if budget else float("inf"))
    with tempfile.TemporaryDirectory(prefix="svmbench-queue-") as scratch:
        found: dict[str, tuple[queueing.Queued, Request]] = {}
        for request in requests:
            pair = _queued(request, root, claims, evidence, Path(scratch))
            if pair is not None:
                found[pair[0].config] = pair
        ordered = queueing.in_order([one for one, _ in found.values()])
        for text in queueing.as_lines(ordered):
            terminal.print_line(text)
        if dry_run or not ordered:
            terminal.check_written()
            return
        queueing.give_way()
        outcomes = []
        for is_race in (False, True):
            part = [one for one in ordered if one.is_race == is_race]
            if not part or (is_race and not queueing.wait_for_idle(end)):
                continue
            minutes = (end - time.monotonic()) / 60.0 if budget else None
            if minutes is not None and minutes <= 0:
                break
            due = [Job(found[one.config][1], one.seconds) for one in part]
            batch = _make_batch(due, minutes, quiet=quiet, shared=False)
            for one, outcome in zip(part, batch.run(), strict=True):
                outcomes.append(outcome)
                _tell_of(one, outcome, root, keep=keep)
            _stop_if_interrupted(batch)
    _end(outcomes)


def _tell_of(one: Queued, outcome: ConfigOutcome, root: Path, *, keep: bool) -> None:
    """Print how long a config took beside its forecast, and keep its folder if asked for."""
    from svmbench.cli import queueing

    said = [queueing.compared(one, outcome)]
    if keep and outcome.path is not None:
        held = {
            place: _n_lost(_places_in(place), outcome.path)
            for place in _kept_by_config(root).get((one.config, one.profile), [])
            if place.resolve() != outcome.path.resolve() and (place / PACKED_RECORDS).is_file()
        }
        said.append(queueing.keep_complete(outcome, one, root, held))
    for text in filter(None, said):
        terminal.print_line(text)


def _queued(
    request: Request, root: Path, claims: Mapping[str, list[str]], evidence: Evidence, scratch: Path
) -> tuple[Queued, Request] | None:
    """Return what is to run of a config, with the request that takes over its kept results."""
    from svmbench.cli import queueing
    from svmbench.experiment.run.session import plan_run
    from svmbench.report.output import kept

    try:
        run_plan = plan_run(request, print_line=terminal.print_line)
    except SvmbenchError as error:
        terminal.print_line(f"{Path(request.config).stem}: {error}")
        return None
    name = run_plan.plan.name
    places: dict[str, list[frozenset[str]]] = {}
    done: set[str] = set()
    reuse: list[Path] = []
    of_config = {at: folders for at, folders in _kept_by_config(root).items() if at[0] == name}
    for place, profile in ((one, at[1]) for at, folders in of_config.items() for one in folders):
        if profile == request.profile:
            for where, solvers in _places_in(place).items():
                places.setdefault(where, []).extend(solvers)
        keys = {line["key"] for line in _results_in(place)}
        own = keys & {cell.key for cell in run_plan.cells}
        done |= own
        is_same = place.resolve() == run_plan.path.resolve()
        if own and not is_same:
            reuse.append(kept.unpack(place, scratch / f"{name}-{len(reuse)}", without=keys - own))
    if not run_plan.cells:
        return None
    is_begun = exists_in_results(run_plan.path / RECORDS)
    here = {line["key"] for line in _results_in(run_plan.path)} if is_begun else set()
    timeout_s = run_plan.plan.config.timeout_s

    def forecast(cell: Cell) -> float | None:
        seconds = evidence.forecaster.seconds(queueing.planned_work(cell, name))
        return None if seconds is None else min(seconds, timeout_s)

    one = queueing.queued(name, run_plan.cells, places, done, here, claims.get(name, ()), forecast)
    return None if one is None else (one, replace(request, reuse=tuple(reuse)))


def _automatic_jobs(path: Path) -> int:
    """Return the number of cells to run at a time: 1 with races, else as many as the cores hold."""
    import joblib

    from svmbench.experiment.config.loader import load_config
    from svmbench.experiment.protocols import protocols

    try:
        config = load_config(path)
    except ConfigError:
        return 1  # the batch says what is wrong with it
    if any(protocols()[block.protocol].is_race for block in config.blocks):
        return 1
    return max(1, joblib.cpu_count() // config.threads)


def _kept() -> Path | None:
    """Return where results are kept, if there is such a folder."""
    try:
        return kept_results()
    except ResultsError:
        return None


@click.command("refresh")
@RESULTS
@_BUDGET
@_OUTPUT
@click.option(
    "--keep",
    is_flag=True,
    help="Replace kept results with the new ones once a run is complete.",
)
@click.option(
    "--dry-run", is_flag=True, help="List the cells that would run; run and write nothing."
)
@MIRROR
@_QUIET
def refresh_command(
    results: tuple[Path, ...],
    budget: float | None,
    output: Path,
    keep: bool,
    dry_run: bool,
    mirror: str | None,
    quiet: bool,
) -> None:
    r"""Run kept cells again whose results changed or are older than the code.

    RESULTS are run folders, or folders that hold some (default: the folder results). Of each run,
    cells that have a result there run again by the present config and profile; fresh and rechecked
    results are copied if the cell is the same. Results of unknown age count as older. Results that
    a recheck found changed come first, then races, then cells that decide a claim, then the
    quickest cells. After an interruption, the same command continues.

    \b
    Examples:
      svmbench refresh --dry-run
      svmbench refresh results/smo --budget 30 --keep
    """
    from svmbench.experiment.run.batch import Job
    from svmbench.experiment.run.session import Request
    from svmbench.report.output import kept

    if not (results or Path("results").is_dir()):
        raise ResultsError("there is no folder results here: name the results to measure again")
    found = _old_runs(results or (kept_results(),))
    for one in found:
        terminal.print_line(one.sentence())
    if not found:
        terminal.print_line("nothing changed, and nothing is older than the code")
    if dry_run or not found:
        terminal.check_written()
        return
    with tempfile.TemporaryDirectory(prefix="svmbench-refresh-") as scratch:
        due = []
        for number, one in enumerate(found):
            fresh = kept.unpack(one.folder, Path(scratch) / str(number), without=one.keys)
            request = Request(
                config=one.config,
                profile=one.profile,
                output=output / f"{one.folder.name}-{one.profile}",
                mirror=mirror,
                reuse=(fresh,) if one.n_results > len(one.keys) else (),
            )
            due.append(Job(request, one.seconds, one.wants))
        batch = _make_batch(due, budget, quiet=quiet)
        outcomes = batch.run()
        _stop_if_interrupted(batch)
    for one, outcome in zip(found, outcomes, strict=True):
        _settle(one, outcome, keep=keep)
    _end(outcomes)


@dataclass(frozen=True)
class OldRun:
    """A run with results that changed or are older than the code.

    Attributes
    ----------
    folder, config, profile : Path, str, str
        Where it is kept, and what made it.
    keys : frozenset of str
        The keys of those results.
    places : mapping of str to list of frozenset of str
        The cells that have a result, of any age: what identifies them in any plan of the config
        but for their solvers, and the solvers of each.
    n_results : int
    is_race : bool
        Whether some of those results are of races.
    decides : bool
        Whether the paper of the run has claims that name its config.
    seconds : float
        What those results took.
    age : str
        The word of the run, with numbers.
    is_changed : bool
        Whether a recheck found a cell that disagrees.
    """

    folder: Path
    config: str
    profile: str
    keys: frozenset[str]
    places: Mapping[str, list[frozenset[str]]]
    n_results: int
    is_race: bool
    decides: bool
    seconds: float
    age: str
    is_changed: bool

    def wants(self, cell: Cell) -> bool:
        """Return True if a cell of today's plan has a result in this run.

        A race may have more solvers than its result: optional ones that were not installed then.
        """
        from svmbench.experiment.plan.freshness import race_place_of

        place, solvers = race_place_of(cell.shown)
        return any(kept <= solvers for kept in self.places.get(place, ()))

    def sentence(self) -> str:
        """Return a sentence that counts the results to measure."""
        from svmbench.experiment.run.forecast import in_words

        kind = "races, " if self.is_race else ""
        return (
            f"{self.folder}: {self.age}; {len(self.keys)} of {self.n_results} results to measure "
            f"({kind}profile {self.profile}, they took {in_words(self.seconds)})"
        )


def _old_runs(folders: Sequence[Path]) -> list[OldRun]:
    """Return our runs to measure again: changed, races, deciding a claim, then by seconds."""
    from svmbench.report.reading.folders import our_runs

    runs = our_runs(folders)
    deciding = _deciding_configs()
    found = [one for folder in runs if (one := _old_run(folder, deciding)) is not None]
    return sorted(
        found,
        key=lambda one: (not one.is_changed, not one.is_race, not one.decides, one.seconds),
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
    found = ages_of(folder, run)
    keys = {key for key, word in found.words.items() if word in {CHANGED, OLDER}}
    if not keys:
        return None
    walls = [done[key].get("wall_s") for key in keys]
    return OldRun(
        folder=folder,
        config=run.name,
        profile=run.profile,
        keys=frozenset(keys),
        places=_places(done.values()),
        n_results=len(done),
        is_race=any(cell.is_race for cell in run.cells if cell.key in keys),
        decides=run.name in deciding,
        seconds=sum(float(wall) for wall in walls if isinstance(wall, int | float)),
        age=found.sentence(),
        is_changed=found.word == CHANGED,
    )


def _places(lines: Iterable[Mapping[str, Any]]) -> dict[str, list[frozenset[str]]]:
    """Return the solvers of each cell that records are of, by the rest of what identifies it."""
    from svmbench.experiment.plan.freshness import race_place_of

    found: dict[str, list[frozenset[str]]] = {}
    for place, solvers in map(race_place_of, lines):
        found.setdefault(place, []).append(solvers)
    return found


def _results_in(folder: Path) -> list[Any]:
    """Return the records of a folder's results, without failures."""
    from svmbench.report.reading.records import result_lines

    lines = (line for line in result_lines(folder) if line["kind"] == "cell")
    return [line for line in lines if line["status"] == "ok"]


def _places_in(folder: Path) -> dict[str, list[frozenset[str]]]:
    return _places(_results_in(folder))


def _n_lost(places: Mapping[str, list[frozenset[str]]], path: Path) -> int:
    """Return how many results, by their places, a new run folder doesn't have."""
    now = _places_in(path)
    return sum(
        not any(kept_solvers <= solvers for solvers in now.get(place, ()))
        for place, at_place in places.items()
        for kept_solvers in at_place
    )


def _settle(one: OldRun, outcome: ConfigOutcome, *, keep: bool) -> None:
    """Print the outcome of a run; keep the new run if asked for and no result is lost."""
    from svmbench.report.output import kept

    if outcome.path is None or outcome.error:
        return
    lost = _n_lost(one.places, outcome.path)
    if lost:
        terminal.print_line(
            f"{one.folder}: stays as it is, {lost} of its {one.n_results} results are not in "
            f"{outcome.path}"
        )
    elif keep:
        kept.keep_run(outcome.path, one.folder)
        terminal.print_line(f"{one.folder}: measured again, and kept")
    else:
        terminal.print_line(
            f"{one.folder}: measured again in {outcome.path}; --keep puts it in its place"
        )


def _make_batch(
    jobs: Sequence[Job], budget: float | None, *, quiet: bool, shared: bool = True
) -> Batch:
    from svmbench.cli.progress import Narrator
    from svmbench.cli.publishing import rebuild
    from svmbench.experiment.run.batch import Batch, Hooks
    from svmbench.experiment.run.loop import SPENT

    console = terminal.console()
    narrator = Narrator(console, quiet=quiet)
    hooks = Hooks(
        print_line=narrator.print_line,
        note=lambda said: narrator.note(said) if SPENT not in said else None,
        watch=narrator.watch,
        finish=lambda path: rebuild(path, console, quiet=True),
    )
    return Batch(jobs, budget * 60 if budget else float("inf"), hooks, shared=shared)


def _expected(request: Request, kept: Path | None) -> float:
    """Return the seconds that a config is expected to take; 0 if it can't be planned."""
    from svmbench.experiment.run.forecast import expected_seconds_of
    from svmbench.experiment.run.session import plan_run

    try:
        run_plan = plan_run(request, prepare=False)
    except SvmbenchError:
        return 0.0
    like = _kept_cells(kept, run_plan.plan.name, request.profile) if kept else ()
    return expected_seconds_of(run_plan.cells, run_plan.path, jobs=request.jobs, kept=like)


def _kept_cells(kept: Path, config: str, profile: str) -> Iterator[Any]:
    """Yield the kept records of a config's cells at one profile."""
    from svmbench.report.reading.records import result_lines

    for folder in _kept_by_config(kept).get((config, profile), []):
        with suppress(ResultsError):  # an estimate can do without a damaged run
            yield from (line for line in result_lines(folder) if line["kind"] == "cell")


@functools.cache
def _kept_by_config(kept: Path) -> dict[tuple[str, str], list[Path]]:
    """Return our kept run folders by config and profile."""
    from svmbench.base.files import read_json
    from svmbench.report.reading.folders import our_runs

    found: dict[tuple[str, str], list[Path]] = {}
    for folder in our_runs([kept]):
        try:
            plan = read_json(folder / "plan.json")
            named = str(plan["config"]["name"]), str(plan["profile"])
        except (OSError, RecursionError, ValueError, KeyError, TypeError):
            continue  # an estimate can do without a damaged run
        found.setdefault(named, []).append(folder)
    return found


def _stop_if_interrupted(batch: Batch) -> None:
    if batch.interrupted:
        terminal.print_on(terminal.console(), "interrupted; the same command continues the run")
        sys.exit(EXIT_INTERRUPTED)


def _end(outcomes: Sequence[ConfigOutcome]) -> None:
    """Print configs that were not finished, then failures; exit with their code."""
    not_reached = [one.name for one in outcomes if one.is_open]
    if not_reached:
        terminal.print_line(
            f"not finished within the budget: {', '.join(not_reached)}; "
            "the same command continues the run"
        )
    failures = [line for one in outcomes for line in _failures(one)]
    if failures:
        terminal.print_line("failed:")
        for line in failures:
            terminal.print_line(f"  {line}")
        sys.exit(EXIT_FAILED_CELLS)
    terminal.check_written()


def _failures(outcome: ConfigOutcome) -> Iterator[str]:
    if outcome.error:
        yield f"{outcome.name}: {escape.line(outcome.error, 400)}"
    reasons: list[tuple[str, Any]] = sorted(outcome.reasons.items(), key=lambda pair: -pair[1])
    for reason, count in reasons[:_MOST_REASONS]:
        cells = "cell" if count == 1 else "cells"
        yield f"{outcome.name}: {count} {cells} {escape.line(reason, 300)}"
    if len(reasons) > _MOST_REASONS:
        rest = sum(count for _, count in reasons[_MOST_REASONS:])
        yield f"{outcome.name}: {rest} more for other reasons"


def register(group: click.Group) -> None:
    """Add the commands of this module to the command line."""
    for command in (reproduce, refresh_command):
        group.add_command(command)
