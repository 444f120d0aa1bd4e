"""Run many configs one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from svmbench.base import escape
from svmbench.experiment.run.batch import Batch, ConfigOutcome, Hooks, Job
from svmbench.experiment.run.session import ignore_text, without_listener
from svmbench.report.output.builder import build

#: Largest number of reasons for failed cells shown for one config.
_MAX_REASONS = 3


class BatchInterruptedError(KeyboardInterrupt):
    """A batch of configs was interrupted by Ctrl-C; the same call continues it.

    Attributes
    ----------
    outcomes : list of ConfigOutcome
        The outcomes of the configs until then.
    """

    def __init__(self, outcomes: list[ConfigOutcome]) -> None:
        super().__init__()
        self.outcomes = outcomes


def quiet_hooks() -> Hooks:
    """Return hooks that make the tables of each run and show no progress."""

    def finish(path: Path) -> None:
        build(path)

    return Hooks(ignore_text, ignore_text, without_listener, finish)


def run_batch(
    jobs: Sequence[Job], minutes: float | None, hooks: Hooks | None, *, shared: bool = True
) -> list[ConfigOutcome]:
    """Run configs one after the other, and make the tables of each.

    Parameters
    ----------
    jobs : sequence of Job
    minutes : float or None
        Start no new cell after this many minutes, and stop the running ones.
    hooks : Hooks or None
        Functions that show the progress; none by default.
    shared : bool, default True
        True to share the minutes among the configs; otherwise each config may use all that are
        left.

    Raises
    ------
    BatchInterruptedError
        If Ctrl-C ended it.
    """
    budget_s = minutes * 60 if minutes is not None else float("inf")
    batch = Batch(jobs, budget_s, hooks or quiet_hooks(), shared=shared)
    outcomes = batch.run()
    if batch.interrupted:
        raise BatchInterruptedError(outcomes)
    return outcomes


def failures(outcome: ConfigOutcome) -> Iterator[str]:
    """Yield sentences for the error of a config and the most frequent failures of its cells."""
    if outcome.error:
        yield f"{outcome.name}: {escape.line(outcome.error, 400)}"
    reasons: list[tuple[str, Any]] = sorted(outcome.reasons.items(), key=lambda pair: -pair[1])
    for reason, count in reasons[:_MAX_REASONS]:
        cells = "cell" if count == 1 else "cells"
        yield f"{outcome.name}: {count} {cells} {escape.line(reason, 300)}"
    if len(reasons) > _MAX_REASONS:
        rest = sum(count for _, count in reasons[_MAX_REASONS:])
        yield f"{outcome.name}: {rest} more for other reasons"
