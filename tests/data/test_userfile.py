"""LIBSVM files with huge indices: sizes follow the columns that occur."""

import tracemalloc

import numpy as np
import pytest

from svmbench import data
from svmbench.data import userfile


def write(path, high, n_samples=60):
    """Write a LIBSVM file of few values, one of them with the index `high`; return its path."""
    rng = np.random.default_rng(3)
    lines = []
    for row in range(n_samples):
        places = np.sort(rng.choice(high - 1, 3, replace=False) + 1)
        pairs = [(1 + row % 4, 1.0 + row), *((5 + int(p) % (high - 5), 0.5) for p in places)]
        if row == 7:
            pairs.append((high, 2.5))
        pairs = sorted(dict(pairs).items())
        said = " ".join(f"{index}:{value:g}" for index, value in pairs)
        lines.append(f"{'+1' if row % 2 else '-1'} {said}\n")
    path.write_text("".join(lines))
    return path


def dense_columns(path):
    """Return the columns that occur in a file, in order, and its rows over them, dense."""
    rows = [
        {int(i): float(v) for i, v in (one.split(":") for one in line.split()[1:])}
        for line in path.read_text().splitlines()
    ]
    columns = sorted(set().union(*rows))
    return columns, np.array([[row.get(column, 0.0) for column in columns] for row in rows])


def test_a_file_with_a_huge_index_takes_memory_for_the_columns_that_occur(tmp_path):
    path = write(tmp_path / "wide.svm", 2_000_000_000)
    columns, values = dense_columns(path)
    data.load_file(write(tmp_path / "first.svm", 30))  # what is imported is no memory of a file
    tracemalloc.start()
    left = 2_000_000_000 - len(columns)
    with pytest.warns(UserWarning, match=f"wide.svm: left out: {left:,} of 2,000,000,000 columns"):
        found = data.load_file(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 24
    assert found.facts["n_features"] == len(columns)
    X = found.X if isinstance(found.X, np.ndarray) else found.X.toarray()
    assert np.array_equal(X, values)


@pytest.mark.parametrize("at", [0, 1])
def test_columns_are_left_out_of_very_wide_files_alone(tmp_path, recwarn, at):
    path = write(tmp_path / "wide.svm", userfile.WIDE_FEATURES + at)
    found = data.load_file(path)
    assert (found.X.shape[1] < 1000) is bool(at)
    assert len(recwarn) == at


def test_a_wide_file_with_many_columns_that_occur_is_read_as_it_is(tmp_path, monkeypatch, recwarn):
    monkeypatch.setattr(userfile, "WIDE_FEATURES", 90)
    path = tmp_path / "filled.svm"
    # 24 of 96 columns are left: three quarters are empty; with one more column they are fewer.
    for n_filled, n_features in ((24, 24), (25, 96)):
        filled = " ".join(f"{i}:1" for i in [*range(1, n_filled), 96])
        path.write_text(f"1 {filled}\n-1 1:2\n")
        assert data.load_file(path).X.shape == (2, n_features)
