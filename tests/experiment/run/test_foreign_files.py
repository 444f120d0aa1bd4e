"""A run replaces no file that no run wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from runs import svmbench, write_config

from svmbench.base.errors import ConfigError
from svmbench.experiment.run.record_file import refuse_foreign

PLAN = {
    "tables": [{"name": "adult"}],
    "plots": [{"name": "speed"}],
}


@pytest.mark.slow
def test_the_data_beside_a_config_are_not_replaced_by_a_table_of_their_name(tmp_path: Path) -> None:
    rows = "".join(f"{i % 2 or -1},{i}\n" for i in range(40))
    config = write_config(tmp_path, ["dcd-l1"], tables=[{"name": "adult", "block": "main"}])
    (tmp_path / "adult.csv").write_text(rows)
    ended = svmbench("run", config, "--output", tmp_path)
    assert ended.code == 2
    assert "adult.csv, which no run wrote" in ended.err
    assert (tmp_path / "adult.csv").read_text() == rows
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([config.name, "adult.csv"])
    (tmp_path / "adult.csv").rename(tmp_path / "data.csv")
    for _ in range(2):  # its own table is replaced
        assert svmbench("run", config, "--output", tmp_path).code == 0
    assert (tmp_path / "adult.csv").is_file()
    assert (tmp_path / "data.csv").read_text() == rows
    # a table that an override adds
    more = "tables=[{name: adult, block: main}, {name: data, block: main}]"
    ended = svmbench("run", config, "--output", tmp_path, "--set", more)
    assert (ended.code, "data.csv, which no run wrote" in ended.err) == (2, True), ended.said
    assert (tmp_path / "data.csv").read_text() == rows


@pytest.mark.parametrize(
    "name",
    [
        *("adult.csv", "adult.md", "speed.svg", "speed.png", "speed-exponents.csv"),
        *("table.csv", "tables.md", "plan.json"),
    ],
)
def test_every_file_that_a_run_writes_is_looked_for(tmp_path: Path, name: str) -> None:
    refuse_foreign(tmp_path / "none", PLAN)
    (tmp_path / "other.csv").write_text("x")
    refuse_foreign(tmp_path, PLAN)
    (tmp_path / name).write_text("x")
    with pytest.raises(ConfigError, match=f"has {name}, which no run wrote"):
        refuse_foreign(tmp_path, PLAN)
    (tmp_path / "plan.json").write_text(json.dumps(PLAN))
    (tmp_path / "runs.jsonl").write_text("")
    refuse_foreign(tmp_path, PLAN)
    (tmp_path / "plan.json").write_text("damaged")
    refuse_foreign(tmp_path, PLAN)
    (tmp_path / "runs.jsonl").unlink()
    with pytest.raises(ConfigError, match="which no run wrote"):
        refuse_foreign(tmp_path, PLAN)
