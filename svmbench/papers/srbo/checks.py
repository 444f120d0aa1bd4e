"""SRBO: safety and gain of screening, DCDM beside a QP library, nu-SVM beside C-SVM."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from svmbench.base.paper_folders import FULL_PROFILE
from svmbench.papers.judging.checks import cells_of, check, part_label, untested
from svmbench.papers.judging.entries import Claim
from svmbench.papers.judging.evidence import Evidence, Source
from svmbench.papers.judging.measures import (
    NO_ANSWER,
    Answer,
    SideTest,
    answer_most,
    answer_positive,
    correlated,
    counted,
    format_ratio,
    within_limits,
)
from svmbench.papers.judging.parts import growth_parts
from svmbench.papers.judging.verdict import Part, size_of
from svmbench.report.numbers.comparisons import holm, rank_correlation
from svmbench.report.numbers.estimates import Estimate, difference, estimates, interval
from svmbench.report.numbers.statistics import Interval, SignedRank, signed_rank, win_draw_loss
from svmbench.report.numbers.summary import value_of
from svmbench.report.reading import published
from svmbench.report.reading.records import VERSUS, CellResult

#: Pairs of solvers: one that screens, and one that does not.
SUPERVISED_PAIR, ONE_CLASS_PAIR = ("srbo-nu-svm", "nu-svm"), ("srbo-oc-svm", "oc-svm")


class PathTable(NamedTuple):
    """A table of paths: its kernel, its number of data sets, its pair of solvers."""

    kernel: str
    n_datasets: int
    screened: str
    plain: str


#: Tables IV to VII, in the order in which claims name their configs.
TABLES_4_TO_7 = (
    PathTable("linear", 13, *SUPERVISED_PAIR),
    PathTable("rbf", 26, *SUPERVISED_PAIR),
    PathTable("linear", 26, *ONE_CLASS_PAIR),
    PathTable("rbf", 26, *ONE_CLASS_PAIR),
)
#: Those of the supervised solvers, and of the detectors.
TABLES_4_AND_5, TABLES_6_AND_7 = TABLES_4_TO_7[:2], TABLES_4_TO_7[2:]
#: The data sets of the tables; Tables IV to VII share most of them.
_TABLE4_DATASETS = (
    "banknote", "hcv-egy", "cmc", "yeast", "wifi-localization", "ctg", "abalone", "wine-quality",
    "shill-bidding", "musk", "electrical|electrical-no-leak", "epileptic", "nursery",
)  # fmt: skip
_TABLES4_TO_7_DATASETS = (
    "hepatitis", "fertility", "planning-relax", "sonar", "spectf-heart", "haberman",
    "liver-disorders", "monks", "breast-cancer-569", "breast-cancer-683", "australian", "pima",
    "biodegradation", *_TABLE4_DATASETS,
)  # fmt: skip
_TABLE8_DATASETS = ("epileptic", "nursery", "credit-card", "accelerometer", "adult")
#: The data sets of Figure 4, and the number of its graphs: three sets have one for each kernel.
ARTIFICIAL, N_GRAPHS = ("gauss-1", "gauss-2", "gauss-5", "circle", "exclusive", "spiral"), 9
#: Number of the paper's values of nu, from 0.01 to 0.995; the first of a path is solved unscreened.
N_NU = 986
_MNIST_DATASETS = tuple(f"mnist-1-vs-{digit}" for digit in (0, *range(2, 10)))
_ALL_DATASETS = (*_TABLES4_TO_7_DATASETS, *_TABLE8_DATASETS[2:], *_MNIST_DATASETS)
#: Names of blocks: EXACT has the solutions at all values of nu (its solvers' names end in
#: EXACT_ENDING), SAMPLE has times at some values; older runs have both in TOGETHER.
EXACT, EXACT_ENDING, SAMPLE, TOGETHER = "exact", "-pairwise", "sample", "paths"
#: Smallest ratio of two sizes between which growth is judged.
MIN_SIZE_RATIO = 4.0
#: Table XII's names of the groups of data sets of Table VIII and of Tables IX to XI, in this order.
GROUPS = {"medium": _TABLE8_DATASETS, "mnist": _MNIST_DATASETS}
#: Number of cases (set, kernel, solver) of Tables X and XI.
N_DIGIT_CASES = 36
#: The rows of Table XII: four tables of paths, and two groups of sets by kernel and QP solver.
N_GROUPS = 12


@check("srbo-1", datasets=_ALL_DATASETS)
def safe(claim: Claim, evidence: Evidence) -> list[Part]:
    """Ask whether no case contradicts screening, by the printed rule and with corrected bounds."""
    wrong, cases, _ = claim.metrics
    parts = []
    seen: set[tuple[str, str, str | None]] = set()  # tested at full size; these runs come first
    for source in evidence.runs_that_count(claim.configs[0]):
        complete = _with_all_results(source) if source.profile == FULL_PROFILE else source
        for solver, what in (("printed", "the rule as printed"), ("srbo", "bounds corrected")):
            of_wrong, of_cases = (
                [
                    estimate
                    for estimate in _all(complete, metric, solver)
                    if _case_of(estimate, solver) not in seen
                ]
                for metric in (wrong, cases)
            )
            if not of_wrong:
                continue
            if source.profile == FULL_PROFILE:
                seen |= {_case_of(estimate, solver) for estimate in of_wrong}
            n_wrong = round(sum(estimate.value for estimate in of_wrong))
            n_cases = round(sum(estimate.value for estimate in of_cases))
            sets = {estimate.cells[0].dataset for estimate in of_wrong}
            text = f"{n_wrong:,} of {n_cases:,} cases on {len(sets)} sets contradict it"
            answer = counted(n_wrong, at_most=0)
            parts.append(Part(part_label(source, what), answer, text, "", cells_of(*of_wrong)))
        blocks = list(dict.fromkeys(cell.block for cell in source.cells))
        parts += untested(claim, source, blocks, "srbo", "printed")
    return parts + [
        part
        for config in claim.configs[1:]
        for source in evidence.runs_that_count(config)
        for by in ("quadprog", "dcdm")
        for part in _same_accuracy(claim, source, config.removeprefix("srbo_"), by)
    ]


def _same_accuracy(claim: Claim, source: Source, table: str, by: str) -> list[Part]:
    """Judge if screening changes no accuracy of a table with a solver."""
    metric, plain, screened = claim.metrics[2], f"nu-svm-{by}", f"srbo-nu-svm-{by}"
    blocks = dict.fromkeys(cell.block for cell in source.cells)
    cases = [
        (f"{condition[0]}, {block}", solvers[plain], solvers[screened])
        for block in blocks
        for condition, solvers in estimates(source.finished_cells(block), metric).items()
        if {plain, screened} <= solvers.keys()
    ]
    if not cases:
        return []
    changed = [(what, a, b) for what, a, b in cases if a.value != b.value]
    text = f"another accuracy in {len(changed)} of {len(cases)} cases"
    if changed:
        what, a, b = max(changed, key=lambda case: abs(case[2].value - case[1].value))
        text += f"; {what}: {a.value:.2f} % without screening, {b.value:.2f} % with it"
    cells = cells_of(*(estimate for _, a, b in cases for estimate in (a, b)))
    what = part_label(source, f"{table}, accuracy with {by}")
    return [Part(what, counted(len(changed), at_most=0), text, "", cells)]


def _with_all_results(source: Source) -> Source:
    """Return a run with all its results, also on sets that only another profile has finished.

    The two rules are not compared with each other, so that a result of one rule counts alone.
    """
    cells = (
        cell
        for cell in source.run.cells
        if cell.status != "ok" or cell.environment_group == source.environment_group
    )
    return replace(source, cells=tuple(cells))


def _case_of(estimate: Estimate, solver: str) -> tuple[str, str, str | None]:
    """Return what tells a test of a rule from others: the rule, the block and the data set."""
    return solver, estimate.cells[0].block, estimate.cells[0].dataset


def _all(source: Source, metric: str, solver: str) -> list[Estimate]:
    """Return a solver's results of every block."""
    blocks = dict.fromkeys(cell.block for cell in source.cells)
    return [
        solvers[solver]
        for block in blocks
        for solvers in estimates(source.finished_cells(block), metric).values()
        if solver in solvers
    ]


def _block_and_names(source: Source, *solvers: str) -> tuple[str, tuple[str, ...]]:
    """Return the block with the solutions at all values of nu, and the solvers' names there."""
    if any(cell.block == EXACT for cell in source.cells):
        return EXACT, tuple(name + EXACT_ENDING for name in solvers)
    return TOGETHER, tuple("c-svm-bounded" if name == "c-svm" else name for name in solvers)


def _runs_at_all_nu(evidence: Evidence, config: str) -> list[Source]:
    """Return the runs of a table with its solutions at all values of nu, else its older runs."""
    sources = evidence.runs_by_profile(config)
    return [source for source in sources if _block_and_names(source)[0] == EXACT] or sources


def _timed_block(source: Source) -> str:
    """Return the block with the times of the QP library."""
    return SAMPLE if any(cell.block == SAMPLE for cell in source.cells) else TOGETHER


def _speedups(
    source: Source, block: str, metric: str, solver: str
) -> list[tuple[str, float, Estimate]]:
    """Return data set, size (`size_of`) and speed-up of every race of a solver."""
    speedups = []
    for (dataset, _), solvers in estimates(source.finished_cells(block), metric).items():
        size = size_of(solvers[solver].cells[0]) if solver in solvers else None
        if size:
            speedups.append((dataset, size, solvers[solver]))
    return sorted(speedups, key=lambda speedup: speedup[1])


@check("srbo-2", "rows", "correlation", datasets=_TABLES4_TO_7_DATASETS)
def worth(claim: Claim, evidence: Evidence) -> Iterator[Part]:
    """Ask whether screening pays more on larger sets, and doesn't pay on small ones."""
    metric = claim.metrics[0]
    figure5, *tables = claim.configs
    for source in evidence.runs_that_count(figure5):
        speedups = _speedups(source, "sizes", metric, SUPERVISED_PAIR[0])
        for dataset in dict.fromkeys(name for name, _, _ in speedups):
            points = [(size, estimate) for name, size, estimate in speedups if name == dataset]
            yield from _grows(claim, part_label(source, "fig5", dataset), points)
    for config, table in zip(tables, TABLES_4_TO_7, strict=True):
        for source in evidence.runs_by_profile(config):
            block = _timed_block(source)
            speedups = _speedups(source, block, metric, table.screened)
            what = part_label(source, config.removeprefix("srbo_"))
            yield from _grows(claim, what, [(size, estimate) for _, size, estimate in speedups])
            yield from _pays(claim, what, speedups)
            yield from untested(claim, source, [block], table.screened)


def _grows(claim: Claim, what: str, points: list[tuple[float, Estimate]]) -> list[Part]:
    """Judge if a speed-up rises with the rows."""
    if not points:
        return []
    sizes = [size for size, _ in points]
    correlation = rank_correlation(sizes, [estimate.value for _, estimate in points])
    differ = max(sizes) >= MIN_SIZE_RATIO * min(sizes)
    answer = (
        correlated(correlation.rho, len(points), claim.limits["correlation"])
        if differ
        else NO_ANSWER
    )
    text = f"Spearman {correlation.rho:+.2f} over {len(points)} races (p {correlation.p:.2g}), "
    text += f"{format_ratio(points[0][1].value)} at {points[0][0]:,.0f} rows, "
    text += f"{format_ratio(points[-1][1].value)} at {points[-1][0]:,.0f}"
    text += "" if differ else f"; sizes differ by less than {MIN_SIZE_RATIO:g} times"
    cells = cells_of(*(estimate for _, estimate in points))
    return [Part(f"{what}, grows", answer, text.replace("-", "−"), claim.printed, cells)]


def _pays(claim: Claim, what: str, speedups: list[tuple[str, float, Estimate]]) -> list[Part]:
    """Judge if screening pays on sets with the limit's rows or more, and doesn't on smaller ones.

    A set counts if the interval of its speed-up lies on one side of 1. The other sets leave the
    count undecided if they could change it.
    """
    limit, parts = claim.limits["rows"], []
    large = [estimate for _, size, estimate in speedups if size >= limit]
    small = [estimate for _, size, estimate in speedups if size < limit]
    for sets, pays in ((large, True), (small, False)):
        if not sets:
            continue
        answers = [
            within_limits(interval(estimate, claim.metrics[0]), at_least=1.0) for estimate in sets
        ]
        sides = [answer.holds for answer in answers]
        faster, slower = sides.count(True), sides.count(False)
        n = len(sets)
        answer = answer_most(
            sides if pays else [None if side is None else not side for side in sides]
        )
        text = f"faster on {faster}, slower on {slower} and either on "
        text += f"{n - faster - slower} of {len(sets)} sets of "
        text += f"{limit:,.0f} rows and more" if pays else f"fewer than {limit:,.0f} rows"
        name = f"{what}, pays on large sets" if pays else f"{what}, not on small ones"
        parts.append(Part(name, answer, text, "", cells_of(*sets)))
    return parts


#: The paper's coordinate descent (DCDM), which stops short of the optimum, and the pairwise one,
#: which converges.
_DCDM_SOLVERS = {
    "nu-svm-dcdm": "where DCDM stops",
    "nu-svm-pairwise": "at equal objective, pairwise DCDM",
}


@check("srbo-3", "ratio", "same_objective", datasets=_TABLE8_DATASETS)
def dcdm_beside_qp(claim: Claim, evidence: Evidence) -> Iterator[Part]:
    """Ask whether DCDM's largest lead over the QP library reaches the limit."""
    ratio, apart = claim.metrics
    for source in evidence.runs_that_count(claim.configs[0]):
        for block in ("linear", "rbf"):
            for name, what in _DCDM_SOLVERS.items():
                pair = f"{name}{VERSUS}nu-svm-quadprog"
                leads = raced = _leads(source, block, ratio, apart, pair)
                if name == "nu-svm-pairwise":
                    leads = [lead for lead in raced if lead.apart <= claim.limits["same_objective"]]
                if leads:
                    part = _largest(claim, part_label(source, block, what), leads)
                    apart_on = ", ".join(lead.dataset for lead in raced if lead not in leads)
                    more = f"; at other objectives on {apart_on}" if apart_on else ""
                    yield replace(part, measured=part.measured + more)


@dataclass(frozen=True)
class _RaceLead:
    """One race: data set, ratio of times, relative difference of objectives."""

    dataset: str
    ratio: Estimate
    apart: float


def _leads(source: Source, block: str, ratio: str, apart: str, pair: str) -> list[_RaceLead]:
    cells = source.finished_cells(block)
    objectives = estimates(cells, apart)
    leads = []
    for condition, solvers in estimates(cells, ratio).items():
        other = objectives.get(condition, {}).get(pair)
        if pair in solvers:
            leads.append(
                _RaceLead(
                    condition[0], solvers[pair], other.value if other is not None else float("inf")
                )
            )
    return leads


def _largest(claim: Claim, what: str, leads: list[_RaceLead]) -> Part:
    best = max(leads, key=lambda lead: lead.ratio.value)
    text = f"{format_ratio(best.ratio.value)} at most ({best.dataset}), "
    least = min(lead.ratio.value for lead in leads)
    text += f"{format_ratio(least)} at least, over {len(leads)} sets; "
    text += f"objectives up to {max(lead.apart for lead in leads):.1g} apart"
    answer = within_limits(interval(best.ratio, "ratio"), at_least=claim.limits["ratio"])
    return Part(what, answer, text, claim.printed, cells_of(*(lead.ratio for lead in leads)))


@check("srbo-10", datasets=_TABLE8_DATASETS)
def lead_with_rows(claim: Claim, evidence: Evidence) -> Iterator[Part]:
    """Ask whether DCDM's lead over the QP library grows with the rows, on each set and kernel."""
    pair = f"nu-svm-dcdm{VERSUS}nu-svm-quadprog"
    above_zero = math.nextafter(0.0, 1.0), math.inf
    for source in evidence.runs_that_count(claim.configs[0]):
        for kernel in ("linear", "rbf"):
            for part in growth_parts(claim, source, f"{kernel}-sizes", [pair], above_zero):
                largest = max(size_of(cell) or 0 for cell in part.cells)
                cut = f"the ladder ends at {largest:,.0f} rows"
                yield replace(part, what=f"{kernel}, {part.what}", cut=cut)


@check("srbo-4", "level", datasets=_ALL_DATASETS)
def significant(claim: Claim, evidence: Evidence) -> list[Part]:
    """Ask whether times without screening are greater in most groups, by signed ranks."""
    groups: list[tuple[str, _EstimatePairs, int]] = []
    printed = {
        (number.dataset, number.kernel, number.solver): number.value
        for number in published.numbers(claim.paper)
        if number.metric == "wilcoxon_p"
    }
    n_tables = len(TABLES_4_TO_7)
    tables = list(zip(claim.configs[:n_tables], TABLES_4_TO_7, strict=True))
    for config, table in tables:
        for source in evidence.runs_by_profile(config):
            names = table.plain, table.screened
            pairs = _pairs(source, _timed_block(source), claim.metrics[0], *names)
            beside = f"printed {printed['small', table.kernel, table.plain]:g}"
            what = part_label(source, config.removeprefix("srbo_"))
            groups.append((f"{what} ({beside})", pairs, table.n_datasets - len(pairs)))
    for config, group in zip(claim.configs[n_tables:], GROUPS, strict=True):
        for source in evidence.runs_by_profile(config):
            for block in ("linear", "rbf"):
                for by in ("quadprog", "dcdm"):
                    names = f"nu-svm-{by}", f"srbo-nu-svm-{by}"
                    pairs = _pairs(source, block, claim.metrics[0], *names)
                    what = part_label(source, config.removeprefix("srbo_"), block, by)
                    beside = f"printed {printed[group, block, by]:g}"
                    n_missing = len(GROUPS[group]) - len(pairs)
                    groups.append((f"{what} ({beside})", pairs, n_missing))
    groups = [group for group in groups if group[1]]
    tests = [
        signed_rank([a.value for a, _ in pairs], [b.value for _, b in pairs])
        for _, pairs, _ in groups
    ]
    corrected = holm([test.p_greater for test in tests])
    level = claim.limits["level"]
    # If all n pairs point the same way, p is 2^-n: with too few pairs it can't be below the level.
    answers = [
        NO_ANSWER
        if 0.5**test.n >= level
        else within_limits(_p_value(pairs, n_missing), at_most=level)
        for test, (_, pairs, n_missing) in zip(tests, groups, strict=True)
    ]
    below = [answer.holds for answer in answers]
    parts = [
        replace(part, what=f"{config.removeprefix('srbo_')}, {part.what}")
        for config, table in tables
        for source in evidence.runs_by_profile(config)
        for part in untested(claim, source, [_timed_block(source)], table.screened)
    ]
    if not groups:
        return parts
    text = f"below {level:g} in {below.count(True)} of {N_GROUPS} groups, not in "
    text += f"{below.count(False)}, undecided in {below.count(None)}: "
    text += "; ".join(
        _test_text(what, pairs, test, p)
        for (what, pairs, _), test, p in zip(groups, tests, corrected, strict=True)
    )
    cells = cells_of(*(estimate for _, pairs, _ in groups for pair in pairs for estimate in pair))
    most = Part("most groups", answer_most(below, N_GROUPS), text, claim.printed, cells)
    return [most, *parts]


def _p_value(pairs: _EstimatePairs, n_missing: int) -> Interval:
    """Return a group's p-value, with the range that the results of its missing sets could give.

    At the ends of the range, all missing sets have larger differences than the others, in the same
    direction.
    """
    plain, screened = ([pair[k].value for pair in pairs] for k in (0, 1))
    largest = max(abs(a - b) for a, b in zip(plain, screened, strict=True))
    beyond = [largest * (2.0 + k) for k in range(n_missing)]
    none = [0.0] * n_missing
    return Interval(
        signed_rank(plain, screened).p_greater,
        signed_rank(plain + beyond, screened + none).p_greater,
        signed_rank(plain + none, screened + beyond).p_greater,
    )


def _test_text(what: str, pairs: _EstimatePairs, test: SignedRank, corrected: float) -> str:
    """Return the result of a group's test in words."""
    wins, draws, losses = win_draw_loss([b.value for _, b in pairs], [a.value for a, _ in pairs])
    text = f"{what}: p {test.p_greater:.2g}, corrected {corrected:.2g}, over {test.n} sets, "
    return f"{text}faster, equal, slower: {wins}, {draws}, {losses}"


_EstimatePairs = list[tuple[Estimate, Estimate]]


def _pairs(
    source: Source, block: str, metric: str, first: str, second: str
) -> list[tuple[Estimate, Estimate]]:
    """Return two solvers' results on every set that has both."""
    return [
        (solvers[first], solvers[second])
        for solvers in estimates(source.finished_cells(block), metric).values()
        if first in solvers and second in solvers
    ]


@check("srbo-5", datasets=_TABLES4_TO_7_DATASETS)
def more_accurate(claim: Claim, evidence: Evidence) -> Iterator[Part]:
    """Ask whether nu-SVM's best accuracy is above C-SVM's on more than half of the sets."""
    for config, table in zip(claim.configs, TABLES_4_AND_5, strict=True):
        for source in _runs_at_all_nu(evidence, config):
            block, names = _block_and_names(source, "nu-svm", "c-svm")
            pairs = _pairs(source, block, claim.metrics[0], *names)
            if not pairs:
                continue
            ours, theirs = [a.value for a, _ in pairs], [b.value for _, b in pairs]
            wins, draws, losses = win_draw_loss(ours, theirs, better="higher")
            test = signed_rank(ours, theirs)
            text = f"more accurate on {wins} of {len(pairs)} sets, as accurate on {draws}, less on "
            text += f"{losses} (signed ranks: p {test.p_greater:.2g}){_settings(source)}"
            what = part_label(source, config.removeprefix("srbo_"))
            cells = cells_of(*(estimate for pair in pairs for estimate in pair))
            above = [a > b for a, b in zip(ours, theirs, strict=True)]
            answer = answer_most(above, table.n_datasets)
            cut = _fewer_values(source, block, names[0])
            yield Part(what, answer, text, claim.printed, cells, cut=cut)
            yield from untested(claim, source, [block], names[0])


def _settings(source: Source) -> str:
    """Return a phrase on the numbers of settings of which each is the best; "" if unknown."""
    block, names = _block_and_names(source, "nu-svm", "c-svm")
    ours, theirs = (_n_values(source, block, name) for name in names)
    if not ours or not theirs:
        return ""
    best = f"; the best of {max(ours):.0f} settings against that of {max(theirs):.0f}"
    return f"{best}, on the test rows"


def _n_values(source: Source, block: str, solver: str) -> list[float]:
    """Return how many values of its grid a solver took on each set, over all widths."""
    sets = estimates(source.finished_cells(block), "n_values").values()
    return [solvers[solver].value for solvers in sets if solver in solvers]


def _fewer_values(source: Source, block: str, solver: str) -> str:
    """Return on how many sets pairs of neighbours stand for the whole grid; "" on none."""
    counts = source.run.counts.get(block, {})
    grid = math.prod(counts.get("grids", {}).get(solver, {}).values())
    whole = grid * (counts.get("gammas") or 1)
    numbers = _n_values(source, block, solver)
    fewer = [number for number in numbers if number < whole]
    if not fewer:
        return ""
    share = f"{100 * min(fewer) / whole:.0f} % of the values of nu"
    return f"{share} on {len(fewer)} of {len(numbers)} sets"


@check("srbo-6", datasets=_TABLES4_TO_7_DATASETS)
def above_kde(claim: Claim, evidence: Evidence) -> Iterator[Part]:
    """Ask whether OC-SVM's AUC and its accuracy are above KDE's on most sets."""
    for config, table in zip(claim.configs, TABLES_6_AND_7, strict=True):
        for source in _runs_at_all_nu(evidence, config):
            for metric in claim.metrics:
                block, (detector,) = _block_and_names(source, "oc-svm")
                pairs = _pairs(source, block, metric, detector, "kde")
                if not pairs:
                    continue
                wins, draws, losses = win_draw_loss(
                    [a.value for a, _ in pairs], [b.value for _, b in pairs], better="higher"
                )
                answers = [a.value > b.value for a, b in pairs]
                text = f"higher on {wins} of {len(pairs)} sets, equal on {draws}, lower on {losses}"
                cells = cells_of(*(estimate for pair in pairs for estimate in pair))
                what = f"{config.removeprefix('srbo_')}, {metric.removesuffix('_pct')}"
                answer = answer_most(answers, table.n_datasets)
                cut, label = _fewer_values(source, block, detector), part_label(source, what)
                yield Part(label, answer, text, claim.printed, cells, cut=cut)
            block, (detector,) = _block_and_names(source, "oc-svm")
            yield from untested(claim, source, [block], detector)


@check("srbo-7", "half_pct", datasets=(*ARTIFICIAL, *_TABLES4_TO_7_DATASETS))
def screens_most(claim: Claim, evidence: Evidence) -> list[Part]:
    """Ask whether more than half of the samples are screened on most sets and in most graphs."""
    half, (figure4, *tables) = claim.limits["half_pct"], claim.configs
    parts = [
        part for source in evidence.runs_that_count(figure4) for part in _in_graphs(claim, source)
    ]
    for config, table in zip(tables, TABLES_4_TO_7, strict=True):
        for source in _runs_at_all_nu(evidence, config):
            block, (screened,) = _block_and_names(source, table.screened)
            shares = [
                solvers[screened]
                for solvers in estimates(source.finished_cells(block), claim.metrics[0]).values()
                if screened in solvers
            ]
            if not shares:
                continue
            above = [estimate.value > half for estimate in shares]
            text = f"above {half:g} % on {sum(above)} of {len(shares)} sets, "
            text += f"{min(estimate.value for estimate in shares):.1f} to "
            text += f"{max(estimate.value for estimate in shares):.1f} %"
            what = config.removeprefix("srbo_")
            answer = answer_most(above, table.n_datasets)
            cells = cells_of(*shares)
            cut, label = _fewer_values(source, block, screened), part_label(source, what)
            parts.append(Part(label, answer, text, claim.printed, cells, cut=cut))
            parts += untested(claim, source, [block], screened)
    return parts


def _in_graphs(claim: Claim, source: Source) -> list[Part]:
    """Judge if more than half of the samples are screened in most graphs of Figure 4."""
    graphs: dict[tuple[str, str], list[CellResult]] = {}
    for cell in source.finished_cells("linear", "rbf"):
        if "solver.nu" in cell.dimensions:
            graphs.setdefault((cell.block, str(cell.dataset)), []).append(cell)
    ratios = {graph: _screened_pct(cells, claim.metrics[1]) for graph, cells in graphs.items()}
    known = {graph: ratio for graph, ratio in ratios.items() if ratio is not None}
    if not known:
        return []
    half = claim.limits["half_pct"]
    above = [ratio > half for ratio in known.values()]
    text = f"above {half:g} % in {sum(above)} of {len(known)} graphs, "
    text += f"{min(known.values()):.1f} to {max(known.values()):.1f} %"
    cells = tuple(cell for graph in known for cell in graphs[graph])
    n_values = len({cell.dimensions["solver.nu"] for cell in cells})
    fewer = f"{n_values} of {N_NU} values of nu" if n_values < N_NU else ""
    what, answer = part_label(source, "fig4"), answer_most(above, N_GRAPHS)
    return [Part(what, answer, text, "", cells, cut=fewer)]


def _screened_pct(cells: Sequence[CellResult], counter: str) -> float | None:
    """Return the percentage of screened multipliers of a path; None without the counters."""
    settled = unsettled = 0.0
    for cell in cells:
        counts = [value_of(cell, name) for name in (counter, "screened_zero", "screened_one")]
        if None in counts:
            return None
        unsettled += counts[0] or 0.0
        settled += (counts[1] or 0.0) + (counts[2] or 0.0)
    return 100.0 * settled / (settled + unsettled) if settled + unsettled else None


@check("srbo-8", "share_pct", "level", datasets=_MNIST_DATASETS)
def on_mnist(claim: Claim, evidence: Evidence) -> Iterator[Part]:
    """Ask whether screening is faster in almost every case, and DCDM than the QP library."""
    speedup, time = claim.metrics
    for source in evidence.runs_that_count(claim.configs[0]):
        leads = [
            solvers[f"srbo-nu-svm-{by}"]
            for block in ("linear", "rbf")
            for solvers in estimates(source.finished_cells(block), speedup).values()
            for by in ("quadprog", "dcdm")
            if f"srbo-nu-svm-{by}" in solvers
        ]
        if leads:
            sides = [within_limits(interval(estimate, speedup), at_least=1.0) for estimate in leads]
            answers = [side.holds for side in sides]
            text = f"faster in {answers.count(True)} of {len(leads)} cases, slower in "
            ratios = [estimate.value for estimate in leads]
            text += f"{answers.count(False)}; {format_ratio(min(ratios))} to "
            text += f"{format_ratio(max(ratios))}"
            share = claim.limits["share_pct"] / 100.0
            answer = answer_most(answers, N_DIGIT_CASES, share)
            what, cells = part_label(source, "screening"), cells_of(*leads)
            yield Part(what, answer, text, claim.printed, cells)
        for block in ("linear", "rbf"):
            pairs = _pairs(source, block, time, "nu-svm-quadprog", "nu-svm-dcdm")
            if pairs:
                yield _shorter(claim, part_label(source, f"{block}, DCDM"), pairs)


def _shorter(claim: Claim, what: str, pairs: _EstimatePairs) -> Part:
    """Judge if the second solver's times are significantly shorter than the first's."""
    level = claim.limits["level"]
    test = signed_rank([a.value for a, _ in pairs], [b.value for _, b in pairs])
    ratios = [a.value / b.value for a, b in pairs]
    text = f"{format_ratio(min(ratios))} to {format_ratio(max(ratios))} as fast as quadprog"
    text += f" over {test.n} sets, "
    text += f"p {test.p_greater:.2g}"
    other = signed_rank([b.value for _, b in pairs], [a.value for a, _ in pairs])
    answer = Answer((SideTest(test.p_greater, other.p_greater, level),))
    return Part(
        what, answer, text, "", cells_of(*(estimate for pair in pairs for estimate in pair))
    )


@check("srbo-9", datasets=_TABLE4_DATASETS)
def more_with_rbf(claim: Claim, evidence: Evidence) -> Iterator[Part]:
    """Ask whether speed-ups with the RBF kernel are above those with the linear one."""
    metric = claim.metrics[0]
    linear, rbf = claim.configs
    for source in evidence.runs_by_profile(linear):
        for other in (
            candidate
            for candidate in evidence.runs_by_profile(rbf)
            if candidate.profile == source.profile
        ):
            by_set = [
                {
                    name: ratio
                    for name, _, ratio in _speedups(
                        run, _timed_block(run), metric, SUPERVISED_PAIR[0]
                    )
                }
                for run in (source, other)
            ]
            sets = [name for name in by_set[0] if name in by_set[1]]
            if not sets:
                continue
            pairs = [(by_set[1][name], by_set[0][name]) for name in sets]
            values = [a.value for a, _ in pairs], [b.value for _, b in pairs]
            more, less = signed_rank(*values).p_greater, signed_rank(*values[::-1]).p_greater
            sides = [answer_positive(difference(a, b, metric)).holds for a, b in pairs]
            larger, smaller = sides.count(True), sides.count(False)
            text = f"larger on {larger}, smaller on {smaller} and either on "
            text += f"{len(sets) - larger - smaller} of {len(sets)} sets; "
            text += f"p {more:.2g} (smaller: {less:.2g})"
            answer = answer_most(sides, TABLES_4_TO_7[0].n_datasets)
            cells = cells_of(*(estimate for pair in pairs for estimate in pair))
            yield Part(part_label(source, "RBF against linear"), answer, text, claim.printed, cells)
