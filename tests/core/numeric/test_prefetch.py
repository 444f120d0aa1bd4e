"""A hint to the processor changes no result, and costs nothing where nothing is compiled."""

import numpy as np

from svmbench.base.compiled import compiled
from svmbench.core.numeric.prefetch import prefetch


@compiled
def total(values, order):
    """Sum the values in this order, asking for each two ahead of its turn."""
    s = 0.0
    for k in range(len(order)):
        if k + 2 < len(order):
            prefetch(values, order[k + 2])
        s += values[order[k]]
    return s


def test_sum_is_the_same():
    values = np.arange(100.0)
    for array in (values, values.reshape(10, 10).ravel()):
        order = np.random.default_rng(0).permutation(100)
        for form in (order, order.astype(np.int32), order.astype(np.uint32)):
            assert total(array, form) == 4950.0
