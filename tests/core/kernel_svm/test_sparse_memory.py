"""What the sparse machines take to train: no more than rows times the bound on their vectors."""

import tracemalloc

import pytest
from small_problems import make_problem, needs_jit

from svmbench.core.kernel_svm.core_set import BVM, CVM
from svmbench.core.kernel_svm.cpsp import CPSP, CPSPTr
from svmbench.core.kernel_svm.lasvm import LASVM

#: Vectors a model may have.
MOST = 20


def peak(solver, n):
    """Return the most bytes that arrays took while a model was trained on `n` samples."""
    X, y = make_problem(n=n, d=5, density=1.0)
    model = solver(C=1.0, gamma=0.7, n_basis=MOST)
    data = model.prepare(X, y)
    tracemalloc.start()
    try:
        model.train(data)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@needs_jit
@pytest.mark.parametrize("solver", [CPSP, CPSPTr, CVM, BVM, LASVM])
def test_memory_grows_with_the_samples_and_not_with_their_square(solver):
    peak(solver, 200)
    few, many = peak(solver, 2000), peak(solver, 6000)
    # A matrix of all pairs would be 9 times as much, and 144 MB in single precision.
    assert many < 4.5 * few + 200_000
    assert many < 6000 * MOST * 8 * 25
