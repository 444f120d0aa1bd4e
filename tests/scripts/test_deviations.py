"""The script that measures what comes of doing otherwise: its other ways are what it says."""

import numpy as np
import pytest
from script_loading import load_script

from svmbench import NLSGD, SVMLight
from svmbench.core.kernel_svm.decomposition import steepest
from svmbench.core.kernels.kernels import KernelFunction

deviations = load_script("deviations", "results/smo")


@pytest.mark.slow
def test_every_way_is_counted_on_the_same_problem():
    X, y = deviations.samples("breast-cancer")
    found = {
        (name, counter): (own, other)
        for name, measure in deviations.DEVIATIONS.items()
        for counter, own, other in measure(X, y)
    }
    assert {name for name, _ in found} == set(deviations.DEVIATIONS)
    assert all(own > 0 and other > 0 for own, other in found.values())
    own, other = found["chunking values", "kernel_evaluations"]
    assert own < other
    assert found["chunking values", "n_iter"][0] == found["chunking values", "n_iter"][1]
    own, other = found["svm-light rows", "kernel_evaluations"]
    assert other <= own
    # What was replaced for the other way is back.
    model = SVMLight(C=1.0).fit(X, y)
    assert model.n_iter_ == found["svm-light halves", "n_iter"][0]


def test_values_are_taken_from_both_ends():
    v = np.array([3.0, 2.0, 1.0, 0.5, -1.0])
    beta, low, high = np.zeros(5), np.full(5, -1.0), np.full(5, 1.0)
    high[0] = 0.0
    chosen, gap = deviations.from_both_ends(v, beta, low, high, 2)
    assert list(chosen) == [1, 2, 4, 3]
    assert gap == 3.0
    # 0.5 is on the middle threshold, and so on no side of its own.
    own, own_gap = steepest(v, beta, low, high, 2)
    assert own_gap == gap
    assert set(own) == {1, 2, 4}


def test_where_every_step_updates_both_means_are_the_same():
    X, y = deviations.samples("breast-cancer")
    model = NLSGD(C=1.0, random_state=3).fit(X, y)
    assert model.counters_["updates"] == 2 * len(y)
    K = KernelFunction("rbf", model.gamma_).between(X, X)
    alpha = deviations.mean_of_updates(K, y, 1.0, 2, 3)
    assert model.dual_coef_[0] == pytest.approx((alpha * y)[model.support_], rel=1e-12)
    assert len(model.support_) == np.count_nonzero(alpha)
