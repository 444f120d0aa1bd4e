"""CPSP: accuracy and objective with few basis vectors, and what training costs."""

from __future__ import annotations

import math
from dataclasses import replace

from svmbench.papers.judging.checks import cells_of, check, held_back, label, unfinished, untested
from svmbench.papers.judging.entries import Claim
from svmbench.papers.judging.evidence import Evidence, Source
from svmbench.papers.judging.measures import (
    all_of,
    counted,
    figure,
    growth,
    is_above,
    is_inside,
    is_within,
    signed,
    spelt,
    times_between,
    within,
)
from svmbench.papers.judging.parts import growth_parts
from svmbench.papers.judging.verdict import Part
from svmbench.report.comparisons import Interval
from svmbench.report.estimates import Estimate, difference, estimates, interval, quotient

RIVALS = ("nystrom", "icf", "cvm", "bvm", "lasvm")
SAME_PROBLEM = ("cpsp-tr", "nystrom", "icf")
BASIS = "solver.n_basis"
#: The paper's five, Reuters for its CCAT.
FIVE = ("a9a", "reuters", "mnist-0-vs-rest", "mnist-low-vs-high", "ijcnn1")


@check("cpsp-1", "points", datasets=FIVE)
def accurate(claim: Claim, kept: Evidence) -> list[Part]:
    """Ask whether as accurate as the exact machine, and more than the others at the same size."""
    metric, parts = claim.metrics[0], []
    for source in kept.of(claim.configs[0]):
        for (dataset, _), solvers in estimates(source.block("table1"), metric).items():
            if "cpsp" not in solvers:
                continue
            own, stand_in = solvers["cpsp"], dataset in claim.stand_ins
            if "exact" in solvers:
                behind = difference(solvers["exact"], own, metric)
                said = f"{figure(metric, own.value)} %, {signed(-behind.value)} to the exact one"
                holds = is_within(behind, claim.limits["points"])
                cells = cells_of(own, solvers["exact"])
                what = label(source, f"{dataset}, beside the exact")
                parts.append(Part(what, holds, said, "", cells, stand_in=stand_in))
            others = {name: solvers[name] for name in RIVALS if name in solvers}
            if others:
                best = max(others, key=lambda name: others[name].value)
                ahead = difference(own, others[best], metric)
                said = f"{signed(ahead.value)} to the best of the others, {best}"
                what = label(source, f"{dataset}, beside others")
                cells = cells_of(own, *others.values())
                missing = unfinished(source, ["table1"], dataset, RIVALS)
                above = all_of(is_above(difference(own, one, metric)) for one in others.values())
                holds, lacking = held_back(above, missing)
                parts.append(Part(what, holds, said + lacking, "", cells, stand_in=stand_in))
        parts += untested(claim, source, ["table1"], "cpsp")
    return parts


Curves = dict[str, dict[str, dict[float, Estimate]]]


def _curves(source: Source, block: str, metric: str) -> Curves:
    """Return a metric by data set, solver and number of basis vectors."""
    found: Curves = {}
    for (dataset, swept), solvers in estimates(source.block(block), metric).items():
        k = dict(swept).get(BASIS)
        if isinstance(k, int | float):
            for name, one in solvers.items():
                found.setdefault(dataset, {}).setdefault(name, {})[float(k)] = one
    return found


def _accuracies(kept: Evidence) -> list[Source]:
    """Return the runs of Figure 1; Table 2 is of the same cells."""
    return kept.of("cpsp_fig1") or kept.of("cpsp_table2")


@check("cpsp-2", "small", datasets=FIVE)
def dominates(claim: Claim, kept: Evidence) -> list[Part]:
    """Ask whether the area between its curve and each other's is positive."""
    metric, parts = claim.metrics[0], []
    for source in _accuracies(kept):
        for dataset, solvers in _curves(source, "fig1", metric).items():
            stand_in = dataset in claim.stand_ins
            for rival in (*RIVALS, "cpsp-tr"):
                if "cpsp" not in solvers or rival not in solvers:
                    continue
                most = claim.limits["small"] if rival == "cpsp-tr" else math.inf
                common = sorted(
                    k for k in solvers["cpsp"].keys() & solvers[rival].keys() if k <= most
                )
                if not common:
                    continue
                pairs = [(solvers["cpsp"][k], solvers[rival][k]) for k in common]
                area = _area(common, pairs, metric)
                said = f"{signed(area.value)} points on average over k = "
                said += f"{common[0]:g} to {common[-1]:g}"
                what = label(source, f"{dataset}, beside {rival}")
                cells = cells_of(*(one for pair in pairs for one in pair))
                parts.append(Part(what, is_above(area), said, "", cells, stand_in=stand_in))
        parts += untested(claim, source, ["fig1"], "cpsp", *RIVALS)
    return parts


def _area(sizes: list[float], pairs: list[tuple[Estimate, Estimate]], metric: str) -> Interval:
    """Return the mean difference of two curves over log k, with the interval of one difference.

    Every k is scored on the same test rows, so that their differences may all err alike.
    """
    apart = [difference(one, other, metric) for one, other in pairs]
    logs = [math.log(size) for size in sizes]
    if len(sizes) == 1:
        return apart[0]
    width = logs[-1] - logs[0]
    value = math.fsum(
        (logs[k + 1] - logs[k]) * (apart[k].value + apart[k + 1].value) / 2.0
        for k in range(len(sizes) - 1)
    ) / width  # fmt: skip
    halves = [one.high - one.value for one in apart if one.high is not None]
    if len(halves) < len(apart):
        return Interval(value)
    half = math.fsum(halves) / len(halves)
    return Interval(value, value - half, value + half)


@check("cpsp-3", "same", datasets=FIVE)
def nearest_objective(claim: Claim, kept: Evidence) -> list[Part]:
    """Ask whether its objective is the least at every k."""
    metric, parts = claim.metrics[0], []
    for source in kept.of(claim.configs[0]):
        for dataset, solvers in _curves(source, "fig2", metric).items():
            own = solvers.get("cpsp", {})
            others = {name: solvers[name] for name in SAME_PROBLEM if name in solvers}
            sizes = [k for k in sorted(own) if any(k in one for one in others.values())]
            if not sizes:
                continue
            ratios = {
                k: own[k].value / min(one[k].value for one in others.values() if k in one)
                for k in sizes
            }
            least = sum(ratio <= 1.0 + claim.limits["same"] for ratio in ratios.values())
            worst = max(ratios, key=lambda k: ratios[k])
            said = f"the least at {least} of {len(sizes)} values of k, at worst "
            said += f"{100 * (ratios[worst] - 1):+.2g} % of the best other (k = {worst:g})"
            cells = cells_of(*own.values(), *(e for one in others.values() for e in one.values()))
            what, stand_in = label(source, dataset), dataset in claim.stand_ins
            # Each solver stopped within the limit of its least objective, relatively.
            same = claim.limits["same"]
            holds = all_of(
                within(Interval(ratio, ratio - same, ratio + same), most=1.0 + same)
                for ratio in ratios.values()
            )
            parts.append(
                Part(what, holds, said.replace("-", "−"), "", cells,
                     stand_in=stand_in)
            )  # fmt: skip
        parts += untested(claim, source, ["fig2"], "cpsp")
    return parts


@check("cpsp-4", "points", "among", datasets=FIVE)
def fewest_vectors(claim: Claim, kept: Evidence) -> list[Part]:
    """Ask whether it comes near the exact accuracy with the fewest vectors, in little time."""
    score, time = claim.metrics
    parts = []
    for source in _accuracies(kept):
        costs = _curves(source, "fig1", time)
        exact = {
            place[0]: found for place, found in estimates(source.block("exact"), score).items()
        }
        for dataset, solvers in _curves(source, "fig1", score).items():
            if "exact" not in exact.get(dataset, {}) or "cpsp" not in solvers:
                continue
            reached = {
                name: _reaches(curve, exact[dataset]["exact"], claim.limits["points"], score)
                for name, curve in solvers.items()
                if name in ("cpsp", *RIVALS)
            }
            cells = (*cells_of(exact[dataset]["exact"]),
                     *cells_of(*(one for c in solvers.values() for one in c.values())))  # fmt: skip
            parts += _reached(claim, label(source, dataset), reached, costs.get(dataset, {}), cells)
    return [
        part if part.cells[0].dataset not in claim.stand_ins else _as_stand_in(part)
        for part in parts
    ]


def _as_stand_in(part: Part) -> Part:
    return replace(part, stand_in=True)


def _reaches(curve: dict[float, Estimate], exact: Estimate, points: float, metric: str) -> Interval:
    """Return the least k that comes within some points of the exact accuracy.

    From the least k that may come so near to the least that does with certainty; infinite where
    none of those that were tried does.
    """
    behind = {k: difference(exact, one, metric) for k, one in curve.items()}
    near = [k for k, one in behind.items() if one.value <= points]
    surely = [k for k, one in behind.items() if one.high is not None and one.high <= points]
    maybe = [k for k, one in behind.items() if one.low is None or one.low <= points]
    return Interval(*(min(found, default=math.inf) for found in (near, maybe, surely)))


def _reached(
    claim: Claim,
    what: str,
    reached: dict[str, Interval],
    costs: dict[str, dict[float, Estimate]],
    cells: tuple,  # type: ignore[type-arg]
) -> list[Part]:
    """Return whether the fewest vectors were enough, and whether they took little time."""
    named = ", ".join(
        f"{name} {k.value:g} [{k.low:g}, {k.high:g}]".replace("inf", "never")
        for name, k in reached.items()
    )
    own, others = reached["cpsp"], {name: k for name, k in reached.items() if name != "cpsp"}
    holds = all_of(within(_minus(own, other), most=0.0) for other in others.values())
    parts = [Part(f"{what}, vectors", holds, f"k that reaches it: {named}", "", cells)]
    spent = {
        name: found
        for name, k in reached.items()
        if (found := _spent(costs.get(name, {}), k)) is not None
    }
    if "cpsp" in spent and len(spent) > 1:
        fastest = min((name for name in spent if name != "cpsp"), key=lambda n: spent[n].value)
        most = claim.limits["among"]
        slower = {name: quotient(spent["cpsp"], one) for name, one in spent.items()}
        holds = all_of(within(slower[name], most=most) for name in spent if name != "cpsp")
        said = f"{times_between(slower[fastest])} the time of {fastest}"
        parts.append(Part(f"{what}, time", holds, said, "", cells))
    return parts


def _minus(first: Interval, second: Interval) -> Interval:
    """Return a difference of two uncertain numbers of vectors, without ends where undefined."""
    ends = (first.low or 0.0) - (second.high or 0.0), (first.high or 0.0) - (second.low or 0.0)
    if any(map(math.isnan, ends)):
        return Interval(math.nan)
    return Interval(first.value - second.value, *ends)


def _spent(curve: dict[float, Estimate], reached: Interval) -> Interval | None:
    """Return the time at the number of vectors that is enough, over all that it may be."""
    low, high = reached.low or 0.0, reached.high or 0.0
    found = {k: interval(one, "cpu_time_s") for k, one in curve.items() if low <= k <= high}
    if not found or not math.isfinite(high) or reached.value not in found:
        return None
    least, most = (
        [end for one in found.values() if (end := getattr(one, name)) is not None]
        for name in ("low", "high")
    )
    return Interval(found[reached.value].value, min(least), max(most))


@check("cpsp-5", "low", "high", "basis_low", "basis_high", datasets=FIVE)
def growth_of_time(claim: Claim, kept: Evidence) -> list[Part]:
    """Ask whether the time grows about linearly with N, and modestly faster than that with k."""
    limits, parts = claim.limits, []
    for source in kept.of(claim.configs[0]):
        window = limits["low"], limits["high"]
        parts += growth_parts(claim, source, "examples", ["cpsp"], window)
        for dataset, solvers in _curves(source, "basis", claim.metrics[0]).items():
            points = sorted(solvers.get("cpsp", {}).items())
            if not points:
                continue
            law = growth((k, one.value) for k, one in points)
            holds = is_inside(law, limits["basis_low"], limits["basis_high"])
            said = f"{spelt(law)}, k {points[0][0]:g} to {points[-1][0]:g}"
            parts.append(
                Part(
                    label(source, f"{dataset}, in k"),
                    holds,
                    said,
                    claim.printed,
                    cells_of(*(one for _, one in points)),
                    stand_in=dataset in claim.stand_ins,
                )
            )
    return parts


@check("cpsp-6", "flat", "most", datasets=FIVE)
def few_active(claim: Claim, kept: Evidence) -> list[Part]:
    """Ask whether the number of active constraints is small and does not grow with N."""
    metric, flat, parts = claim.metrics[0], claim.limits["flat"], []
    for source in kept.of(claim.configs[0]):
        parts += growth_parts(claim, source, "examples", ["cpsp"], (-flat, flat), metric)
        largest: dict[str, Estimate] = {}
        for (dataset, _), solvers in estimates(source.block("examples"), metric).items():
            one = solvers.get("cpsp")
            if one and one.value >= largest.get(dataset, Estimate(0.0)).value:
                largest[dataset] = one
        parts += [
            Part(
                label(source, f"{dataset}, most"),
                counted(one.value, most=claim.limits["most"]),
                f"{one.value:g} active constraints at most",
                claim.printed,
                one.cells,
                stand_in=dataset in claim.stand_ins,
            )
            for dataset, one in largest.items()
        ]
    return parts
