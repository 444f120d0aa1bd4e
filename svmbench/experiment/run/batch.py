"""Several configs within one time budget: each runs until it is done or its share is spent.

The budget is divided evenly among the remaining configs. Time that a config doesn't need goes to
the others: configs that used up their share continue in another round while time is left. Every
result is on disk before the next cell starts, so the same command continues after an interruption.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from svmbench.base.errors import SvmbenchError
from svmbench.experiment.run.session import Request, RunPlan, Watch, execute_run, plan_run
from svmbench.experiment.settings.cells import Cell
from svmbench.schema.record import FAILED, duration_text

#: Seconds of a config in addition to its cells.
CONFIG_OVERHEAD_S = 3.0


@dataclass(frozen=True)
class Job:
    """One config of a batch.

    Attributes
    ----------
    request : Request
        The request for its run. The batch sets its budget.
    expected_s : float
        Expected seconds; 0 if unknown.
    wanted : callable or None
        Returns True for the cells to run; None to run all.
    """

    request: Request
    expected_s: float = 0.0
    wanted: Callable[[Cell], bool] | None = None


@dataclass
class ConfigOutcome:
    """The outcome of a config.

    Attributes
    ----------
    job : Job
    path : Path or None
        Its results folder; None before the config has run.
    counts : Counter of str
        Number of cells by status.
    reasons : dict of str to int
        Number of failed cells by status and reason.
    error : str
        Why the config could not be run or its tables could not be made; empty without an error.
    is_unfinished : bool
        Whether cells are left to run.
    """

    job: Job
    path: Path | None = None
    counts: Counter[str] = field(default_factory=Counter)
    reasons: dict[str, int] = field(default_factory=dict)
    error: str = ""
    is_unfinished: bool = True

    @property
    def name(self) -> str:
        """The config's name."""
        return Path(self.job.request.config).stem


@dataclass(frozen=True)
class Hooks:
    """Functions that a batch calls while it runs.

    Attributes
    ----------
    print_line : callable
        Called with one sentence for each step.
    note : callable
        Called with one sentence for each problem.
    watch : callable
        Returns a context that yields the listener for the cells of a config about to run.
    finish : callable
        Called with the results folder after each run of a config, to make its tables.
    """

    print_line: Callable[[str], None]
    note: Callable[[str], None]
    watch: Watch
    finish: Callable[[Path], None]


class Batch:
    """Configs that run one after another.

    Parameters
    ----------
    jobs : sequence of Job
        The configs in the order in which they run.
    budget_s : float
        Number of seconds after which no cell starts, and running cells are stopped.
    hooks : Hooks
    clock : callable, default=time.monotonic
        Returns the present time in seconds.
    shared : bool, default=True
        Whether the configs share the budget evenly. Otherwise a config may use all that is left.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        budget_s: float,
        hooks: Hooks,
        clock: Callable[[], float] = time.monotonic,
        *,
        shared: bool = True,
    ) -> None:
        self.shared = shared
        self.outcomes = [ConfigOutcome(job) for job in jobs]
        self.hooks, self.clock = hooks, clock
        self.started = clock()
        self.end = self.started + budget_s
        self.interrupted = False
        self._run_plans: dict[int, RunPlan] = {}
        self._spent: dict[int, float] = {}

    def run(self) -> list[ConfigOutcome]:
        """Run the configs until all are done or the budget is spent; return their outcomes."""
        unfinished = list(range(len(self.outcomes)))
        while unfinished:
            ran = False
            for position, number in enumerate(unfinished):
                remaining = self.end - self.clock()
                if remaining <= 0 or self.interrupted:
                    return self.outcomes
                self.hooks.print_line(self._headline(number))
                ran |= self._run_one(
                    number, remaining / (len(unfinished) - position) if self.shared else remaining
                )
            unfinished = [number for number in unfinished if self.outcomes[number].is_unfinished]
            if not ran:
                break
        return self.outcomes

    def seconds_left(self) -> float:
        """Return the expected seconds until the end, at most the rest of the budget.

        Expected seconds are scaled by the ratio of actual to expected seconds of finished configs.
        """
        expected = [outcome.job.expected_s + CONFIG_OVERHEAD_S for outcome in self.outcomes]
        done = [number for number in self._spent if not self.outcomes[number].is_unfinished]
        rate = 1.0
        if done:
            rate = sum(self._spent[number] for number in done) / sum(expected[n] for n in done)
        rest = sum(
            max(0.0, expected[number] * rate - self._spent.get(number, 0.0))
            for number, outcome in enumerate(self.outcomes)
            if outcome.is_unfinished
        )
        return min(rest, max(0.0, self.end - self.clock()))

    def _headline(self, number: int) -> str:
        n_unfinished = sum(outcome.is_unfinished for outcome in self.outcomes)
        return (
            f"{self.outcomes[number].name}: {n_unfinished} of {len(self.outcomes)} configs left, "
            f"{duration_text(self.seconds_left())}"
        )

    def _run_one(self, number: int, share_s: float) -> bool:
        """Run one config for its share of the time.

        Return True at its first turn, or if more cells have a result than before.
        """
        outcome = self.outcomes[number]
        begun = self.clock()
        try:
            ran = self._execute(number, share_s)
        except SvmbenchError as error:
            outcome.error, outcome.is_unfinished, ran = str(error), False, False
            self.hooks.note(f"{outcome.name}: {error}")
        self._spent[number] = self._spent.get(number, 0.0) + self.clock() - begun
        return ran

    def _execute(self, number: int, share_s: float) -> bool:
        outcome = self.outcomes[number]
        job = outcome.job
        again = number in self._run_plans
        if not again:
            run_plan = plan_run(job.request, print_line=self.hooks.print_line)
            if job.wanted is not None:
                run_plan = replace(run_plan, cells=[c for c in run_plan.cells if job.wanted(c)])
            self._run_plans[number] = run_plan
        run_plan = self._run_plans[number]
        # Cells that failed in the first round are not tried again.
        retry = "none" if again else job.request.retry
        # Planning, which may download data, has taken some of the time.
        rest_s = max(0.0, self.end - self.clock())
        budget_s = min(share_s, rest_s)
        request = replace(job.request, budget_s=budget_s, stop_s=rest_s, retry=retry, fresh=False)
        hooks = self.hooks
        finished = execute_run(
            replace(run_plan, request=request),
            print_line=hooks.print_line,
            note=hooks.note,
            watch=hooks.watch,
        )
        before = outcome.counts.total() - outcome.counts["not run"] if again else -1
        outcome.path = run_plan.path
        outcome.counts, outcome.reasons = Counter(), {}
        for cell in run_plan.cells:
            record = finished.records.get(cell.key)
            status = cell.status if cell.status != "planned" else "not run"
            reason = cell.reason
            if record is not None:
                status, reason = str(record["status"]), str(record.get("reason") or "")
            outcome.counts[status] += 1
            if status in FAILED:
                failure = f"{status}: {reason}" if reason else status
                outcome.reasons[failure] = outcome.reasons.get(failure, 0) + 1
        outcome.is_unfinished = outcome.counts["not run"] > 0
        self.interrupted = finished.summary.interrupted
        if not self.interrupted:
            hooks.finish(run_plan.path)
        return outcome.counts.total() - outcome.counts["not run"] > before
