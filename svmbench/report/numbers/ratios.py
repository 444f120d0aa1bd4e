"""Ratios of CPU time to LIBSVM and LIBLINEAR from races, by problem and by class of problems."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from statistics import median

from svmbench.report.numbers.certified import MIN_RANKED_PROBLEMS, RANKED_AT, TIME_TO
from svmbench.report.numbers.summary import value_of
from svmbench.report.reading.records import CellResult, Run, split_races

#: Prefixes of the names of the reference solvers, and their names in words. scikit-learn's NuSVC is
#: its copy of LIBSVM's.
REFERENCES = {"libsvm": "LIBSVM", "liblinear": "LIBLINEAR", "NuSVC": "LIBSVM"}
#: Metric of the least CPU time to the certified accuracy at which solvers are ranked.
_TO_CERTIFIED = TIME_TO.format(RANKED_AT)
#: Values of a block's ``call`` whose times are times of warm training; other calls are not compared
#: here.
_TRAINING_CALLS = {"", "fit", "train"}
#: Largest number of training rows of a small problem.
SMALL_ROWS = 5_000
#: Largest excess of an objective, as a share, up to which two solutions count as equally good.
EQUAL_OBJECTIVE = 1e-2

#: From a config and a label to the name of a declared solver.
DeclaredName = Callable[[str, str], str]


@dataclass(frozen=True)
class Ratio:
    """The CPU time of a reference solver over another solver's, on one problem.

    Attributes
    ----------
    problem : str
        Data set, with the swept dimensions and the block of the config.
    problem_class : str
        Task, kernel and size in words, with the reference solver.
    dataset, solver, label, reference : str
        Data set; declared solver, with its label in the config; label of the reference solver.
    value, low, high : float
        Median over the runs of the problem, and the range of all rounds; above 1 the solver is
        faster than the reference.
    excess : float or None
        Largest share by which the solver's objective is above the lowest of the race; infinite if
        the solver solves another problem than the reference, None if no objectives are compared.
    slug : str
        Slug of the newest run with the ratio.
    """

    problem: str
    problem_class: str
    dataset: str
    solver: str
    label: str
    reference: str
    value: float
    low: float
    high: float
    excess: float | None
    slug: str


@dataclass(frozen=True)
class Leader:
    """A solver in a class of problems: the median of its ratios and their range.

    A solver is ranked if it has at least `MIN_RANKED_PROBLEMS` problems.

    Attributes
    ----------
    solver : str
    median, low, high : float
        Median, lowest and highest ratio over the problems.
    problems : int
    is_exact : bool or None
        Whether every objective is within `EQUAL_OBJECTIVE` of the lower one; None if no race of the
        class compares objectives.
    """

    solver: str
    median: float
    low: float
    high: float
    problems: int
    is_exact: bool | None

    @property
    def is_ranked(self) -> bool:
        """True if there are enough problems."""
        return self.problems >= MIN_RANKED_PROBLEMS


@dataclass(frozen=True)
class Repeated:
    """The ratios of one problem in an earlier and in a later run of the same config."""

    before: Ratio
    now: Ratio

    @property
    def change(self) -> float:
        """The later median over the earlier one; below 1 the solver lost against its reference."""
        return self.now.value / self.before.value

    @property
    def word(self) -> str:
        """``worse`` or ``better`` if the ranges of all rounds don't overlap, else ``within``."""
        if self.now.high < self.before.low:
            return "worse"
        return "better" if self.now.low > self.before.high else "within"


def ratios(runs: Iterable[tuple[str, Run]], declared: DeclaredName) -> list[Ratio]:
    """Return every ratio to a reference solver, the highest first.

    Runs of one config that repeat a problem count once: the median of their values.

    Parameters
    ----------
    runs : iterable of (str, Run)
        Runs with their slugs.
    declared : callable
        From a config and a label to the name of a declared solver.
    """
    by_problem = _by_problem(runs, declared)
    return sorted(
        map(_merged, by_problem.values()), key=lambda ratio: (-ratio.value, ratio.problem)
    )


def repeated(runs: Iterable[tuple[str, Run]], declared: DeclaredName) -> list[Repeated]:
    """Return the ratios that an earlier and a later run of one config have, the worst first.

    Parameters
    ----------
    runs, declared
        As for :func:`ratios`.
    """
    ordered = sorted(runs, key=lambda pair: _measured_at(pair[1]))
    return sorted(
        (Repeated(*several[-2:]) for several in _by_problem(ordered, declared).values()
         if len(several) > 1),
        key=lambda repeat: repeat.change,
    )  # fmt: skip


def _measured_at(run: Run) -> str:
    """Return when a run was last measured, as far as its environments tell it."""
    sessions = [
        session for content in run.environments.values() for session in content.get("load") or ()
    ]
    return max((str(session.get("at", "")) for session in sessions), default="")


def _by_problem(
    runs: Iterable[tuple[str, Run]], declared: DeclaredName
) -> dict[tuple[object, ...], list[Ratio]]:
    """Return the ratios of all races of training, by config, problem, solver and reference."""
    by_key: dict[tuple[object, ...], list[Ratio]] = {}
    for slug, run in runs:
        for cell in run.cells:
            if cell.is_race and cell.status == "ok" and trains(run, cell):
                for ratio in _of_race(run, cell, slug, declared):
                    key = (run.name, cell.block, ratio.problem, ratio.label, ratio.reference)
                    by_key.setdefault(key, []).append(ratio)
    return by_key


def leaderboard(measured_ratios: Iterable[Ratio]) -> dict[str, list[Leader]]:
    """Return the solvers of each class of problems.

    Exact solvers come first, then those that are approximate or not checked; among these, ranked
    ones before the others, and the highest median ratio first. Variants of a solver are left out.
    Where a race has several reference solvers, the fastest one counts.
    """
    classes: dict[str, dict[str, dict[str, Ratio]]] = {}
    for ratio in measured_ratios:
        if ratio.label == ratio.solver:
            solvers = classes.setdefault(ratio.problem_class, {})
            best = solvers.setdefault(ratio.solver, {}).setdefault(ratio.problem, ratio)
            if ratio.value < best.value:
                solvers[ratio.solver][ratio.problem] = ratio
    return {
        name: sorted(
            (_leader(solver, list(several.values())) for solver, several in solvers.items()),
            key=lambda leader: (not leader.is_exact, not leader.is_ranked, -leader.median),
        )
        for name, solvers in sorted(classes.items())
    }


def reference_of(label: str) -> str:
    """Return the reference solver that a label names, in words, or ''."""
    return next((words for prefix, words in REFERENCES.items() if label.startswith(prefix)), "")


def trains(run: Run, cell: CellResult) -> bool:
    """Return True if the times of a cell are times of warm training."""
    return str(run.blocks.get(cell.block, {}).get("call") or "") in _TRAINING_CALLS


def _of_race(run: Run, cell: CellResult, slug: str, declared: DeclaredName) -> Iterator[Ratio]:
    """Yield the ratios of a race between a solver and a reference solver."""
    by_name = {part.solver: part for part in split_races([cell])}
    for key in cell.metrics:
        metric, *owners = key.split(":")
        if metric != "ratio" or len(owners) != 2:
            continue
        first, second = owners
        value = value_of(by_name[f"{first} vs {second}"], "ratio")
        spread = cell.spread.get(key)
        if f"{_TO_CERTIFIED}:{first}" in cell.metrics:
            # Sums over several settings can't be compared: compare times to a certified accuracy.
            time, time_of_reference = (value_of(by_name[name], _TO_CERTIFIED) for name in owners)
            value, spread = (time_of_reference / time if time and time_of_reference else None), None
        if not value or value <= 0.0:
            continue
        ends = spread if isinstance(spread, (list, tuple)) and len(spread) == 2 else (value, value)
        low, high = (float(end) for end in ends)
        if reference_of(second) and not reference_of(first):
            solver, reference, times = first, second, (value, low, high)
        elif reference_of(first) and not reference_of(second) and low > 0.0:
            solver, reference, times = second, first, (1 / value, 1 / high, 1 / low)
        else:
            continue
        yield Ratio(
            problem=_problem(cell),
            problem_class=_class_of(run, cell, reference),
            dataset=cell.dataset or "",
            solver=declared(run.name, solver),
            label=solver,
            reference=reference,
            value=times[0],
            low=times[1],
            high=times[2],
            excess=_excess(by_name[solver], by_name[f"{first} vs {second}"]),
            slug=slug,
        )


def _excess(solver: CellResult, pair: CellResult) -> float | None:
    # A difference without a value says that the two minimise different functions.
    if "objective_difference" in pair.metrics and pair.metrics["objective_difference"] is None:
        return math.inf
    return value_of(solver, "excess_objective")


def _problem(cell: CellResult) -> str:
    swept = [f"{value} {name}" for name, value in cell.dimensions.items()]
    return f"{', '.join([str(cell.dataset), *swept])} ({cell.block})"


def _class_of(run: Run, cell: CellResult, reference: str) -> str:
    """Return task, kernel, size and reference solver of a race, in words."""
    beside = f"against {reference_of(reference)}"
    if "oneclass" in reference or run.blocks.get(cell.block, {}).get("task") == "one-class":
        return f"one-class, {beside}"
    if reference == "NuSVC":
        return f"ν-SVC, {beside}"
    if cell.kernel == "linear" or reference.startswith("liblinear"):
        return f"linear classifier, {beside}"
    if run.blocks.get(cell.block, {}).get("task") == "multiclass":
        return f"kernel classifier, several classes, {beside}"
    rows = value_of(cell, "n_train") or 0
    size = "up to" if rows <= SMALL_ROWS else "more than"
    return f"kernel classifier, {size} {SMALL_ROWS:,} rows, {beside}"


def _merged(several: list[Ratio]) -> Ratio:
    """Return one ratio for the runs that repeat a problem."""
    last = several[-1]
    excesses = [ratio.excess for ratio in several if ratio.excess is not None]
    return Ratio(
        **{
            **last.__dict__,
            "value": median(ratio.value for ratio in several),
            "low": min(ratio.low for ratio in several),
            "high": max(ratio.high for ratio in several),
            "excess": max(excesses, default=None),
        }
    )


def _leader(solver: str, ratios_of_solver: list[Ratio]) -> Leader:
    values = [ratio.value for ratio in ratios_of_solver]
    excesses = [ratio.excess for ratio in ratios_of_solver if ratio.excess is not None]
    return Leader(
        solver=solver,
        median=median(values),
        low=min(values),
        high=max(values),
        problems=len(ratios_of_solver),
        is_exact=max(excesses) <= EQUAL_OBJECTIVE if excesses else None,
    )
