"""Platt's report: growth of SMO and chunking, gain of sparse storage, support vectors.

The report's subsets of Adult and Web are those of the LIBSVM site (block ``site-subsets``). The
first rows of a9a (block ``sizes``) also count for Adult. The first rows of w8a are another problem,
and prove nothing about Web. Artificial sets are drawn anew at every size of ``sizes``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from svmbench.papers.judging.checks import cells_of, check, part_label, undecided_if_missing
from svmbench.papers.judging.entries import LINEAR_WINDOW, Claim
from svmbench.papers.judging.evidence import Evidence, Source
from svmbench.papers.judging.measures import (
    NO_ANSWER,
    all_of,
    answer_exponent_at_least,
    answer_exponent_in,
    answer_lower,
    counted,
    format_ratio,
    growth,
    spelt,
    within_limits,
)
from svmbench.papers.judging.verdict import Part, size_of
from svmbench.report.numbers.estimates import Estimate, estimates, quotient, ratio
from svmbench.report.numbers.statistics import Interval
from svmbench.report.reading import published
from svmbench.report.reading.records import CellResult

SUBSETS, SIZES = "site-subsets", "sizes"
#: The report's sizes of Adult and Web, each a data set of the LIBSVM site.
ADULT = tuple(f"a{k}a" for k in range(1, 10))
WEB = tuple(f"w{k}a" for k in range(1, 9))
#: Its artificial data.
SEPARABLE, NOISE = "separable", "noise"


@dataclass(frozen=True)
class PairedTimes:
    """Two solvers at the sizes that both finished, ascending."""

    sizes: tuple[float, ...]
    first: tuple[Estimate, ...]
    second: tuple[Estimate, ...]
    lacking: tuple[str, ...] = ()  # planned data sets and sizes without a comparison, in words

    @property
    def ratios(self) -> list[float]:
        """The ratios of the second solver's time to the first's, by size."""
        return [b.value / a.value for a, b in zip(self.first, self.second, strict=True)]

    def ratio_intervals(self, metric: str) -> list[Interval]:
        """Return the ratios with their intervals."""
        return [ratio(b, a, metric) for a, b in zip(self.first, self.second, strict=True)]

    @property
    def cells(self) -> tuple[CellResult, ...]:
        """The records of both solvers."""
        return cells_of(*self.first, *self.second)


def _paired_times(source: Source, block: str, metric: str, first: str, second: str) -> PairedTimes:
    """Return two solvers over the sizes of a block that both finished."""
    rows = []
    # If the second solver ended at its time limit, it is certainly the slower one.
    known = {first: {"ok"}, second: {"ok", "timeout"}}
    lacking = [
        _dataset_and_size(cell)
        for cell in source.all_cells(block)
        if cell.solver in known and cell.status not in known[cell.solver]
    ]
    for solvers in estimates(source.finished_cells(block), metric).values():
        if first in solvers and second in solvers:
            size = size_of(solvers[first].cells[0])
            if size and solvers[first].value > 0:
                rows.append((size, solvers[first], solvers[second]))
    rows.sort(key=lambda row: row[0])
    return PairedTimes(
        tuple(size for size, _, _ in rows),
        tuple(time for _, time, _ in rows),
        tuple(time for _, _, time in rows),
        tuple(dict.fromkeys(lacking)),
    )


def _dataset_and_size(cell: CellResult) -> str:
    size = size_of(cell)
    return f"{cell.dataset}{f' ({size:,.0f} rows)' if size else ''}"


def _views(claim: Claim, evidence: Evidence, config: str) -> list[tuple[str, PairedTimes]]:
    """Return every series that shows how SMO and chunking grow in a config."""
    blocks = [SUBSETS] if "web" in config else [SUBSETS, SIZES]
    views = []
    for source in evidence.runs_that_count(config):
        for block in blocks:
            times = _paired_times(source, block, claim.metrics[0], "smo", "chunking")
            if times.sizes:
                name = {SUBSETS: "subsets of LIBSVM's site", SIZES: "prefixes"}[block]
                name = name if "adult" in config or "web" in config else config
                views.append((part_label(source, name), times))
    return views


def _exponents(claim: Claim, config: str, dataset: str) -> str:
    table = config.removeprefix("smo_")
    exponents = {
        name: published.exponent(claim.paper, table, dataset, name) for name in ("smo", "chunking")
    }
    return ", ".join(f"{name} {value:g}" for name, value in exponents.items() if value is not None)


def _printed(claim: Claim, evidence: Evidence, config: str) -> list[Part]:
    """Judge if each exponent is near the printed one: a part for each series and solver."""
    table, apart, parts = config.removeprefix("smo_"), claim.limits["apart"], []
    for what, times in _views(claim, evidence, config):
        dataset = str(times.cells[0].dataset)
        both = (("smo", "SMO", times.first), ("chunking", "chunking", times.second))
        for solver, name, series in both:
            printed = published.exponent(claim.paper, table, dataset, solver)
            if printed is None:
                continue
            law = growth((x, time.value) for x, time in zip(times.sizes, series, strict=True))
            answer = answer_exponent_in(law, printed - apart, printed + apart)
            cells = cells_of(*series)
            parts.append(
                Part(f"{what}, {name}'s exponent", answer, spelt(law), f"{printed:g}", cells)
            )
    return parts


def _gap(claim: Claim, evidence: Evidence, config: str, limit: float) -> list[Part]:
    """Judge if chunking's exponent is `limit` above SMO's: a part for each series."""
    parts = []
    for what, times in _views(claim, evidence, config):
        gap = growth(zip(times.sizes, times.ratios, strict=True))
        smo = growth((x, a.value) for x, a in zip(times.sizes, times.first, strict=True))
        chunking = growth((x, b.value) for x, b in zip(times.sizes, times.second, strict=True))
        measured = f"SMO {smo}, chunking {chunking}: gap {spelt(gap)}"
        dataset = str(times.cells[0].dataset)
        printed = _exponents(claim, config, dataset)
        parts.append(
            Part(what, answer_exponent_at_least(gap, limit), measured, printed, times.cells)
        )
    return parts


@check("smo-1", "gap", "apart", datasets=ADULT)
@check("smo-2", "gap", "apart", datasets=ADULT)
@check("smo-6", "gap", "apart", datasets=[NOISE])
def exponents_apart(claim: Claim, evidence: Evidence) -> list[Part]:
    """Ask whether both exponents are near the printed ones, and differ by at least the limit."""
    return [
        part
        for config in claim.configs
        for part in (
            *_printed(claim, evidence, config),
            *_gap(claim, evidence, config, claim.limits["gap"]),
        )
    ]


@check("smo-3", "apart", datasets=WEB)
def web_linear(claim: Claim, evidence: Evidence) -> list[Part]:
    """Ask whether both exponents are near the printed ones, and SMO is faster at every size."""
    (config,) = claim.configs
    faster = [_faster(claim, what, times) for what, times in _views(claim, evidence, config)]
    # What the claim prints are exponents.
    return _printed(claim, evidence, config) + [replace(part, printed="") for part in faster]


@check("smo-4", "apart", "lead", datasets=WEB)
def web_rbf(claim: Claim, evidence: Evidence) -> list[Part]:
    """Ask whether exponents are near the printed ones, and SMO is faster by the limit's factor.

    Chunking's exponent must be at least SMO's; the interval of the gap may contain 0 if it is at
    most `EXPONENT_WIDTH` wide.
    """
    (config,) = claim.configs
    min_factor = claim.limits["lead"]
    faster = [
        _faster(claim, what, times, min_factor) for what, times in _views(claim, evidence, config)
    ]
    return _printed(claim, evidence, config) + faster + _gap(claim, evidence, config, 0.0)


_NAMES = ("SMO", "chunking")


def _faster(
    claim: Claim,
    what: str,
    times: PairedTimes,
    min_factor: float = 1.0,
    names: Sequence[str] = _NAMES,
) -> Part:
    """Judge if the second solver takes more than `min_factor` times the first one's time."""
    pairs = zip(times.first, times.second, strict=True)
    answers = [answer_lower(_scaled(a, min_factor), b, claim.metrics[0]) for a, b in pairs]
    lower = [answer.holds for answer in answers]
    answer, lacking = undecided_if_missing(all_of(answers), times.lacking)
    least, largest = format_ratio(min(times.ratios)), format_ratio(max(times.ratios))
    measured = f"{names[1]} takes {least} to {largest} of {names[0]}'s time"
    of_sizes = f"at {lower.count(True)} of {len(lower)} sizes{lacking}"
    measured += f", more than {format_ratio(min_factor)} {of_sizes}"
    factor = "" if min_factor == 1.0 else f"more than {format_ratio(min_factor)} "
    part = f"{what}, {names[0]} {factor}faster than {names[1]} at every size"
    return Part(part, answer, measured, claim.printed, times.cells)


def _scaled(known: Estimate, factor: float) -> Estimate:
    """Return a time multiplied by a factor, with its spread."""

    def times_factor(value: float | None) -> float | None:
        return None if value is None else factor * value

    return replace(
        known,
        value=factor * known.value,
        spread=times_factor(known.spread),
        low=times_factor(known.low),
        high=times_factor(known.high),
        by_fold={fold: factor * value for fold, value in known.by_fold.items()},
    )


@check("smo-5", *LINEAR_WINDOW, "apart", "comparable", datasets=[SEPARABLE])
def separable_set(claim: Claim, evidence: Evidence) -> list[Part]:
    """Ask whether SMO's exponent is in the window, and the two take comparable times."""
    parts = []
    chunking = [
        part
        for part in _printed(claim, evidence, claim.configs[0])
        if part.what.endswith("chunking's exponent")
    ]
    for what, times in _views(claim, evidence, claim.configs[0]):
        law = growth((x, a.value) for x, a in zip(times.sizes, times.first, strict=True))
        answer = answer_exponent_in(law, claim.limits["linear_low"], claim.limits["linear_high"])
        printed = _exponents(claim, claim.configs[0], str(times.cells[0].dataset))
        parts.append(Part(f"{what}, SMO's exponent", answer, spelt(law), printed, times.cells))
        most = claim.limits["comparable"]
        near = all_of(
            within_limits(ratio, 1.0 / most, most)
            for ratio in times.ratio_intervals(claim.metrics[0])
        )
        near, lacking = undecided_if_missing(near, times.lacking)
        least, largest = format_ratio(min(times.ratios)), format_ratio(max(times.ratios))
        measured = f"chunking takes {least} to {largest} of SMO's time{lacking}"
        parts.append(Part(f"{what}, comparable times", near, measured, "", times.cells))
    return parts + chunking


@check(
    "smo-7", "share", "separable_linear", "noise_linear", "noise_rbf",
    datasets=[SEPARABLE, NOISE],
)  # fmt: skip
def storage(claim: Claim, evidence: Evidence) -> Iterator[Part]:
    """Ask whether SMO gains a share of the printed factor by sparse storage, chunking less."""
    for config in claim.configs:
        for source in evidence.runs_that_count(config):
            gains = {
                name: _paired_times(
                    source, SIZES, claim.metrics[0], f"{name}-sparse", f"{name}-dense"
                )
                for name in ("smo", "chunking")
            }
            if not gains["smo"].sizes:
                continue
            printed = claim.limits[config.removeprefix("smo_").removesuffix("_storage")]
            yield from _gains(claim, part_label(source, config), gains, printed)


def _gains(claim: Claim, what: str, gains: dict[str, PairedTimes], printed: float) -> list[Part]:
    smo = dict(zip(gains["smo"].sizes, gains["smo"].ratios, strict=True))
    other = dict(zip(gains["chunking"].sizes, gains["chunking"].ratios, strict=True))
    limit = claim.limits["share"] * printed
    above = sum(gain >= limit for gain in smo.values())
    measured = f"{format_ratio(min(smo.values()))} to {format_ratio(max(smo.values()))}"
    measured += f", at least {limit:g} at {above} of {len(smo)} sizes"
    metric = claim.metrics[0]
    gain_intervals = {
        name: dict(zip(gain.sizes, gain.ratio_intervals(metric), strict=True))
        for name, gain in gains.items()
    }
    answer = all_of(within_limits(gain, at_least=limit) for gain in gain_intervals["smo"].values())
    answer, lacking = undecided_if_missing(answer, gains["smo"].lacking)
    measured += lacking
    parts = [Part(f"{what}, SMO", answer, measured, format_ratio(printed), gains["smo"].cells)]
    common = sorted(smo.keys() & other.keys())
    if common:
        more = sum(smo[size] > other[size] for size in common)
        measured = (
            f"chunking {format_ratio(min(other.values()))} to {format_ratio(max(other.values()))}"
        )
        measured += f", SMO gains more at {more} of {len(common)} sizes"
        cells = (*gains["smo"].cells, *gains["chunking"].cells)
        answer = all_of(
            within_limits(
                quotient(gain_intervals["smo"][size], gain_intervals["chunking"][size]),
                at_least=1.0,
            )
            for size in common
        )
        lacking_of_both = dict.fromkeys((*gains["smo"].lacking, *gains["chunking"].lacking))
        answer, lacking = undecided_if_missing(answer, lacking_of_both)
        measured += lacking
        parts.append(Part(f"{what}, beside chunking", answer, measured, "", cells))
    return parts


@check("smo-8", "off_pct", datasets=(*ADULT, *WEB))
def bound_support_vectors(claim: Claim, evidence: Evidence) -> Iterator[Part]:
    """Ask whether the numbers of bound support vectors are near the printed ones, at every size."""
    for config in claim.configs:
        for source in evidence.runs_that_count(config):
            yield from _counted(claim, source, config)


def _counted(claim: Claim, source: Source, config: str) -> list[Part]:
    bound, free = claim.metrics
    table, limit = config.removeprefix("smo_"), claim.limits["off_pct"]
    subsets: list[tuple[float, str, Estimate]] = []
    beside: list[float] = []
    for (dataset, _), solvers in estimates(source.finished_cells(SUBSETS), bound).items():
        printed = published.lookup(claim.paper, table, dataset, bound, "smo")
        if printed and "smo" in solvers:
            off = 100.0 * (solvers["smo"].value / printed - 1.0)
            subsets.append((off, f"{dataset} {solvers['smo'].value:.0f} instead of {printed:.0f}",
                          solvers["smo"]))  # fmt: skip
    for (dataset, _), solvers in estimates(source.finished_cells(SUBSETS), free).items():
        printed = published.lookup(claim.paper, table, dataset, free, "smo")
        if printed and "smo" in solvers:
            beside.append(100.0 * abs(solvers["smo"].value / printed - 1.0))
    if not subsets:
        return []
    worst = max(subsets, key=lambda subset: abs(subset[0]))
    near = sum(abs(off) <= limit for off, _, _ in subsets)
    measured = f"bound: within {limit:g} % at {near} of {len(subsets)} subsets, the furthest "
    measured += f"{worst[1]} ({worst[0]:+.1f} %)"
    measured += f"; non-bound: up to {max(beside):.0f} % off" if beside else ""
    answer = all_of(counted(off, -limit, limit) for off, _, _ in subsets)
    parts = [Part(part_label(source, table), answer, measured.replace("-0.0", "0.0"), "",
                  cells_of(*(estimate for _, _, estimate in subsets)))]  # fmt: skip
    open_ = _not_reached(source)
    if open_:
        parts.append(Part(part_label(source, table, f"at {', '.join(open_)}"), None, "not run"))
    return parts


def _not_reached(source: Source) -> list[str]:
    """Return the subsets that SMO has no result on."""
    return [
        str(cell.dataset)
        for cell in source.all_cells(SUBSETS)
        if cell.solver == "smo" and cell.status != "ok"
    ]


@check("smo-9", "share", datasets=(*ADULT, *WEB))
def largest_printed_lead(claim: Claim, evidence: Evidence) -> list[Part]:
    """Ask whether the largest printed lead of the sizes that were run is reached."""
    return [
        part
        for config in claim.configs
        for what, times in _views(claim, evidence, config)
        for part in _lead(claim, config.removeprefix("smo_"), what, times)
    ]


def _lead(claim: Claim, table: str, what: str, times: PairedTimes) -> list[Part]:
    printed = []
    for first in times.first:
        cell = first.cells[0]
        pair = [
            published.lookup(
                claim.paper, table, cell.dataset, "train_time_s", name, dimensions=cell.dimensions
            )
            for name in ("smo", "chunking")
        ]
        printed.append(pair[1] / pair[0] if pair[0] and pair[1] else 0.0)
    return _largest(claim, f"{table}, {what}", times, printed)


def _largest(claim: Claim, what: str, times: PairedTimes, printed: Sequence[float]) -> list[Part]:
    largest = max(range(len(printed)), key=lambda k: printed[k])
    if not printed[largest]:
        return []
    size, ours = times.sizes[largest], times.ratios[largest]
    least = claim.limits["share"] * printed[largest]
    measured = f"{format_ratio(ours)} at {size:,.0f} rows, the rule asks for {format_ratio(least)}"
    if max(times.ratios) > ours:
        measured += f" (the largest measured lead: {format_ratio(max(times.ratios))})"
    lead = times.ratio_intervals(claim.metrics[0])[largest]
    reached = within_limits(lead, at_least=least)
    return [
        Part(what, reached, measured, f"{format_ratio(printed[largest])} at that size", times.cells)
    ]


@check("smo-10", datasets=[NOISE])
def dense_noise(claim: Claim, evidence: Evidence) -> Iterator[Part]:
    """Ask whether SMO on dense inputs is faster than chunking on dense inputs, at every size."""
    for config in claim.configs:
        for source in evidence.runs_that_count(config):
            times = _paired_times(source, SIZES, claim.metrics[0], "smo-dense", "chunking-dense")
            if times.sizes:
                yield _faster(claim, part_label(source, config), times)


@check("smo-13", datasets=[SEPARABLE])
def dense_separable(claim: Claim, evidence: Evidence) -> Iterator[Part]:
    """Ask whether chunking on dense inputs is faster than SMO on dense inputs, at every size."""
    for source in evidence.runs_that_count(claim.configs[0]):
        times = _paired_times(source, SIZES, claim.metrics[0], "chunking-dense", "smo-dense")
        if times.sizes:
            what = part_label(source, claim.configs[0])
            yield _faster(claim, what, times, names=_NAMES[::-1])


@check("smo-11", datasets=(*ADULT, *WEB, SEPARABLE, NOISE))
def smaller_exponent(claim: Claim, evidence: Evidence) -> list[Part]:
    """Ask whether SMO's exponent is at most chunking's on every problem.

    The interval of the gap may contain 0 if it is at most `EXPONENT_WIDTH` wide.
    """
    return [
        replace(part, what=part.what if config in part.what else f"{config}, {part.what}")
        for config in claim.configs
        for part in _gap(claim, evidence, config, 0.0)
    ]


@check("smo-12", datasets=(*ADULT, *WEB))
def slower_with_rbf(claim: Claim, evidence: Evidence) -> Iterator[Part]:
    """Ask whether SMO takes longer with the RBF kernel than with the linear one."""
    metric = claim.metrics[0]
    for linear, rbf in zip(claim.configs[::2], claim.configs[1::2], strict=True):
        for source in evidence.runs_that_count(linear):
            alike = [
                candidate
                for candidate in evidence.runs_that_count(rbf)
                if candidate.profile == source.profile
            ]
            other = next(iter(alike), None)
            if other is None:
                continue
            first, second = (
                estimates(run.finished_cells(SUBSETS), metric) for run in (source, other)
            )
            both = [
                (first[condition]["smo"], second[condition]["smo"])
                for condition in first
                if "smo" in first[condition] and "smo" in second.get(condition, {})
            ]
            if not both:
                continue
            answers = [answer_lower(a, b, metric) for a, b in both]
            answer, slower = all_of(answers), [answer.holds for answer in answers]
            ratios = [b.value / a.value for a, b in both]
            measured = f"{format_ratio(min(ratios))} to {format_ratio(max(ratios))}"
            measured += " the time of the linear kernel"
            measured += f", longer at {slower.count(True)} of {len(both)} sizes"
            if source.cpu != other.cpu:
                answer, measured = NO_ANSWER, f"{measured}, on two machines"
            what = part_label(source, rbf.removeprefix("smo_"))
            yield Part(what, answer, measured, "", cells_of(*(e for pair in both for e in pair)))
