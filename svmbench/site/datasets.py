"""Facts about each data set, its best solvers, and charts of error against time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from svmbench.report.numbers.ratios import DeclaredName, trains
from svmbench.report.numbers.summary import group, summarise_folds
from svmbench.report.output.builder import Content
from svmbench.report.reading.records import VERSUS, CellResult, split_races
from svmbench.report.tables.best import contests
from svmbench.site.standings import quantity_of

#: Metrics of accuracy in per cent, the first that is there.
_ACCURACIES = ("accuracy_pct", "auc_pct")
#: Metrics of the training time, the first that is there.
_TIMES = ("cpu_time_s", "train_time_s")


@dataclass(frozen=True)
class Best:
    """The best solvers in one comparison of a table.

    Attributes
    ----------
    slug, table, title : str
        Slug of the run, name and title of the table.
    metric, setting : str
        Metric in words; values of the other fields of the comparison.
    solvers : list of str
        Labels of the best solvers.
    rivals : int
        Number of compared solvers.
    """

    slug: str
    table: str
    title: str
    metric: str
    setting: str
    solvers: list[str]
    rivals: int


@dataclass(frozen=True)
class SettingOutcome:
    """Training time and error of one solver in one setting: the means over the folds.

    Attributes
    ----------
    slug, config, block : str
        The run and the block.
    dataset : str
        Data set without the range of its rows.
    setting : str
        Data set as named in the config, kernel and swept dimensions.
    solver, label : str
        Declared solver, and its label in the config.
    seconds : float
        CPU time of training (wall time where no CPU time is recorded), in seconds.
    accuracy : float or None
        Accuracy (or AUC), in per cent.
    rows : float or None
        Training rows, where the run trained at several sizes.
    """

    slug: str
    config: str
    block: str
    dataset: str
    setting: str
    solver: str
    label: str
    seconds: float
    accuracy: float | None
    rows: float | None = None


def base_name(dataset: str) -> str:
    """Return the name of a data set without the range of its rows: ``a9a`` of ``a9a[:5000]``."""
    return dataset.partition("[")[0] if dataset.endswith("]") else dataset


def best_solvers(contents: Iterable[tuple[str, Content]]) -> dict[str, list[Best]]:
    """Return the best solvers of every comparison in the tables, by data set."""
    by_dataset: dict[str, list[Best]] = {}
    for slug, content in contents:
        for table in content.tables:
            for contest in contests(content.run, table):
                entry_key, _ = next(iter(contest.values.values()))
                cell = table.entries[entry_key].cell
                if cell.dataset is None:
                    continue
                best = Best(
                    slug=slug,
                    table=table.spec.name,
                    title=f"{content.run.title}: {table.spec.heading}",
                    metric=quantity_of(content, contest.metric),
                    setting=_setting(cell),
                    solvers=contest.best(),
                    rivals=len(contest.values),
                )
                by_dataset.setdefault(base_name(cell.dataset), []).append(best)
    return by_dataset


def outcomes_of(
    contents: Iterable[tuple[str, Content]], declared: DeclaredName
) -> Iterator[SettingOutcome]:
    """Yield time and accuracy of every finished setting, in the order of the runs."""
    for slug, content in contents:
        run = content.run
        cells = [cell for cell in split_races(run.cells) if _is_single(cell)]
        cells = [cell for cell in cells if trains(run, cell)]
        for members in group(cells).values():
            first = members[0]
            seconds = _mean(members, _TIMES)
            if seconds is None or seconds <= 0.0:
                continue
            label = str(first.solver)
            yield SettingOutcome(
                slug=slug,
                config=run.name,
                block=first.block,
                dataset=base_name(str(first.dataset)),
                setting=_setting(first),
                solver=declared(run.name, label),
                label=label,
                seconds=seconds,
                accuracy=_mean(members, _ACCURACIES),
                rows=first.dimensions.get("rows"),
            )


def pareto_front(points: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the points of (time, error) that no other point beats in both, by time."""
    front: list[tuple[float, float]] = []
    for seconds, error in sorted(set(points)):
        if not front or error < front[-1][1]:
            front.append((seconds, error))
    return front


def subsample_baseline(outcomes: Iterable[SettingOutcome]) -> list[tuple[float, float]]:
    """Return (time, error) of LIBSVM at each of several numbers of rows, fewest rows first.

    Where LIBSVM has several points at one number of rows, there is no one line, and no point.
    """
    sized = [
        (outcome.rows, outcome.seconds, 100.0 - outcome.accuracy)
        for outcome in outcomes
        if outcome.solver == "libsvm" and outcome.rows is not None and outcome.accuracy is not None
    ]
    if len(sized) < 2 or len({rows for rows, _, _ in sized}) < len(sized):
        return []
    return [(seconds, error) for _, seconds, error in sorted(sized)]


def comparable(outcomes: Sequence[SettingOutcome]) -> dict[tuple[str, str], list[SettingOutcome]]:
    """Return the outcomes with an accuracy by run and block, where several solvers took part."""
    blocks: dict[tuple[str, str], list[SettingOutcome]] = {}
    for outcome in outcomes:
        if outcome.accuracy is not None:
            blocks.setdefault((outcome.slug, outcome.block), []).append(outcome)
    return {
        key: several
        for key, several in blocks.items()
        if len({outcome.label for outcome in several}) > 2
    }


def _is_single(cell: CellResult) -> bool:
    return cell.status == "ok" and bool(cell.dataset and cell.solver) and not _is_pair(cell)


def _is_pair(cell: CellResult) -> bool:
    return VERSUS in str(cell.solver)


def _mean(cells: Sequence[CellResult], metrics: Sequence[str]) -> float | None:
    for metric in metrics:
        summary = summarise_folds(cells, metric)
        if summary.value is not None and not summary.busy:
            return summary.value
    return None


def _setting(cell: CellResult) -> str:
    parts = [str(cell.dataset), cell.kernel, *(f"{n} {v}" for n, v in cell.dimensions.items())]
    return ", ".join(part for part in parts if part)
