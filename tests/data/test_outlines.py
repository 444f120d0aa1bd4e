"""An outline has the sizes and the storage format of the data set, without its values."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from svmbench import data


@pytest.mark.parametrize("name", ["breast-cancer", "breast-cancer[100:300]"])
def test_an_outline_is_like_the_data_set(name: str) -> None:
    outline, real = data.outline(name), data.load(name)
    assert outline.X.shape == real.X.shape
    assert sp.issparse(outline.X) == sp.issparse(real.X)
    assert set(outline.y) == set(real.y)
    if name == "breast-cancer":
        assert np.sum(outline.y == 1) == np.sum(real.y == 1)


def test_an_outline_needs_no_file() -> None:
    a9a = data.outline("a9a+test")
    assert a9a.X.shape == (48_842, 123)
    assert sp.issparse(a9a.X)
    assert a9a.X_test is None
    assert data.outline("a9a").X_test.shape == (16_281, 123)
    assert len(data.outline("a9a[:6414]").y) == 6_414


def test_an_outline_for_novelty_detection_has_few_abnormal_rows() -> None:
    y = data.outline("mushrooms", abnormal_ratio=0.1).y
    assert np.sum(y == -1) == round(0.1 * np.sum(y == 1)) == 421
