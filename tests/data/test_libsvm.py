"""The LIBSVM parser: right rows, sentences with line and column, and nothing in between."""

from __future__ import annotations

import io
import math
import os
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file

from svmbench.base.errors import DataError
from svmbench.data import archives, libsvm

FUZZ = int(os.environ.get("SVMBENCH_FUZZ", "0")) or 1_000


def test_rows_labels_and_written_zeros():
    X, y = libsvm.parse_libsvm(b"+1 1:0.5 3:-2e1\n-1 2:0 4:7 \n1\n")
    assert X.shape == (3, 4)
    np.testing.assert_array_equal(X.toarray(), [[0.5, 0, -20, 0], [0, 0, 0, 7], [0, 0, 0, 0]])
    np.testing.assert_array_equal(y, [1, -1, 1])
    assert X.nnz == 3  # the written zero is not kept
    assert X.indices.dtype == np.int32
    assert X.dtype == np.float64


@pytest.mark.parametrize(
    "text",
    [
        b"1 1:1\r\n-1 2:2\r\n",
        b"1 1:1\n-1 2:2",
        b"\xef\xbb\xbf1 1:1\n-1 2:2\n",
        b"1\t1:1\n\n   \n-1  2:2\n\n",
        b"# a comment\n1 1:1 # another: with 3:colon\n-1 2:2\n",
        b"1 1:1\r-1 2:2\r",
    ],
)
def test_line_ends_blanks_comments_and_a_byte_order_mark_change_nothing(text):
    X, y = libsvm.parse_libsvm(text)
    np.testing.assert_array_equal(X.toarray(), [[1, 0], [0, 2]])
    np.testing.assert_array_equal(y, [1, -1])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "f is empty"),
        (b" \n\n", "f is empty"),
        (b"# nothing\n", "f has no data rows"),
        (b"1 1:1\n1 1;2\n", "f, line 2, column 3: '1;2' is not of the form index:value"),
        (b"1 1:1\n1 1:2 x:3\n", "f, line 2, column 7: 'x:3' is not of the form index:value"),
        (b"1 1:1 2:\n", "f, line 1, column 7: the value '' is not a finite number"),
        (b"1 1:1:2\n", "f, line 1, column 3: the value '1:2' is not a finite number"),
        (b"1 1:nan\n", "f, line 1, column 3: the value 'nan' is not a finite number"),
        (b"1 1:1\n1 3:inf\n", "f, line 2, column 3: the value 'inf' is not a finite number"),
        (b"1 1:1e999\n", "f, line 1, column 3: the value '1e999' is not a finite number"),
        (b"1 1:1_0\n", "f, line 1, column 3: the value '1_0' is not a finite number"),
        (b"1 0:1\n", "f, line 1, column 3: the index '0' is not in 1 …"),
        (b"1 -1:1\n", "f, line 1, column 3: '-1:1' is not of the form index:value"),
        (b"1 4294967296:1\n", "f, line 1, column 3: the index '4294967296' is not in 1 …"),
        (b"1 " + b"9" * 400 + b":1\n", "f, line 1, column 3: the index '9999"),
        (b"1 2:1 1:1\n", "f, line 1, column 7: the index 1 after 2 is not ascending"),
        (b"1 2:1 2:1\n", "f, line 1, column 7: the index 2 occurs twice"),
        (b"1 1:1\nyes 1:1\n", "f, line 2, column 1: the label 'yes' is not a finite number"),
        (b"nan 1:1\n", "f, line 1, column 1: the label 'nan' is not a finite number"),
        (b"label f1 f2\n1 1:1\n", r"the label 'label' is not a finite number \(a header\?"),
        (b"1 1:1\n1:1 2:1\n", "f, line 2, column 1: the row has no label; it begins with '1:1'"),
        (b"1 qid:3 1:1\n", "f, line 1, column 3: 'qid:3' is not of the form index:value"),
        (b"1 1:1\n\x00\n", "f, line 2: a zero byte; this is not a text file"),
        ("1 1:1\n".encode("utf-16"), "f is not encoded as UTF-8"),
        (b"\xe9t\xe9 1:1\n", "line 1, column 1: the label"),
    ],
)
def test_what_is_wrong_is_said_with_line_and_column(text, said):
    with pytest.raises(DataError, match=said):
        libsvm.parse_libsvm(text, "f")


def test_indices_out_of_order_are_sorted_on_request():
    X, _ = libsvm.parse_libsvm(b"1 3:3 1:1\n-1 2:2\n", sort_indices=True)
    np.testing.assert_array_equal(X.toarray(), [[1, 0, 3], [0, 2, 0]])
    assert X.has_sorted_indices
    with pytest.raises(DataError, match="the index 3 occurs twice"):
        libsvm.parse_libsvm(b"1 3:3 1:1 3:4\n", sort_indices=True)


def test_the_slow_pass_agrees_with_the_fast_one():
    rng = np.random.default_rng(0)
    rows = []
    for _ in range(50):
        columns = np.sort(rng.choice(20, rng.integers(0, 8), replace=False)) + 1
        pairs = [f"{column}:{float(rng.normal())!r}" for column in columns]
        rows.append(" ".join([str(rng.choice([-1, 1])), *pairs]))
    text = "\n".join(rows).encode()
    fast, slow = libsvm._fast(text), libsvm.read_slowly(text, "f")
    assert fast is not None
    assert (fast[0] != slow[0]).nnz == 0
    np.testing.assert_array_equal(fast[1], slow[1])


def _reference(line: str) -> tuple[float, dict[int, float]] | None:
    """Read one line by the format's definition alone; None if it is not in the language."""

    def number(token: str) -> float | None:
        if not token or not token.isascii() or any(c not in "0123456789+-.eE" for c in token):
            return None
        try:
            value = float(token)
        except ValueError:
            return None
        return value if math.isfinite(value) else None

    label, *pairs = line.replace("\t", " ").split()
    if number(label) is None:
        return None
    row: dict[int, float] = {}
    for pair in pairs:
        index, colon, value = pair.partition(":")
        digits = index.removeprefix("+")
        if not colon or not digits.isascii() or not digits.isdigit() or number(value) is None:
            return None
        place = int(digits)
        if not 1 <= place <= 2**31 - 1 or (row and place <= max(row)):
            return None
        row[place] = number(value)
    return number(label), row


def _parsed(content: bytes):
    """Return what the parser returns, or its sentence, which must name the file."""
    try:
        return libsvm.parse_libsvm(content, "f")
    except DataError as error:
        sentence = str(error)
    assert re.match(r"f(,| is | has )", sentence), sentence
    assert "\n" not in sentence
    return sentence


PIECES = st.sampled_from(
    ["1", "-1", "+1", "0", "2:3", "1:1", "3:-4.5", "7:1e3", ":", "1:", ":1", "nan", "inf", "1e999",
     "2147483647:1", "2147483648:1", "1_0", "1:1_0", "qid:1", "#", "x", "é", "٣", "1.5.2", "--1",
     "0:1", "+2:5", "1:+2", "1:.5", "1:5.", "1e:1", "0x1", "1:0x1", "1,5", "12:0", "\x0b", "\x0c"]
)  # fmt: skip
LINES = st.lists(PIECES, max_size=5).map(" ".join)
TEXTS = st.lists(LINES, max_size=4).map("\n".join)


@pytest.mark.slow
@settings(max_examples=FUZZ, deadline=None)
@given(TEXTS)
@example("1 1:1\n\n-1 2:2")
@example("1 #")
def test_fuzz_a_right_answer_or_a_sentence(text):
    lines = [line.split("#", 1)[0].strip(" \t") for line in text.split("\n")]
    lines = [line for line in lines if line]
    expected = None
    if lines and not any(c in line for line in lines for c in "\x0b\x0c"):
        rows = [_reference(line) for line in lines]
        if all(row is not None for row in rows):
            expected = rows
    found = _parsed(text.encode())
    assert isinstance(found, str) == (expected is None), found
    if isinstance(found, str) or expected is None:
        return
    X, y = found
    assert X.shape == (len(lines), max((max(row, default=0) for _, row in expected), default=0))
    np.testing.assert_array_equal(y, [label for label, _ in expected])
    for i, (_, row) in enumerate(expected):
        begin, end = X.indptr[i], X.indptr[i + 1]
        held = dict(zip(X.indices[begin:end] + 1, X.data[begin:end], strict=True))
        assert held == {c: v for c, v in row.items() if v != 0}


@pytest.mark.slow
@settings(max_examples=FUZZ, deadline=None)
@given(st.binary(max_size=60))
def test_fuzz_any_bytes(content):
    found = _parsed(content)
    if not isinstance(found, str):
        X, y = found
        assert X.shape[0] == len(y) > 0
        assert np.isfinite(X.data).all()
        assert np.isfinite(y).all()


@pytest.mark.slow
@settings(max_examples=FUZZ, deadline=None)
@given(st.data())
def test_fuzz_a_damaged_file_is_read_whole_or_refused(data):
    """Overwriting, cutting and doubling bytes of a right file never gives a wrong shape."""
    right = b"+1 1:0.25 7:3\n-1 2:-1.5 3:4e-3\n+1 5:1\n"
    damaged = bytearray(right)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(damaged) - 1))
        how = data.draw(st.sampled_from(["set", "cut", "double"]))
        if how == "set":
            damaged[at] = data.draw(st.integers(0, 255))
        elif how == "cut" and len(damaged) > 1:
            del damaged[at]
        else:
            damaged.insert(at, damaged[at])
    found = _parsed(bytes(damaged))
    if isinstance(found, str):
        return
    X, y = found
    lines = bytes(damaged).removeprefix(b"\xef\xbb\xbf").replace(b"\r", b"\n").split(b"\n")
    kept = [line for line in lines if line.split(b"#", 1)[0].strip(b" \t")]
    assert len(y) == X.shape[0] == len(kept)


LIBSVM_FILES = (
    sorted(
        place
        for place in Path(os.environ["SVMBENCH_MIRROR"]).joinpath("libsvm").iterdir()
        if not any(word in place.name for word in ("INDEX", "idx", "zip.", "shuttle", "poker"))
    )
    if os.environ.get("SVMBENCH_MIRROR")
    else []
)


@pytest.mark.mirror
def test_there_are_mirror_files_to_compare():
    assert len(LIBSVM_FILES) > 40


@pytest.mark.slow
@pytest.mark.mirror
@pytest.mark.parametrize("place", LIBSVM_FILES, ids=lambda place: place.name)
def test_agrees_with_scikit_learn_on_every_mirror_file(place):
    content = archives.decompressed(place.read_bytes(), place.name)
    X, y = libsvm.parse_libsvm(content, place.name)
    theirs, labels = load_svmlight_file(io.BytesIO(content), zero_based=False)
    theirs.eliminate_zeros()
    np.testing.assert_array_equal(y, labels)
    np.testing.assert_array_equal(X.indptr, theirs.indptr)
    np.testing.assert_array_equal(X.indices, theirs.indices)
    np.testing.assert_array_equal(X.data, theirs.data)
