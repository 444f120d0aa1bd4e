"""The commands ``time`` and ``race``: races of solvers without a config."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from svmbench.base.errors import EXIT_FAILED_CELLS, EXIT_REGRESSION, ConfigError
from svmbench.cli import terminal
from svmbench.cli.completion import DatasetName, SolverName
from svmbench.cli.options import (
    IMPUTE,
    LABEL,
    MIRROR,
    POSITIVE_NUMBER,
    TEXT,
    TRUST,
    table_form,
)
from svmbench.studies.datasets import FORM_OPTIONS, dataset_entry, race_entries, written_plainly
from svmbench.studies.racing import (
    PROFILE_FACTORS,
    Racer,
    RaceResult,
    RaceSettings,
    parse_racers,
    race_config,
    ratio_sentences,
    result_rows,
    shares_solved,
    start_sentence,
    time_solvers,
    time_to_rows,
)

if TYPE_CHECKING:
    from svmbench.data.frames import TableForm


def print_result(result: RaceResult) -> None:
    """Print a race as a table, with a line for each ratio and each note."""
    from svmbench.experiment.run.session import amount_text

    rounds = amount_text(result["rounds"], "round")
    terminal.print_line(f"{result['dataset']}: {result['n_train']:,} rows, {rounds}, one thread")
    header, *rows = result_rows(result)
    terminal.print_columns(rows, header=header)
    for sentence in ratio_sentences(result):
        terminal.print_line(sentence)
    if table := [*time_to_rows(result)]:
        terminal.print_line("cpu s to a certified relative gap (-: not reached by any setting)")
        terminal.print_columns(table[1:], header=table[0])
    if result["note"]:
        terminal.print_line(f"note: {result['note']}")
    for sentence in result["notes"]:
        terminal.print_line(f"note: {sentence}")


def print_profiles(results: list[RaceResult]) -> None:
    """Print by accuracy the share of races that a solver solves within a factor of the fastest."""
    factors = tuple(f"{factor:g}" for factor in PROFILE_FACTORS)
    for accuracy, solvers in shares_solved(results).items():
        rows = [
            (solver, *(f"{100 * share:.0f} %" for share in shares))
            for solver, shares in solvers.items()
        ]
        terminal.print_line(f"share of {len(results)} races solved to {accuracy} within … times")
        terminal.print_columns(rows, header=("solver", *factors))


class _RacersCommand(click.Command):
    """A command in which the ``KEY=VALUE`` words after a solver's name belong to its option."""

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

    def run_race(self, dataset: dict[str, Any], racers: list[Racer]) -> RaceResult:
        """Race solvers on a data set; print to standard error that the race has begun."""
        from svmbench.cli.progress import Waiting

        which = dataset.get("name") or dataset.get("file") or "the data set"
        terminal.print_stderr(start_sentence(racers, which, self.rounds))
        return time_solvers(
            dataset,
            racers,
            self.settings,
            trust=self.trust,
            watch=lambda _: Waiting(f"timing on {which}"),
        )

    @property
    def settings(self) -> RaceSettings:
        """The settings of the race."""
        return RaceSettings(
            rounds=self.rounds,
            rows=self.rows or 0,
            tolerance=self.tolerance,
            accuracies=self.accuracies,
            scaling=self.scaling,
            timeout_s=self.timeout,
            mirror=self.mirror,
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
        names = [option.name for option in fields(_SharedOptions)]
        shared = _SharedOptions(**{name: given.pop(name) for name in names})
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
            " accuracies (relative gaps).",
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
    parameters follow its name. After a class, problem=squared-hinge offset=1 says what it solves,
    so that its solution is certified like those of our solvers. With --tolerance one parameter may
    have several values, from loose to tight (tol=1,0.1,0.01); the race then compares each solver's
    loosest setting that reaches the tolerance.

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
    racers = parse_racers((solver, *others), trust=shared.trust)
    entry = dataset_entry(dataset, shared.label, shared.text, shared.impute, shared.form)
    with written_plainly([entry], shared.form) as (plain,):
        result = shared.run_race(plain, racers)
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
    help="Exit with code 4 if the first solver takes more than this many times the CPU time of"
    " another one, in the median of the rounds, if its accuracy is more than 1 point lower, or its"
    " objective more than 1 % higher. With --base or --base-python, each solver is compared with"
    " its base, on test rows.",
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
    r"""Race solvers on several data sets, or two versions of your own solvers.

    Solvers and their settings are written as for 'svmbench time'. --label, --text and --impute
    apply to the files; --text and --impute also to data sets of OpenML. --yaml prints the race as a
    config for 'svmbench run'.

    --base runs each solver at a commit and in the working tree, in turn, in processes of their own,
    with a fifth of the rows for testing. It shows the ratio of CPU times, accuracy and objective.
    The solvers' code must be in the repository of the present folder. --base-python does the same
    with the interpreter of another environment that has svmbench, such as one with an older build
    of a package.

    --fail-above makes the race a gate: with --base, or for the first of several solvers, such as a
    new build of a program beside the old one.

    \b
    Examples:
      svmbench race -d a9a -d my.csv --label churn -s csvc -s libsvm -s sklearn.svm.NuSVC nu=0.2
      svmbench race -d a9a -s csvc C=1 -s libsvm C=1 --yaml > race.yaml
      svmbench race -d a9a --base HEAD~1 -s csvc
      PYTHONPATH=. svmbench race --base main --fail-above 1.3 --trust -s hersvm.HerSVM
      PYTHONPATH=. svmbench race --base v1.0 --trust -s hersvm.HerSVM
      svmbench race --base-python ../old/bin/python -s sklearn.svm.LinearSVC
      svmbench race -d a9a --trust --fail-above 1.3 -s ./new/svm-train C=1 gamma=0.1 tol=0.001 \
          -s ./old/svm-train C=1 gamma=0.1 tol=0.001
    """
    racers = parse_racers(solvers, trust=shared.trust)
    versions = _Versions(base, base_python, fail_above)
    of_versions = versions[:2] != (None, None)
    if base is not None and base_python is not None:
        raise ConfigError("--base and --base-python exclude each other")
    if len(racers) < 2 and not of_versions:
        raise ConfigError("a race needs two solvers (-s), or one with --base or --base-python")
    if of_versions and shared.tolerance is not None:
        raise ConfigError(
            "--base and --base-python compare versions at given settings: leave out --tolerance"
        )
    if as_yaml and shared.form:
        raise ConfigError(f"a config can't say how a table is written: {FORM_OPTIONS}, and --yaml")
    entries = race_entries(datasets, shared.label, shared.text, shared.impute, shared.form)
    with written_plainly(entries, shared.form) as plain:
        _race_on_all_datasets(plain, racers, versions, shared, as_yaml=as_yaml)


class _Versions(NamedTuple):
    """The base of a comparison of versions, and the largest allowed ratio to its CPU time."""

    commit: str | None
    python: str | None
    fail_above: float | None


def _race_on_all_datasets(
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
    from svmbench.studies.versions import race_outcome, version_config

    of_versions = versions[:2] != (None, None)
    if of_versions:
        entries = [
            {**entry, "file": str(Path(entry["file"]).resolve())} if "file" in entry else entry
            for entry in entries
        ]
        config = version_config(entries, racers, shared.rows or 0, shared.scaling)
    else:
        config = race_config(entries, racers, shared.settings)
    check_source(source_of_value(config, "svmbench race"), trust=shared.trust)
    if as_yaml:
        terminal.write_output(yaml_of_value(config).rstrip())
        return
    if of_versions:
        _race_versions(config, racers, versions, shared)
        return
    results = []
    for number, entry in enumerate(entries):
        results.append(shared.run_race(entry, racers))
        if not shared.as_json:
            if number:
                terminal.print_line()
            print_result(results[-1])
    if shared.as_json:
        terminal.write_output(json.dumps(results, indent=1))
    elif len(results) > 1:
        print_profiles(results)
    sentences, is_worse = race_outcome(results, versions.fail_above)
    for sentence in () if shared.as_json else sentences:
        terminal.print_line(sentence)
    terminal.check_written()
    if is_worse:
        raise SystemExit(EXIT_REGRESSION)


def _race_versions(
    config: dict[str, Any], racers: list[Racer], versions: _Versions, shared: _SharedOptions
) -> None:
    """Compare two versions, and print the result.

    Exit with 3 if a cell failed, and with 4 if a solver is slower, less accurate or less exact than
    is allowed.
    """
    from svmbench.studies.versions import (
        compare_environments,
        compare_versions,
        notes_on_versions,
        nothing_worse,
        regressions,
    )

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
    worse = [] if versions.fail_above is None else regressions(result, versions.fail_above)
    if shared.as_json:
        terminal.write_output(json.dumps(result, indent=1))
    else:
        print_versions(result)
        for sentence in (*notes_on_versions(racers, result), *worse):
            terminal.print_line(sentence)
        if versions.fail_above is not None and not worse:
            terminal.print_line(nothing_worse(result, versions.fail_above))
        terminal.check_written()
    if any(row[side]["reason"] for row in result["results"] for side in ("base", "new")):
        raise SystemExit(EXIT_FAILED_CELLS)
    if worse:
        raise SystemExit(EXIT_REGRESSION)


def print_versions(result: dict[str, Any]) -> None:
    """Print a comparison of versions as a table, and a line for each failure."""
    from svmbench.experiment.run.session import amount_text
    from svmbench.studies.versions import version_failures, version_rows

    rounds = amount_text(result["rounds"], "round")
    terminal.print_line(f"{result['new']} (new) against {result['base']} (base), {rounds}")
    header, *rows = version_rows(result)
    terminal.print_columns(rows, header=header)
    for sentence in version_failures(result):
        terminal.print_line(sentence)


def register(group: click.Group) -> None:
    """Add the commands of this module to the command line."""
    group.add_command(time_)
    group.add_command(race)
