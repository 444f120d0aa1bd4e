"""Records of several machines are judged apart, and counted together."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from claimed_runs import SCENES, Kept
from runs import svmbench

from svmbench.papers import judging
from svmbench.schema.rechecks import MANIFEST

CLAIM = "smo-1"


def measured(root: Path, cpu: str, *, edit: bool = False, contributed: bool = False) -> Path:
    """Write records that bear the claim out (or, edited, contradict it), of some CPU model."""
    kept = Kept()
    SCENES[CLAIM].build(kept)
    if edit:
        kept.edit(SCENES[CLAIM].edit)
    kept.write(root)
    for path in root.rglob("environment-*.json"):
        path.write_text(json.dumps({**json.loads(path.read_text()), "cpu": cpu}))
        if contributed:
            (path.parent / MANIFEST).write_text("{}")
    return root


def judged(*folders: Path) -> dict[str, object]:
    words = ["claims", *folders, "--claim", CLAIM, "--format", "json", "--no-ages"]
    ended = svmbench(*words)
    assert ended.code == 0, ended.said
    (verdict,) = json.loads(ended.out)
    assert isinstance(verdict, dict)
    return verdict


def test_one_machine_is_named(tmp_path: Path) -> None:
    verdict = judged(measured(tmp_path / "results", "CPU A"))
    assert (verdict["outcome"], verdict["cpus"]) == ("supported", ["CPU A"])
    assert (verdict["machines"], verdict["together"]) == ([], "")


def test_two_machines_agree(tmp_path: Path) -> None:
    ours, other = (measured(tmp_path / cpu, cpu) for cpu in ("CPU A", "CPU B"))
    verdict = judged(ours, other)
    assert verdict["together"] == "supported on 2 of 2 machines"
    machines = verdict["machines"]
    assert isinstance(machines, list)
    assert [one["name"] for one in machines] == ["CPU A", "CPU B"]
    shown = svmbench("claims", ours, other, "--no-ages", "--paper", "smo").out
    assert "supported on 2 of 2 machines" in shown
    assert "ours: CPU B" in shown
    assert all(len(one) <= 80 for one in shown.splitlines()[:-1])


def test_two_machines_disagree(tmp_path: Path) -> None:
    ours = measured(tmp_path / "results", "CPU A")
    other = measured(tmp_path / "other", "CPU B", edit=True)
    verdict = judged(ours, other)
    assert verdict["outcome"] == "supported"
    assert str(verdict["together"]).startswith("supported on 1 of 2 machines, ")


def test_folders_of_one_machine_are_one(tmp_path: Path) -> None:
    verdict = judged(measured(tmp_path / "a", "CPU A"), measured(tmp_path / "b", "CPU A"))
    assert verdict["machines"] == []


@pytest.mark.parametrize("order", [1, -1])
def test_a_folder_without_results_is_no_machine(tmp_path: Path, order: int) -> None:
    folders = [measured(tmp_path / "full", "CPU A"), measured(tmp_path / "empty", "CPU B")]
    for path in folders[1].rglob("runs.jsonl"):
        path.write_text("")
    assert list(judging.gather_by_machine(folders[::order])) == ["CPU A"]
    assert list(judging.gather_by_machine(folders[1:])) == [""]


def test_contributed_runs_never_stand_for_ours(tmp_path: Path) -> None:
    root = measured(tmp_path / "results" / "own", "CPU A").parent
    measured(root / "contributed", "CPU A", edit=True, contributed=True)
    verdict = judged(root)
    assert verdict["outcome"] == "supported"
    machines = verdict["machines"]
    assert isinstance(machines, list)
    assert [one["origin"] for one in machines] == ["ours", "from elsewhere"]
    assert [one["name"] for one in machines] == ["CPU A", "CPU A (contributed)"]
    # What README, figures and pages of kept results say rests on ours alone.
    paths = [
        one.run.path for found in judging.gather_evidence([root]).sources.values() for one in found
    ]
    assert paths
    assert not any("contributed" in path.parts for path in paths)


def test_a_claim_that_contributed_runs_alone_judge(tmp_path: Path) -> None:
    root = measured(tmp_path / "results", "CPU A", contributed=True)
    verdict = judged(root)
    assert verdict["together"] == "supported on 1 of 1 machine"


def test_a_missing_folder(tmp_path: Path) -> None:
    ended = svmbench("claims", tmp_path / "nowhere")
    assert (ended.code, "is no folder of results" in ended.err) == (1, True)


@pytest.mark.parametrize("form", ["markdown", "latex"])
def test_other_formats_say_it(tmp_path: Path, form: str) -> None:
    ours, other = (measured(tmp_path / cpu, cpu) for cpu in ("CPU A", "CPU B"))
    shown = svmbench("claims", ours, other, "--no-ages", "--format", form).out
    assert "supported on 2 of 2 machines" in shown
