"""How the problems of all pairs of classes are trained: each by itself, or all of them together.

`OneVsOne` hands one of two objects what it was handed, and asks it for the same things.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from svmbench.core.contract.base import TrainingData, reason_of_all, sum_of_counters
from svmbench.core.contract.useless import warn_if_useless
from svmbench.core.contract.weights import effective
from svmbench.core.kernels.given_kernel import PRECOMPUTED
from svmbench.core.models.joint_pairs import JointData, JointSolution, Layout
from svmbench.core.models.shared_points import SharedPoints

if TYPE_CHECKING:
    from svmbench.core.models.pairs import Pairs


class Objectives(NamedTuple):
    """The sums of the objectives of all pairs; None where a pair has no dual value."""

    primal: float
    dual: float | None


class PairTraining(Protocol):
    """The models of all pairs, and how they come about.

    Attributes
    ----------
    shared : SharedPoints or None
        The models over points that they share, as soon as these are known.
    """

    shared: SharedPoints | None

    @property
    def models(self) -> list[Any]:
        """The model of each pair."""

    @property
    def kernel_model(self) -> Any:
        """A model with the kernel of all pairs, where they have one."""

    @property
    def iterations(self) -> np.ndarray:
        """The iterations of each pair, int of shape (n_pairs,)."""

    @property
    def stop_reason(self) -> str:
        """That of all pairs, or the first that is not ``"converged"``."""

    @property
    def counters(self) -> dict[str, int]:
        """Work done, for all pairs."""

    def prepare(self, X: Any, codes: np.ndarray, weights: np.ndarray | None) -> Any:
        """Return what `train` reads.

        Parameters
        ----------
        X : ndarray or csr_array of shape (n_samples, n_features)
            Checked, as are parameters; or a kernel matrix that was handed in.
        codes : ndarray of int of shape (n_samples,)
            Classes, as positions in ``classes_``.
        weights : ndarray of shape (n_samples,) or None
            Of the samples.
        """

    def train(self, data: TrainingData) -> None:
        """Train every pair."""

    def certify(self, data: TrainingData) -> Objectives:
        """Return the objectives, evaluated from the models and the samples alone."""

    def conclude(self, data: TrainingData) -> Objectives:
        """Return the objectives from what the last training has at hand."""


class PairsAlone:
    """Each pair trained by itself, one after another; see :class:`PairTraining`.

    Parameters
    ----------
    estimator : BinaryClassifier
        Not fitted.
    pairs : Pairs
    """

    def __init__(self, estimator: Any, pairs: Pairs) -> None:
        # What is not fitted has its parameters alone, and a clone would check each of them.
        self.models, self.pairs = [copy(estimator) for _ in pairs], pairs
        self.shared: SharedPoints | None = None

    @property
    def iterations(self) -> np.ndarray:
        """Of each pair; see :class:`PairTraining`."""
        return np.array([int(np.max(model.n_iter_)) for model in self.models])

    @property
    def stop_reason(self) -> str:
        """Of all pairs; see :class:`PairTraining`."""
        return reason_of_all([model.stop_reason_ for model in self.models])

    @property
    def counters(self) -> dict[str, int]:
        """Sums over the pairs."""
        return sum_of_counters(self.models)

    @property
    def kernel_model(self) -> Any:
        """The first model."""
        return self.models[0]

    def prepare(self, X: Any, codes: np.ndarray, weights: np.ndarray | None) -> list[TrainingData]:
        """Return what each model prepares of its part; see :class:`PairTraining`."""
        parts = []
        for pair, model in zip(self.pairs, self.models, strict=True):
            own = {} if weights is None else {"sample_weight": weights[pair.rows]}
            is_given = getattr(model, "kernel", None) == PRECOMPUTED
            part = X[np.ix_(pair.rows, pair.rows)] if is_given else X[pair.rows]
            parts.append(prepare_part(model, part, pair.signs, **own))
        return parts

    def train(self, data: TrainingData) -> None:
        """Train one pair after another."""
        self.shared = None
        for model, part in zip(self.models, data.native, strict=True):
            model.train(part)

    def certify(self, data: TrainingData) -> Objectives:
        """Certify every model, and sum up."""
        for model, part in zip(self.models, data.native, strict=True):
            model.certify(part)
        return self._sum_up(data)

    def conclude(self, data: TrainingData) -> Objectives:
        """Conclude every model, and sum up."""
        for model, part in zip(self.models, data.native, strict=True):
            model.conclude(part)
        return self._sum_up(data)

    def _sum_up(self, data: TrainingData) -> Objectives:
        models, dual = self.models, None
        if all(hasattr(model, "dual_objective_") for model in models):
            dual = float(sum(model.dual_objective_ for model in models))
        expansions = [getattr(model, "expansion_", None) for model in models]
        if all(each is not None and each.rows is not None for each in expansions):
            kind = models[0].shared_points
            self.shared = kind.of(models, self.pairs, data.X, data.y.astype(np.int64))
        return Objectives(float(sum(model.objective_ for model in models)), dual)


class PairsTogether:
    """All pairs trained at once; a pair has a model once somebody asks; see :class:`PairTraining`.

    Parameters
    ----------
    estimator : KernelClassifier
        Not fitted; one that trains pairs together.
    pairs : Pairs
    """

    def __init__(self, estimator: Any, pairs: Pairs) -> None:
        self.kernel_model, self.pairs = estimator, pairs
        self.shared: SharedPoints | None = None
        self._found: JointSolution | None = None
        self._weights: np.ndarray | None = None
        self._models: list[Any] | None = None

    @property
    def found(self) -> JointSolution:
        """What the last training found."""
        assert self._found is not None, "train comes first"
        return self._found

    @property
    def models(self) -> list[Any]:
        """Of each pair, made when they are first asked for."""
        if self._models is None:
            self._models = [self._model_of(p) for p in range(len(self.pairs))]
        return self._models

    @property
    def iterations(self) -> np.ndarray:
        """Of each pair; see :class:`PairTraining`."""
        return self.found.n_iter

    @property
    def stop_reason(self) -> str:
        """Of all pairs; see :class:`PairTraining`."""
        return reason_of_all(self.found.stop_reasons)

    @property
    def counters(self) -> dict[str, int]:
        """Work of the one search."""
        return self.found.counters

    def prepare(self, X: Any, codes: np.ndarray, weights: np.ndarray | None) -> JointData:
        """Lay the pairs out; the solver prepares the first, and all have the same parameters."""
        first = self.pairs[0]
        prepare_part(self.kernel_model, X[first.rows], first.signs)
        layout = Layout.of(codes, self.pairs.negative, self.pairs.positive)
        if weights is not None:
            weights = effective(weights, codes)[layout.order]
        return JointData(layout, X[layout.order], weights)

    def train(self, data: TrainingData) -> None:
        """Train all pairs at once."""
        joint: JointData = data.native
        self._found = self.kernel_model.train_jointly(joint)
        self._weights, self._models = joint.weights, None
        self.shared = self.found.shared_points(self.kernel_model.function, joint.points, self.pairs)

    def certify(self, data: TrainingData) -> Objectives:
        """Evaluate from decision values of the models; see :class:`PairTraining`."""
        assert self.shared is not None, "train comes before certify"
        joint: JointData = data.native
        decisions = self.shared.decide_own(joint.points, joint.layout.codes)
        self._found, self._models = self.found.with_decisions(decisions), None
        return self.conclude(data)

    def conclude(self, data: TrainingData) -> Objectives:
        """Evaluate from the search's own gradient.

        It is exact up to 1,000 samples, and beyond them near the gap of each pair.
        """
        model, values = self.kernel_model, self.found.values(self._weights)
        primal = model.problem.primal(values, model.C)
        if not np.isfinite(primal):
            msg = f"the {model.kernel} kernel overflows on the training samples; scale the features"
            raise FloatingPointError(msg)
        # All pairs are one problem to the warning.
        model.objective_, model.stop_reason_ = primal, self.stop_reason
        model.dual_objective_ = model.problem.dual(values, model.C)
        warn_if_useless(model, data)
        return Objectives(primal, model.dual_objective_)

    def _model_of(self, p: int) -> Any:
        """Return the model of pair `p`; what the search took is known of all pairs alone."""
        assert self.shared is not None, "train comes before models"
        model, values = copy(self.kernel_model), self.found.values(self._weights, p)
        model.expansion_ = self.shared.expansion(p)
        model.objective_ = model.problem.primal(values, model.C)
        model.dual_objective_ = model.problem.dual(values, model.C)
        model.n_iter_, model.stop_reason_ = int(self.found.n_iter[p]), self.found.stop_reasons[p]
        assert values.alpha is not None, "every sample has a multiplier"
        most = model.C * (1.0 if values.weights is None else values.weights)
        model.counters_ = {
            "support_vectors": len(model.expansion_.coefficients),
            "bounded_support_vectors": int(np.sum((values.alpha > 0.0) & (values.alpha >= most))),
        }
        return model


def prepare_part(model: Any, X: Any, signs: np.ndarray, **own: Any) -> TrainingData:
    """Return what a solver prepares of a pair: of samples and parameters that were checked."""
    model._comes_validated = True
    part = model.prepare(X, signs, **own)
    del model._comes_validated
    return part
