"""The least-squares SVM for many features, by conjugate gradients.

Problem
    (X'X + nu_s I) w_s = X'y  for each system s, which has a C, and all rows or those outside a
    fold.
Method
    All systems are solved together: one pass over the rows multiplies the matrix of each system
    with its direction. The number of passes is the number of steps of the slowest system.
Reference
    Hestenes and Stiefel 1952, preconditioned by the root of the diagonal, as in
    `core/linear/alsvm_batch.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from svmbench.base.errors import DataError
from svmbench.core.contract.base import PathPoint
from svmbench.core.linear.alsvm_batch import BY_STEPS, CG_MAX_STEPS, CG_RESIDUAL
from svmbench.spark.packed import Packed, PackedBlock
from svmbench.spark.source import SparkRows


class Systems(NamedTuple):
    """The directions of all systems.

    Attributes
    ----------
    P : ndarray of shape (n_systems, d)
    without : ndarray of int of shape (n_systems,)
        The fold that each system leaves out; -1 for none.
    bias : float
        Value of the constant feature, the last of d; 0 for none.
    """

    P: np.ndarray
    without: np.ndarray
    bias: float


def right_sides(block: PackedBlock, given: tuple[int, float]) -> np.ndarray:
    """Return the sums of ``y x`` and of ``x x`` (elementwise) of each fold, (2, n_folds, d)."""
    n_folds, bias = given
    member = np.ones((len(block.y), 1))
    if block.folds is not None:
        member = (block.folds[:, np.newaxis] == np.arange(n_folds)).astype(float)
    squares = PackedBlock(block.X * block.X, block.y, None)
    q = block.back(member * block.y[:, np.newaxis], bias)
    return np.stack([q, squares.back(member, bias * bias)])


def products(block: PackedBlock, systems: Systems) -> np.ndarray:
    """Return ``sum_i x_i (x_i'p)`` over the rows of each system, shape (n_systems, d)."""
    U = block.times(systems.P, systems.bias)
    if block.folds is not None:
        U[block.folds[:, np.newaxis] == systems.without] = 0.0
    return block.back(U, systems.bias)


def solve_systems(
    packed: Packed, nu: np.ndarray, without: np.ndarray, bias: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Solve all systems by conjugate gradients.

    Parameters
    ----------
    packed : Packed
    nu : ndarray of shape (n_systems,)
        Regularisation of each system, above 0.
    without : ndarray of int of shape (n_systems,)
    bias : float

    Returns
    -------
    W : ndarray of shape (n_systems, d)
    q : ndarray of shape (n_systems, d)
        The right-hand sides.
    R : ndarray of shape (n_systems, d)
        The residuals.
    steps : ndarray of int of shape (n_systems,)
        Number of steps; negative if they were not enough.
    """
    q, squares = packed.sum(right_sides, (len(packed.counts), bias))
    outside = without[:, np.newaxis] != np.arange(len(q))
    q, diagonal = outside @ q, np.sqrt(outside @ squares + nu[:, np.newaxis])
    W, R = np.zeros_like(q), q.copy()
    S = R / diagonal
    P, rs = S.copy(), np.sum(R * S, axis=1)
    enough, steps = CG_RESIDUAL**2 * rs, np.zeros(len(nu), dtype=int)
    going = np.flatnonzero(rs > enough)
    while len(going) and steps.max() < CG_MAX_STEPS:
        HP = packed.sum(products, Systems(P[going], without[going], bias))
        HP += nu[going, np.newaxis] * P[going]
        length = (rs[going] / np.sum(P[going] * HP, axis=1))[:, np.newaxis]
        W[going] += length * P[going]
        R[going] -= length * HP
        S = R[going] / diagonal[going]
        new = np.sum(R[going] * S, axis=1)
        P[going] = S + (new / rs[going])[:, np.newaxis] * P[going]
        rs[going], steps[going] = new, steps[going] + 1
        going = np.flatnonzero(rs > enough)
    return W, q, R, np.where(rs > enough, -steps, steps)


def points(
    rows: SparkRows,
    models: Sequence[Any],
    n_folds: int,
    n_features: int | None,
    *,
    and_all: bool = False,
) -> Iterator[PathPoint]:
    """Yield the solution of each model's C, fold after fold, and of all rows.

    Parameters are the same as for ``ALSVMSpark._points``. There is no held-out loss, which needs
    sums.
    """
    start, bias = perf_counter(), models[0].bias
    with Packed(rows, n_folds, n_features) as packed:
        check_folds(packed)
        trains = [-1] if n_folds == 1 else [*range(n_folds), *([-1] if and_all else [])]
        without = np.repeat(trains, len(models))
        nu = np.tile([1.0 / (2.0 * model.C) for model in models], len(trains))
        W, q, R, steps = solve_systems(packed, nu, without, bias)
        passes = packed.passes
    seconds = (perf_counter() - start) / len(nu)
    for s, fold in enumerate(without):
        n_rows = packed.n_samples - (packed.counts[fold] if fold >= 0 else 0)
        model = models[s % len(models)]
        fitted = model._clone_at(model.C)
        fitted.classes_, fitted.n_features_in_ = packed.classes, packed.n_features
        done = int(abs(steps[s]))
        work = {"passes": done + 2, "factorisations": 0, "fallbacks": 0}
        work |= {"visits": passes * packed.n_samples, "conjugate_gradient_steps": done}
        fitted._store_weights(W[s], BY_STEPS if steps[s] >= 0 else "max_iter", work)
        # The sum of squared losses, with X'X w = q - residual - nu w.
        w = W[s]
        loss = n_rows - float(w @ (q[s] + R[s] + nu[s] * w))
        fitted.objective_ = 0.5 * float(w @ w) + float(model.C) * loss
        fitted.held_out_loss_ = np.nan
        shared = {"passes": passes if s == 0 else 0, "visits": work["visits"] if s == 0 else 0}
        yield PathPoint(fitted, seconds, {**work, **shared})


def check_folds(gathered: Any) -> None:
    """Raise DataError if there are no rows, or if a fold is empty.

    Parameters
    ----------
    gathered : object
        With ``counts``, the number of rows of each fold.
    """
    if not gathered.counts.sum():
        raise DataError("there are no rows")
    empty = np.flatnonzero(gathered.counts == 0)
    if len(empty):
        raise DataError(
            f"fold {empty[0]} of 0 … {len(gathered.counts) - 1} has no rows: use fewer folds, or"
            " name a column of folds"
        )
