"""SGD-LSSVM: Table II, columns an iteration, growth with N, iterations against the precision."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from svmbench.papers.judging.checks import cells_of, check, part_label, untested
from svmbench.papers.judging.entries import LINEAR_WINDOW, Claim
from svmbench.papers.judging.evidence import Evidence, Source
from svmbench.papers.judging.measures import (
    NO_ANSWER,
    all_of,
    answer_lower,
    correlated,
    counted,
    format_seconds,
    within_limits,
)
from svmbench.papers.judging.parts import fastest_parts, growth_parts, within_best
from svmbench.papers.judging.verdict import Part
from svmbench.report.numbers.comparisons import rank_correlation
from svmbench.report.numbers.estimates import Estimate, difference, estimates

_TABLE2_SOLVERS = ("sgd-lssvm", "svm-light", "cpsp", "libsvm", "nystrom", "icf")
#: The data sets on which the paper doesn't claim the fastest time; Reuters stands in for RCV1.
_SLOWER_DATASETS = ("rcv1", "reuters", "shuttle", "shuttle-1-2")
#: The data sets of Table II and of Figures 2 to 5, each with the names of its parts and stand-ins.
_TABLE2_DATASETS = (
    "svmguide1", "splice", "mushrooms", "a9a", "ijcnn1", "shuttle|shuttle-1-2",
    "cod-rna|cod-rna-train", "rcv1|reuters",
)  # fmt: skip
_FASTEST_DATASETS = tuple(
    name for name in _TABLE2_DATASETS if not name.startswith(_SLOWER_DATASETS)
)
_FIGURE_DATASETS = ("rcv1|reuters", "ijcnn1")


def _table2(evidence: Evidence) -> tuple[list[Source], list[str]]:
    """Return the runs of Table II, or of Figure 1, which shows the same cells, and their blocks.

    If any run has results of block ``chosen``, it gives the five other solvers, at the point that
    an exact solver chooses; block ``own`` gives SGD-LSSVM, at the point that it chooses itself, and
    SGD-LSSVM's cells of ``chosen`` are left out. Otherwise block ``cv`` gives all six solvers, each
    at the point that it chooses itself.
    """
    sources = evidence.runs_that_count("sgdlssvm_table2") or evidence.runs_that_count(
        "sgdlssvm_fig1"
    )
    by_exact_solvers = [source for source in sources if source.finished_cells("chosen")]
    if not by_exact_solvers:
        return sources, ["cv"]
    return [
        replace(
            source,
            cells=tuple(
                cell
                for cell in source.cells
                if (cell.block, cell.solver) != ("chosen", "sgd-lssvm")
            ),
            alone=len(by_exact_solvers) == 1,
        )
        for source in by_exact_solvers
    ], ["chosen", "own"]


@check("sgdlssvm-1", datasets=_FASTEST_DATASETS)
def fastest_of_six(claim: Claim, evidence: Evidence) -> list[Part]:
    """Ask whether SGD-LSSVM takes the least time of the six on every set but RCV1 and Shuttle."""
    sources, blocks = _table2(evidence)
    return [
        part
        for source in sources
        for part in (
            *fastest_parts(claim, source, blocks, "sgd-lssvm", _TABLE2_SOLVERS),
            *untested(claim, source, blocks, "sgd-lssvm"),
        )
        if not part.what.startswith(_SLOWER_DATASETS)
    ]


@check("sgdlssvm-2", "points", datasets=_TABLE2_DATASETS)
def accuracy_within_limit(claim: Claim, evidence: Evidence) -> list[Part]:
    """Ask whether SGD-LSSVM's accuracy is at most the limit below the best."""
    sources, blocks = _table2(evidence)
    return [
        part
        for source in sources
        for part in (
            *within_best(claim, source, blocks, "sgd-lssvm", _TABLE2_SOLVERS),
            *untested(claim, source, blocks, "sgd-lssvm"),
        )
    ]


@check("sgdlssvm-3", "correlation", "best", datasets=_FIGURE_DATASETS)
def columns(claim: Claim, evidence: Evidence) -> Iterator[Part]:
    """Ask whether iterations fall and the time rises with t, and a small t takes the least time."""
    for source in evidence.runs_that_count(claim.configs[0]):
        time, iterations = (
            _series(source, "columns", metric, "solver.t") for metric in claim.metrics
        )
        for dataset, points in time.items():
            steps = iterations.get(dataset, [])
            if len(points) < 2 or len(steps) < 2:
                continue
            yield from [
                _trend(claim, source, f"{dataset}, iterations fall", steps, -1.0),
                _trend(claim, source, f"{dataset}, time rises", points, 1.0),
                _best(claim, source, dataset, points),
            ]
        yield from untested(claim, source, ["columns"], "sgd-lssvm")


_SizeCurve = list[tuple[float, Estimate]]


def _series(source: Source, block: str, metric: str, over: str) -> dict[str, _SizeCurve]:
    """Return a metric of every data set against a dimension, ascending."""
    series: dict[str, _SizeCurve] = {}
    for (dataset, swept), solvers in estimates(source.finished_cells(block), metric).items():
        x = dict(swept).get(over)
        for estimate in solvers.values():
            if isinstance(x, int | float):
                series.setdefault(dataset, []).append((float(x), estimate))
    return {name: sorted(points, key=lambda point: point[0]) for name, points in series.items()}


def _trend(claim: Claim, source: Source, what: str, points: _SizeCurve, sign: float) -> Part:
    """Judge if the values rise (`sign` 1) or fall (-1) with t; undecided with too few values."""
    correlation = rank_correlation(
        [x for x, _ in points], [estimate.value for _, estimate in points]
    )
    text = ", ".join(f"{_short(estimate.value)} at t={x:g}" for x, estimate in points)
    measured = (
        f"Spearman {correlation.rho:+.2f} over {len(points)} values (p {correlation.p:.2g}): {text}"
    )
    answer = correlated(sign * correlation.rho, len(points), claim.limits["correlation"])
    dataset = str(points[0][1].cells[0].dataset)
    return Part(
        part_label(source, what),
        answer,
        measured.replace("-", "−"),
        "",
        cells_of(*(estimate for _, estimate in points)),
        stand_in=dataset in claim.stand_ins,
    )


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _best(claim: Claim, source: Source, dataset: str, points: _SizeCurve) -> Part:
    metric, limit = claim.metrics[0], claim.limits["best"]
    t, least = min(points, key=lambda point: point[1].value)
    small, large = (
        min(
            (estimate for x, estimate in points if (x <= limit) is side),
            key=lambda e: e.value,
            default=None,
        )
        for side in (True, False)
    )
    answer = answer_lower(small, large, metric) if small and large else NO_ANSWER
    measured = f"the least time, {format_seconds(least.value)}, at t={t:g}"
    cells = cells_of(*(estimate for _, estimate in points))
    return Part(
        part_label(source, f"{dataset}, best t"), answer, measured, claim.printed, cells,
        stand_in=dataset in claim.stand_ins,
    )  # fmt: skip


@check("sgdlssvm-4", *LINEAR_WINDOW, datasets=_FIGURE_DATASETS)
def time_linear_in_rows(claim: Claim, evidence: Evidence) -> list[Part]:
    """Ask whether the time grows with an exponent in the window."""
    window = claim.limits["linear_low"], claim.limits["linear_high"]
    return [
        part
        for source in evidence.runs_that_count(claim.configs[0])
        for part in (
            *growth_parts(claim, source, "fig5", ["sgd-lssvm"], window),
            *untested(claim, source, ["fig5"], "sgd-lssvm"),
        )
    ]


#: Number of last steps of epsilon over which the growth is judged: the claim is asymptotic.
_LAST_STEPS = 3


@check("sgdlssvm-5", "factor")
def logarithmic(claim: Claim, evidence: Evidence) -> Iterator[Part]:
    """Ask whether each of the last decades of epsilon adds about the same number of iterations."""
    for source in evidence.runs_that_count(claim.configs[0]):
        for block in ("epsilon", "hard"):
            for dataset, points in _series(source, block, claim.metrics[0], "solver.tol").items():
                iterations = sorted(
                    (math.log10(1.0 / x), estimate.value) for x, estimate in points if x > 0
                )
                added = [
                    max(1.0, (b - a) / (to - start))  # iterations a decade, at least one
                    for (start, a), (to, b) in pairwise(iterations)
                ][-_LAST_STEPS:]
                if len(added) < _LAST_STEPS:
                    continue
                factors = [later / before for before, later in pairwise(added)]
                measured = f"{iterations[0][1]:,.0f} to {iterations[-1][1]:,.0f} iterations, "
                measured += "the last decades add "
                measured += f"{', '.join(f'{count:,.0f}' for count in added)}"
                what = part_label(source, block, dataset)
                answer = all_of(counted(ratio, at_most=claim.limits["factor"]) for ratio in factors)
                yield Part(
                    what, answer, measured, "", cells_of(*(estimate for _, estimate in points))
                )


@check("sgdlssvm-6", "points", datasets=_FIGURE_DATASETS)
def stable_accuracy(claim: Claim, evidence: Evidence) -> Iterator[Part]:
    """Ask whether the accuracies at all t differ by at most the limit."""
    metric, limit = claim.metrics[0], claim.limits["points"]
    for source in evidence.runs_that_count(claim.configs[0]):
        for dataset, points in _series(source, "columns", metric, "solver.t").items():
            if len(points) < 2:
                continue
            (t_low, low), (t_high, high) = (
                end(points, key=lambda point: point[1].value) for end in (min, max)
            )
            apart = difference(high, low, metric)
            measured = f"{low.value:.2f} % at t={t_low:g} to {high.value:.2f} % at t={t_high:g}, "
            measured += f"{apart.spelt()} points apart"
            cells = cells_of(*(estimate for _, estimate in points))
            what, stand_in = part_label(source, dataset), dataset in claim.stand_ins
            yield Part(
                what, within_limits(apart, at_most=limit), measured, "", cells, stand_in=stand_in
            )
        yield from untested(claim, source, ["columns"], "sgd-lssvm")


@check("sgdlssvm-7", "linear_high", datasets=_FIGURE_DATASETS)
def iterations_in_rows(claim: Claim, evidence: Evidence) -> Iterator[Part]:
    """Ask whether the iterations grow at most linearly with the rows."""
    for source in evidence.runs_that_count(claim.configs[0]):
        # The claim is an upper bound, so that the window has no lower end.
        window = -math.inf, claim.limits["linear_high"]
        yield from growth_parts(claim, source, "fig5", ["sgd-lssvm"], window)
        yield from untested(claim, source, ["fig5"], "sgd-lssvm")
