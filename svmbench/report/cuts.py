"""Find results on fewer rows than in the paper; their times aren't compared with the paper."""

from __future__ import annotations

from collections.abc import Sequence

from svmbench.base.paper_folders import papers
from svmbench.report.records import CellResult, Run
from svmbench.report.summary import measured

#: The profile of the full protocol.
FULL_PROFILE = "paper"
#: A sample with at least this share of the printed rows counts as the whole data set: a file may
#: have a few rows fewer than its paper prints.
WHOLE_SHARE = 0.98
#: A sweep covers the whole data set if its largest training part has this share of the printed
#: rows: four fifths, less a few rows for folds and classes.
WHOLE_TRAINING_SHARE = 0.75
#: A cut sample may lack a few rows because of folds and classes.
FILLED_SHARE = 0.98


def cut_to(run: Run, cells: Sequence[CellResult]) -> str:
    """Describe the reduced size of a data set in a run; return "" for the whole data set.

    Parameters
    ----------
    run : Run
    cells : sequence of Cell
        Cells of one data set.
    """
    if not cells:
        return ""
    dataset, paper = str(cells[0].dataset), papers().get(run.paper)
    printed = paper.datasets.get(dataset, {}).get("n_samples") if paper is not None else None
    blocks = dict.fromkeys(cell.block for cell in cells)
    most = max((run.blocks.get(name, {}).get("max_samples") or 0 for name in blocks), default=0)
    if most and isinstance(printed, int):
        return f"{most:,} of {printed:,} rows" if most < WHOLE_SHARE * printed else ""
    if run.profile == FULL_PROFILE:
        return ""
    if most:
        filled = any(_rows(cell) >= FILLED_SHARE * most for cell in cells)
        return f"at {most:,} rows" if filled else ""
    swept = [_rows(cell) for cell in cells if "rows" in cell.dimensions]
    if swept and isinstance(printed, int) and max(swept) < WHOLE_TRAINING_SHARE * printed:
        return f"{max(swept):,.0f} of {printed:,} rows"
    return ""


def is_cut(run: Run, cells: Sequence[CellResult]) -> bool:
    """Return True if the cells of a table entry used fewer rows than the paper.

    An entry of a sweep over sizes is compared with the printed number at its size.
    """
    return "rows" not in cells[0].dimensions and bool(cut_to(run, cells))


def _rows(cell: CellResult) -> float:
    """Return the number of training and test rows of a cell."""
    swept = cell.dimensions.get("rows")
    train = float(swept) if isinstance(swept, int | float) else measured(cell, "n_train")
    return (train or 0.0) + (measured(cell, "n_test") or 0.0)
