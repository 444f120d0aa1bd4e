"""Reasons, one sentence each, for cells that can't be run, found before anything runs."""

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
    """Return the kind of task that a block makes of some labels."""
    if block.task == "one-class":
        return "one-class"
    return "multiclass" if n_classes(y) > 2 else "binary"


#: How many classes an array of labels has, by the array's identity while it lives.
_counted: dict[int, tuple[weakref.ref[Y], int]] = {}


def n_classes(y: Y) -> int:
    """Count the classes of some labels; cached, since a plan asks for each cell."""
    held, number = _counted.get(id(y), (None, 0))
    if held is None or held() is not y:
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
    with contextlib.suppress(ValueError, TypeError):  # what is wrong with them is said elsewhere
        model = solver_class(spec.name)(**spec.params)
        try:
            model._check_parameters()
        except MissingPackageError:
            return False
    return True


def why_not_borne(
    declared: Protocol,
    block: TrainingBlock,
    dataset: str,
    y: Y,
    n_rows: int | None,
    seed: int,
    classes: Sequence[str] = (),
) -> str:
    """Return why a data set's rows can't bear a protocol; empty if they can.

    Parameters
    ----------
    declared : Protocol
    block : TrainingBlock
    dataset : str
    y : ndarray of shape (n_samples,)
        Labels of all rows.
    n_rows : int or None
        How many of them the sweep keeps.
    seed : int
        Decides which rows a subset keeps.
    classes : sequence of str, optional
        Names of the classes in the order of their labels.
    """
    labels, counts = np.unique(y, return_counts=True)
    said = classes if len(classes) == len(labels) else labels.tolist()
    names = dict(zip(labels.tolist(), said, strict=True))
    if len(labels) < 2:
        return f"data set {dataset!r} has one class only; a classifier needs two"
    if block.task == "binary" and len(labels) > 2:
        return f"data set {dataset!r} has {len(labels)} classes; the task is binary"
    if block.task == "one-class" and (len(labels) > 2 or NORMAL_LABEL not in labels):
        return (
            f"data set {dataset!r} has the classes {', '.join(map(str, labels))};"
            f" the task one-class needs two, of which {NORMAL_LABEL} is the normal one"
        )
    if (task := task_of(block, y)) not in declared.tasks:
        return (
            f"protocol {declared.name!r} can't do the task {task}, which data set {dataset!r} with"
            f" {len(labels)} classes asks for (it can: {', '.join(declared.tasks)})"
        )
    if n_rows is not None and n_rows > len(y):
        return f"data set {dataset!r} has {len(y)} rows, fewer than the size {n_rows}"
    limit = min(x for x in (n_rows, block.max_samples or None, len(y)) if x is not None)
    splits = declared.splits(block)
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
    """Return how many rows each class has at least in a stratified subset.

    :func:`~svmbench.experiment.protocols.folds.subset_rows` gives the i-th row of a class with m
    rows the place (i + 1/2)/m, and takes the first places. Up to a place t it takes mt rows of a
    class, give or take 1/2, and so nt of all n rows, give or take 1/2 for each class.

    Parameters
    ----------
    counts : ndarray of shape (n_classes,)
        Rows of each class before.
    n_rows : int
        Rows of the subset.
    """
    place = (n_rows - len(counts) / 2) / counts.sum()
    return max(0, math.ceil(counts.min() * place - 0.5 - 1e-9))


def _too_small(label: object, left: int, splits: tuple[int, ...], needed: int) -> str:
    """Return a sentence if a class of so many rows can't be split, one fold inside the other.

    `needed` are the rows that it needs if there are no folds.
    """
    if left < (splits[0] if splits else needed):
        what = f"{splits[0]} folds" if splits else "2 that a split needs"
        return f"class {label} has {left} samples, fewer than the {what}"
    if len(splits) > 1:
        outer, inner = splits
        remaining = left - -(-left // outer)
        if remaining < inner:
            return (
                f"class {label} has {left} samples; an outer fold leaves {remaining} for training,"
                f" fewer than the {inner} inner folds"
            )
    return ""


def why_not_in_blocks(
    solver: SolverSpec,
    declared: Protocol,
    block: TrainingBlock,
    dataset: DatasetSpec,
    place: Mapping[str, Any],
    y: Y,
) -> str:
    """Return why a solver can't take rows that are read in blocks; empty if it can.

    Parameters
    ----------
    solver : SolverSpec
    declared : Protocol
    block : TrainingBlock
    dataset : DatasetSpec
    place : mapping of str to object
        What the sweep keeps of the data set.
    y : ndarray of shape (n_samples,)
        Labels of all rows.
    """
    from svmbench.baselines.catalogue import solver_class

    if "blocks" not in solver_class(solver.name).declaration.reads:
        return f"{solver.shown} needs arrays; the rows of this data set are read in blocks"
    if "blocks" not in declared.reads:
        return f"protocol {declared.name!r} needs arrays; rows of this data set come in blocks"
    if dataset.written is not None and "written" not in declared.reads:
        return (
            f"a set is 'written' to see what reading costs, which protocol {declared.name!r} does"
            " not measure; 'read: blocks' reads it in blocks"
        )
    if block.scaling != "none":
        return f"rows that are read in blocks can't be scaled (scaling: {block.scaling})"
    if not takes_whole_sets(block, place):
        return "rows that are read in blocks are taken whole: no sizes, features or max_samples"
    if getattr(block, "plane", False):
        return "rows that are read in blocks are not kept, as 'plane' asks"
    if (number := n_classes(y)) > 2:
        return f"rows that are read in blocks are of two classes; this data set has {number}"
    return ""


def takes_whole_sets(block: TrainingBlock, place: Mapping[str, Any]) -> bool:
    """Return True if no row and no feature is left out."""
    return not (block.max_samples or {"rows", "features"} & {*place})


def why_not(solver: SolverSpec, source: Any, block: TrainingBlock) -> str:
    """Return why a solver can't take a data set; empty if it can."""
    from svmbench.baselines.catalogue import solver_class

    declared = solver_class(solver.name).declaration
    if sp.issparse(source.X) and not declared.sparse and block.inputs != "dense":
        return f"{solver.name} takes dense inputs only"
    task = task_of(block, source.y)
    if task == "one-class" and declared.task != "one-class":
        return f"{solver.name} needs labels of two classes; the task is one-class"
    if task != "one-class" and declared.task == "one-class":
        return f"{solver.name} learns one class without labels; the task is {task}"
    number = n_classes(source.y)
    if declared.task == "binary" and number > 2 and block.multiclass == "skip":
        return f"{solver.name} separates two classes; this data set has {number}"
    kernel = solver.params.get("kernel")
    # A class of others may have kernels that nobody here knows of.
    if kernel is not None and declared.kernels and kernel not in declared.kernels:
        return f"{solver.name} has no {kernel} kernel (it has: {', '.join(declared.kernels)})"
    return ""
