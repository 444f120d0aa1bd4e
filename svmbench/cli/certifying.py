"""The command ``certify``: bound the distance of a model in a file from its optimum."""

from __future__ import annotations

import json
from typing import Any

import click

from svmbench.base.errors import EXIT_FAILED_CELLS, ConfigError
from svmbench.cli import terminal
from svmbench.cli.completion import DatasetName
from svmbench.cli.options import (
    ANY_PATH,
    LABEL,
    MIRROR,
    POSITIVE_NUMBER,
    table_form,
)


def offset_of(text: str | None) -> str | float | None:
    """Return the treatment of an offset that an option names."""
    if text is None or text in ("free", "none"):
        return text
    try:
        return float(text)
    except ValueError:
        raise ConfigError(f"--offset is free, none or a number, not {text!r}") from None


def print_certificate(certificate: Any) -> None:
    """Print a certificate with one line for each value."""

    def shown(value: float | None, form: str = ".3g") -> str:
        return "-" if value is None else format(value, form)

    lines = {
        "problem": certificate.problem,
        "training rows": f"{certificate.n_samples:,}",
        "two-class problems": f"{certificate.n_parts:,}",
        "the model shows": certificate.shows,
        "objective": shown(certificate.primal, ".12g"),
        "optimum at least": shown(certificate.dual, ".12g"),
        "gap": shown(certificate.gap),
        "relative gap": shown(certificate.relative_gap),
        "largest violation of the optimality conditions": shown(certificate.kkt),
        "multipliers outside their box": shown(certificate.box_violation),
        "sum of multipliers is off by": shown(certificate.sum_violation),
    }
    for name, value in lines.items():
        terminal.print_line(f"{name}: {value}")
    for accuracy in (1e-2, 1e-3, 1e-5):
        known = "yes" if certificate.solved_to(accuracy) else "not certain"
        terminal.print_line(f"solved to {accuracy:g}: {known}")


@click.command("certify")
@click.argument("model", type=ANY_PATH)
@click.argument("dataset", metavar="DATA", type=DatasetName())
@click.option("--parameter", type=POSITIVE_NUMBER, metavar="C|NU", help="C or nu of the model.")
@click.option("--problem", metavar="NAME", help="Problem of the model, if its file doesn't say it.")
@click.option(
    "--offset",
    metavar="free|none|VALUE",
    help="Offset without regularisation, no offset, or the value of the constant feature.",
)
@click.option(
    "--accuracy",
    type=POSITIVE_NUMBER,
    metavar="REL",
    help="End with code 3 unless the objective is certainly within this share of the optimum.",
)
@LABEL
@table_form
@MIRROR
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of lines.")
def certify_command(
    model: str,
    dataset: str,
    **options: Any,
) -> None:
    r"""Certify how near a model is to its optimum, from its file and its training rows.

    MODEL is a file of LIBSVM, ThunderSVM, LIBLINEAR, SVM-light or LaSVM. DATA has the rows that it
    was trained on: a file, or a registered data set as it is, without scaling. docs/certificates.md
    has the formulas.

    \b
    Examples:
      svmbench certify a9a.model a9a.txt --parameter 1
      svmbench certify nu.model train.txt --parameter 0.1 --accuracy 1e-3
      svmbench certify liblinear.model my.csv --label churn --parameter 1 --json
    """
    from svmbench.baselines.certify import certify
    from svmbench.studies.datasets import training_rows

    offset = offset_of(options["offset"])
    X, y = training_rows(dataset, options["label"], options["mirror"], options["form"])
    certificate = certify(
        str(model),
        X,
        y,
        problem=options["problem"],
        parameter=options["parameter"],
        offset=offset,
    )
    if options["as_json"]:
        terminal.write_output(json.dumps(certificate.as_dict(), indent=1))
    else:
        print_certificate(certificate)
        terminal.check_written()
    accuracy = options["accuracy"]
    if accuracy is not None and not certificate.solved_to(accuracy):
        raise SystemExit(EXIT_FAILED_CELLS)


def register(group: click.Group) -> None:
    """Add the commands of this module to the command line."""
    group.add_command(certify_command)
