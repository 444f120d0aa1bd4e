"""What a dry run says, that it does nothing, and that large plans are made in time."""

from __future__ import annotations

import contextlib
import json
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from runs import svmbench, write_config

from svmbench.experiment.plan.planner import prepare_plan
from svmbench.experiment.run.forecast import forecast
from svmbench.experiment.run.record_file import RunFolder
from svmbench.experiment.run.session import Request, RunPlan
from svmbench.schema.record import Record

pytestmark = pytest.mark.usefixtures("workshop")

BLOCK = {"protocol": "nested-cv", "outer_folds": 3, "inner_folds": 3}


def test_a_dry_run_says_what_would_be_done_and_does_nothing(
    tmp_path: Path, private_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").mkdir()  # no kept records
    config = write_config(
        tmp_path, ["test-works", "test-slow"], BLOCK, datasets=["breast-cancer", "a9a"]
    )
    out = tmp_path / "out"
    ended = svmbench("run", config, "--output", out, "--dry-run")
    assert ended.code == 0
    assert not out.exists()
    assert not (private_cache / "prepared").exists()
    lines = ended.out.splitlines()
    assert lines[0] == (
        "config (quick): 12 cells, 12 to run, 0 with a record; 12 of them, of data sets to fetch"
        " or prepare first, are counted by registered sizes (a run counts one for each block and"
        " solver of a missing data set)"
    )
    assert "to prepare first, generated here or scikit-learn's: breast-cancer" in lines
    assert "to fetch first, from the official addresses, by 'svmbench fetch': a9a" in lines
    assert "  main · a9a: 6 cells, data not here yet (test-works, test-slow)" in lines

    assert svmbench("fetch", "breast-cancer", "-q").code == 0
    lines = svmbench("run", config, "--output", out, "--dry-run").out.splitlines()
    assert lines[0].startswith("config (quick): 12 cells, 12 to run, 0 with a record; 6 of them")
    assert "  main · breast-cancer: 6 cells (test-works, test-slow)" in lines
    assert lines[-1] == (
        "12 cells to run: no record tells how long they take; 6 of them wait for data sets that"
        " must be fetched or prepared first; a cell ends after 300 s at the latest"
    )


def test_a_dry_run_tells_the_time_of_data_that_are_not_here_apart(tmp_path: Path) -> None:
    sets = ["breast-cancer", "a9a"]
    config = write_config(tmp_path, ["test-works"], {"protocol": "fit"}, datasets=sets)
    plan = prepare_plan(str(config), "quick", prepare=False)
    statuses, seconds = ("planned", "not run"), {"breast-cancer": 60.0, "a9a": 180.0}
    cells = [replace(c, status=s) for c, s in zip(plan.cells, statuses, strict=True)]
    found = forecast(
        RunPlan(Request(str(config)), plan, cells, tmp_path / "out"),
        recorded=lambda cell: seconds[cell.identity["dataset"]],
    )
    assert (
        "2 cells to run: about 4 minutes by recorded times; 1 of them wait for" in found.lines[-1]
    )
    assert "fetched or prepared first (about 3 minutes of it);" in found.lines[-1]


def test_a_dry_run_goes_by_kept_records_of_the_paper(tmp_path: Path) -> None:
    """Twice the folds take about twice the time that a kept run of the same solver took."""
    config = write_config(tmp_path, ["test-works"], BLOCK)
    kept = tmp_path / "results" / "smo" / "config-quick"
    assert svmbench("run", config, "--output", kept).code == 0
    for line in (records := kept / "runs.jsonl").read_text().splitlines():
        record = json.loads(line)
        if record["kind"] == "cell":
            record["wall_s"] = 100.0
            records.write_text(records.read_text().replace(line, json.dumps(record)))
    (tmp_path / "again").mkdir()
    again = write_config(tmp_path / "again", ["test-works"], {**BLOCK, "inner_folds": 6})
    with contextlib.chdir(tmp_path):
        said = svmbench("run", again, "--output", tmp_path / "out", "--dry-run").out
    found = re.search(r"3 cells to run: about (\d+) minutes by recorded times; a cell ends", said)
    assert found
    assert 3 * 100 < 60 * int(found[1]) < 3 * 400


def test_a_dry_run_counts_the_cells_that_the_options_choose(tmp_path: Path) -> None:
    """Of three keys, one has a failure, one a result, one no record; two cells share the last."""
    config, out = write_config(tmp_path, ["test-works"], {"protocol": "fit"}), tmp_path / "out"
    request = Request(str(config), output=out)
    plan = prepare_plan(str(config), "quick")
    (cell,) = plan.cells
    cells = [replace(cell, key=key) for key in "abcc"]

    def write(folder: Path, **status_of: str) -> None:
        with RunFolder(folder) as opened:
            for key, status in status_of.items():
                facts = {"kind": "cell", "key": key, "status": status, "metrics": {"accuracy": 1.0}}
                opened.append(cast(Record, {**cell.identity, **facts}))

    def counted(**options: Any) -> tuple[int, str]:
        run_plan = RunPlan(replace(request, **options), plan, cells, out)
        found = forecast(run_plan)
        return found.n_cells, " ".join(found.lines)

    write(out, a="failed", b="ok")
    write(tmp_path / "other", a="ok", c="ok")
    n_cells, text = counted(timeout_s=60.0)
    assert n_cells == 1  # both cells of the key c are one
    assert "4 cells, 1 to run, 2 with a record" in text
    assert "a cell ends after 60 s at the latest" in text
    assert counted(retry="failed")[0] == 2
    assert counted(retry="timeout")[0] == 1
    assert counted(fresh=True)[0] == 3
    assert counted(reuse=(tmp_path / "other",))[0] == 0
    assert counted(reuse=(tmp_path / "other",), retry="failed")[0] == 0
    assert counted(reuse=(tmp_path / "other",), fresh=True)[0] == 1


@pytest.mark.slow
def test_a_dry_run_goes_by_what_was_measured(tmp_path: Path) -> None:
    config, out = write_config(tmp_path, ["test-works"], BLOCK), tmp_path / "out"
    assert svmbench("run", config, "--output", out, "--only", "fold=1").code == 0
    before = {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}
    lines = svmbench("run", config, "--output", out, "--dry-run").out.splitlines()
    assert lines[0] == "config (quick): 3 cells, 2 to run, 1 with a record"
    assert lines[-1].startswith("2 cells to run: less than a minute by recorded times")
    assert "no record tells" not in lines[-1]
    assert {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()} == before


@pytest.mark.slow
def test_a_large_plan_takes_time_in_proportion_and_little_of_it(tmp_path: Path) -> None:
    """A hundred thousand cells in a minute are 0.6 ms each."""
    solvers = [{"name": "test-works", "label": f"s{i}"} for i in range(50)]
    block = {"protocol": "nested-cv", "outer_folds": 10, "inner_folds": 3}
    config = write_config(tmp_path, solvers, {**block, "sizes": [100, 200, 300, 400]})
    prepare_plan(str(config), "quick")  # imports, compiled code and the data set
    began = time.process_time()
    plan = prepare_plan(str(config), "quick")
    assert len(plan.cells) == 2000
    assert time.process_time() - began < 1.2
