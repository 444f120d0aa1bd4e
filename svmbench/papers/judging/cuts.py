"""Parts that decide neither way, because their records are of fewer rows than the paper's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from svmbench.base.paper_folders import Paper
from svmbench.papers.judging.entries import Claim
from svmbench.papers.judging.evidence import FULL, LEAST, Evidence, Source
from svmbench.papers.judging.verdict import Part, size_of
from svmbench.report.records import Cell
from svmbench.report.summary import measured

#: A sample is whole from this share of the printed rows on: a file may have a few rows more or
#: fewer than its paper prints, and a training part of four fifths is of the whole sample.
WHOLE_SHARE = 0.75


def whole_alone(parts: Sequence[Part], claim: Claim, paper: Paper, kept: Evidence) -> list[Part]:
    """Return parts, of which those that rest on cut records are open and say why.

    Parameters
    ----------
    parts : sequence of Part
    claim : Claim
    paper : Paper
        What it prints of its data sets tells the rows.
    kept : Evidence
    """
    of_cell: dict[str, Source] = {}
    for found in kept.sources.values():
        for source in found:
            if source.run.paper == paper.key:
                named = source.run.name in claim.configs
                of_cell.update(
                    (cell.key, source) for cell in source.cells if named or cell.key not in of_cell
                )
    return [replace(part, cut=_why_cut(part, paper, of_cell)) for part in parts]


def _why_cut(part: Part, paper: Paper, of_cell: dict[str, Source]) -> str:
    """Return which data sets of a part were cut, and by which profile; nothing for a whole one."""
    pairs = [(cell, of_cell[cell.key]) for cell in part.cells if cell.key in of_cell]
    profiles = list(dict.fromkeys(source.profile for _, source in pairs))
    if LEAST in profiles:
        return f"profile {LEAST}"
    cut: dict[str, str] = {}
    for dataset in dict.fromkeys(cell.dataset for cell, _ in pairs if cell.dataset):
        own = [(cell, source) for cell, source in pairs if cell.dataset == dataset]
        rows = _cut_to(str(dataset), own, paper)
        if rows:
            cut[str(dataset)] = rows
    if not cut:
        return ""
    named = "; ".join(f"{name} {said}" for name, said in list(cut.items())[:3])
    more = f" and {len(cut) - 3} more" if len(cut) > 3 else ""
    return f"cut: {named}{more} (profile {', '.join(profiles)})"


def _cut_to(dataset: str, pairs: Sequence[tuple[Cell, Source]], paper: Paper) -> str:
    """Return to how many rows a data set was cut; nothing where it was not."""
    printed = paper.datasets.get(dataset, {}).get("n_samples")
    if "[:" in dataset:
        return "by its name"
    limits = [
        limit
        for cell, source in pairs
        if (limit := source.run.blocks.get(cell.block, {}).get("max_samples") or 0)
    ]
    if limits:
        most = max(limits)
        if isinstance(printed, int):
            return f"{most:,} of {printed:,} rows" if most < WHOLE_SHARE * printed else ""
        partial = any(source.profile != FULL for _, source in pairs)
        filled = any(_rows(cell) >= 0.98 * most for cell, _ in pairs)
        return f"at {most:,} rows" if partial and filled else ""
    swept = [_rows(cell) for cell, _ in pairs if "rows" in cell.dimensions]
    partial = all(source.profile != FULL for _, source in pairs)
    if swept and partial and isinstance(printed, int) and max(swept) < WHOLE_SHARE * printed:
        return f"{max(swept):,.0f} of {printed:,} rows"
    return ""


def _rows(cell: Cell) -> float:
    """Return the rows that a cell trained on and was tested on."""
    return (size_of(cell) or 0.0) + (measured(cell, "n_test") or 0.0)
