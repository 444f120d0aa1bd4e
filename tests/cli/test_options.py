"""Options on how a table is written, of each command that reads a user's table."""

import json

import numpy as np
import pytest
from runs import svmbench

import svmbench as svmbench_package
import svmbench.data.frames as frames
from svmbench.base.errors import DataWarning, SvmbenchError
from svmbench.studies.datasets import FORM_OPTIONS

FORM = ("--sep", ";", "--encoding", "latin-1", "--decimal", ",", "--no-header", "--drop", "3")


@pytest.fixture
def tables(tmp_path):
    """Return a table that another program writes, and the same rows as a plain one."""
    rng = np.random.default_rng(5)
    rows = [
        (rng.normal(kind), rng.normal(), word, kind)
        for kind, word in zip([0, 1] * 20, ["Öl", "Luft"] * 20, strict=True)
    ]
    theirs, plain = tmp_path / "theirs.csv", tmp_path / "plain.csv"
    lines = [f"{a:.3f};{b:.3f};{number};{word};{y}" for number, (a, b, word, y) in enumerate(rows)]
    theirs.write_bytes("\n".join(lines).replace(".", ",").encode("latin-1"))
    lines = [f"{a:.3f},{b:.3f},{word},{y}" for a, b, word, y in rows]
    plain.write_text("\n".join(["1,2,4,5", *lines]))
    return theirs, plain


def test_describe_reads_a_table_as_it_is_written(tables):
    theirs, plain = tables
    said = [
        json.loads(svmbench("describe", path, "--label", "5", "--json", *how).out)
        for path, how in ((theirs, FORM), (plain, ()))
    ]
    for one in said:
        del one["file"], one["sha256"]
    assert said[0] == said[1]
    assert said[0]["features"] == 4


@pytest.mark.parametrize("command", ["time", "race"])
def test_a_race_reads_a_table_as_it_is_written(tables, command):
    objectives, hidden = [], []
    for path, how in zip(tables, (FORM, ()), strict=True):
        words = {
            "time": ("time", path, "--solver", "dcd-l1", "--vs", "liblinear-l1"),
            "race": ("race", "-d", path, "-s", "dcd-l1", "-s", "liblinear-l1"),
        }[command]
        ended = svmbench(*words, "--rounds", 1, "--label", "5", "--json", *how)
        assert ended.code == 0, ended.err
        found = json.loads(ended.out)
        found = found[0] if command == "race" else found
        assert found["dataset"] == str(path)
        assert f"on {path}" in ended.err
        objectives.append([one["objective"] for one in found["solvers"]])
        hidden.append(found["n_train"])
    assert objectives[0] == objectives[1]
    assert hidden == [40, 40]


def test_certify_reads_a_table_as_it_is_written(tables, tmp_path):
    model = tmp_path / "a.model"
    model.write_text(
        "svm_type c_svc\nkernel_type linear\nnr_class 2\ntotal_sv 2\nrho 0\nlabel 1 0\n"
        "nr_sv 1 1\nSV\n0.1 1:0.5\n-0.1 2:0.25\n"
    )
    said = [
        json.loads(
            svmbench("certify", model, path, "--label", "5", "--parameter", 1, "--json", *how).out
        )
        for path, how in zip(tables, ((*FORM, "--drop", "4"), ("--drop", "4")), strict=True)
    ]
    assert said[0] == said[1]
    assert said[0]["n_samples"] == 40


def test_what_is_wrong_with_a_table_is_said_of_the_table(tables):
    theirs, _ = tables
    ended = svmbench("time", theirs, "--label", "9", "--solver", "dcd-l1", "--vs", "dcd-l2", *FORM)
    assert (ended.code, ended.err.count(str(theirs))) == (2, 1)
    assert "has no column '9'" in ended.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("describe", "{}"), f"{FORM_OPTIONS} are options for a table; --label is missing"),
        (("describe", "openml:61", "--label", "y"), f"{FORM_OPTIONS} are options for files"),
        (("describe", "a9a", "--label", "y"), "a9a is a registered data set"),
        (("certify", "{}", "{}"), f"{FORM_OPTIONS} are options for a file with a --label"),
        (("race", "-s", "csvc", "-s", "libsvm"), "no -d names a file or a data set of OpenML"),
        (("race", "-d", "{}", "--yaml", "-s", "csvc", "-s", "libsvm"), "a config can't say"),
        (("time", "a9a", "--solver", "csvc", "--vs", "libsvm"), "--label is missing"),
    ],
)
def test_options_that_say_nothing_here_are_refused(tables, words, said):
    ended = svmbench(*(word.format(tables[0]) for word in words), "--sep", ";")
    assert ended.code != 0
    assert said in ended.err


def test_a_copy_of_a_table_has_its_columns_and_words(tables, tmp_path):
    theirs, _ = tables
    form = frames.TableForm(";", "latin-1", ",", header=False, drop=("3",))
    frames.write_plainly(theirs, "5", form, tmp_path / "copy.csv")
    X, y = frames.read_frame(tmp_path / "copy.csv", "5")
    before, labels = frames.read_frame(theirs, "5", form=form)
    assert X.equals(before)
    assert y.equals(labels)
    assert set(X["4"]) == {"Öl", "Luft"}


def test_load_has_the_options_of_the_commands_and_their_sentences(tables):
    theirs, _ = tables
    told = {"sep": ";", "encoding": "latin-1", "decimal": ",", "header": False}
    data = svmbench_package.load(theirs, label_column="5", drop=["3"], **told)
    described = json.loads(svmbench("describe", theirs, "--label", "5", *FORM, "--json").out)
    assert data.X.shape == (described["rows"], described["features"])
    for said, match in (
        ({**told, "sep": ";;"}, "^--sep ';;' is no single character"),
        ({**told, "sep": ","}, "^--sep and --decimal are both ','"),
        ({**told, "encoding": "utf-8"}, "; --encoding names another"),
        ({**told, "drop": "6"}, ": --drop '6'"),
    ):
        with pytest.raises(SvmbenchError, match=match):
            svmbench_package.load(theirs, label_column="5", **said)
    for name, label in ((theirs, None), ("breast-cancer", None), ("openml:61", "y")):
        with pytest.raises(SvmbenchError, match="sep"):
            svmbench_package.load(name, label_column=label, sep=";")
    with pytest.raises(TypeError, match="unknown keyword 'separator'; a table's are sep, encoding"):
        svmbench_package.load(theirs, label_column="5", separator=";")


def test_what_was_left_out_is_a_sentence(tmp_path):
    file = tmp_path / "x.csv"
    file.write_text(",a,y\n" + "r1,1,0\nr2,2,1\n" * 5)
    with pytest.warns(DataWarning, match="^x.csv: left out: the first column") as warned:
        svmbench_package.load(file, label_column="y")
    assert warned[0].filename == __file__
    ended = svmbench("describe", file, "--label", "y")
    assert ended.err.startswith("x.csv: left out: the first column")
    assert ended.err.count("\n") == 1
