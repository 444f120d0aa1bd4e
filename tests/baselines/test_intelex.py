"""scikit-learn-intelex's SVC, where it is installed, against LIBSVM's optimum."""

import numpy as np
import pytest
import scipy.sparse as sp

pytest.importorskip("sklearnex", reason="the optional scikit-learn-intelex is not installed")

from svmbench.baselines.intelex import IntelexBaseline
from svmbench.baselines.libsvm import Libsvm


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_same_optimum_as_libsvm(form, kernel):
    rng = np.random.default_rng(0)
    X = rng.random((150, 6)) * (rng.random((150, 6)) < 0.6)
    y = np.where(np.sin(6 * X[:, 0]) + X[:, 1] > 0.5, 1, -1)
    theirs = Libsvm(kernel=kernel, gamma=0.7, tol=1e-5).fit(X, y)
    peer = IntelexBaseline(kernel=kernel, gamma=0.7, tol=1e-4).fit(form(X), y)
    assert peer.dual_objective_ == pytest.approx(theirs.dual_objective_, rel=1e-5)
    np.testing.assert_allclose(peer.decision_function(X), theirs.decision_function(X), atol=2e-3)
