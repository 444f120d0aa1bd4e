"""ALSVM's answer in one go: sums of outer products, then one factorisation for each C.

Problem
    min_w  1/2 ||w||^2 + C sum_i (1 - y_i w'x_i)^2
    over samples x with a constant feature ("bias absorbed"); no constraints.
Given
    X (n_samples, d), y in {-1, +1}, C; nu = 1 / (2C).
Returned
    w with G w = q,  G = sum_i x_i x_i' + nu I,  q = sum_i y_i x_i.
Reference
    ALSVM paper, equations 1 and 2 (the linear system its Algorithm 1 solves one sample at a time;
    the linear proximal SVM).
Deviations
    - If the estimated condition of G says that the sums don't determine w in float64 (features of
      1e8 beside the constant one, rank-deficient samples at huge C), one more pass makes the
      samples triangular by Householder reflections, whose condition is the square root of G's;
      counters_["fallbacks"] counts it, and stop_reason_ says so.
    - With hundreds of features, if G costs more by shape and number of nonzeros, w comes from the
      dual form (X X' + nu I) b = y, w = X'b, or from conjugate gradients; stop_reason_ says which.
      If these fail, w comes from the sums.
    - Neither G nor q depends on C, and both are sums over samples: one pass over the data serves
      every C of a grid, and the sums of single folds serve every fold of a cross-validation, a
      training set's sum being the total minus the fold's own (path).
    - Samples may come in blocks and never be in memory together (fit_blocks, path_blocks); their
      sums are gathered by `statistics.py`, also in several places at once (fit_statistics).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from svmbench.core.contract.base import Along, PathPoint, Splits, TrainingData
from svmbench.core.contract.linear_base import LinearClassifierWithC
from svmbench.core.contract.registry import declare
from svmbench.core.linear import least_squares
from svmbench.core.linear.hessian import Diagonal, RowProducts
from svmbench.core.linear.least_squares import fold_moments
from svmbench.core.linear.statistics import (
    CLOSED_FORM,
    Statistics,
    Sums,
    gather_statistics,
    numbered,
)
from svmbench.core.numeric.arrays import append_bias, as_block
from svmbench.core.numeric.conjugate_gradient import conjugate_gradients

#: Values of `stop_reason_` for the methods without sums.
BY_DUAL = "closed form, of the dual"
BY_STEPS = "conjugate gradients"

#: With at most this many features the sums are always formed: other methods can't save much.
SUMS_MAX_FEATURES = 512

#: Conjugate gradients end at this residual relative to q, both in the preconditioner's norm, or
#: fail after this many steps.
CG_RESIDUAL, CG_MAX_STEPS = 1e-10, 2000

#: The recomputed residual may be this many times as large.
CG_MAX_DRIFT = 10.0

#: Nanoseconds of a multiplication in BLAS, of one that is scattered, and of a nonzero in a step,
#: and the expected number of steps. Measured on an AVX-512 Xeon; only their ratios matter.
BLAS_NS, SCATTER_NS, NONZERO_NS, STEPS_EXPECTED = 1 / 32, 1.5, 2.5, 200

SUMS, KERNEL, STEPS = "sums", "kernel", "steps"


@dataclass
class _Sums:
    """The sums of some samples, and the samples, which are needed if the sums are too poor."""

    A: np.ndarray
    q: np.ndarray
    X: Any  # (n_samples, n_features): without the constant feature
    y: np.ndarray  # (n_samples,)
    rows: np.ndarray | None  # int: positions of those samples; None for all
    _triangle: tuple[np.ndarray, np.ndarray] | None = None

    def triangle(self, bias: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the samples' triangular factor, which serves every C."""
        if self._triangle is None:
            X, y = (self.X, self.y) if self.rows is None else (self.X[self.rows], self.y[self.rows])
            self._triangle = least_squares.triangle(X, y, bias)
        return self._triangle


def cheapest(X: Any) -> str:
    """Return the method that is expected to cost least: ``"sums"``, ``"kernel"`` or ``"steps"``."""
    n, d = X.shape
    if d <= SUMS_MAX_FEATURES:
        return SUMS
    nonzeros = X.nnz if sp.issparse(X) else n * d

    def closed(rows: int, size: int) -> float:
        """Return the cost of a Gram matrix of `size` columns of `rows` values, and a factor."""
        scattered = SCATTER_NS * nonzeros**2 / rows
        products = BLAS_NS * rows * size**2
        factor = BLAS_NS * size**3 / 3.0
        return factor + (min(scattered, products) if sp.issparse(X) else products)

    costs = {
        SUMS: closed(n, d),
        KERNEL: closed(d, n),
        STEPS: STEPS_EXPECTED * NONZERO_NS * nonzeros,
    }
    return min(costs, key=lambda way: costs[way])


def solve_kernel(X: Any, y: np.ndarray, bias: float, nu: float) -> np.ndarray | None:
    """Return w by Cholesky's factorisation of ``X X' + nu I``; None if it is ill-conditioned."""
    K = X @ X.T
    K = (K.toarray() if sp.issparse(K) else K) + bias * bias
    b = least_squares.solve_sums(K, y, nu)
    if b is None:
        return None
    w = np.asarray(X.T @ b)
    return np.append(w, bias * b.sum()) if bias else w


def solve_steps(X: Any, y: np.ndarray, bias: float, nu: float) -> tuple[np.ndarray | None, int]:
    """Return w by preconditioned conjugate gradients, None if they fail; and their steps."""
    X = append_bias(X, bias)
    products, everything = RowProducts(X), np.arange(len(y), dtype=np.int32)
    preconditioner = Diagonal(X)
    preconditioner.make(np.ones(len(y), dtype=bool), 1.0 / (2.0 * nu))
    q = products.combine(everything, y)

    def product(p: np.ndarray) -> np.ndarray:
        return nu * p + products.curvature(everything, p)

    w, steps, converged = conjugate_gradients(
        product, q, CG_MAX_STEPS, residual=CG_RESIDUAL, precondition=preconditioner.solve
    )
    # The residual of the recurrence drifts from the true one where rounding is large.
    left = q - product(w)
    limit = (CG_MAX_DRIFT * CG_RESIDUAL) ** 2 * float(q @ preconditioner.solve(q))
    sound = converged and float(left @ preconditioner.solve(left)) <= limit
    return w if sound else None, steps


@declare(
    name="alsvm-batch",
    problem="least-squares",
    promise="rounding",
    paper="alsvm",
    summary="ALSVM's closed form: one pass, one factorisation; whole C grids and CVs at once",
    reference="ALSVM paper, equations 1 and 2",
    paths=("C",),
    reads=("arrays", "blocks"),
)
class ALSVMBatch(LinearClassifierWithC):
    """The least-squares SVM in closed form.

    Gives the model of :class:`~svmbench.core.linear.alsvm.ALSVM` without visiting the samples one
    by one; can't add or remove samples afterwards.

    Attributes
    ----------
    counters_ : dict
        ``passes`` over the data, ``factorisations``, ``fallbacks`` to a factorisation of the
        samples; without sums also ``conjugate_gradient_steps``.
    stop_reason_ : str
        ``"closed form"``, and the method if the sums were too ill-conditioned; without sums
        ``"closed form, of the dual"`` or ``"conjugate gradients"``.

    Examples
    --------
    >>> from svmbench.core.linear.alsvm_batch import ALSVMBatch
    >>> model = ALSVMBatch(fit_intercept=False)
    >>> path = model.path(model.prepare([[1.0], [-1.0]], [1, -1]), None, "C", [0.5, 1.0])
    >>> [round(float(found.coef_[0, 0]), 6) for found, _, _ in path]  # 2 / (2 + 1 / (2C))
    [0.666667, 0.8]
    """

    def _convert(self, data: TrainingData) -> TrainingData:
        """Take the inputs as they are: the constant feature is never written out."""
        data.native = data.X
        return data

    def train(self, data: TrainingData) -> Self:
        """Accumulate the sums and solve once, or solve in a way that costs less."""
        way = cheapest(data.native)
        if way != SUMS and self._solve_without_sums(data, way):
            return self
        everything = np.zeros(len(data.y), dtype=np.int32)
        A, q = fold_moments(data.native, data.y, everything, 1, self.bias)
        return self._solve(_Sums(A[0], q[0], data.native, data.y, None))

    def _path(self, data: Any, y: np.ndarray | None, along: Along) -> Iterator[PathPoint]:
        """Solve for each value of a parameter.

        Along C one pass over the data serves every value, and every fold if the splits are a
        partition: the sums of a fold are the total minus the sums of its test rows. Each solution
        costs its share of the time of the sums, by rows, and its own factorisation, as if it were
        solved alone. If there are so many features that no sums are formed, it is a loop of fits.
        """
        over, values, splits = along
        if over != "C" or cheapest(data.X) != SUMS:
            yield from super()._path(data, y, along)
            return
        models = [self._sibling(C=float(C)) for C in values]
        for model in models:
            model._check_parameters()
        for sums, shared, passes in self._sums(data, splits):
            for model in models:
                start = perf_counter()
                fitted = copy(model)._solve(sums)
                cost = shared + perf_counter() - start
                more = fitted.counters_["passes"] - 1
                yield PathPoint(fitted, cost, {**fitted.counters_, "passes": passes + more})
                passes = 0

    def fit_blocks(self, blocks: Iterable[Any], *, n_features: int | None = None) -> Self:
        """Fit rows that come in blocks, of which one at a time is in memory.

        Parameters
        ----------
        blocks : iterable of (X, y)
            X dense or CSR of shape (n_rows, n_columns), y its labels: two over all blocks, though
            one block may hold one alone. Gone over once; where one pass is not enough for float64
            and `blocks` can be gone over again (a list, or what
            :func:`svmbench.data.open_blocks` returns, but no generator), twice.
        n_features : int, optional
            Number of features; default: the columns of the widest block.

        Returns
        -------
        self : ALSVMBatch
            With ``objective_``, from the sums.

        Raises
        ------
        ValueError
            As :meth:`Statistics.update <svmbench.core.linear.statistics.Statistics.update>` and
            `fit` do, with the row at which the block begins.

        Examples
        --------
        >>> from svmbench import ALSVMBatch
        >>> blocks = [([[1.0]], [1]), ([[-1.0]], [0])]
        >>> ALSVMBatch(C=1.0, fit_intercept=False).fit_blocks(blocks).coef_
        array([[0.8]])
        """
        (point,) = self.path_blocks(blocks, [self.C], n_features=n_features)
        self.__dict__.update(point.solution.__dict__)
        return self

    def path_blocks(
        self,
        blocks: Iterable[Any],
        values: Sequence[float],
        *,
        n_folds: int = 1,
        seed: int = 0,
        n_features: int | None = None,
    ) -> Iterator[PathPoint]:
        """Solve for each C, on all rows or on the training rows of each fold, from one pass.

        Parameters
        ----------
        blocks : iterable of (X, y) or (X, y, folds)
            As `fit_blocks` takes them; `folds` are the rows' folds, 0 … n_folds - 1.
        values : sequence of float
            Of C.
        n_folds : int, default=1
            1 for all rows.
        seed : int, default=0
            Of the folds, where the blocks bring none: each row's is drawn by its number.
        n_features : int, optional

        Yields
        ------
        PathPoint
            In the order of `values`, fold after fold. The pass is charged to all in equal parts.
        """
        self._check_parameters()
        start = perf_counter()
        statistics = gather_statistics(blocks, n_folds, seed=seed, n_features=n_features)
        shared = (perf_counter() - start) / (n_folds * max(1, len(values)))
        again = None
        passes = 1
        for fold in range(n_folds):
            without = None if n_folds == 1 else fold
            sums = statistics.sums(self.bias, without)
            for C in values:
                start = perf_counter()
                model = self._sibling(C=float(C)).fit_statistics(statistics, without, sums)
                if model.stop_reason_ == least_squares.BY_POOR_SUMS and iter(blocks) is not blocks:
                    if again is None:
                        again = _triangles(numbered(blocks, n_folds, seed), statistics, self.bias)
                        passes += 1
                    model._solve_triangle(again, sums, without)
                cost = shared + perf_counter() - start
                yield PathPoint(model, cost, {**model.counters_, "passes": passes})
                passes = 0

    def fit_statistics(
        self, statistics: Statistics, without: int | None = None, sums: Sums | None = None
    ) -> Self:
        """Fit gathered statistics, of all folds or of all but one.

        Parameters
        ----------
        statistics : Statistics
            May be merged from several places.
        without : int, optional
            The fold that is left out.
        sums : Sums, optional
            ``statistics.sums(self.bias, without)``, if several fits share it.

        Raises
        ------
        ValueError
            If the rows are not of two classes, or a parameter is out of range.
        """
        self._check_parameters()
        if sums is None:
            sums = statistics.sums(self.bias, without)
        self.classes_, self.n_features_in_ = statistics.classes, statistics.n_features
        self.__dict__.pop("several_", None)
        w, method = sums.solve(1.0 / (2.0 * self.C))
        self._store_weights(w, method, _work(1, int(method != CLOSED_FORM)))
        return self._value(w, sums)

    def _solve_triangle(self, triangles: list[np.ndarray], sums: Sums, without: int | None) -> None:
        """Store the solution of the samples' triangles, of all folds but one."""
        d = len(sums.q)
        rows = np.vstack([part for fold, part in enumerate(triangles) if fold != without])
        w, _ = least_squares.solve_triangle(rows[:, :d], rows[:, d], 1.0 / (2.0 * self.C))
        self._store_weights(w, least_squares.BY_SAMPLES, _work(2, 1))
        self._value(w, sums)

    def _value(self, w: np.ndarray, sums: Sums) -> Self:
        """Set ``objective_`` from the sums."""
        loss = sums.loss(self.coef_[0], float(self.intercept_[0]))
        self.objective_ = 0.5 * float(w @ w) + float(self.C) * loss
        return self

    def _sums(
        self, data: TrainingData, splits: Splits | None
    ) -> Iterator[tuple[_Sums, float, int]]:
        """Yield the sums of each fold's training rows, their seconds, and passes over the data."""
        n = len(data.y)
        group = np.zeros(n, dtype=np.int32) if splits is None else folds_of(splits, n)
        if splits is None or group is None:
            for _, part in self._parts(data, splits):
                # `prepare` refuses a fold of one class.
                part = data if splits is None else self._sibling().prepare(part.X, part.y)
                start = perf_counter()
                everything = np.zeros(len(part.y), dtype=np.int32)
                A, q = fold_moments(part.X, part.y, everything, 1, self.bias)
                seconds = perf_counter() - start
                yield _Sums(A[0], q[0], part.X, part.y, None), seconds, 1
            return
        n_folds = len(splits)
        for fold in range(n_folds):
            if len(np.unique(data.y[group != fold])) < 2:
                msg = f"the training part of fold {fold} has samples of one class only"
                raise ValueError(msg)
        start = perf_counter()
        A, q = fold_moments(data.X, data.y, group, n_folds + 1, self.bias)
        total_A, total_q = A.sum(axis=0), q.sum(axis=0)
        per_row = (perf_counter() - start) / n
        for fold in range(n_folds):
            shared = per_row * int(np.sum(group != fold))
            rows = np.flatnonzero(group != fold)
            sums = _Sums(total_A - A[fold], total_q - q[fold], data.X, data.y, rows)
            yield sums, shared, int(fold == 0)

    def _solve_without_sums(self, data: TrainingData, way: str) -> bool:
        """Store the solution of the dual or of conjugate gradients; False if the method fails."""
        nu, steps, factorisations = 1.0 / (2.0 * self.C), 0, 0
        w: np.ndarray | None
        if way == KERNEL:
            w = solve_kernel(data.native, data.y, self.bias, nu)
            method, factorisations = BY_DUAL, 1
        else:
            w, steps = solve_steps(data.native, data.y, self.bias, nu)
            method = BY_STEPS
        if w is None:
            return False
        counters = {
            "passes": 1 + steps,
            "factorisations": factorisations,
            "fallbacks": 0,
            "conjugate_gradient_steps": steps,
        }
        self._store_weights(w, method, counters)
        return True

    def _solve(self, sums: _Sums) -> Self:
        nu = 1.0 / (2.0 * self.C)
        w = least_squares.solve_sums(sums.A, sums.q, nu)
        sound = w is not None
        if w is None:
            w, _ = least_squares.solve_triangle(*sums.triangle(self.bias), nu)
        method = CLOSED_FORM if sound else least_squares.BY_SAMPLES
        return self._store_weights(w, method, _work(1 if sound else 2, int(not sound)))

    def _store_weights(self, w: np.ndarray, method: str, counters: dict[str, int]) -> Self:
        return self._store_with_bias(
            w,
            n_iter=max(1, counters.get("conjugate_gradient_steps", 1)),
            stop_reason=method,
            counters=counters,
        )


def _work(passes: int, fallbacks: int) -> dict[str, int]:
    return {"passes": passes, "factorisations": 1, "fallbacks": fallbacks}


def _triangles(
    blocks: Iterable[tuple[int, Any, Any, np.ndarray]], statistics: Statistics, bias: float
) -> list[np.ndarray]:
    """Return each fold's triangular factor, with the labels as last column, in one more pass."""
    d = statistics.n_features
    triangles = [np.empty((0, d + bool(bias) + 1)) for _ in range(statistics.n_folds)]
    for _, X, y, folds in blocks:
        X, signs = as_block(X, d), np.where(y == statistics.classes[1], 1.0, -1.0)
        for fold in np.unique(folds):
            rows = np.flatnonzero(folds == fold)
            triangles[fold] = least_squares.append_to_factor(
                triangles[fold], X[rows], signs[rows], bias
            )
    return triangles


def folds_of(
    splits: Splits,  # training and test rows of each fold
    n_samples: int,
) -> np.ndarray | None:
    """Return the fold in which each sample is tested; None if the splits are no partition.

    A sample that is in every training part has ``len(splits)``. Splits are no partition where a
    training part is not all rows outside its test part, or a row is tested twice.
    """
    labels = np.full(n_samples, len(splits), dtype=np.int32)
    for fold, (train, test) in enumerate(splits):
        rest = np.ones(n_samples, dtype=bool)
        rest[test] = False
        if np.any(labels[test] < len(splits)) or not np.array_equal(
            np.flatnonzero(rest), np.sort(train)
        ):
            return None
        labels[test] = fold
    return labels
