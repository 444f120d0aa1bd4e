"""From a name to mapped arrays: derivations, the cache and its damage, counts, prefixes, parts."""

from __future__ import annotations

import json
import multiprocessing
import os
import time

import numpy as np
import pytest
import scipy.sparse as sp

from svmbench import data
from svmbench.base import paths
from svmbench.base.errors import DataError
from svmbench.data import derive as derivation
from svmbench.data import prepare, store
from svmbench.data.derive import LabelledRows, derive
from svmbench.data.entries import Derivation, Novelty

TRAIN = b"1 1:1 3:2\n2 2:5\n7 1:4\n2 1:6 2:7\n"
TEST = b"2 1:9\n1 2:8\n"


def write_set(use_registry, monkeypatch, tmp_path, *, more="", n=4, counts="[1, 2, 1]", test=True):
    folder = tmp_path / "files"
    folder.mkdir(exist_ok=True)
    (folder / "some.svm").write_bytes(TRAIN)
    (folder / "some.t").write_bytes(TEST)
    monkeypatch.setenv("SVMBENCH_MIRROR", str(folder))
    task = "binary" if counts.count(",") == 1 else "multiclass"
    parts = ', { name = "some.t", part = "test" }' if test else ""
    use_registry(f"""
[some]
origin = "here"
title = "Some"
task = "{task}"
files = [{{ name = "some.svm" }}{parts}]
n_samples = {n}
n_features = 3
counts = {counts}
n_test = {2 if test else 0}
{more}
""")


def test_load_keeps_its_promises(use_registry, monkeypatch, tmp_path):
    write_set(use_registry, monkeypatch, tmp_path)
    held = data.load("some")
    np.testing.assert_array_equal(held.X, [[1, 0, 2], [0, 5, 0], [4, 0, 0], [6, 7, 0]])
    np.testing.assert_array_equal(held.y, [0, 1, 2, 1])
    np.testing.assert_array_equal(held.X_test, [[9, 0, 0], [0, 8, 0]])
    np.testing.assert_array_equal(held.y_test, [1, 0])
    assert held.X.dtype == held.X_test.dtype == np.float64
    assert held.y.dtype == held.y_test.dtype == np.int64
    assert held.X.flags.c_contiguous
    assert isinstance(held.X, np.memmap)
    assert not held.X.flags.writeable
    assert held.facts["classes"] == ["1", "2", "7"]
    assert held.facts["counts"] == [1, 2, 1]
    assert held.facts["test_counts"] == [1, 1, 0]
    assert json.loads(json.dumps(held.facts)) == held.facts
    assert held.sha256 == held.facts["sha256"]
    assert len(held.sha256) == 64


def test_sparse_arrays_are_mapped_and_canonical():
    held = data.load("synthetic-sparse-50k-300")
    assert isinstance(held.X, sp.csr_array)
    assert held.X.indices.dtype == held.X.indptr.dtype == np.int32
    assert not held.X.data.flags.writeable
    base = held.X.data
    while base.base is not None and not isinstance(base, np.memmap):
        base = base.base
    assert isinstance(base, np.memmap)
    check = sp.csr_array((held.X.data, held.X.indices, held.X.indptr), shape=held.X.shape)
    assert check.has_canonical_format  # computed anew, not taken from the flag
    started = time.process_time()
    data.load("synthetic-sparse-50k-300")
    assert time.process_time() - started < 0.1


def test_a_prefix_is_a_view_of_the_first_rows():
    whole, few = data.load("noise"), data.load("noise[:500]")
    assert few.X.shape == (500, 300)
    np.testing.assert_array_equal(few.X.toarray(), whole.X[:500].toarray())
    np.testing.assert_array_equal(few.y, whole.y[:500])
    for array in (few.X.data, few.X.indices, few.X.indptr, few.y):
        assert not array.flags.owndata
        assert not array.flags.writeable
    assert few.sha256 != whole.sha256
    assert few.facts["n_samples"] == 500
    assert sum(few.facts["counts"]) == 500
    middle = data.load("noise[300:500]")
    np.testing.assert_array_equal(middle.X.toarray(), whole.X[300:500].toarray())
    # Each range of rows has a checksum of its own: keys of cells hold it.
    parts = [whole, few, middle, data.load("noise[:300]"), data.load("noise[300:]")]
    assert len({part.sha256 for part in parts}) == len(parts)


def test_parts_are_joined_in_order(use_registry, monkeypatch, tmp_path):
    write_set(use_registry, monkeypatch, tmp_path)
    held = data.load("some+test")
    np.testing.assert_array_equal(held.y, [0, 1, 2, 1, 1, 0])
    np.testing.assert_array_equal(held.X[4:], [[9, 0, 0], [0, 8, 0]])
    assert held.X_test is None
    assert held.facts["n_test"] == 0
    assert held.facts["counts"] == [2, 3, 1]
    np.testing.assert_array_equal(data.load("some+test[:5]").y, [0, 1, 2, 1, 1])
    assert data.load("some+test[:5]").X_test is None


def test_derivation_steps():
    held = derive(
        "some",
        LabelledRows(np.array([[1.0, 0, 2], [0, 5, 0], [4, 0, 0]]), np.array([1.0, 2, 7])),
        None,
        Derivation(select=("1", "2"), drop_features=(2,), positive=("1",)),
    )
    np.testing.assert_array_equal(held.X, [[1, 2], [0, 0]])
    np.testing.assert_array_equal(held.y, [1, -1])
    assert held.classes == ["2", "1"]


def part(labels):
    return LabelledRows(np.arange(len(labels), dtype=float).reshape(-1, 1), np.array(labels))


@pytest.mark.parametrize(
    ("labels", "y", "classes"),
    [
        ([0, 1, 0], [-1, 1, -1], ["0", "1"]),
        ([2, 1, 2], [1, -1, 1], ["1", "2"]),
        ([2.0, 4.0, 2.0], [-1, 1, -1], ["2", "4"]),
        ([-1, 1, 1], [-1, 1, 1], ["-1", "1"]),
        (["+1", "-1", "1.0"], [1, -1, 1], ["-1", "1"]),
        (["b", "a", "b"], [1, -1, 1], ["a", "b"]),
        ([10, 9, 2], [2, 1, 0], ["2", "9", "10"]),
        (["x10", "x9", "x2"], [0, 2, 1], ["x10", "x2", "x9"]),
        ([0.5, -0.0, 0.0], [1, -1, -1], ["0", "0.5"]),
    ],
)
def test_label_sets(labels, y, classes):
    held = derive("d", part(labels), None, Derivation())
    np.testing.assert_array_equal(held.y, y)
    assert held.classes == classes


@pytest.mark.parametrize(
    ("what", "said"),
    [
        (Derivation(select=("1", "9")), "d has no class '9'; its classes are 0, 1, 2"),
        (Derivation(positive=("9",)), "d has no class '9'"),
        (Derivation(select=("1",)), "d has one class only: 1"),
        (Derivation(rows=(0, 1)), "d has one class only: 0"),
        (Derivation(positive=("0", "1", "2")), "d has one class only: every row is 0 or 1 or 2"),
        (Derivation(drop_features=(2,)), "d has no feature 2 to drop; it has 1"),
        (Derivation(select_pair_of=99), "d: no pair of its classes has 99 rows together"),
        (Derivation(select_pair_of=3), "d: 2 pairs of its classes has 3 rows together"),
        (Derivation(novelty=Novelty(normal=("9",), ratio=1)), "d has no class '9'"),
    ],
)
def test_derivations_that_can_not_be(what, said):
    with pytest.raises(DataError, match=said):
        derive("d", part([0, 1, 1, 2, 2]), None, what)


def test_a_class_of_the_test_part_alone():
    with pytest.raises(DataError, match="only the test part has the class '7'"):
        derive("d", part([0, 1, 2]), part([7]), Derivation())


def test_the_pair_of_classes_that_a_size_tells():
    held = derive("d", part([0, 1, 1, 2, 2, 2]), part([0, 2]), Derivation(select_pair_of=4))
    np.testing.assert_array_equal(held.y, [-1, 1, 1, 1])
    assert held.classes == ["0", "2"]
    np.testing.assert_array_equal(held.y_test, [-1, 1])


def test_novelty_keeps_all_normal_rows_and_thins_the_others():
    labels = np.array([0] * 100 + [1] * 300 + [2] * 300)
    what = Novelty(normal=("0",), ratio=0.2, seed=3)
    held = derive("d", part(labels), part([0, 1, 2]), Derivation(novelty=what))
    assert (held.y == 1).sum() == 100
    assert (held.y == -1).sum() == 20
    rows = held.X.ravel().astype(int)
    assert (np.diff(rows) > 0).all()  # in the file's order
    assert set(labels[rows[held.y == -1]]) == {1, 2}
    np.testing.assert_array_equal(held.y_test, [1, -1, -1])  # the test part is whole
    again = derive("d", part(labels), None, Derivation(novelty=what))
    np.testing.assert_array_equal(again.X, held.X)
    other = Derivation(novelty=what.model_copy(update={"seed": 4}))
    assert not np.array_equal(derive("d", part(labels), None, other).X, held.X)
    many = Derivation(novelty=what.model_copy(update={"ratio": 50.0}))
    assert len(derive("d", part(labels), None, many).y) == 700


def test_what_is_sparse_and_what_is_dense():
    rng = np.random.default_rng(0)
    wide = (rng.random((50, 200)) < 0.1).astype(float)
    assert sp.issparse(derivation._stored(wide))
    assert not sp.issparse(derivation._stored(wide[:, :20]))  # narrow
    assert not sp.issparse(derivation._stored(wide + 1))  # full
    np.testing.assert_array_equal(derivation._stored(sp.csr_array(wide)).toarray(), wide)


# ---------------------------------------------------------------- the cache


def only_folder():
    (folder,) = (paths.cache_dir() / "prepared").iterdir()
    return folder


@pytest.mark.parametrize("damage", ["cut", "gone", "meta", "longer"])
def test_a_damaged_cache_is_noticed_and_prepared_again(use_registry, monkeypatch, tmp_path, damage):
    write_set(use_registry, monkeypatch, tmp_path)
    before = data.load("some").sha256
    folder = only_folder()
    array = folder / "X.npy"
    if damage == "cut":
        array.write_bytes(array.read_bytes()[:-8])
    elif damage == "longer":
        array.write_bytes(array.read_bytes() + b"x")
    elif damage == "gone":
        array.unlink()
    else:
        (folder / "meta.json").write_text("{")
    assert data.status("some") == "mirror"
    with pytest.warns(
        UserWarning, match="some: the prepared copy was damaged and is prepared again"
    ):
        held = data.load("some")
    assert held.sha256 == before
    np.testing.assert_array_equal(held.y, [0, 1, 2, 1])
    assert data.status("some") == "cached"


def test_another_derivation_is_another_place(use_registry, monkeypatch, tmp_path):
    write_set(use_registry, monkeypatch, tmp_path)
    first = data.load("some")
    write_set(
        use_registry,
        monkeypatch,
        tmp_path,
        more='derivation = { positive = ["2"] }',
        counts="[2, 2]",
    )
    second = data.load("some")
    np.testing.assert_array_equal(second.y, [-1, 1, -1, 1])
    assert first.sha256 != second.sha256
    np.testing.assert_array_equal(first.y, [0, 1, 2, 1])  # still mapped, still there


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"counts": "[2, 1, 1]"}, r"counts is \[1, 2, 1\] instead of \[2, 1, 1\]"),
        ({"n": 5, "counts": "[1, 2, 2]"}, "n_samples is 4 instead of 5; counts is"),
        ({"more": "density = 0.9"}, "density is 0.5 instead of 0.9"),
        ({"more": "test_counts = [0, 2, 0]"}, "test_counts is"),
        ({"test": False, "more": "reading = { sort_indices = true }"}, ""),
    ],
)
def test_counts_are_checked_before_anything_is_kept(
    use_registry, monkeypatch, tmp_path, changes, said
):
    write_set(use_registry, monkeypatch, tmp_path, **changes)
    if not said:
        assert data.ensure("some")["n_test"] == 0
        return
    with pytest.raises(DataError, match=f"some: {said}"):
        data.load("some")
    assert not list(paths.cache_dir().glob("prepared/*"))


def test_more_features_than_expected_are_refused(use_registry, monkeypatch, tmp_path):
    write_set(use_registry, monkeypatch, tmp_path)
    (tmp_path / "files" / "some.t").write_bytes(b"1 9:1\n2 1:1\n")
    with pytest.raises(DataError, match=r"some\.t has the index 9 but 3 features are expected"):
        data.load("some")


def test_a_failure_while_writing_leaves_nothing(use_registry, monkeypatch, tmp_path):
    write_set(use_registry, monkeypatch, tmp_path)

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store.np, "save", full)
    with pytest.raises(DataError, match="No space left"):
        data.load("some")
    assert not list(paths.cache_dir().glob("prepared/*"))
    assert not list(paths.cache_dir().glob("prepared/.*"))


def test_what_a_killed_process_left_is_cleared_away(use_registry, monkeypatch, tmp_path):
    write_set(use_registry, monkeypatch, tmp_path)
    folder = prepare._folder(data.entry("some"))
    left = folder.with_name(f".{folder.name}-123-abcdef01")
    left.mkdir(parents=True)
    (left / "X.npy").write_bytes(b"half")
    assert data.status("some") == "mirror"  # half a folder is none
    data.load("some")
    assert [place.name for place in folder.parent.iterdir()] == [folder.name]


def _load_and_report(queue, cache):
    os.environ["SVMBENCH_CACHE"] = cache
    held = data.load("synthetic-linear")
    queue.put((held.sha256, float(held.X.sum())))


@pytest.mark.slow
def test_two_processes_prepare_one_set_once():
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    cache = str(paths.cache_dir())
    running = [context.Process(target=_load_and_report, args=(queue, cache)) for _ in range(3)]
    for process in running:
        process.start()
    answers = {queue.get(timeout=60) for _ in running}
    for process in running:
        process.join()
    assert len(answers) == 1
    assert only_folder().name.startswith("synthetic-linear-")


def test_a_second_call_does_nothing(use_registry, monkeypatch, tmp_path):
    write_set(use_registry, monkeypatch, tmp_path)
    data.ensure("some")
    monkeypatch.delenv("SVMBENCH_MIRROR")
    monkeypatch.setattr(prepare, "read_entry_files", None)  # would fail if it were called
    assert data.ensure("some")["n_samples"] == 4
    assert data.load("some").X.shape == (4, 3)


def test_the_folder_is_one_of_the_mirrors_or_nothing(use_registry, monkeypatch, tmp_path):
    write_set(use_registry, monkeypatch, tmp_path)
    assert data.status("some") == "mirror"
    assert data.why_unavailable("some") == ""
    (tmp_path / "files" / "some.t").unlink()
    os.utime(tmp_path / "files", ns=(1, time.time_ns()))
    assert data.status("some") == "nowhere"
    assert "the mirror has no some.t" in data.why_unavailable("some")
