"""ALSVM and FALSVM: linear SVMs that learn, and unlearn, one sample at a time.

Problem
    min_w  1/2 ||w||^2 + C sum_i (1 - y_i w'x_i)^2
    over samples x with a constant feature ("bias absorbed"); no constraints, no inequality.
Given
    X (n_samples, d), y in {-1, +1}, C; nu = 1 / (2C).
Returned
    w = P sum_i y_i x_i and P = (sum_i x_i x_i' + nu I)^-1, kept up to date through
        add     r = P x;  a = x'r;  P -= r r' / (1 + a);  w += r / (1 + a) (y - w'x)
        remove  r = P x;  a = x'r;  P += r r' / (1 - a);  w += r / (1 - a) (w'x - y)
Reference
    ALSVM paper, Algorithm 1 (ALSVM), Algorithm 2 (FALSVM), equations 3, 6 and 7 (batches).
Deviations
    - The printed algorithms have w = w - R (y - w'x). The derivation (equation 6) and the closed
      form need a plus.
    - Dense samples: only the lower triangle of P is updated, together with the next sample's
      product P x: the same numbers with a quarter of the memory traffic. Sparse samples: the
      rank-one updates of P wait in blocks and are subtracted by one matrix product;
      each P x includes the updates that wait, so w is the same after every sample.
    - The rounding errors of the updates accumulate. After a fit, and after every add and remove,
      the drift ||P (q - G w)|| / ||w|| estimates the relative error of w (one step of iterative
      refinement, not applied). Above DRIFT_BOUND, P and w are rebuilt from a factorisation, and
      counters_["refreshes"] counts it. At C = 1 this does not happen; at C = 1e6 it may.
    - If the sums don't determine w in float64 (features of 1e8 beside the constant one), the
      samples are factorised themselves, and kept from that batch on; earlier ones stay in the sums.
      There is a warning if samples are missing because removals have cost the sums their digits.
    - remove refuses samples that the model does not contain. The model keeps a fingerprint of eight
      bytes of each sample.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, eigh
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from svmbench.core.contract.base import TrainingData, warn_user
from svmbench.core.contract.linear_base import LinearClassifierWithC
from svmbench.core.contract.registry import declare
from svmbench.core.linear import least_squares
from svmbench.core.linear.least_squares import gram
from svmbench.core.linear.rank_one import added, removed, sweep
from svmbench.core.numeric.arrays import append_bias, canonical_csr

#: Estimated relative error of w above which P and w are rebuilt from a factorisation.
DRIFT_BOUND = 1e-9

#: Samples that are added or removed by one matrix product; larger batches are split.
BATCH_SAMPLES = 256


#: A sum of squares with a larger relative error has lost too much to removals.
MAX_SUM_ERROR = 1e-8

#: Labels count as sorted if repeats are this many standard deviations above the number by chance.
SORTED_MIN_DEVIATIONS = 6.0

#: Labels of a single class count as sorted from this number on.
SORTED_MIN_LABELS = 50

#: Odd constants that mix the bits of fingerprints.
_ODD = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xBF58476D1CE4E5B9)


class TrainingSet:
    """Exact sums and fingerprints of the samples in a model.

    The sums ``A = sum x x'`` and ``q = sum y x`` measure the drift of the inverse, which is rebuilt
    from them. By the fingerprints `remove` refuses a sample that was never added. If a batch makes
    the sums so ill-conditioned that they don't determine the weights in float64, its samples and
    those of all later batches are kept beside the sums.
    """

    def __init__(
        self,
        X: Any,  # (n_samples, d): with the constant feature, if there is one
        y: np.ndarray,  # (n_samples,): labels ±1
        *,
        keeps_rows: bool = False,  # beside the sums
    ) -> None:
        self._initial = fingerprints(X, y)
        self._counts: Counter[int] | None = None
        # X (n_kept, d), y: samples that are kept. A (d, d), q (d,): sums of the others.
        self.X: Any = X if keeps_rows else None
        self.y: np.ndarray | None = y if keeps_rows else None
        summed = slice(0, 0 if keeps_rows else None)
        self.A, self.q = gram(X[summed]), np.asarray(X[summed].T @ y[summed]).ravel()
        # The largest diagonal that A had before a removal: its rounding errors are still in A.
        self._largest = np.zeros(len(self.q))

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self._initial) if self._counts is None else self._counts.total()

    def sums(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the sums of all samples."""
        if self.X is None:
            return self.A.copy(), self.q.copy()
        return self.A + gram(self.X), self.q + np.asarray(self.X.T @ self.y).ravel()

    def gradient(self, w: np.ndarray) -> np.ndarray:
        """Return ``q - A w`` of all samples; kept samples enter by their residuals."""
        gradient = self.q - self.A @ w
        if self.X is not None:
            gradient += np.asarray(self.X.T @ (self.y - np.asarray(self.X @ w).ravel())).ravel()
        return gradient

    def add(self, X: Any, y: np.ndarray) -> None:
        """Add samples; keep them if others are kept."""
        self._present().update(fingerprints(X, y).tolist())
        if self.X is not None:
            self._keep(X, y)
            return
        self.A += gram(X)
        self.q += np.asarray(X.T @ y).ravel()

    def keep_latest(self, A: np.ndarray, q: np.ndarray, X: Any, y: np.ndarray) -> None:
        """Keep the samples that were added last, beside the sums before them."""
        if self.X is None:
            self.A, self.q = A, q
            self._keep(X, y)

    def drop_kept(self) -> None:
        """Keep only sums, since they determine the weights again."""
        self.A, self.q = self.sums()
        self.X = self.y = None

    def triangle(self) -> tuple[np.ndarray, np.ndarray]:
        """Return R and c with ``R'R = A`` and ``R'c = q`` of all samples, if some are kept."""
        assert self.y is not None, "there are samples that are kept"
        # The principal axes of the sums represent the samples that are not kept.
        eigenvalues, V = eigh(self.A)
        nonzero = eigenvalues > len(self.q) * np.finfo(float).eps * max(eigenvalues[-1], 0.0)
        roots = np.sqrt(eigenvalues[nonzero])
        axes, targets = roots[:, np.newaxis] * V[:, nonzero].T, V[:, nonzero].T @ self.q / roots
        R = least_squares.append_to_factor(np.column_stack([axes, targets]), self.X, self.y, 0.0)
        return R[: len(self.q), :-1], R[: len(self.q), -1]

    def has_lost_digits(self, nu: float) -> bool:
        """Return True if removed samples were so much larger than the rest that digits are lost."""
        left = np.diag(self.A) + nu
        return bool(np.any(np.finfo(float).eps * self._largest > MAX_SUM_ERROR * left))

    def _keep(self, X: Any, y: np.ndarray) -> None:
        if self.X is None or self.y is None:
            self.X, self.y = X, y
            return
        parts, stack = (self.X, X), np.vstack
        if any(sp.issparse(part) for part in parts):
            parts, stack = tuple(sp.csr_array(part) for part in parts), sp.vstack
        self.X, self.y = stack(parts), np.concatenate([self.y, y])

    def require(self, X: Any, y: np.ndarray) -> None:
        """Raise ValueError unless the model contains every sample, with its label."""
        present = self._present()
        wanted = Counter(fingerprints(X, y).tolist())
        missing = sum(max(0, n - present[mark]) for mark, n in wanted.items())
        if missing:
            msg = (
                f"{missing} of the {len(y)} samples to remove are not in the model with that "
                "label: they were never added (or not accepted), or have been removed already"
            )
            raise ValueError(msg)

    def remove(self, X: Any, y: np.ndarray) -> None:
        """Remove samples, all of them present."""
        present, marks = self._present(), fingerprints(X, y).tolist()
        for mark in marks:
            present[mark] -= 1
            if not present[mark]:
                del present[mark]
        if self.X is not None and self.y is not None:
            to_remove = Counter(marks)
            kept = fingerprints(self.X, self.y).tolist()
            stays = [k for k, mark in enumerate(kept) if not _take(to_remove, mark)]
            self.X, self.y = self.X[stays], self.y[stays]
            # The samples that were not kept are in the sums.
            rest = [k for k, mark in enumerate(marks) if _take(to_remove, mark)]
            X, y = X[rest], y[rest]
        self._largest = np.maximum(self._largest, np.diag(self.A))
        self.A -= gram(X)
        self.q -= np.asarray(X.T @ y).ravel()

    def _present(self) -> Counter[int]:
        # Counting half a million marks takes a second: it is done by the first `add` or `remove`.
        if self._counts is None:
            self._counts = Counter(self._initial.tolist())
        return self._counts


class LabelOrder:
    """Detect labels that are sorted by class, by the number of labels equal to the one before."""

    def __init__(self) -> None:
        self._counts: Counter[Any] = Counter()
        self._repeats, self._last = 0, np.empty(0)

    def count(self, labels: np.ndarray) -> None:
        """Count further labels, in their order."""
        values, numbers = np.unique(labels, return_counts=True)
        self._counts.update(dict(zip(values.tolist(), numbers.tolist(), strict=True)))
        self._repeats += int(np.sum(labels[1:] == labels[:-1]) + np.sum(self._last == labels[:1]))
        self._last = labels[-1:]

    def is_sorted(self) -> bool:
        """Return True if labels repeat far more often than in random order."""
        n = self._counts.total()
        if len(self._counts) < 2:
            return n >= SORTED_MIN_LABELS
        share = sum((count / n) ** 2 for count in self._counts.values())
        deviation = np.sqrt((n - 1) * share * (1.0 - share))
        return bool(self._repeats - (n - 1) * share > SORTED_MIN_DEVIATIONS * deviation)


def _take(counts: Counter[int], mark: int) -> bool:
    """Lower a fingerprint's count by 1; return False if it is 0 already."""
    if not counts[mark]:
        return False
    counts[mark] -= 1
    return True


def fingerprints(X: Any, y: np.ndarray, *, block: int = 4096) -> np.ndarray:
    """Return a 64-bit mark of every row with its label, the same for dense and CSR rows."""
    # A mark is the sum of mixes of column and bits: order and explicit zeros don't matter.
    marks = np.empty(len(y), dtype=np.uint64)
    for start in range(0, len(y), block):
        rows = sp.csr_array(X[start : start + block])
        bits = rows.data.view(np.uint64) ^ ((rows.indices.astype(np.uint64) + np.uint64(1)) * _ODD)
        bits = (bits ^ (bits >> np.uint64(31))) * _MIX
        bits ^= bits >> np.uint64(29)
        bits[rows.data == 0.0] = 0
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(bits, dtype=np.uint64)])
        marks[start : start + block] = sums[rows.indptr[1:]] - sums[rows.indptr[:-1]]
    return marks ^ np.where(y > 0, _ODD, np.uint64(0))


class _SequentialLeastSquares(LinearClassifierWithC):
    """ALSVM or FALSVM: the state (P, w), its updates, and the watch over its drift.

    Attributes
    ----------
    P_ : ndarray of shape (d, d)
        The inverse matrix; d counts the constant feature.
    accepted_ : ndarray of int
        Positions of the training samples in the order in which they were added.
    drift_ : float
        Estimated relative error of the weights at the last check.
    n_iter_ : int
        Samples added.
    stop_reason_ : str
        ``"closed form"``, and the method if the sums were too ill-conditioned.
    counters_ : dict
        ``samples`` seen, ``updates`` and ``removals`` made, ``refreshes`` from a factorisation.
    """

    #: Whether samples that the model classifies correctly are not added (FALSVM).
    _rejects: ClassVar[bool]

    def _order(self, n_samples: int) -> np.ndarray:
        return np.arange(n_samples, dtype=np.int64)

    def train(self, data: TrainingData) -> Self:
        """Add the samples one by one from P = I/nu, w = 0."""
        X, y = data.native, data.y
        d = X.shape[1]
        P = np.eye(d) * (2.0 * self.C)
        w = np.zeros(d)
        accepted = sweep(X, y, self._order(len(y)), P, w, rejects=self._rejects)
        if len(accepted) < len(y):
            X, y = X[accepted], y[accepted]
        gradient = np.asarray(X.T @ (y - np.asarray(X @ w).ravel())).ravel() - w / (2.0 * self.C)
        self.drift_ = _relative_step(P, gradient, w)
        refreshes = 0
        self._method = "closed form"
        if not self.drift_ <= DRIFT_BOUND:
            P, w, self._method = _rebuilt(gram(X), np.asarray(X.T @ y).ravel(), self.C, X, y)
            refreshes = 1
        self.P_ = P
        self.accepted_ = accepted
        counters = {"samples": len(data.y), "updates": len(accepted), "refreshes": refreshes}
        self._store_weights(w, counters)
        return self

    def evaluate_objective(self, data: TrainingData) -> Self:
        """Evaluate the objective; then, outside of the training time, set up `add` and `remove`."""
        super().evaluate_objective(data)
        X, y = data.native, data.y
        if len(self.accepted_) < len(y):
            X, y = X[self.accepted_], y[self.accepted_]
        self._training_set = TrainingSet(X, y, keeps_rows=self._method == least_squares.BY_SAMPLES)
        return self

    def add(self, X: Any, y: Any) -> Self:
        """Add a sample or a batch to the fitted model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features) or (n_features,)
        y : array-like of shape (n_samples,), or a single label
            Labels among ``classes_``.

        Returns
        -------
        self : object
            ``objective_`` and ``accepted_`` stay as `fit` has set them.

        Raises
        ------
        ValueError
            For a label that the model does not know, or NaN or infinite inputs.
        """
        if self.several_ is not None:
            y = self._known(y)
            for label, model in zip(self.classes_, self.several_, strict=True):
                model.add(X, np.where(y == label, 1, -1))
            return self._join(self.several_)
        X, y = self._as_batch(X, y)
        A, q = self._training_set.sums()
        P, w, X, y = self._added_to(X, y)
        self._training_set.add(X, y)
        self.counters_["updates"] += len(y)
        if not self._has_drifted(P, w):
            return self._set_state(P, w)
        if least_squares.cholesky(self._training_set.sums()[0], 1.0 / (2.0 * self.C)) is None:
            self._training_set.keep_latest(A, q, X, y)
        return self._rebuild()

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Add a batch to the model, or to an empty one if there is none yet.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            A batch may lack a class.
        classes : array-like of shape (n_classes,), optional
            All labels there will be; needed by the first call, unless `fit` has been called.

        Returns
        -------
        self : object
            Without ``objective_``, which only `fit` evaluates.

        Raises
        ------
        ValueError
            Without classes in the first call, with others in a later one, or as for :meth:`add`.
        """
        if not hasattr(self, "classes_"):
            self._begin(X, classes)
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            msg = f"classes={classes!r} are not those of the first call, {self.classes_}"
            raise ValueError(msg)
        return self.add(X, y)

    def _begin(self, X: Any, classes: Any) -> None:
        """Set up the model of no samples."""
        if classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        self._check_parameters()
        classes = np.unique(classes)
        if len(classes) < 2:
            msg = f"{type(self).__name__} needs two classes, got classes={classes}"
            raise ValueError(msg)
        validate_data(self, X, accept_sparse="csr", dtype=np.float64)
        if len(classes) > 2:
            models = [clone(self) for _ in classes]
            for model in models:
                model._begin(X, [-1, 1])
            self._join(models)
        else:
            d = self.n_features_in_ + bool(self.bias)
            self.P_, self.drift_, self._method = np.eye(d) * (2.0 * self.C), 0.0, "closed form"
            self.accepted_ = np.empty(0, dtype=np.int64)
            self._training_set = TrainingSet(np.empty((0, d)), np.empty(0))
            self._store_weights(np.zeros(d), {"samples": 0, "updates": 0, "refreshes": 0})
        self.classes_ = classes

    def remove(self, X: Any, y: Any) -> Self:
        """Remove a sample or a batch from the fitted model, as if it had never been added.

        Parameters
        ----------
        X, y
            As for :meth:`add`: rows with their labels, all of them in the model.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If a sample is not in the model (never added, not accepted, or removed already); the
            model is unchanged then.
        """
        if self.several_ is not None:
            msg = "remove is there for two classes; of more, each model in estimators_ has its own"
            raise ValueError(msg)
        X, y = self._as_batch(X, y)
        self._training_set.require(X, y)
        P, w = self._in_blocks(removed, X, y)
        self._training_set.remove(X, y)
        self.counters_["removals"] = self.counters_.get("removals", 0) + len(y)
        return self._rebuild() if self._has_drifted(P, w) else self._set_state(P, w)

    def _added_to(self, X: Any, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, Any, np.ndarray]:
        """Return (P, w) with a batch added, and the samples that were added."""
        return *self._in_blocks(added, X, y), X, y

    def _in_blocks(
        self, change: Callable[..., Any], X: Any, y: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return (P, w) changed by a batch; w is NaN if rounding has made a matrix indefinite."""
        P, w = self.P_, self._weights()
        for start in range(0, len(y), BATCH_SAMPLES):
            block = slice(start, start + BATCH_SAMPLES)
            try:
                P, w = change(P, w, X[block], y[block])
            except (LinAlgError, ValueError):
                return P, np.full(len(w), np.nan)
        return P, w

    def _has_drifted(self, P: np.ndarray, w: np.ndarray) -> bool:
        """Set ``drift_``; return whether it is above the bound."""
        with np.errstate(over="ignore", invalid="ignore"):
            gradient = self._training_set.gradient(w) - w / (2.0 * self.C)
            self.drift_ = _relative_step(P, gradient, w)
        return not self.drift_ <= DRIFT_BOUND

    def _set_state(self, P: np.ndarray, w: np.ndarray) -> Self:
        self.P_ = P
        self._store_weights(w, self.counters_)
        if self._training_set.has_lost_digits(1.0 / (2.0 * self.C)):
            self._warn_of_sums("what was removed was so large that they have lost their digits")
        return self

    def _rebuild(self) -> Self:
        """Compute P and w from the training set, and store them."""
        training_set, nu = self._training_set, 1.0 / (2.0 * self.C)
        A, q = training_set.sums()
        self.counters_["refreshes"] += 1
        w = least_squares.solve_sums(A, q, nu)
        if w is None and training_set.X is not None:
            self._method = least_squares.BY_SAMPLES
            w, P = least_squares.solve_triangle(*training_set.triangle(), nu, with_inverse=True)
            assert P is not None, "the inverse was asked for"
            return self._set_state(P, w)
        if training_set.X is not None:
            training_set.drop_kept()
        P, w, self._method = _rebuilt(A, q, self.C)
        if self._method == least_squares.BY_POOR_SUMS:
            self._warn_of_sums("they are too ill-conditioned for float64")
        return self._set_state(P, w)

    def _warn_of_sums(self, why: str) -> None:
        warn_user(
            f"{self.declaration.name} has the sums of its samples alone, and {why}: fit it anew"
        )

    def _weights(self) -> np.ndarray:
        if not self.bias:
            return self.coef_[0].copy()
        return np.append(self.coef_[0], self.intercept_[0] / self.bias)

    def _store_weights(self, w: np.ndarray, counters: dict[str, int]) -> None:
        self._store_with_bias(
            w,
            n_iter=max(1, counters["updates"]),
            stop_reason=self._method,
            counters=counters,
        )

    def _as_batch(self, X: Any, y: Any) -> tuple[Any, np.ndarray]:
        check_is_fitted(self, "_training_set")
        self.densify()
        if not sp.issparse(X) and np.ndim(X) == 1:
            X = np.reshape(X, (1, -1))
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, order="C", reset=False)
        y = np.atleast_1d(y)
        if y.shape != (X.shape[0],):
            msg = f"X has {X.shape[0]} samples and y has shape {y.shape}"
            raise ValueError(msg)
        y = self._known(y)
        if sp.issparse(X):
            X = canonical_csr(X)
        return append_bias(X, self.bias), np.where(y == self.classes_[1], 1.0, -1.0)

    def _known(self, y: Any) -> np.ndarray:
        """Return labels as an array if the model knows them all."""
        y = np.atleast_1d(y)
        unknown = ~np.isin(y, self.classes_)
        if np.any(unknown):
            msg = f"label {y[unknown][0]} is not one of the model's classes {self.classes_}"
            raise ValueError(msg)
        return y


@declare(
    name="alsvm",
    problem="least-squares",
    promise="rounding",
    paper="alsvm",
    summary="sequential least-squares SVM with add and remove",
    reference="ALSVM paper, Algorithm 1 (sign corrected); equations 3, 6, 7",
)
class ALSVM(_SequentialLeastSquares):
    """Sequential ALSVM: the closed form of the least-squares SVM, one sample at a time.

    :class:`~svmbench.core.linear.alsvm_batch.ALSVMBatch` gives the same model faster, but
    can't change it afterwards; :class:`FALSVM` skips the samples that are classified correctly.

    Examples
    --------
    >>> from svmbench.core.linear.alsvm import ALSVM
    >>> model = ALSVM(C=0.5, fit_intercept=False).fit([[1.0], [-1.0]], [1, -1])
    >>> round(float(model.add([1.0], 1).coef_[0, 0]), 6)   # 3 / (3 + 1)
    0.75
    >>> round(float(model.remove([1.0], 1).coef_[0, 0]), 6)  # 2 / (2 + 1)
    0.666667
    """

    _rejects = False


@declare(
    name="falsvm",
    problem="least-squares",
    paper="alsvm",
    summary="ALSVM that adds only the samples it misclassifies",
    reference="ALSVM paper, Algorithm 2 (sign corrected)",
)
@dataclass(eq=False, repr=False, kw_only=True)
class FALSVM(_SequentialLeastSquares):
    """FALSVM: one shuffled pass that adds only what the present model misclassifies.

    The weights equal ALSVM's on exactly the accepted samples. The first sample is always added:
    from w = 0 the test ``y w'x < 0`` never holds.
    """

    random_state: Any = 0

    _rejects = True

    def _order(self, n_samples: int) -> np.ndarray:
        return check_random_state(self.random_state).permutation(n_samples).astype(np.int64)

    def fit(self, X: Any, y: Any) -> Self:
        """Fit on rows of any order, which are shuffled; see the base class."""
        self.__dict__.pop("_label_order", None)
        return super().fit(X, y)

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Add what the model misclassifies of a batch, in the order of its rows.

        Each row is seen once, so that the order matters: from rows sorted by class the model learns
        the last class only. Sorted rows cause a warning; shuffle them before they are cut into
        batches, or use :class:`ALSVM`, which adds every row.

        Parameters
        ----------
        X, y, classes
            As for :meth:`ALSVM.partial_fit`, with the same errors.
        """
        super().partial_fit(X, y, classes)
        order: LabelOrder = self.__dict__.setdefault("_label_order", LabelOrder())
        order.count(np.asarray(y))
        if order.is_sorted():
            warn_user(
                "falsvm looks at each row once, and these rows come class by class: the model may "
                "know the last class alone; shuffle the rows, or take alsvm"
            )
        return self

    def _added_to(self, X: Any, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, Any, np.ndarray]:
        """Add, one by one, those samples that the model misclassifies when they come."""
        P, w = self.P_.copy(), self._weights()
        order = np.arange(len(y), dtype=np.int64)
        accepted = sweep(X, y, order, P, w, rejects=True, n_before=len(self._training_set))
        self.counters_["samples"] += len(y)
        return P, w, X[accepted], y[accepted]


def _relative_step(P: np.ndarray, gradient: np.ndarray, w: np.ndarray) -> float:
    """Return ``||P gradient|| / ||w||``, the estimated relative error of w."""
    length = float(np.linalg.norm(w))
    return float(np.linalg.norm(P @ gradient)) / (length if length > 0.0 else 1.0)


def _rebuilt(
    A: np.ndarray, q: np.ndarray, C: float, X: Any = None, y: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, str]:
    """Return P, w and the stop reason: from the sums, or from X if given and these are too poor."""
    nu = 1.0 / (2.0 * C)
    w = least_squares.solve_sums(A, q, nu)
    if w is not None:
        return least_squares.inverse(A, nu), w, "closed form"
    if y is None:
        w, _ = least_squares.solve(A, q, nu)
        return least_squares.inverse(A, nu), w, least_squares.BY_POOR_SUMS
    R, c = least_squares.triangle(X, y, 0.0)
    w, P = least_squares.solve_triangle(R, c, nu, with_inverse=True)
    assert P is not None, "the inverse was asked for"
    return P, w, least_squares.BY_SAMPLES
