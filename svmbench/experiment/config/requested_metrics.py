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

#: The prefix of an axis that is a parameter chosen by a search.
PARAMS = "params."


def check_requested_metrics(draft: Draft, findings: Findings) -> None:
    """Check that the blocks of tables and plots report the requested metrics and dimensions.

    Parameters
    ----------
    draft : Draft
        The draft of a config; its `config` is not None.
    findings : Findings
        Collects every unknown block, metric, axis and series, and every repeated name.
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
                message = f"{taken}; each table and plot becomes a file of its own"
                findings.add((*place, "name"), message, place)
            outputs.append(spec.name)
            for key in ("block", "beside"):
                name = getattr(spec, key, None)
                if name in blocks:
                    _check_spec(_Reported(config, blocks[name], draft), place, spec, findings)
                elif name is not None and not (
                    "blocks" in draft.nameless or name in draft.lost.get("blocks", ())
                ):
                    findings.unknown((*place, key), "unknown block", name, list(blocks), place)


class _Reported:
    """The metrics, dimensions and solvers that a block reports; None if unknown."""

    def __init__(self, config: Config, block: Block, draft: Draft) -> None:
        place = draft.place(("blocks", [spec.name for spec in config.blocks].index(block.name)))
        self.name = block.name
        self.datasets: list[str] | None = [spec.name for spec in config.datasets_of(block)]
        self.solvers: list[str] | None = [spec.shown for spec in config.solvers_of(block)]
        self.dimensions: list[str] | None = []
        self.params: list[str] | None = []
        self.metrics: list[str] | None = _metrics(config, block)
        self.is_scored = protocols()[block.protocol].scores
        if isinstance(block, TrainingBlock):
            swept = [name for spec in config.datasets_of(block) for name in block.swept(spec)]
            parameters = [{*spec.params, *spec.grid} for spec in config.solvers_of(block)]
            self.dimensions = list(dict.fromkeys([*swept, *_followed(config, block)]))
            self.params = sorted(set().union(*parameters))
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
    """Return the parameters whose path the protocol follows: dimensions of its points."""
    if protocols()[block.protocol].grid != "one parameter":
        return []
    return [f"solver.{name}" for spec in config.solvers_of(block) for name in spec.grid]


def _metrics(config: Config, block: Block) -> list[str] | None:
    """Return the metrics and counters that a block's cells may have; None if unknown."""
    from svmbench.baselines.catalogue import solvers
    from svmbench.core.contract.declaration import COUNTERS

    declared = protocols()[block.protocol]
    if declared.metrics is None:
        return None
    scored = getattr(block, "scores", []) if declared.scores else []
    of_scores = [scores.SCORES[name].metric for name in scored if name in scores.SCORES]
    of_scores += [f"train_{name}" for name in of_scores]
    counters: Iterable[str] = ()
    if isinstance(block, TrainingBlock):
        known = solvers()
        classes = [known[spec.name] for spec in config.solvers_of(block) if spec.name in known]
        counters = [*COUNTERS, *(name for cls in classes for name in cls.counters)]
    return list(dict.fromkeys([*declared.metrics, *of_scores, *counters]))


def reported_metrics() -> list[str]:
    """Return every metric and counter that a declared protocol, score or solver reports."""
    from svmbench.baselines.catalogue import solvers
    from svmbench.core.contract.declaration import COUNTERS

    declared = [name for protocol in protocols().values() for name in protocol.metrics or ()]
    of_scores = [score.metric for score in scores.SCORES.values()]
    counters = [name for solver in solvers().values() for name in solver.counters]
    return list(dict.fromkeys([*declared, *of_scores, *COUNTERS, *counters]))


def _check_spec(
    reported: _Reported, place: ConfigPlace, spec: TableSpec | PlotSpec, findings: Findings
) -> None:
    if isinstance(spec, TableSpec):
        for key in ("rows", "columns"):
            names = getattr(spec, key)
            for j, name in enumerate([names] if isinstance(names, str) else names):
                where = (*place, key) if isinstance(names, str) else (*place, key, j)
                _check_dimension(reported, where, place, name, findings)
        # A table shows those of the default metrics that its block reports; none is required.
        for j, name in enumerate(spec.metrics if "metrics" in spec.model_fields_set else ()):
            _check_metric(reported, (*place, "metrics", j), place, name, findings)
        return
    for key in ("series", "across"):
        if getattr(spec, key):
            _check_dimension(reported, (*place, key), place, getattr(spec, key), findings)
    if (
        spec.dataset is not None
        and reported.datasets is not None
        and spec.dataset not in reported.datasets
    ):
        what = f"block {reported.name!r} has no data set"
        findings.unknown((*place, "dataset"), what, spec.dataset, reported.datasets, place)
    if spec.beside and PLOT_KINDS.named(spec.kind).collect is not None:
        message = f"a plot of kind {spec.kind} shows one block, so it can't have 'beside'"
        findings.add((*place, "beside"), message, place)
    crosses_solvers = reported.name == spec.block and canonical(spec.series or "") == "solver"
    if crosses_solvers and spec.crossing and reported.solvers is not None:
        for j, name in enumerate(spec.crossing):
            if name not in reported.solvers:
                what = f"block {reported.name!r} has no solver"
                findings.unknown((*place, "crossing", j), what, name, reported.solvers, place)
    _check_axes(reported, place, spec, findings)


def _check_axes(
    reported: _Reported, place: ConfigPlace, spec: PlotSpec, findings: Findings
) -> None:
    """Check the axes of a plot."""
    axes = PLOT_KINDS.named(spec.kind).axes
    if axes is not None:
        if spec.x is not None and axes and spec.x not in axes:
            message = f"x of a plot of kind {spec.kind} is {' or '.join(axes)}, not {shown(spec.x)}"
            findings.add((*place, "x"), f"{message}{suggestion(spec.x, list(axes))}", place)
        return
    if spec.y is not None:
        _check_metric(reported, (*place, "y"), place, spec.y, findings)
    x, where = spec.x, (*place, "x")
    if x is None:
        return
    if x.startswith(PARAMS):
        name = x.removeprefix(PARAMS)
        if reported.params is not None and name not in reported.params:
            what = f"no solver of block {reported.name!r} is given a parameter"
            findings.unknown(where, what, name, reported.params, place)
    elif canonical(x) in IDENTITY or is_dimension(x):
        _check_dimension(reported, where, place, x, findings)
    elif reported.metrics is not None and x not in reported.metrics:
        fields = [*IDENTITY, *FIELD_ALIASES, *(reported.dimensions or []), *reported.metrics]
        what = f"block {reported.name!r} gives no axis"
        findings.unknown(where, what, x, fields, place)


def _check_dimension(
    reported: _Reported, where: ConfigPlace, place: ConfigPlace, name: str, findings: Findings
) -> None:
    """Report a dimension that the block does not sweep."""
    if canonical(name) in (*IDENTITY, "metric", "point") or reported.dimensions is None:
        return
    if canonical(name) not in reported.dimensions:
        swept = f" (it sweeps {', '.join(reported.dimensions)})" if reported.dimensions else ""
        message = f"block {reported.name!r} does not sweep {shown(name)}"
        findings.add(where, f"{message}{suggestion(name, reported.dimensions)}{swept}", place)


def _check_metric(
    reported: _Reported, where: ConfigPlace, place: ConfigPlace, name: str, findings: Findings
) -> None:
    """Report a metric that no cell of the block will have."""
    if reported.metrics is None or name in reported.metrics:
        return
    what = f"block {reported.name!r} gives no metric"
    score_of_metric = {score.metric: score.name for score in scores.SCORES.values()}
    if name in score_of_metric:
        reason = (
            f"its scores lack {score_of_metric[name]!r}"
            if reported.is_scored
            else "it has no scores"
        )
        message = f"{what} {shown(name)}: {reason}"
        findings.add(where, message, place)
        return
    findings.unknown(where, what, name, [*reported.metrics, *score_of_metric], place)
