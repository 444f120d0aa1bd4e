"""Forecast a run, with the times of its cells from kept records.

``experiment/run/forecast.py`` adds up the times of a run's cells; ``report/numbers/cell_times.py``
forecasts the time of each from the kept records of the paper.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from svmbench.base.errors import ResultsError

if TYPE_CHECKING:
    from svmbench.experiment.run.forecast import Forecast
    from svmbench.experiment.run.session import RunPlan
    from svmbench.experiment.settings.cells import Cell
    from svmbench.report.numbers.cell_times import Work


def forecast_of(run_plan: RunPlan) -> Forecast:
    """Return what a run would do: its cells, missing data sets, and the time by kept records."""
    from svmbench.experiment.run.forecast import forecast
    from svmbench.experiment.run.session import size_sentence

    plan = run_plan.plan
    recorded = seconds_by_records(plan.name, plan.config.paper)
    estimate = forecast(run_plan, recorded=recorded)
    first, *others = estimate.lines
    return replace(estimate, lines=(first, *filter(None, [size_sentence(plan)]), *others))


def seconds_by_records(config: str, paper: str) -> Callable[[Cell], float | None]:
    """Return a function that forecasts the time of a cell from the kept records of a paper.

    Parameters
    ----------
    config, paper : str

    Returns
    -------
    callable
        Takes a planned cell and returns its seconds; None without a record of its solver.
    """
    from svmbench.report.numbers.cell_times import Forecaster, timed_cells
    from svmbench.report.reading.folders import our_runs
    from svmbench.report.reading.records import read_run
    from svmbench.studies.judging import kept_results

    try:
        of_paper = kept_results() / paper
        runs = [read_run(folder) for folder in our_runs([of_paper])] if of_paper.is_dir() else []
    except ResultsError:  # forecast without the records
        runs = []
    forecaster = Forecaster(timed for run in runs for timed in timed_cells(run))
    return lambda cell: forecaster.seconds(planned_work(cell, config))


def planned_work(cell: Cell, config: str) -> Work:
    """Return the facts of a planned cell from which its time is forecast.

    Parameters
    ----------
    cell : Cell
    config : str
    """
    from svmbench.experiment.settings.cells import protocol_settings
    from svmbench.report.numbers.cell_times import (
        Work,
        n_fits,
        printed_facts,
        swept_of,
        values_a_row,
    )
    from svmbench.schema.record import canonical

    shown, spec = cell.identity, protocol_settings(cell.spec)
    dimensions = {canonical(name): value for name, value in shown["dimensions"].items()}
    known = printed_facts(shown["paper"], shown["dataset"])
    n_values = {
        str(racer.get("shown")): max(1, len(racer.get("grid") or ()))
        for racer in spec.get("racers") or [spec]
    }
    counts = {**spec, "gammas": len(spec.get("gammas") or ())}
    rows = dimensions.get("rows") or shown["size"] or spec.get("n_rows") or known.get("n_samples")
    return Work(
        config=config,
        block=shown["block"],
        protocol=shown["protocol"],
        solver=shown["solver"],
        kernel=str(shown["kernel"]),
        dataset=shown["dataset"],
        rows=float(rows or 0),
        features=float(shown["n_features_kept"] or values_a_row(shown["paper"], shown["dataset"])),
        fits=n_fits(n_values, counts, float(rows or 0)),
        swept=swept_of(dimensions),
    )
