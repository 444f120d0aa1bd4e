"""Commands of a machine: ``warmup``, ``doctor``, ``cache``, ``schema`` and ``completion``."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from svmbench.base.errors import EXIT_ERROR, ConfigError
from svmbench.cli import completion as completing
from svmbench.cli import terminal
from svmbench.cli.completion import SolverName
from svmbench.cli.options import TRUST, FiniteRange, jobs_option

if TYPE_CHECKING:
    from svmbench.studies.doctor import Finding


@click.command()
@click.argument("solvers", nargs=-1, type=SolverName())
@jobs_option("Number of solvers compiled at a time.")
@TRUST
def warmup(solvers: tuple[str, ...], jobs: int, trust: bool) -> None:
    r"""Compile the loops of all solvers, or of some, so that no run waits for it.

    Compiled code is kept in the cache, for the present versions and this CPU.

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
    r"""Check this machine, and print a remedy for each problem. Changes nothing.

    It checks versions, BLAS and threads, compiled baselines, cache, mirror and data sets. The exit
    code is 1 if something is broken.

    \b
    Examples:
      svmbench doctor
      svmbench doctor --json
    """
    from svmbench.studies import doctor as doctors

    findings = doctors.examine_machine()
    if as_json:
        terminal.write_output(json.dumps(doctors.to_json(findings), indent=1))
    else:
        print_findings(findings)
        terminal.check_written()
    if not doctors.is_ok(findings):
        sys.exit(EXIT_ERROR)


def print_findings(findings: list[Finding]) -> None:
    """Print a line for each finding, and the remedy below it."""
    signs = {"ok": "ok", "note": "note", "broken": "BROKEN"}
    rows: list[tuple[str, str, str]] = []
    for finding in findings:
        rows.append((signs[finding.status], finding.what, finding.found))
        if finding.mend:
            rows.append(("", "", f"→ {finding.mend}"))
    terminal.print_columns(rows)


@click.command()
def schema() -> None:
    r"""Print the JSON schema of a config, with which editors complete keys and mark mistakes.

    A config that begins with this comment is then checked as it is written:
    # yaml-language-server: $schema=svmbench.schema.json

    \b
    Example:
      svmbench schema > svmbench.schema.json
    """
    from svmbench.experiment.config.schema import config_schema

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


@click.command()
@click.option(
    "--older-than",
    "days",
    type=FiniteRange(min=0),
    metavar="DAYS",
    help="Remove what was not used for this number of days.",
)
@click.option("--prepared", is_flag=True, help="Remove prepared data sets alone.")
@click.option("--dry-run", is_flag=True, help="Print what would be removed; remove nothing.")
def cache(days: float | None, prepared: bool, dry_run: bool) -> None:
    r"""Show the size of the cache by kind and data set; clean it.

    Without --older-than and --prepared nothing is removed. With both, only prepared data sets are
    removed that were not used for that time. Whatever is needed again is downloaded, prepared or
    compiled again.

    \b
    Examples:
      svmbench cache
      svmbench cache --older-than 30 --dry-run
      svmbench cache --prepared
    """
    from svmbench.base.paths import cache_dir
    from svmbench.data.cached import clean_cache, sizes_of

    is_cleaning = prepared or days is not None
    if dry_run and not is_cleaning:
        raise click.UsageError("--dry-run needs --older-than or --prepared")
    removed, busy = clean_cache(days=days, prepared=prepared, dry_run=dry_run or not is_cleaning)
    rows = sizes_of(removed)
    if rows:
        terminal.print_columns(
            ((kind, name, _mebibytes(size)) for kind, name, size in rows),
            header=("kind", "data set", "size"),
        )
    verb = "would be removed from" if dry_run else "removed from" if is_cleaning else "in"
    terminal.print_line(f"{_mebibytes(sum(size for *_, size in rows))} {verb} {cache_dir()}")
    if busy:
        busy_names = ", ".join(entry.path.name for entry in busy)
        terminal.print_line(f"left, since another process writes them: {busy_names}")
    terminal.check_written()


def _mebibytes(n_bytes: int) -> str:
    return f"{n_bytes / 2**20:,.1f} MiB"


def register(group: click.Group) -> None:
    """Add the commands of this module to the command line."""
    for command in (warmup, doctor, cache, schema, completion):
        group.add_command(command)
