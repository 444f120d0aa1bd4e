"""The commands ``time`` and ``race``: races of solvers without a config."""

from __future__ import annotations

import contextlib
import functools
import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

import click

from svmbench.base.errors import EXIT_FAILED_CELLS, EXIT_REGRESSION, ConfigError, SvmbenchError
from svmbench.base.escape import line
from svmbench.base.paths import is_file
from svmbench.baselines import templates
from svmbench.cli import terminal
from svmbench.cli.completion import DatasetName, SolverName
from svmbench.cli.options import (
    FORM_OPTIONS,
    IMPUTE,
    LABEL,
    MIRROR,
    POSITIVE_NUMBER,
    TEXT,
    TRUST,
    table_form,
)
from svmbench.schema.record import CellRecord

if TYPE_CHECKING:
    from svmbench.data.frames import TableForm

#: How metrics of the time to an accuracy begin.
TIME_TO = "cpu_time_to_"

#: Solvers whose relative gaps are certainly at most this did about the same work.
EQUAL_WORK = 1e-2


#: Factors of the fastest solver's time that a performance profile shows.
PROFILE_FACTORS = (1.0, 2.0, 4.0, 10.0, 100.0)


@dataclass
class Racer:
    """One solver of the race, as the command line names it.

    Attributes
    ----------
    name : str
    params : dict
        Fixed parameters.
    ladder : dict
        At most one parameter with several values, from loose to tight.
    label : str
        What the result calls it: its words, so that one solver may race itself.
    """

    name: str
    params: dict[str, Any] = field(default_factory=dict)
    ladder: dict[str, list[Any]] = field(default_factory=dict)
    label: str = ""

    def entry(self) -> dict[str, Any]:
        """Return the racer as an entry of a config's solvers."""
        program = templates.shipped_program(self.name) or templates.is_program(self.name)
        key = "program" if program else "class" if "." in self.name else "name"
        return {
            key: self.name,
            "label": self.label,
            "params": self.params,
            "grid": self.ladder,
        }


class Times(TypedDict):
    """The result of one solver in a race: seconds, their range, and its objective.

    `solver` is its label. The objective is None where it is of no known problem; `excess_objective`
    is how far above the best one it came, relative. `certified_gap` bounds how far it is above the
    optimum as a share of that, None without a bound, and `certified` says if there is a
    certificate. `train_accuracy_pct` is on the rows that were trained on. `times_to` has by
    relative gap the CPU seconds that certainly reach it.
    """

    solver: str
    problem: str
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
    """CPU time of a solver over that of the first one; None if it missed the target."""

    solver: str
    times: float | None
    range: list[float] | None


class RaceResult(TypedDict):
    """A race, as it is printed and as JSON has it."""

    dataset: str
    n_train: int
    rounds: int
    solvers: list[Times]
    ratios: list[RivalRatio]
    note: str


def parse_racer(words: str, *, trust: bool = False) -> Racer:
    """Read ``NAME KEY=VALUE KEY=VALUE,VALUE``, where a name may be a class's dotted path.

    Parameters
    ----------
    words : str
    trust : bool, default=False
        Whether a class is imported that comes from elsewhere than scikit-learn.

    Raises
    ------
    svmbench.base.errors.ConfigError
        For an unknown solver or parameter (with the nearest), a class or a program that can't be
        taken, a word that is no ``KEY=VALUE``, or a value out of range.
    """
    from svmbench.baselines.catalogue import solver, why_not_loaded
    from svmbench.baselines.foreign import why_not_taken
    from svmbench.baselines.programs import why_not_run
    from svmbench.experiment.config.yaml_source import parse_value

    if not words.strip():
        raise ConfigError("a solver's name is empty ('svmbench list solvers' shows them)")
    name, *settings = _words(words)
    label = " ".join([name, *settings])
    called = name
    if templates.shipped_program(name) or templates.is_program(name):
        try:
            called = templates.commands(name).name
        except ValueError as error:
            raise ConfigError(f"{line(name, 100)}: {error}") from error
        label = " ".join([templates.read_template(called).program, *settings])
        if reason := why_not_run(called, trust=trust):
            raise ConfigError(reason)
    elif "." in name and (reason := why_not_taken(name, trust=trust)):
        raise ConfigError(reason)
    if reason := why_not_loaded(name, trust=trust):
        raise ConfigError(reason)
    racer = Racer(name, label=label)
    for setting in settings:
        key, separator, value = setting.partition("=")
        if not separator or not key or not value:
            raise ConfigError(f"{name}: {setting!r} is not of the form KEY=VALUE")
        values = [parse_value(part) for part in value.split(",")]
        if len(values) > 1:
            racer.ladder[key] = values
        else:
            racer.params[key] = values[0]
    given = {**racer.params, **{key: values[0] for key, values in racer.ladder.items()}}
    solver(called, **given)
    if called != name and (
        lacking := [one for one in templates.read_template(called).parameters if one not in given]
    ):
        needed = ", ".join(f"{one}=…" for one in lacking)
        raise ConfigError(f"{racer.label}: the command needs {needed} after its name")
    _check(racer)
    return racer


def _words(words: str) -> list[str]:
    """Return a name, which may be a command with blanks, and its settings."""
    parts = words.split()
    n_settings = len(parts) - 1 - max([0, *(i for i, one in enumerate(parts) if "{" in one)])
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


def dataset_entry(
    dataset: str,
    label: str | None = None,
    text: str | None = None,
    impute: bool = False,
    form: TableForm | None = None,
) -> dict[str, Any]:
    """Return a data set's name, file or number with its label and encoding, as in a config.

    Raises
    ------
    svmbench.base.errors.ConfigError
        For an unknown name, and for options of tables that say nothing here.
    """
    from svmbench.data import openml, parse_name
    from svmbench.data.frames import DEFAULT_TEXT

    if wanted := openml.reference(dataset):
        if form:
            raise ConfigError(f"{FORM_OPTIONS} are of a file")
        said = {"sha256": wanted.sha256, "label_column": label, "text": text, "impute": impute}
        return {"openml": wanted.number, **{key: value for key, value in said.items() if value}}
    if (text or impute) and not label:
        raise ConfigError("--text and --impute are of a table with a header; --label is missing")
    if form and not label:
        raise ConfigError(f"{FORM_OPTIONS} are of a table; --label is missing")
    if not is_file(dataset):
        parse_name(dataset)
        if label:
            raise ConfigError(f"--label is of a table, and {dataset} is a registered data set")
        return {"name": dataset}
    if not label:
        return {"file": dataset}
    made = {"file": dataset, "label_column": label, "text": text or DEFAULT_TEXT}
    return {**made, "impute": True} if impute else made


@contextlib.contextmanager
def written_plainly(
    entries: list[dict[str, Any]], form: TableForm | None
) -> Iterator[list[dict[str, Any]]]:
    """Yield entries in which each table of a given form is a copy, as configs read tables.

    The copies have the names of the tables, and are removed at the end.
    """
    from svmbench.data import frames, userfile

    if form is None:
        yield entries
        return
    with tempfile.TemporaryDirectory(prefix="svmbench-tables-") as folder:
        made = []
        for number, one in enumerate(entries):
            if "file" not in one:
                made.append(one)
                continue
            place, target = Path(one["file"]), Path(folder, f"{number}.csv")
            left_out = frames.write_plainly(place, one["label_column"], form, target)
            userfile.warn_of(place.name, left_out)
            made.append({"name": one["file"], **one, "file": str(target)})
        yield made


def told_apart(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Name files of the same name by their path, as it is given; the other entries as they are."""
    names = [Path(one["file"]).name for one in entries if "file" in one]
    return [
        {**one, "name": one["file"]}
        if "file" in one and names.count(Path(one["file"]).name) > 1
        else one
        for one in entries
    ]


def time_command(
    dataset: dict[str, Any],
    racers: list[Racer],
    *,
    rounds: int,
    rows: int = 0,
    tolerance: float | None = None,
    accuracies: tuple[float, ...] = (),
    scaling: str = "all-rows",
    timeout_s: float = 600.0,
    mirror: str | None = None,
    trust: bool = False,
) -> RaceResult:
    """Race solvers on a data set in one process of their own; the first is compared to the others.

    Parameters
    ----------
    dataset : dict
        What :func:`dataset_entry` returns.
    racers : list of Racer
        At least two; the first is the one in question.
    rounds : int
        Each solver trains once a round, in turn.
    rows : int
        At most so many, drawn by class; 0 for all.
    tolerance : float, optional
        Compare the cost of coming so near to the best objective (relative); without it, compare
        the solvers at the settings they are given.
    accuracies : tuple of float, optional
        Relative gaps for which the least certified time is shown.
    scaling : str
        ``"all-rows"`` (features to [0, 1]) or ``"none"``.
    timeout_s : float
        Seconds after which the race is given up.
    mirror : str, optional
        As for :func:`svmbench.data.ensure`.
    trust : bool, default=False
        Import classes that come from elsewhere than scikit-learn.

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
    from svmbench.experiment.run.records import RunFolder

    told = race_config([dataset], racers, rounds, rows, tolerance, scaling)
    told["blocks"][0]["accuracies"] = list(accuracies)
    config = check_source(source_of_value(told, "svmbench time"), trust=trust)
    plan = make_plan(config, "time", "quick", mirror=mirror)
    (cell,) = plan.cells
    if cell.status != "planned":
        raise SvmbenchError(cell.reason)
    with tempfile.TemporaryDirectory() as folder, RunFolder(Path(folder)) as records:
        summary = execute(plan, plan.cells, records, Options(timeout_s=timeout_s))
        if summary.interrupted:
            raise KeyboardInterrupt
        record = records.cells[cell.key]
    if record["status"] != "ok":
        raise SvmbenchError(f"the race ended without a result: {record['reason']}")
    shown = dataset.get("name") or dataset.get("file") or str(cell.shown["dataset"])
    return _result(shown, racers, rounds, record)


def race_config(
    datasets: list[dict[str, Any]],
    racers: list[Racer],
    rounds: int,
    rows: int,
    tolerance: float | None,
    scaling: str,
) -> dict[str, Any]:
    """Return the config of a race, which ``svmbench run`` takes as well.

    Raises
    ------
    svmbench.base.errors.ConfigError
        If two racers have the same name and settings.
    """
    first, *others = [racer.label for racer in racers]
    if len({first, *others}) < len(racers):
        raise ConfigError(f"{first} against itself needs other parameters on one side")
    block = {
        "name": "race",
        "protocol": "race",
        "repeats": rounds,
        "max_samples": rows,
        "tolerance": tolerance,
        "train_accuracy": True,
        "scaling": scaling,
        "pairs": [[first, other] for other in others],
        "multiclass": "one-vs-one",
    }
    metrics = ["ratio", "cpu_time_s", "train_time_s", "objective"]
    metrics += ["certified_gap", "solved_1e-2_pct", "solved_1e-3_pct", "solved_1e-5_pct"]
    metrics += ["claims_true_pct", "train_accuracy_pct"]
    return {
        "title": "A race of one line",
        "seed": 1,
        "datasets": datasets,
        "solvers": [racer.entry() for racer in racers],
        "blocks": [block],
        "tables": [{"name": "race", "block": "race", "metrics": metrics}],
        "profiles": {"quick": {}},
    }


def version_config(
    datasets: list[dict[str, Any]], racers: list[Racer], rows: int, scaling: str
) -> dict[str, Any]:
    """Return the config that both versions of a solver run: a fit, and its accuracy on a fifth.

    Raises
    ------
    svmbench.base.errors.ConfigError
        If a racer has several values of a parameter.
    """
    for racer in racers:
        if racer.ladder:
            raise ConfigError(f"{racer.label}: --base takes one value of each parameter")
    block = {
        "name": "versions",
        "protocol": "holdout",
        "max_samples": rows,
        "scaling": scaling,
        "test": 0.2,
        "multiclass": "one-vs-one",
    }
    return {
        "title": "Two versions of a solver",
        "seed": 1,
        "datasets": datasets,
        "solvers": [racer.entry() for racer in racers],
        "blocks": [block],
        "profiles": {"quick": {}},
    }


def _result(dataset: str, racers: list[Racer], rounds: int, record: CellRecord) -> RaceResult:
    from svmbench.baselines.catalogue import solvers

    metrics, spread = record["metrics"], record["spread"]
    shown: list[Times] = []
    known = solvers()
    for racer in racers:
        cpu = f"cpu_time_s:{racer.label}"
        shown.append(
            {
                "solver": racer.label,
                "problem": known[racer.name].problem if racer.name in known else "",
                "cpu_time_s": metrics.get(cpu),
                "cpu_range_s": spread.get(cpu),
                "train_time_s": metrics.get(f"train_time_s:{racer.label}"),
                "objective": metrics.get(f"objective:{racer.label}"),
                "excess_objective": metrics.get(f"excess_objective:{racer.label}"),
                "certified": f"certified_gap:{racer.label}" in metrics,
                "certified_gap": metrics.get(f"certified_gap:{racer.label}"),
                "train_accuracy_pct": metrics.get(f"train_accuracy_pct:{racer.label}"),
                "times_to": {
                    key.removeprefix(TIME_TO).partition("_s:")[0]: value
                    for key, value in metrics.items()
                    if key.startswith(TIME_TO) and key.endswith(f"_s:{racer.label}")
                },
            }
        )
    first = racers[0].label
    ratios: list[RivalRatio] = [
        {
            "solver": racer.label,
            "times": metrics[f"ratio:{first}:{racer.label}"],
            "range": spread.get(f"ratio:{first}:{racer.label}"),
        }
        for racer in racers[1:]
    ]
    return {
        "dataset": dataset,
        "n_train": metrics["n_train"],
        "rounds": rounds,
        "solvers": shown,
        "ratios": ratios,
        "note": record["stop_reason"],
    }


def print_result(result: RaceResult) -> None:
    """Print a race as a table, a line a ratio, and what to keep in mind."""
    terminal.print_line(
        f"{result['dataset']}: {result['n_train']:,} rows, {result['rounds']} rounds, one thread"
    )
    rows = []
    for one in result["solvers"]:
        low, high = one["cpu_range_s"] or (None, None)
        span = f"{low:.4g} to {high:.4g}" if low is not None else "-"
        rows.append(
            (
                one["solver"],
                one["problem"] or "not known",
                _number(one["cpu_time_s"], ".4g"),
                span,
                _number(one["objective"], ".8g") if one["problem"] else "not known",
                _number(one["certified_gap"], ".1e"),
                _number(one["train_accuracy_pct"], ".2f"),
            )
        )
    of_answer = ("objective", "certified gap", "train accuracy (%)")
    header = ("solver", "problem", "cpu s", "lowest to highest", *of_answer)
    terminal.print_columns(rows, header=header)
    first = result["solvers"][0]["solver"]
    by_name = {one["solver"]: one for one in result["solvers"]}
    for ratio in result["ratios"]:
        if ratio["times"] is None or ratio["range"] is None:
            continue
        low, high = ratio["range"]
        terminal.print_line(
            f"{ratio['solver']} takes {ratio['times']:.3g} times the CPU time of {first}"
            f" ({low:.3g} to {high:.3g}){_unequal(by_name[first], by_name[ratio['solver']])}"
        )
    _print_times_to(result)
    if result["note"]:
        terminal.print_line(f"note: {result['note']}")
    problems = {one["problem"] for one in result["solvers"]}
    if "" in problems:
        terminal.print_line("note: objectives of programs and foreign classes are not known here")
    elif len(problems) > 1:
        terminal.print_line(
            "note: the solvers minimise different problems; their objectives can't be compared"
        )


def _unequal(*racers: Times) -> str:
    """Return what follows the ratio of two solvers if one of them is not certainly solved."""
    doubtful = [
        one
        for one in racers
        if one["certified"] and (one["certified_gap"] is None or one["certified_gap"] > EQUAL_WORK)
    ]
    said = []
    for one in doubtful:
        gap, of = one["certified_gap"], f"the objective of {one['solver']}"
        said.append(
            f"nothing bounds how far {of} is above the optimum"
            if gap is None
            else f"{of} may be {100 * gap:.3g} % above the optimum"
        )
    return f"; not for equal work: {', and '.join(said)}" if said else ""


def _print_times_to(result: RaceResult) -> None:
    """Print the CPU time of each solver to each certified accuracy that the race was asked for."""
    accuracies = list(result["solvers"][0]["times_to"])
    if not accuracies:
        return
    rows = [
        (one["solver"], *(_number(one["times_to"][each], ".4g") for each in accuracies))
        for one in result["solvers"]
    ]
    terminal.print_line("cpu s to a certified relative gap (-: not reached by any setting)")
    terminal.print_columns(rows, header=("solver", *accuracies))


def print_profiles(results: list[RaceResult]) -> None:
    """Print by accuracy the share of races that a solver solves within a factor of the fastest."""
    for accuracy in results[0]["solvers"][0]["times_to"]:
        times = {
            one["solver"]: [
                next(r for r in result["solvers"] if r["solver"] == one["solver"])["times_to"][
                    accuracy
                ]
                for result in results
            ]
            for one in results[0]["solvers"]
        }
        best = [
            min((own[k] for own in times.values() if own[k] is not None), default=None)  # type: ignore[type-var]
            for k in range(len(results))
        ]
        rows = []
        for solver, own in times.items():
            within = [
                sum(
                    time is not None and fastest is not None and time <= factor * fastest
                    for time, fastest in zip(own, best, strict=True)
                )
                for factor in PROFILE_FACTORS
            ]
            rows.append((solver, *(f"{100 * count / len(results):.0f} %" for count in within)))
        terminal.print_line(f"share of {len(results)} races solved to {accuracy} within … times")
        factors = tuple(f"{factor:g}" for factor in PROFILE_FACTORS)
        terminal.print_columns(rows, header=("solver", *factors))


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


class _RacersCommand(click.Command):
    """Lets the ``KEY=VALUE`` words after a solver's name be part of the option before them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Join each solver with its settings, then parse as usual."""
        joined: list[str] = []
        for word in args:
            names_solver = len(joined) > 1 and joined[-2] in {"-s", "--solver", "--vs"}
            if names_solver and "=" in word and not word.startswith("-"):
                joined[-1] += f" {word}"
            else:
                joined.append(word)
        return super().parse_args(ctx, joined)


@dataclass(frozen=True)
class _SharedOptions:
    """The values of the options that ``time`` and ``race`` share."""

    rounds: int
    rows: int | None
    tolerance: float | None
    accuracies: tuple[float, ...]
    scaling: str
    timeout: float
    label: str | None
    text: str | None
    impute: bool
    form: TableForm | None
    mirror: str | None
    trust: bool
    as_json: bool

    def time(self, dataset: dict[str, Any], racers: list[Racer]) -> RaceResult:
        """Race solvers on a data set; say on standard error that it has begun."""
        names = " and ".join(dict.fromkeys(racer.label for racer in racers))
        which = dataset.get("name") or dataset.get("file") or "the data set"
        terminal.print_error(
            f"timing {names} in turn on {which}, {self.rounds} rounds; on a new machine their loops"
            " are compiled first, which takes a minute or two"
        )
        return time_command(
            dataset,
            racers,
            rounds=self.rounds,
            rows=self.rows or 0,
            tolerance=self.tolerance,
            accuracies=self.accuracies,
            scaling=self.scaling,
            timeout_s=self.timeout,
            mirror=self.mirror,
            trust=self.trust,
        )


def _accuracies(_context: Any, _option: Any, text: str | None) -> tuple[float, ...]:
    """Read the values of an option, such as ``1e-2,1e-3``."""
    try:
        values = tuple(float(word) for word in text.split(",")) if text else ()
    except ValueError:
        values = (0.0,)
    if not all(0.0 < value < 1.0 for value in values):
        raise ConfigError(f"--accuracies takes numbers between 0 and 1, such as 1e-2,1e-3: {text}")
    return values


def _race_options(command: Callable[..., None]) -> Any:
    """Add the options that ``time`` and ``race`` share; the command gets them as `shared`."""

    @functools.wraps(command)
    def called(**given: Any) -> None:
        shared = _SharedOptions(**{one.name: given.pop(one.name) for one in fields(_SharedOptions)})
        command(**given, shared=shared)

    options = (
        click.option(
            "--rounds",
            type=click.IntRange(min=1),
            default=9,
            show_default=True,
            help="Number of fits of each solver.",
        ),
        click.option(
            "--rows",
            type=click.IntRange(min=2),
            metavar="N",
            help="Use N rows, a stratified sample, instead of all.",
        ),
        click.option(
            "--tolerance",
            type=POSITIVE_NUMBER,
            metavar="REL",
            help="Compare the costs of reaching this relative distance to the best objective.",
        ),
        click.option(
            "--accuracies",
            callback=_accuracies,
            metavar="REL,REL…",
            help="Show the CPU time in which a solver's settings certainly reach each of these"
            " relative gaps.",
        ),
        click.option(
            "--scaling",
            type=click.Choice(["all-rows", "none"]),
            default="all-rows",
            show_default=True,
            help="Scale features to [0, 1] on all rows, or not at all.",
        ),
        click.option(
            "--timeout",
            type=POSITIVE_NUMBER,
            metavar="S",
            default=600,
            show_default=True,
            help="Time limit of a data set's race in seconds.",
        ),
        LABEL,
        TEXT,
        IMPUTE,
        table_form,
        MIRROR,
        TRUST,
        click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table."),
    )
    for option in reversed(options):
        called = option(called)
    return called


@click.command("time", cls=_RacersCommand)
@click.argument("dataset", type=DatasetName())
@click.option(
    "--solver",
    required=True,
    type=SolverName(),
    metavar="NAME [KEY=VALUE …]",
    help="The solver that is compared with each of the others.",
)
@click.option(
    "--vs",
    "others",
    required=True,
    multiple=True,
    type=SolverName(),
    metavar="NAME [KEY=VALUE …]",
    help="A solver to compare with; may be given several times.",
)
@_race_options
def time_(
    dataset: str,
    solver: str,
    others: tuple[str, ...],
    shared: _SharedOptions,
) -> None:
    r"""Race solvers on one data set, without a config: compare their CPU times on one thread.

    DATASET is a registered name, a file, or openml:NUMBER for a data set of OpenML. A solver is one
    of 'svmbench list solvers', a class by its dotted path (sklearn.svm.SVC), or, with --trust, a
    program (svm-train, ./build/svm-train, or a command with {train} and {model} in quotes); its
    parameters follow its name. With --tolerance one parameter may have several values, from loose
    to tight (tol=1,0.1,0.01); the race then compares each solver's loosest setting that reaches the
    tolerance.

    \b
    Examples:
      svmbench time breast-cancer --solver alsvm C=1 --vs liblinear-l1
      svmbench time a9a --solver dcd-l1 tol=1,0.1,0.01 --vs liblinear-l1 tol=1,0.1,0.01 \
          --tolerance 0.01
      svmbench time my.csv --label churn --solver csvc --vs libsvm
      svmbench time openml:40994 --solver csvc --vs libsvm
      svmbench time a9a --trust --solver ./build/svm-train C=1 gamma=0.1 tol=0.001 \
          --vs libsvm kernel=rbf C=1 gamma=0.1
    """
    racers = [parse_racer(words, trust=shared.trust) for words in (solver, *others)]
    entry = dataset_entry(dataset, shared.label, shared.text, shared.impute, shared.form)
    with written_plainly([entry], shared.form) as (plain,):
        result = shared.time(plain, racers)
    if shared.as_json:
        terminal.write_output(json.dumps(result, indent=1))
    else:
        print_result(result)
        terminal.check_written()


@click.command("race", cls=_RacersCommand)
@click.option(
    "-d",
    "--dataset",
    "datasets",
    multiple=True,
    type=DatasetName(),
    default=("breast-cancer",),
    show_default=True,
    metavar="NAME|FILE|openml:N",
    help="A data set; may be given several times.",
)
@click.option(
    "-s",
    "--solver",
    "solvers",
    required=True,
    multiple=True,
    type=SolverName(),
    metavar="NAME [KEY=VALUE …]",
    help="A solver; may be given several times. The first is compared with each of the others.",
)
@click.option(
    "--base",
    metavar="GITREF",
    help="Compare the working tree with this commit of the present repository instead.",
)
@click.option(
    "--base-python",
    metavar="PYTHON",
    help="Compare this Python environment with another one, named by its interpreter, instead.",
)
@click.option(
    "--fail-above",
    type=POSITIVE_NUMBER,
    metavar="TIMES",
    help="With --base or --base-python: exit with code 4 if a solver takes more than this many"
    " times the CPU time of the base, in the median of the rounds.",
)
@click.option("--yaml", "as_yaml", is_flag=True, help="Print the config of the race; run nothing.")
@_race_options
def race(
    datasets: tuple[str, ...],
    solvers: tuple[str, ...],
    base: str | None,
    base_python: str | None,
    fail_above: float | None,
    as_yaml: bool,
    shared: _SharedOptions,
) -> None:
    r"""Race solvers on several data sets, or two versions of one's own solvers.

    Solvers and their settings are written as for 'svmbench time'. --label, --text and --impute
    apply to the files; --text and --impute also to data sets of OpenML. --yaml prints the race as a
    config for 'svmbench run'.

    --base runs each solver at a commit and in the working tree, in turn, in processes of their own,
    with a fifth of the rows for testing. It shows the ratio of CPU times, accuracy and objective.
    The solvers' code must be in the repository of the present folder. --base-python does the same
    with the interpreter of another environment that has svmbench, such as one with an older build
    of a package.

    \b
    Examples:
      svmbench race -d a9a -d my.csv --label churn -s csvc -s libsvm -s sklearn.svm.NuSVC nu=0.2
      svmbench race -d a9a -s csvc C=1 -s libsvm C=1 --yaml > race.yaml
      svmbench race -d a9a --base HEAD~1 -s csvc
      PYTHONPATH=. svmbench race --base main --fail-above 1.3 --trust -s hersvm.HerSVM
      PYTHONPATH=. svmbench race --base v1.0 --trust -s hersvm.HerSVM
      svmbench race --base-python ../old/bin/python -s sklearn.svm.LinearSVC
    """
    from svmbench.data import openml

    racers = [parse_racer(words, trust=shared.trust) for words in solvers]
    versions = _Versions(base, base_python, fail_above)
    of_versions = versions[:2] != (None, None)
    if fail_above is not None and not of_versions:
        raise ConfigError("--fail-above needs --base or --base-python")
    if base is not None and base_python is not None:
        raise ConfigError("--base and --base-python exclude each other")
    if len(racers) < 2 and not of_versions:
        raise ConfigError("a race needs two solvers (-s), or one with --base or --base-python")
    if of_versions and shared.tolerance is not None:
        raise ConfigError(
            "--base and --base-python compare versions at given settings: leave out --tolerance"
        )
    encoding = shared.text, shared.impute
    if as_yaml and shared.form:
        raise ConfigError(f"a config can't say how a table is written: {FORM_OPTIONS}, and --yaml")
    of_openml = [name for name in datasets if openml.reference(name)]
    files = [name for name in datasets if name not in of_openml and is_file(name)]
    labelled = files or of_openml  # a file's column is no column of OpenML's
    if not labelled and (shared.label or any(encoding) or shared.form):
        raise ConfigError(
            "--label, --text, --impute and options on how a table is written are for tables, and no"
            " -d is a file or of OpenML"
        )
    entries = [
        dataset_entry(
            name,
            shared.label if name in labelled else None,
            *encoding,
            form=shared.form if name in files or not files else None,
        )
        if name in files or name in of_openml
        else dataset_entry(name)
        for name in datasets
    ]
    with written_plainly(told_apart(entries), shared.form) as plain:
        _race_all(plain, racers, versions, shared, as_yaml=as_yaml)


class _Versions(NamedTuple):
    """The base of a comparison of versions, and how many times its CPU time is allowed."""

    commit: str | None
    python: str | None
    fail_above: float | None


def _race_all(
    entries: list[dict[str, Any]],
    racers: list[Racer],
    versions: _Versions,
    shared: _SharedOptions,
    *,
    as_yaml: bool,
) -> None:
    """Race on each data set and print the results, or print the config."""
    from svmbench.experiment.config.loader import check_source
    from svmbench.experiment.config.yaml_source import source_of_value, yaml_of_value

    rows, of_versions = shared.rows or 0, versions[:2] != (None, None)
    if of_versions:
        entries = [
            {**one, "file": str(Path(one["file"]).resolve())} if "file" in one else one
            for one in entries
        ]
        config = version_config(entries, racers, rows, shared.scaling)
    else:
        config = race_config(entries, racers, shared.rounds, rows, shared.tolerance, shared.scaling)
        if shared.accuracies:
            config["blocks"][0]["accuracies"] = list(shared.accuracies)
    check_source(source_of_value(config, "svmbench race"), trust=shared.trust)
    if as_yaml:
        terminal.write_output(yaml_of_value(config).rstrip())
        return
    if of_versions:
        _race_versions(config, racers, versions, shared)
        return
    results = []
    for number, entry in enumerate(entries):
        results.append(shared.time(entry, racers))
        if not shared.as_json:
            if number:
                terminal.print_line()
            print_result(results[-1])
    if shared.as_json:
        terminal.write_output(json.dumps(results, indent=1))
    elif len(results) > 1:
        print_profiles(results)
    terminal.check_written()


def _race_versions(
    config: dict[str, Any], racers: list[Racer], versions: _Versions, shared: _SharedOptions
) -> None:
    """Compare two versions, and print the result.

    Exit with 3 if a cell failed, and with 4 if a solver is slower than is allowed.
    """
    from svmbench.cli.versions import compare_environments, compare_versions, print_versions, slower

    def note(line: str) -> None:
        if not shared.as_json:
            terminal.print_line(line)

    options = ["--timeout", str(shared.timeout), *(["--trust"] if shared.trust else [])]
    options += ["--mirror", shared.mirror] if shared.mirror else []
    how: Any = {"rounds": shared.rounds, "options": options, "tell": note}
    if versions.python is not None:
        result = compare_environments(config, versions.python, **how)
    else:
        result = compare_versions(config, racers, str(versions.commit), **how)
    too_slow = [] if versions.fail_above is None else slower(result, versions.fail_above)
    if shared.as_json:
        terminal.write_output(json.dumps(result, indent=1))
    else:
        print_versions(result)
        for sentence in too_slow:
            terminal.print_line(sentence)
        if versions.fail_above is not None and not too_slow:
            terminal.print_line(f"no solver takes more than {versions.fail_above:g} times the base")
        terminal.check_written()
    if any(one[side]["reason"] for one in result["results"] for side in ("base", "new")):
        raise SystemExit(EXIT_FAILED_CELLS)
    if too_slow:
        raise SystemExit(EXIT_REGRESSION)


def register(group: click.Group) -> None:
    """Add the commands of this module to the command line."""
    group.add_command(time_)
    group.add_command(race)
