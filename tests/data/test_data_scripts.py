"""The maintainers' tools: the docs' table is current, and a new entry is what it prepares to."""

from __future__ import annotations

import lzma
import tomllib
from pathlib import Path

import numpy as np
import pytest
from script_loading import load_script

from svmbench import data

ROOT = Path(__file__).resolve().parents[2]


def test_docs_datasets_md_is_current():
    written = (ROOT / "docs" / "datasets.md").read_text(encoding="utf-8")
    assert written == load_script("datasets_md").page(), "run: python scripts/datasets_md.py"


def test_the_docs_say_what_differs_from_print():
    page = load_script("datasets_md").page()
    (line,) = [line for line in page.splitlines() if line.startswith("| `planning-relax` |")]
    assert "| 182 |" in line
    assert "146 × 12" in line
    assert "**differs**: the paper's 146 contradicts" in line
    for name in data.names():
        assert f"**`{name}`** — " in page


def test_a_new_libsvm_entry_can_be_pasted(use_registry, tmp_path, monkeypatch, capsys):
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "my.svm.xz").write_bytes(lzma.compress(b"0 1:1\n1 2:2\n1 3:4\n"))
    (tmp_path / "m" / "my.t").write_bytes(b"1 4:4\n0 1:1\n")
    arguments = [str(tmp_path / "m" / "my.svm.xz"), "--test", str(tmp_path / "m" / "my.t")]
    assert load_script("new_dataset").main([*arguments, "--name", "mine"]) == 0
    text = capsys.readouterr().out
    said = tomllib.loads(text)["mine"]
    assert said["n_features"] == 4
    assert said["counts"] == [1, 2]
    assert said["test_counts"] == [1, 1]
    use_registry(text.replace('origin = "?"', 'origin = "here"').replace(', url = "?"', ""))
    monkeypatch.setenv("SVMBENCH_MIRROR", str(tmp_path / "m"))
    held = data.load("mine")
    np.testing.assert_array_equal(held.y, [-1, 1, 1])
    assert held.facts["verified"] == "sha256"


def test_a_new_table_entry_can_be_pasted(use_registry, tmp_path, monkeypatch, capsys):
    (tmp_path / "my.csv").write_bytes(b"id,x,kind\n1,5,no\n2,6,yes\n3,7,maybe\n")
    reading = 'format = "table", header = true, label = "kind", drop = ["id"]'
    tool = load_script("new_dataset")
    arguments = [str(tmp_path / "my.csv"), "--reading", reading]
    assert tool.main([*arguments, "--derivation", 'positive = ["yes"]']) == 0
    text = capsys.readouterr().out
    use_registry(text.replace('origin = "?"', 'origin = "here"').replace(', url = "?"', ""))
    monkeypatch.setenv("SVMBENCH_MIRROR", str(tmp_path))
    np.testing.assert_array_equal(data.load("my.csv").X, [[5], [6], [7]])
    np.testing.assert_array_equal(data.load("my.csv").y, [-1, 1, -1])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["gone.svm"], "No such file"),
        (["my.svm"], "my.svm, line 1, column 3: 'x' is not of the form"),
        (["my.svm", "--reading", "format ="], "Invalid value"),
        (["my.svm", "--reading", "form = 1"], "form"),
    ],
)
def test_the_tool_says_what_is_wrong(tmp_path, monkeypatch, capsys, arguments, said):
    monkeypatch.chdir(tmp_path)
    Path("my.svm").write_bytes(b"1 x\n")
    assert load_script("new_dataset").main(arguments) == 1
    assert said in capsys.readouterr().err
