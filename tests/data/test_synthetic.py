"""Generated sets: the shapes and rules that their papers state, and the same from the same seed."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from svmbench import data
from svmbench.base.errors import DataError
from svmbench.data import fetch, prepare, synthetic

GENERATED = [
    name
    for name in data.names()
    if data.entry(name).builtin and data.entry(name).n_samples < 100_000
]


@pytest.mark.parametrize("name", GENERATED)
def test_registered_ones_are_what_their_entry_says(name):
    one = data.entry(name)
    held = data.load(name)
    assert held.X.shape == (one.n_samples, one.n_features)
    assert held.facts["counts"] == list(one.counts)
    assert held.facts["verified"] == "generated"
    assert data.status(name) == "cached"


def equal(a, b):
    if sp.issparse(a):
        return (a != b).nnz == 0
    return np.array_equal(a, b)


@pytest.mark.parametrize(
    ("make", "arguments"),
    [
        ("linear", {"n_samples": 50, "n_features": 3, "noise": 0.1}),
        ("sparse_linear", {"n_samples": 50, "n_features": 30, "density": 0.1, "noise": 0.1}),
        ("separable", {"n_samples": 50}),
        ("noise", {"n_samples": 50}),
        (
            "gaussians",
            {"mean_positive": 1.0, "mean_negative": -1.0, "n_positive": 20, "n_negative": 30},
        ),
        ("circle", {"n_positive": 20, "n_negative": 30}),
        ("exclusive", {"n_positive": 20, "n_negative": 30}),
        ("spiral", {"n_positive": 20, "n_negative": 30}),
    ],
)
def test_the_seed_decides_everything(make, arguments):
    def made(seed):
        return synthetic.BUILTINS[make](**arguments, seed=seed)[0]

    first, again, other = made(1), made(1), made(2)
    assert equal(first.X, again.X)
    np.testing.assert_array_equal(first.labels, again.labels)
    assert not equal(first.X, other.X)
    assert set(first.labels) == {-1, 1}
    assert first.X.shape[0] == len(first.labels) == 50


def test_platts_separable_set_has_its_margin():
    part, _ = synthetic.separable(n_samples=3000, seed=5)
    w = np.random.default_rng(5).uniform(-1, 1, 300)  # the generator's first draw
    score = part.X @ w
    assert (np.abs(score) > 1).all()
    np.testing.assert_array_equal(part.labels, np.sign(score))
    assert set(part.X.data) == {1.0}
    assert abs(part.X.nnz / (3000 * 300) - 0.1) < 0.005


def test_a_larger_separable_set_begins_with_the_smaller():
    """So that the sizes of Platt's sweep are prefixes of one set."""
    small, large = synthetic.separable(n_samples=100)[0], synthetic.separable(n_samples=5000)[0]
    assert (large.X[:100] != small.X).nnz == 0


def test_platts_noise_set_can_not_be_learnt():
    from sklearn.linear_model import LogisticRegression

    part, _ = synthetic.noise(n_samples=4000, seed=1)
    model = LogisticRegression(max_iter=300).fit(part.X[:3000], part.labels[:3000])
    assert abs(model.score(part.X[3000:], part.labels[3000:]) - 0.5) < 0.06
    assert abs((part.labels == 1).mean() - 0.5) < 0.03


def test_linear_sets_have_the_noise_they_say():
    part, _ = synthetic.linear(n_samples=20_000, n_features=5, noise=0.2, seed=0)
    w = np.random.default_rng(0).standard_normal(5)
    assert abs((np.sign(part.X @ w) == part.labels).mean() - 0.8) < 0.01


@pytest.mark.parametrize("m", [1.0, 2.0, 5.0])
def test_gaussians_have_their_means_and_unit_spread(m):
    part, _ = synthetic.gaussians(
        mean_positive=m, mean_negative=-m, n_positive=4000, n_negative=4000, seed=0
    )
    for sign in (1, -1):
        rows = part.X[part.labels == sign]
        np.testing.assert_allclose(rows.mean(axis=0), [sign * m] * 2, atol=0.06)
        np.testing.assert_allclose(np.cov(rows.T), np.eye(2), atol=0.08)


def test_clusters_are_classes_around_their_centres():
    found = synthetic.clusters(n_classes=5, n_per_class=400, n_features=3, seed=1, spread=0.1)[0]
    classes, counts = np.unique(found.labels, return_counts=True)
    assert classes.tolist() == [0, 1, 2, 3, 4]
    assert counts.tolist() == [400] * 5
    parts = [found.X[found.labels == c] for c in range(5)]
    np.testing.assert_allclose([part.std(axis=0) for part in parts], 0.1, rtol=0.15)
    centres = np.array([part.mean(axis=0) for part in parts])
    assert centres.std() > 0.4
    # In no order, and the same from the same seed.
    assert len(np.unique(found.labels[:20])) > 1
    again = synthetic.clusters(n_classes=5, n_per_class=400, n_features=3, seed=1, spread=0.1)[0]
    assert equal(found.X, again.X)
    other = synthetic.clusters(n_classes=5, n_per_class=400, n_features=3, seed=2, spread=0.1)[0]
    assert not equal(found.X, other.X)


@pytest.mark.parametrize("make", ["circle", "exclusive", "spiral"])
def test_curved_sets_need_a_kernel(make):
    from sklearn.svm import SVC, LinearSVC

    part, _ = synthetic.BUILTINS[make](n_positive=500, n_negative=500, seed=0)
    linear = LinearSVC().fit(part.X, part.labels).score(part.X, part.labels)
    kernel = SVC(gamma=4, C=10).fit(part.X[::2], part.labels[::2])
    assert linear < 0.75
    assert kernel.score(part.X[1::2], part.labels[1::2]) > 0.9


ROWS_OF_TWO_CLASSES = {"n_positive": 10, "n_negative": 10, "seed": 0}
TOO_LARGE = [
    ("linear", {"n_samples": 10**9, "n_features": 1, "noise": 0, "seed": 0}),
    ("linear", {"n_samples": 10**5, "n_features": 10**5, "noise": 0, "seed": 0}),
    ("linear", {"n_samples": 1, "n_features": 2**31, "noise": 0, "seed": 0}),
    ("sparse_linear", {"n_samples": 10**9, "n_features": 2, "density": 0, "noise": 0, "seed": 0}),
    ("noise", {"n_samples": 10**7}),
    ("separable", {"n_samples": 10**30}),
    ("circle", {**ROWS_OF_TWO_CLASSES, "n_negative": 10**12}),
    ("clusters", {"n_classes": 10**4, "n_per_class": 10**4, "n_features": 2, "seed": 0}),
    ("clusters", {"n_classes": 10**9, "n_per_class": 1, "n_features": 1, "seed": 0}),
]


@pytest.mark.parametrize(("builtin", "parameters"), TOO_LARGE)
def test_what_would_be_too_large_is_not_begun(builtin, parameters, monkeypatch):
    monkeypatch.setitem(synthetic.BUILTINS, builtin, lambda **_: pytest.fail("it was begun"))
    one = data.entry(GENERATED[0])
    one = one.model_copy(update={"builtin": builtin, "parameters": parameters})
    with pytest.raises(DataError, match=r"can't use its parameters: .*, more than "):
        prepare._generated(one)


@pytest.mark.parametrize("wrong", [0, -1, 10.5, float("inf"), "10", True, None])
def test_a_count_is_a_whole_number(wrong):
    with pytest.raises(ValueError, match="n_positive must be a whole number of at least 1"):
        synthetic.refuse_large({**ROWS_OF_TWO_CLASSES, "n_positive": wrong})


@pytest.mark.parametrize("parameters", [{"density": 0.0}, {"n_features": 1}])
def test_rows_that_are_never_kept_are_not_drawn_for_ever(parameters):
    with pytest.raises(ValueError, match="hardly any row lies outside the margin"):
        synthetic.separable(n_samples=10, **parameters)


def test_what_is_registered_is_far_below_the_bounds():
    for name in data.names():
        one = data.entry(name)
        if one.builtin and one.parameters:
            synthetic.refuse_large(one.parameters)


def test_scikit_learns_copies_say_what_differs_from_ucis():
    made = {name: data.load(f"{name}-sklearn") for name in ("wine", "iris")}
    assert made["wine"].X.shape == (178, 13)
    assert set(made["iris"].y) == {0, 1, 2}
    # Fisher's values, of which UCI's file misprints two rows.
    assert made["iris"].X[[34, 37]].tolist() == [[4.9, 3.1, 1.5, 0.2], [4.9, 3.6, 1.4, 0.1]]


def test_a_set_without_a_source_names_scikit_learns_copy(monkeypatch):
    one = data.entry("wine")
    assert "wine-sklearn, scikit-learn's copy, needs no" in fetch.missing_reason(one, one.files[0])
    one = data.entry("glass")
    assert "copy" not in fetch.missing_reason(one, one.files[0])
