"""The registry: what datasets.toml may say, and that what it says is consistent."""

from __future__ import annotations

import os

import pytest

from svmbench import data
from svmbench.base import paths
from svmbench.base.errors import ConfigError, UnknownNameError
from svmbench.base.paper_folders import papers
from svmbench.data import card, registry
from svmbench.report.reading.published import numbers

TINY = """
[tiny]
origin = "here"
title = "Tiny"
task = "binary"
files = [{ name = "tiny.svm" }]
n_samples = 3
n_features = 2
counts = [2, 1]
"""


def test_every_entry_is_complete():
    assert len(data.names()) > 100
    for name in data.names():
        one = data.entry(name)
        assert one.homepage.startswith("https://"), name
        assert one.licence, name
        assert one.citation, name
        for file in one.files:
            assert file.url is None or file.url.startswith("https://"), (name, file.name)


def test_every_published_data_set_is_registered_and_its_printed_facts_are_stated():
    """What the papers' CSVs print of a data set is in its entry, number by number."""
    keys = {"n_samples": "n_samples", "n_features": "n_features"}
    stating = 0
    for paper in papers():
        by_print = {
            one.papers[paper].published_as or name: one
            for name in data.names_of_paper(paper)
            if not (one := data.entry(name)).papers[paper].stands_in_for
        }
        printed: dict[str, dict[str, int]] = {}
        for row in numbers(paper):
            if row.metric in {*keys, "n_positive", "n_negative"}:
                printed.setdefault(row.dataset, {})[row.metric] = int(row.value)
        stating += bool(printed)
        for published, facts in printed.items():
            stated = by_print[published].papers[paper]
            for metric, field in keys.items():
                if metric in facts:
                    assert getattr(stated, field) == facts[metric], (paper, published, metric)
            if "n_positive" in facts:
                assert stated.counts == (facts["n_negative"], facts["n_positive"]), published
    assert stating == 4


def test_a_difference_to_a_paper_has_its_reason():
    explained = 0
    for name in data.names():
        one = data.entry(name)
        for paper, said in one.papers.items():
            if card.printed_differences(one, said):
                explained += 1
                assert said.why, (name, paper)
    assert explained > 5  # svmguide3's features, planning-relax's rows …


def test_every_paper_has_data_sets():
    assert list(data.datasets_by_paper()) == list(papers())
    for key, paper in papers().items():
        assert set(paper.datasets) == set(data.names_of_paper(key))
    assert all(data.datasets_by_paper().values())


def test_unknown_names_suggest_the_nearest():
    with pytest.raises(UnknownNameError, match="unknown data set 'a9'; did you mean 'a9a'"):
        data.entry("a9")
    with pytest.raises(UnknownNameError, match="unknown paper 'alsv'; did you mean 'alsvm'"):
        data.names_of_paper("alsv")


@pytest.mark.parametrize(
    ("name", "base", "with_test", "start", "stop"),
    [
        ("a9a", "a9a", False, None, None),
        ("a9a[:6414]", "a9a", False, None, 6414),
        ("a9a[100:200]", "a9a", False, 100, 200),
        ("a9a[32000:]", "a9a", False, 32000, None),
        ("ijcnn1+test", "ijcnn1", True, None, None),
        ("ijcnn1+test[:90000]", "ijcnn1", True, None, 90000),
        ("german.numer", "german.numer", False, None, None),
    ],
)
def test_names_with_parts_and_rows(name, base, with_test, start, stop):
    found = data.parse_name(name)
    assert (found.base, found.with_test, found.start, found.stop) == (base, with_test, start, stop)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("a9a[6414]", "is not the name of a data set"),
        ("a9a[:6414", "is not the name of a data set"),
        ("a9a[:0]", "has 32,561 rows"),
        ("a9a[:99999]", "has 32,561 rows"),
        ("a9a[5:5]", "has 32,561 rows"),
        ("iris+test", "iris has no test part"),
        ("iris+train", "is not the name of a data set"),
    ],
)
def test_names_that_mean_nothing(name, said):
    with pytest.raises(ConfigError, match=said):
        data.parse_name(name)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("n_samples = 3", "n_samples = 4", "counts add up to 3, not to n_samples = 4"),
        ("n_samples = 3", "n_sample = 3", "n_sample"),
        ('task = "binary"', 'task = "multiclass"', "doesn't match 2 class counts"),
        ("files", "builtin = 'linear'\nfiles", "either files or a builtin"),
        ('origin = "here"', 'origin = "there"', "origin 'there' is not in"),
        ('origin = "here"', 'based_on = "big"', "based on the unknown entry 'big'"),
        (
            '"tiny.svm"',
            '"tiny.svm", sha256 = ["xyz"]',
            "not a sha256 in lower-case hexadecimal",
        ),
        ('"tiny.svm"', '"tiny.svm", part = "test"', "the files of part 'test' don't match"),
        ("n_features = 2", "n_features = ", "Invalid value"),
    ],
)
def test_mistakes_in_the_file_are_sentences(use_registry, old, new, said):
    assert old in TINY
    use_registry(TINY.replace(old, new))
    with pytest.raises(ConfigError, match=said) as raised:
        registry.registry()
    assert "datasets.toml" in str(raised.value)


def test_several_mistakes_come_together(use_registry):
    two = TINY.replace("n_samples = 3", "n_samples = 4") + TINY.replace(
        "[tiny]", "[small]"
    ).replace('task = "binary"', 'task = "ternary"')
    use_registry(two)
    with pytest.raises(ConfigError) as raised:
        registry.registry()
    assert len(raised.value.problems) == 2
    assert "tiny" in raised.value.problems[0]
    assert "small: task" in raised.value.problems[1]


def test_an_entry_based_on_another_inherits_and_replaces(use_registry):
    use_registry(
        TINY + '[less]\nbased_on = "tiny"\ntitle = "Less"\nderivation = { rows = [0, 2] }\n'
        "n_samples = 2\ncounts = [1, 1]\n"
    )
    less = registry.entry("less")
    assert less.files == registry.entry("tiny").files
    assert less.title == "Less"
    assert less.derivation.rows == (0, 2)
    assert less.citation == "Nobody (2000)."


# ---------------------------------------------------------------- files of one's own


OWN = """
[mine]
title = "Mine"
task = "binary"
homepage = "https://example.org/mine"
licence = "none"
citation = "Me (2026)."
files = [{ name = "mine.svm" }]
n_samples = 4
n_features = 2
counts = [2, 2]
"""


def test_a_file_of_ones_own_adds_entries(use_registry, tmp_path, monkeypatch):
    use_registry(TINY)
    first, second = tmp_path / "own.toml", tmp_path / "more.toml"
    first.write_text(OWN)
    second.write_text(
        '[part]\nbased_on = "tiny"\ntitle = "Part"\n[other]\norigin = "here"\n'
        'title = "O"\ntask = "binary"\nfiles = [{ name = "o" }]\nn_samples = 1\nn_features = 1\n'
    )
    monkeypatch.setenv("SVMBENCH_DATASETS", f"{first}{os.pathsep}{second}")
    assert registry.names() == ["tiny", "mine", "part", "other"]
    assert registry.entry("mine").citation == "Me (2026)."
    assert registry.entry("part").files == registry.entry("tiny").files
    assert registry.entry("other").licence == "none"
    monkeypatch.delenv("SVMBENCH_DATASETS")
    assert registry.names() == ["tiny"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TINY, "own.toml: tiny: is already registered"),
        (OWN.replace('licence = "none"\n', ""), "mine: licence: the key 'licence' is missing"),
        ("[mine", "own.toml: Expected"),
        (None, "SVMBENCH_DATASETS: .*own.toml can't be read: No such file"),
    ],
)
def test_mistakes_in_a_file_of_ones_own_name_it(use_registry, tmp_path, monkeypatch, text, said):
    use_registry(TINY)
    own = tmp_path / "own.toml"
    if text is not None:
        own.write_text(text)
    monkeypatch.setenv("SVMBENCH_DATASETS", str(own))
    with pytest.raises(ConfigError, match=said):
        registry.registry()


@pytest.mark.parametrize("shared", ["based_on = 'base'", "origin = 'far'"])
def test_entries_have_no_end_of_values_from_each_other(shared, tmp_path, monkeypatch):
    notes = "notes = [" + "'x', " * 30_000 + "]\n"
    head = f"[origin.far]\n{notes}" if "origin" in shared else f"[base]\n{notes}"
    heirs = "".join(f"[heir-{i}]\n{shared}\n" for i in range(4_000))
    place = tmp_path / "own.toml"
    place.write_text(head + heirs)
    monkeypatch.setenv("SVMBENCH_DATASETS", str(place))
    with pytest.raises(ConfigError) as caught:
        registry.registry()
    assert "more than 100,000 values, inherited values included" in str(caught.value)
    assert "heir-" in caught.value.problems[-1]


def test_mistakes_without_end_are_not_all_told(tmp_path, monkeypatch):
    place = tmp_path / "own.toml"
    place.write_text("".join(f"[x{i}]\n" for i in range(5_000)))
    monkeypatch.setenv("SVMBENCH_DATASETS", str(place))
    with pytest.raises(ConfigError) as caught:
        registry.registry()
    assert len(caught.value.problems) < 2 * registry.MAX_REPORTED_PROBLEMS
    assert "the remaining entries were not checked" in caught.value.problems[-1]


def test_a_home_that_is_not_known_is_a_sentence(monkeypatch):
    monkeypatch.setenv("SVMBENCH_DATASETS", "~nosuchuser/own.toml")
    with pytest.raises(ConfigError, match=r"^~nosuchuser/own.toml: the home folder is not known"):
        registry.registry()
    monkeypatch.setenv("SVMBENCH_CACHE", "~nosuchuser")
    with pytest.raises(ConfigError, match=r"^~nosuchuser: the home folder is not known"):
        paths.cache_dir()
