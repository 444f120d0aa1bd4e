"""The queue of `svmbench reproduce`: missing cells, those first that decide most in an hour.

A config is in the queue if a cell of its plan has no kept result, of any age. All of its cells run
that no kept run has by today's code, so that its folder gets complete. Times come from
:mod:`svmbench.report.numbers.forecasts`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from svmbench.base.errors import SvmbenchError
from svmbench.cli import terminal

if TYPE_CHECKING:
    from svmbench.experiment.run.batch import ConfigOutcome
    from svmbench.experiment.settings.cells import Cell
    from svmbench.papers.judging import Evidence
    from svmbench.report.numbers.forecasts import Work

#: A machine is idle if fewer processes than this wait for a core on average.
IDLE_LOAD = 0.3
#: Seconds between two looks at the load.
_LOOK_EVERY_S = 20.0
#: A forecast of less counts as this, in hours: starting a config takes seconds by itself.
_LEAST_HOURS = 0.01


@dataclass(frozen=True)
class Queued:
    """A config of the queue.

    Attributes
    ----------
    config, paper, profile : str
    cells : dict of str to float or None
        The forecast seconds of each cell to run, by its key; None where no record tells them.
    n_missing : int
        How many of these have no kept result, of any age.
    is_race : bool
        Whether solvers race in some of them.
    claims : tuple of str
        The open claims that name the config.
    """

    config: str
    paper: str
    profile: str
    cells: Mapping[str, float | None]
    n_missing: int
    is_race: bool
    claims: tuple[str, ...]

    @property
    def seconds(self) -> float:
        """The forecast seconds of all cells of which records tell them."""
        return sum(one for one in self.cells.values() if one is not None)

    @property
    def value(self) -> float:
        """Claims that it may decide for each forecast hour."""
        return len(self.claims) / max(self.seconds / 3600.0, _LEAST_HOURS)

    def sentence(self) -> str:
        """Return what runs and how long it takes."""
        from svmbench.experiment.run.session import counted
        from svmbench.report.numbers.forecasts import in_hours

        n_cells, untold = len(self.cells), sum(one is None for one in self.cells.values())
        kind = ", races, when the machine is idle" if self.is_race else ""
        said = [
            f"{self.config} (profile {self.profile}{kind}): {counted(n_cells, 'cell')} "
            f"to run, {self.n_missing:,} without a kept result"
        ]
        said.append(in_hours(self.seconds) if untold < n_cells else "")
        said.append(f"no record tells how long {untold:,} of them take" if untold else "")
        said.append(f"may decide {', '.join(self.claims)}" if self.claims else "")
        return "; ".join(filter(None, said))


def queued(
    config: str, cells: Sequence[Cell], places: Mapping[str, list[frozenset[str]]],
    done: Iterable[str], here: Iterable[str], claims: Sequence[str],
    forecast: Callable[[Cell], float | None],
) -> Queued | None:  # fmt: skip
    """Return what is to run of a config; None if every cell has a result of some age.

    Parameters
    ----------
    config : str
    cells : sequence of Cell
        Of its plan.
    places : dict of str to list of frozenset of str
        The cells that have a kept result, of any age, and the solvers of each.
    done : iterable of str
        Keys of cells that have a kept result by today's code.
    here : iterable of str
        Keys of cells whose results an earlier run of the queue has left in the run folder.
    claims : sequence of str
        The open claims that name the config.
    forecast : callable
        Returns the forecast seconds of a cell; None where no record tells them.
    """
    from svmbench.experiment.plan.freshness import race_place_of

    held = set(done)
    todo = [one for one in cells if one.status == "planned" and one.key not in held]
    missing = 0
    for cell in todo:
        place, solvers = race_place_of(cell.shown)
        missing += not any(known <= solvers for known in places.get(place, ()))
    if not missing:
        return None
    shown, ended = cells[0].shown, set(here)
    todo = [one for one in todo if one.key not in ended]
    return Queued(
        config=config,
        paper=shown["paper"],
        profile=shown["profile"],
        cells={one.key: forecast(one) for one in todo},
        n_missing=missing,
        is_race=any("racers" in one.spec for one in todo),
        claims=tuple(claims),
    )


def planned_work(cell: Cell, config: str) -> Work:
    """Return what is known of a planned cell before it runs.

    Parameters
    ----------
    cell : Cell
    config : str
    """
    from svmbench.experiment.settings.cells import own_settings
    from svmbench.report.numbers.forecasts import Work, printed_facts
    from svmbench.schema.record import canonical

    shown, spec = cell.shown, own_settings(cell.spec)
    dimensions = {canonical(name): value for name, value in shown["dimensions"].items()}
    known = printed_facts(shown["paper"], shown["dataset"])
    racers = spec.get("racers") or [spec]
    values = sum(max(1, len(one.get("grid") or ())) for one in racers)
    folds = spec.get("inner_folds") or spec.get("folds") or 1
    rows = dimensions.get("rows") or shown["size"] or spec.get("n_rows") or known.get("n_samples")
    return Work(
        config=config,
        block=shown["block"],
        protocol=shown["protocol"],
        solver=shown["solver"],
        kernel=str(shown["kernel"]),
        dataset=shown["dataset"],
        rows=float(rows or 0),
        features=float(shown["n_features_kept"] or known.get("n_features") or 0),
        fits=float(values * folds * len(spec.get("gammas") or (1,))),
    )


def in_order(found: Sequence[Queued]) -> list[Queued]:
    """Return configs without races first, then those that may decide most claims in an hour.

    Parameters
    ----------
    found : sequence of Queued
    """
    return sorted(found, key=lambda one: (one.is_race, -one.value, one.seconds, one.config))


def wait_for_idle(end: float) -> bool:
    """Wait until nothing else runs on this machine; return whether that was so before the end.

    Parameters
    ----------
    end : float
        On the clock of `time.monotonic`.
    """
    is_said = False
    while os.getloadavg()[0] >= IDLE_LOAD:
        if not is_said:
            terminal.print_line("races wait until nothing else runs on this machine")
            is_said = True
        if time.monotonic() + _LOOK_EVERY_S >= end:
            return False
        time.sleep(_LOOK_EVERY_S)
    return time.monotonic() < end


def give_way() -> None:
    """Run at low priority, with all processes that are started from here on."""
    os.nice(max(0, 10 - os.nice(0)))


def compared(one: Queued, outcome: ConfigOutcome) -> str:
    """Return how long the cells of a config took beside their forecast; "" if none has run.

    Parameters
    ----------
    one : Queued
    outcome : ConfigOutcome
    """
    from svmbench.experiment.run.session import counted
    from svmbench.report.numbers.forecasts import in_hours
    from svmbench.report.reading.records import result_lines

    if outcome.path is None:
        return ""
    took = {
        line["key"]: float(line.get("wall_s") or 0.0)
        for line in result_lines(outcome.path)
        if line["kind"] == "cell" and line["status"] == "ok" and line["key"] in one.cells
    }
    known = {key: seconds for key in took if (seconds := one.cells[key]) is not None}
    if not took:
        return ""
    truth, told = sum(took[key] for key in known), sum(known.values())
    factor = f", {truth / told:.2f} times the forecast" if told > 0 else ""
    return (
        f"{one.config}: {counted(len(took), 'cell')} took {in_hours(sum(took.values()))}; "
        f"forecast for {len(known):,} "
        f"of them {in_hours(told)}{factor}"
    )


def keep_complete(outcome: ConfigOutcome, one: Queued, root: Path, held: Mapping[Path, int]) -> str:
    """Copy the folder of a config to where results are kept if it is complete; say what was done.

    A kept folder of the same config and profile is replaced if none of its results is lost. A
    folder of another profile stays, and the new one lies beside it.

    Parameters
    ----------
    outcome : ConfigOutcome
    one : Queued
    root : Path
        Where results are kept.
    held : dict of Path to int
        The kept folders of the config and profile, and how many results of each would be lost.
    """
    from svmbench.report.output import kept

    if outcome.path is None or outcome.error:
        return ""
    if outcome.is_open:
        return f"{outcome.path}: not complete, so it is not kept yet"
    for place, lost in held.items():
        if lost:
            return f"{place}: stays as it is, {lost} of its results are not in {outcome.path}"
    target = next(iter(held)) if held else root / one.paper / one.config
    if not held and target.exists():
        target = target.with_name(f"{one.config}-{one.profile}")
    try:
        kept.keep_run(outcome.path, target)
    except SvmbenchError as error:
        return str(error)
    return f"{target}: kept"


def open_claims(evidence: Evidence) -> dict[str, list[str]]:
    """Return the claims that kept records leave open, by the configs that they name.

    Claims of whose own solvers and data no cell is missing are left out.

    Parameters
    ----------
    evidence : Evidence
    """
    from svmbench.papers import judging
    from svmbench.papers.judging.cuts import NONE_MISSING

    found: dict[str, list[str]] = {}
    for verdict in judging.judge(judging.read_all_claims(), evidence):
        is_open = verdict.outcome in {"undecided", "not tested"}
        if is_open and not verdict.to_decide.startswith(NONE_MISSING):
            for config in verdict.claim.configs:
                found.setdefault(config, []).append(verdict.claim.id)
    return found


def as_lines(found: Sequence[Queued]) -> list[str]:
    """Return what the queue does, a line for each config, and how long all of it takes.

    Parameters
    ----------
    found : sequence of Queued
        In order.
    """
    from svmbench.experiment.run.session import counted
    from svmbench.report.numbers.forecasts import in_hours

    if not found:
        return ["no cell is missing"]
    total: Any = sum(one.seconds for one in found)
    n_cells = sum(len(one.cells) for one in found)
    return [
        *(one.sentence() for one in found),
        f"together {counted(n_cells, 'cell')}, {in_hours(total)}",
    ]
