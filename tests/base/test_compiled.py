"""What the decorators of compiled loops promise."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from small_problems import needs_jit

from svmbench.base.compiled import compiled, prefetch, wide_vectors
from svmbench.core.kernels.products import gauss_double, gauss_single


@compiled
def total(values, order):
    """Sum the values in this order, asking for each two ahead of its turn."""
    s = 0.0
    for k in range(len(order)):
        if k + 2 < len(order):
            prefetch(values, order[k + 2])
        s += values[order[k]]
    return s


@needs_jit
def test_wide_vectors_are_asked_for_where_it_is_said_and_change_no_value():
    import numba

    def fill(out):
        for k in range(len(out)):
            out[k] = 3.0 * out[k] + 1.0

    def fill_wide(out):
        wide_vectors()
        for k in range(len(out)):
            out[k] = 3.0 * out[k] + 1.0

    plain, wide = numba.njit(fill), numba.njit(fill_wide)
    first = np.random.default_rng(0).normal(size=1001)
    second = first.copy()
    plain(first)
    wide(second)
    assert_array_equal(first, second)
    asked = '"prefer-vector-width"="512"'
    assert asked in next(iter(wide.inspect_llvm().values()))
    assert asked not in next(iter(plain.inspect_llvm().values()))


@pytest.mark.slow
def test_exponentials_do_not_depend_on_where_a_vector_begins():
    # Of 1 to 40 values the last few are left to a loop without vectors.
    draw = np.random.default_rng(0)
    P, a, b = draw.normal(size=(1, 40)), np.array([30.0]), draw.uniform(25.0, 35.0, size=40)
    whole = P.copy()
    gauss_double(whole, a, b, 0.2)
    single = np.empty((1, 40), dtype=np.float32)
    P32, a32, b32 = (each.astype(np.float32) for each in (P, a, b))
    gauss_single(P32, a32, b32, 0.2, single, np.zeros(1, dtype=np.int64))
    for n in range(1, 40):
        part, first = P[:, :n].copy(), np.empty((1, n), dtype=np.float32)
        gauss_double(part, a, b[:n], 0.2)
        gauss_single(P32[:, :n].copy(), a32, b32[:n], 0.2, first, np.zeros(1, dtype=np.int64))
        assert_array_equal(part, whole[:, :n])
        assert_array_equal(first, single[:, :n])


def test_a_prefetch_changes_no_sum():
    values = np.arange(100.0)
    for array in (values, values.reshape(10, 10).ravel()):
        order = np.random.default_rng(0).permutation(100)
        for form in (order, order.astype(np.int32), order.astype(np.uint32)):
            assert total(array, form) == 4950.0
