"""With the real files: every set that the mirror has, its counts, and the traps that were found."""

from __future__ import annotations

import os

import numpy as np
import pytest

from svmbench import data
from svmbench.base import paths
from svmbench.base.errors import DataUnavailableError
from svmbench.data import fetch, prepare

pytestmark = pytest.mark.mirror

#: What the papers use and nobody could find a copy of.
MISSING = {
    "a5a", "w4a", "w6a", "covtype", "covtype-scale", "rcv1", "real-sim", "news20",
    "sensit", "shuttle", "poker", "usps",
}  # fmt: skip


#: A cache that the environment names is filled by other tests, too.
NAMED = os.environ.get("SVMBENCH_CACHE")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """One cache for this file's tests."""
    return NAMED or tmp_path_factory.mktemp("shared-cache")


@pytest.fixture
def cache(mirror, prepared, monkeypatch):
    monkeypatch.setenv("SVMBENCH_CACHE", str(prepared))


@pytest.mark.slow
def test_every_set_that_the_mirror_has_is_prepared_and_the_others_name_their_url(
    cache, monkeypatch
):
    outcomes = data.fetch_many(data.names(), official=False)
    assert {o.name for o in outcomes if not o.ok} == MISSING
    for outcome in outcomes:
        if outcome.ok:
            assert outcome.facts["verified"] in ("sha256", "md5", "generated"), outcome.name
            assert data.entry(outcome.name).density is not None
        else:
            assert outcome.status == "unavailable"
            assert "the mirror has no" in outcome.reason
            assert outcome.url in outcome.reason
            assert outcome.url.startswith("https://www.csie.ntu.edu.tw/")
    # No file is read, and nothing is derived, a second time.
    monkeypatch.setattr(fetch, "read_regular_file", None)
    monkeypatch.setattr(prepare, "derive", None)
    again = data.fetch_many(data.names(), official=False)
    assert {o.status for o in again if o.ok} == {"cached"}


def test_the_missing_ones_are_known_without_reading_a_byte(cache):
    assert {name for name in data.names() if data.why_unavailable(name)} == MISSING
    with pytest.raises(DataUnavailableError, match=r"covtype: the mirror has no covtype\.lib"):
        data.ensure("covtype")


def test_every_mirror_file_that_is_data_has_an_entry(mirror):
    """So that no file lies there unused by mistake."""
    unused = {
        "INDEX.csv", "README.md", "CTG.xls.gz", "bonn_eeg_seizure.zip",
        # LIBSVM's copies of what is registered from UCI, with equal values
        "australian.xz", "heart.xz", "breast-cancer.xz",
        # other parts of MONK's problems
        "monks-1.train", "monks-2.train", "monks-2.test", "monks-3.train", "monks-3.test",
    }  # fmt: skip
    used = {
        place
        for name in data.names()
        for file in data.entry(name).files
        for place in fetch.on_mirror(file, str(mirror))
    }
    for place in mirror.rglob("*"):
        if place.is_dir() or "author_files" in place.parent.name:
            continue
        if place.name in unused or place.suffix in (".names", ".doc"):
            continue
        assert place in used, place.name


def test_svmguide3_has_an_empty_last_feature(cache):
    held = data.load("svmguide3")
    assert not held.X[:, 21].any()
    assert held.X[:, :21].any(axis=0).all()


def test_stab_decides_the_class_of_the_electrical_set(cache):
    leaky, clean = data.load("electrical"), data.load("electrical-no-leak")
    np.testing.assert_array_equal(np.where(leaky.X[:, 12] <= 0, 1, -1), leaky.y)
    np.testing.assert_array_equal(leaky.X[:, :12], clean.X)
    np.testing.assert_array_equal(leaky.y, clean.y)


def test_iris_has_ucis_two_misprints(cache):
    from sklearn.datasets import load_iris

    differ = np.flatnonzero((load_iris().data != data.load("iris").X).any(axis=1))
    np.testing.assert_array_equal(differ, [34, 37])


def test_abalone_is_the_authors_own_file(cache, mirror):
    from scipy.io import loadmat

    (place,) = mirror.rglob("paperB_author_files/abalone.mat")
    theirs = loadmat(place)
    held = data.load("abalone")
    np.testing.assert_array_equal(held.X, theirs["X"])
    np.testing.assert_array_equal(held.y, theirs["Y"].ravel())


def test_author_files_of_the_nested_cv_paper(cache, mirror):
    """teach, dermatology, heart, sonar and wine are the authors' own, value for value."""
    from svmbench.data import libsvm

    for name, theirs in (
        ("teach", "teach"),
        ("dermatology", "dermatology"),
        ("heart", "heart2"),
        ("wine", "wine"),
        ("sonar", "sonar"),
    ):
        (place,) = mirror.rglob(f"paperA_author_files/{theirs}")
        X, labels = libsvm.parse_libsvm(place.read_bytes(), theirs)
        held = data.load(name)
        np.testing.assert_allclose(held.X, X.toarray(), rtol=0, atol=1e-12)
        order = np.unique(labels)
        codes = np.unique(held.y)
        mine = np.searchsorted(codes, held.y)
        expected = np.searchsorted(order, labels)
        if name == "sonar":  # they have 1 = R, 2 = M; here R is positive
            expected = 1 - expected
        np.testing.assert_array_equal(mine, expected)


def test_a_set_of_one_class_in_its_test_part_loads(cache):
    held = data.load("svmguide3")
    assert held.facts["test_counts"] == [0, 41]


@pytest.mark.slow
def test_a_row_of_the_covertype_sample_has_one_area_and_one_soil(cache):
    """As each of UCI's rows; with the ranges of the whole set, metres and degrees are integers."""
    held = data.load("covtype-sample")
    np.testing.assert_array_equal(held.X[:, 10:14].sum(axis=1), 1)
    np.testing.assert_array_equal(held.X[:, 14:].sum(axis=1), 1)
    elevations, aspects = 1859 + 1999 * held.X[:, 0], 360 * held.X[:, 1]
    np.testing.assert_allclose(elevations, np.round(elevations), rtol=0, atol=0.01)
    np.testing.assert_allclose(aspects, np.round(aspects), rtol=0, atol=0.01)


@pytest.mark.slow
def test_w8a_minus_w2a_t_is_w2a(cache):
    """Rows are counted as multisets: the rebuilt w2a is what is left."""
    from collections import Counter

    def rows(X, y):
        return Counter(
            (int(label), X.indices[a:b].tobytes())
            for label, a, b in zip(y, X.indptr[:-1], X.indptr[1:], strict=True)
        )

    whole, part = data.load("w8a"), data.load("w2a")
    assert rows(whole.X, whole.y) - rows(part.X_test, part.y_test) == rows(part.X, part.y)


def test_nothing_of_the_mirror_is_copied(cache):
    data.ensure("iris")
    assert not (paths.cache_dir() / "downloads").exists()
