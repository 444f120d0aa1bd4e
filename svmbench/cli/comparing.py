"""The gate's commands: ``compare`` two results folders, and ``keep`` a run as a baseline."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from svmbench.base.errors import EXIT_REGRESSION
from svmbench.cli import terminal
from svmbench.cli.options import FOLDER, FiniteRange


@click.command("compare")
@click.argument("base", type=FOLDER)
@click.argument("new", type=FOLDER)
@click.option(
    "--slowdown",
    type=FiniteRange(min=1),
    default=1.5,
    show_default=True,
    help="Regression: a solver this many times slower, relative to the same reference solver.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def compare_command(base: Path, new: Path, slowdown: float, as_json: bool) -> None:
    r"""Compare two results folders: what became worse, better or different.

    BASE and NEW are results folders, kept baselines, or folders of repeated runs. Statuses,
    accuracies, objectives and counters are compared; times only as ratios of races, and only
    between equal CPU models. The exit code is 4 if anything became worse, or if BASE is a kept
    baseline of other code; make such a baseline again with 'svmbench keep'.

    \b
    Examples:
      svmbench compare results/regress results/regress-quick
      svmbench compare before/ after/ --json
    """
    from svmbench.report import compare as comparing

    found = comparing.compare_folders(
        comparing.read_side(base), comparing.read_side(new), slowdown=slowdown
    )
    if as_json:
        terminal.emit(json.dumps(found.to_json(), indent=1))
    else:
        _print_comparison(found)
    if found.regressions or found.is_stale:
        sys.exit(EXIT_REGRESSION)
    terminal.check_written()


@click.command()
@click.argument("results", type=FOLDER)
@click.argument("target", type=FOLDER)
def keep(results: Path, target: Path) -> None:
    r"""Keep a run's counters, accuracies and ratios as the baseline that `compare` reads.

    \b
    Example:
      svmbench keep results/regress-quick results/regress
    """
    from svmbench.report.compare import write_baseline

    terminal.print_line(write_baseline(results, target))


def _print_comparison(found: Any) -> None:
    if found.changes:
        terminal.print_columns(
            (
                (c.verdict, c.kind, c.where, c.what, *_numbers(c.base, c.new), _times(c))
                for c in found.changes
            ),
            header=("verdict", "kind", "where", "what", "base", "new", "change"),
        )
    for note in found.notes:
        terminal.print_line(f"note: {note}")
    if found.is_stale:
        terminal.print_line(
            "stale: BASE is not of this code: by equal arithmetic something differs; where that is"
            " meant, 'svmbench keep NEW BASE' keeps the new run"
        )
    counted = ", ".join(f"{n} {kind}" for kind, n in found.compared.items())
    n_worse = len(found.regressions)
    verdict = "no regression" if not n_worse else f"{n_worse} regressions"
    if n_worse == 1:
        verdict = "1 regression"
    terminal.print_line(f"{verdict} (values compared: {counted})")


def _times(change: Any) -> str:
    """Return how many times faster or slower the first solver of a race became."""
    if " vs " not in change.what or not (change.base and change.new):
        return ""
    if change.new < change.base:
        return f"{change.base / change.new:.3g} times slower"
    return f"{change.new / change.base:.3g} times faster"


def _numbers(base: Any, new: Any) -> list[str]:
    """Return two values as text, with as many digits as show their difference."""
    for digits in (6, 12, 17):
        shown = [
            "-"
            if value is None
            else f"{value:.{digits}g}"
            if isinstance(value, float)
            else str(value)
            for value in (base, new)
        ]
        if shown[0] != shown[1]:
            break
    return shown


def register(group: click.Group) -> None:
    """Add the commands of this module to the command line."""
    for command in (compare_command, keep):
        group.add_command(command)
