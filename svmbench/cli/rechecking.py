"""The command `recheck`: a random sample of kept cells is run again and compared."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from svmbench.base.errors import EXIT_FAILED_CELLS, EXIT_REGRESSION
from svmbench.cli import terminal
from svmbench.cli.options import ANY_PATH, MIRROR, POSITIVE_NUMBER, RESULTS


@click.command()
@RESULTS
@click.option(
    "--budget",
    type=POSITIVE_NUMBER,
    metavar="MINUTES",
    default=5.0,
    show_default=True,
    help="Draw cells until their recorded times add up to MINUTES; stop when MINUTES have passed.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Seed of the random draw.",
)
@click.option(
    "--changelog",
    type=ANY_PATH,
    metavar="FILE",
    help="Accept changed results of the solvers and configs named in this file's first section.",
)
@click.option(
    "--keep/--no-keep",
    "keeps",
    default=True,
    show_default=True,
    help="Append the outcome to rechecks.jsonl beside the records.",
)
@click.option("--dry-run", is_flag=True, help="Print the drawn cells; run and write nothing.")
@MIRROR
def recheck(
    results: tuple[Path, ...],
    budget: float,
    seed: int,
    changelog: Path | None,
    keeps: bool,
    dry_run: bool,
    mirror: str | None,
) -> None:
    r"""Run a random sample of kept cells again with the present code, and compare the results.

    RESULTS are run folders, or folders that contain some (default: the folder results). First one
    cell of each solver is drawn. Then, for each run older than the code, as many cells as it still
    needs to count as rechecked. Then any others. Accuracies, objectives and counters must be equal.
    If BLAS, its CPU-specific code or another package differs from the recorded run, they may differ
    within the tolerances of 'svmbench compare'. Times are not compared. The outcome is appended to
    rechecks.jsonl in each run's folder; with --no-keep, nothing is written. A cell stopped at its
    time limit counts as not run. A cell that several of RESULTS keep is run once, and compared with
    each record. The exit code is 4 if a cell disagrees, unless a line of the changelog such as "-
    Results change: `smo`, `csvc`: why" names its solver or its run's folder. It is 3 if a config
    can't be run any more.

    \b
    Examples:
      svmbench recheck --budget 5 --seed 1 --no-keep
      svmbench recheck results/smo --budget 30
    """
    from svmbench.studies import rechecking
    from svmbench.studies.judging import kept_results

    accepted = rechecking.named_changes(changelog) if changelog else frozenset()
    folders = results or (kept_results(),)
    drawn = rechecking.draw_kept(folders, minutes=budget, seed=seed)
    terminal.print_line(
        f"{drawn.n_drawn} of {drawn.n_candidates} cells of {len(drawn.cells)} runs drawn"
        f" (seed {seed})"
    )
    if dry_run:
        terminal.print_columns(
            (cell.run, cell.solver, cell.dataset, f"{cell.seconds:.1f} s")
            for cells in drawn.cells.values()
            for cell in cells
        )
        terminal.check_written()
        return
    outcome = rechecking.recheck(drawn, keep=keeps, mirror=mirror, print_line=terminal.print_line)
    terminal.print_line(outcome.sentence())
    changed = outcome.changed
    unnamed = [cell for cell in changed if not rechecking.is_named(cell, accepted)]
    if accepted and changed:
        terminal.print_line(
            f"the changelog names {len(changed) - len(unnamed)} of {len(changed)} changes"
        )
    if unnamed:
        sys.exit(EXIT_REGRESSION)
    if outcome.n_failed:
        sys.exit(EXIT_FAILED_CELLS)
    terminal.check_written()


def register(group: click.Group) -> None:
    """Add the commands of this module to the command line."""
    group.add_command(recheck)
