"""Compare two solvers over the data sets of a run: win, draw and loss, and Wilcoxon's signed ranks.

::

    python results/srbo/paired.py results/srbo/table5 --metric cpu_time_s nu-svm srbo-nu-svm

reads the run's ``table.csv``, pairs the two solvers' values by block, data set and whatever else
is swept, and prints the figures of the SRBO paper's Table XII: the number of pairs, W+, Z, and the
p-value of the alternative that the first solver's values are greater.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path

import click

from svmbench.report.numbers.statistics import signed_rank, win_draw_loss

#: Columns of the table that say what a value is of; the rest is about the value.
APART = {
    *("solver", "metric", "value", "spread", "folds", "planned", "published", "difference"),
    *("status", "low", "high", "environment", "profile", "note", "title", "params"),
}


def pairs(path: Path, metric: str, first: str, second: str) -> dict[str, list[tuple[float, float]]]:
    """Return the paired values of each block.

    Parameters
    ----------
    path : Path
        A run's ``table.csv``.
    metric, first, second : str
    """
    found: dict[tuple[str, ...], dict[str, float]] = defaultdict(dict)
    with path.open(encoding="utf-8", newline="") as handle:
        for row in csv.DictReader(handle):
            if row["metric"] == metric and row["solver"] in (first, second) and row["value"]:
                place = tuple(v or "" for k, v in row.items() if k not in APART)
                found[(row.get("block", ""), *place)][row["solver"]] = float(row["value"])
    blocks: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for (block, *_), values in found.items():
        if len(values) == 2:
            blocks[block].append((values[first], values[second]))
    return blocks


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("first")
@click.argument("second")
@click.option("--metric", default="cpu_time_s", show_default=True)
@click.option("--better", type=click.Choice(["lower", "higher"]), default="lower")
def main(folder: Path, first: str, second: str, metric: str, better: str) -> None:
    """Print the paired statistics of FIRST and SECOND in a run's FOLDER, block by block."""
    table = folder / "table.csv"
    if not table.exists():
        raise click.ClickException(f"{folder} has no table.csv: it is no run folder")
    blocks = pairs(table, metric, first, second)
    if not blocks:
        raise click.ClickException(f"{table} has no {metric} of both {first} and {second}")
    for block, values in blocks.items():
        one, other = ([pair[k] for pair in values] for k in (0, 1))
        test = signed_rank(one, other)
        wins, draws, losses = win_draw_loss(other, one, better=better)
        z = "–" if test.z is None else f"{test.z:.2f}"
        click.echo(
            f"{block}: {second} against {first}, {metric}: win {wins}, draw {draws}, loss {losses};"
            f" n={test.n}, W+={test.w_plus:g}, Z={z}, p={test.p_greater:.4g}"
        )


if __name__ == "__main__":
    main()
