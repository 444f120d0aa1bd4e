"""Commands beside the main path: the gate. Each imports what it needs when it runs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from svmbench.errors import EXIT_REGRESSION

_FOLDER = click.Path(path_type=Path)


@click.command()
@click.argument("base", type=_FOLDER)
@click.argument("new", type=_FOLDER)
@click.option(
    "--slowdown",
    type=click.FloatRange(min=1),
    default=1.5,
    show_default=True,
    help="How many times slower, against the same reference solver, is a regression.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def compare(base: Path, new: Path, slowdown: float, as_json: bool) -> None:
    r"""Compare two results folders: what became worse, better or different.

    BASE and NEW are results folders, kept baselines, or folders of repeated runs. Compared are
    results, accuracies, objectives and counters; times only as ratios of races, and only between
    equal CPU models. Ends with code 4 if anything became worse.

    \b
    Examples:
      svmbench compare results/regress results/regress-quick
      svmbench compare before/ after/ --json
    """
    from svmbench.report import compare as comparing

    found = comparing.compare(
        comparing.read_side(base), comparing.read_side(new), slowdown=slowdown
    )
    if as_json:
        click.echo(json.dumps(found.to_json(), indent=1))
    else:
        _print_comparison(found)
    if found.regressions:
        sys.exit(EXIT_REGRESSION)


@click.command()
@click.argument("results", type=_FOLDER)
@click.argument("target", type=_FOLDER)
def keep(results: Path, target: Path) -> None:
    r"""Keep a run's counters, accuracies and ratios as the baseline that `compare` reads.

    \b
    Example:
      svmbench keep results/regress-quick results/regress
    """
    from svmbench.report.compare import write_baseline

    click.echo(str(write_baseline(results, target)))


def _print_comparison(found: Any) -> None:
    columns = [
        (c.verdict, c.kind, c.where, c.what, _number(c.base), _number(c.new)) for c in found.changes
    ]
    if columns:
        rows = [("verdict", "kind", "where", "what", "base", "new"), *columns]
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        for row in rows:
            click.echo("  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)))
    for note in found.notes:
        click.echo(f"note: {note}")
    counted = ", ".join(f"{n} {kind}" for kind, n in found.compared.items())
    n_worse = len(found.regressions)
    verdict = "no regression" if not n_worse else f"{n_worse} regressions"
    if n_worse == 1:
        verdict = "1 regression"
    click.echo(f"{verdict} (values compared: {counted})")


def _number(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def register(group: click.Group) -> None:
    """Add the commands of this module to the command line."""
    for command in (compare, keep):
        group.add_command(command)
