"""Keep the results of runs below ``results/``: their records, and tables and plots made of these.

    python scripts/keep_results.py results/alsvm_table2-paper …
    python scripts/keep_results.py --name nlsgd_table2-medium results/nlsgd_table2-medium

Each run goes to ``<paper>/<config>`` (or ``<paper>/<name>``) beside its folder, with its plan, the
environments it was measured in and its records as ``runs.jsonl.xz``. An earlier kept run there is
replaced whole, or not at all. ``scripts/rebuild_results.py`` makes tables and plots again.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from svmbench.base.errors import ResultsError
from svmbench.base.files import read_json
from svmbench.report.output import kept

#: The folder of results of configs that belong to no paper.
OF_NO_PAPER = "perf"


def keep(run: Path, name: str = "") -> Path:
    """Keep a run's results, and return their folder.

    Raises
    ------
    SystemExit
        If it is no finished run folder, or can't be kept.
    """
    config = read_config(run)
    try:
        folder = run.parent / (config["paper"] or OF_NO_PAPER)
        return kept.keep_run(run, folder / (name or config["name"]))
    except ResultsError as error:
        raise SystemExit(str(error)) from error


def read_config(run: Path) -> dict[str, Any]:
    """Return name and paper of a run folder's config."""
    try:
        config = read_json(run / "plan.json")["config"]
        return {"name": config["name"], "paper": config["paper"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SystemExit(f"{run} is no run folder: {error!r}") from error


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--name", default="", help="what to call the one run that is kept")
    given = parser.parse_args()
    if given.name and len(given.runs) > 1:
        parser.error("--name is for one run")
    for each in given.runs:
        print(keep(each, given.name))
