"""Fixtures of the core tests: the mirror's LIBSVM files."""

import bz2
import io
import lzma
import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file


@pytest.fixture(scope="session")
def mirrored():
    """Return a function that reads a LIBSVM file of the mirror as (CSR, labels ±1)."""
    mirror = os.environ.get("SVMBENCH_MIRROR")
    if not mirror or not Path(mirror).is_dir():
        pytest.skip("SVMBENCH_MIRROR names no folder with the real data files")
    read = {}

    def load(name):
        if name not in read:
            for ending, opened in ((".xz", lzma.open), (".bz2", bz2.open), ("", open)):
                path = Path(mirror, "libsvm", name + ending)
                if path.exists():
                    with opened(path, "rb") as file:
                        X, y = load_svmlight_file(io.BytesIO(file.read()))
                    read[name] = sp.csr_array(X), np.where(y == y.max(), 1, -1)
                    break
            else:
                pytest.skip(f"the mirror has no {name}")
        return read[name]

    return load
