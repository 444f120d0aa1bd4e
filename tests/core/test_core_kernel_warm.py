"""Warming up calls every kind of compiled code of a kernel solver: none is left to be timed."""

import subprocess
import sys

from small_problems import needs_jit

#: Run in a process of its own: other tests compile too.
CHECK = """
import numpy as np
from svmbench.core.base import warm_up
from svmbench.core.kernel import l2svm, mn_svm, nl_sgd, nn_isda
from svmbench.core.kernels import KernelFunction, KernelSource

X = np.random.default_rng(0).random((1100, 3))
y = np.where(X[:, 0] > 0.5, 1.0, -1.0)
rbf = KernelFunction("rbf", 1.0)
many = KernelSource.from_inputs(X, rbf)
few = KernelSource.precomputed(rbf.between(X[:50], X[:50]))

def check(cls, loops, settings):
    warm_up(cls)
    known = [len(loop.signatures) for loop in loops]
    assert all(known), (cls, known)
    for parameters in settings:
        model = cls(**parameters)
        model.solve(many, y)
        model.solve(many.subset(np.arange(50)), y[:50])
        model.solve(few, y[:50], start=np.ones(50))
    now = [len(loop.signatures) for loop in loops]
    assert now == known, (cls, known, now)

tolerances = [{"C": 0.1, "tol": tol} for tol in (1e-2, 1e-5)]
check(nn_isda.NNISDA, [nn_isda.descend, l2svm.add_weighted_rows], tolerances)
check(mn_svm.MNSVM, [mn_svm.approach, l2svm.add_weighted_rows], tolerances)
for cls in (nl_sgd.NLSGD, nl_sgd.KernelPegasos):
    check(cls, [nl_sgd.walk, nl_sgd.add_rows], [{"C": 1000.0}])
"""


@needs_jit
def test_warm_up_leaves_nothing_to_compile():
    subprocess.run([sys.executable, "-c", CHECK], check=True, timeout=300)
