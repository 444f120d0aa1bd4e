"""Races of solvers without a config.

:func:`race` runs one: ``race("breast-cancer", ["dcd-l1 C=1", "liblinear-l1 C=1"])``. The command
line calls the same functions.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from svmbench.base.errors import ConfigError, SvmbenchError
from svmbench.base.escape import line
from svmbench.baselines import templates
from svmbench.report.gate.race_times import WALL_GROWTH, WALL_SLACK_S
from svmbench.schema.record import CellRecord
from svmbench.studies.datasets import dataset_entry

if TYPE_CHECKING:
    from svmbench.experiment.settings.cells import Cell

#: How metrics of the time to an accuracy begin.
TIME_TO_PREFIX = "cpu_time_to_"
#: Factors of the fastest solver's time that a performance profile shows.
PROFILE_FACTORS = (1.0, 2.0, 4.0, 10.0, 100.0)
#: If the relative gaps of two solvers are certainly at most this, they did about the same work.
EQUAL_WORK = 1e-2
#: Two builds whose objectives differ by at most this, relative, reach the same one.
SAME_OBJECTIVE_SHARE = 1e-3
#: The reason of a failed cell ends so if a program without a prediction command can't predict.
NO_PREDICTION = "add 'predict' to the config"


@dataclass(frozen=True)
class RaceSettings:
    """Settings of a race.

    Attributes
    ----------
    rounds : int, default 9
        Each solver trains once a round, in turn.
    rows : int, default 0
        Largest number of rows, which are drawn by class; 0 for all.
    tolerance : float, optional
        Compare the costs of reaching the best objective within this relative difference; without
        it, compare the solvers at their given settings.
    accuracies : tuple of float, default ()
        Relative gaps for which the least certified time is shown.
    scaling : {"all-rows", "none"}, default "all-rows"
        Scale features to [0, 1] on all rows, or not at all.
    timeout_s : float, default 600
        Seconds after which the race is given up.
    mirror : str, optional
        As for :func:`svmbench.data.ensure`.
    train_accuracy : bool, default True
        Show the accuracy on the training rows.
    """

    rounds: int = 9
    rows: int = 0
    tolerance: float | None = None
    accuracies: tuple[float, ...] = ()
    scaling: str = "all-rows"
    timeout_s: float = 600.0
    mirror: str | None = None
    train_accuracy: bool = True


class RaceResult(TypedDict):
    """A race, as it is printed and written as JSON.

    `note` names the racers without an objective, short of the target, or without a certificate;
    `notes` are sentences on what the race compares.
    """

    dataset: str
    n_train: int
    rounds: int
    solvers: list[SolverResult]
    ratios: list[RivalRatio]
    note: str
    notes: list[str]


class SolverResult(TypedDict):
    """The result of one solver in a race; times are in seconds.

    `solver` is its label. `offset` says in words how it treats the offset. `objective` is None if
    its problem is unknown. `excess_objective` is its relative difference from the best objective of
    the race. `certified` says if there is a certificate; `certified_gap` bounds the relative
    difference of the objective from the optimum, and is None without a bound. `train_accuracy_pct`
    is the accuracy on the training rows. `times_to` has the CPU time that certainly reaches each
    relative gap.
    """

    solver: str
    problem: str
    offset: str
    cpu_time_s: float | None
    cpu_range_s: list[float] | None
    train_time_s: float | None
    objective: float | None
    excess_objective: float | None
    certified: bool
    certified_gap: float | None
    train_accuracy_pct: float | None
    times_to: dict[str, float | None]


class RivalRatio(TypedDict):
    """The CPU time of a solver divided by that of the first solver.

    `ratio` is the median over the rounds, and None if one of the two missed the target. `summed`
    says which times each round adds; it is "" for one setting.
    """

    solver: str
    ratio: float | None
    range: list[float] | None
    summed: str


def race(
    dataset: str,
    solvers: Sequence[str],
    *,
    label: str | None = None,
    trust: bool = False,
    **settings: Any,
) -> RaceResult:
    """Race solvers on a data set; the first is compared with each of the others.

    Parameters
    ----------
    dataset : str
        A registered name, a file, or ``openml:NUMBER``.
    solvers : sequence of str
        At least two, each a name with its settings: ``"csvc C=1 gamma=0.1"``. With a tolerance or
        accuracies, one setting may have several values, from loose to tight: ``"tol=1,0.1,0.01"``.
    label : str, optional
        The column of classes, if the data set is a table.
    trust : bool, default False
        Import classes that come from elsewhere than scikit-learn, and start programs.
    **settings
        Fields of :class:`RaceSettings`, such as ``rounds=3`` and ``tolerance=0.01``.

    Returns
    -------
    RaceResult

    Raises
    ------
    svmbench.base.errors.ConfigError
        For an unknown data set, solver or parameter, or fewer than two solvers.
    svmbench.base.errors.SvmbenchError
        If the race can't be run; with the reason.

    Examples
    --------
    >>> result = race("breast-cancer", ["dcd-l1", "csvc"], rounds=3)  # doctest: +SKIP
    >>> result["ratios"][0]["ratio"]  # doctest: +SKIP
    2.4
    """
    if len(solvers) < 2:
        raise ConfigError("a race needs two solvers")
    racers = parse_racers(solvers, trust=trust)
    entry = dataset_entry(dataset, label)
    return time_solvers(entry, racers, RaceSettings(**settings), trust=trust)


def time_solvers(
    dataset: dict[str, Any],
    racers: Sequence[Racer],
    settings: RaceSettings,
    *,
    trust: bool = False,
    watch: Callable[[list[Cell]], AbstractContextManager[object]] = nullcontext,
) -> RaceResult:
    """Race solvers on a data set in one new process; the first is compared with the others.

    Parameters
    ----------
    dataset : dict
        What :func:`dataset_entry` returns.
    racers : list of Racer
        At least two; the first is the one in question.
    settings : RaceSettings
    trust : bool, default=False
        Import classes that come from elsewhere than scikit-learn.
    watch : callable
        Called with the race's cell before it runs; returns a context that lasts while it runs.

    Returns
    -------
    RaceResult

    Raises
    ------
    svmbench.base.errors.SvmbenchError
        If the race could not be run; with the reason.
    """
    from svmbench.experiment.config.loader import check_source
    from svmbench.experiment.config.yaml_source import source_of_value
    from svmbench.experiment.plan.planner import make_plan
    from svmbench.experiment.run.execute import Options, execute
    from svmbench.experiment.run.loop import workers_here
    from svmbench.experiment.run.record_file import RunFolder

    content = race_config([dataset], racers, settings)
    config = check_source(source_of_value(content, "svmbench time"), trust=trust)
    plan = make_plan(config, "time", "quick", mirror=settings.mirror)
    (cell,) = plan.cells
    if cell.status != "planned":
        raise SvmbenchError(cell.reason)
    with (
        tempfile.TemporaryDirectory(prefix="svmbench-race-") as folder,
        RunFolder(Path(folder)) as records,
    ):
        with workers_here(plan, plan.cells), watch(plan.cells):
            summary = execute(plan, plan.cells, records, Options(timeout_s=settings.timeout_s))
        if summary.interrupted:
            raise KeyboardInterrupt
        record = records.cells[cell.key]
    if record["status"] != "ok" and settings.train_accuracy and NO_PREDICTION in record["reason"]:
        # A program that trains but can't predict here still has its times.
        without = replace(settings, train_accuracy=False)
        return time_solvers(dataset, racers, without, trust=trust, watch=watch)
    if record["status"] != "ok":
        raise SvmbenchError(f"the race ended without a result: {record['reason']}")
    shown = dataset.get("name") or dataset.get("file") or str(cell.identity["dataset"])
    return _result(shown, racers, settings, record)


def race_config(
    datasets: list[dict[str, Any]], racers: Sequence[Racer], settings: RaceSettings
) -> dict[str, Any]:
    """Return the config of a race, which ``svmbench run`` takes as well.

    Raises
    ------
    svmbench.base.errors.ConfigError
        If two racers have the same name and settings.
    """
    from svmbench.report.numbers.certified import ACCURACIES, TIME_TO

    first, *others = [racer.label for racer in racers]
    if len({first, *others}) < len(racers):
        raise ConfigError(f"{first} against itself needs other parameters on one side")
    block = {
        "name": "race",
        "protocol": "race",
        "repeats": settings.rounds,
        "max_samples": settings.rows,
        "tolerance": settings.tolerance,
        "train_accuracy": settings.train_accuracy,
        "scaling": settings.scaling,
        "pairs": [[first, other] for other in others],
        "multiclass": "one-vs-one",
    }
    if settings.accuracies:
        block["accuracies"] = list(settings.accuracies)
    times_to = [
        TIME_TO.format(accuracy)
        for accuracy in ACCURACIES
        if float(accuracy) in settings.accuracies
    ]
    metrics = ["ratio", "cpu_time_s", "train_time_s", "objective"]
    metrics += ["certified_gap", "solved_1e-2_pct", "solved_1e-3_pct", "solved_1e-5_pct"]
    metrics += [*times_to, "claims_true_pct", "train_accuracy_pct"]
    ratios = {"kind": "race", "y": "ratio", "title": f"CPU time of the others over {first}"}
    plots = [ratios, *({"kind": "bars", "y": metric} for metric in times_to)]
    return {
        "title": "A race of one line",
        "seed": 1,
        "datasets": datasets,
        "solvers": [racer.entry() for racer in racers],
        "blocks": [block],
        "tables": [{"name": "race", "block": "race", "metrics": metrics}],
        "plots": [
            {"name": f"race-{plot['y']}", "block": "race", "x": "dataset", **plot} for plot in plots
        ],
        "profiles": {"quick": {}},
    }


@dataclass
class Racer:
    """One solver of the race, as the command line names it.

    Attributes
    ----------
    name : str
    predict : str
        The prediction command of a program; "" if it has none or its file name tells it.
    params : dict
        Fixed parameters.
    ladder : dict
        At most one parameter with several values, from loose to tight.
    label : str
        Its name in the result: its words, so that two settings of a solver may race.
    solves : dict
        ``problem`` and ``offset`` of a class that declares neither, for its certificate.
    assumed_of : str
        The label of the racer whose problem `solves` copies; "" if the words name the problem.
    """

    name: str
    params: dict[str, Any] = field(default_factory=dict)
    ladder: dict[str, list[Any]] = field(default_factory=dict)
    label: str = ""
    solves: dict[str, Any] = field(default_factory=dict)
    assumed_of: str = ""
    predict: str = ""

    @property
    def problem(self) -> tuple[str, Any] | None:
        """The problem on which the solver is judged, with its offset; None if it is unknown.

        It is declared, written after the solver's name, or assumed to be a rival's. The problem of
        a program is unknown without ``problem=``.
        """
        from svmbench.baselines.catalogue import solver
        from svmbench.baselines.certify import declared_problem

        if self.solves:
            return self.solves["problem"], self.solves.get("offset")
        return None if self.is_program else declared_problem(solver(self.name, **self.params))

    @property
    def offset(self) -> str:
        """How the solver treats the offset, in words; "" if that isn't known before its fit."""
        if self.problem is None:
            return ""
        value = self.problem[1]
        plain = {None: "a free offset", "free": "a free offset", "none": "no offset"}
        return plain.get(value) or f"an offset that is regularised (a feature of {value:g})"

    @property
    def is_class(self) -> bool:
        """Whether the solver is a foreign class."""
        return "." in self.name and not self.is_program

    @property
    def is_program(self) -> bool:
        """Whether the solver is a program."""
        return bool(templates.shipped_program(self.name)) or templates.is_program(self.name)

    def entry(self) -> dict[str, Any]:
        """Return the racer as an entry of a config's solvers."""
        key = "program" if self.is_program else "class" if self.is_class else "name"
        return {
            key: self.name,
            "label": self.label,
            "params": self.params,
            "grid": self.ladder,
            **({"predict": self.predict} if self.predict else {}),
            **self.solves,
        }


def parse_racers(solvers: Sequence[str], *, trust: bool = False) -> list[Racer]:
    """Read solvers as :func:`parse_racer` does.

    A class that declares no problem is taken to solve that of the other solvers.
    """
    racers = [parse_racer(words, trust=trust) for words in solvers]
    _assume_problems(racers)
    _name_by_paths([racer for racer in racers if racer.is_program])
    return racers


def parse_racer(words: str, *, trust: bool = False) -> Racer:
    """Read ``NAME KEY=VALUE KEY=VALUE,VALUE``, where a name may be a class's dotted path.

    ``predict=`` after a program gives its prediction command. ``problem=`` and ``offset=`` after a
    class that has no such parameter say what it solves.

    Parameters
    ----------
    words : str
    trust : bool, default=False
        Whether classes outside scikit-learn may be imported, and programs started.

    Raises
    ------
    svmbench.base.errors.ConfigError
        For an unknown solver or parameter (with the nearest), a class or a program that can't be
        used, a word that is no ``KEY=VALUE``, or a value out of range.
    """
    from svmbench.baselines.catalogue import solver, solver_class, why_not_loaded
    from svmbench.baselines.foreign import why_not_taken
    from svmbench.baselines.programs import why_not_run
    from svmbench.experiment.config.yaml_source import parse_value
    from svmbench.experiment.settings.blocks import SolverSpec

    if not words.strip():
        raise ConfigError("a solver's name is empty ('svmbench list solvers' shows them)")
    words, predict = _prediction(words)
    name, *settings = _words(words)
    label = " ".join([name, *settings])
    called = name
    if templates.shipped_program(name) or templates.is_program(name):
        try:
            called = templates.commands(name, predict).name
        except ValueError as error:
            raise ConfigError(f"{line(name, 100)}: {error}") from error
        label = " ".join([templates.read_template(called).program, *settings])
        if reason := why_not_run(called, trust=trust):
            raise ConfigError(reason)
    elif "." in name and (reason := why_not_taken(name, trust=trust)):
        raise ConfigError(reason)
    if reason := why_not_loaded(name, trust=trust):
        raise ConfigError(reason)
    racer = Racer(name, label=label, predict=predict)
    parameters = solver_class(called)._get_param_names() if settings else []
    for setting in settings:
        key, separator, value = setting.partition("=")
        if not separator or not key or not value:
            raise ConfigError(f"{name}: {setting!r} is not of the form KEY=VALUE")
        values = [parse_value(part) for part in value.split(",")]
        if key in SolverSpec.SOLVES and "." in name and key not in parameters:
            racer.solves[key] = values[0]
            racer.label = racer.label.replace(f" {setting}", "")
            continue
        if len(values) > 1:
            racer.ladder[key] = values
        else:
            racer.params[key] = values[0]
    given = {**racer.params, **{key: values[0] for key, values in racer.ladder.items()}}
    solver(called, **given)
    if called != name and (
        lacking := [
            word for word in templates.read_template(called).parameters if word not in given
        ]
    ):
        needed = ", ".join(f"{word}=…" for word in lacking)
        raise ConfigError(f"{racer.label}: the command needs {needed} after its name")
    _check(racer)
    return racer


def _prediction(words: str) -> tuple[str, str]:
    """Return words without a program's prediction command, and that command."""
    before, key, after = words.partition(" predict=")
    if not key or "{" not in after:
        return words, ""
    end = after.rindex("}") + 1
    return before + after[end:], after[:end]


def _words(words: str) -> list[str]:
    """Return a name, which may be a command with blanks, and its settings."""
    parts = words.split()
    n_settings = len(parts) - 1 - max([0, *(i for i, word in enumerate(parts) if "{" in word)])
    if templates.is_program(words):
        return [" ".join(parts[: len(parts) - n_settings]), *parts[len(parts) - n_settings :]]
    return parts


def _check(racer: Racer) -> None:
    """Check the racer's values as configs do."""
    from pydantic import ValidationError

    from svmbench.base.validation_messages import sentence
    from svmbench.experiment.settings.blocks import SolverSpec

    try:
        SolverSpec.model_validate(racer.entry())
    except ValidationError as error:
        raise ConfigError(f"{racer.label}: {sentence(error.errors()[0])}") from error


def _assume_problems(racers: Sequence[Racer]) -> None:
    """Let classes that name no problem be judged on the problem of the other racers.

    Classes of scikit-learn are left out: those that have a certificate declare their problem. So
    are all classes if the other racers declare several problems.
    """
    from svmbench.baselines.foreign import is_trusted

    declared = {racer.problem: racer.label for racer in racers if racer.problem is not None}
    if len(declared) != 1:
        return
    (((problem, offset), of),) = declared.items()
    for racer in racers:
        if racer.is_class and racer.problem is None and not is_trusted(racer.name):
            racer.solves = {"problem": problem}
            racer.solves |= {} if offset is None else {"offset": offset}
            racer.assumed_of = of


def _name_by_paths(programs: Sequence[Racer]) -> None:
    """Name programs with the same file name by the ends of their paths that differ."""
    files: dict[str, dict[Path, list[Racer]]] = {}
    for racer in programs:
        file = Path(templates.commands(racer.name, racer.predict).train[0])
        files.setdefault(file.name, {}).setdefault(file, []).append(racer)
    for name, paths in files.items():
        if len(paths) < 2:
            continue
        longest = max(len(file.parts) for file in paths)
        for n_parts in range(2, longest + 1):
            ends = {file: "/".join(file.parts[-n_parts:]) for file in paths}
            if len({*ends.values()}) == len(paths):
                break
        for file, racers in paths.items():
            for racer in racers:
                racer.label = ends[file] + racer.label.removeprefix(name)


def _result(
    dataset: str, racers: Sequence[Racer], settings: RaceSettings, record: CellRecord
) -> RaceResult:
    from svmbench.baselines.catalogue import solvers

    metrics, spread = record["metrics"], record["spread"]
    shown: list[SolverResult] = []
    known = solvers()
    for racer in racers:
        cpu = f"cpu_time_s:{racer.label}"
        shown.append(
            {
                "solver": racer.label,
                "problem": known[racer.name].problem
                if racer.name in known
                else str((racer.problem or ("",))[0]),
                "offset": racer.offset,
                "cpu_time_s": metrics.get(cpu),
                "cpu_range_s": spread.get(cpu),
                "train_time_s": metrics.get(f"train_time_s:{racer.label}"),
                # Classes and programs have no objective of their own: the certificate computes it.
                "objective": metrics.get(
                    f"{'objective' if racer.name in known else 'certified_objective'}:{racer.label}"
                ),
                "excess_objective": metrics.get(f"excess_objective:{racer.label}"),
                "certified": f"certified_gap:{racer.label}" in metrics,
                "certified_gap": metrics.get(f"certified_gap:{racer.label}"),
                "train_accuracy_pct": metrics.get(f"train_accuracy_pct:{racer.label}"),
                "times_to": {
                    key.removeprefix(TIME_TO_PREFIX).partition("_s:")[0]: value
                    for key, value in metrics.items()
                    if key.startswith(TIME_TO_PREFIX) and key.endswith(f"_s:{racer.label}")
                },
            }
        )
    first = racers[0].label
    ratios: list[RivalRatio] = [
        {
            "solver": racer.label,
            "ratio": metrics[f"ratio:{first}:{racer.label}"],
            "range": spread.get(f"ratio:{first}:{racer.label}"),
            "summed": _summed(racers[0], racer, settings.tolerance),
        }
        for racer in racers[1:]
    ]
    return {
        "dataset": dataset,
        "n_train": metrics["n_train"],
        "rounds": settings.rounds,
        "solvers": shown,
        "ratios": ratios,
        "note": record["stop_reason"],
        "notes": [*_notes(racers, shown)],
    }


def _summed(first: Racer, other: Racer, tolerance: float | None) -> str:
    """Return which sums of CPU times the ratio of two solvers compares; "" if there is no sum."""
    counts = [max([1, *map(len, racer.ladder.values())]) for racer in (first, other)]
    if max(counts) == 1:
        return ""
    if tolerance is None:
        return f"sums over all settings, {counts[1]} and {counts[0]}; the slowest setting decides"
    return "sums over C" if "C" in {**first.ladder, **other.ladder} else ""


def _notes(racers: Sequence[Racer], shown: Sequence[SolverResult]) -> Iterator[str]:
    """Yield sentences that help to compare the objectives of a race."""
    certified = {result["solver"]: result["certified"] for result in shown}
    yield from notes_on(racers, lambda racer: certified[racer.label])
    for racer in racers:
        if racer.is_program and not certified[racer.label]:
            yield (
                f"{racer.label} is a program whose model's file is not known here, so its objective"
                " can't be shown"
            )
    accuracies = {result["solver"]: result["train_accuracy_pct"] for result in shown}
    for racer in racers:
        if racer.is_program and accuracies[racer.label] is None:
            yield (
                f"{racer.label}: its accuracy can't be shown, because its model can't be read here"
                " and it has no command that predicts; write"
                " predict='COMMAND {test} {model} {output}' after its name"
            )
    yield from _notes_on_offsets(racers)
    yield from _notes_on_waits(shown)
    if len({result["problem"] for result in shown} - {""}) > 1:
        yield "the solvers minimise different problems; their objectives can't be compared"


def notes_on(racers: Sequence[Racer], has_certificate: Callable[[Racer], bool]) -> Iterator[str]:
    """Yield notes on foreign classes that have no problem or no certificate.

    Parameters
    ----------
    racers : sequence of Racer
    has_certificate : callable
        Called with a racer; returns whether its model was certified.
    """
    for racer in racers:
        if not racer.is_class:
            continue
        if racer.problem is None:
            yield (
                f"{racer.label} names no problem, so its objective is unknown: write"
                " problem=squared-hinge offset=free after its name, or what it solves; the offset"
                " is free, none, or the value of a constant feature (docs/certificates.md)"
            )
        elif not has_certificate(racer):
            yield (
                f"{racer.label} has no certificate: it needs a parameter C or nu, and a fit that"
                " leaves coef_, or dual_coef_ with support_; more than two classes only if it is"
                " a class of scikit-learn"
            )
        elif racer.assumed_of:
            offset = racer.solves.get("offset", "free")
            offset = f"{offset:g}" if isinstance(offset, float) else offset
            yield (
                f"{racer.label} names no problem; its objective and gap are those of"
                f" {racer.solves['problem']}, offset {offset}, which {racer.assumed_of} solves"
                " (problem=… offset=… after its name says otherwise)"
            )


def _notes_on_offsets(racers: Sequence[Racer]) -> Iterator[str]:
    """Yield a sentence if the racers treat the offset differently."""
    solvers: dict[str, list[str]] = {}
    for racer in racers:
        if racer.offset:
            solvers.setdefault(racer.offset, []).append(racer.label)
    if len(solvers) > 1:
        each = "; ".join(f"{' and '.join(labels)}: {offset}" for offset, labels in solvers.items())
        yield f"the solvers treat the offset differently, which changes the problem: {each}"


def _notes_on_waits(racers: Sequence[SolverResult]) -> Iterator[str]:
    """Yield a sentence for each other solver if it waits far more or far less than the first."""
    timed = [
        (wall, cpu, racer["solver"])
        for racer in racers
        if (wall := racer["train_time_s"]) and (cpu := racer["cpu_time_s"])
    ]
    for other in timed[1:]:
        for (wall, cpu, name), (wall_2, cpu_2, rival) in permutations((timed[0], other)):
            is_longer = wall / wall_2 > WALL_GROWTH * cpu / cpu_2
            if is_longer and wall - cpu > wall_2 - cpu_2 + WALL_SLACK_S:
                yield (
                    f"{name} takes {wall / wall_2:.3g} times the wall time of {rival}, and"
                    f" {cpu / cpu_2:.3g} times its CPU time: it may sleep or wait, or other"
                    " programs ran beside it; only CPU times are compared"
                )


def ratio_sentences(result: RaceResult) -> Iterator[str]:
    """Yield a sentence for each ratio of a race: the median over the rounds, with its range."""
    from svmbench.experiment.run.session import amount_text

    first = result["solvers"][0]
    by_name = {racer["solver"]: racer for racer in result["solvers"]}
    rounds = amount_text(result["rounds"], "round")
    for ratio in result["ratios"]:
        if ratio["ratio"] is None or ratio["range"] is None:
            continue
        low, high = ratio["range"]
        summed = f"; {ratio['summed']}" if ratio["summed"] else ""
        yield (
            f"{ratio['solver']} takes {ratio['ratio']:.3g} times the CPU time of {first['solver']}"
            f" (median of {rounds}; {low:.3g} to {high:.3g}{summed})"
            f"{unequal_work(first, by_name[ratio['solver']])}"
        )


def start_sentence(racers: Sequence[Racer], dataset: str, rounds: int) -> str:
    """Return what a race says when it begins: its racers, its rounds, and what takes long."""
    from svmbench.experiment.run.session import amount_text

    names = " and ".join(dict.fromkeys(racer.label for racer in racers))
    begin = f"timing {names} in turn on {dataset}, {amount_text(rounds, 'round')}"
    if all(racer.is_program or racer.is_class for racer in racers):
        return begin
    return (
        f"{begin}; on a new machine svmbench's own loops are compiled first, which takes a minute"
        " or two"
    )


def unequal_work(first: SolverResult, second: SolverResult) -> str:
    """Return the end of the sentence on a ratio if one of the solvers is not certainly solved."""
    racers = (first, second)
    unknown = [each["solver"] for each in racers if each["objective"] is None]
    if unknown:
        return (
            f"; perhaps not for equal work: the objective of {' and '.join(unknown)} is not known"
        )
    objectives = [each["objective"] for each in racers if each["objective"] is not None]
    is_unbounded = all(each["certified"] and each["certified_gap"] is None for each in racers)
    is_same = (first["problem"], first["offset"]) == (second["problem"], second["offset"])
    if is_unbounded and is_same and len(objectives) == len(racers):
        low, high = sorted(objectives)
        if high - low <= SAME_OBJECTIVE_SHARE * abs(high):
            return "; both reach the same objective; how far it is above the optimum isn't known"
    phrases = []
    for racer in racers:
        gap, of = racer["certified_gap"], f"the objective of {racer['solver']}"
        if not racer["certified"] or (gap is not None and gap <= EQUAL_WORK):
            continue
        phrases.append(
            f"nothing bounds how far {of} is above the optimum"
            if gap is None
            else f"{of} may be {100 * gap:.3g} % above the optimum"
        )
    return f"; not for equal work: {', and '.join(phrases)}" if phrases else ""


def result_rows(result: RaceResult) -> Iterator[tuple[str, ...]]:
    """Yield the head and the rows of the table that a race prints."""
    of_model = ("objective", "certified gap", "train accuracy (%)")
    yield ("solver", "problem", "cpu s", "lowest to highest", *of_model)
    for racer in result["solvers"]:
        low, high = racer["cpu_range_s"] or (None, None)
        yield (
            racer["solver"],
            racer["problem"] or "not known",
            formatted(racer["cpu_time_s"], ".4g"),
            f"{low:.4g} to {high:.4g}" if low is not None else "-",
            formatted(racer["objective"], ".8g"),
            formatted(racer["certified_gap"], ".1e"),
            formatted(racer["train_accuracy_pct"], ".2f"),
        )


def time_to_rows(result: RaceResult) -> Iterator[tuple[str, ...]]:
    """Yield the head and the rows of CPU times to certified accuracies; nothing without them."""
    accuracies = list(result["solvers"][0]["times_to"])
    if accuracies:
        yield ("solver", *accuracies)
        for racer in result["solvers"]:
            times = (formatted(racer["times_to"][each], ".4g") for each in accuracies)
            yield (racer["solver"], *times)


def formatted(value: float | None, form: str) -> str:
    """Return a number as a race prints it; a dash if there is none."""
    return "-" if value is None else format(value, form)


def shares_solved(results: Sequence[RaceResult]) -> dict[str, dict[str, list[float]]]:
    """Return the share of races that each solver solves nearly as fast as the fastest.

    Parameters
    ----------
    results : sequence of RaceResult
        Races of the same solvers, with the same accuracies.

    Returns
    -------
    dict of str to dict of str to list of float
        By accuracy and solver, for each factor of `PROFILE_FACTORS`: the share of races that the
        solver solves within this factor of the fastest solver's time.
    """
    from svmbench.report.numbers.comparisons import performance_profile

    shares: dict[str, dict[str, list[float]]] = {}
    for accuracy in results[0]["solvers"][0]["times_to"]:
        times: dict[str, list[float | None]] = {}
        for result in results:
            for racer in result["solvers"]:
                times.setdefault(racer["solver"], []).append(racer["times_to"][accuracy])
        shares[accuracy] = {
            solver: [
                max((share for ratio, share in steps if ratio <= factor), default=0.0)
                for factor in PROFILE_FACTORS
            ]
            for solver, steps in performance_profile(times).items()
        }
    return shares
