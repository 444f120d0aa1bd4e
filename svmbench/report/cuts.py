"""Which results are of fewer rows than the paper's, so that they stand beside no printed time."""

from __future__ import annotations

from collections.abc import Sequence

from svmbench.base.paper_folders import papers
from svmbench.report.records import Cell, Run
from svmbench.report.summary import measured

#: The profile of the full protocol.
FULL = "paper"
#: A sample is whole from this share of the printed rows on: a file may have a few rows fewer than
#: its paper prints.
WHOLE_SHARE = 0.98
#: A sweep is of the whole set where its largest training part has this share of the printed rows:
#: four fifths, less what folds and classes take.
WHOLE_TRAINING_SHARE = 0.75
#: Folds and classes take a few rows of a cut sample.
FILLED_SHARE = 0.98


def cut_to(run: Run, cells: Sequence[Cell]) -> str:
    """Return to how many rows a data set was cut in a run, in words; nothing where it is whole.

    Parameters
    ----------
    run : Run
    cells : sequence of Cell
        Of one data set.
    """
    if not cells:
        return ""
    dataset, paper = str(cells[0].dataset), papers().get(run.paper)
    printed = paper.datasets.get(dataset, {}).get("n_samples") if paper is not None else None
    blocks = dict.fromkeys(cell.block for cell in cells)
    most = max((run.blocks.get(name, {}).get("max_samples") or 0 for name in blocks), default=0)
    if most and isinstance(printed, int):
        return f"{most:,} of {printed:,} rows" if most < WHOLE_SHARE * printed else ""
    if run.profile == FULL:
        return ""
    if most:
        filled = any(_rows(cell) >= FILLED_SHARE * most for cell in cells)
        return f"at {most:,} rows" if filled else ""
    swept = [_rows(cell) for cell in cells if "rows" in cell.dimensions]
    if swept and isinstance(printed, int) and max(swept) < WHOLE_TRAINING_SHARE * printed:
        return f"{max(swept):,.0f} of {printed:,} rows"
    return ""


def is_cut(run: Run, cells: Sequence[Cell]) -> bool:
    """Return whether cells of one table entry are of fewer rows than what the paper prints there.

    An entry of a size that is swept stands beside what is printed at that size.
    """
    return "rows" not in cells[0].dimensions and bool(cut_to(run, cells))


def _rows(cell: Cell) -> float:
    """Return the rows that a cell trained on and was tested on."""
    swept = cell.dimensions.get("rows")
    train = float(swept) if isinstance(swept, int | float) else measured(cell, "n_train")
    return (train or 0.0) + (measured(cell, "n_test") or 0.0)
