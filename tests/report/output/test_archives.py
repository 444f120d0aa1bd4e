"""Archives: CITATION.cff, RO-Crate and codecheck.yml of packs and pages."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
import yaml
from runs import svmbench
from synthetic_runs import facts_run, race_run, write_run

from svmbench.report.output.archives import About, write_metadata
from svmbench.report.output.packs import write_pack
from svmbench.report.reading.records import read_run

ABOUT = About(
    title="Our results",
    version="9.9",
    license="BSD-3-Clause",
    authors=("J. Doe", "R. Roe"),
    date="2026-01-31",
    repository="https://example.org/svm",
    checker="A. Checker",
)


def archived(place: Path, *runs: Path) -> Path:
    """Lay out an archive: packs, and the files of each run as a site has them."""
    (place / "packs").mkdir(parents=True)
    for run in runs:
        write_pack(run, place / "packs" / f"{run.name}.svmbench.zip")
        data = place / "site" / "data" / run.name
        data.mkdir(parents=True)
        plan = json.loads((run / "plan.json").read_text())
        (data / "plan.json").write_text(json.dumps(plan))
        for table in plan["tables"]:
            (data / f"{table['name']}.csv").write_text("1\n")
    write_metadata(place, [read_run(run) for run in runs], ABOUT)
    return place


def test_an_archive_of_one_paper_describes_its_files(tmp_path: Path) -> None:
    place = archived(tmp_path / "archive", race_run(tmp_path / "race"))
    checked = yaml.safe_load((place / "codecheck.yml").read_text())
    assert checked["paper"]["title"] == "Adaptable Linear Support Vector Machine"
    assert checked["codechecker"] == [{"name": "A. Checker"}]
    # The plot was not drawn, so that the manifest has the table alone.
    (one,) = checked["manifest"]
    assert one["file"] == "site/data/race/speed.csv"
    assert "svmbench run alsvm_table2 --profile quick" in one["comment"]
    cited = yaml.safe_load((place / "CITATION.cff").read_text())
    assert cited["cff-version"] == "1.2.0"
    assert cited["authors"] == [{"name": "J. Doe"}, {"name": "R. Roe"}]
    assert [one["title"] for one in cited["references"]] == [checked["paper"]["title"]]
    crate = json.loads((place / "ro-crate-metadata.json").read_text())
    known = {one["@id"]: one for one in crate["@graph"]}
    assert known["ro-crate-metadata.json"]["about"] == {"@id": "./"}
    root = known["./"]
    assert root["datePublished"] == "2026-01-31"
    # Every part and author is described, and every file is there with its sha256.
    for part in (*root["hasPart"], *root["author"], *root["about"]):
        assert part["@id"] in known
    files = [one for one in known.values() if one["@type"] == "File"]
    assert {one["@id"] for one in files} == {
        "packs/race.svmbench.zip", "CITATION.cff", "codecheck.yml",
    }  # fmt: skip
    for one in files:
        content = (place / one["@id"]).read_bytes()
        assert one["sha256"] == hashlib.sha256(content).hexdigest()


def test_each_of_several_papers_has_its_own_codecheck(tmp_path: Path) -> None:
    first, second = race_run(tmp_path / "race"), facts_run(tmp_path / "facts")
    plan = json.loads((second / "plan.json").read_text())
    plan["config"]["paper"] = "smo"
    (second / "plan.json").write_text(json.dumps(plan))
    place = archived(tmp_path / "archive", first, second)
    assert {path.name for path in place.glob("codecheck*")} == {
        "codecheck-alsvm.yml", "codecheck-smo.yml",
    }  # fmt: skip
    smo = yaml.safe_load((place / "codecheck-smo.yml").read_text())
    assert [one["file"] for one in smo["manifest"]] == ["site/data/facts/table1.csv"]


def test_runs_of_no_paper_have_no_codecheck(tmp_path: Path) -> None:
    run = race_run(tmp_path / "race")
    plan = json.loads((run / "plan.json").read_text())
    plan["config"]["paper"] = ""
    (run / "plan.json").write_text(json.dumps(plan))
    place = archived(tmp_path / "archive", run)
    assert not list(place.glob("codecheck*"))
    assert "references" not in yaml.safe_load((place / "CITATION.cff").read_text())


@pytest.mark.slow
def test_the_command_writes_packs_site_and_metadata(tmp_path: Path) -> None:
    run, target = race_run(tmp_path / "race"), tmp_path / "archive"
    words = ("archive", run, "-o", target, "--author", "J. Doe", "--date", "2026-01-31")
    ended = svmbench(*words)
    assert ended.code == 0, ended.said
    assert "1 pack, the site, CITATION.cff, codecheck.yml, ro-crate-metadata.json" in ended.out
    assert (target / "site" / "index.html").exists()
    assert len(list((target / "packs").iterdir())) == 1
    assert "is there already" in svmbench(*words).err
    empty = write_run(tmp_path / "empty", [], [])
    assert svmbench("archive", empty, "-o", tmp_path / "none").code == 1
