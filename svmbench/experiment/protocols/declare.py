"""The declaration of a protocol, which plan, worker, schema and docs read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pydantic import create_model

from svmbench.experiment.protocols.folds import Scaled
from svmbench.experiment.settings.blocks import Block, RaceBlock, TrainingBlock

if TYPE_CHECKING:
    from svmbench.experiment.protocols.task import Outcome, Task

    Function = Callable[[Task], Outcome]


@dataclass(frozen=True)
class Protocol:
    """The declaration of a protocol.

    Attributes
    ----------
    name : str
        The name in configs.
    run : callable
        The function of one cell: takes a `Task` and returns an `Outcome`.
    settings : type
        The pydantic model of a block of this protocol.
    caption : str
        The name in reports.
    scalings : mapping of str to Scaled
        The supported scalings, the default first.
    cell : str
        The unit of a cell: a data set and one ``solver``, a data set and ``all solvers`` in turn,
        or the ``data set`` alone.
    folds_to_run : callable
        Takes a block and returns the indices of the outer folds to run, each as a separate cell;
        ``[None]`` for a protocol whose cells run all folds.
    splits : callable
        Takes a block and returns the numbers of nested folds, the outermost first.
    shares : tuple of str
        Arrays that cells share in addition to the scaled inputs: ``distances`` of all rows.
    grid : str
        The grids that solvers may have: ``any``, ``none`` (a grid is an error), or ``one
        parameter`` (every solver has a grid over the same single parameter).
    tasks : tuple of str
        The supported kinds of task.
    reads : tuple of str
        What its data sets may be: ``arrays``, ``blocks`` (of rows, see `Task.in_blocks`), and
        ``written`` (a registered set is written to a file, and reading its blocks is measured).
        The forms of input that a solver reads are in its own declaration.
    programs : bool
        True if other people's programs can take part, because only `train` and `predict` are
        measured.
    scores : bool
        True if its cells have the scores of a block, and choose by `select_by`.
    metrics : tuple of str or None
        Further metrics of its cells, beside the block's scores and the solvers' counters, without
        the racers' names. Tables and plots may name them. None if the metrics are not declared:
        then tables and plots may name any.
    """

    name: str
    run: Callable[[Task], Outcome]
    settings: type[Block]
    caption: str
    scalings: Mapping[str, Scaled]
    cell: Literal["solver", "all solvers", "data set"] = "solver"
    folds_to_run: Callable[[Any], list[int | None]] = lambda _block: [None]
    splits: Callable[[Any], tuple[int, ...]] = lambda _block: ()
    shares: tuple[str, ...] = ()
    grid: Literal["any", "none", "one parameter"] = "any"
    tasks: tuple[str, ...] = ("binary", "multiclass")
    reads: tuple[str, ...] = ("arrays",)
    programs: bool = True
    scores: bool = True
    metrics: tuple[str, ...] | None = None

    def function(self, input_form: str) -> Function:
        """Return the function for cells whose input has this form (`input_form_of`).

        Parameters
        ----------
        input_form : str
            ``arrays``, ``blocks``, or ``kernel`` where a solver takes a kernel matrix.
        """
        return VARIANTS.get((self.name, input_form), self.run)

    @property
    def is_race(self) -> bool:
        """Whether a cell times all solvers in turn."""
        return self.cell == "all solvers"

    def settings_of(self, block: Block) -> dict[str, Any]:
        """Return the block's settings of this protocol alone, which are part of its cells' keys."""
        names = [name for name in self.setting_names if name not in block.plan_only]
        return {name: getattr(block, name) for name in names}

    @property
    def setting_names(self) -> list[str]:
        """The names of the settings that blocks of other protocols need not have."""
        known = {*Block.model_fields, *TrainingBlock.model_fields, *RaceBlock.model_fields}
        return [name for name in self.settings.model_fields if name not in known]

    def for_plan(self) -> dict[str, Any]:
        """Return the facts for the report, as JSON values."""
        return {
            "caption": self.caption,
            "race": self.is_race,
            "facts": self.cell == "data set",
        }


#: Every protocol by its name, in the order of declaration.
PROTOCOLS: dict[str, Protocol] = {}

#: The functions that replace `Protocol.run` for cells with input of another form than arrays, by
#: the protocol's name and the form.
VARIANTS: dict[tuple[str, str], Function] = {}


def variant(name: str, input_form: str) -> Callable[[Function], Function]:
    """Register the decorated function for cells of a protocol with input of another form.

    Define it in a separate module, so that the keys of other cells don't cover its imports.

    Parameters
    ----------
    name : str
        The protocol.
    input_form : str
        ``blocks``, or ``kernel`` where a solver of the cell takes a kernel matrix.
    """

    def enter(function: Function) -> Function:
        VARIANTS[name, input_form] = function
        return function

    return enter


def protocol(
    name: str,
    *,
    settings: type[Block],
    caption: str,
    scalings: Mapping[str, Scaled] | None = None,
    **what: Any,
) -> Callable[[Function], Function]:
    """Enter a protocol, the decorated function, into the registry.

    Parameters
    ----------
    name : str
    settings : type
        Derived from `TrainingBlock` (`RaceBlock` for one whose cells are all solvers), or from
        `Block` where nothing is trained. The keys ``protocol`` and ``scaling`` are added here.
    caption : str
    scalings : mapping of str to Scaled, optional
        The default first; none where nothing is scaled.
    **what
        The rest of :class:`Protocol`.
    """
    fields: dict[str, Any] = {"protocol": (Literal[name], ...)}
    if scalings:
        names = tuple(scalings)
        fields["scaling"] = (Literal[names], names[0])
    model = create_model(settings.__name__, __base__=settings, __doc__=settings.__doc__, **fields)

    def enter(function: Function) -> Function:
        known = PROTOCOLS.get(name)
        if known is not None and known.run.__module__ != function.__module__:
            msg = f"two protocols are declared as {name!r}"
            raise ValueError(msg)
        PROTOCOLS[name] = Protocol(name, function, model, caption, scalings or {}, **what)
        return function

    return enter
