"""NL-SGD: accuracies, times, and the effects of averaging and of more epochs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean

from svmbench.papers.judging.checks import cells_of, check, part_label, untested
from svmbench.papers.judging.entries import Claim
from svmbench.papers.judging.evidence import PRINTED, Evidence, Source
from svmbench.papers.judging.measures import (
    all_of,
    answer_lag_at_most,
    answer_lower,
    answer_positive,
    format_ratio,
    format_seconds,
    times_between,
    within_limits,
)
from svmbench.papers.judging.verdict import Part
from svmbench.report.numbers.comparisons import average_difference
from svmbench.report.numbers.estimates import (
    Estimate,
    estimates,
    interval,
    quotient,
    test_share,
    total,
)
from svmbench.report.numbers.statistics import Interval
from svmbench.report.numbers.summary import value_of

_PRINTED_BLOCK = "all-rows"
#: The blocks of ``nlsgd_repeats``, whose solvers have different names.
_REPEATED_BLOCKS = ("rivals", "epochs")
OURS, RIVALS = ("nl-sgd", "nl-sgd-picked"), ("mn-svm", "nn-isda")
_SMALL_DATASETS = ("iris", "glass", "wine", "teach", "sonar", "dermatology", "heart", "prokaryotic",
         "eukaryotic")  # fmt: skip
_MEDIUM_DATASETS = ("optdigits", "usps", "usps-esl+test", "reuters+test", "reuters", "usps+test")
_DATASETS_BY_KIND = {"small sets": _SMALL_DATASETS, "medium sets": _MEDIUM_DATASETS}
#: The paper's data sets, each with the names of its parts and stand-ins in the configs.
_DATASETS = (*_SMALL_DATASETS, "optdigits", "usps|usps+test|usps-esl+test", "reuters|reuters+test")
#: The data sets on which the paper finds five epochs better than two.
_BETTER_WITH_FIVE_EPOCHS = ("wine", "glass", "teach")
OUTPUTS = ("last", "last-50", "last-25")

_EstimatesByDataset = Mapping[str, Mapping[str, Estimate]]


def _by_set(source: Source, blocks: Sequence[str], metric: str) -> dict[str, dict[str, Estimate]]:
    return {
        condition[0]: solvers
        for condition, solvers in estimates(source.finished_cells(*blocks), metric).items()
    }


def _accuracies(
    claim: Claim, evidence: Evidence, *blocks: str
) -> Iterator[tuple[Source, dict[str, dict[str, Estimate]]]]:
    """Yield each run of the claim's first config with its estimates by data set.

    Where the outer folds of a set were drawn several times (``nlsgd_repeats``, the claim's other
    config), the estimates are over the folds of all repeats.
    """
    config, *others = claim.configs
    repeated = [source for other in others for source in evidence.runs_that_count(other)]
    for source in evidence.runs_that_count(config) or repeated:
        table = _by_set(source, blocks, claim.metrics[0])
        for again in repeated:
            if again.profile == source.profile:
                for name, solvers in _by_set(again, _REPEATED_BLOCKS, claim.metrics[0]).items():
                    table[name] = table.get(name, {}) | solvers
        yield source, table


def _common(table: _EstimatesByDataset, names: Iterable[str], solvers: Sequence[str]) -> list[str]:
    """Return the data sets on which all solvers have results."""
    return [n for n in names if n in table and all(solver in table[n] for solver in solvers)]


def _averaged(table: _EstimatesByDataset, sets: Sequence[str], first: str, second: str) -> Interval:
    """Return first minus second, averaged over data sets, by paired outer folds.

    Printed means have no folds; their difference has no uncertainty.
    """
    used = cells_of(*(table[name][solver] for name in sets for solver in (first, second)))
    if used and all(cell.protocol == PRINTED for cell in used):
        ahead = fmean(table[name][first].value - table[name][second].value for name in sets)
        return Interval(ahead, ahead, ahead)
    pairs, shares = [], []
    for name in sets:
        a, b = table[name][first], table[name][second]
        folds = sorted(a.by_fold.keys() & b.by_fold.keys())
        pairs.append([a.by_fold[fold] - b.by_fold[fold] for fold in folds] or [a.value - b.value])
        shares.append(test_share(a))
    return average_difference(pairs, shares)


@check("nlsgd-1", "points", datasets=_DATASETS)
def competitive(claim: Claim, evidence: Evidence) -> Iterator[Part]:
    """Ask whether the average accuracy is within the limit of each rival's."""
    for source, table in _accuracies(claim, evidence, _PRINTED_BLOCK):
        for kind, names in _DATASETS_BY_KIND.items():
            for ours in OURS:
                sets = _common(table, names, (ours, *RIVALS))
                for rival in RIVALS if sets else ():
                    ahead = _averaged(table, sets, rival, ours)
                    answer = answer_lag_at_most(ahead, claim.limits["points"])
                    behind = Interval(-ahead.value, _minus(ahead.high), _minus(ahead.low))
                    text = f"{behind.spelt()} points over {len(sets)} sets"
                    text += "" if ahead.low is not None else ", of a single outer fold each"
                    cells = cells_of(
                        *(table[name][solver] for name in sets for solver in (ours, rival))
                    )
                    what = part_label(source, f"{ours} beside {rival}, {kind}")
                    yield Part(what, answer, text, "", cells)
        yield from untested(claim, source, [_PRINTED_BLOCK], "nl-sgd", *RIVALS)


def _minus(value: float | None) -> float | None:
    return None if value is None else 0.0 - value


@check(
    "nlsgd-2", "share", "mn_svm_small", "nn_isda_small", "mn_svm_medium", "nn_isda_medium",
    datasets=_DATASETS,
)  # fmt: skip
def fastest(claim: Claim, evidence: Evidence) -> Iterator[Part]:
    """Ask whether NL-SGD is fastest on all sets but Wine, by a share of the printed factors."""
    for source in evidence.runs_that_count(claim.configs[0]) or evidence.runs_that_count(
        "nlsgd_table2"
    ):
        table = _by_set(source, [_PRINTED_BLOCK], claim.metrics[0])
        for kind, names in _DATASETS_BY_KIND.items():
            sets = _common(table, names, ("nl-sgd", *RIVALS))
            yield from (_ratio(claim, source, table, sets, kind, rival) for rival in RIVALS if sets)
            yield from (_first(claim, source, table, name) for name in sets if name != "wine")
        yield from untested(claim, source, [_PRINTED_BLOCK], "nl-sgd", *RIVALS)


def _ratio(
    claim: Claim, source: Source, table: _EstimatesByDataset, sets: list[str], kind: str, rival: str
) -> Part:
    metric = claim.metrics[0]
    sums = {
        name: total([interval(table[each][name], metric) for each in sets])
        for name in ("nl-sgd", rival)
    }
    faster = quotient(sums[rival], sums["nl-sgd"])
    printed = claim.limits[f"{rival.replace('-', '_')}_{kind.partition(' ')[0]}"]
    stopped = [
        sum(value_of(cell, "unconverged_fits") or 0.0 for cell in table[each][rival].cells)
        for each in sets
    ]
    text = f"{times_between(faster)}, mean CPU times over {len(sets)} sets"
    if sum(stopped):
        text += f"; {sum(stopped):,.0f} of {rival}'s fits ended at their limit of steps"
    cells = cells_of(*(table[each][name] for each in sets for name in ("nl-sgd", rival)))
    answer = within_limits(faster, at_least=max(1.0, claim.limits["share"] * printed))
    return Part(
        part_label(source, f"beside {rival}, {kind}"), answer, text, format_ratio(printed), cells
    )


def _first(claim: Claim, source: Source, table: _EstimatesByDataset, name: str) -> Part:
    metric, nl_sgd = claim.metrics[0], table[name]["nl-sgd"]
    others = {rival: table[name][rival] for rival in RIVALS}
    answer = all_of(answer_lower(nl_sgd, estimate, metric) for estimate in others.values())
    quickest = min(others, key=lambda rival: others[rival].value)
    text = f"nl-sgd {format_seconds(nl_sgd.value)}, "
    text += f"{quickest} {format_seconds(others[quickest].value)}"
    return Part(part_label(source, name), answer, text, "", cells_of(nl_sgd, *others.values()))


@check("nlsgd-3", "points", datasets=_DATASETS)
def averaging_and_epochs(claim: Claim, evidence: Evidence) -> Iterator[Part]:
    """Judge the effects of averaging and epochs.

    Averaged outputs must beat the last output, five epochs must beat two on three sets, and one
    epoch must be enough on medium sets.
    """
    for source, table in _accuracies(claim, evidence, "small", "both", "medium"):
        for epochs in (1, 2, 5):
            for output in OUTPUTS[1:]:
                pair = f"nl-sgd-{epochs}-{output}", f"nl-sgd-{epochs}-last"
                for kind, names in _DATASETS_BY_KIND.items():
                    sets = _common(table, names, pair)
                    # The paper claims nothing about one epoch on small sets.
                    if sets and not (epochs == 1 and kind == "small sets"):
                        what = f"{output} against last, epochs {epochs}, {kind}"
                        yield _better(source, table, sets, pair, what)
        for output in OUTPUTS:
            yield from _better_epochs(source, table, _BETTER_WITH_FIVE_EPOCHS, (5, 2), output)
            pair = f"nl-sgd-2-{output}", f"nl-sgd-1-{output}"
            sets = _common(table, _MEDIUM_DATASETS, pair)
            if sets:
                yield _enough(claim, source, table, sets, pair, output)


def _better(
    source: Source, table: _EstimatesByDataset, sets: list[str], pair: tuple[str, str], what: str
) -> Part:
    ahead = _averaged(table, sets, *pair)
    cells = cells_of(*(table[name][solver] for name in sets for solver in pair))
    text = f"{ahead.spelt()} points over {len(sets)} {'set' if len(sets) == 1 else 'sets'}"
    return Part(part_label(source, what), answer_positive(ahead), text, "", cells)


def _better_epochs(
    source: Source,
    table: _EstimatesByDataset,
    names: Sequence[str],
    epochs: tuple[int, int],
    output: str,
) -> Iterator[Part]:
    """Ask whether one number of epochs beats another on those of some data sets that have both."""
    first, second = epochs
    pair = f"nl-sgd-{first}-{output}", f"nl-sgd-{second}-{output}"
    sets = _common(table, names, pair)
    if sets:
        what = f"{first} against {second} epochs, {output}, {', '.join(sets)}"
        yield _better(source, table, sets, pair, what)


def _enough(
    claim: Claim,
    source: Source,
    table: _EstimatesByDataset,
    sets: list[str],
    pair: tuple[str, str],
    output: str,
) -> Part:
    ahead = _averaged(table, sets, *pair)
    answer = answer_lag_at_most(ahead, claim.limits["points"])
    text = f"two epochs are {ahead.spelt()} points ahead on {', '.join(sets)}"
    text += "" if ahead.low is not None else ", of a single outer fold"
    cells = cells_of(*(table[name][solver] for name in sets for solver in pair))
    return Part(part_label(source, f"1 against 2 epochs, {output}"), answer, text, "", cells)


#: The data sets on which the paper finds two epochs better than five.
_BETTER_WITH_TWO_EPOCHS = ("eukaryotic", "prokaryotic")


@check("nlsgd-4", datasets=["prokaryotic", "eukaryotic"])
def two_epochs(claim: Claim, evidence: Evidence) -> Iterator[Part]:
    """Ask whether two epochs beat five on the two larger of the small sets."""
    for source, table in _accuracies(claim, evidence, "small", "both"):
        for output in OUTPUTS:
            yield from _better_epochs(source, table, _BETTER_WITH_TWO_EPOCHS, (2, 5), output)


@check("nlsgd-5", "points", datasets=_DATASETS)
def competitive_everywhere(claim: Claim, evidence: Evidence) -> Iterator[Part]:
    """Ask whether the accuracy is within the limit of the better rival's on every set."""
    for source, table in _accuracies(claim, evidence, _PRINTED_BLOCK):
        for name in _common(table, (*_SMALL_DATASETS, *_MEDIUM_DATASETS), ("nl-sgd", *RIVALS)):
            best = max(RIVALS, key=lambda rival: table[name][rival].value)
            behind = _averaged(table, [name], best, "nl-sgd")
            answer = answer_lag_at_most(behind, claim.limits["points"])
            ahead = Interval(0.0 - behind.value, _minus(behind.high), _minus(behind.low))
            cells = cells_of(*(table[name][solver] for solver in ("nl-sgd", *RIVALS)))
            what = part_label(source, name)
            yield Part(what, answer, f"{ahead.spelt()} points beside {best}", "", cells)
        yield from untested(claim, source, [_PRINTED_BLOCK], "nl-sgd", *RIVALS)


@check("nlsgd-6", datasets=_DATASETS)
def fewer_epochs_are_faster(claim: Claim, evidence: Evidence) -> Iterator[Part]:
    """Ask whether fewer epochs take less CPU time on every set, with each way of averaging."""
    metric = claim.metrics[0]
    for source in evidence.runs_that_count(claim.configs[0]):
        table = _by_set(source, ("small", "both", "medium"), metric)
        for name, solvers in table.items():
            fewer, more = (1, 2) if name in _MEDIUM_DATASETS else (2, 5)
            names = [(f"nl-sgd-{fewer}-{output}", f"nl-sgd-{more}-{output}") for output in OUTPUTS]
            pairs = [(solvers[a], solvers[b]) for a, b in names if a in solvers and b in solvers]
            if not pairs:
                continue
            answer = all_of(answer_lower(a, b, metric) for a, b in pairs)
            ratios = [b.value / a.value for a, b in pairs]
            text = f"{more} epochs take {format_ratio(min(ratios))} to {format_ratio(max(ratios))}"
            text += f" the time of {'one' if fewer == 1 else fewer}"
            cells = cells_of(*(estimate for pair in pairs for estimate in pair))
            yield Part(part_label(source, name), answer, text, "", cells)
