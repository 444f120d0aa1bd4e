"""A path counts no CPU time for what is done between its solutions."""

import time

import numpy as np
import pytest

from svmbench import NuSVC, NuSVM
from svmbench.core.contract import base
from svmbench.experiment.protocols.turns import timed


@pytest.mark.parametrize(("solver", "nu"), [(NuSVM, 0.1), (NuSVC, 0.1)])
def test_the_search_for_a_useful_nu_is_in_no_time(solver, nu, monkeypatch):
    def slow(model, data):
        end = time.process_time() + 1.0
        while time.process_time() < end:
            pass
        return True

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), np.repeat([-1.0, 1.0], 20)
    model = solver(nu=nu)
    data = model.prepare(X, y)
    list(model.path(data, None, "nu", [nu]))  # loads the loops
    for module in ("nu.full_matrix", "models.kernel_base"):
        monkeypatch.setattr(f"svmbench.core.{module}.warn_without_margin", slow)
    points = model.path(data, None, "nu", [nu])
    before = base.UntimedSeconds.cpu_s
    _, _, cpu = timed(lambda: next(points))
    assert base.UntimedSeconds.cpu_s - before >= 1.0
    assert cpu < 0.8
