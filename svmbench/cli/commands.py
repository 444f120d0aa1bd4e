"""Commands beside the main path: the gate and the comforts. Each imports what it needs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from svmbench.base.errors import EXIT_ERROR, EXIT_REGRESSION, ConfigError
from svmbench.cli import completion as completing
from svmbench.cli import terminal
from svmbench.cli.completion import DatasetName, SolverName
from svmbench.cli.options import FOLDER, POSITIVE, TRUST, FiniteRange, jobs_option


@click.command()
@click.argument("base", type=FOLDER)
@click.argument("new", type=FOLDER)
@click.option(
    "--slowdown",
    type=FiniteRange(min=1),
    default=1.5,
    show_default=True,
    help="How many times slower, against the same reference solver, is a regression.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def compare(base: Path, new: Path, slowdown: float, as_json: bool) -> None:
    r"""Compare two results folders: what became worse, better or different.

    BASE and NEW are results folders, kept baselines, or folders of repeated runs. Compared are
    results, accuracies, objectives and counters; times only as ratios of races, and only between
    equal CPU models. Ends with code 4 if anything became worse, and if BASE is a kept baseline that
    is not of this code any more: then it has to be kept anew.

    \b
    Examples:
      svmbench compare results/regress results/regress-quick
      svmbench compare before/ after/ --json
    """
    from svmbench.report import compare as comparing

    found = comparing.compare(
        comparing.read_side(base), comparing.read_side(new), slowdown=slowdown
    )
    if as_json:
        terminal.emit(json.dumps(found.to_json(), indent=1))
    else:
        _print_comparison(found)
    if found.regressions or found.is_stale:
        sys.exit(EXIT_REGRESSION)
    terminal.check()


@click.command()
@click.argument("results", type=FOLDER)
@click.argument("target", type=FOLDER)
def keep(results: Path, target: Path) -> None:
    r"""Keep a run's counters, accuracies and ratios as the baseline that `compare` reads.

    \b
    Example:
      svmbench keep results/regress-quick results/regress
    """
    from svmbench.report.compare import write_baseline

    terminal.print_line(write_baseline(results, target))


def _print_comparison(found: Any) -> None:
    if found.changes:
        terminal.print_columns(
            ((c.verdict, c.kind, c.where, c.what, *_numbers(c.base, c.new)) for c in found.changes),
            header=("verdict", "kind", "where", "what", "base", "new"),
        )
    for note in found.notes:
        terminal.print_line(f"note: {note}")
    if found.is_stale:
        terminal.print_line(
            "stale: BASE is not of this code: by equal arithmetic something differs; where that is"
            " meant, 'svmbench keep NEW BASE' keeps the new run"
        )
    counted = ", ".join(f"{n} {kind}" for kind, n in found.compared.items())
    n_worse = len(found.regressions)
    verdict = "no regression" if not n_worse else f"{n_worse} regressions"
    if n_worse == 1:
        verdict = "1 regression"
    terminal.print_line(f"{verdict} (values compared: {counted})")


def _numbers(base: Any, new: Any) -> list[str]:
    """Return two values as text, with as many digits as show their difference."""
    for digits in (6, 12, 17):
        shown = [
            "-"
            if value is None
            else f"{value:.{digits}g}"
            if isinstance(value, float)
            else str(value)
            for value in (base, new)
        ]
        if shown[0] != shown[1]:
            break
    return shown


class _RacersCommand(click.Command):
    """Lets the ``KEY=VALUE`` words after a solver's name be part of the option before them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Join each solver with its settings, then parse as usual."""
        joined: list[str] = []
        for word in args:
            names_solver = len(joined) > 1 and joined[-2] in {"--solver", "--vs"}
            if names_solver and "=" in word and not word.startswith("-"):
                joined[-1] += f" {word}"
            else:
                joined.append(word)
        return super().parse_args(ctx, joined)


@click.command("time", cls=_RacersCommand)
@click.argument("dataset", type=DatasetName())
@click.option(
    "--solver",
    required=True,
    type=SolverName(),
    metavar="NAME [KEY=VALUE …]",
    help="The solver in question.",
)
@click.option(
    "--vs",
    "others",
    required=True,
    multiple=True,
    type=SolverName(),
    metavar="NAME [KEY=VALUE …]",
    help="A solver to compare it to; may be given several times.",
)
@click.option(
    "--rounds", type=click.IntRange(min=1), default=9, show_default=True, help="Fits of each."
)
@click.option(
    "--rows", type=click.IntRange(min=2), metavar="N", help="Use N rows, drawn by class, not all."
)
@click.option(
    "--tolerance",
    type=POSITIVE,
    metavar="REL",
    help="Compare the cost of coming so near to the best objective, not the settings as given.",
)
@click.option(
    "--scaling",
    type=click.Choice(["all-rows", "none"]),
    default="all-rows",
    show_default=True,
    help="Features to [0, 1], or as they are.",
)
@click.option(
    "--timeout",
    type=POSITIVE,
    metavar="S",
    default=600,
    show_default=True,
    help="Give up after so many seconds.",
)
@click.option(
    "--mirror",
    metavar="DIR_OR_URL",
    envvar="SVMBENCH_MIRROR",
    show_envvar=True,
    help="Folder or URL that holds data files.",
)
@TRUST
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def time_(
    dataset: str,
    solver: str,
    others: tuple[str, ...],
    rounds: int,
    rows: int | None,
    tolerance: float | None,
    scaling: str,
    timeout: float,
    mirror: str | None,
    trust: bool,
    as_json: bool,
) -> None:
    r"""Race solvers on one data set, without a config: ratios of CPU time, in turn, one thread.

    DATASET is a registered name or a file. A solver is one of 'svmbench list solvers', or a class
    by its dotted path (sklearn.svm.SVC); its parameters follow its name. With --tolerance one
    parameter may have several values, from loose to tight (tol=1,0.1,0.01): what is compared is
    then the cost of the first that comes near enough.

    \b
    Examples:
      svmbench time breast-cancer --solver alsvm C=1 --vs liblinear-l1
      svmbench time a9a --solver dcd-l1 tol=1,0.1,0.01 --vs liblinear-l1 tol=1,0.1,0.01 \
          --tolerance 0.01
    """
    from svmbench.cli import race

    racers = [race.parse_racer(words, trust=trust) for words in (solver, *others)]
    result = race.race(
        dataset,
        racers,
        rounds=rounds,
        rows=rows or 0,
        tolerance=tolerance,
        scaling=scaling,
        timeout_s=timeout,
        mirror=mirror,
    )
    if as_json:
        terminal.write_output(json.dumps(result, indent=1))
    else:
        race.print_result(result)
        terminal.check()


@click.command()
@click.argument("solvers", nargs=-1, type=SolverName())
@jobs_option("Solvers compiled at a time.")
@TRUST
def warmup(solvers: tuple[str, ...], jobs: int, trust: bool) -> None:
    r"""Compile the loops of all solvers (or of those named), so that no run has to wait for it.

    What is compiled is kept in the cache, for these versions and this CPU.

    \b
    Examples:
      svmbench warmup --jobs 2
      svmbench warmup alsvm pegasos
    """
    from svmbench.baselines import catalogue
    from svmbench.baselines.foreign import why_not_taken
    from svmbench.experiment.measuring import warming

    names = solvers or tuple(catalogue.solvers())
    for name in names:
        if "." in name and (reason := why_not_taken(name, trust=trust)):
            raise ConfigError(reason)
        if reason := catalogue.why_not_loaded(name, trust=trust):
            raise ConfigError(reason)
        catalogue.solver_class(name)
    for name, seconds in warming.warm_all(names, jobs):
        terminal.print_line(f"{name}: {seconds:.1f} s")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
def doctor(as_json: bool) -> None:
    r"""Look at what this machine has and lacks, and say how to mend it. Changes nothing.

    Versions, BLAS and threads, the compiled baselines, the cache, the mirror, the data sets. Ends
    with code 1 if something is broken.

    \b
    Examples:
      svmbench doctor
      svmbench doctor --json
    """
    from svmbench.cli import doctor as doctors

    findings = doctors.examine()
    if as_json:
        terminal.write_output(json.dumps(doctors.to_json(findings), indent=1))
    else:
        doctors.print_findings(findings)
        terminal.check()
    if not doctors.is_well(findings):
        sys.exit(EXIT_ERROR)


@click.command()
def schema() -> None:
    r"""Print the JSON schema of a config, with which editors complete keys and mark mistakes.

    A config that begins with this comment is then checked as it is written:
    # yaml-language-server: $schema=svmbench.cli.config_schema.json

    \b
    Example:
      svmbench schema > svmbench.cli.config_schema.json
    """
    from svmbench.cli.config_schema import config_schema

    terminal.write_output(json.dumps(config_schema(), indent=1))


@click.command()
@click.argument("shell", type=click.Choice(completing.SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    r"""Print the script that completes commands, solvers, data sets and configs in a shell.

    \b
    Examples:
      eval "$(svmbench completion bash)"      in ~/.bashrc
      eval "$(svmbench completion zsh)"       in ~/.zshrc, after compinit
      svmbench completion fish > ~/.config/fish/completions/svmbench.fish
    """
    terminal.write_output(completing.script(shell, ctx.find_root().command))


def register(group: click.Group) -> None:
    """Add the commands of this module to the command line."""
    for command in (compare, keep, time_, warmup, doctor, schema, completion):
        group.add_command(command)


def why_missing(outcome: Any, with_reason: bool) -> str:
    """Return a data set's line in the list of those that failed; its reason was printed before."""
    reason = outcome.reason.removeprefix(f"{outcome.name}: ")
    address = outcome.url or "no official address"
    return f"{outcome.name}: {reason if with_reason else address}"


def datasets_named(names: tuple[str, ...], all_: bool) -> list[str]:
    """Return the data sets that a command line names, each once."""
    from svmbench import data

    if all_:
        return data.names()
    if not names:
        raise ConfigError("name a data set, @PAPER, or --all ('svmbench list datasets' shows them)")
    wanted: list[str] = []
    for name in names:
        wanted += data.names_of_paper(name[1:]) if name.startswith("@") else [name]
    for name in wanted:
        data.parse_name(name)
    return list(dict.fromkeys(wanted))
