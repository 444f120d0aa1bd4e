"""A run from the request to its records, for the command ``run`` and for `svmbench.run`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from svmbench.base.errors import ConfigError
from svmbench.base.paper_folders import FULL_PROFILE
from svmbench.experiment.plan import filters
from svmbench.experiment.plan.filters import Filters
from svmbench.experiment.plan.planner import Plan, prepare_plan
from svmbench.experiment.run.execute import Listener, Options, RunSummary, Silent, due, execute
from svmbench.experiment.run.loop import workers_here
from svmbench.experiment.run.record_file import RunFolder, check_reusable, refuse_foreign
from svmbench.experiment.settings.cells import Cell
from svmbench.schema.record import CellRecord

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Request:
    """The request for a run.

    Attributes
    ----------
    config : str
        Path of a config file, or the name of one that ships with svmbench.
    profile : str
    output : Path or None
        Results folder; None for ``results/<config>-<profile>``.
    mirror : str or None
        Folder or URL with data files.
    overrides : tuple of str
        ``key=value`` pairs that change the config.
    only : mapping of str to list of str
        Filters of the cells to run (see `filters_of`); the plan lists the other cells, too.
    trust : bool
        Whether to import classes of other packages than scikit-learn, and to run the programs
        that the config names. Both run foreign code.
    jobs : int
        Number of cells that run at the same time.
    cluster : str
        Address of a Dask scheduler, or ``local:<workers>``; its workers run the cells. Empty for
        this machine.
    kind : str
        Kind of the cluster's workers that run timed cells; empty if all are of one kind.
    timeout_s, memory_gb : float or None
        Limits of a cell: seconds, GiB. None for the config's limits.
    budget_s : float
        Number of seconds after which no new cell starts.
    stop_s : float
        Number of seconds after which running cells are stopped, too.
    retry : str
        Which results to try again: ``none``, ``failed``, ``timeout``, ``all`` (of these two), or
        ``disturbed``.
    fresh : bool
        Whether earlier records are set aside.
    reuse : tuple of Path
        Folders of other runs; results of cells with the same key are copied from them.
    """

    config: str
    profile: str = "quick"
    output: Path | None = None
    mirror: str | None = None
    overrides: tuple[str, ...] = ()
    only: Filters = field(default_factory=dict)
    trust: bool = False
    jobs: int = 1
    cluster: str = ""
    kind: str = ""
    timeout_s: float | None = None
    memory_gb: float | None = None
    budget_s: float = float("inf")
    stop_s: float = float("inf")
    retry: str = "none"
    fresh: bool = False
    reuse: tuple[Path, ...] = ()

    def options(self, plan: Plan) -> Options:
        """Return the options of the request, with the config's values as defaults."""
        settings = plan.config
        return Options(
            jobs=self.jobs,
            timeout_s=self.timeout_s or settings.timeout_s,
            memory_gb=self.memory_gb or settings.memory_gb,
            scratch_gb=settings.scratch_gb,
            retry=self.retry,
            budget_s=self.budget_s,
            stop_s=self.stop_s,
            cluster=self.cluster,
            kind=self.kind,
        )


@dataclass(frozen=True)
class RunPlan:
    """The plan of a request, the requested cells, and the results folder."""

    request: Request
    plan: Plan
    cells: list[Cell]
    path: Path


@dataclass(frozen=True)
class Finished:
    """The end of a run, and the newest record of each cell by its key."""

    summary: RunSummary
    records: dict[str, CellRecord]


#: What a run counts as cells of a data set that it can't get, since the number of its folds is not
#: known; part of messages.
ABSENT_CELLS = "one for each block and solver of a missing data set"
#: Returns a context that yields the listener for the cells about to run.
Watch = Callable[[list[Cell]], AbstractContextManager[Listener]]


@contextmanager
def without_listener(_cells: list[Cell]) -> Iterator[Listener]:
    """Yield a listener that does nothing."""
    yield Silent()


def ignore_text(_text: str) -> None:
    """Do nothing with a sentence."""


def plan_run(
    request: Request, *, prepare: bool = True, print_line: Callable[[str], None] = ignore_text
) -> RunPlan:
    """Plan a run; write only prepared data sets.

    Parameters
    ----------
    request : Request
    prepare : bool, default=True
        Whether to fetch and prepare missing data sets.
    print_line : callable
        Called with one sentence for each data set. Default: the sentences are ignored.

    Raises
    ------
    svmbench.base.errors.SvmbenchError
        If the config is invalid, or the filters match nothing.
    """
    if request.cluster:
        from svmbench.experiment.run.scheduler import check_address

        check_address(request.cluster)
        if request.jobs > 1:
            raise ConfigError("--jobs is for this machine; a worker of a --cluster runs one cell")
    elif request.kind:
        raise ConfigError("--kind chooses among the workers of a --cluster")
    plan = prepare_plan(
        request.config,
        request.profile,
        mirror=request.mirror,
        overrides=request.overrides,
        trust=request.trust,
        only=request.only,
        prepare=prepare,
        on_event=print_line,
    )
    path = request.output or default_output(plan.name, request.profile)
    return RunPlan(request, plan, filters.only(plan.cells, request.only, plan.config), path)


def execute_run(
    run_plan: RunPlan,
    *,
    print_line: Callable[[str], None] = ignore_text,
    note: Callable[[str], None] = ignore_text,
    watch: Watch = without_listener,
) -> Finished:
    """Run the planned cells, except those that an earlier run finished.

    Parameters
    ----------
    run_plan : RunPlan
    print_line : callable
        Called with one sentence for each step.
    note : callable
        Called with one sentence for each record that was repaired or skipped in the folder.
    watch : callable
        Returns a context that yields the listener for the cells about to run.

    Raises
    ------
    svmbench.base.errors.SvmbenchError
        If the results folder can't be written, or a folder can't be reused.
    """
    request, plan, cells, path = run_plan.request, run_plan.plan, run_plan.cells, run_plan.path
    for other in request.reuse:
        check_reusable(other, path)
    plan_json = plan.to_json()
    refuse_foreign(path, json.loads(plan_json))
    with RunFolder(path, plan.name) as folder:
        if request.fresh:
            folder.start_afresh()
        folder.write_file("plan.json", plan_json)
        for other in request.reuse:
            missing = due(cells, folder.cells, folder.points, "all")
            wanted = {cell.key: cell.identity for cell in missing}
            print_line(
                f"{amount_text(folder.take_over(other, wanted), 'result')} taken over from {other}"
            )
        for text in folder.notes:
            note(text)
        todo = due(cells, folder.cells, folder.points, request.retry)
        planned = f"{plan.name} ({request.profile}): {amount_text(len(plan.cells), 'cell')}"
        absent = sum(cell.status == "unavailable" for cell in plan.cells)
        counts_as = f", {absent} unavailable ({ABSENT_CELLS})" if absent else ""
        print_line(f"{planned}, {len(todo)} to run{counts_as}")
        if size := size_sentence(plan):
            print_line(size)
        with _server(plan, todo, request), watch(todo) as listener:
            summary = execute(plan, cells, folder, request.options(plan), listener)
        return Finished(summary, dict(folder.cells))


def size_sentence(plan: Plan) -> str:
    """Return a sentence on the plan's profile and on what the full profile runs in addition.

    It is empty for the full profile, for a profile without a note, and without a full profile.
    """
    note = plan.config.profiles[plan.profile].note
    full = plan.config.profiles.get(FULL_PROFILE)
    if not note or plan.profile == FULL_PROFILE or full is None:
        return ""
    # A full protocol may still leave out rows that its note names.
    runs = "the paper's own size" if full.max_samples is None else full.note or "more"
    return f"size {plan.profile!r}: {note}; --profile {FULL_PROFILE} runs {runs}"


def _server(plan: Plan, cells: list[Cell], request: Request) -> AbstractContextManager[None]:
    """Start the worker server before the progress display starts a thread."""
    return nullcontext() if request.cluster or not cells else workers_here(plan, cells)


class Where(TypedDict, total=False):
    """The arguments of :func:`run` that say where cells run."""

    jobs: int
    cluster: str
    kind: str


def run(
    config: str,
    profile: str = "quick",
    *,
    output: str | Path | None = None,
    mirror: str | None = None,
    overrides: tuple[str, ...] = (),
    trust: bool = False,
    **where: Unpack[Where],
) -> pd.DataFrame:
    """Run a config, except cells that an earlier run finished; return the records of all cells.

    Call it under ``if __name__ == "__main__":`` if workers need something that the script defines,
    such as a registered solver. Workers don't import a script without that line.

    Parameters
    ----------
    config : str
        Path of a config file, or the name of one that ships with svmbench.
    profile : str
        One of the config's profiles.
    output : path, optional
        Results folder; default ``results/<config>-<profile>``.
    mirror : str, optional
        Folder or URL with data files; default the environment variable ``SVMBENCH_MIRROR``.
    overrides : tuple of str
        ``key=value`` pairs that change the config.
    trust : bool, default=False
        Whether to import classes of other packages than scikit-learn (``class: …``) and to run the
        programs that the config names. Both run foreign code.
    jobs : int, default=1
        Number of cells that run at the same time; above one, times are marked as contended.
    cluster : str, optional
        Address of a Dask scheduler, or ``local:<workers>``; its workers run the cells.
    kind : str, optional
        Kind of the workers that run timed cells: the name of their CPU, or the value of
        ``SVMBENCH_KIND`` in their environment.

    Returns
    -------
    pandas.DataFrame
        One row for each cell, in table order; metrics are columns.

    Raises
    ------
    svmbench.base.errors.SvmbenchError
        If the config is invalid, or the results folder can't be written.
    TypeError
        If there is no such keyword.
    """
    import pandas as pd

    run_plan = plan_run(
        Request(
            config=config,
            profile=profile,
            output=Path(output) if output else None,
            mirror=mirror,
            overrides=overrides,
            trust=trust,
            **where,
        )
    )
    records = execute_run(run_plan).records
    return pd.DataFrame([_row(cell, records.get(cell.key)) for cell in run_plan.plan.cells])


def default_output(config: str, profile: str) -> Path:
    """Return the results folder of a config and profile."""
    return Path("results") / f"{config}-{profile}"


def _row(cell: Any, record: CellRecord | None) -> dict[str, Any]:
    status = {"status": cell.status if cell.status != "planned" else "not run"}
    values = record or {**status, "reason": cell.reason}
    shared = {k: values.get(k) for k in ("status", "reason", "params", "stop_reason", "counters")}
    return {**cell.identity, **shared, **values.get("metrics", {})}


def amount_text(number: int, what: str) -> str:
    """Return a number and a noun, in the plural if needed: ``1 cell``, ``2,000 cells``."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"
