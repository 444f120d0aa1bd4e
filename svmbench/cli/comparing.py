"""The gate's commands: ``compare`` two results folders, and ``keep`` a run as a baseline."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from svmbench.base.errors import EXIT_REGRESSION
from svmbench.cli import terminal
from svmbench.cli.options import ANY_PATH, FiniteRange


@click.command("compare")
@click.argument("base", type=ANY_PATH)
@click.argument("new", type=ANY_PATH)
@click.option(
    "--slowdown",
    type=FiniteRange(min=1),
    help="Regression: a solver this many times slower, relative to the same reference solver."
    " Default: by the spread of BASE's repeats, or 1.5 with fewer than five repeats.",
)
@click.option(
    "--ignore",
    multiple=True,
    type=click.Choice(
        ["accuracies", "counters", "memory", "objectives", "params", "scores", "times"]
    ),
    help="Leave out the changes of this kind; may be given several times.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def compare_command(
    base: Path, new: Path, slowdown: float | None, ignore: tuple[str, ...], as_json: bool
) -> None:
    r"""Compare two results folders, and show what became worse, better or different.

    BASE and NEW are results folders, kept baselines, or folders of repeated runs. Statuses,
    accuracies, objectives, counters and memory are compared; times, above all the ratios of races,
    only between equal CPU models. Counters of your own classes and programs are shown, but a change
    of these alone is no regression. A kept baseline is stale if, at equal arithmetic, NEW has other
    results (apart from times and memory) or more cells. The last line says what failed, and what
    was not compared.

    \b
    Exit codes: 0 nothing became worse, 1 a folder can't be read, 2 wrong options, a damaged
    folder, or two folders that can't be compared (other config, profile, seed, settings or data),
    4 something became worse, or BASE is a stale baseline: if the change is meant, keep NEW with
    'svmbench keep NEW BASE'.

    \b
    Examples:
      svmbench compare results/regress results/regress-quick
      svmbench compare before/ after/ --json
      svmbench compare before/ after/ --ignore counters --ignore memory
    """
    from svmbench.report.gate.compare import compare_folders
    from svmbench.report.gate.sides import read_side

    comparison = compare_folders(read_side(base), read_side(new), slowdown=slowdown, ignore=ignore)
    if as_json:
        terminal.emit(json.dumps(comparison.to_json(), indent=1))
    else:
        _print_comparison(comparison)
    if comparison.regressions or comparison.is_stale:
        sys.exit(EXIT_REGRESSION)
    terminal.check_written()


@click.command()
@click.argument("results", type=ANY_PATH)
@click.argument("target", type=ANY_PATH)
def keep(results: Path, target: Path) -> None:
    r"""Write a baseline for `compare` to TARGET: a run's counters, accuracies and ratios.

    RESULTS is a run folder, or a folder of repeated runs: then the first by name is kept, with the
    median of each ratio of races. From five runs on, the spread of a ratio sets its limit.

    \b
    Example:
      svmbench keep results/regress-quick results/regress
    """
    from svmbench.report.gate.sides import write_baseline

    terminal.print_line(write_baseline(results, target))


def _print_comparison(comparison: Any) -> None:
    from svmbench.report.gate.changes import outcome_line

    if comparison.changes:
        terminal.print_columns(
            ((c.verdict, c.kind, c.where, c.what, *c.shown, c.moved) for c in comparison.changes),
            header=("verdict", "kind", "where", "what", "base", "new", "change"),
        )
    for note in comparison.notes:
        terminal.print_line(f"note: {note}")
    if comparison.is_stale:
        terminal.print_line(
            "stale: at equal arithmetic, results differ from the kept baseline, or NEW has more"
            " cells; if this is intended, 'svmbench keep NEW BASE' keeps the new run"
        )
    terminal.print_line(outcome_line(comparison))


def register(group: click.Group) -> None:
    """Add the commands of this module to the command line."""
    for command in (compare_command, keep):
        group.add_command(command)
