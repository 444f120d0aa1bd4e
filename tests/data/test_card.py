"""What the terminal shows of a data set, and files of kinds that the real ones come in."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest
from misbehaving_server import Server

from svmbench import data
from svmbench.base.errors import DataError, UnknownNameError
from svmbench.data import fetch


def test_describe_says_everything_that_can_be_printed():
    for name in data.names():
        card = data.dataset_card(name)
        assert json.loads(json.dumps(card)) == card
        for key in ("what", "derivation", "licence", "citation", "homepage", "where"):
            assert card[key], (name, key)
        assert all(isinstance(said, str) and said for said in card["papers"].values()), name


@pytest.mark.parametrize(
    ("name", "key", "said"),
    [
        ("planning-relax", "papers", "n_samples is 182, printed as 146 (the paper's 146"),
        ("cod-rna-train", "papers", "stands in for cod-rna"),
        ("covtype-sample", "papers", "stands in for covtype"),
        ("german.numer", "papers", "printed as german, counts as printed"),
        ("covtype", "papers", "printed as covertype, counts as printed, not seen yet"),
        ("mnist", "papers", "counts as printed"),
        ("gauss-1", "papers", "used without printed counts"),
        ("electrical", "notes", "LEAK"),
        ("adult", "derivation", "Column 2, 4, 6, 7, 8, 9, 10, 14: words numbered in alphabetical"),
        ("adult", "derivation", "A missing value (?) is a word like any other."),
        ("abalone", "derivation", "Column 1: M = 2, F = 1, I = 0."),
        ("hepatitis", "derivation", "A missing value (?) is a reason to leave the row out."),
        ("sensit", "derivation", "The pair of classes kept that has 57,650 rows together."),
        ("poker", "derivation", "Classes kept: 0, 2."),
        ("mnist-novelty-0", "derivation", "thinned to 0.1 rows for each normal one (seed 0)."),
        ("glass", "derivation", "Left out: column 1."),
        ("a9a", "files", "a9a (sha256 known)"),
        ("covtype", "files", "md5 of the official file known"),
        ("sensit", "files", "unverified until the first fetch"),
        ("cod-rna", "files", "mirror's copy only, since one second-hand copy was found"),
        ("cod-rna-train", "files", "sha256 known for the mirror's copy only, since"),
        ("separable", "derivation", "Made by separable(n_samples = 20000, seed = 0)."),
    ],
)
def test_describe_says_what_matters(name, key, said):
    assert said in str(data.dataset_card(name)[key])


def test_describe_leaves_prefixes_aside_and_suggests():
    assert data.dataset_card("a9a[:100]")["rows"] == 32_561
    with pytest.raises(UnknownNameError, match="did you mean 'covtype'"):
        data.dataset_card("covtyp")


def test_list_datasets_has_one_row_a_set(tmp_path):
    data.ensure("circle")
    rows = {row["dataset"]: row for row in data.list_datasets(mirror=str(tmp_path))}
    assert list(rows) == data.names()
    assert rows["circle"]["where"] == "cached"
    assert rows["spiral"]["where"] == "built-in"
    assert rows["a9a"]["where"] == "official"
    assert rows["pima"]["where"] == "nowhere"
    assert rows["a9a"]["papers"] == "smo, alsvm, sgdlssvm, cpsp"
    assert rows["sensit"]["classes"] == 2
    assert rows["sensit"]["density"] == ""
    assert rows["mnist"]["classes"] == 10


def test_check_name():
    data.check_dataset_name("ijcnn1+test[:90000]")
    with pytest.raises(UnknownNameError):
        data.check_dataset_name("ijcnn2")


# ---------------------------------------------------------------- kinds of files


def entry_text(files, *, reading="", n=3, features=2, counts="[1, 1, 1]", test=0, more=""):
    return f"""
[some]
origin = "here"
title = "Some"
task = "{"binary" if counts.count(",") == 1 else "multiclass"}"
files = [{files}]
reading = {{ {reading} }}
n_samples = {n}
n_features = {features}
counts = {counts}
n_test = {test}
{more}
"""


def idx(array):
    sizes = b"".join(int(size).to_bytes(4, "big") for size in array.shape)
    return bytes([0, 0, 8, array.ndim]) + sizes + array.astype(np.uint8).tobytes()


IMAGES = np.arange(12).reshape(3, 2, 2)
IDX = (
    '{ name = "img" }, { name = "lab", role = "labels" }, '
    '{ name = "img.t", part = "test" }, { name = "lab.t", part = "test", role = "labels" }'
)


def put(tmp_path, monkeypatch, **files):
    folder = tmp_path / "mirror"
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / name.replace("__", ".")).write_bytes(content)
    monkeypatch.setenv("SVMBENCH_MIRROR", str(folder))


def test_images_and_labels_in_files_of_their_own(use_registry, tmp_path, monkeypatch):
    put(
        tmp_path,
        monkeypatch,
        img=idx(IMAGES),
        lab__gz=gzip.compress(idx(np.array([7, 5, 9]))),
        img__t=idx(IMAGES[:1]),
        lab__t=idx(np.array([9])),
    )
    use_registry(entry_text(IDX, reading='format = "idx"', features=4, test=1))
    held = data.load("some")
    np.testing.assert_array_equal(held.X, IMAGES.reshape(3, 4))
    np.testing.assert_array_equal(held.y, [1, 0, 2])
    np.testing.assert_array_equal(held.y_test, [2])
    assert held.X.dtype == np.float64


def test_images_and_labels_that_do_not_fit_together(use_registry, tmp_path, monkeypatch):
    put(tmp_path, monkeypatch, img=idx(IMAGES), lab=idx(np.array([7, 5])))
    use_registry(entry_text(IDX.partition(', { name = "img.t')[0], reading='format = "idx"'))
    with pytest.raises(DataError, match="some: 3 images don't match 2 labels"):
        data.load("some")


@pytest.mark.parametrize("kind", ["libsvm", "table"])
def test_training_files_are_joined_in_order(use_registry, tmp_path, monkeypatch, kind):
    if kind == "libsvm":
        put(tmp_path, monkeypatch, one=b"1 1:1 2:5\n2 1:2\n", two=b"3 1:3 2:4\n")
    else:
        put(tmp_path, monkeypatch, one=b"1,5,1\n2,0,2\n", two=b"3,4,3\n")
    files = '{ name = "one" }, { name = "two" }'
    use_registry(entry_text(files, reading=f'format = "{kind}"'))
    held = data.load("some")
    np.testing.assert_array_equal(held.X, [[1, 5], [2, 0], [3, 4]])
    np.testing.assert_array_equal(held.y, [0, 1, 2])


def test_files_of_unequal_width_are_refused(use_registry, tmp_path, monkeypatch):
    put(tmp_path, monkeypatch, one=b"1,5,1\n2,0,2\n", two=b"3,4,5,3\n")
    files = '{ name = "one" }, { name = "two" }'
    use_registry(entry_text(files, reading='format = "table"'))
    with pytest.raises(DataError, match=r"one and two have different numbers of columns: \[3, 4\]"):
        data.load("some")


def test_an_official_file_that_is_laid_out_otherwise(use_registry, tmp_path, monkeypatch):
    """The mirror's copy has the label first and no header; UCI's table names its columns."""
    server = Server()
    server.files["/data.csv"] = b"id,x,y,class\n8,1,2,b\n9,3,4,a\n8,5,6,c\n"
    official = 'format = "table", header = true, label = "class", drop = ["id"]'
    files = (
        f'{{ name = "copy.csv", url = "{server.url}/data.csv", sha256 = ["{"0" * 64}"], '
        f'rebuilt = "of another layout", reading = {{ {official} }} }}'
    )
    use_registry(entry_text(files, reading='format = "table", label = "first"'))
    held = data.load("some")
    server.close()
    np.testing.assert_array_equal(held.X, [[1, 2], [3, 4], [5, 6]])
    np.testing.assert_array_equal(held.y, [1, 0, 2])
    assert held.facts["verified"] == "unverified"


def test_facts_say_which_verification_was_the_weakest(use_registry, tmp_path, monkeypatch):
    import hashlib

    put(tmp_path, monkeypatch, one=b"1 1:1 2:5\n2 1:2\n", two=b"3 1:3 2:4\n")
    known = hashlib.sha256(b"1 1:1 2:5\n2 1:2\n").hexdigest()
    use_registry(entry_text(f'{{ name = "one", sha256 = ["{known}"] }}, {{ name = "two" }}'))
    outcome = data.fetch_many(["some"])[0]
    assert outcome.facts["verified"] == "unverified"
    assert "counts checked, UNVERIFIED bytes" in outcome.sentence
    assert fetch._known_hashes() == {
        "mirror:two": hashlib.sha256(b"3 1:3 2:4\n").hexdigest(),
    }


def test_skipped_lines_of_one_file(use_registry, tmp_path, monkeypatch):
    put(tmp_path, monkeypatch, one=b"1,5,1\n2,0,2\n3,4,3\n", two=b"|comment\n1,1,3.\n")
    files = '{ name = "one" }, { name = "two", part = "test", skip_lines = 1 }'
    use_registry(entry_text(files, reading='format = "table", label_strip = "."', test=1))
    np.testing.assert_array_equal(data.load("some").y_test, [2])
