"""What labels are, found out without scikit-learn where it is plain, as scikit-learn finds it."""

import numpy as np
import pytest
from sklearn.utils.multiclass import type_of_target

from svmbench.core.contract.base import are_plain

LABELS = {
    "integers": [1, 2, 1],
    "three integers": [1, 2, 3],
    "whole numbers": [-1.0, 1.0, 1.0],
    "three whole numbers": [0.0, 1.0, 2.0],
    "fractions": [0.5, 1.0, 0.5],
    "missing": [1.0, np.nan, 1.0],
    "huge": [1e300, 1.0, 1e300],
    "strings": ["a", "b", "a"],
    "three strings": ["a", "b", "c"],
    "booleans": [True, False, True],
    "one class": [4, 4, 4],
    "objects": np.array(["a", "b", "c"], dtype=object),
}


@pytest.mark.parametrize("name", LABELS)
@pytest.mark.parametrize("mapped", [False, True])
def test_what_is_plain_is_a_classification_target(name, mapped, tmp_path):
    y = np.asarray(LABELS[name])
    if mapped:
        if y.dtype == object:
            pytest.skip("objects can't be mapped")
        np.save(tmp_path / "y.npy", y)
        y = np.load(tmp_path / "y.npy", mmap_mode="r")
    assert are_plain(y) == (name not in ("fractions", "missing", "huge", "objects"))
    if are_plain(y):
        assert type_of_target(y) in ("binary", "multiclass")


def test_what_is_no_row_of_labels_is_left_to_scikit_learn():
    masked = np.ma.array([1, 2, 3], mask=[0, 0, 1])
    for y in ([1, 2, 3], np.ones((3, 2), dtype=int), np.empty(0, dtype=int), masked):
        assert not are_plain(y)
