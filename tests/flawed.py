"""Solvers made worse on purpose, for the tests of the gate: a plug-in that FLAW steers.

``FLAW=slow`` lets dcd-l2 train twice; ``FLAW=wrong`` lets it err on one more row in ninety, which
costs about a point of accuracy.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from svmbench.core.contract.base import TrainingData
from svmbench.core.contract.registry import REGISTRY

SOLVER = REGISTRY["dcd-l2"]
FLAW = os.environ.get("FLAW", "")
train, predict = SOLVER.train, SOLVER.predict


def train_twice(self: Any, data: TrainingData) -> Any:
    train(self, data)
    return train(self, data)


def err_sometimes(self: Any, X: Any) -> np.ndarray:
    labels = predict(self, X).copy()
    first, second = self.classes_
    labels[::90] = np.where(labels[::90] == first, second, first)
    return labels


if FLAW == "slow":
    SOLVER.train = train_twice
if FLAW == "wrong":
    SOLVER.predict = err_sometimes
