"""Before any cell runs, find the cells that can't be run; each gets a reason in one sentence."""

from __future__ import annotations

import contextlib
import math
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from svmbench.base.errors import MissingPackageError
from svmbench.baselines.templates import is_program
from svmbench.experiment.protocols.declare import Protocol
from svmbench.experiment.protocols.folds import subset_rows
from svmbench.experiment.protocols.task import NORMAL_LABEL
from svmbench.experiment.settings.blocks import DatasetSpec, SolverSpec, TrainingBlock

Y = np.ndarray


def task_of(block: TrainingBlock, y: Y) -> str:
    """Return the task of a block with these labels: one-class, multiclass or binary."""
    if block.task == "one-class":
        return "one-class"
    return "multiclass" if n_classes(y) > 2 else "binary"


#: The number of classes of an array of labels, by the array's id while the array exists.
_counted: dict[int, tuple[weakref.ref[Y], int]] = {}


def n_classes(y: Y) -> int:
    """Count the classes of labels; cached, since a plan needs the number for each cell."""
    array, number = _counted.get(id(y), (None, 0))
    if array is None or array() is not y:
        number = len(np.unique(y))
        if len(_counted) > 100:
            _counted.clear()
        _counted[id(y)] = (weakref.ref(y), number)
    return number


def is_here(spec: SolverSpec) -> bool:
    """Return True if a solver, and the package that its parameters need, are installed."""
    from svmbench.baselines.catalogue import solver_class, solvers

    if is_program(spec.name):
        return not solver_class(spec.name).commands.missing()
    if spec.name not in solvers():
        return False
    with contextlib.suppress(ValueError, TypeError):  # other checks report wrong parameters
        model = solver_class(spec.name)(**spec.params)
        try:
            model._check_parameters()
        except MissingPackageError:
            return False
    return True


def why_rows_are_unsuitable(
    protocol: Protocol,
    block: TrainingBlock,
    dataset: str,
    y: Y,
    n_rows: int | None,
    seed: int,
    classes: Sequence[str] = (),
) -> str:
    """Return why a protocol can't use a data set's rows; empty if it can.

    Parameters
    ----------
    protocol : Protocol
    block : TrainingBlock
    dataset : str
    y : ndarray of shape (n_samples,)
        Labels of all rows.
    n_rows : int or None
        Number of rows that the sweep keeps; None for all.
    seed : int
        Seed for the choice of a subset's rows.
    classes : sequence of str, optional
        Names of the classes in the order of their labels.
    """
    labels, counts = np.unique(y, return_counts=True)
    shown_labels = classes if len(classes) == len(labels) else labels.tolist()
    names = dict(zip(labels.tolist(), shown_labels, strict=True))
    if len(labels) < 2:
        return f"data set {dataset!r} has one class only; a classifier needs two"
    if block.task == "binary" and len(labels) > 2:
        return f"data set {dataset!r} has {len(labels)} classes; the task is binary"
    if block.task == "one-class" and (len(labels) > 2 or NORMAL_LABEL not in labels):
        return (
            f"data set {dataset!r} has the classes {', '.join(map(str, labels))};"
            f" the task one-class needs two, of which {NORMAL_LABEL} is the normal one"
        )
    if (task := task_of(block, y)) not in protocol.tasks:
        return (
            f"protocol {protocol.name!r} can't do the task {task}, which data set {dataset!r} with"
            f" {len(labels)} classes asks for (it can: {', '.join(protocol.tasks)})"
        )
    if n_rows is not None and n_rows > len(y):
        return f"data set {dataset!r} has {len(y)} rows, fewer than the size {n_rows}"
    limit = min(x for x in (n_rows, block.max_samples or None, len(y)) if x is not None)
    splits = protocol.splits(block)
    needed = 2 if "test" in type(block).model_fields else 1  # without folds
    if limit < len(y):
        if block.subset == "stratified" and not _too_small(
            "", fewest_rows(counts, limit), splits, needed
        ):
            return ""  # without drawing rows
        rows = subset_rows(y, limit, seed, block.subset)
        labels, counts = np.unique(y[rows], return_counts=True)
    smallest = names[labels[np.argmin(counts)].item()]
    too_small = _too_small(smallest, int(counts.min()), splits, needed)
    return f"data set {dataset!r}, block {block.name!r}: {too_small}" if too_small else ""


def fewest_rows(counts: Y, n_rows: int) -> int:
    """Return a lower bound on the number of rows of each class in a stratified subset.

    :func:`~svmbench.experiment.protocols.folds.subset_rows` ranks the i-th row of a class with m
    rows by (i + 1/2)/m, and keeps the rows with the lowest ranks. Up to a rank t it keeps mt ± 1/2
    rows of such a class, and hence nt ± k/2 of all n rows, if there are k classes.

    Parameters
    ----------
    counts : ndarray of shape (n_classes,)
        Number of rows of each class in the data set.
    n_rows : int
        Number of rows of the subset.
    """
    rank = (n_rows - len(counts) / 2) / counts.sum()
    return max(0, math.ceil(counts.min() * rank - 0.5 - 1e-9))


def _too_small(label: object, n_rows: int, splits: tuple[int, ...], needed: int) -> str:
    """Return why a class has too few rows for nested folds, or an empty text.

    Parameters
    ----------
    label : object
        The class, as the sentence names it.
    n_rows : int
        Number of rows of the class.
    splits : tuple of int
        Numbers of outer and inner folds; one number without inner folds, empty without folds.
    needed : int
        Number of rows that the class needs without folds.
    """
    if n_rows < (splits[0] if splits else needed):
        requirement = f"{splits[0]} folds" if splits else "2 that a split needs"
        samples = "1 sample" if n_rows == 1 else f"{n_rows} samples"
        return f"class {label} has {samples}, fewer than the {requirement}"
    if len(splits) > 1:
        outer, inner = splits
        remaining = n_rows - -(-n_rows // outer)
        if remaining < inner:
            return (
                f"class {label} has {n_rows} samples; an outer fold leaves {remaining} for"
                f" training, fewer than the {inner} inner folds"
            )
    return ""


def why_not_in_row_blocks(
    solver: SolverSpec,
    protocol: Protocol,
    block: TrainingBlock,
    dataset: DatasetSpec,
    swept: Mapping[str, Any],
    y: Y,
) -> str:
    """Return why a solver can't train on rows that are read in blocks; empty if it can.

    Parameters
    ----------
    solver : SolverSpec
    protocol : Protocol
    block : TrainingBlock
    dataset : DatasetSpec
    swept : mapping of str to object
        The swept values, such as the number of rows.
    y : ndarray of shape (n_samples,)
        Labels of all rows.
    """
    from svmbench.baselines.catalogue import solver_class

    if "blocks" not in solver_class(solver.name).declaration.reads:
        return f"{solver.shown} needs arrays; the rows of this data set are read in blocks"
    if "blocks" not in protocol.reads:
        return f"protocol {protocol.name!r} needs arrays; rows of this data set come in blocks"
    if dataset.written is not None and "written" not in protocol.reads:
        return (
            f"'written' is for measuring the cost of reading, which protocol {protocol.name!r} does"
            " not measure; 'read: blocks' reads the set in blocks"
        )
    if block.scaling != "none":
        return f"rows that are read in blocks can't be scaled (scaling: {block.scaling})"
    if not takes_whole_sets(block, swept):
        return "rows that are read in blocks are all used: no sizes, features or max_samples"
    if getattr(block, "plane", False):
        return "rows that are read in blocks are not kept, as 'plane' asks"
    if (number := n_classes(y)) > 2:
        return f"rows that are read in blocks are of two classes; this data set has {number}"
    return ""


def takes_whole_sets(block: TrainingBlock, swept: Mapping[str, Any]) -> bool:
    """Return True if cells use all rows and all features."""
    return not (block.max_samples or {"rows", "features"} & {*swept})


def why_not(solver: SolverSpec, source: Any, block: TrainingBlock) -> str:
    """Return why a solver can't train on a data set; empty if it can."""
    from svmbench.baselines.catalogue import solver_class

    declaration = solver_class(solver.name).declaration
    if sp.issparse(source.X) and not declaration.sparse and block.inputs != "dense":
        return f"{solver.name} takes dense inputs only"
    task = task_of(block, source.y)
    if task == "one-class" and declaration.task != "one-class":
        return f"{solver.name} needs labels of two classes; the task is one-class"
    if task != "one-class" and declaration.task == "one-class":
        return f"{solver.name} learns one class without labels; the task is {task}"
    number = n_classes(source.y)
    if declaration.task == "binary" and number > 2 and block.multiclass == "skip":
        return f"{solver.name} separates two classes; this data set has {number}"
    kernel = solver.params.get("kernel")
    # The kernels of a foreign class may be unknown.
    if kernel is not None and declaration.kernels and kernel not in declaration.kernels:
        return f"{solver.name} has no {kernel} kernel (it has: {', '.join(declaration.kernels)})"
    return ""
