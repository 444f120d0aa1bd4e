"""Data sets of OpenML by number, from a local server that answers as OpenML does."""

from __future__ import annotations

import gzip
import hashlib
import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import yaml
from misbehaving_server import Server
from runs import cells_of, svmbench
from sklearn.datasets import _openml, fetch_openml

from svmbench.base.errors import DataError, DataUnavailableError
from svmbench.data import load, openml
from svmbench.studies import trying

pytestmark = pytest.mark.usefixtures("workshop", "private_cache")

NUMBER = 77
DESCRIPTION = f"/api/v1/json/data/{NUMBER}"
FILE = f"/data/v1/download/{NUMBER}/visits.arff"
#: Rows, and those of them that lack an age.
N_ROWS, N_GAPS = 90, 2


def columns() -> pd.DataFrame:
    """Return the rows: a row's number, an age, a count, two columns of words, and the class."""
    random = np.random.default_rng(0)
    plan = random.choice(["basic", "plus plus", "pro"], N_ROWS)
    frame = pd.DataFrame(
        {
            "id": np.arange(N_ROWS),
            "age": random.normal(40, 10, N_ROWS).round(1),
            "visits": random.integers(0, 9, N_ROWS),
            "plan": plan,
            "zone": random.choice(["1", "2"], N_ROWS),
            "churn": np.where(plan == "pro", "yes", "no"),
        }
    )
    frame.loc[:1, "age"] = np.nan
    return frame


KINDS = {
    "id": "NUMERIC",
    "age": "REAL",
    "visits": "INTEGER",
    "plan": "{basic,'plus plus',pro}",
    "zone": "{1,2}",
    "churn": "{no,yes}",
}


def arff(frame: pd.DataFrame) -> bytes:
    head = [f"@ATTRIBUTE {name} {KINDS[name]}" for name in frame.columns]
    words = frame.astype(object).where(frame.notna(), "?").astype(str)
    rows = [",".join(f"'{w}'" if " " in w else w for w in row) for row in words.to_numpy()]
    return "\n".join(["@RELATION visits", *head, "@DATA", *rows, ""]).encode()


def serve(server: Server, content: bytes, names: list[str], kind: str = "ARFF") -> None:
    """Let the server answer for the data set as OpenML does."""
    description = {
        "id": str(NUMBER),
        "name": "visits",
        "version": "2",
        "format": kind,
        "licence": "CC BY 4.0",
        "status": "active",
        "description": "Made for this test.",
        "url": f"https://api.openml.org{FILE}",
        "md5_checksum": hashlib.md5(content).hexdigest(),
    }
    features = [
        {
            "index": str(i),
            "name": name,
            "data_type": "nominal" if KINDS.get(name, "").startswith("{") else "numeric",
            "is_target": json.dumps(name == "churn"),
            "is_ignore": "false",
            "is_row_identifier": json.dumps(name == "id"),
            "number_of_missing_values": "0",
        }
        for i, name in enumerate(names)
    ]
    rows = [{"name": "NumberOfInstances", "value": f"{N_ROWS}.0"}]
    for below, answer in (
        ("", {"data_set_description": description}),
        ("features/", {"data_features": {"feature": features}}),
        ("qualities/", {"data_qualities": {"quality": rows}}),
    ):
        path = f"/api/v1/json/data/{below}{NUMBER}"
        server.files[path] = json.dumps(answer).encode()
    server.files[FILE] = content


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """Return the server that stands for OpenML, with one data set."""
    server = Server()
    frame = columns()
    serve(server, arff(frame), list(frame.columns))
    real = _openml.urlopen

    def open_here(request: Any) -> Any:
        _, _, path = request.full_url.partition("openml.org")
        return real(_openml.Request(server.url + path))

    monkeypatch.setattr(_openml, "urlopen", open_here)
    monkeypatch.setattr(_openml, "time", SimpleNamespace(sleep=lambda _: None))
    monkeypatch.delenv("SVMBENCH_OFFLINE", raising=False)
    yield server
    server.close()


def kept_in(cache: Path) -> list[Path]:
    return sorted(cache.glob("openml/*")) + sorted(cache.glob("openml/.*"))


def test_a_data_set_is_read_by_its_number_and_kept(
    server: Server, private_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DataError, match=r"values are missing: age \(2\)"):
        load("openml:77")
    held = load("openml:77", impute=True)
    frame = columns()
    # Numbers first, then the words of plan and zone; the row's number is no feature.
    assert held.X.shape == (N_ROWS, 2 + 3 + 2)
    np.testing.assert_allclose(held.X[N_GAPS:, 0], frame.age[N_GAPS:])
    assert held.X[0, 0] == pytest.approx(frame.age.median())
    np.testing.assert_array_equal(held.X[:, 1], frame.visits)
    np.testing.assert_array_equal(held.X[:, 3], frame.plan == "plus plus")
    np.testing.assert_array_equal(held.y == 1, frame.churn == "yes")
    digest = hashlib.sha256(arff(frame)).hexdigest()
    assert held.facts["files"] == {"openml:77": digest}
    assert (held.facts["source"], held.facts["verified"]) == ("openml", "md5")
    # From here on nothing is asked of the server.
    asked = len(server.seen)
    monkeypatch.setenv("SVMBENCH_OFFLINE", "1")
    again = load(f"openml:77@{digest}", impute=True, text="ordinal")
    assert again.X.shape == (N_ROWS, 4)
    other = load("openml:77", label_column="zone", impute=True)
    assert other.facts["classes"] == ["1", "2"]
    assert len(server.seen) == asked
    assert [place.name for place in kept_in(private_cache)] == ["77"]
    assert re.search(r"^openml +77 ", svmbench("cache").out, re.MULTILINE)
    assert svmbench("cache", "--older-than", 0).code == 0
    assert kept_in(private_cache) == []


def test_a_wrong_checksum_is_refused_and_leaves_nothing(
    server: Server, private_cache: Path
) -> None:
    for _ in range(2):
        ended = svmbench("describe", f"openml:77@{'0' * 64}")
        assert ended.code == 2
        assert "openml:77: its ARFF file has the sha256" in ended.err
        assert ended.err.count("\n") == 1
        assert kept_in(private_cache) == []
    load("openml:77", impute=True)
    with pytest.raises(DataError, match="instead of 000000000000"):
        load(f"openml:77@{'0' * 64}", impute=True)


def test_what_was_kept_and_is_damaged_is_fetched_again(
    server: Server, private_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load("openml:77", impute=True)
    places = sorted(private_cache.glob("openml/77/**/*.gz"))
    assert len(places) == 4
    for place, cut in itertools.product(places, (True, False)):
        held = place.read_bytes()
        place.write_bytes(held[:-9] if cut else gzip.compress(gzip.decompress(held) + b"\n"))
        monkeypatch.setenv("SVMBENCH_OFFLINE", "1")
        with pytest.raises(DataUnavailableError, match="no whole copy is kept here"):
            load("openml:77", impute=True)
        monkeypatch.delenv("SVMBENCH_OFFLINE")
        assert load("openml:77", impute=True).X.shape[0] == N_ROWS


@pytest.mark.parametrize(
    ("path", "faults", "code", "said"),
    [
        (DESCRIPTION, ["412"] * 2, 1, "OpenML has no data set 77"),
        (DESCRIPTION, ["500"] * 9, 1, "openml:77 can't be downloaded: the server answered 500"),
        (FILE, ["500"] * 9, 1, "openml:77 can't be downloaded: the server answered 500"),
        (FILE, ["half"] * 9, 2, "openml:77: OpenML's answer is damaged or can't be read"),
        (DESCRIPTION, ["half"] * 9, 2, "openml:77: OpenML's answer is damaged or can't be read"),
    ],
)
def test_a_download_that_fails_is_one_sentence_and_leaves_nothing(
    server: Server, private_cache: Path, path: str, faults: list[str], code: int, said: str
) -> None:
    server.faults[path] = faults
    ended = svmbench("describe", "openml:77")
    assert ended.code == code, ended.said
    assert said in ended.err
    assert ended.err.count("\n") == 1
    assert kept_in(private_cache) == []
    server.faults.clear()
    assert svmbench("describe", "openml:77").code == 0


def test_a_server_that_falls_silent_is_given_up(
    server: Server, private_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openml, "MAX_SILENCE_S", 0.2)
    server.faults[FILE] = ["stall"] * 9
    with pytest.raises(DataUnavailableError, match="can't be downloaded: the connection stalled"):
        load("openml:77", impute=True)
    assert kept_in(private_cache) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text.replace('"data_features"', '"other"'), "damaged or can't be read"),
        (lambda text: text.replace('"is_target": "true"', '"is_target": "false"'), "0 label"),
    ],
)
def test_other_answers_than_expected_are_told(server: Server, change: Any, said: str) -> None:
    path = f"/api/v1/json/data/features/{NUMBER}"
    server.files[path] = change(server.files[path].decode()).encode()
    ended = svmbench("describe", "openml:77")
    assert ended.code == 2
    assert said in ended.err


def test_a_file_outside_the_folder_is_refused(server: Server, private_cache: Path) -> None:
    description = json.loads(server.files[DESCRIPTION])
    description["data_set_description"]["url"] = "https://api.openml.org/../../../escaped.arff"
    server.files[DESCRIPTION] = json.dumps(description).encode()
    server.files["/../../../escaped.arff"] = server.files[FILE]
    ended = svmbench("describe", "openml:77")
    assert ended.code == 2
    assert "openml:77: OpenML's answer is damaged or can't be read" in ended.err
    assert "has no ARFF file" in ended.err
    assert not (private_cache / "openml/77").exists()


def test_names_that_are_none_are_told() -> None:
    for name in ("openml:", "openml:0", "openml:7x", "openml:77@abc", f"openml:{'9' * 10}"):
        ended = svmbench("describe", name)
        assert ended.code == 2
        assert f"{name} names no data set of OpenML" in ended.err


def test_a_sparse_data_set_is_read_as_a_sparse_matrix(server: Server) -> None:
    names = ["a", "b", "c", "churn"]
    kinds = ["NUMERIC"] * 3 + ["{no,yes}"]
    head = [f"@ATTRIBUTE {name} {kind}" for name, kind in zip(names, kinds, strict=True)]
    rows = [f"{{{i % 3} {i + 1},3 {'yes' if i % 3 else 'no'}}}" for i in range(N_ROWS)]
    content = "\n".join(["@RELATION sparse", *head, "@DATA", *rows, ""]).encode()
    serve(server, content, names, "Sparse_ARFF")
    held = load("openml:77")
    dense = held.X.toarray() if sp.issparse(held.X) else np.asarray(held.X)
    expected = np.zeros((N_ROWS, 3))
    expected[np.arange(N_ROWS), np.arange(N_ROWS) % 3] = np.arange(N_ROWS) + 1
    np.testing.assert_array_equal(dense, expected)
    np.testing.assert_array_equal(held.y == 1, np.arange(N_ROWS) % 3 > 0)
    assert svmbench("describe", "openml:77").code == 0
    ended = svmbench("try", "openml:77")
    assert ended.code == 2
    assert "openml:77 is sparse" in ended.err


def test_a_column_of_words_of_a_sparse_data_set_is_encoded(server: Server) -> None:
    names, words = ["a", "colour", "b", "churn"], ["red", "green", "blue"]
    kinds = ["NUMERIC", f"{{{','.join(words)}}}", "NUMERIC", "{no,yes}"]
    head = [f"@ATTRIBUTE {name} {kind}" for name, kind in zip(names, kinds, strict=True)]
    colours = [words[i * i % 7 % 3] for i in range(N_ROWS)]
    rows = [
        f"{{0 {i + 1}{'' if colour == 'red' else f',1 {colour}'},3 {'yes' if i % 3 else 'no'}}}"
        for i, colour in enumerate(colours)  # what is not written is the first word
    ]
    content = "\n".join(["@RELATION sparse", *head, "@DATA", *rows, ""]).encode()
    serve(server, content, names, "Sparse_ARFF")
    numbers = np.column_stack([np.arange(N_ROWS) + 1.0, np.zeros(N_ROWS)])
    order = sorted(words)
    one_hot = np.array([[float(colour == word) for word in order] for colour in colours])
    held = load("openml:77")
    np.testing.assert_array_equal(held.X, np.hstack([numbers, one_hot]))
    ordinal = np.array([[order.index(colour)] for colour in colours])
    held = load("openml:77", text="ordinal")
    np.testing.assert_array_equal(held.X, np.hstack([numbers, ordinal]))


def test_a_missing_label_is_told_with_its_row(server: Server) -> None:
    frame = columns()
    frame["churn"] = frame["churn"].astype(object)
    frame.loc[4, "churn"] = np.nan
    serve(server, arff(frame), list(frame.columns))
    with pytest.raises(DataError, match="openml:77, row 5: the label is missing"):
        load("openml:77", impute=True)


def test_describe_shows_what_openml_says(server: Server) -> None:
    ended = svmbench("describe", "openml:77", "--json")
    card = json.loads(ended.out)
    assert card["dataset"] == "openml:77"
    assert card["what"] == "visits, version 2"
    assert (card["label"], card["licence"]) == ("churn", "CC BY 4.0")
    assert card["missing values"] == "age (2): refused unless --impute is given"
    assert card["columns"][1] == "2 text columns, one-hot: plan (3 values), zone (2 values)"
    assert card["sha256"] == hashlib.sha256(arff(columns())).hexdigest()


def test_try_writes_a_pipeline_for_the_frames_of_scikit_learn(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trying, "CANDIDATES", trying.CANDIDATES[:1])
    monkeypatch.chdir(tmp_path)
    ended = svmbench("try", "openml:77", "--no-impute")
    assert ended.code == 2
    assert "values are missing: age (2)" in ended.err
    ended = svmbench("try", "openml:77", "--minutes", 0.02)
    assert ended.code == 0, ended.said
    assert "openml:77: 90 rows, 2 classes of churn" in ended.out
    assert "loading the solvers (on a new machine they are compiled, a minute" in ended.out
    assert (
        "print(model.predict(sklearn.datasets.fetch_openml(data_id=77, parser='liac-arff').frame"
        in ended.out
    )
    model = joblib.load("openml-77.joblib")
    frame = fetch_openml(data_id=NUMBER, data_home=tmp_path / "home", parser="liac-arff").frame
    assert np.mean(model.predict(frame) == frame.churn) > 0.95


@pytest.mark.slow
def test_a_config_and_the_races_take_a_number(
    server: Server, tmp_path: Path, private_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SVMBENCH_MIRROR", str(tmp_path / "none"))
    words = ("race", "-d", "openml:77", "--impute", "-s", "dcd-l1 C=1", "-s", "newton-l2", "--yaml")
    ended = svmbench(*words)
    assert ended.code == 0, ended.said
    config = yaml.safe_load(ended.out)
    assert config["datasets"] == [{"openml": 77, "impute": True}]
    assert kept_in(private_cache) == []
    digest = hashlib.sha256(arff(columns())).hexdigest()
    file = tmp_path / "race.yaml"

    def run(**changes: Any) -> Any:
        config["datasets"] = [{"openml": 77, "impute": True, **changes}]
        config["blocks"][0]["repeats"] = 1
        file.write_text(yaml.safe_dump(config))
        return svmbench("run", file, "--output", tmp_path / "out")

    ended = run(sha256="0" * 64)
    assert ended.code == 2
    assert "openml:77: its ARFF file has the sha256" in ended.err
    assert kept_in(private_cache) == []
    assert run(sha256=digest).code == 0
    (cell,) = cells_of(tmp_path / "out").values()
    assert (cell["status"], cell["dataset"]) == ("ok", "openml:77")
    assert cell["data_sha256"] == load("openml:77", impute=True).sha256
    # The checksum changes no key: nothing is run again.
    assert run().code == 0
    assert len(cells_of(tmp_path / "out")) == 1
    timed = ("time", "openml:77", "--impute", "--solver", "dcd-l1", "--vs", "newton-l2")
    ended = svmbench(*timed, "--rounds", 1)
    assert ended.code == 0, ended.said
    assert "openml:77: 90 rows" in ended.out


def test_an_unreachable_data_set_leaves_the_others_to_a_run(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SVMBENCH_OFFLINE", "1")
    config = yaml.safe_load(
        svmbench("race", "-d", "openml:77", "-s", "dcd-l1", "-s", "newton-l2", "--yaml").out
    )
    config["datasets"].append("breast-cancer")
    config["blocks"][0]["repeats"] = 1
    (tmp_path / "race.yaml").write_text(yaml.safe_dump(config))
    ended = svmbench("run", tmp_path / "race.yaml", "--output", tmp_path / "out")
    assert "openml:77: no whole copy is kept here, and downloads are not allowed" in ended.said
    (cell,) = [one for one in cells_of(tmp_path / "out").values() if one["status"] == "ok"]
    assert cell["dataset"] == "breast-cancer"


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"openml": 0}, "should be at least 1"),
        ({"openml": 77, "file": "my.csv"}, "'openml' and 'file' exclude each other"),
        ({"openml": 77, "read": "blocks"}, "leave out 'read' and 'written'"),
        ({"openml": 77, "sha256": "abc"}, "sha256"),
        ({"name": "a9a", "sha256": "0" * 64}, "a registered data set has its own"),
    ],
)
def test_entries_that_contradict_themselves_are_told(
    tmp_path: Path, entry: dict[str, Any], said: str
) -> None:
    base = svmbench("race", "-d", "breast-cancer", "-s", "dcd-l1", "-s", "newton-l2", "--yaml").out
    config = yaml.safe_load(base)
    config["datasets"] = [entry]
    (tmp_path / "race.yaml").write_text(yaml.safe_dump(config))
    ended = svmbench("validate", tmp_path / "race.yaml")
    assert ended.code == 2
    assert said in ended.err


def test_a_file_is_compared_with_its_checksum(tmp_path: Path) -> None:
    table = tmp_path / "my.csv"
    columns().dropna().to_csv(table, index=False)
    base = svmbench("race", "-d", table, "--label", "churn", "-s", "dcd-l1", "-s", "newton-l2")
    assert base.code == 0, base.said
    words = ("race", "-d", table, "--label", "churn", "-s", "dcd-l1", "-s", "newton-l2", "--yaml")
    config = yaml.safe_load(svmbench(*words).out)
    digest = hashlib.sha256(table.read_bytes()).hexdigest()
    for sha256, code in ((digest, 0), ("0" * 64, 2)):
        config["datasets"][0]["sha256"] = sha256
        (tmp_path / "race.yaml").write_text(yaml.safe_dump(config))
        ended = svmbench("run", tmp_path / "race.yaml", "--output", tmp_path / f"out{code}")
        assert ended.code == code, ended.said
    assert "my.csv: the file's sha256 is not 000000000000…" in ended.err


def test_a_file_read_in_blocks_is_compared_with_its_checksum(tmp_path: Path) -> None:
    rows = tmp_path / "rows.libsvm"
    rows.write_text("1 1:1\n-1 1:2\n1 1:3\n-1 1:4\n")
    digest = hashlib.sha256(rows.read_bytes()).hexdigest()
    for sha256, code in ((digest, 0), ("0" * 64, 2), ("", 0)):
        config = {
            "title": "Rows in blocks",
            "datasets": [{"file": str(rows), "read": "blocks", "sha256": sha256}],
            "solvers": [{"name": "alsvm-batch"}],
            "blocks": [{"name": "fit", "protocol": "fit", "scaling": "none"}],
        }
        (tmp_path / "blocks.yaml").write_text(yaml.safe_dump(config))
        words = ("--profile", "paper", "--output", tmp_path / f"out{sha256[:1]}")
        ended = svmbench("run", tmp_path / "blocks.yaml", *words)
        assert (ended.code, "sha256 is not" in ended.err) == (code, code != 0), ended.said


@pytest.mark.slow
def test_describe_reads_a_table_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "my.csv"
    columns().to_csv(table, index=False)
    reads: list[str] = []
    real = pd.read_csv

    def read(*given: Any, **how: Any) -> Any:
        reads.append("header" if "nrows" in how else "table")
        return real(*given, **how)

    monkeypatch.setattr(pd, "read_csv", read)
    ended = svmbench("describe", table, "--label", "churn")
    assert ended.code == 0, ended.said
    assert [what for what in reads if what != "header"] == ["table"]
    assert "age (2)" in ended.out
