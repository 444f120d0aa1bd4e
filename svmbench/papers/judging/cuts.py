"""Parts that decide neither way, because their records are of fewer rows than the paper's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from svmbench.base.paper_folders import Paper
from svmbench.papers.judging.entries import Claim
from svmbench.papers.judging.evidence import LEAST, Evidence, Source
from svmbench.papers.judging.verdict import Part
from svmbench.report.cuts import cut_to


def whole_alone(parts: Sequence[Part], claim: Claim, paper: Paper, kept: Evidence) -> list[Part]:
    """Return parts, of which those that rest on cut records are open and say why.

    Parameters
    ----------
    parts : sequence of Part
    claim : Claim
    paper : Paper
        Whose claim it is.
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
    return [replace(part, cut=_why_cut(part, of_cell)) for part in parts]


def _why_cut(part: Part, of_cell: dict[str, Source]) -> str:
    """Return which data sets of a part were cut, and by which profile; nothing for a whole one."""
    pairs = [(cell, of_cell[cell.key]) for cell in part.cells if cell.key in of_cell]
    profiles = list(dict.fromkeys(source.profile for _, source in pairs))
    if LEAST in profiles:
        return f"profile {LEAST}"
    cut: dict[str, str] = {}
    for source in {id(source): source for _, source in pairs}.values():
        own = [cell for cell, of in pairs if of is source]
        for dataset in dict.fromkeys(cell.dataset for cell in own if cell.dataset):
            rows = cut_to(source.run, [cell for cell in own if cell.dataset == dataset])
            if rows:
                cut[dataset] = rows
    if not cut:
        return ""
    named = "; ".join(f"{name} {said}" for name, said in list(cut.items())[:3])
    more = f" and {len(cut) - 3} more" if len(cut) > 3 else ""
    return f"cut: {named}{more} (profile {', '.join(profiles)})"
