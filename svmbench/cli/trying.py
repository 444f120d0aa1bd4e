"""The command ``try``: from a user's table to a fitted pipeline."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from svmbench.base.errors import ConfigError
from svmbench.cli import terminal
from svmbench.cli.options import LABEL, POSITIVE_NUMBER, TEXT, table_form
from svmbench.studies.recommending import METRICS
from svmbench.studies.trying import (
    LOADING,
    TryResult,
    TrySettings,
    refuse_unwritable,
    try_table,
    write_model,
)

if TYPE_CHECKING:
    from svmbench.data.frames import TableForm

#: Largest number of classes of a printed confusion matrix.
MAX_CLASSES_SHOWN = 10


def print_confusion(result: TryResult) -> None:
    """Print how many test rows of each class were predicted as which class."""
    classes, counts = result.confusion
    if len(classes) > MAX_CLASSES_SHOWN:
        return
    terminal.print_line("The recommended model's predictions of the test rows:")
    terminal.print_columns(
        [
            (f"is {name}", *(f"{n:,}" for n in row))
            for name, row in zip(classes, counts, strict=True)
        ],
        header=("test rows", *(f"predicted {name}" for name in classes)),
    )


@click.command("try")
@click.argument("file", metavar="FILE|openml:N", type=click.Path(dir_okay=False, path_type=Path))
@LABEL
@TEXT
@click.option(
    "--impute/--no-impute", default=True, help="Fill in missing values (default), or refuse them."
)
@table_form
@click.option(
    "--metric",
    type=click.Choice(["auto", *METRICS]),
    default="auto",
    show_default=True,
    help="The score that chooses; 'auto' is accuracy, or balanced accuracy if the classes are"
    " uneven.",
)
@click.option(
    "--minutes",
    type=POSITIVE_NUMBER,
    default=2.0,
    show_default=True,
    metavar="M",
    help="Time for the searches and final fits of all solvers; each tries at least one setting.",
)
@click.option(
    "--test",
    "test_share",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.25,
    show_default=True,
    metavar="SHARE",
    help="Share of the rows that are held out to test the models.",
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the splits."
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The fitted pipeline.  [default: FILE with the ending .joblib]",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def try_(
    file: Path,
    label: str | None,
    text: str | None,
    impute: bool,
    metric: str,
    minutes: float,
    test_share: float,
    seed: int,
    output: Path | None,
    as_json: bool,
    form: TableForm | None,
) -> None:
    r"""Fit linear and RBF solvers to a CSV file, compare them, and write the best pipeline.

    The file has a header, and --label names its column of classes. openml:N is a data set of
    OpenML, whose label OpenML names. Numbers such as 12%, $ 5 or 1,234.50 are read, and missing
    values are filled in from the training rows; the screen says where. A part of the rows is held
    out to test the models. Each solver gets a share of the time to search its parameters, on at
    most 3,000 training rows.
    The pipeline takes frames with the same columns and returns labels of the file's type: whole
    numbers, truth values or text. The table has two baselines: always the most frequent class, and
    scikit-learn's logistic regression, whose C is searched as the solvers' parameters are. Scores
    are of the test rows; beside them stand mean ± standard deviation over the three folds of the
    search, and these choose the solver.

    \b
    Example:
      svmbench try my.csv --label churn --minutes 5
      svmbench try openml:40994
    """
    from svmbench.cli.progress import Waiting
    from svmbench.data import openml

    wanted = openml.reference(file)
    default_name = (
        file.with_suffix(".joblib") if wanted is None else f"openml-{wanted.number}.joblib"
    )
    target = output or Path(default_name)
    if target.resolve() == file.resolve():
        raise ConfigError(f"-o {target} is the file of the data")
    refuse_unwritable(target)
    settings = TrySettings(
        metric=metric,
        minutes=minutes,
        test_share=test_share,
        seed=seed,
        text=text,
        impute=impute,
    )
    with Waiting(f"reading {file}", quiet=as_json) as waiting:

        def print_step(sentence: str) -> None:
            terminal.print_line(sentence)
            waiting.turn_to(LOADING if sentence == LOADING else "searching settings")

        result = try_table(
            file, label, settings, form=form, print_line=None if as_json else print_step
        )
    write_model(result.chosen.model, target)
    if as_json:
        terminal.write_output(json.dumps({**result.facts, "file": str(target)}, indent=1))
        return
    header, *rows = result.rows
    terminal.print_columns(rows, header=header)
    for sentence in (result.reason, result.quote, *result.notes):
        terminal.print_line(sentence)
    print_confusion(result)
    terminal.print_line(f"wrote {target}. {result.fitted_on()} {result.scores()}")
    terminal.print_line("To use it on new rows:")
    for line in result.usage(target):
        terminal.print_line(f"  {line}")
    terminal.check_written()


def register(group: click.Group) -> None:
    """Add the command of this module to the command line."""
    group.add_command(try_)
