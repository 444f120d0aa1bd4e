"""SGD-LSSVM: Table II, columns an iteration, growth with N, iterations against the precision."""

from __future__ import annotations

import math

from svmbench.papers.judging.checks import cells_of, check, label, untested
from svmbench.papers.judging.entries import Claim
from svmbench.papers.judging.evidence import Evidence, Source
from svmbench.papers.judging.measures import OPEN, correlated, is_lower, seconds
from svmbench.papers.judging.parts import fastest_parts, growth_parts, within_best
from svmbench.papers.judging.verdict import Part
from svmbench.report.comparisons import rank_correlation
from svmbench.report.estimates import Estimate, estimates

SIX = ("sgd-lssvm", "svm-light", "cpsp", "libsvm", "nystrom", "icf")
#: Where the paper itself is not the fastest; Reuters stands in for RCV1.
NOT_CLAIMED = ("rcv1", "reuters", "shuttle", "shuttle-1-2")
#: The paper's sets that can be had.
TO_BE_HAD = ("svmguide1", "splice", "mushrooms", "a9a", "ijcnn1")


def _table2(kept: Evidence) -> list[Source]:
    """Return the runs of Table II; the bars of Figure 1 are of the same cells."""
    return kept.of("sgdlssvm_table2") or kept.of("sgdlssvm_fig1")


@check("sgdlssvm-1", datasets=TO_BE_HAD)
def fastest(claim: Claim, kept: Evidence) -> list[Part]:
    """Ask whether SGD-LSSVM takes the least time of the six on every set but RCV1 and Shuttle."""
    return [
        part
        for source in _table2(kept)
        for part in (
            *fastest_parts(claim, source, ["cv"], "sgd-lssvm", SIX),
            *untested(claim, source, ["cv"], "sgd-lssvm"),
        )
        if not part.what.startswith(NOT_CLAIMED)
    ]


@check("sgdlssvm-2", "points", datasets=TO_BE_HAD)
def accuracies(claim: Claim, kept: Evidence) -> list[Part]:
    """Ask whether its accuracy is within the limit of the best."""
    return [
        part
        for source in _table2(kept)
        for part in (
            *within_best(claim, source, ["cv"], "sgd-lssvm", SIX),
            *untested(claim, source, ["cv"], "sgd-lssvm"),
        )
    ]


@check("sgdlssvm-3", "correlation", "best")
def columns(claim: Claim, kept: Evidence) -> list[Part]:
    """Ask whether iterations fall and the time rises with t, and a small t takes the least time."""
    parts = []
    for source in kept.of(claim.configs[0]):
        time, iterations = (
            _series(source, "columns", metric, "solver.t") for metric in claim.metrics
        )
        for dataset, points in time.items():
            counted = iterations.get(dataset, [])
            if len(points) < 2 or len(counted) < 2:
                continue
            parts += [
                _trend(claim, source, f"{dataset}, iterations fall", counted, -1.0),
                _trend(claim, source, f"{dataset}, time rises", points, 1.0),
                _best(claim, source, dataset, points),
            ]
        parts += untested(claim, source, ["columns"], "sgd-lssvm")
    return parts


Points = list[tuple[float, Estimate]]


def _series(source: Source, block: str, metric: str, over: str) -> dict[str, Points]:
    """Return a metric of every data set against a dimension, ascending."""
    found: dict[str, Points] = {}
    for (dataset, swept), solvers in estimates(source.block(block), metric).items():
        x = dict(swept).get(over)
        for one in solvers.values():
            if isinstance(x, int | float):
                found.setdefault(dataset, []).append((float(x), one))
    return {name: sorted(points, key=lambda point: point[0]) for name, points in found.items()}


def _trend(claim: Claim, source: Source, what: str, points: Points, sign: float) -> Part:
    """Return whether values move one way; open where so few of them could not show it."""
    found = rank_correlation([x for x, _ in points], [one.value for _, one in points])
    text = ", ".join(f"{_short(one.value)} at t={x:g}" for x, one in points)
    said = f"Spearman {found.rho:+.2f} over {len(points)} values (p {found.p:.2g}): {text}"
    holds = correlated(sign * found.rho, len(points), claim.limits["correlation"])
    dataset = str(points[0][1].cells[0].dataset)
    return Part(
        label(source, what),
        holds,
        said.replace("-", "−"),
        "",
        cells_of(*(one for _, one in points)),
        stand_in=dataset in claim.stand_ins,
    )


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _best(claim: Claim, source: Source, dataset: str, points: Points) -> Part:
    metric, limit = claim.metrics[0], claim.limits["best"]
    t, least = min(points, key=lambda point: point[1].value)
    small, large = (
        min((one for x, one in points if (x <= limit) is side), key=lambda e: e.value, default=None)
        for side in (True, False)
    )
    holds = is_lower(small, large, metric) if small and large else OPEN
    said = f"the least time, {seconds(least.value)}, at t={t:g}"
    cells = cells_of(*(one for _, one in points))
    return Part(
        label(source, f"{dataset}, best t"), holds, said, claim.printed, cells,
        stand_in=dataset in claim.stand_ins,
    )  # fmt: skip


@check("sgdlssvm-4", "low", "high")
def linear_in_rows(claim: Claim, kept: Evidence) -> list[Part]:
    """Ask whether the time grows with an exponent in the window."""
    window = claim.limits["low"], claim.limits["high"]
    return [
        part
        for source in kept.of(claim.configs[0])
        for part in (
            *growth_parts(claim, source, "fig5", ["sgd-lssvm"], window),
            *untested(claim, source, ["fig5"], "sgd-lssvm"),
        )
    ]


#: A line through fewer points fits whatever they are.
FEWEST_ON_A_LINE = 4


@check("sgdlssvm-5", "r_squared")
def logarithmic(claim: Claim, kept: Evidence) -> list[Part]:
    """Ask whether iterations lie on a line in log 1/epsilon, for an easy and a hard C."""
    parts = []
    for source in kept.of(claim.configs[0]):
        for block in ("epsilon", "hard"):
            for dataset, points in _series(source, block, claim.metrics[0], "solver.tol").items():
                kept_points = [(math.log10(1.0 / x), one) for x, one in points if x > 0]
                if len(kept_points) < 2:
                    continue
                r = _correlation([(x, one.value) for x, one in kept_points])
                few = len(kept_points) < FEWEST_ON_A_LINE
                said = f"R² {r * r:.4f} over {len(kept_points)} values of epsilon"
                said += f", {points[-1][1].value:,.0f} to {points[0][1].value:,.0f} iterations"
                parts.append(
                    Part(
                        label(source, block, dataset),
                        OPEN
                        if few
                        else correlated(r, len(kept_points), math.sqrt(claim.limits["r_squared"])),
                        said,
                        "",
                        cells_of(*(one for _, one in points)),
                    )
                )
    return parts


def _correlation(points: list[tuple[float, float]]) -> float:
    """Return Pearson's r; 0 for values that are all alike."""
    xs, ys = zip(*points, strict=True)
    mean_x, mean_y = math.fsum(xs) / len(xs), math.fsum(ys) / len(ys)
    xy = math.fsum((x - mean_x) * (y - mean_y) for x, y in points)
    xx = math.fsum((x - mean_x) ** 2 for x in xs)
    yy = math.fsum((y - mean_y) ** 2 for y in ys)
    return xy / math.sqrt(xx * yy) if xx and yy else 0.0
