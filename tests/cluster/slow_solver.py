"""A plug-in for the tests of clusters: a solver that waits to be let go, and says where it is.

At the values of C that SLOW_AT names (all others go through) it writes its process's id to a file
in the folder SLOW_FOLDER, and waits until there is a file ``go`` there.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np

from svmbench.core.contract.base import TrainingData
from svmbench.core.contract.linear_base import LinearClassifier, LinearSolution
from svmbench.core.contract.registry import declare


@declare(name="test-slow", problem="hinge", summary="for tests", reference="none")
class Slow(LinearClassifier):
    """The difference of the class means, in its own time."""

    def __init__(self, C: float = 1.0, fit_intercept: bool = True) -> None:
        self.C = C
        self.fit_intercept = fit_intercept
        self.intercept_scaling = 1.0

    def train(self, data: TrainingData) -> Slow:
        folder = Path(os.environ["SLOW_FOLDER"])
        if len(data.y) > 10:
            with (folder / "fits").open("a") as stream:
                stream.write(f"{self.C:g}\n")
            if f"{self.C:g}" in os.environ["SLOW_AT"].split(","):
                # Renamed into place, so that whoever finds the file finds the id in it.
                (folder / "waits.new").write_text(str(os.getpid()))
                (folder / "waits.new").rename(folder / "waits")
                while not (folder / "go").exists():
                    time.sleep(0.02)
        centre = [np.asarray(data.X[data.y == s].mean(axis=0)).ravel() for s in (-1, 1)]
        w = (centre[1] - centre[0]) * self.C
        return self._store(
            LinearSolution(w, -float(w @ (centre[0] + centre[1])) / 2, 1, "closed form")
        )
