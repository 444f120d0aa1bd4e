"""What lies under results/ is what its records say."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from svmbench.report import kept

ROOT = Path(__file__).resolve().parent.parent
KEPT = kept.folders(ROOT / "results")


@pytest.mark.parametrize("folder", KEPT, ids=lambda path: path.name)
def test_kept_tables_and_plots_are_what_their_records_make(folder: Path) -> None:
    assert kept.rebuild_differences(folder) == [], "run scripts/rebuild_results.py"


def test_there_are_kept_results() -> None:
    assert KEPT


def test_scripts_that_pages_quote_are_there() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "*.md", "*.yaml", "Makefile"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    pages = [ROOT / name for name in listed.stdout.split() if name != "CHANGELOG.md"]
    quoted = {
        (page.name, script)
        for page in pages
        for script in re.findall(
            r"\b(?:scripts|results/\w+)/\w+\.py\b", page.read_text(encoding="utf-8")
        )
    }
    assert ("README.md", "results/smo/cold_start.py") in quoted
    assert [one for one in sorted(quoted) if not (ROOT / one[1]).is_file()] == []


def test_a_kept_folders_profile_is_the_configs_or_its_page_says_that_it_has_changed() -> None:
    changed, said = set(), set()
    for folder in KEPT:
        if not (folder / "plan.json").is_file():
            continue  # of older runs only tables were kept
        plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
        name, profile = plan["config"]["name"], plan["profile"]
        text = (ROOT / "configs" / f"{name}.yaml").read_text(encoding="utf-8")
        profiles = {"paper": {}} | yaml.safe_load(text).get("profiles", {})  # which may be implied
        if profile not in profiles or profiles[profile].get("note", "") != plan["profile_note"]:
            changed.add((folder.parent.name, folder.name))
    for page in (ROOT / "results").glob("*/README.md"):
        text = " ".join(page.read_text(encoding="utf-8").split())
        for one in re.findall(r"have other profiles now than the kept runs: ([^.]*)\.", text):
            said |= {(page.parent.name, name) for name in re.findall(r"`(\w+)`", one)}
    assert said == changed
