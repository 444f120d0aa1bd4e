"""Checks that blocks report the metrics, dimensions and solvers that tables and plots request."""

from __future__ import annotations

from collections.abc import Iterable

from svmbench.base.errors import suggestion
from svmbench.base.validation_messages import shown
from svmbench.experiment.config.findings import Findings
from svmbench.experiment.config.models import Config
from svmbench.experiment.config.partial_parse import Draft
from svmbench.experiment.config.yaml_source import ConfigPlace
from svmbench.experiment.protocols import protocols
from svmbench.experiment.settings.blocks import Block, TrainingBlock
from svmbench.schema import scores
from svmbench.schema.record import FIELD_ALIASES, IDENTITY, canonical
from svmbench.schema.specs import PLOT_KINDS, PlotSpec, TableSpec, is_dimension

#: The prefix of a parameter that a search has chosen, as an axis.
PARAMS = "params."


def check_requested_metrics(draft: Draft, findings: Findings) -> None:
    """Find what tables and plots ask for and no cell of their block will have.

    Parameters
    ----------
    draft : Draft
        Of a config that could be read.
    findings : Findings
        Gets every unknown block, name, metric, axis and series.
    """
    config = draft.config
    assert config is not None
    blocks = {block.name: block for block in reversed(config.blocks)}
    outputs: list[str] = ["table", "tables"]
    for kind in ("tables", "plots"):
        for i, spec in enumerate(getattr(config, kind)):
            place = draft.place((kind, i))
            if spec.name in outputs:
                taken = f"the name {spec.name!r} is taken"
                said = f"{taken}; each table and plot becomes a file of its own"
                findings.add((*place, "name"), said, place)
            outputs.append(spec.name)
            block = blocks.get(spec.block)
            if block is not None:
                _check_one(_Given(config, block, draft), place, spec, findings)
            elif not ("blocks" in draft.nameless or spec.block in draft.lost.get("blocks", ())):
                known = list(blocks)
                findings.unknown((*place, "block"), "unknown block", spec.block, known, place)


class _Given:
    """The metrics, dimensions and solvers that a block reports; None for unknown ones."""

    def __init__(self, config: Config, block: Block, draft: Draft) -> None:
        place = draft.place(("blocks", [one.name for one in config.blocks].index(block.name)))
        self.name = block.name
        self.datasets: list[str] | None = [one.name for one in config.datasets_of(block)]
        self.solvers: list[str] | None = [one.shown for one in config.solvers_of(block)]
        self.dimensions: list[str] | None = []
        self.params: list[str] | None = []
        self.metrics: list[str] | None = _metrics(config, block)
        self.is_scored = protocols()[block.protocol].scores
        if isinstance(block, TrainingBlock):
            swept = [name for one in config.datasets_of(block) for name in block.swept(one)]
            given = [{*one.params, *one.grid} for one in config.solvers_of(block)]
            self.dimensions = list(dict.fromkeys([*swept, *_followed(config, block)]))
            self.params = sorted(set().union(*given))
        else:
            self.solvers = []
        if draft.lacks("datasets"):
            self.datasets = None
        if draft.lacks("solvers"):
            self.solvers = self.params = None
        if draft.lacks("sweep") or draft.lacks("datasets") or place in draft.guessed:
            self.dimensions = None
        if place in draft.guessed:
            self.metrics = None


def _followed(config: Config, block: TrainingBlock) -> list[str]:
    """Return the parameters that the protocol follows, which are dimensions of its points."""
    if protocols()[block.protocol].grid != "one parameter":
        return []
    return [f"solver.{name}" for spec in config.solvers_of(block) for name in spec.grid]


def _metrics(config: Config, block: Block) -> list[str] | None:
    """Return the metrics and counters that a block's cells may have; None if nobody says so."""
    from svmbench.baselines.catalogue import solvers
    from svmbench.core.contract.declaration import COUNTERS

    declared = protocols()[block.protocol]
    if declared.metrics is None:
        return None
    scored = getattr(block, "scores", []) if declared.scores else []
    own = [scores.SCORES[name].metric for name in scored if name in scores.SCORES]
    own += [f"train_{name}" for name in own]
    counted: Iterable[str] = ()
    if isinstance(block, TrainingBlock):
        known = solvers()
        named = [known[spec.name] for spec in config.solvers_of(block) if spec.name in known]
        counted = [*COUNTERS, *(name for one in named for name in one.counters)]
    return list(dict.fromkeys([*declared.metrics, *own, *counted]))


def reported_metrics() -> list[str]:
    """Return every metric and counter that a declared protocol, score or solver reports."""
    from svmbench.baselines.catalogue import solvers
    from svmbench.core.contract.declaration import COUNTERS

    declared = [name for one in protocols().values() for name in one.metrics or ()]
    own = [score.metric for score in scores.SCORES.values()]
    counted = [name for one in solvers().values() for name in one.counters]
    return list(dict.fromkeys([*declared, *own, *COUNTERS, *counted]))


def _check_one(
    given: _Given, place: ConfigPlace, spec: TableSpec | PlotSpec, findings: Findings
) -> None:
    if isinstance(spec, TableSpec):
        for key in ("rows", "columns"):
            named = getattr(spec, key)
            for j, name in enumerate([named] if isinstance(named, str) else named):
                where = (*place, key) if isinstance(named, str) else (*place, key, j)
                _check_dimension(given, where, place, name, findings)
        # Of the default metrics, a table has those that there are.
        for j, name in enumerate(spec.metrics if "metrics" in spec.model_fields_set else ()):
            _check_metric(given, (*place, "metrics", j), place, name, findings)
        return
    for key in ("series", "across"):
        if getattr(spec, key):
            _check_dimension(given, (*place, key), place, getattr(spec, key), findings)
    if (
        spec.dataset is not None
        and given.datasets is not None
        and spec.dataset not in given.datasets
    ):
        what = f"block {given.name!r} has no data set"
        findings.unknown((*place, "dataset"), what, spec.dataset, given.datasets, place)
    if spec.crossing and canonical(spec.series or "") == "solver" and given.solvers is not None:
        for j, name in enumerate(spec.crossing):
            if name not in given.solvers:
                what = f"block {given.name!r} has no solver"
                findings.unknown((*place, "crossing", j), what, name, given.solvers, place)
    _check_axes(given, place, spec, findings)


def _check_axes(given: _Given, place: ConfigPlace, spec: PlotSpec, findings: Findings) -> None:
    """Check what a plot draws against what."""
    own = PLOT_KINDS.named(spec.kind).axes
    if own is not None:
        if spec.x is not None and own and spec.x not in own:
            said = f"x of a plot of kind {spec.kind} is {' or '.join(own)}, not {shown(spec.x)}"
            findings.add((*place, "x"), f"{said}{suggestion(spec.x, list(own))}", place)
        return
    if spec.y is not None:
        _check_metric(given, (*place, "y"), place, spec.y, findings)
    x, where = spec.x, (*place, "x")
    if x is None:
        return
    if x.startswith(PARAMS):
        name = x.removeprefix(PARAMS)
        if given.params is not None and name not in given.params:
            what = f"no solver of block {given.name!r} is given a parameter"
            findings.unknown(where, what, name, given.params, place)
    elif canonical(x) in IDENTITY or is_dimension(x):
        _check_dimension(given, where, place, x, findings)
    elif given.metrics is not None and x not in given.metrics:
        fields = [*IDENTITY, *FIELD_ALIASES, *(given.dimensions or []), *given.metrics]
        what = f"block {given.name!r} gives no axis"
        findings.unknown(where, what, x, fields, place)


def _check_dimension(
    given: _Given, where: ConfigPlace, place: ConfigPlace, name: str, findings: Findings
) -> None:
    """Find a dimension along which the block does not sweep."""
    if canonical(name) in (*IDENTITY, "metric", "point") or given.dimensions is None:
        return
    if canonical(name) not in given.dimensions:
        swept = f" (it sweeps {', '.join(given.dimensions)})" if given.dimensions else ""
        said = f"block {given.name!r} does not sweep {shown(name)}"
        findings.add(where, f"{said}{suggestion(name, given.dimensions)}{swept}", place)


def _check_metric(
    given: _Given, where: ConfigPlace, place: ConfigPlace, name: str, findings: Findings
) -> None:
    """Find a metric that no cell of the block will have."""
    if given.metrics is None or name in given.metrics:
        return
    what = f"block {given.name!r} gives no metric"
    of_scores = {score.metric: score.name for score in scores.SCORES.values()}
    if name in of_scores:
        why = f"its scores lack {of_scores[name]!r}" if given.is_scored else "it has no scores"
        said = f"{what} {shown(name)}: {why}"
        findings.add(where, said, place)
        return
    findings.unknown(where, what, name, [*given.metrics, *of_scores], place)
