"""Parts that several papers' claims have: fastest, near the best, growth within a window."""

from __future__ import annotations

from collections.abc import Sequence

from svmbench.papers.judging.checks import (
    cells_of,
    condition_text,
    first_missing_cells,
    part_label,
    printed_text,
    undecided_if_missing,
)
from svmbench.papers.judging.entries import Claim
from svmbench.papers.judging.evidence import Source
from svmbench.papers.judging.measures import (
    all_of,
    answer_exponent_in,
    answer_lag_at_most,
    answer_lower,
    format_seconds,
    format_signed,
    format_value,
    growth,
    spelt,
)
from svmbench.papers.judging.verdict import Part, size_of
from svmbench.report.numbers.estimates import Estimate, difference, estimates


def fastest_parts(
    claim: Claim, source: Source, blocks: Sequence[str], solver: str, rivals: Sequence[str]
) -> list[Part]:
    """Return for each data set whether a solver is faster than every rival."""
    metric, parts = claim.metrics[0], []
    for condition, solvers in estimates(source.finished_cells(*blocks), metric).items():
        others = {name: solvers[name] for name in rivals if name in solvers and name != solver}
        if solver not in solvers or not others:
            continue
        own = solvers[solver]
        quickest = min(others, key=lambda name: others[name].value)
        answer = all_of(answer_lower(own, estimate, metric) for estimate in others.values())
        answer, lacking = undecided_if_missing(
            answer, first_missing_cells(source, blocks, condition[0], rivals)
        )
        measured = f"{solver} {format_seconds(own.value)}, "
        measured += f"{quickest} {format_seconds(others[quickest].value)}"
        printed = printed_text(
            claim, claim.where, condition[0], "train_time_s", (solver, quickest), " s"
        )
        parts.append(
            Part(
                part_label(source, condition_text(condition)),
                answer,
                measured + lacking,
                printed,
                cells_of(own, *others.values()),
                stand_in=condition[0] in claim.stand_ins,
            )
        )
    return parts


def within_best(
    claim: Claim, source: Source, blocks: Sequence[str], solver: str, rivals: Sequence[str]
) -> list[Part]:
    """Return for each data set whether a solver's score is near the best of all."""
    metric, limit, parts = claim.metrics[0], claim.limits["points"], []
    for condition, solvers in estimates(source.finished_cells(*blocks), metric).items():
        present = {
            name: solvers[name] for name in dict.fromkeys((*rivals, solver)) if name in solvers
        }
        if solver not in present or len(present) < 2:
            continue
        best = max(present, key=lambda name: present[name].value)
        behind = difference(present[best], present[solver], metric)
        answer = all_of(
            answer_lag_at_most(difference(estimate, present[solver], metric), limit)
            for name, estimate in present.items()
            if name != solver
        )
        answer, lacking = undecided_if_missing(
            answer, first_missing_cells(source, blocks, condition[0], rivals)
        )
        text = f"{solver} {format_value(metric, present[solver].value)} %, "
        text += f"{format_signed(-behind.value)} against {best}" if best != solver else "the best"
        parts.append(
            Part(
                part_label(source, f"{solver} on {condition_text(condition)}"),
                answer,
                text + lacking,
                printed_text(claim, claim.where, condition[0], metric, (solver, best), " %"),
                cells_of(*present.values()),
                stand_in=condition[0] in claim.stand_ins,
            )
        )
    return parts


def growth_parts(
    claim: Claim,
    source: Source,
    block: str,
    solvers: Sequence[str],
    window: tuple[float, float],
    metric: str = "",
) -> list[Part]:
    """Return for each data set and solver whether a metric's exponent in N is in a window."""
    metric = metric or claim.metrics[0]
    series: dict[tuple[str, str], list[tuple[float, Estimate]]] = {}
    for (dataset, _), by_solver in estimates(source.finished_cells(block), metric).items():
        for solver in solvers:
            size = size_of(by_solver[solver].cells[0]) if solver in by_solver else None
            if size:
                series.setdefault((dataset, solver), []).append((size, by_solver[solver]))
    parts = []
    for (dataset, solver), points in series.items():
        law = growth((size, estimate.value) for size, estimate in points)
        sizes = [size for size, _ in points]
        text = f"{spelt(law)}, {min(sizes):,.0f} to {max(sizes):,.0f} rows"
        parts.append(
            Part(
                part_label(source, f"{solver} on {dataset}"),
                answer_exponent_in(law, *window),
                text,
                claim.printed,
                cells_of(*(estimate for _, estimate in points)),
                stand_in=dataset in claim.stand_ins,
            )
        )
    return parts
