"""Data sets turned into ones for novelty detection: what a config says, and what an entry does."""

from dataclasses import replace

import numpy as np
import pytest

from svmbench import data
from svmbench.base.errors import DataError


@pytest.fixture(scope="module")
def digits():
    data.ensure("digits")
    return data.load("digits")


def test_the_classes_that_are_named_are_normal_and_the_others_thinned(digits):
    made = data.as_novelty(digits, normal=("3", "5"), ratio=0.1, seed=4)
    y = np.asarray(digits.y)
    n_normal = int(np.sum(np.isin(y, [3, 5])))
    assert made.facts["counts"] == [round(0.1 * n_normal), n_normal]
    assert made.facts["classes"][1] == "3 or 5"
    assert made.facts["n_samples"] == len(made.y) == made.X.shape[0]
    # Rows keep their order, and each its label.
    rows = [np.flatnonzero((np.asarray(digits.X) == row).all(axis=1)) for row in made.X]
    for same, label in zip(rows, made.y, strict=True):
        assert np.any(np.isin(y[same], [3, 5]) == (label > 0))
    again = data.as_novelty(digits, normal=("3", "5"), ratio=0.1, seed=4)
    other = data.as_novelty(digits, normal=("3", "5"), ratio=0.1, seed=5)
    assert again.sha256 == made.sha256 != other.sha256
    assert np.array_equal(again.X, made.X)
    assert not np.array_equal(other.X, made.X)


def test_of_two_classes_the_positive_one_is_normal_by_default():
    data.ensure("gauss-oneclass-b")
    source = data.load("gauss-oneclass-b")
    made = data.as_novelty(source, ratio=0.05)
    assert made.facts["counts"] == [50, 1000]
    flipped = data.as_novelty(source, normal=("-1",), ratio=0.5)
    assert flipped.facts["counts"] == [100, 200]
    # There are no more abnormal rows than there are.
    assert data.as_novelty(source, ratio=9.0).facts["counts"] == [200, 1000]


@pytest.mark.parametrize(
    ("normal", "sentence"),
    [
        (("11",), "digits has no class '11'; its classes are 0, 1, 2"),
        (tuple("0123456789"), "digits: every class is normal; at least one must be abnormal"),
    ],
)
def test_what_can_not_be_is_one_sentence(digits, normal, sentence):
    with pytest.raises(DataError, match=sentence):
        data.as_novelty(digits, normal=normal, ratio=0.1)


@pytest.mark.parametrize("ratio", [0.0, -1.0, np.nan, np.inf])
def test_a_ratio_is_positive_and_finite(digits, ratio):
    with pytest.raises(ValueError, match="ratio"):
        data.as_novelty(digits, normal=("1",), ratio=ratio)


def test_a_test_part_keeps_its_rows_and_the_normal_ones_are_positive(digits):
    tested = replace(digits, X_test=digits.X[:50], y_test=digits.y[:50])
    made = data.as_novelty(tested, normal=("3", "5"), ratio=0.1)
    is_normal = np.isin(np.asarray(digits.y[:50]), [3, 5])
    assert np.array_equal(made.y_test, np.where(is_normal, 1, -1))
    assert np.array_equal(made.X_test, digits.X[:50])
