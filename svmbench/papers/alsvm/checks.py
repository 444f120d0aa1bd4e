"""ALSVM: times and accuracies of Table II, growth with rows and features, adding and removing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from svmbench.base.errors import ResultsError
from svmbench.papers.judging.checks import (
    cells_of,
    check,
    condition_text,
    first_missing_cells,
    part_label,
    printed_text,
    undecided_if_missing,
    untested,
)
from svmbench.papers.judging.entries import LINEAR_WINDOW, Claim
from svmbench.papers.judging.evidence import Evidence, Source
from svmbench.papers.judging.measures import (
    all_of,
    answer_exponent_at_least,
    answer_exponent_at_most,
    answer_lag_at_most,
    answer_lower,
    counted,
    format_signed,
    format_value,
    growth,
    spelt,
    times_between,
    within_limits,
)
from svmbench.papers.judging.parts import fastest_parts, growth_parts, within_best
from svmbench.papers.judging.verdict import Part, size_of
from svmbench.report.numbers.estimates import Estimate, difference, estimates, ratio
from svmbench.report.numbers.statistics import Interval, crossing

#: The block of Table II with the paper's protocol.
_PRINTED_BLOCK = "cv"
#: The solvers of Table II.
_TABLE2_SOLVERS = ("alsvm", "falsvm", "liblinear-l1", "pegasos")
#: The data sets of Table II and of the figures, each with the names of its parts and stand-ins.
_TABLE2_DATASETS = (
    "a9a", "cod-rna|cod-rna-train", "covtype|covtype-sample", "mushrooms", "w8a", "svmguide3",
    "german.numer", "poker|poker-train-0-2", "shuttle|shuttle-1-2", "ijcnn1", "sensit",
)  # fmt: skip
_FIGURE1_DATASETS = ("covtype|covtype-sample|synthetic-500k-54", "cod-rna|cod-rna-train")
_FIGURES2_AND_3_DATASETS = ("real-sim|reuters", "news20|reuters")


@check("alsvm-1", datasets=_TABLE2_DATASETS)
def falsvm_fastest(claim: Claim, evidence: Evidence) -> list[Part]:
    """Ask whether FALSVM takes the least time of the four on every data set."""
    return [
        part
        for source in evidence.runs_that_count(claim.configs[0])
        for part in (
            *fastest_parts(claim, source, [_PRINTED_BLOCK], "falsvm", _TABLE2_SOLVERS),
            *untested(claim, source, [_PRINTED_BLOCK], "falsvm"),
        )
    ]


@check("alsvm-2", datasets=[name for name in _TABLE2_DATASETS if name != "w8a"])
def alsvm_faster(claim: Claim, evidence: Evidence) -> Iterator[Part]:
    """Ask whether ALSVM takes less time than LIBLINEAR and Pegasos on all sets but w8a."""
    for source in evidence.runs_that_count(claim.configs[0]):
        for rival in ("liblinear-l1", "pegasos"):
            yield from (
                replace(part, what=f"{part.what} beside {rival}")
                for part in fastest_parts(claim, source, [_PRINTED_BLOCK], "alsvm", [rival])
                if part.cells and part.cells[0].dataset != "w8a"
            )
        yield from untested(claim, source, [_PRINTED_BLOCK], "alsvm")


@check("alsvm-3", "points", datasets=_TABLE2_DATASETS)
def accuracies(claim: Claim, evidence: Evidence) -> list[Part]:
    """Ask whether ALSVM and FALSVM are at most the limit below the best of the four solvers."""
    return [
        part
        for source in evidence.runs_that_count(claim.configs[0])
        for part in (
            *within_best(claim, source, [_PRINTED_BLOCK], "alsvm", _TABLE2_SOLVERS),
            *within_best(claim, source, [_PRINTED_BLOCK], "falsvm", _TABLE2_SOLVERS),
            *untested(claim, source, [_PRINTED_BLOCK], "falsvm"),
        )
    ]


@check("alsvm-4", *LINEAR_WINDOW, datasets=_FIGURE1_DATASETS)
def linear_in_rows(claim: Claim, evidence: Evidence) -> Iterator[Part]:
    """Ask whether the times of ALSVM and FALSVM grow with an exponent in the window."""
    for source in evidence.runs_that_count(claim.configs[0]):
        yield from growth_parts(
            claim, source, "fig1", ("alsvm", "falsvm"),
            (claim.limits["linear_low"], claim.limits["linear_high"]),
        )  # fmt: skip
        yield from (
            replace(part, what=f"{solver} on {part.what}")
            for solver in ("alsvm", "falsvm")
            for part in untested(claim, source, ["fig1"], solver)
        )


@check("alsvm-5", "ratio", datasets=_FIGURE1_DATASETS)
def falsvm_tens_of_times(claim: Claim, evidence: Evidence) -> Iterator[Part]:
    """Ask whether ALSVM takes at least the limit's multiple of FALSVM's time at the full size."""
    metric = claim.metrics[0]
    for source in evidence.runs_that_count(claim.configs[0]):
        largest: dict[str, tuple[float, dict[str, Estimate]]] = {}
        for (dataset, _), solvers in estimates(source.finished_cells("fig1"), metric).items():
            if "alsvm" in solvers and "falsvm" in solvers:
                size = size_of(solvers["alsvm"].cells[0]) or 0.0
                if size >= largest.get(dataset, (0.0, {}))[0]:
                    largest[dataset] = (size, solvers)
        for dataset, (size, solvers) in largest.items():
            lead = ratio(solvers["alsvm"], solvers["falsvm"], metric)
            yield Part(
                part_label(source, dataset),
                within_limits(lead, at_least=claim.limits["ratio"]),
                f"{times_between(lead)} at {size:,.0f} rows",
                claim.printed,
                cells_of(solvers["alsvm"], solvers["falsvm"]),
                stand_in=dataset in claim.stand_ins,
            )
        yield from untested(claim, source, ["fig1"], "falsvm")


@check("alsvm-6", "low", "high", datasets=_FIGURES2_AND_3_DATASETS)
def crossing_near_a_thousand(claim: Claim, evidence: Evidence) -> Iterator[Part]:
    """Ask whether FALSVM's time rises above LIBLINEAR's at a dimension in the window."""
    for config in claim.configs:
        for source in evidence.runs_that_count(config):
            block = config.removeprefix("alsvm_")
            yield from _crossings(claim, source, block)
            yield from untested(claim, source, [block], "falsvm")


def _by_dimension(
    claim: Claim, source: Source, block: str, names: Sequence[str]
) -> dict[str, dict[str, list[tuple[float, Estimate]]]]:
    """Return a metric against the number of features, by data set and solver."""
    curves: dict[str, dict[str, list[tuple[float, Estimate]]]] = {}
    for (dataset, swept), solvers in estimates(
        source.finished_cells(block), claim.metrics[0]
    ).items():
        x = dict(swept).get("features")
        for name in names:
            if isinstance(x, int | float) and name in solvers:
                curve = curves.setdefault(dataset, {}).setdefault(name, [])
                curve.append((float(x), solvers[name]))
    return curves


def _crossings(claim: Claim, source: Source, block: str) -> list[Part]:
    first, second = "falsvm", "liblinear-l1"
    curves = _by_dimension(claim, source, block, (first, second))
    parts = []
    for dataset, both in curves.items():
        if len(both) < 2:
            continue
        xs, ys = zip(*(([x for x, _ in both[n]], [e.value for _, e in both[n]])
                       for n in (first, second)), strict=True)  # fmt: skip
        law = crossing(xs[0], ys[0], xs[1], ys[1])
        between = _crossing_interval(dict(both[first]), dict(both[second]), claim.metrics[0])
        measured = law.sentence(first, second, "features")
        if between.low is not None and between.high is not None:
            measured += f"; between {between.low:,.0f} and "
            measured += f"{between.high:,.0f}" if math.isfinite(between.high) else "beyond"
        parts.append(
            Part(
                part_label(source, f"{block}, {dataset}"),
                within_limits(between, claim.limits["low"], claim.limits["high"]),
                measured,
                claim.printed,
                cells_of(*(estimate for curve in both.values() for _, estimate in curve)),
                stand_in=dataset in claim.stand_ins,
            )
        )
    return parts


def _crossing_interval(
    first: Mapping[float, Estimate], second: Mapping[float, Estimate], metric: str
) -> Interval:
    """Return the interval of dimensions in which the first curve rises above the second.

    Its ends are the last dimension at which the first curve is certainly below and the first
    dimension at which it is certainly above, in ascending order. A missing lower end is 0, and a
    missing upper end is infinity.
    """
    below: list[float] = []
    above: list[float] = []
    single = False
    for x in sorted(first.keys() & second.keys()):
        answer = answer_lower(first[x], second[x], metric)
        single = single or answer.single
        if answer.holds is not None:
            (below if answer.holds else above).append(x)
    if not below and not above:
        return Interval(math.nan)
    ends = max(below, default=0.0), min(above, default=math.inf)
    return Interval(math.nan, min(ends), max(ends), single=single)


#: Smallest number of features; with fewer, call overhead dominates the time.
MIN_TIMED_FEATURES = 400


@check("alsvm-7", "exponent", "apart", "same")
def updates(claim: Claim, evidence: Evidence) -> list[Part]:
    """Ask whether an update equals retraining, at a time with at most the limit's exponent."""
    rows = evidence.lines("updates.csv")
    parts = []
    for operation in ("add", "remove"):
        points = [point for point in _updates(rows, operation) if point[0] >= MIN_TIMED_FEATURES]
        if not points:
            continue
        law = growth(points)
        answer = answer_exponent_at_most(law, claim.limits["exponent"] + claim.limits["apart"])
        measured = f"{spelt(law)}, d {min(points)[0]:.0f} to {max(points)[0]:.0f} (updates.csv)"
        parts.append(Part(f"time to {operation} a sample", answer, measured, claim.printed))
    apart = [
        value
        for operation in ("add", "remove")
        for _, value in _updates(rows, f"difference of {operation}")
    ]
    if apart:
        measured = (
            f"weights at most {max(apart):.1g} from those of retraining, relative (updates.csv)"
        )
        answer = counted(max(apart), at_most=claim.limits["same"])
        parts.append(Part("equal to retraining", answer, measured.replace("e-", "e−")))
    elif parts:
        parts.append(Part("equal to retraining", None, "updates.csv compares times, not models"))
    return parts


def _updates(rows: Sequence[Mapping[str, str]], operation: str) -> list[tuple[float, float]]:
    """Return the values of one operation by d, from the lines of ``updates.csv``.

    The values are CPU seconds; for ``difference of …`` they are the largest relative difference of
    a weight. Both are in the column ``cpu_time_s``.
    """
    chosen = [row for row in rows if row.get("operation") == operation]
    try:
        return [(float(row["d"]), float(row["cpu_time_s"])) for row in chosen]
    except (KeyError, TypeError, ValueError) as error:
        raise ResultsError("updates.csv: a line has no number 'd' or 'cpu_time_s'") from error


@check("alsvm-8", datasets=_FIGURES2_AND_3_DATASETS)
def slower_growth_with_dimension(claim: Claim, evidence: Evidence) -> Iterator[Part]:
    """Ask whether the exponent of ALSVM's time over FALSVM's in the dimension is at least 0.

    Its interval may contain 0 if it is at most `EXPONENT_WIDTH` wide.
    """
    for config in claim.configs:
        block = config.removeprefix("alsvm_")
        for source in evidence.runs_that_count(config):
            curves = _by_dimension(claim, source, block, ("alsvm", "falsvm"))
            for dataset, both in curves.items():
                slow, fast = (dict(both.get(name, ())) for name in ("alsvm", "falsvm"))
                common = sorted(slow.keys() & fast.keys())
                if not common:
                    continue
                law = growth((x, slow[x].value / fast[x].value) for x in common)
                cells = cells_of(*(estimate[x] for x in common for estimate in (slow, fast)))
                measured = f"ratio of times: {spelt(law)}"
                measured += f", d {common[0]:.0f} to {common[-1]:.0f}"
                what = part_label(source, f"{block}, {dataset}")
                stand_in = dataset in claim.stand_ins
                yield Part(
                    what, answer_exponent_at_least(law, 0.0), measured, "", cells, stand_in=stand_in
                )
            yield from untested(claim, source, [block], "falsvm")


@check("alsvm-9", "exponent", "apart", datasets=_FIGURES2_AND_3_DATASETS)
def square_of_dimension(claim: Claim, evidence: Evidence) -> Iterator[Part]:
    """Ask whether both times grow with the dimension by the limit's exponent at most."""
    most = claim.limits["exponent"] + claim.limits["apart"]
    for config in claim.configs:
        block = config.removeprefix("alsvm_")
        for source in evidence.runs_that_count(config):
            for dataset, both in _by_dimension(claim, source, block, ("alsvm", "falsvm")).items():
                for solver, curve in both.items():
                    law = growth((x, estimate.value) for x, estimate in curve)
                    ends = [x for x, _ in curve]
                    measured = f"{spelt(law)}, d {min(ends):.0f} to {max(ends):.0f}"
                    what = part_label(source, f"{block}, {solver} on {dataset}")
                    cells = cells_of(*(estimate for _, estimate in curve))
                    stand_in = dataset in claim.stand_ins
                    answer = answer_exponent_at_most(law, most)
                    yield Part(what, answer, measured, claim.printed, cells, stand_in=stand_in)
            yield from untested(claim, source, [block], "alsvm", "falsvm")


@check("alsvm-10", "points", datasets=_TABLE2_DATASETS)
def highest_accuracy(claim: Claim, evidence: Evidence) -> Iterator[Part]:
    """Ask whether the better of ALSVM and FALSVM is at most the limit below the other solvers."""
    metric, limit = claim.metrics[0], claim.limits["points"]
    for source in evidence.runs_that_count(claim.configs[0]):
        for condition, solvers in estimates(source.finished_cells(_PRINTED_BLOCK), metric).items():
            ours, others = ([name for name in names if name in solvers]
                           for names in (_TABLE2_SOLVERS[:2], _TABLE2_SOLVERS[2:]))  # fmt: skip
            if not ours or not others:
                continue
            better = max(ours, key=lambda name: solvers[name].value)
            behind = {name: difference(solvers[name], solvers[better], metric) for name in others}
            best = max(behind, key=lambda name: behind[name].value)
            answer, lacking = undecided_if_missing(
                all_of(answer_lag_at_most(gap, limit) for gap in behind.values()),
                first_missing_cells(source, [_PRINTED_BLOCK], condition[0], _TABLE2_SOLVERS),
            )
            measured = f"{better} {format_value(metric, solvers[better].value)} %, "
            measured += f"{format_signed(-behind[best].value)} against {best}{lacking}"
            yield Part(
                part_label(source, condition_text(condition)),
                answer,
                measured,
                printed_text(claim, claim.where, condition[0], metric, (better, best), " %"),
                cells_of(*(solvers[name] for name in (*ours, *others))),
                stand_in=condition[0] in claim.stand_ins,
            )
        yield from untested(claim, source, [_PRINTED_BLOCK], *_TABLE2_SOLVERS[:2])
