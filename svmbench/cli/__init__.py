"""The command line; a command's imports run only with the command, so that help is instant."""

from __future__ import annotations

import errno
import json
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from svmbench.base import escape, interrupts, loaded_libraries
from svmbench.base.errors import (
    EXIT_ERROR,
    EXIT_FAILED_CELLS,
    EXIT_INTERRUPTED,
    EXIT_OK,
    ConfigError,
    SvmbenchError,
)
from svmbench.cli import logs, terminal
from svmbench.cli.completion import CardName, ConfigName, DatasetName
from svmbench.cli.options import (
    CLUSTER,
    IMPUTE,
    JOBS,
    LABEL,
    MIRROR,
    POSITIVE_NUMBER,
    QUIET,
    RETRY,
    TEXT,
    TRUST,
    WORKER_KIND,
    jobs_option,
    table_form,
)

if TYPE_CHECKING:
    from svmbench.cli.progress import Narrator
    from svmbench.data.frames import TableForm
    from svmbench.experiment.run.execute import RunSummary
    from svmbench.experiment.run.session import RunPlan


def _with_line_breaks(text: str | None) -> str | None:
    # Click keeps the lines after a backspace character. A raw docstring has a backslash and a b
    # there.
    return text.replace("\\b", "\b") if text else text


#: The modules that register commands, each with its commands. A module is imported when one of its
#: commands is used.
_MODULE_COMMANDS = {
    "publishing": ("table", "claims", "site"),
    "reproducing": ("reproduce", "refresh"),
    "rechecking": ("recheck",),
    "sharing": ("pack", "add", "archive"),
    "comparing": ("compare", "keep"),
    "race": ("time", "race"),
    "certifying": ("certify",),
    "trying": ("try",),
    "machine": ("warmup", "doctor", "cache", "schema", "completion"),
}

#: Commands that run cells. Their libraries have one thread, so that workers can be forked.
_RUN_CELLS = {"run", "reproduce", "refresh", "recheck", "time", "race"}


class _Commands(click.Group):
    """A group that lists commands in the order of use, and names the nearest of an unknown one."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.help = _with_line_breaks(self.help)

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """Add a command, whose help keeps its examples line by line."""
        cmd.help = _with_line_breaks(cmd.help)
        super().add_command(cmd, name)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands of this module in the order of the file, then the others."""
        others = [name for names in _MODULE_COMMANDS.values() for name in names]
        return [*(name for name in self.commands if name not in others), *others]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command by its name, and import the module that registers it if need be."""
        for module, names in _MODULE_COMMANDS.items():
            if cmd_name in names and cmd_name not in self.commands:
                import_module(f"svmbench.cli.{module}").register(self)
        return super().get_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command, or name the nearest one."""
        from svmbench.base.errors import suggestion

        try:
            command = super().resolve_command(ctx, args)
        except click.UsageError as error:
            nearest = suggestion(args[0], self.list_commands(ctx))
            raise click.UsageError(error.message.rstrip(".") + nearest, ctx) from error
        if command[0] in _RUN_CELLS:
            loaded_libraries.load_with_one_thread()
        return command


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="svmbench", prog_name="svmbench")
@click.option("-v", "--verbose", is_flag=True, help="Print each step with the time of day.")
@click.option(
    "--log-file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Append each step, and tracebacks of errors, to a file.",
)
@click.option("--debug", is_flag=True, expose_value=False, help="Show tracebacks of errors.")
def cli(verbose: bool, log_file: Path | None) -> None:
    r"""Re-run the experiments of seven SVM-training papers and compare the numbers.

    \b
    First steps:
      svmbench run quickstart                                a small experiment, no download
      svmbench list configs                                  tables and figures to re-run
      svmbench fetch @alsvm                                  the data sets of one paper
      svmbench run alsvm_table2                              one table, cut to minutes
      svmbench time breast-cancer --solver csvc --vs libsvm  two solvers at given settings
      svmbench race -s csvc -s libsvm                        on several data sets, or two commits
      svmbench try my.csv --label class                      settings searched on your table

    \b
    Exit codes: 0 done, 1 error, 2 usage or config error, 3 finished with failed cells,
    4 regression found, 130 interrupted (run the same command again to continue).

    The options below may stand before or after the command.
    """
    logs.start_logging(verbose=verbose, file=log_file)


@cli.command("list")
@click.argument(
    "what",
    type=click.Choice(
        [
            *("solvers", "datasets", "configs", "papers"),
            *("protocols", "scores", "plot-kinds", "formats", "plugins"),
        ]
    ),
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def list_(what: str, as_json: bool) -> None:
    r"""List the solvers, data sets, configs, papers, or what a config can name.

    A config names protocols, scores and kinds of plot, 'svmbench table' a format. Those of
    installed plug-ins are listed, too.

    \b
    Examples:
      svmbench list solvers
      svmbench list datasets --json
    """
    from svmbench.cli import listing
    from svmbench.studies.listing import LISTS

    rows = LISTS[what]()
    if as_json:
        terminal.write_output(json.dumps(rows, indent=1))
        return
    listing.print_table(rows)
    terminal.check_written()


@cli.command("describe")
@click.argument("name", type=CardName())
@LABEL
@TEXT
@IMPUTE
@table_form
@TRUST
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
def describe_command(
    name: str,
    label: str | None,
    text: str | None,
    impute: bool,
    form: TableForm | None,
    trust: bool,
    as_json: bool,
) -> None:
    r"""Describe a solver, a data set or a file: parameters and reference, or rows and classes.

    A solver is one of 'svmbench list solvers', or a class by its dotted path. The columns of a
    table are encoded as 'svmbench try' encodes them. openml:NUMBER is a data set of OpenML, which
    is downloaded and kept.

    \b
    Examples:
      svmbench describe alsvm
      svmbench describe a9a
      svmbench describe sklearn.svm.NuSVC
      svmbench describe my.csv --label churn
      svmbench describe openml:40994
    """
    from svmbench.cli import listing
    from svmbench.studies.listing import card_of, table_card

    facts = table_card(name, label, text, impute, form) or card_of(name, trust=trust)
    if as_json:
        terminal.write_output(json.dumps(facts, indent=1, default=str))
        return
    listing.print_card(facts)
    terminal.check_written()


@cli.command()
@click.argument("configs", nargs=-1, type=ConfigName())
@click.option(
    "--paper",
    "folders",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Check the folder of a paper, and name what is missing.  [repeatable]",
)
@TRUST
def validate(configs: tuple[str, ...], folders: tuple[Path, ...], trust: bool) -> None:
    r"""Check config files: every error at once, with file, line, column and a suggestion.

    \b
    Examples:
      svmbench validate configs/*.yaml
      svmbench validate --paper svmbench/papers/smo
    """
    from svmbench.experiment.config.validation import Validation

    if not (configs or folders):
        raise click.UsageError("name a config, or the folder of a paper with --paper")
    problems: list[str] = []
    if folders:
        from svmbench.studies.paper_check import paper_problems

        for folder in folders:
            lacking = paper_problems(folder, trust=trust)
            problems += lacking
            if not lacking:
                terminal.print_line(f"{folder}: ok")
    validation = Validation(trust=trust)
    for name in configs:
        try:
            n_blocks, profiles = validation.outline(name)
        except ConfigError as error:
            problems += error.problems
        else:
            terminal.print_line(
                f"{name}: ok ({n_blocks} block{'s' if n_blocks > 1 else ''}, "
                f"profiles {', '.join(profiles)})"
            )
    validation.write_cache()
    if problems:
        raise ConfigError(problems)


@cli.command("fetch")
@click.argument("names", nargs=-1, metavar="NAME|@PAPER ...", type=DatasetName(papers=True))
@click.option("--all", "all_", is_flag=True, help="Fetch every registered data set.")
@MIRROR
@jobs_option("Number of data sets prepared at a time.")
@click.option("-q", "--quiet", is_flag=True, help="Print errors only.")
def fetch_command(
    names: tuple[str, ...], all_: bool, mirror: str | None, jobs: int, quiet: bool
) -> None:
    r"""Get data sets and prepare them: download, verify, derive, check the counts, cache.

    Each file is looked up in the mirror first, then at its official address. Cached data sets
    are not fetched again.

    \b
    Examples:
      svmbench fetch adult
      svmbench fetch a9a ijcnn1
      svmbench fetch @alsvm
      svmbench fetch --all --mirror /data/svm
    """
    from svmbench import data
    from svmbench.cli.fetching import Fetching, why_missing
    from svmbench.studies.datasets import datasets_named

    wanted = datasets_named(names, all_=all_)
    # Asked for by name, a file may come from its official address, unless that was ruled out.
    official = None if os.environ.get("SVMBENCH_OFFLINE") else True
    with Fetching(terminal.console(quiet=quiet)) as fetching:
        outcomes = data.fetch_many(
            wanted, mirror=mirror, official=official, jobs=jobs, on_event=fetching.event
        )
    missing = [outcome for outcome in outcomes if not outcome.ok]
    if missing:
        where = [f"  {why_missing(outcome)}" for outcome in missing] if quiet else []
        hint = "  --mirror (or SVMBENCH_MIRROR) names a folder or an address that has their files"
        lines = [
            f"{len(missing)} of {len(outcomes)} data sets are not available{':' if quiet else ''}",
            *where,
        ]
        raise SvmbenchError("\n".join([*lines, *([] if mirror else [hint])]))


@cli.command("run")
@click.argument("config", type=ConfigName())
@click.option(
    "--profile",
    default="quick",
    show_default=True,
    help="Size of the run: 'quick' takes minutes, 'paper' is the full protocol.",
)
@JOBS
@CLUSTER
@WORKER_KIND
@click.option(
    "--only",
    metavar="KEY=VALUE,…",
    multiple=True,
    help="Run only the cells of these solvers, data sets, blocks, folds (from 1), sizes or"
    " parameter values (solver=falsvm,dataset=a9a,rows=1000,solver.nu=0.2). All keys must match; a"
    " repeated key means 'or'.",
)
@click.option(
    "--timeout",
    type=POSITIVE_NUMBER,
    metavar="S",
    help="Time limit of one cell in seconds.  [default: the config's]",
)
@click.option(
    "--memory",
    type=POSITIVE_NUMBER,
    metavar="GB",
    help="Memory limit of one cell in GiB.  [default: the config's]",
)
@click.option(
    "--budget",
    type=POSITIVE_NUMBER,
    metavar="MINUTES",
    help="End after this many minutes; cells without a result are marked 'not run'.",
)
@RETRY
@click.option(
    "--fresh",
    is_flag=True,
    help="Run all cells again; earlier records are renamed to runs-N.jsonl.",
)
@click.option(
    "--reuse",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    multiple=True,
    help="Copy the results of identical cells from another run's folder.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Print the cells, the missing data sets and a rough duration; do nothing else.",
)
@click.option(
    "--set",
    "overrides",
    metavar="KEY=VALUE",
    multiple=True,
    help="Change one value of the config: a dotted key, with the names of blocks and solvers"
    " (alsvm_table2 --set blocks.cv.folds=3); + appends (--set solvers.+=csvc).",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Results folder.  [default: results/<config>-<profile>]",
)
@MIRROR
@TRUST
@QUIET
def run_command(
    config: str,
    profile: str,
    jobs: int,
    cluster: str,
    kind: str,
    only: tuple[str, ...],
    timeout: float | None,
    memory: float | None,
    budget: float | None,
    retry: str,
    fresh: bool,
    reuse: tuple[Path, ...],
    dry_run: bool,
    overrides: tuple[str, ...],
    output: Path | None,
    mirror: str | None,
    trust: bool,
    quiet: bool,
) -> None:
    r"""Run a config: a file, or the name of one that ships with svmbench.

    Each cell (data set × solver × size × fold) runs in a process of its own and is recorded before
    the next begins. After an interruption, the same command continues with the missing cells; after
    a change of the config or of a solver, it runs only the cells that changed. Cells whose data set
    can't be fetched are marked as unavailable.

    \b
    Examples:
      svmbench run quickstart
      svmbench run configs/alsvm_table2.yaml --profile quick
      svmbench run alsvm_table2 --profile paper --only block=cv,solver=alsvm,solver=liblinear-l1
      svmbench run nlsgd_table3 --reuse results/nlsgd_table2-quick
      svmbench run alsvm_table2 --profile paper --dry-run
    """
    from svmbench.cli.progress import Narrator, Waiting
    from svmbench.cli.publishing import rebuild
    from svmbench.experiment.plan.filters import filters_of
    from svmbench.experiment.run.session import Request, execute_run, plan_run

    console = terminal.console()
    narrator = Narrator(console, quiet=quiet)
    budget_s = float("inf") if budget is None else 60 * budget
    request = Request(
        config=config,
        profile=profile,
        output=output,
        mirror=mirror,
        overrides=overrides,
        only=filters_of(only),
        trust=trust,
        jobs=jobs,
        cluster=cluster,
        kind=kind,
        timeout_s=timeout,
        memory_gb=memory,
        budget_s=budget_s,
        stop_s=budget_s,
        retry=retry,
        fresh=fresh,
        reuse=reuse,
    )
    with Waiting("reading the config and its data sets", quiet=quiet) as waiting:

        def print_line(step: str) -> None:
            narrator.print_line(step)
            waiting.turn_to(step)

        run_plan = plan_run(request, prepare=not dry_run, print_line=print_line)
    if dry_run:
        from svmbench.studies.forecasting import forecast_of

        for line in forecast_of(run_plan).lines:
            terminal.print_line(line)
        terminal.check_written()
        return
    summary = execute_run(
        run_plan, print_line=narrator.print_line, note=narrator.note, watch=narrator.watch
    ).summary
    if summary.interrupted:
        narrator.note("interrupted; the same command continues the run")
        sys.exit(EXIT_INTERRUPTED)
    rebuild(run_plan.path, console, quiet=quiet, only_overview=True)
    _end_of_run(run_plan, summary, narrator)


def _end_of_run(run_plan: RunPlan, summary: RunSummary, narrator: Narrator) -> None:
    """Print the number of cells by status; exit with a code if some failed or none could run."""
    cells = run_plan.cells
    parts = [f"{n} {status}" for status, n in sorted(summary.counts.items())]
    left_out = len(run_plan.plan.cells) - len(cells)
    by_only = f" (--only leaves {left_out} out)" if left_out else ""
    narrator.note(f"cells: {', '.join(parts)}{by_only}")
    absent = [cell.identity["dataset"] for cell in cells if cell.status == "unavailable"]
    if absent:
        narrator.print_line(
            f"not here: {', '.join(map(str, dict.fromkeys(absent)))}; --mirror DIR reads data files"
            " from a folder, and 'svmbench fetch NAME' downloads them"
        )
    if not any(cell.status == "planned" for cell in cells):
        reasons = dict.fromkeys(cell.reason for cell in cells if cell.reason)
        for line in ("nothing could run:", *(f"  {reason}" for reason in reasons)):
            narrator.note(line)
        sys.exit(EXIT_FAILED_CELLS)
    if summary.failed:
        narrator.note("run again with --retry failed (or timeout, all) to try them once more")
        sys.exit(EXIT_FAILED_CELLS)


def _own_options_first(words: list[str]) -> tuple[list[str], bool]:
    """Move the options of `svmbench` itself to the front, since users also add them at the end.

    Returns the words without ``--debug``, and whether it was among them.
    """
    front, rest = [], []
    remaining = iter(words)
    for word in remaining:
        if word in {"-v", "--verbose"} or word.startswith("--log-file="):
            front.append(word)
        elif word == "--log-file":
            value = next(remaining, None)
            if value is None:
                return [word], False  # Click says that a value is missing
            front += [word, value]
        elif word == "--":
            rest += [word, *remaining]
        elif word != "--debug":
            rest.append(word)
    return [*front, *rest], "--debug" in words


def main() -> None:
    """Run the command line; every error is a sentence on standard error and an exit code."""
    words, debug = _own_options_first(sys.argv[1:])
    loaded_libraries.collect_rarely()
    with (
        terminal.steady(),
        terminal.warnings_as_sentences(),
        interrupts.sigterm_as_interrupt(),
        interrupts.until_first_output(words),
    ):
        code = _main(words, debug or os.environ.get("SVMBENCH_DEBUG") == "1")
    sys.exit(code)


def _usage(error: click.ClickException) -> str:
    """Return a sentence with the usage error and the help command."""
    from svmbench.base.errors import suggestion

    sentence = " ".join(escape.line(error.format_message(), 400).split()).rstrip(".")
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is None:
        return sentence
    if isinstance(error, click.NoSuchOption):
        known = [
            name
            for each in context.command.get_params(context)
            for name in (*each.opts, *each.secondary_opts)
        ]
        name = escape.line(error.option_name, 80)
        sentence = f"there is no option {name!r}{suggestion(name, known)}"
    return f"{sentence} ('{context.command_path} --help' shows what there is)"


def _main(words: list[str], debug: bool) -> int:
    """Run a command; return its exit code."""
    try:
        code = cli.main(words, prog_name="svmbench", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return error.exit_code
    except click.ClickException as error:
        terminal.print_stderr(f"svmbench: {_usage(error)}")
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        terminal.print_stderr("interrupted")
        return EXIT_INTERRUPTED
    except SvmbenchError as error:
        logs.LOG.error("%s", error, exc_info=True)
        if debug:
            raise
        terminal.print_stderr(f"svmbench: {error}" if "\n" not in str(error) else str(error))
        return error.exit_code
    except Exception as error:
        logs.LOG.exception("%s", type(error).__name__)
        if debug:
            raise
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            prefix = f"can't write {escape.line(error.filename, 400)}: " if error.filename else ""
            terminal.print_stderr(f"svmbench: {prefix}{error.strerror}")
            return EXIT_ERROR
        if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
            terminal.print_stderr(
                "svmbench: this process may not open as many files as it needs; a larger number"
                " for 'ulimit -n' (such as 1024) lets it"
            )
            return EXIT_ERROR
        text = " ".join(str(error).split())
        terminal.print_stderr(f"svmbench: {type(error).__name__}: {text} (--debug shows where)")
        return EXIT_ERROR
    finally:
        logs.stop_logging()
    return code if isinstance(code, int) else EXIT_OK
