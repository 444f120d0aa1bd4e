"""Tables with a header, columns of words and gaps: one reader for every command."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from runs import svmbench, write_config

from svmbench.base.errors import DataError, DataWarning
from svmbench.data import load
from svmbench.data.frames import (
    LEFT_OUT,
    READ_AS,
    FormKeywords,
    TableForm,
    encoder,
    read_frame,
)

pytestmark = pytest.mark.usefixtures("workshop")

GAP_ROW = 3


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a table whose words decide the class, with one gap."""
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"age": random.normal(40, 10, 90), "plan": ["b", "a", "c"] * 30})
    frame["churn"] = np.where(frame["plan"] == "c", "yes", "no")
    frame.loc[GAP_ROW, "age"] = np.nan
    frame.to_csv(tmp_path / "my.csv", index=False)
    return tmp_path / "my.csv"


def test_words_become_columns_and_gaps_are_filled_only_where_asked(file: Path) -> None:
    with pytest.raises(DataError, match=r"values are missing: age \(1\)"):
        load(file, label_column="churn")
    held = load(file, label_column="churn", impute=True)
    age = pd.read_csv(file)["age"]
    assert held.X.shape == (90, 4)
    assert held.X[GAP_ROW, 0] == age.median()
    np.testing.assert_array_equal(held.X[0, 1:], [0, 1, 0])
    assert held.facts["classes"] == ["no", "yes"]
    assert (held.y == 1).sum() == 30
    ordinal = load(str(file), label_column="churn", text="ordinal", impute=True)
    np.testing.assert_array_equal(ordinal.X[:3, 1], [1, 0, 2])
    assert ordinal.sha256 != held.sha256


def test_the_separator_follows_from_the_name(file: Path) -> None:
    tabs = file.with_suffix(".tsv")
    pd.read_csv(file).to_csv(tabs, sep="\t", index=False)
    how = {"label_column": "churn", "impute": True}
    assert load(tabs, **how).sha256 == load(file, **how).sha256


@pytest.mark.parametrize(
    ("content", "options", "said"),
    [
        ("a,b\n1,x\n", {"label_column": "c"}, r"has no column 'c' \(it has a, b\)"),
        ("a,b\n1,x\n2,\n", {"label_column": "b"}, "line 3: the label is missing"),
        ("a,b\n1,x\ninf,y\n", {"label_column": "b"}, "line 3, column a: the number is not finite"),
        ("a,b\n1,x\n2,x\n", {"label_column": "b"}, "one class only"),
        ("a,b\n", {"label_column": "b"}, "no data rows"),
        ("a,b\n1,x\n", {"label_column": "b", "text": "no"}, "text must be"),
        ("1,2\n3,4\n", {"impute": True}, "name its label's column"),
    ],
)
def test_a_table_that_can_not_be_read_is_a_sentence(
    tmp_path: Path, content: str, options: dict[str, object], said: str
) -> None:
    place = tmp_path / "bad.csv"
    place.write_text(content)
    with pytest.raises(DataError, match=said):
        load(place, **options)


@pytest.mark.parametrize("content", ["", "\n\n"])
def test_an_empty_table_is_a_sentence(tmp_path: Path, content: str) -> None:
    path = tmp_path / "none.csv"
    path.write_text(content)
    with pytest.raises(DataError, match=r"none\.csv is empty"):
        read_frame(path, "label")


def test_options_of_tables_are_refused_of_registered_sets() -> None:
    with pytest.raises(DataError, match="are for tables"):
        load("breast-cancer", impute=True)


def test_describe_counts_rows_classes_words_and_gaps(file: Path) -> None:
    ended = svmbench("describe", file, "--label", "churn", "--json")
    assert ended.code == 0, ended.said
    card = json.loads(ended.out)
    assert card["counts"] == {"no": 60, "yes": 30}
    assert card["features"] == 4
    assert card["columns"] == ["1 numeric column", "1 text column, one-hot: plan (3 values)"]
    assert card["missing values"] == "age (1): refused unless --impute is given"
    ended = svmbench("describe", file, "--text", "ordinal")
    assert ended.code == 2
    assert "--label is missing" in ended.err
    ended = svmbench("describe", file)
    assert ended.code == 2
    assert "a header taken for data? --label" in ended.err


def test_time_takes_the_options_of_tables(file: Path) -> None:
    race = ["time", file, "--solver", "dcd-l1", "--vs", "liblinear-l1", "--rounds", 1]
    assert "values are missing" in svmbench(*race, "--label", "churn").err
    ended = svmbench(*race, "--label", "churn", "--impute", "--text", "ordinal", "--json")
    assert ended.code == 0, ended.said
    assert json.loads(ended.out)["n_train"] == 90
    ended = svmbench("time", "breast-cancer", *race[2:], "--label", "churn")
    assert ended.code == 2
    assert "--label is an option for a table" in ended.err


def test_a_config_says_how_a_table_is_encoded(file: Path, tmp_path: Path) -> None:
    table = {"file": str(file), "label_column": "churn", "text": "one-hot", "impute": True}
    config = write_config(tmp_path, ["dcd-l1"], datasets=[table])
    ended = svmbench("run", config, "--output", tmp_path / "out")
    assert ended.code == 0, ended.said
    (line,) = (tmp_path / "out/runs.jsonl").read_text().splitlines()
    assert json.loads(line)["metrics"]["n_train"] == 90
    del table["label_column"]
    ended = svmbench("validate", write_config(tmp_path, ["dcd-l1"], datasets=[table]))
    assert ended.code == 2
    assert "give its 'file' and its 'label_column'" in ended.err


def test_a_file_hides_no_solver_and_no_data_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("csvc", "a9a", "mine"):
        Path(name).write_text("+1 1:1\n-1 1:2\n")
    assert json.loads(svmbench("describe", "csvc", "--json").out)["solver"] == "csvc"
    assert json.loads(svmbench("describe", "a9a", "--json").out)["dataset"] == "a9a"
    assert json.loads(svmbench("describe", "mine", "--json").out)["file"] == "mine"


def test_all_rows_decide_what_a_config_fills_in(tmp_path: Path) -> None:
    """A median of all rows, as the pages say; `try` takes that of the training rows."""
    place = tmp_path / "gaps.csv"
    place.write_text("x,y\n1,a\n,a\n3,b\n100,b\n")
    X = load(place, label_column="y", impute=True).X
    assert np.asarray(X).ravel().tolist() == [1.0, 3.0, 3.0, 100.0]


def write_rows(place: Path, header: str, row: str, encoding: str = "utf-8") -> Path:
    """Write 30 rows, in which {i} is the row's number, {x} a number and {y} the class."""
    values = [{"i": 5000 - i, "x": (7 * i) % 11, "y": "ab"[i % 2]} for i in range(30)]
    text = "\n".join([*([header] if header else []), *(row.format(**one) for one in values)])
    place.write_text(f"{text}\n", encoding=encoding)
    return place


@pytest.mark.parametrize(
    ("header", "row", "form"),
    [
        ("size;class", "{x};{y}", TableForm()),
        ("size\tclass", "{x}\t{y}", TableForm()),
        ("sep=;\nsize;class", "{x};{y}", TableForm()),
        ("\ufeffsize,class", "{x},{y}", TableForm()),
        ("size|class", "{x}|{y}", TableForm(separator="|")),
        ("size;class", "{x},0;{y}", TableForm(decimal=",")),
        ("", "{x},{y}", TableForm(header=False)),
        ("size,class", "{x},{y}", TableForm(na_values=("-999",))),
        ("note,size,class", "Größe,{x},{y}", TableForm(encoding="latin-1", drop=("note",))),
    ],
)
def test_what_programs_write_is_read(
    tmp_path: Path, header: str, row: str, form: TableForm
) -> None:
    file = write_rows(tmp_path / "t.csv", header, row, form.encoding or "utf-8")
    label = "class" if header else "2"
    X, y = read_frame(file, label, form=form)
    np.testing.assert_array_equal(X.iloc[:, 0], [(7 * i) % 11 for i in range(30)])
    assert list(y) == ["a", "b"] * 15
    # What `try` prints reads the same values.
    frame = eval(form.reader(file.read_bytes(), file, 2), {"pandas": pd})
    np.testing.assert_array_equal(frame[X.columns[0]], X.iloc[:, 0])


def test_all_unreadable_columns_are_told_at_once(tmp_path: Path) -> None:
    sign = "has another decimal sign than most; write all numbers alike, or --drop the column"
    rows = [f'"{x},5{x}",0x{x},{x},{x % 2}\n{x}.5,0xA{x},{x},{x % 2}' for x in range(30)]
    file = tmp_path / "t.csv"
    file.write_text("\n".join(["a,b,c,y", *rows]) + "\n")
    with pytest.raises(DataError) as caught:
        read_frame(file, "y")
    first, second = str(caught.value).split("\n")
    assert first == f"{file}, line 2, column a: '0,50' {sign}"
    assert second == (
        "  line 2, column b: '0x0' is hexadecimal; write plain numbers, or --drop the column"
    )


@pytest.mark.parametrize(
    ("row", "text", "number"),
    [
        ('"3,204.50",{x},{y}', "3,204.50", 3204.5),
        ('"1,204,000",{x},{y}', "1,204,000", 1204000),
        ("1'204,{x},{y}", "1'204", 1204),
        ('"€ 1.204,50",{x},{y}', "€ 1.204,50", 1204.5),
        ('"0,125",{x},{y}', "0,125", 0.125),
        ("1{x}%,{x},{y}", "10%", 10),
        ('"1{x},5 %",{x},{y}', "10,5 %", 10.5),
        ("-$1{x},{x},{y}", "-$10", -10),
        ('"($1,200.25)",{x},{y}', "($1,200.25)", -1200.25),
        ("−{x}.5,{x},{y}", "−0.5", -0.5),
        ("{x}-,{x},{y}", "0-", 0),
        ('="{x}",{x},{y}', '="0"', 0),
        ("'{x},{x},{y}", "'0", 0),
        ("3.5D+01,{x},{y}", "3.5D+01", 35),
    ],
)
def test_numbers_that_are_written_for_people_are_read_and_told(
    tmp_path: Path, row: str, text: str, number: float
) -> None:
    file = write_rows(tmp_path / "t.csv", "a,b,class", row)
    X, _ = read_frame(file, "class")
    assert X["a"].iloc[0] == number
    assert X.attrs[READ_AS] == [f"column a: {text!r} is read as {number:.12g}"]
    # The pipeline reads the same numbers from a frame of plain pandas.
    transformer, sentences = encoder(X, scale=False)
    assert X.attrs[READ_AS][0] in sentences
    np.testing.assert_array_equal(transformer.fit(X).transform(pd.read_csv(file)), X)


@pytest.mark.parametrize(
    ("row", "form", "numbers", "advice"),
    [
        ('"1,204",{x},{y}', {}, [1204], True),
        ('"1,204","{x},5",{y}', {}, [1.204, 0.5], False),
        ('"1,204","1,204.5",{y}', {}, [1204, 1204.5], False),
        ('"1,204",{x},{y}', {"decimal": ","}, [1.204], False),
        ('"{x},5",1.204,{y}', {"decimal": ","}, [0.5, 1204], False),
        ('"{x},5",7.25,{y}', {"decimal": ","}, [0.5, 7.25], False),
    ],
)
def test_other_columns_and_the_option_decide_on_a_comma(
    tmp_path: Path, row: str, form: FormKeywords, numbers: list[float], advice: bool
) -> None:
    file = write_rows(tmp_path / "t.csv", "a,b,class", row)
    X, _ = read_frame(file, "class", form=TableForm.of(**form))
    assert list(X.iloc[0, : len(numbers)]) == numbers
    assert ("--decimal" in str(X.attrs)) is advice


@pytest.mark.parametrize(("n_texts", "is_numeric"), [(3, True), (4, False)])
def test_a_column_of_nearly_all_numbers_is_one(
    tmp_path: Path, n_texts: int, is_numeric: bool
) -> None:
    file = write_rows(tmp_path / "t.csv", "a,b,class", "{x},{x},{y}")
    lines = file.read_text().splitlines()
    lines[1 : 1 + n_texts] = [f"n/k,{i},{'ab'[i % 2]}" for i in range(n_texts)]
    file.write_text("\n".join(lines))
    X, _ = read_frame(file, "class")
    assert int(X["a"].isna().sum()) == 3 * is_numeric
    said = "column a: 3 cells that are no numbers count as missing ('n/k')"
    assert (X.attrs.get(READ_AS) == [said]) is is_numeric
    warned = pytest.warns(DataWarning, match="t.csv: column a: 3 cells")
    with warned if is_numeric else nullcontext():
        load(file, label_column="class", impute=True)


def test_marks_among_numbers_are_missing_however_many_they_are(tmp_path: Path) -> None:
    file = write_rows(tmp_path / "t.csv", "a,b,class", "{x},-999,{y}")
    lines = file.read_text().splitlines()
    file.write_text("\n".join([*lines[:2], *(f"?,{i},a" for i in range(1, 31))]))
    X, _ = read_frame(file, "class", form=TableForm.of(na_values="-999"))
    assert X.isna().sum().to_dict() == {"a": 30, "b": 1}
    with pytest.raises(DataError, match=r"values are missing: a \(30\), b \(1\)"):
        encoder(X)
    # A user's mark is none among the labels.
    _, y = read_frame(file, "class", form=TableForm(na_values=("a",)))
    assert set(y) == {"a"}


def test_words_among_numbers_comments_and_totals_are_named(tmp_path: Path) -> None:
    file = write_rows(tmp_path / "t.csv", "a,b,class", "{i},{x},{y}")
    text = file.read_text()
    for changed, message in (
        (f"{text}Total,150,a\n", "line 32: the row has totals"),
        (text.replace("\n4999,", "\nSubtotal,1,a\n4999,"), "line 3: the row has totals"),
        (text.replace("\n4999,", "\n\ufeff4999,"), "line 3: a byte order mark"),
        (f"% of 2026\n\n@RELATION x\n{text}", "t.csv is an ARFF file of Weka"),
        (f"# by hand\n{text}", "line 1: a comment"),
        (text.replace("\n4999,", "\n# half\n4999,"), "line 3: a comment"),
    ):
        file.write_text(changed)
        with pytest.raises(DataError, match=message):
            read_frame(file, "class")
    file.write_bytes(text.replace("5000", "ä").encode("latin-1"))
    with pytest.raises(DataError, match="line 2: the text is not encoded as UTF-8; --encoding"):
        read_frame(file, "class")
    file.write_text(text)
    with pytest.raises(DataError, match="--drop 'bb' is no column"):
        read_frame(file, "class", form=TableForm(drop=("bb",)))


def test_a_word_among_labels_of_numbers_is_named(tmp_path: Path) -> None:
    file = write_rows(tmp_path / "t.csv", "a,b,class", "{i},{x},{i}")
    text = file.read_text()
    file.write_text(text.replace(",4998\n", ",4998 # doubtful\n"))
    with pytest.raises(DataError, match="line 4: the label '4998 # doubtful' stands among numbers"):
        read_frame(file, "class")
    few = text.splitlines()[:10]
    file.write_text("\n".join(few).replace(",4998", ",none of them"))  # a ninth of the labels
    assert "none of them" in set(read_frame(file, "class")[1])


def test_numbers_that_are_no_feature_are_left_out_by_their_name(tmp_path: Path) -> None:
    numbers = np.random.default_rng(4).permutation(np.arange(1000, 1030))
    names = ["id", "customer_id", "Unnamed: 0", "Row ID", "index", "paid", "number"]
    frame = pd.DataFrame(dict.fromkeys(names, numbers) | {"class": ["a", "b"] * 15})
    frame.to_csv(tmp_path / "t.csv", index=False)
    X, _ = read_frame(tmp_path / "t.csv", "class")
    assert list(X.columns) == ["paid", "number"]
    said = "the column customer_id (another number in each row, as ids are)"
    assert said in X.attrs[LEFT_OUT]
    frame.loc[3, "id"] = frame.loc[4, "id"]  # a group that is in two rows may tell something
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert "id" in read_frame(tmp_path / "t.csv", "class")[0].columns


def test_ids_and_dates_are_left_out_and_named(tmp_path: Path) -> None:
    file = write_rows(tmp_path / "t.csv", "id,day,size,class", "n{i},2024-01-{x}1,{x},{y}")
    file.write_text(file.read_text().replace("101,", "10,"))
    X, _ = read_frame(file, "class")
    assert list(X.columns) == ["size"]
    assert X.attrs[LEFT_OUT] == [
        "the column id (another value in each row, as ids are)",
        "the column day (dates such as 2024-01-01; make numbers of them to use them, such as days"
        " since the first)",
    ]
    years = list(range(1990, 2020))
    running = pd.DataFrame(
        {"n": range(30), "year": years, "size": [1, 2, 2] * 10, "class": ["a", "b"] * 15}
    )
    running.to_csv(file, index=False)
    X, _ = read_frame(file, "class")
    assert list(X.columns) == ["year", "size"]


@pytest.mark.parametrize(("n_same", "is_text"), [(0, False), (9, True), (19, True), (20, False)])
def test_free_text_is_left_out_and_named(tmp_path: Path, n_same: int, is_text: bool) -> None:
    rows = [
        f"{'call back' if i < n_same else f'asked for {i * i} days'},{i % 7},{'ab'[i % 2]}\n"
        for i in range(40)
    ]
    (tmp_path / "t.csv").write_text("notes,size,class\n" + "".join(rows))
    X, _ = read_frame(tmp_path / "t.csv", "class")
    said = "".join(X.attrs.get(LEFT_OUT, ()))
    assert list(X.columns) == (["notes", "size"] if n_same == 20 else ["size"])
    own = f"the column notes (free text: {100 * (40 - n_same) / 40:.0f} % of its values occur once;"
    assert (own in said) is is_text
    assert ("another value in each row" in said) is (n_same == 0)


@pytest.mark.parametrize(
    ("written", "is_date"),
    [
        ("{d}/12/2024", True),
        ("12/{d}/2024", True),
        ("{d}/12/24 14:05", True),
        ("{d}.12.2024", True),
        ("2024/12/{d}", True),
        ("{d} Dec 2024", True),
        ('"Dec {d}, 2024 9:05 pm"', True),
        ("1.2.{d}", False),  # a version
        ("{d}/12-2024", False),
        ("{d} of 2024", False),
    ],
)
def test_dates_of_all_countries_are_left_out_and_named(
    tmp_path: Path, written: str, is_date: bool
) -> None:
    rows = (f"{written.format(d=10 + i % 19)},{i % 7},{'ab'[i % 2]}\n" for i in range(40))
    (tmp_path / "t.csv").write_text("day,size,class\n" + "".join(rows))
    X, _ = read_frame(tmp_path / "t.csv", "class")
    assert list(X.columns) == (["size"] if is_date else ["day", "size"])
    example = written.strip('"').format(d=10)
    assert is_date == any(f"dates such as {example};" in one for one in X.attrs.get(LEFT_OUT, ()))


def test_the_cap_of_categories_is_said() -> None:
    X = pd.DataFrame({"town": [f"t{i % 60}" for i in range(120)], "plan": ["a", "b"] * 60})
    _, said = encoder(X)
    assert "the 49 most frequent values have a feature each, all others one: town" in said
