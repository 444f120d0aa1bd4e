"""The hinge-loss SVMs of ReHLine and skglm, where they are installed, against dcd-l1's optimum."""

from importlib.util import find_spec

import numpy as np
import pytest
import scipy.sparse as sp

from svmbench.baselines.rehline import RehlineBaseline
from svmbench.baselines.skglm import SkglmBaseline
from svmbench.core.linear.dcd import DCDL1

PEERS = [
    pytest.param(
        peer, marks=pytest.mark.skipif(find_spec(name) is None, reason=f"{name} is not installed")
    )
    for name, peer in (("rehline", RehlineBaseline), ("skglm", SkglmBaseline))
]


def problem():
    rng = np.random.default_rng(0)
    X = rng.random((200, 8)) * (rng.random((200, 8)) < 0.6)
    return X, np.where(X @ rng.normal(size=8) + 0.2 * rng.normal(size=200) > 0.3, 1, -1)


@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("settings", [{"C": 0.1}, {"C": 4.0}, {"C": 1.0, "fit_intercept": False}])
def test_same_optimum_as_dual_coordinate_descent(peer, form, settings):
    X, y = problem()
    best = DCDL1(tol=1e-8, **settings).fit(X, y)
    found = peer(tol=1e-7, **settings).fit(form(X), y)
    assert found.objective_ == pytest.approx(best.objective_, rel=1e-4)
    assert found.stop_reason_ == "converged"


@pytest.mark.parametrize("peer", [RehlineBaseline, SkglmBaseline])
def test_a_count_below_1(peer):
    with pytest.raises(ValueError, match="max_iter"):
        peer(max_iter=0).fit(*problem())
