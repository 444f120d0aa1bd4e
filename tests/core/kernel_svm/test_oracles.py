"""Every exact solver of the C-SVC reaches LIBSVM's optimum on the field's small data sets.

With ``SVMBENCH_ORACLE=full`` the large ones, too, are solved at all three values of C.
"""

import os

import pytest
from kernel_oracles import assert_same_as_libsvm
from small_problems import needs_jit

from svmbench.baselines import catalogue

SOLVERS = ["smo", "osuna", "svm-light", "chunking", "csvc"]

#: Width of the RBF kernel: 0.05 is Platt's for Adult and Web; else 1 / number of features.
GAMMA = {
    **dict.fromkeys(["a1a", "a2a", "a3a", "a4a", "w1a", "w2a", "w3a"], 0.05),
    "heart_scale": 1 / 13,
    "breast-cancer_scale": 0.1,
    "sonar_scale": 1 / 60,
    "splice": 1 / 60,
}

#: Platt's linear C for Adult is 0.05; the inputs of splice are not scaled, and want a small one.
VALUES = {"linear": (0.002, 0.01, 0.05), "rbf": (0.1, 1.0, 5.0)}

#: Sets that are so large that one value, Platt's for Adult, has to be enough here.
LARGE = {"a2a", "a3a", "a4a", "w2a", "w3a"}
PLATTS = {"linear": (0.05,), "rbf": (1.0,)}


@pytest.mark.mirror
@pytest.mark.slow
@needs_jit
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("dataset", sorted(GAMMA))
def test_same_optimum_as_libsvm(dataset, kernel, mirrored):
    X, y = mirrored(dataset)
    few = dataset in LARGE and os.environ.get("SVMBENCH_ORACLE") != "full"
    for C in (PLATTS if few else VALUES)[kernel]:
        parameters = {"C": C, "kernel": kernel, "gamma": GAMMA[dataset]}
        models = [catalogue.solver(name, tol=1e-6, **parameters) for name in SOLVERS]
        # Platt's keeps no kernel values unless it may.
        models[0].set_params(cache_mb=250.0)
        assert_same_as_libsvm([model.fit(X, y) for model in models], X, y, **parameters)
