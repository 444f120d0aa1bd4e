"""Columns, rows and labels that aren't what they seem: left out and told, or refused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from svmbench import data, load
from svmbench.base.errors import DataError
from svmbench.data import card, frames

N = 60


def noise() -> pd.DataFrame:
    """Return rows of noise, sorted by class, so that their numbers alone tell the class."""
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"a": random.normal(size=N), "b": random.normal(size=N)})
    frame["y"] = np.repeat([0, 1], N // 2)
    return frame


def filtered() -> pd.DataFrame:
    """Return rows of a larger frame; they keep its index."""
    whole = pd.concat([noise(), noise()], ignore_index=True)
    return whole[np.arange(2 * N) % 2 == 0].sort_values("y", kind="stable")


def loaded_all_ways(path: Path, label: str) -> list[tuple[Any, Any, Any]]:
    """Return inputs and labels by each reader, and what it says."""
    found = []
    named: list[Any] = [label]
    if path.suffix == ".parquet":
        named.append("last")
    for column in named:
        for open_file in (load, data.load_file):
            if path.suffix != ".parquet" and open_file is data.load_file:
                open_file = lambda p, c: data.load_file(p, c, header=True)  # noqa: E731
            with pytest.warns(UserWarning, match="left out") as said:
                held = (
                    load(path, label_column=column)
                    if open_file is load
                    else open_file(path, column)
                )
            found.append((held.X, held.y, str(said[0].message)))
            with pytest.warns(UserWarning, match="left out"):  # from the cache, too
                load(path, label_column=column)
        blocks = list(data.open_blocks(path, label_column=column))
        X, y = np.vstack([X for X, _ in blocks]), np.concatenate([y for _, y in blocks])
        found.append((X, np.where(y == 1, 1, -1), ""))
        scanned = data.scan(path, label_column=column)
        assert scanned.X.shape[1] == X.shape[1]
        np.testing.assert_array_equal(scanned.y, found[-1][1])
    return found


@pytest.mark.parametrize("kind", ["filtered", "named", "without metadata"])
def test_the_index_of_a_frame_in_a_parquet_file_is_no_feature(tmp_path: Path, kind: str) -> None:
    frame = filtered()
    path = tmp_path / "x.parquet"
    if kind == "named":
        frame.index.name = "id"
    if kind == "without metadata":
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.Table.from_pandas(frame).replace_schema_metadata(None), path)
    else:
        frame.to_parquet(path)
    for X, y, said in loaded_all_ways(path, "y"):
        np.testing.assert_array_equal(X, frame[["a", "b"]].to_numpy())
        np.testing.assert_array_equal(y, np.where(frame["y"] == 1, 1, -1))
        assert not said or ("id" if kind == "named" else "__index_level_0__") in said
    assert "left out" in str(card.file_card(str(path)))


def test_a_label_that_is_the_index_of_a_parquet_file_is_found(tmp_path: Path) -> None:
    frame = noise()
    frame.set_index("y").to_parquet(tmp_path / "x.parquet")
    held = load(tmp_path / "x.parquet", label_column="y")
    np.testing.assert_array_equal(held.X, frame[["a", "b"]].to_numpy())
    np.testing.assert_array_equal(held.y, np.where(frame["y"] == 1, 1, -1))


def test_words_of_a_parquet_file_are_encoded(tmp_path: Path) -> None:
    frame = noise().assign(plan=["p", "q", "r"] * (N // 3))
    frame.to_parquet(tmp_path / "x.parquet", index=False)
    frame.to_csv(tmp_path / "x.csv", index=False)
    one, two = (load(tmp_path / f"x.{e}", label_column="y") for e in ("parquet", "csv"))
    np.testing.assert_array_equal(one.X, two.X)
    np.testing.assert_array_equal(one.y, two.y)


def test_saved_row_names_of_a_table_are_no_feature(tmp_path: Path) -> None:
    frame = filtered()
    path = tmp_path / "x.csv"
    frame.to_csv(path)
    for X, y, said in loaded_all_ways(path, "y"):
        np.testing.assert_array_equal(X, frame[["a", "b"]].to_numpy())
        np.testing.assert_array_equal(y, np.where(frame["y"] == 1, 1, -1))
        assert not said or "saved row names" in said
    X, _ = frames.read_frame(path, "y")
    assert "saved row names" in " ".join(frames.encoder(X)[1])
    assert "left out" in str(card.file_card(str(path), "y"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,y\n1,2,0\n3,4,1\n", "more columns than the header"),
        ('"a","y"\n"1",5,0\n"2",6,1\n', "more columns than the header"),  # R's write.table
        ("a,y,\n1,0,5,\n2,1,6,\n", "more columns than the header"),
        ("a,y,y\n1,0,1\n2,1,0\n", "the column 'y' twice"),
        ("a,b,y\n1,2,0\n3\n4,5,1\n", "line 3: the row has fewer columns"),
        ("# of 2026\na,b,y\n1,2,0\n3,4,1\n", "line 1: a comment"),
        ("a,b,y\n# a comment\n1,2,0\n3,4,1\n", "line 2: a comment"),
        ("a,b,y\n1,2,0\n3,4,1\na,b,y\n1,2,0\n", "line 4: the row repeats the header"),
    ],
)
def test_what_is_no_row_or_no_number_is_refused_with_its_line(
    tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "x.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=said):
        load(path, label_column="y", impute=True)
    with pytest.raises(DataError):
        data.load_file(path, "y")
    with pytest.raises(DataError):
        list(data.open_blocks(path, label_column="y"))


def test_whole_numbers_beyond_64_bits_are_no_words(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(f"a,y\n1,0\n{10**25},1\n")
    with pytest.warns(UserWarning, match=r"column a: '10{25}' is read as 1e\+25"):
        assert load(path, label_column="y").X[1, 0] == 1e25


def test_separators_after_the_last_column_are_no_column(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a,y,,\n" + "1,0,,\n2,1,,\n" * 5)
    with pytest.warns(UserWarning, match="left out"):
        assert load(path, label_column="y").X.shape == (10, 1)


LABELS = {
    "large": ("9007199254740992", "9007199254740993"),
    "underscore": ("1_0", "10"),
    "exponent": ("1E2", "100"),
    "zeros": ("007", "7"),
}


@pytest.mark.parametrize("name", LABELS)
def test_labels_that_are_one_number_are_as_many_classes_as_texts(tmp_path: Path, name: str) -> None:
    words = LABELS[name]
    path = tmp_path / "x.csv"
    rows = [(i, words[i % 2]) for i in range(40)]
    path.write_text("a,y\n" + "".join(f"{a},{y}\n" for a, y in rows))
    for source in (
        load(path, label_column="y"),
        data.load_file(path, "y"),
        data.scan(path, label_column="y"),
    ):
        assert sorted(source.facts["classes"]) == sorted(words)
        plus = source.facts["classes"][1]
        np.testing.assert_array_equal(source.y, [1 if y == plus else -1 for _, y in rows])
    if "_" not in words[0]:
        _, y = frames.read_frame(path, "y")
        assert sorted(y.unique()) == sorted(words)


def test_a_number_written_in_several_ways_is_one_class(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a,y\n1,+1\n2,1.0\n3,1 \n4,-1\n5,-1.00\n6,-1.00000000000000000e+000\n")
    for source in (load(path, label_column="y"), data.scan(path, label_column="y")):
        assert source.facts["classes"] == ["-1", "1"]
        assert source.y.tolist() == [1, 1, 1, -1, -1, -1]


def test_large_labels_of_libsvm_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.svm"
    path.write_text("9007199254740992 1:1\n9007199254740993 1:2\n")
    for read in (data.load_file, lambda p: list(data.open_blocks(p))):
        with pytest.raises(DataError, match="not a number between"):
            read(path)


@pytest.mark.parametrize("word", ["nan", "NaN", "NA", "NULL", "#N/A"])
def test_a_word_for_a_missing_label_is_no_class(tmp_path: Path, word: str) -> None:
    path = tmp_path / "x.csv"
    path.write_text(f"a,y\n1,0\n2,1\n3,{word}\n")
    for read in (
        lambda: load(path, label_column="y"),
        lambda: data.load_file(path, "y"),
        lambda: list(data.open_blocks(path, label_column="y")),
    ):
        with pytest.raises(DataError, match="line 4: the label is missing"):
            read()
    pd.DataFrame({"a": [1.0, 2.0], "y": ["0", word]}).to_parquet(tmp_path / "x.parquet")
    with pytest.raises(DataError, match="missing"):
        load(tmp_path / "x.parquet")


def test_the_order_of_classes_is_the_same_in_every_process() -> None:
    code = (
        "from svmbench.data.derive import class_order;"
        "print(class_order({'nan', '2', '10'}), class_order({'7', '007', '07', '5'}))"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
        ).stdout
        for seed in range(4)
    }
    assert said == {"['10', '2', 'nan'] ['5', '007', '07', '7']\n"}


@pytest.mark.parametrize("ending", [".CSV", ".csv.GZ", ".TSV", ".Tsv.Xz", ".Parquet"])
def test_endings_in_capitals_are_endings(tmp_path: Path, ending: str) -> None:
    import bz2  # noqa: F401
    import gzip
    import lzma

    frame = noise()
    path = tmp_path / f"x{ending}"
    if ending == ".Parquet":
        frame.to_parquet(path, index=False)
    else:
        text = frame.to_csv(index=False, sep="\t" if "tsv" in ending.lower() else ",").encode()
        pack = {"gz": gzip.compress, "xz": lzma.compress}.get(ending[-2:].lower(), lambda x: x)
        path.write_bytes(pack(text))
    for held in (load(path, label_column="y"), data.load_file(path, "y")):
        np.testing.assert_array_equal(held.X, frame[["a", "b"]].to_numpy())
    (X, _), *_ = data.open_blocks(path, label_column="y")
    np.testing.assert_array_equal(X, frame[["a", "b"]].to_numpy())
