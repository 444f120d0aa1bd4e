"""Tables, idx files and a user's own files: right arrays, or a sentence with line and column."""

from __future__ import annotations

import gzip
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from svmbench import data
from svmbench.base import paths
from svmbench.base.errors import DataError
from svmbench.data import idx, tables
from svmbench.data.entries import Reading

FUZZ = int(os.environ.get("SVMBENCH_FUZZ", "0")) or 300


def parse(text, **reading):
    how = Reading(format="table", **reading)
    content = text if isinstance(text, bytes) else text.encode()
    return tables.samples([tables.read_table(content, "f", how)], ["f"], how)[0]


@pytest.mark.parametrize(
    ("text", "reading"),
    [
        ("1,2,a\n3,4,b\n", {}),
        ("1, 2, a\r\n3, 4, b\r\n", {}),
        ("\ufeff1,2,a\n3,4,b\n", {}),
        ("a;1;2\n\nb;3;4", {"separator": ";", "label": "first"}),
        ("  1\ta  2\n 3 b\t4\n", {"separator": "whitespace", "label": 2}),
        ("x,y,kind\n1,2,a\n3,4,b\n", {"header": True}),
        ("id,x,y,kind\n7,1,2,a\n7,3,4,b\n", {"header": True, "label": "kind", "drop": ["id"]}),
        ("7,1,2,a\n7,3,4,b\n", {"drop": [1]}),
        ("|a comment\n1,2,a.\n3,4,b.\n", {"skip_lines": 1, "label_strip": "."}),
        ('"1","2","a"\n"3","4","b"\n', {}),
        ("one,2,a\nthree,4,b\n", {"encode": {"1": {"one": 1, "three": 3}}}),
        ("1,2,a\n3,4,b\n5,?,a\n", {"missing": "?", "incomplete": "drop"}),
    ],
)
def test_layouts(text, reading):
    X, labels = parse(text, **reading)
    np.testing.assert_array_equal(X, [[1, 2], [3, 4]])
    assert X.dtype == np.float64
    assert list(labels) == ["a", "b"]


def test_encodings():
    text = "red,1,a\nblue,2,b\n?,3,a\n"
    X, _ = parse(text, encode={"1": "alphabetical"}, missing="?", incomplete="category")
    np.testing.assert_array_equal(X[:, 0], [2, 1, 0])  # ? < blue < red
    X, _ = parse(text, encode={"1": "one-hot"}, missing="?", incomplete="category")
    np.testing.assert_array_equal(X, [[0, 0, 1, 1], [0, 1, 0, 2], [1, 0, 0, 3]])


def test_words_are_numbered_over_all_files_together():
    how = Reading(format="table", encode={"1": "alphabetical"})
    frames = [tables.read_table(text, "f", how) for text in (b"b,0\nc,1\n", b"a,0\n")]
    train, test = tables.samples(frames, ["f", "g"], how)
    np.testing.assert_array_equal(train[0].ravel(), [1, 2])
    np.testing.assert_array_equal(test[0].ravel(), [0])


def test_the_mean_is_the_training_files():
    how = Reading(format="table", missing="?", incomplete="mean")
    frames = [tables.read_table(text, "f", how) for text in (b"1,0\n?,1\n3,0\n", b"?,0\n9,1\n")]
    train, test = tables.samples(frames, ["f", "g"], how)
    np.testing.assert_array_equal(train[0].ravel(), [1, 2, 3])
    np.testing.assert_array_equal(test[0].ravel(), [2, 9])


@pytest.mark.parametrize(
    ("text", "reading", "said"),
    [
        ("", {}, "f is empty"),
        ("a,b\n", {"header": True}, "f has no data rows"),
        ("1,2,a\n3,4\n", {}, "f, line 2: the row has fewer columns"),
        ("1,2,a\n3,4,5,b\n", {}, "f can't be read as a table: Expected 3 fields in line 2, saw 4"),
        ("x,y\n1,2,a\n", {"header": True}, "f can't be read as a table: Expected 2 fields"),
        ("1,2,a\n\n3,x,b\n", {}, "f, line 3, column 2: 'x' is not a finite number"),
        ("1,2,a\n3,nan,b\n", {}, "f, line 2, column 2: 'nan' is not a finite number"),
        ("1,2,a\n3,-inf,b\n", {}, "f, line 2, column 2: '-inf' is not a finite number"),
        ("1,2,a\n3,1_0,b\n", {}, "f, line 2, column 2: '1_0' is not a finite number"),
        ("1,2,a\n3,,b\n", {}, "f, line 2, column 2: the value is missing"),
        ("1,2,a\n3,?,b\n", {"missing": "?"}, "f, line 2, column 2: the value is missing"),
        ("1,2,a\n3,4,\n", {}, "f, line 2: the label is missing"),
        ("x,y,z\n1,2,a\n", {}, r"line 1, column 1: 'x' is not a finite .*\(a header taken for"),
        ("x,x,z\n1,2,a\n", {"header": True}, "the header names the column 'x' twice"),
        ("x,kind\n1,a\n", {"header": True, "label": "knd"}, "no column 'knd' .*mean 'kind'"),
        ("1,2,a\n", {"label": 7}, r"f has no column 7 \(it has 3\)"),
        ("1,a\n", {"drop": [1]}, "f: no column is left for features"),
        ("x,1,a\n", {"encode": {"1": {"y": 1}}}, "'x' has no number in its encoding"),
        ("?,1,a\n", {"encode": {"1": "one-hot"}, "missing": "?"}, "there are missing values"),
        ("?,a\n?,b\n", {"missing": "?", "incomplete": "drop"}, "f has no complete row"),
        ("?,a\n?,b\n", {"missing": "?", "incomplete": "mean"}, "the value is missing"),
        ("1,é\n".encode("latin-1"), {}, "f is not encoded as UTF-8"),
        ('1,"a\n2,b\n', {}, "f can't be read as a table: "),
        (b"1,a\n\x00\n", {}, "f, line 2: a zero byte"),
    ],
)
def test_what_is_wrong_is_said(text, reading, said):
    with pytest.raises(DataError, match=said):
        parse(text, **reading)


CELLS = st.sampled_from(["1", "-2.5", "", "x", "nan", "1e400", '"', "é", "?", "3 4", "1_0", " 7 "])
ROWS = st.lists(st.lists(CELLS, min_size=1, max_size=4).map(",".join), max_size=5)


@pytest.mark.slow
@settings(max_examples=FUZZ, deadline=None)
@given(ROWS.map("\n".join), st.booleans(), st.sampled_from(["refuse", "drop", "mean"]))
def test_fuzz_a_right_shape_or_a_sentence(text, header, incomplete):
    try:
        X, labels = parse(text, header=header, incomplete=incomplete, missing="?")
    except DataError as error:
        sentence = str(error)
    else:
        sentence = "f"
        rows = [line.split(",") for line in text.split("\n") if line.strip()][int(header) :]
        if '"' not in text:
            assert len(X) == len(labels) <= len(rows)
            assert len(X) == len(rows) or incomplete == "drop"
        assert X.shape[1] >= 1
        assert np.isfinite(X).all()
    assert sentence.startswith("f")


@settings(max_examples=FUZZ, deadline=None)
@given(st.binary(max_size=60), st.sampled_from([",", ";", "whitespace"]))
def test_fuzz_any_bytes(content, separator):
    try:
        X, labels = parse(content, separator=separator)
    except DataError as error:
        sentence = str(error)
    else:
        sentence = "f"
        assert X.shape[0] == len(labels) > 0
        assert np.isfinite(X).all()
    assert sentence.startswith("f")


# ---------------------------------------------------------------- idx


def idx_bytes(array):
    sizes = b"".join(int(size).to_bytes(4, "big") for size in array.shape)
    return bytes([0, 0, 8, array.ndim]) + sizes + array.astype(np.uint8).tobytes()


def test_idx_arrays():
    for shape in ((5,), (3, 2), (2, 3, 4)):
        array = np.arange(np.prod(shape)).reshape(shape)
        np.testing.assert_array_equal(idx.read_idx(idx_bytes(array), "f"), array)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "f is not an idx file"),
        (b"\0\0\x0d\x01\0\0\0\0", "f is not an idx file of unsigned bytes"),
        (b"\0\0\x08\x02\0\0\0\x01", "f is cut off in its header"),
        (b"\0\0\x08\x00", "f is cut off in its header"),
        (
            idx_bytes(np.zeros((3, 2)))[:-1],
            r"f has 5 bytes of data, but its .*\(3 × 2\)",
        ),
        (idx_bytes(np.zeros((3, 2))) + b"x", "f has 7 bytes of data"),
        (b"\0\0\x08\x03" + b"\xff" * 12, "f has 0 bytes of data"),
    ],
)
def test_idx_files_that_are_wrong(content, said):
    with pytest.raises(DataError, match=said):
        idx.read_idx(content, "f")


@settings(max_examples=FUZZ, deadline=None)
@given(st.binary(max_size=40), st.booleans())
def test_fuzz_idx(content, right_start):
    content = (b"\0\0\x08" if right_start else b"") + content
    try:
        array = idx.read_idx(content, "f")
    except DataError as error:
        assert str(error).startswith("f ")  # noqa: PT017 (a sentence is one of two right answers)
    else:
        assert array.size == len(content) - 4 - 4 * array.ndim


# ---------------------------------------------------------------- a user's own file


def test_a_users_libsvm_file_and_table(tmp_path):
    (tmp_path / "my.svm").write_bytes(b"0 1:1\n1 2:2\n1 1:3\n")
    held = data.load_file(tmp_path / "my.svm")
    np.testing.assert_array_equal(held.X, [[1, 0], [0, 2], [3, 0]])
    np.testing.assert_array_equal(held.y, [-1, 1, 1])
    assert held.facts["classes"] == ["0", "1"]
    assert held.facts["source"] == "file"
    (tmp_path / "my.csv.gz").write_bytes(gzip.compress(b"kind,x\nno,1\nyes,2\nmaybe,3\n"))
    held = data.load_file(tmp_path / "my.csv.gz", label_column="kind")
    np.testing.assert_array_equal(held.y, [1, 2, 0])
    assert held.facts["classes"] == ["maybe", "no", "yes"]
    held = data.load_file(tmp_path / "my.csv.gz", label_column="kind", positive=("yes",))
    np.testing.assert_array_equal(held.y, [-1, 1, -1])


def test_a_users_file_that_changed_is_read_again(tmp_path):
    place = tmp_path / "my.csv"
    place.write_text("1,a\n2,b\n")
    first = data.load_file(place)
    assert data.load_file(place).sha256 == first.sha256
    place.write_text("1,a\n3,b\n")
    assert data.load_file(place).X[1, 0] == 3


@pytest.mark.parametrize(
    ("name", "content", "options", "said"),
    [
        ("my.svm", b"1 1:1\n1 2:2\n", {}, "my.svm has one class only: 1"),
        ("my.csv", b"1,a\n", {}, "my.csv has one class only: a"),
        ("my.svm", b"1\n-1\n", {}, "my.svm has labels but no features"),
        ("my.csv", b"x,kind\n1,a\n", {"label_column": "kid"}, "did you mean 'kind'"),
        ("my.csv.xz", b"1,a\n", {}, "my.csv.xz can't be uncompressed"),
        ("my.csv", b"1,a\n2,b\n", {"positive": ("c",)}, "my.csv has no class 'c'; its classes are"),
        ("my.csv", b"1,a\n2,b\n", {"incomplete": "guess"}, "incomplete must be"),
    ],
)
def test_a_users_file_that_is_wrong(tmp_path, name, content, options, said):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=said):
        data.load_file(tmp_path / name, **options)
    assert not list(paths.cache_dir().glob("prepared/*"))


def test_a_users_file_that_is_not_there(tmp_path):
    with pytest.raises(DataError, match=r"gone.csv can't be read: No such file"):
        data.load_file(tmp_path / "gone.csv")
    with pytest.raises(DataError, match="can't be read: Is a directory"):
        data.load_file(tmp_path)
