"""Warming up calls every kind of compiled code of a kernel solver: none is left to be timed."""

import subprocess
import sys

import pytest
from small_problems import needs_jit

#: Run in a process of its own: other tests compile too.
CHECK = """
import numpy as np
from svmbench.core.contract.base import warm_up
from svmbench.core.kernel_svm import l2svm, mn_svm, nl_sgd, nn_isda
from svmbench.core.kernels.kernels import KernelFunction, KernelSource

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
check(nn_isda.NNISDA, [nn_isda.correct_worst, l2svm.add_weighted_rows], tolerances)
check(mn_svm.MNSVM, [mn_svm.approach, l2svm.add_weighted_rows], tolerances)
for cls in (nl_sgd.NLSGD, nl_sgd.KernelPegasos):
    check(cls, [nl_sgd.take_steps, nl_sgd.add_cached_rows], [{"C": 1000.0}])
"""


@pytest.mark.slow
@needs_jit
def test_warm_up_leaves_nothing_to_compile():
    subprocess.run([sys.executable, "-c", CHECK], check=True, timeout=300)


#: Run in a process of its own: which compiled functions are compiled or loaded by a fit.
LISTEN = """
import warnings
from numba.core import caching
from sklearn.datasets import load_digits
import scipy.sparse as sp
import svmbench
from svmbench.baselines.catalogue import solver_class
from svmbench.core.contract.base import warm_up

warnings.simplefilter("ignore")

late = []
load = caching.FunctionCache.load_overload

def listened(cache, *given):
    # Asked before anything is compiled, whether it is there or not.
    late.append(cache._py_func.__name__)
    return load(cache, *given)

caching.FunctionCache.load_overload = listened

digits, classes = load_digits(return_X_y=True)
X, y = digits[:1200] / 16.0, classes[:1200] % 2
found, heard = {}, 0
for name, declared in svmbench.solvers().items():
    if not solver_class(name).__module__.startswith("svmbench.core"):
        continue
    warm_up(solver_class(name))
    heard += len(late)
    late.clear()
    for inputs in [X, sp.csr_array(X)] if declared.sparse else [X]:
        svmbench.solver(name).fit(inputs, y)
    if late:
        found[name] = list(late)
# All pairs of ten classes, checked one by one; of fewer samples all at once; and copied.
late.clear()
for n in (len(digits), 900, 400):
    model = svmbench.solver("csvc").fit(digits[:n] / 16.0, classes[:n])
    model.predict(digits)
    model.set_params(break_ties=False).predict(digits)
assert heard, "nothing is heard of what is compiled or loaded"
assert not (found or late), (found, late)
"""


@needs_jit
@pytest.mark.slow
def test_no_solver_compiles_anything_after_its_warm_up():
    subprocess.run([sys.executable, "-c", LISTEN], check=True, timeout=600)
