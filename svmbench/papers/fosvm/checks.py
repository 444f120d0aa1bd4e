"""FOSVM: scores and times of novelty detection, growth with N, hits of random draws."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from svmbench.papers.judging.checks import cells_of, check, condition_text, part_label, untested
from svmbench.papers.judging.entries import LINEAR_WINDOW, Claim
from svmbench.papers.judging.evidence import Evidence, Source
from svmbench.papers.judging.measures import (
    NO_ANSWER,
    Answer,
    all_of,
    answer_exponent_at_most,
    answer_exponent_in,
    answer_lag_at_most,
    counted,
    format_signed,
    format_value,
    growth,
    spelt,
    times_between,
    within_limits,
)
from svmbench.papers.judging.verdict import Part, size_of
from svmbench.report.numbers.estimates import Estimate, difference, estimates, ratio
from svmbench.report.numbers.statistics import Interval

BLOCKS = ("small", "medium", "large")
OURS = ("fosvm1", "fosvm2")
#: The paper compares with LIBSVM, whose one-class SVM and SVDD have one solution for an RBF kernel.
REFERENCE = "libsvm-oneclass"
#: This suite's own, which are shown beside it and decide nothing.
BESIDE = ("one-class", "svdd")

#: The values of a metric over the number of rows, or over 1/theta.
_Curve = list[tuple[float, Estimate]]


@check("fosvm-1", "points", "ratio")
def as_good_and_faster(claim: Claim, evidence: Evidence) -> Iterator[Part]:
    """Ask whether AUC is within the limit of LIBSVM's one-class SVM, at a fraction of its time."""
    score, time = claim.metrics
    for source in evidence.runs_that_count(claim.configs[0]):
        scores = estimates(source.finished_cells(*BLOCKS), score)
        costs = estimates(source.finished_cells(*BLOCKS), time)
        for condition, solvers in scores.items():
            for name in OURS:
                what = part_label(source, f"{name} on {condition_text(condition)}")
                if part := _judge(claim, what, name, solvers, costs.get(condition, {})):
                    yield replace(part, stand_in=condition[0] in claim.stand_ins)
        yield from untested(claim, source, BLOCKS, *OURS)


def _judge(
    claim: Claim,
    what: str,
    name: str,
    scores: dict[str, Estimate],
    costs: dict[str, Estimate],
) -> Part | None:
    """Judge whether a solver is as good as the reference and faster; None without both scores."""
    if name not in scores or REFERENCE not in scores:
        return None
    score, time = claim.metrics
    solver, reference = scores[name], scores[REFERENCE]
    as_good = answer_lag_at_most(difference(reference, solver, score), claim.limits["points"])
    ahead = difference(solver, reference, score).spelt()
    measured = f"AUC {format_value(score, solver.value)} %, {ahead} against {REFERENCE}"
    beside = [
        f"{format_signed(solver.value - scores[other].value)} against {other}"
        for other in BESIDE
        if other in scores
    ]
    text, used, faster = [_with(measured, beside)], [solver, reference], NO_ANSWER
    if name in costs and REFERENCE in costs and costs[name].value > 0.0:
        solver, reference = costs[name], costs[REFERENCE]
        times = ratio(reference, solver, time)
        faster = within_limits(times, at_least=claim.limits["ratio"])
        beside = [
            f"{times_between(ratio(costs[other], solver, time))} as {other}"
            for other in BESIDE
            if other in costs
        ]
        text.append(_with(f"{times_between(times)} as fast as {REFERENCE}", beside))
        used += [solver, reference]
    return Part(what, all_of([as_good, faster]), "; ".join(text), "", cells_of(*used))


def _with(measured: str, beside: list[str]) -> str:
    """Return a sentence with the ratios to this suite's own solvers, which decide nothing."""
    return measured + (f" (and {', '.join(beside)} of this suite)" if beside else "")


@check("fosvm-2", "iterations", *LINEAR_WINDOW)
def linear_and_bounded(claim: Claim, evidence: Evidence) -> Iterator[Part]:
    """Ask whether iterations grow with 1/theta alone, within the bound; the time linearly in N."""
    time, iterations, active, bound = claim.metrics
    for source in evidence.runs_that_count(claim.configs[0]):
        series = {
            metric: _by_solver(source, metric, "fosvm1")
            for metric in (time, iterations, active, bound)
        }
        for name, points in series[iterations].items():
            law = growth((x, estimate.value) for x, estimate in points)
            flat = claim.limits["iterations"]
            yield _law(source, f"{name}, iterations", answer_exponent_in(law, -flat, flat), points)
            timed = series[time].get(name, [])
            law = growth((x, estimate.value) for x, estimate in timed)
            window = claim.limits["linear_low"], claim.limits["linear_high"]
            yield _law(source, f"{name}, time", answer_exponent_in(law, *window), timed)
            yield from _bounded(
                source, name, series[active].get(name, []), series[bound].get(name, [])
            )
    for source in evidence.runs_that_count(claim.configs[1]):
        yield from _in_theta(claim, source, iterations)


def _in_theta(claim: Claim, source: Source, metric: str) -> list[Part]:
    """Judge for each data set if FOSVM1's iterations grow at most linearly with 1/theta."""
    curves: dict[str, _Curve] = {}
    for (dataset, swept), solvers in estimates(source.finished_cells("theta"), metric).items():
        theta = dict(swept).get("solver.theta")
        if isinstance(theta, int | float) and theta > 0 and "fosvm1" in solvers:
            curves.setdefault(dataset, []).append((1.0 / theta, solvers["fosvm1"]))
    parts = []
    for dataset, points in curves.items():
        law, ends = growth((x, estimate.value) for x, estimate in points), [x for x, _ in points]
        measured = f"{spelt(law)}, 1/θ {min(ends):g} to {max(ends):g}"
        holds = answer_exponent_at_most(law, claim.limits["linear_high"])
        cells = cells_of(*(estimate for _, estimate in points))
        what = part_label(source, f"fosvm1 on {dataset}, iterations in 1/θ")
        parts.append(Part(what, holds, measured, "", cells))
    return parts


def _by_solver(source: Source, metric: str, prefix: str) -> dict[str, _Curve]:
    """Return a metric against the number of rows, by the solver's label."""
    curves: dict[str, _Curve] = {}
    for solvers in estimates(source.finished_cells("scaling"), metric).values():
        for name, estimate in solvers.items():
            size = size_of(estimate.cells[0])
            if name.startswith(prefix) and size:
                curves.setdefault(name, []).append((size, estimate))
    return curves


def _law(source: Source, what: str, holds: Answer, points: _Curve) -> Part:
    """Return a part whose measured value is the exponent of a curve."""
    law = growth((x, estimate.value) for x, estimate in points)
    rows = [x for x, _ in points]
    measured = spelt(law) + (f", {min(rows):,.0f} to {max(rows):,.0f} rows" if rows else "")
    return Part(
        part_label(source, what),
        holds,
        measured,
        "",
        cells_of(*(estimate for _, estimate in points)),
    )


def _bounded(source: Source, name: str, active: _Curve, bound: _Curve) -> list[Part]:
    """Judge if the active set has at most as many samples as Theorem 2 allows, at every size."""
    allowed = dict(bound)
    pairs = [(estimate, allowed[x]) for x, estimate in active if x in allowed]
    if not pairs:
        return []
    below = sum(estimate.value <= most.value for estimate, most in pairs)
    nearest = min(most.value / estimate.value for estimate, most in pairs if estimate.value > 0)
    measured = (
        f"within the bound at {below} of {len(pairs)} sizes, at least {nearest:,.3g} times below"
    )
    cells = cells_of(*(estimate for pair in pairs for estimate in pair))
    holds = all_of(counted(most.value - estimate.value, at_least=0.0) for estimate, most in pairs)
    return [Part(part_label(source, f"{name}, bound"), holds, measured, "", cells)]


@check("fosvm-3", "exponent", "share_pct", "candidates", "draws")
def constant_and_sampled(claim: Claim, evidence: Evidence) -> Iterator[Part]:
    """Ask whether FOSVM2's time does not grow with N, and 59 draws hit the lowest 5 %."""
    time, hits = claim.metrics
    for source in evidence.runs_that_count(claim.configs[0]):
        for name, points in _by_solver(source, time, "fosvm2").items():
            law = growth((x, estimate.value) for x, estimate in points)
            holds = answer_exponent_at_most(law, claim.limits["exponent"])
            yield _law(source, f"{name}, time", holds, points)
    for source in evidence.runs_that_count(claim.configs[1]):
        low, high = (
            estimates(source.finished_cells("draws"), f"hit_{end}_pct") for end in ("low", "high")
        )
        for condition, solvers in estimates(source.finished_cells("draws"), hits).items():
            if dict(condition[1]).get("solver.n_candidates") != claim.limits["candidates"]:
                continue
            for name, estimate in solvers.items():
                ends = low.get(condition, {}).get(name), high.get(condition, {}).get(name)
                yield _hit(claim, source, condition[0], estimate, ends)


def _hit(
    claim: Claim,
    source: Source,
    dataset: str,
    estimate: Estimate,
    ends: tuple[Estimate | None, Estimate | None],
) -> Part:
    """Judge if a random draw has one of the lowest 5 % as often as the paper says."""
    share, draws = claim.limits["share_pct"], source.run.blocks.get("draws", {}).get("repeats")
    measured, holds = f"{estimate.value:.3f} %", NO_ANSWER
    if ends[0] is not None and ends[1] is not None:
        measured += f" [{ends[0].value:.3f}, {ends[1].value:.3f}]"
        holds = within_limits(
            Interval(estimate.value, ends[0].value, ends[1].value), at_least=share
        )
    few = not isinstance(draws, int | float) or draws < claim.limits["draws"]
    if few:
        measured, holds = f"{measured}, of too few draws ({draws})", NO_ANSWER
    what = part_label(source, f"{dataset}, hits of {claim.limits['candidates']:g} draws")
    return Part(what, holds, measured, claim.printed, estimate.cells)
