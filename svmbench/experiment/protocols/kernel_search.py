"""A grid search over (C, gamma) on shared kernel matrices.

The squared distances of all rows are computed once for each scaling: once per outer fold if the
scaler sees that fold's training rows only, once per data set if it sees all rows. From the
distances, one kernel matrix is computed for each gamma. It serves every C, every inner fold and
every pair of classes; its rows are sorted by class and fold, and a problem gathers its part. Along
C, a solver may start from its last solution. The predictions of a pair for all C are one matrix
product.

Accounting
    Cells of several solvers share the distances. Each cell is charged for them in full:
    ``search_time_s`` and ``nested_cv_cpu_time_s`` contain their measured cost. The kernel matrix of
    a gamma is computed in the cell and is part of its own time. ``search_wall_time_s`` is the wall
    time of the search in the cell alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from svmbench.core.contract.base import BY_GAP, UNFINISHED, Splits
from svmbench.core.kernels.kernels import KernelSource, gauss_of_distances, squared_distances
from svmbench.core.models.kernel_base import KernelClassifier, KernelSolution
from svmbench.core.models.pairs import Pairs, vote
from svmbench.core.numeric.submatrix import Workspace, gather


def takes_part(
    solver_class: type, params: dict[str, Any], points: Sequence[dict[str, Any]]
) -> bool:
    """Return True if a solver's whole grid can be searched on shared kernel matrices.

    Parameters
    ----------
    solver_class : type
    params : dict
        Fixed parameters.
    points : sequence of dict
        The grid: it must be over C and gamma, and the kernel RBF.
    """
    return (
        issubclass(solver_class, KernelClassifier)
        and solver_class.takes_kernel_matrix()
        and params.get("kernel", "rbf") == "rbf"
        and all(set(point) == {"C", "gamma"} for point in points)
    )


def save_distances(path: Path, X: Any, dtype: np.dtype[Any]) -> float:
    """Write the squared distances of all rows; return the CPU seconds they took."""
    out = np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=(X.shape[0], X.shape[0]))
    start = time.process_time()
    squared_distances(X, out=out)
    seconds = time.process_time() - start
    out.flush()
    return seconds


def warm_up_search(build: Callable[..., KernelClassifier]) -> None:
    """Load or compile everything a search calls, by a tiny one."""
    codes = np.repeat(np.arange(3), 4)
    X = codes[:, np.newaxis] + 0.1 * (np.arange(12.0)[:, np.newaxis] % 4)
    even, odd = np.arange(0, 12, 2), np.arange(1, 12, 2)
    grid = [{"C": C, "gamma": 1.0} for C in (1.0, 2.0)]
    splits = [(even, odd), (odd, even)]
    search_on_kernels(
        SearchRows(squared_distances(X), np.arange(12), codes, 3, splits), build, grid
    )
    for bits in (X > 1.0, sp.csr_array(X > 1.0)):
        squared_distances(bits.astype(np.float64))


@dataclass(frozen=True)
class SearchRows:
    """The rows that a search on kernel matrices trains and validates on.

    Attributes
    ----------
    distances : ndarray of shape (n_all, n_all)
        Squared distances; may be memory-mapped. Kernel values have their precision.
    rows : ndarray of int of shape (n_samples,)
        The rows of `distances` that the search uses.
    codes : ndarray of int of shape (n_samples,)
        The classes of `rows`, as numbers from 0.
    n_classes : int
    splits : list of (ndarray, ndarray)
        Inner folds: training and validation rows, as positions in `rows`.
    """

    distances: np.ndarray
    rows: np.ndarray
    codes: np.ndarray
    n_classes: int
    splits: Splits


def sort_by_class_and_fold(searched: SearchRows) -> SearchRows:
    """Return the same rows in the order in which problems read them: by class, then by fold.

    A problem of two classes then gathers its kernel values from runs of columns. The order of the
    samples inside a problem stays, and so does every solution, to the last bit.
    """
    fold = np.full(len(searched.rows), len(searched.splits))
    for f, (_, validation) in enumerate(searched.splits):
        fold[validation] = f
    order = np.lexsort((fold, searched.codes))
    position = np.empty_like(order)
    position[order] = np.arange(len(order))
    splits = [(position[train], position[validation]) for train, validation in searched.splits]
    return replace(searched, rows=searched.rows[order], codes=searched.codes[order], splits=splits)


@dataclass
class GammaScores:
    """The result of the search at one gamma.

    Attributes
    ----------
    accuracy_pct : ndarray of shape (n_C, n_folds)
    fits : int
        Two-class problems solved.
    unconverged : int
        How many of them stopped before they had converged.
    gap_stopped : int
        How many of them ended at a duality gap.
    """

    accuracy_pct: np.ndarray
    fits: int
    unconverged: int
    gap_stopped: int


@dataclass
class Fold:
    """One inner fold with its two-class problems.

    Attributes
    ----------
    pairs : Pairs
        Of the fold's training rows.
    rows : list of ndarray of int
        The samples of each pair, as positions in the rows that are searched on.
    signs : list of ndarray
        Their labels in the pair.
    validation : ndarray of int of shape (n_validation,)
        Positions in the rows that are searched on.
    """

    pairs: Pairs
    rows: list[np.ndarray]
    signs: list[np.ndarray]
    validation: np.ndarray


def make_folds(codes: np.ndarray, splits: Splits) -> list[Fold]:
    """Return the folds with the pairs of their training rows.

    Parameters
    ----------
    codes : ndarray of int of shape (n_samples,)
        Classes as numbers from 0.
    splits : list of (ndarray, ndarray)
        Training and validation rows of each fold.
    """
    folds = []
    for train, validation in splits:
        pairs = Pairs(codes[train])
        rows, signs = zip(*((train[pair.rows], pair.signs) for pair in pairs), strict=True)
        folds.append(Fold(pairs, list(rows), list(signs), validation))
    return folds


def score_gamma(
    K: np.ndarray,
    codes: np.ndarray,
    n_classes: int,
    folds: list[Fold],
    estimator: KernelClassifier,
    values: Sequence[float],
    ties: str = "sum",
    workspace: Workspace | None = None,
) -> GammaScores:
    """Score every C at one gamma on the inner folds.

    Parameters
    ----------
    K : ndarray of shape (n_samples, n_samples)
        Kernel matrix of the rows that are searched on.
    codes : ndarray of int of shape (n_samples,)
        Classes as numbers from 0.
    n_classes : int
    folds : list of Fold
    estimator : KernelClassifier
        With everything but C set.
    values : sequence of float
        C, ascending.
    ties : {"sum", "first"}, default="sum"
        As for :func:`svmbench.core.models.pairs.vote`.
    workspace : Workspace, optional
        Memory for the kernel matrices of the two-class problems, which use it one after another.
    """
    accuracy = np.empty((len(values), len(folds)))
    fits = unconverged = gap_stopped = 0
    source = KernelSource.precomputed(K, workspace or Workspace())
    for f, fold in enumerate(folds):
        decisions, solutions = pair_decisions(source, fold, estimator, values)
        reasons = [solution.stop_reason for of_pair in solutions for solution in of_pair]
        by_values = decisions.swapaxes(0, 1)
        predicted = np.array(
            [vote(of_pairs, fold.pairs, n_classes, ties=ties) for of_pairs in by_values]
        )
        accuracy[:, f] = 100.0 * np.mean(predicted == codes[fold.validation], axis=1)
        fits += len(reasons)
        unconverged += sum(reason in UNFINISHED for reason in reasons)
        gap_stopped += sum(reason == BY_GAP for reason in reasons)
    return GammaScores(accuracy, fits, unconverged, gap_stopped)


def pair_decisions(
    source: KernelSource, fold: Fold, estimator: KernelClassifier, values: Sequence[float]
) -> tuple[np.ndarray, list[list[KernelSolution]]]:
    """Solve all pairs at all C; return decisions (n_pairs, n_C, n_validation), and solutions.

    Parameters
    ----------
    source : KernelSource
        Over the kernel matrix of the rows that are searched on.
    fold, estimator, values
        As for :func:`score_gamma`.
    """
    decisions = np.empty((len(fold.pairs), len(values), len(fold.validation)))
    solutions_of_pairs = []
    for k, (rows, signs) in enumerate(zip(fold.rows, fold.signs, strict=True)):
        # The path without the costs of its points, which are not needed here.
        solutions = list(estimator.solve_along(source.subset(rows), signs, "C", values))
        coefficients = np.array([s.coefficients for s in solutions])
        used = coefficients.any(axis=0)
        others = source.block(rows[used], fold.validation)
        np.matmul(coefficients[:, used], others, out=decisions[k])
        decisions[k] += np.array([[s.b] for s in solutions])
        solutions_of_pairs.append(solutions)
    return decisions, solutions_of_pairs


@dataclass
class KernelSearchResult:
    """The best point of a search and the costs of the search.

    Attributes
    ----------
    best : dict
        ``{"C": …, "gamma": …}``.
    accuracy_pct : ndarray of shape (n_C, n_gamma, n_folds)
    metrics : dict
        ``search_wall_time_s``, ``search_cpu_time_s`` (this cell's own), ``search_fits``,
        ``unconverged_fits``, ``gap_stopped_fits``, ``search_kernel_evaluations``.
    """

    best: dict[str, float]
    accuracy_pct: np.ndarray
    metrics: dict[str, float]


def search_on_kernels(
    searched: SearchRows,
    build: Callable[..., KernelClassifier],
    points: Sequence[dict[str, Any]],
    *,
    ties: str = "sum",
    done: Mapping[str, Mapping[str, Any]] | None = None,
    emit: Callable[[str, Mapping[str, Any]], None] = lambda _id, _values: None,
) -> KernelSearchResult:
    """Score the whole grid; the smallest C, then the smallest gamma, wins among equals.

    Parameters
    ----------
    searched : SearchRows
    build : callable
        Makes the solver with the given parameters.
    points : sequence of dict
        The product of some values of C and some of gamma.
    ties : {"sum", "first"}, default="sum"
        As for :func:`svmbench.core.models.pairs.vote`.
    done : dict, optional
        Results that an interrupted search recorded, by the id passed to `emit`.
    emit : callable, optional
        Called with the results of each gamma as JSON values.
    """
    values = sorted({float(point["C"]) for point in points})
    gammas = sorted({float(point["gamma"]) for point in points})
    searched = sort_by_class_and_fold(searched)
    distances, rows, codes = searched.distances, searched.rows, searched.codes
    accuracy = np.empty((len(values), len(gammas), len(searched.splits)))
    counted = ("wall_s", "cpu_s", "fits", "unconverged", "gap_stopped", "kernel_evaluations")
    totals = dict.fromkeys(counted, 0.0)
    folds = make_folds(codes, searched.splits)
    within, workspace, of_gamma = None, Workspace(), Workspace()
    for g, gamma in enumerate(gammas):
        point = (done or {}).get(f"gamma={gamma:g}")
        if point is None:
            wall, cpu = time.perf_counter(), time.process_time()
            if within is None:
                within = gather(distances, rows, rows, distances.dtype)
            K = gauss_of_distances(within, gamma, of_gamma.array(within.shape, within.dtype))
            estimator, n_classes = build(gamma=gamma), searched.n_classes
            scores = score_gamma(K, codes, n_classes, folds, estimator, values, ties, workspace)
            point = {
                "params": {"gamma": gamma},
                "values": values,
                "accuracy_pct": scores.accuracy_pct.tolist(),
                "fits": scores.fits,
                "unconverged": scores.unconverged,
                "gap_stopped": scores.gap_stopped,
                "kernel_evaluations": K.size,
                "wall_s": time.perf_counter() - wall,
                "cpu_s": time.process_time() - cpu,
            }
            emit(f"gamma={gamma:g}", point)
        accuracy[:, g] = point["accuracy_pct"]
        for name in totals:
            totals[name] += point[name]
    # Rounded, so that equal scores are equal whatever order they were summed in.
    means = np.round(accuracy.mean(axis=2), 9)
    c, g = divmod(int(np.argmax(means)), len(gammas))
    return KernelSearchResult(
        best={"C": values[c], "gamma": gammas[g]},
        accuracy_pct=accuracy,
        metrics={
            "search_wall_time_s": totals["wall_s"],
            "search_cpu_time_s": totals["cpu_s"],
            "search_fits": totals["fits"],
            "unconverged_fits": totals["unconverged"],
            "gap_stopped_fits": totals["gap_stopped"],
            "search_kernel_evaluations": totals["kernel_evaluations"],
        },
    )
