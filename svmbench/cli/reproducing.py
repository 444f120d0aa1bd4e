"""Commands that run many configs: all with a profile, or results that are older than the code."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from svmbench.base.errors import EXIT_FAILED_CELLS, EXIT_INTERRUPTED, ResultsError
from svmbench.cli import terminal
from svmbench.cli.completion import ConfigName
from svmbench.cli.options import (
    ANY_PATH,
    AUTO,
    MIRROR,
    POSITIVE_NUMBER,
    QUIET,
    RESULTS,
    RETRY,
    TRUST,
    Jobs,
)

if TYPE_CHECKING:
    from svmbench.experiment.run.batch import ConfigOutcome, Hooks
    from svmbench.experiment.run.session import Request


_BUDGET = click.option(
    "--budget",
    type=POSITIVE_NUMBER,
    metavar="MINUTES",
    help="End after this many minutes; unfinished configs share them equally.",
)
_OUTPUT = click.option(
    "-o",
    "--output",
    type=ANY_PATH,
    metavar="DIR",
    default=Path("results"),
    show_default=True,
    help="Parent of the run folders <name>-<profile>.",
)


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
    help="'value' runs only configs that lack kept results, at low priority: first those that may "
    "decide most undecided claims an hour, then races on an idle machine. It makes no pages.",
)
@click.option(
    "--keep",
    is_flag=True,
    help="With --order value: copy each complete run to the kept results.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Print what would run and how long it takes, and run nothing; with --order value, prepare "
    "data sets.",
)
@_BUDGET
@RETRY
@_OUTPUT
@click.option(
    "--site",
    "pages",
    type=ANY_PATH,
    metavar="DIR",
    help="Folder of the pages.  [default: site-<profile>]",
)
@MIRROR
@TRUST
@QUIET
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

    Without CONFIGS, run all configs that ship with svmbench. A claim that these runs don't decide
    is judged from kept records, if there are any, and the pages say so. After an interruption, the
    same command continues with the missing cells. Failures are listed at the end, and the exit
    code is then 3. Unavailable data sets and cells beyond the budget are no failures.

    \b
    Examples:
      svmbench reproduce --profile quick --jobs auto --budget 120
      svmbench reproduce alsvm_table1 alsvm_table2 --profile paper
      svmbench reproduce --paper nlsgd --dry-run
      svmbench reproduce --profile paper --order value --budget 600 --keep --dry-run
    """
    from svmbench.experiment.run.session import Request
    from svmbench.site import check_place
    from svmbench.studies import judging
    from svmbench.studies.queueing import run_queue
    from svmbench.studies.reproducing import reproduce as run_all
    from svmbench.studies.reproducing import requests_of

    by_value = order == "value"
    if keep and not by_value:
        raise click.UsageError("--keep is for --order value")
    if by_value and pages is not None:
        raise click.UsageError("--order value writes no pages: 'svmbench site' does")
    target = pages or Path(f"site-{profile}")
    if not by_value:
        check_place(target)
    template = Request(
        config="",
        profile=profile,
        output=output,
        mirror=mirror,
        trust=trust,
        jobs=jobs,
        retry=retry,
    )
    requests, without = requests_of(configs, template, papers=of_papers, auto_jobs=jobs == AUTO)
    if without and not by_value:
        terminal.print_line(f"without a profile {profile}: {', '.join(without)}")
    if dry_run and not by_value:
        _print_plans(requests)
        return
    hooks = _hooks(quiet=quiet)
    if by_value:
        with _exit_if_interrupted():
            outcomes = run_queue(
                requests,
                judging.kept_results(),
                minutes=budget,
                keep=keep,
                dry_run=dry_run,
                hooks=hooks,
                print_line=terminal.print_line,
            )
        _finish(outcomes)
        return
    try:
        kept = judging.kept_results()
    except ResultsError:
        kept = None
    with _exit_if_interrupted():
        outcomes = run_all(requests, minutes=budget, kept=kept, hooks=hooks)
    made = [outcome.path for outcome in outcomes if outcome.path is not None]
    if made:
        index, summary = judging.make_site(tuple(made), target, beside=kept, trust=trust)
        terminal.print_line(summary)
        terminal.print_line(index)
    _finish(outcomes)


def _print_plans(requests: Sequence[Request]) -> None:
    """Print for each config the cells that would run and the forecast time; then the total time."""
    from svmbench.experiment.run.forecast import in_all
    from svmbench.experiment.run.session import plan_run
    from svmbench.studies.forecasting import forecast_of

    forecasts = []
    for request in requests:
        forecasts.append(forecast_of(plan_run(request, prepare=False)))
        for line in (*forecasts[-1].lines, ""):
            terminal.print_line(line)
    terminal.print_line(in_all(forecasts))
    terminal.check_written()


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
@QUIET
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

    RESULTS are run folders, or folders that contain some (default: the folder results). The cells
    that have a result there run again by the present config and profile; fresh and rechecked
    results are copied if the cell is the same. Results of unknown age count as older. Results that
    a recheck found changed come first, then races, then cells that decide a claim, then the
    quickest cells. After an interruption, the same command continues.

    \b
    Examples:
      svmbench refresh --dry-run
      svmbench refresh results/smo --budget 30 --keep
    """
    from svmbench.studies.judging import kept_results
    from svmbench.studies.refreshing import old_runs, refresh

    if not (results or Path("results").is_dir()):
        raise ResultsError("there is no folder results here: name the results to measure again")
    outdated = old_runs(results or (kept_results(),))
    for run in outdated:
        terminal.print_line(run.sentence())
    if not outdated:
        terminal.print_line("nothing changed, and nothing is older than the code")
    if dry_run or not outdated:
        terminal.check_written()
        return
    with _exit_if_interrupted():
        outcomes = refresh(
            outdated,
            output=output,
            minutes=budget,
            keep=keep,
            mirror=mirror,
            hooks=_hooks(quiet=quiet),
            print_line=terminal.print_line,
        )
    _finish(outcomes)


def _hooks(*, quiet: bool) -> Hooks:
    """Return hooks that show the progress of configs, and make their tables."""
    from svmbench.cli.progress import Narrator
    from svmbench.cli.publishing import rebuild
    from svmbench.experiment.run.batch import Hooks
    from svmbench.experiment.run.loop import SPENT

    console = terminal.console()
    narrator = Narrator(console, quiet=quiet)
    return Hooks(
        print_line=narrator.print_line,
        note=lambda sentence: narrator.note(sentence) if SPENT not in sentence else None,
        watch=narrator.watch,
        finish=lambda path: rebuild(path, console, quiet=True),
    )


@contextmanager
def _exit_if_interrupted() -> Iterator[None]:
    """If Ctrl-C ended a batch, say how to continue it, and exit."""
    from svmbench.studies.batches import BatchInterruptedError

    try:
        yield
    except BatchInterruptedError:
        terminal.print_on(terminal.console(), "interrupted; the same command continues the run")
        sys.exit(EXIT_INTERRUPTED)


def _finish(outcomes: Sequence[ConfigOutcome]) -> None:
    """Print the unfinished configs and all failures; exit with code 3 after a failure."""
    from svmbench.studies.batches import failures

    not_reached = [outcome.name for outcome in outcomes if outcome.is_unfinished]
    if not_reached:
        terminal.print_line(
            f"not finished within the budget: {', '.join(not_reached)}; "
            "the same command continues the run"
        )
    failed = [line for outcome in outcomes for line in failures(outcome)]
    if failed:
        terminal.print_line("failed:")
        for line in failed:
            terminal.print_line(f"  {line}")
        sys.exit(EXIT_FAILED_CELLS)
    terminal.check_written()


def register(group: click.Group) -> None:
    """Add the commands of this module to the command line."""
    for command in (reproduce, refresh_command):
        group.add_command(command)
