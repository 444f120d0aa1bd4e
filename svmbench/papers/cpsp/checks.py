"""CPSP: accuracy and objective with few basis vectors, and the cost of training."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist, correlation

from svmbench.papers.judging.checks import (
    cells_of,
    check,
    first_missing_cells,
    part_label,
    undecided_if_missing,
    untested,
)
from svmbench.papers.judging.entries import Claim
from svmbench.papers.judging.evidence import Evidence, Source
from svmbench.papers.judging.measures import (
    NO_ANSWER,
    Answer,
    all_of,
    answer_exponent_in,
    answer_lag_at_most,
    answer_most,
    answer_positive,
    counted,
    format_signed,
    format_value,
    growth,
    spelt,
    times_between,
    within_limits,
)
from svmbench.papers.judging.parts import growth_parts
from svmbench.papers.judging.verdict import Part
from svmbench.report.numbers.estimates import (
    Estimate,
    difference,
    estimates,
    interval,
    quotient,
    total,
)
from svmbench.report.numbers.statistics import Interval
from svmbench.report.numbers.summary import value_of
from svmbench.report.reading.records import CellResult

#: Methods that draw their vectors before training, and methods that choose them greedily.
SAMPLED, GREEDY = ("nystrom", "icf"), ("cvm", "bvm", "lasvm")
RIVALS = (*SAMPLED, *GREEDY)
#: The paper's OCR0, "where all methods do well".
_OCR0 = "mnist-0-vs-rest"
#: The solvers that minimise CPSP's objective over their own basis vectors.
_SOLVERS_OF_SAME_OBJECTIVE = ("cpsp-tr", "nystrom", "icf")
BASIS = "solver.n_basis"
#: Blocks of Figure 1, of its exact machine, and of Table 1: in the second block of each, the
#: methods search the grid on a sample of the rows.
_FIGURE_1, _EXACT = ("fig1", "fig1-sampled"), ("exact", "exact-sampled")
_TABLE_1 = ("table1", "table1-sampled")
#: The paper's text data set, and the data set that stands in for it.
_TEXT_DATASETS = ("ccat", "reuters")
#: Smallest number of sizes from which a share of variance is computed, with one size left out in
#: turn: a line explains two points exactly.
_MIN_LINE_POINTS = 4
#: The paper's data sets.
_DATASETS = ("a9a", "|".join(_TEXT_DATASETS), "mnist-0-vs-rest", "mnist-low-vs-high", "ijcnn1")
_N_DATASETS = len(_DATASETS)


@check("cpsp-1", "points", datasets=_DATASETS)
def accurate(claim: Claim, evidence: Evidence) -> Iterator[Part]:
    """Ask whether CPSP is as accurate as the exact machine, and more accurate than the others."""
    metric = claim.metrics[0]
    for source in evidence.runs_that_count(claim.configs[0]):
        leads: dict[str, list[_AccuracyLead]] = {name: [] for name in GREEDY}
        for (dataset, _), solvers in estimates(source.finished_cells(*_TABLE_1), metric).items():
            if "cpsp" not in solvers:
                continue
            cpsp, stand_in = solvers["cpsp"], dataset in claim.stand_ins
            if "exact" in solvers:
                behind = difference(solvers["exact"], cpsp, metric)
                text = (
                    f"{format_value(metric, cpsp.value)} %, {_apart(-behind.value)} the exact one"
                )
                answer = answer_lag_at_most(behind, claim.limits["points"])
                cells = cells_of(cpsp, solvers["exact"])
                what = part_label(source, f"{dataset}, beside the exact")
                yield Part(what, answer, text, "", cells, stand_in=stand_in)
            if dataset != _OCR0:
                yield from _beside_sampled(claim, source, dataset, solvers)
            for name in GREEDY:
                if name in solvers and not stand_in:
                    ahead = difference(cpsp, solvers[name], metric)
                    leads[name].append(_AccuracyLead(dataset, ahead, (cpsp, solvers[name])))
        yield from (
            _on_most(source, name, own_leads) for name, own_leads in leads.items() if own_leads
        )
        yield from untested(claim, source, _TABLE_1, "cpsp")


@dataclass(frozen=True)
class _AccuracyLead:
    """The lead of CPSP over another method on one data set, with the records it rests on."""

    dataset: str
    ahead: Interval
    both: tuple[Estimate, Estimate]


def _apart(points: float) -> str:
    """Return a difference of two accuracies in words: ``0.24 points below``."""
    return f"{abs(points):.2f} points {'below' if points < 0 else 'above'}"


def _beside_sampled(
    claim: Claim, source: Source, dataset: str, solvers: dict[str, Estimate]
) -> list[Part]:
    """Judge if CPSP is above the better of Nyström and ICF."""
    others = {name: solvers[name] for name in SAMPLED if name in solvers}
    if not others:
        return []
    best = max(others, key=lambda name: others[name].value)
    ahead = difference(solvers["cpsp"], others[best], claim.metrics[0])
    missing = first_missing_cells(source, _TABLE_1, dataset, SAMPLED)
    answer, lacking = undecided_if_missing(answer_positive(ahead), missing)
    text = f"{_apart(ahead.value)} {best}"
    text += ", the better of the two" if len(others) == len(SAMPLED) else ""
    text += lacking
    cells = cells_of(solvers["cpsp"], *others.values())
    what = part_label(source, f"{dataset}, beside Nyström and ICF")
    return [Part(what, answer, text, "", cells, stand_in=dataset in claim.stand_ins)]


def _on_most(source: Source, name: str, leads: list[_AccuracyLead]) -> Part:
    """Judge if CPSP is above a method on more than half of the paper's sets."""
    sure = [answer_positive(lead.ahead).holds for lead in leads]
    text = f"more accurate on {sure.count(True)}, less on {sure.count(False)} and either on "
    text += f"{sure.count(None)} of {len(leads)} sets (the paper has {_N_DATASETS}): "
    text += ", ".join(f"{lead.ahead.spelt()} points on {lead.dataset}" for lead in leads)
    what = part_label(source, f"most sets, beside {name}")
    cells = cells_of(*(estimate for lead in leads for estimate in lead.both))
    return Part(what, answer_most(sure, _N_DATASETS), text, "", cells)


_TradeOffs = dict[str, dict[str, dict[float, Estimate]]]


def _curves(source: Source, metric: str, *blocks: str) -> _TradeOffs:
    """Return a metric by data set, solver and number of basis vectors."""
    curves: _TradeOffs = {}
    for (dataset, swept), solvers in estimates(source.finished_cells(*blocks), metric).items():
        k = dict(swept).get(BASIS)
        if isinstance(k, int | float):
            for name, estimate in solvers.items():
                curves.setdefault(dataset, {}).setdefault(name, {})[float(k)] = estimate
    return curves


def _accuracies(evidence: Evidence) -> list[Source]:
    """Return the runs of Figure 1, those of a profile as one; Table 2 is of the same cells."""
    return evidence.runs_by_profile("cpsp_fig1") or evidence.runs_by_profile("cpsp_table2")


@check("cpsp-2", "small", datasets=_DATASETS)
def dominates(claim: Claim, evidence: Evidence) -> Iterator[Part]:
    """Ask whether CPSP's accuracy is below another method's at no number of basis vectors."""
    metric = claim.metrics[0]
    for source in _accuracies(evidence):
        for dataset, solvers in _curves(source, metric, *_FIGURE_1).items():
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
                ahead = [_widened(difference(*pair, metric), len(common)) for pair in pairs]
                answer = _nowhere_below(ahead)
                least = min(range(len(common)), key=lambda index: ahead[index].value)
                worst = format_signed(ahead[least].value)
                text = f"{worst} points at k = {common[least]:g} at worst, "
                text += f"{format_signed(_area(common, pairs))} on average over "
                text += f"k = {common[0]:g} to {common[-1]:g}"
                what = part_label(source, f"{dataset}, beside {rival}")
                cells = cells_of(*(estimate for pair in pairs for estimate in pair))
                yield Part(what, answer, text, "", cells, stand_in=stand_in)
        yield from untested(claim, source, _FIGURE_1, "cpsp", *RIVALS)


def _widened(known: Interval, number: int) -> Interval:
    """Return a 95 % interval widened by Bonferroni's correction for `number` intervals."""
    if known.low is None or known.high is None:
        return known
    normal = NormalDist()
    factor = normal.inv_cdf(1.0 - 0.025 / number) / normal.inv_cdf(0.975)
    low, high = (known.value + factor * (end - known.value) for end in (known.low, known.high))
    return Interval(known.value, low, high)


def _nowhere_below(ahead: Sequence[Interval]) -> Answer:
    """Return yes if no difference is below 0; undecided if an interval contains 0."""
    return all_of(within_limits(gap, at_least=0.0) for gap in ahead)


def _area(sizes: list[float], pairs: list[tuple[Estimate, Estimate]]) -> float:
    """Return the mean difference of two curves over log k."""
    apart = [ours.value - other.value for ours, other in pairs]
    logs = [math.log(size) for size in sizes]
    if len(sizes) == 1:
        return apart[0]
    return math.fsum(
        (logs[k + 1] - logs[k]) * (apart[k] + apart[k + 1]) / 2.0 for k in range(len(sizes) - 1)
    ) / (logs[-1] - logs[0])


@check("cpsp-3", "same", datasets=_DATASETS)
def nearest_objective(claim: Claim, evidence: Evidence) -> Iterator[Part]:
    """Ask whether CPSP's objective is the lowest at every k."""
    metric = claim.metrics[0]
    for source in evidence.runs_that_count(claim.configs[0]):
        for dataset, solvers in _curves(source, metric, "fig2").items():
            cpsp = solvers.get("cpsp", {})
            others = {name: solvers[name] for name in _SOLVERS_OF_SAME_OBJECTIVE if name in solvers}
            sizes = [k for k in sorted(cpsp) if any(k in curve for curve in others.values())]
            if not sizes:
                continue
            ratios = {
                k: cpsp[k].value / min(curve[k].value for curve in others.values() if k in curve)
                for k in sizes
            }
            least = sum(ratio <= 1.0 + claim.limits["same"] for ratio in ratios.values())
            worst = max(ratios, key=lambda k: ratios[k])
            text = f"the least at {least} of {len(sizes)} values of k, at worst "
            text += f"{100 * (ratios[worst] - 1):+.2g} % of the best other (k = {worst:g})"
            cells = cells_of(
                *cpsp.values(), *(e for curve in others.values() for e in curve.values())
            )
            what, stand_in = part_label(source, dataset), dataset in claim.stand_ins
            # Each solver stopped within the limit of its least objective, relatively.
            same = claim.limits["same"]
            answer = all_of(
                within_limits(Interval(ratio, ratio - same, ratio + same), at_most=1.0 + same)
                for ratio in ratios.values()
            )
            yield Part(what, answer, text.replace("-", "−"), "", cells,
                     stand_in=stand_in)  # fmt: skip
        yield from untested(claim, source, ["fig2"], "cpsp")


def _of_exact(source: Source, metric: str) -> dict[str, Estimate]:
    """Return a metric of the exact machine by data set."""
    return {
        dataset: solvers["exact"]
        for (dataset, _), solvers in estimates(source.finished_cells(*_EXACT), metric).items()
        if "exact" in solvers
    }


@check("cpsp-4", "points", "among", datasets=_DATASETS)
def fewest_vectors(claim: Claim, evidence: Evidence) -> list[Part]:
    """Ask whether CPSP comes near the exact accuracy with the fewest vectors, in little time."""
    score, time = claim.metrics
    parts = []
    for source in _accuracies(evidence):
        costs = _curves(source, time, *_FIGURE_1)
        exact = _of_exact(source, score)
        for dataset, solvers in _curves(source, score, *_FIGURE_1).items():
            if dataset not in exact or "cpsp" not in solvers:
                continue
            smallest = {
                name: _smallest_k(curve, exact[dataset], claim.limits["points"], score)
                for name, curve in solvers.items()
                if name in ("cpsp", *RIVALS)
            }
            estimated = [estimate for curve in solvers.values() for estimate in curve.values()]
            cells = cells_of(exact[dataset], *estimated)
            parts += _fewest_and_fast(
                claim, part_label(source, dataset), smallest, costs.get(dataset, {}), cells
            )
    return [
        part if part.cells[0].dataset not in claim.stand_ins else _as_stand_in(part)
        for part in parts
    ]


def _as_stand_in(part: Part) -> Part:
    return replace(part, stand_in=True)


def _smallest_k(
    curve: dict[float, Estimate], exact: Estimate, points: float, metric: str
) -> Interval:
    """Return the least k that comes within some points of the exact accuracy.

    The interval reaches from the smallest k that may be close enough to the smallest that certainly
    is; an end is infinite if no tried k is.
    """
    behind = {k: difference(exact, estimate, metric) for k, estimate in curve.items()}
    near = [k for k, gap in behind.items() if gap.value <= points]
    surely = [k for k, gap in behind.items() if gap.high is not None and gap.high <= points]
    maybe = [k for k, gap in behind.items() if gap.low is None or gap.low <= points]
    least, low, high = (min(values, default=math.inf) for values in (near, maybe, surely))
    return Interval(least, low, high)


def _fewest_and_fast(
    claim: Claim,
    what: str,
    smallest: dict[str, Interval],
    costs: dict[str, dict[float, Estimate]],
    cells: tuple,  # type: ignore[type-arg]
) -> list[Part]:
    """Judge two things: the fewest vectors were enough, and they took little time."""
    sizes = ", ".join(
        f"{name} {k.value:g} [{k.low:g}, {k.high:g}]".replace("inf", "never")
        for name, k in smallest.items()
    )
    cpsp, others = smallest["cpsp"], {name: k for name, k in smallest.items() if name != "cpsp"}
    answer = all_of(within_limits(_minus(cpsp, other), at_most=0.0) for other in others.values())
    parts = [Part(f"{what}, vectors", answer, f"k that reaches it: {sizes}", "", cells)]
    spent = {
        name: cost
        for name, k in smallest.items()
        if (cost := _spent(costs.get(name, {}), k)) is not None
    }
    if "cpsp" in spent and len(spent) > 1:
        fastest = min((name for name in spent if name != "cpsp"), key=lambda n: spent[n].value)
        most = claim.limits["among"]
        slower = {name: quotient(spent["cpsp"], cost) for name, cost in spent.items()}
        answer = all_of(
            within_limits(slower[name], at_most=most) for name in spent if name != "cpsp"
        )
        text = f"{times_between(slower[fastest])} the time of {fastest}"
        parts.append(Part(f"{what}, time", answer, text, "", cells))
    return parts


def _minus(first: Interval, second: Interval) -> Interval:
    """Return a difference of two uncertain numbers of vectors, without ends where undefined."""
    ends = (first.low or 0.0) - (second.high or 0.0), (first.high or 0.0) - (second.low or 0.0)
    if any(map(math.isnan, ends)):
        return Interval(math.nan)
    return Interval(first.value - second.value, *ends)


def _spent(curve: dict[float, Estimate], smallest: Interval) -> Interval | None:
    """Return the time at the number of vectors that is enough, with this number's uncertainty."""
    low, high = smallest.low or 0.0, smallest.high or 0.0
    times = {
        k: interval(estimate, "cpu_time_s") for k, estimate in curve.items() if low <= k <= high
    }
    if not times or not math.isfinite(high) or smallest.value not in times:
        return None
    value, single = times[smallest.value].value, any(time.single for time in times.values())
    ends = [(time.low, time.high) for time in times.values()]
    least, most = [end for end, _ in ends if end is not None], [end for _, end in ends if end]
    if min(len(least), len(most)) < len(times):
        return Interval(value)
    return Interval(value, min(least), max(most), single=single)


@check("cpsp-5", "linear_high", "line_pct", "basis_low", "basis_high", datasets=_DATASETS)
def growth_of_time(claim: Claim, evidence: Evidence) -> Iterator[Part]:
    """Ask whether the time grows about linearly with N, and modestly faster than that with k."""
    limits = claim.limits
    for source in evidence.runs_that_count(claim.configs[0]):
        window = -math.inf, limits["linear_high"]
        grown = growth_parts(claim, source, "examples", ["cpsp"], window)
        yield from (_straight(claim, part) for part in grown)
        for dataset, solvers in _curves(source, claim.metrics[0], "basis").items():
            points = sorted(solvers.get("cpsp", {}).items())
            if not points:
                continue
            law = growth((k, estimate.value) for k, estimate in points)
            answer = answer_exponent_in(law, limits["basis_low"], limits["basis_high"])
            text = f"{spelt(law)}, k {points[0][0]:g} to {points[-1][0]:g}"
            yield Part(
                part_label(source, f"{dataset}, in k"),
                answer,
                text,
                claim.printed,
                cells_of(*(estimate for _, estimate in points)),
                stand_in=dataset in claim.stand_ins,
            )


def _straight(claim: Claim, part: Part) -> Part:
    """Return a part that also asks which share of the times' variance a rising line explains."""
    pairs = [(value_of(cell, "n_train"), value_of(cell, claim.metrics[0])) for cell in part.cells]
    points = [(n, time) for n, time in pairs if n is not None and time is not None]
    if len(points) < _MIN_LINE_POINTS or part.answer is None:
        return replace(part, answer=NO_ANSWER)
    without = [_explained_pct(points[:i] + points[i + 1 :]) for i in range(len(points))]
    share = Interval(_explained_pct(points), min(without), max(without))
    answer = all_of([part.answer, within_limits(share, claim.limits["line_pct"])])
    text = (
        f"a line explains {share.value:.0f} % of the variance [{share.low:.0f}, {share.high:.0f}]"
    )
    return replace(part, answer=answer, measured=f"{text}; {part.measured}")


def _explained_pct(points: Sequence[tuple[float, float]]) -> float:
    """Return the share of the variance that a straight line explains; 0 if the line falls."""
    return 100.0 * max(0.0, correlation(*zip(*points, strict=True))) ** 2


@check("cpsp-6", "flat", "most", datasets=_DATASETS)
def few_active(claim: Claim, evidence: Evidence) -> Iterator[Part]:
    """Ask whether the number of active constraints is small and does not grow with N."""
    metric, flat = claim.metrics[0], claim.limits["flat"]
    for source in evidence.runs_that_count(claim.configs[0]):
        yield from growth_parts(claim, source, "examples", ["cpsp"], (-flat, flat), metric)
        largest: dict[str, Estimate] = {}
        for (dataset, _), solvers in estimates(source.finished_cells("examples"), metric).items():
            cpsp = solvers.get("cpsp")
            if cpsp and cpsp.value >= largest.get(dataset, Estimate(0.0)).value:
                largest[dataset] = cpsp
        yield from (
            Part(
                part_label(source, f"{dataset}, most"),
                counted(fit.value, at_most=claim.limits["most"]),
                f"{fit.value:g} active constraints at most",
                claim.printed,
                fit.cells,
                stand_in=dataset in claim.stand_ins,
            )
            for dataset, fit in largest.items()
        )


#: The linear machine of Table 1, and the data set on which it is as good as the RBF kernel.
LINEAR_MACHINE, _ADULT = "linear", "a9a"


@check("cpsp-7", "few", datasets=_DATASETS)
def as_good_as_linear(claim: Claim, evidence: Evidence) -> Iterator[Part]:
    """Ask whether CPSP with `few` vectors or more is at no k below the linear machine."""
    metric = claim.metrics[0]
    for source in _accuracies(evidence):
        linear = {
            condition[0]: solvers[LINEAR_MACHINE]
            for other in evidence.all_runs(claim.configs[1])
            if other.profile == source.profile
            for condition, solvers in estimates(other.finished_cells(*_TABLE_1), metric).items()
            if LINEAR_MACHINE in solvers
        }
        for dataset, solvers in _curves(source, metric, *_FIGURE_1).items():
            curve = solvers.get("cpsp", {})
            sizes = sorted(k for k in curve if k >= claim.limits["few"])
            if not sizes or dataset not in linear:
                continue
            ahead = [
                _widened(difference(curve[k], linear[dataset], metric), len(sizes)) for k in sizes
            ]
            least = min(range(len(sizes)), key=lambda index: ahead[index].value)
            text = f"{format_signed(ahead[least].value)} points beside the linear machine at "
            text += f"k = {sizes[least]:g} at worst, of k = {sizes[0]:g} to {sizes[-1]:g}"
            answer = _nowhere_below(ahead)
            cells = cells_of(linear[dataset], *(curve[k] for k in sizes))
            what, stand_in = part_label(source, dataset), dataset in claim.stand_ins
            yield Part(what, answer, text, "", cells, stand_in=stand_in)


@check("cpsp-8", datasets=[name for name in _DATASETS if name != "a9a"])
def rbf_above_linear(claim: Claim, evidence: Evidence) -> Iterator[Part]:
    """Ask whether the exact machine with the RBF kernel is more accurate than the linear one."""
    metric = claim.metrics[0]
    for source in evidence.runs_that_count(claim.configs[0]):
        for (dataset, _), solvers in estimates(source.finished_cells(*_TABLE_1), metric).items():
            if dataset == _ADULT or not {"exact", LINEAR_MACHINE} <= solvers.keys():
                continue
            ahead = difference(solvers["exact"], solvers[LINEAR_MACHINE], metric)
            exact = format_value(metric, solvers["exact"].value)
            text = f"{exact} %, {ahead.spelt()} points beside the linear one"
            cells = cells_of(solvers["exact"], solvers[LINEAR_MACHINE])
            what, stand_in = part_label(source, dataset), dataset in claim.stand_ins
            yield Part(what, answer_positive(ahead), text, "", cells, stand_in=stand_in)
        yield from (
            part
            for part in untested(claim, source, _TABLE_1, "exact", LINEAR_MACHINE)
            if not part.what.startswith(_ADULT)
        )


@check("cpsp-9", "points", "ratio", datasets=["|".join(_TEXT_DATASETS)])
def faster_on_text(claim: Claim, evidence: Evidence) -> Iterator[Part]:
    """Ask whether every other method takes many times CPSP's time to its accuracy on text."""
    score, time = claim.metrics
    for source in _accuracies(evidence):
        costs = _curves(source, time, *_FIGURE_1)
        exact = _of_exact(source, score)
        for dataset, solvers in _curves(source, score, *_FIGURE_1).items():
            if dataset not in _TEXT_DATASETS or dataset not in exact:
                continue
            target = exact[dataset]
            leads = _leads_on_text(claim, solvers, costs.get(dataset, {}), target, score)
            if not leads:
                continue
            quickest = min(leads, key=lambda name: leads[name].value)
            text = f"{quickest}, the fastest other, takes {times_between(leads[quickest])} its time"
            if math.isinf(leads[quickest].value):
                text = "no other comes within that accuracy"
            cells = cells_of(
                target, *(estimate for c in solvers.values() for estimate in c.values())
            )
            what, stand_in = part_label(source, dataset), dataset in claim.stand_ins
            answer = all_of(
                within_limits(lead, at_least=claim.limits["ratio"]) for lead in leads.values()
            )
            yield Part(what, answer, text, "", cells, stand_in=stand_in)


def _leads_on_text(
    claim: Claim,
    solvers: dict[str, dict[float, Estimate]],
    costs: dict[str, dict[float, Estimate]],
    target: Estimate,
    score: str,
) -> dict[str, Interval]:
    """Return each other method's time over CPSP's, both with the smallest k near the target.

    The ratio is infinite for a method that is near the target at no k. It has no interval if this k
    is uncertain.
    """
    smallest = {
        name: _smallest_k(curve, target, claim.limits["points"], score)
        for name, curve in solvers.items()
    }
    at_least = {
        name: costs.get(name, {})[k.value].value if k.value in costs.get(name, {}) else math.inf
        for name, k in smallest.items()
    }
    if not math.isfinite(at_least.get("cpsp", math.inf)):
        return {}
    spent = {name: _spent(costs.get(name, {}), k) for name, k in smallest.items()}
    leads = {}
    for name, k in smallest.items():
        if name == "cpsp":
            continue
        ours, other = spent["cpsp"], spent[name]
        if k.low == math.inf:
            leads[name] = Interval(math.inf, math.inf, math.inf)
        elif ours is None or other is None:
            leads[name] = Interval(at_least[name] / at_least["cpsp"])
        else:
            leads[name] = quotient(other, ours)
    return leads


@check("cpsp-10", "small", datasets=_DATASETS)
def largest_on_text(claim: Claim, evidence: Evidence) -> list[Part]:
    """Ask whether the mean lead over CPSP(tr) with few vectors is larger on text than elsewhere."""
    metric, parts = claim.metrics[0], []
    # Accuracies don't depend on the machine: the first run with a set gives its leads.
    largest: dict[str, tuple[Source, Interval, tuple[CellResult, ...]]] = {}
    for source in _accuracies(evidence):
        for dataset, solvers in _curves(source, metric, *_FIGURE_1).items():
            cpsp, other = solvers.get("cpsp", {}), solvers.get("cpsp-tr", {})
            pairs = [
                (cpsp[k], other[k])
                for k in sorted(cpsp.keys() & other.keys())
                if k <= claim.limits["small"]
            ]
            if pairs and dataset not in largest:
                ahead = _scaled(
                    total([difference(*pair, metric) for pair in pairs]), 1 / len(pairs)
                )
                largest[dataset] = (
                    source,
                    ahead,
                    cells_of(*(estimate for pair in pairs for estimate in pair)),
                )
    text = next((name for name in _TEXT_DATASETS if name in largest), "")
    if not text:
        return []
    _, own_lead, own_cells = largest.pop(text)
    for dataset, (source, ahead, cells) in largest.items():
        more = total([own_lead, _scaled(ahead, -1.0)])
        measured = f"{own_lead.spelt()} points on {text}, {ahead.spelt()} on {dataset}"
        what, stand_in = part_label(source, dataset), text in claim.stand_ins
        parts.append(
            Part(what, answer_positive(more), measured, "", (*own_cells, *cells), stand_in=stand_in)
        )
    return parts


def _scaled(known: Interval, factor: float) -> Interval:
    """Return an uncertain number multiplied by a factor."""
    if known.low is None or known.high is None:
        return Interval(factor * known.value)
    low, high = sorted((factor * known.low, factor * known.high))
    return Interval(factor * known.value, low, high)


@check("cpsp-11", "points", "ratio", datasets=_DATASETS)
def sparser_than_exact(claim: Claim, evidence: Evidence) -> Iterator[Part]:
    """Ask whether on some set the exact machine has many times CPSP's vectors."""
    score = claim.metrics[0]
    for source in _accuracies(evidence):
        exact, vectors = (_of_exact(source, name) for name in claim.metrics)
        leads: dict[str, Interval] = {}
        used: list[Estimate] = []
        for dataset, solvers in _curves(source, score, *_FIGURE_1).items():
            if dataset not in exact or dataset not in vectors or "cpsp" not in solvers:
                continue
            k = _smallest_k(solvers["cpsp"], exact[dataset], claim.limits["points"], score)
            n = vectors[dataset].value
            leads[dataset] = Interval(n / k.value, n / (k.high or k.value), n / (k.low or k.value))
            used += [exact[dataset], vectors[dataset], *solvers["cpsp"].values()]
        if leads:
            most = max(leads, key=lambda name: leads[name].value)
            low, high = (max(getattr(lead, end) or 0.0 for lead in leads.values())
                         for end in ("low", "high"))  # fmt: skip
            high = high if len(leads) == _N_DATASETS else math.inf  # another set may have more
            text = ", ".join(f"{times_between(lead)} on {name}" for name, lead in leads.items())
            text = f"support vectors over k, of {len(leads)} sets: {text}"
            lead = Interval(leads[most].value, low, high)
            answer = within_limits(lead, at_least=claim.limits["ratio"])
            what = part_label(source, "the sparsest set")
            yield Part(what, answer, text, "", cells_of(*used))
