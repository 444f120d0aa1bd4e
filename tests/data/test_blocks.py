"""Files in blocks: the same rows as in memory, bounded memory, and a sentence for what is wrong."""

import bz2
import gzip
import lzma
import sys
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from svmbench import ALSVMBatch, data
from svmbench.base.errors import DataError, MissingPackageError
from svmbench.data import blocks as blocks_module
from svmbench.data import libsvm
from svmbench.data.text_blocks import libsvm_blocks


def rows(n=300, d=7, density=1.0, seed=0):
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(n, d)) * (draw.random((n, d)) < density)
    return X, np.where(X @ np.arange(1, d + 1) > 0, 1, -1)


def libsvm_text(X, y, number=repr):
    lines = (
        f"{label:+d} " + " ".join(f"{j + 1}:{number(float(v))}" for j, v in enumerate(row) if v)
        for row, label in zip(X, y, strict=True)
    )
    return "\n".join(lines).encode() + b"\n"


def csv_text(X, y, header=b""):
    lines = (",".join(map(repr, map(float, row))) for row in X)
    body = "\n".join(f"{line},{label}" for line, label in zip(lines, y, strict=True))
    return header + body.encode() + b"\n"


def together(blocks):
    """Return all blocks as one matrix and its labels."""
    parts = [(sp.csr_array(X), y) for X, y in blocks]
    width = max(X.shape[1] for X, _ in parts)
    for X, _ in parts:
        X.resize(X.shape[0], width)
    return sp.vstack([X for X, _ in parts]).toarray(), np.concatenate([y for _, y in parts])


def in_pieces(text, size):
    """Return LIBSVM text as pieces of whole lines of about so many bytes."""
    lines = text.splitlines(keepends=True)
    held = [b""]
    for line in lines:
        if len(held[-1]) >= size:
            held.append(b"")
        held[-1] += line
    return held


@pytest.mark.parametrize("density", [1.0, 0.3])
@pytest.mark.parametrize("number", [repr, "{:.3g}".format, "{:.6e}".format, "{:.25f}".format])
def test_libsvm_text_is_read_exactly_as_it_is_in_memory(density, number):
    X, y = rows(density=density)
    text = libsvm_text(X, y, number)
    whole, labels = libsvm.parse_libsvm(text)
    for size in (1, 700, 10**6):
        found = list(libsvm_blocks(in_pieces(text, size), "file", None))
        X_found, y_found = together(found)
        assert_array_equal(X_found, whole.toarray())
        assert_array_equal(y_found, labels)
        short = number(0.5) in (repr(0.5), "0.5", "5.000000e-01")
        dense = all(isinstance(part, np.ndarray) for part, _ in found)
        assert dense == (density == 1.0 and short)


def test_rows_may_grow_longer_and_shorter():
    lines = [
        f"{1 - 2 * (i % 2)} " + " ".join(f"{j + 1}:1" for j in range(i % 40)) for i in range(400)
    ]
    lines.sort(key=len)
    for order in (lines, lines[::-1]):
        text = "\n".join(order).encode() + b"\n"
        X, y = together(libsvm_blocks(in_pieces(text, 1500), "file", None))
        whole, labels = libsvm.parse_libsvm(text)
        assert_array_equal(X, whole.toarray())
        assert_array_equal(y, labels)


@settings(max_examples=300, deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(1, 25))
def test_every_number_is_the_nearest(value, digits):
    for text in (repr(value), f"{value:.{digits}g}", f"{value:.{digits}e}"):
        line, expected = f"1 2:1 3:{text}\n".encode(), float(text)
        if np.isfinite(expected):
            ((X, _),) = libsvm_blocks([line], "file", 3)
            assert X[0, 2] == expected
        else:
            with pytest.raises(DataError, match="is not a finite number"):
                list(libsvm_blocks([line], "file", None))


@settings(max_examples=200, deadline=None)
@example("\r0\n:")
@given(
    st.text(alphabet=list("0123456789.:+-eE# \t\r\nqnaif_"), max_size=60)
    | st.lists(st.sampled_from(["1 1:2", "-1 2:.5 3:4", "", "#x", "1", "1 2:3\r", " 1\t1:1 "])).map(
        "\n".join
    )
)
def test_whatever_the_text_both_readers_agree(text):
    content = text.encode()

    def read(reader):
        try:
            return reader()
        except DataError as error:
            return str(error)

    whole = read(lambda: libsvm.parse_libsvm(content, "file"))
    ended = content if content.endswith(b"\n") else content + b"\n"
    found = read(lambda: list(libsvm_blocks([ended], "file", None)))
    if isinstance(whole, str) or isinstance(found, str):
        assert whole == found
    else:
        X, y = together(found)
        expected = whole[0].toarray()
        assert_array_equal(X[:, : expected.shape[1]], expected)
        assert not X[:, expected.shape[1] :].any()  # written zeros have a place, but no value
        assert_array_equal(y, whole[1])


@pytest.mark.parametrize(
    ("suffix", "pack"),
    [("", bytes), (".gz", gzip.compress), (".xz", lzma.compress), (".bz2", bz2.compress)],
)
def test_a_file_gives_the_model_that_it_gives_in_memory(tmp_path, suffix, pack, monkeypatch):
    monkeypatch.setattr(blocks_module, "TEXT_PIECE_BYTES", 1000)
    X, y = rows(density=0.4)
    path = tmp_path / f"rows.txt{suffix}"
    path.write_bytes(pack(libsvm_text(X, y)))
    told = []
    blocks = data.open_blocks(path, on_progress=lambda *sizes: told.append(sizes))
    whole = data.load_file(path)
    model, known = ALSVMBatch().fit_blocks(blocks), ALSVMBatch().fit(whole.X, whole.y)
    assert np.abs(model.coef_ - known.coef_).max() < 1e-12
    assert told[-1] == (path.stat().st_size, path.stat().st_size)
    assert told == sorted(told)
    assert len(list(blocks)) == len(list(blocks)) > 10


@pytest.mark.parametrize("where", ["first", "last", "kind", 2])
@pytest.mark.parametrize("words", [(-1, 1), ("no", "yes")])
def test_tables(tmp_path, where, words, monkeypatch):
    monkeypatch.setattr(blocks_module, "TEXT_PIECE_BYTES", 1000)
    X, y = rows()
    place = {"first": 0, "last": 7, "kind": 4, 2: 1}[where]
    columns = np.insert(
        X.astype(object), place, [str(words[int(label > 0)]) for label in y], axis=1
    )
    lines = [",".join(map(str, row)) for row in columns]
    if where == "kind":
        lines.insert(0, "a,b,c,d,kind,e,f,g")
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(lines[:90]) + "\n\n" + "\n".join(lines[90:]))
    found, labels = zip(*data.open_blocks(path, label_column=where), strict=True)
    assert len(found) > 10
    assert_allclose(np.vstack(found), X, rtol=1e-14)
    assert_array_equal(np.concatenate(labels), np.array(words)[(y > 0).astype(int)])


def parquet(path, X, y, **more):
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {f"x{j}": column for j, column in enumerate(X.T)} | more
    pq.write_table(pa.table({**columns, "label": y}), path, row_group_size=100)
    return path


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int8])
def test_parquet(tmp_path, kind):
    X, y = rows(1000)
    X = (10 * X).astype(kind)
    path = parquet(tmp_path / "rows.parquet", X, y)
    told = []
    blocks = data.open_blocks(path, on_progress=lambda *sizes: told.append(sizes))
    found, labels = zip(*blocks, strict=True)
    assert_array_equal(np.vstack(found), X)
    assert_array_equal(np.concatenate(labels), y)
    assert told[-1] == (path.stat().st_size,) * 2
    by_name = data.open_blocks(path, label_column="label")
    assert np.all(ALSVMBatch().fit_blocks(by_name).coef_ == ALSVMBatch().fit_blocks(blocks).coef_)


def said_of(path, content, **options):
    path.write_bytes(content)
    with pytest.raises(DataError) as raised:
        list(data.open_blocks(path, **options))
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_bad_text_is_one_sentence_with_its_line(tmp_path, monkeypatch):
    monkeypatch.setattr(blocks_module, "TEXT_PIECE_BYTES", 100)
    path, good = tmp_path / "bad.txt", b"1 1:0.5 2:1\n-1 2:3\n\n# nothing\n" * 25
    for line, said in (
        (b"1 1:0.5 2:", "the value '' is not a finite number"),
        (b"1 1:nan", "the value 'nan' is not a finite number"),
        (b"1 2:1 1:1", "the index 1 after 2 is not ascending"),
        (b"1 0:1", "the index '0' is not in 1"),
        (b"yes 1:1", "the label 'yes' is not a finite number"),
        (b"1 1;2", "'1;2' is not of the form index:value"),
        (b"\x00\x00", "is not a finite number"),
    ):
        assert "line 101" in (found := said_of(path, good + line + b"\n" + good)), found
        assert said in found
    assert "line 101, column 3: the index 3 is above the last feature, 2" in said_of(
        path, good + b"1 3:1\n", n_features=2
    )
    assert said_of(path, b"# nothing\n") == "bad.txt has no data rows"
    assert "UTF-16" in said_of(path, "1 1:1\n".encode("utf-16"))
    monkeypatch.setattr(libsvm, "MAX_LIBSVM_LINE_BYTES", 500)
    assert "a line of more than" in said_of(path, good + b"1 " * 400)


def test_a_file_that_is_cut_off_is_told(tmp_path):
    X, y = rows(2000)
    packed = gzip.compress(libsvm_text(X, y))
    assert "cut off" in said_of(tmp_path / "cut.gz", packed[: len(packed) // 2])
    packed = lzma.compress(libsvm_text(X, y))
    assert "cut off" in said_of(tmp_path / "cut.xz", packed[: len(packed) // 2])
    assert "can't be read" in said_of(tmp_path / "cut.bz2", b"no bz2 at all")
    path = parquet(tmp_path / "whole.parquet", X, y)
    cut = path.read_bytes()[: path.stat().st_size // 2]
    assert "cut.parquet is not a complete Parquet file" in said_of(tmp_path / "cut.parquet", cut)
    with pytest.raises(DataError, match="no such file"):
        data.open_blocks(tmp_path / "missing.txt")
    with pytest.raises(DataError, match="no regular file"):
        data.open_blocks(tmp_path)


def test_bad_tables_are_one_sentence_with_their_line(tmp_path, monkeypatch):
    monkeypatch.setattr(blocks_module, "TEXT_PIECE_BYTES", 100)
    path, good = tmp_path / "bad.csv", b"0.5,1,a\n2,3,b\n" * 20
    for line, said in (
        (b"1,x,a", "line 41, column 2: 'x' is not a finite number"),
        (b"1,nan,a", "line 41, column 2: 'nan' is not a finite number"),
        (b"1,,a", "line 41, column 2: the value is missing"),
        (b"1,2,", "line 41: the label is missing"),
        (b"1,a", "line 41"),
        (b"1,2,3,a", "line 41"),
    ):
        assert said in (found := said_of(path, good + line + b"\n" + good)), found
    assert "no column 'kind'" in said_of(path, b"x,y,z\n" + good, label_column="kind")
    named = b"x,y,kind\n" + good
    assert "line 42" in said_of(path, named + b"1,q,a\n", label_column="kind")
    assert "has no data rows" in said_of(path, b"x,y,kind\n", label_column="kind")
    assert "2 features instead of 5" in said_of(path, good, n_features=5)


def test_bad_parquet_is_one_sentence(tmp_path):
    X, y = rows(500)
    X[321, 2] = np.nan
    path = parquet(tmp_path / "bad.parquet", X, y)
    with pytest.raises(DataError, match=r"row 322, column 'x2': nan is not a finite number"):
        list(data.open_blocks(path))
    path = parquet(path, X[:, :1], np.where(np.arange(500) == 7, None, y))
    with pytest.raises(DataError, match=r"row 8, column 'label': the value is missing"):
        list(data.open_blocks(path))
    path = parquet(path, X[:, :1], y, word=np.array(["a"] * 500))
    with pytest.raises(DataError, match=r"column 'word': string is not a numeric type"):
        list(data.open_blocks(path))
    with pytest.raises(DataError, match=r"no column 'labels' .*did you mean 'label'"):
        list(data.open_blocks(path, label_column="labels"))
    with pytest.raises(DataError, match="2 features, not 3"):
        list(data.open_blocks(path, label_column="word", n_features=3))


def test_without_pyarrow_the_command_that_installs_it_is_told(tmp_path, monkeypatch):
    path = parquet(tmp_path / "rows.parquet", *rows(10))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(MissingPackageError, match=r"pip install '.\[blocks\]'"):
        data.open_blocks(path)


def test_a_third_label_is_told_with_where_it_is(tmp_path):
    path = tmp_path / "three.txt"
    path.write_bytes(b"1 1:1\n2 1:2\n3 1:3\n")
    with pytest.raises(ValueError, match=r"the label 3\.0 is a third beside 1\.0, 2\.0"):
        ALSVMBatch().fit_blocks(data.open_blocks(path))


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["txt", "csv", "parquet"])
def test_memory_does_not_grow_with_the_file(tmp_path, ending, monkeypatch):
    monkeypatch.setattr(blocks_module, "TEXT_PIECE_BYTES", 1 << 18)
    X, y = rows(400, 60)
    path = tmp_path / f"rows.{ending}"
    peaks = []
    for times in (40, 160) if ending == "parquet" else (10, 40):
        many = np.tile(X, (times, 1)), np.tile(y, times)
        if ending == "parquet":
            parquet(path, *many)
        else:
            text = libsvm_text if ending == "txt" else csv_text
            path.write_bytes(text(X, y) * times)
        del many
        tracemalloc.start()
        ALSVMBatch().fit_blocks(data.open_blocks(path))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + (2 << 20) < 60 << 20
    assert path.stat().st_size > 5 << 20
