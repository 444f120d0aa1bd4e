"""Captions and footnotes of tables, as sentences for any medium."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from svmbench.report.numbers.summary import CLOCK_RESOLUTION_S
from svmbench.report.reading import published
from svmbench.report.reading.provenance import describe_cpu
from svmbench.report.reading.records import VERSUS, Run, used_environments
from svmbench.report.reading.wording import (
    CONTENDED_MARK,
    DISTURBED_MARK,
    FALSE_CONVERGENCE_MARK,
    PARTIAL_MARK,
    UNRESOLVED_MARK,
)
from svmbench.report.tables.media import Code, Sentence, Strong
from svmbench.schema.record import OUTSIDE_LOAD_RATIO

if TYPE_CHECKING:
    from svmbench.report.tables.layout import Table, TableEntry

#: The protocol whose intervals are bootstrap intervals.
_SAMPLED = "screening-sample"


def caption(run: Run, table: Table) -> list[Sentence]:
    """Return the caption of a table: profile, block, scaling, folds and environment."""
    spec = table.spec
    note = (f" ({run.profile_note})",) if run.profile_note else ()
    sentences: list[Sentence] = [("Profile: ", Strong(run.profile or "none"), *note, ".")]
    parts = [f"Block {spec.block}"]
    if scaling := run.block_scaling(spec.block):
        parts.append(f"scaling {scaling}")
    parts += [f"{run.label(name)} {value}" for name, value in table.constants.items()]
    sentences.append(("; ".join(parts), "."))
    sentences += _choice(run.blocks.get(spec.block, {}))
    planned = {entry.summary.planned for entry in table.entries.values()}
    if planned and max(planned) > 1:
        folds = str(max(planned)) if len(planned) == 1 else f"{min(planned)} to {max(planned)}"
        sentences.append((f"Mean ± sample standard deviation over {folds} folds.",))
    solvers = dict.fromkeys(str(cell.solver) for cell in table.cells)
    sentences += [
        (Code(solver), f": {run.references[solver]}.")
        for solver in solvers
        if solver in run.references
    ]
    described = "; ".join(describe_cpu(run, name) for name in used_environments(table.cells))
    sentences.append(("Environment: ", described or "none yet (nothing has been measured)", "."))
    return sentences


def _choice(block: Mapping[str, Any]) -> list[Sentence]:
    """Return sentences on the solvers that choose C and gamma, if a block says which."""
    chosen: dict[str, list[str]] = {}
    for solver, chooser in block.get("choose_with", {}).items():
        chosen.setdefault(chooser, []).append(solver)
    n_rows = block.get("choose_rows")
    if not chosen:
        return [(f"Each solver searches its grid on at most {n_rows:,} rows.",)] if n_rows else []
    words: list[str | Code] = []
    for chooser, solvers in chosen.items():
        whose = "its own C and gamma" if solvers == [chooser] else "C and gamma for "
        names = "" if solvers == [chooser] else ", ".join(solvers)
        words += ["; " if words else "", Code(chooser), f" chooses {whose}{names}"]
    who = "It searches" if len(chosen) == 1 else "Each of these searches"
    limit = f", on at most {n_rows:,} rows" if n_rows else ""
    return [(*words, "."), (f"{who} the grid on the same folds{limit}.",)]


def footnotes(table: Table, *, allow_contended: bool) -> list[Sentence]:
    """Return a note for each mark in a table."""
    entries = [
        entry
        for row in table.row_keys
        for column, metric in table.columns
        if (entry := table.entries.get((row, column, metric)))
    ]
    notes: list[Sentence] = []
    if table.spec.published:
        notes.append(_of_the_paper(table.spec.published, entries, allow_contended))
    if any(entry.summary.partial for entry in entries):
        # A score may be undefined on a fold that finished.
        if any(entry.summary.undefined for entry in entries):
            had = "has a value here: the mean is over those that have one (with one/planned)"
        else:
            had = "finished: the mean is over those that did (finished/planned)"
        notes.append((f"{PARTIAL_MARK} Not every fold {had}; the others are listed below.",))
    if "environment_group" in table.row_fields:
        notes.append(
            (
                "Folds of one measurement are from different environments, which are not averaged: "
                "each environment has a row of its own.",
            )
        )
    notes += _of_busy_machines(entries, allow_contended=allow_contended)
    if any(entry.summary.unresolved for entry in entries):
        text = (
            f"{UNRESOLVED_MARK} Shorter than the clock can tell: counts as"
            f" {CLOCK_RESOLUTION_S:g} s, and is not compared."
        )
        notes.append((text,))
    if any(entry.summary.false_convergence for entry in entries):
        liars = dict.fromkeys(
            name
            for entry in entries
            for name, is_true in entry.cell.convergence_confirmed.items()
            if not is_true
        )
        text = (
            f"{FALSE_CONVERGENCE_MARK} Not for equal work, and not compared: {' and '.join(liars)}"
            " stopped as if converged, and the certificate says that the objective may be more than"
            " 1 % above the optimum."
        )
        notes.append((text,))
    if any(entry.summary.low is not None for entry in entries):
        of = {e.cell.protocol == _SAMPLED for e in entries if e.summary.low is not None}
        what = "its 95 % bootstrap interval over the drawn values" if True in of else ""
        what += " or " if len(of) > 1 else ""
        what += "the range of its repeats" if False in of else ""
        notes.append((f"In parentheses after a value: {what}.",))
    elif any(e.summary.spread is not None and e.summary.folds == 1 for e in entries):
        if all(entry.cell.folds for entry in entries if entry.summary.value is not None):
            notes.append(("± is the sample standard deviation over the folds.",))
        else:
            text = "Where there is one fold, ± is half the interquartile range of repeats."
            notes.append((text,))
    if any(VERSUS in str(entry.cell.solver) for entry in entries):
        text = ": how many times faster a is than b (median of interleaved rounds)."
        notes.append((Code("a vs b"), text))
    metrics = {metric for _, metric in table.columns}
    if {"speedup", "train_time_s"} <= metrics:
        text = "A speed-up is a ratio of CPU times; the training times beside it are wall times."
        notes.append((text,))
    return notes


def _of_the_paper(name: str, entries: list[TableEntry], allow_contended: bool) -> Sentence:
    if any(entry.comparison.published is not None for entry in entries):
        has_cut_times = any(
            entry.comparison.published is not None
            and entry.comparison.difference is None
            and not entry.summary.why_not_compared(allow_contended=allow_contended)
            for entry in entries
        )
        cut = ", and for times of fewer rows than the paper's" if has_cut_times else ""
        return (
            "In brackets: what the paper prints, and how far the measured value is from it "
            "(times: measured / printed; others: measured − printed; ",
            Code("="),
            ": the same). The difference is left out where folds are missing or a time is marked"
            f"{cut}.",
        )
    has_table = any(published.has_table(entry.cell.paper, name) for entry in entries)
    why = "for these cells" if has_table else "that this suite has"
    return (f"The paper prints no numbers {why} (", Code(name), ").")


def _of_busy_machines(entries: list[TableEntry], *, allow_contended: bool) -> list[Sentence]:
    notes: list[Sentence] = []
    if any(entry.summary.contended for entry in entries):
        if allow_contended:
            text = "Some times were measured while other workers ran, and are used as asked."
        else:
            text = (
                f"{CONTENDED_MARK} Measured while other workers ran: an indication, not a timing "
                "to compare. Run with one job for that."
            )
        notes.append((text,))
    if any(entry.summary.disturbed for entry in entries):
        busy = (
            f"the wall time of the training is more than {OUTSIDE_LOAD_RATIO:g} times its CPU time:"
            " other programs had the processor"
        )
        if allow_contended:
            text = f"Of some cells {busy}; their times are used as asked."
        else:
            text = f"{DISTURBED_MARK} Measured under load from outside: {busy}."
        notes.append((text,))
    return notes
