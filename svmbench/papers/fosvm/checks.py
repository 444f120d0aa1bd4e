"""FOSVM: how well and how fast novelty is learnt, growth with N, draws that hit the lowest."""

from __future__ import annotations

from svmbench.papers.judging.checks import cells_of, check, label, place_text, untested
from svmbench.papers.judging.entries import Claim
from svmbench.papers.judging.evidence import Evidence, Source
from svmbench.papers.judging.measures import (
    figure,
    growth,
    is_at_most,
    is_inside,
    is_within,
    signed,
    spelt,
    times,
)
from svmbench.papers.judging.verdict import Part, size_of
from svmbench.report.estimates import Estimate, difference, estimates

BLOCKS = ("small", "medium", "large")
OURS, OTHERS = ("fosvm1", "fosvm2"), ("one-class", "svdd")


@check("fosvm-1", "points", "ratio")
def as_good_and_faster(claim: Claim, kept: Evidence) -> list[Part]:
    """Ask whether AUC within the limit of OC-SVM's and SVDD's, at a fraction of their time."""
    score, time = claim.metrics
    parts = []
    for source in kept.of(claim.configs[0]):
        scores = estimates(source.block(*BLOCKS), score)
        costs = estimates(source.block(*BLOCKS), time)
        for place, solvers in scores.items():
            for name in OURS:
                what = label(source, f"{name} on {place_text(place)}")
                parts += _learnt(claim, what, name, solvers)
                parts += _cost(claim, what, name, costs.get(place, {}))
        parts += [part for name in OURS for part in untested(claim, source, BLOCKS, name)]
    return parts


def _learnt(claim: Claim, what: str, name: str, solvers: dict[str, Estimate]) -> list[Part]:
    others = {other: solvers[other] for other in OTHERS if other in solvers}
    if name not in solvers or not others:
        return []
    best = max(others, key=lambda other: others[other].value)
    behind = difference(others[best], solvers[name], claim.metrics[0])
    holds = is_within(behind, claim.limits["points"])
    said = f"AUC {figure('auc_pct', solvers[name].value)} %, {signed(-behind.value)} to {best}"
    return [Part(f"{what}, AUC", holds, said, "", cells_of(solvers[name], *others.values()))]


def _cost(claim: Claim, what: str, name: str, solvers: dict[str, Estimate]) -> list[Part]:
    others = {other: solvers[other] for other in OTHERS if other in solvers}
    if name not in solvers or not others or not solvers[name].value > 0.0:
        return []
    quickest = min(others, key=lambda other: others[other].value)
    ratio = others[quickest].value / solvers[name].value
    said = f"{times(ratio)} as fast as {quickest}"
    holds = ratio >= claim.limits["ratio"]
    return [Part(f"{what}, time", holds, said, "", cells_of(solvers[name], *others.values()))]


@check("fosvm-2", "iterations", "low", "high")
def linear_and_bounded(claim: Claim, kept: Evidence) -> list[Part]:
    """Ask whether iterations do not grow with N, keep the bound, and the time is linear."""
    time, iterations, active, bound = claim.metrics
    parts = []
    for source in kept.of(claim.configs[0]):
        series = {
            metric: _by_solver(source, metric, "fosvm1")
            for metric in (time, iterations, active, bound)
        }
        for name, points in series[iterations].items():
            law = growth((x, one.value) for x, one in points)
            flat = claim.limits["iterations"]
            parts.append(_law(source, f"{name}, iterations", is_inside(law, -flat, flat), points))
            timed = series[time].get(name, [])
            law = growth((x, one.value) for x, one in timed)
            window = claim.limits["low"], claim.limits["high"]
            parts.append(_law(source, f"{name}, time", is_inside(law, *window), timed))
            parts += _bounded(
                source, name, series[active].get(name, []), series[bound].get(name, [])
            )
    return parts


Points = list[tuple[float, Estimate]]


def _by_solver(source: Source, metric: str, prefix: str) -> dict[str, Points]:
    """Return a metric against the number of rows, by the solver's label."""
    found: dict[str, Points] = {}
    for solvers in estimates(source.block("scaling"), metric).values():
        for name, one in solvers.items():
            size = size_of(one.cells[0])
            if name.startswith(prefix) and size:
                found.setdefault(name, []).append((size, one))
    return found


def _law(source: Source, what: str, holds: bool | None, points: Points) -> Part:
    law = growth((x, one.value) for x, one in points)
    rows = [x for x, _ in points]
    said = spelt(law) + (f", {min(rows):,.0f} to {max(rows):,.0f} rows" if rows else "")
    return Part(label(source, what), holds, said, "", cells_of(*(one for _, one in points)))


def _bounded(source: Source, name: str, active: Points, bound: Points) -> list[Part]:
    allowed = dict(bound)
    pairs = [(one, allowed[x]) for x, one in active if x in allowed]
    if not pairs:
        return []
    below = sum(one.value <= most.value for one, most in pairs)
    nearest = min(most.value / one.value for one, most in pairs if one.value > 0)
    said = f"within the bound at {below} of {len(pairs)} sizes, at least {nearest:,.3g} times below"
    cells = cells_of(*(one for pair in pairs for one in pair))
    return [Part(label(source, f"{name}, bound"), below == len(pairs), said, "", cells)]


@check("fosvm-3", "exponent", "share_pct", "candidates", "draws")
def constant_and_sampled(claim: Claim, kept: Evidence) -> list[Part]:
    """Ask whether FOSVM2's time does not grow with N, and 59 draws hit the lowest 5 %."""
    time, hits = claim.metrics
    parts = []
    for source in kept.of(claim.configs[0]):
        for name, points in _by_solver(source, time, "fosvm2").items():
            law = growth((x, one.value) for x, one in points)
            holds = is_at_most(law, claim.limits["exponent"])
            parts.append(_law(source, f"{name}, time", holds, points))
    for source in kept.of(claim.configs[1]):
        low, high = (estimates(source.block("draws"), f"hit_{end}_pct") for end in ("low", "high"))
        for place, solvers in estimates(source.block("draws"), hits).items():
            if dict(place[1]).get("solver.n_candidates") != claim.limits["candidates"]:
                continue
            for name, one in solvers.items():
                ends = low.get(place, {}).get(name), high.get(place, {}).get(name)
                parts.append(_hit(claim, source, place[0], one, ends))
    return parts


def _hit(
    claim: Claim,
    source: Source,
    dataset: str,
    one: Estimate,
    ends: tuple[Estimate | None, Estimate | None],
) -> Part:
    share, draws = claim.limits["share_pct"], source.run.blocks.get("draws", {}).get("repeats")
    said, holds = f"{one.value:.3f} %", None
    if ends[0] is not None and ends[1] is not None:
        said += f" [{ends[0].value:.3f}, {ends[1].value:.3f}]"
        holds = True if ends[0].value >= share else False if ends[1].value < share else None
    few = not isinstance(draws, int | float) or draws < claim.limits["draws"]
    if few:
        said, holds = f"{said}, of too few draws ({draws})", None
    what = label(source, f"{dataset}, hits of {claim.limits['candidates']:g} draws")
    return Part(what, holds, said, claim.printed, one.cells)
