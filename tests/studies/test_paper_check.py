"""The folder of a paper: each part that it lacks is named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from runs import svmbench

from svmbench.base.paper_folders import papers
from svmbench.studies import paper_problems

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "adding-a-paper.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"^```\w+ file=(\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))


@pytest.fixture
def imagined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The paper of the page, with its config in the present folder."""
    monkeypatch.setenv("SVMBENCH_PAPERS", "")
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content, encoding="utf-8")
    return tmp_path / "imagined"


@pytest.mark.parametrize("key", papers())
def test_the_papers_that_ship_are_whole(key: str) -> None:
    assert paper_problems(papers()[key].folder) == []


def test_the_page_s_paper_is_whole(imagined: Path) -> None:
    ended = svmbench("validate", "--paper", imagined, "--trust")
    assert (ended.code, ended.out.strip()) == (0, f"{imagined}: ok")


@pytest.mark.parametrize(
    ("file", "before", "after", "said"),
    [
        ("paper.toml", "breast-cancer = {", "brest-cancer = {", "no such data set is registered"),
        ("paper.toml", "imagined_table1", "missing", "config missing"),
        (
            "checks.py",
            '"imagined-1", "points"',
            '"imagined-2", "points"',
            "imagined-1 has no check",
        ),
        ("claims.toml", "points = 5.0", "gap = 5.0", "unknown limit 'points'"),
        ("../imagined_table1.yaml", "paper: imagined", "", "lacks the line 'paper: imagined'"),
        ("../imagined_table1.yaml", "  paper:\n", "  small:\n", "no profile paper"),
    ],
)
def test_what_is_wrong_is_named(
    imagined: Path, tmp_path: Path, file: str, before: str, after: str, said: str
) -> None:
    # Checks are imported once for each key: each case has its own paper.
    key = f"own{abs(hash((file, after))) % 10**6}"
    for path in (*imagined.rglob("*.*"), tmp_path / "imagined_table1.yaml"):
        text = path.read_text().replace("imagined-", f"{key}-")
        path.write_text(text.replace("paper: imagined", f"paper: {key}"))
    own = imagined.rename(tmp_path / key)
    place = own / file
    old, new = (one.replace("imagined-", f"{key}-") for one in (before, after))
    old = old.replace("paper: imagined", f"paper: {key}")
    assert old in place.read_text()
    place.write_text(place.read_text().replace(old, new))
    expected = said.replace("imagined-", f"{key}-").replace("paper: imagined", f"paper: {key}")
    problems = paper_problems(own, trust=True)
    assert any(expected in one for one in problems), problems


@pytest.mark.parametrize("lost", ["paper.toml", "claims.toml", "checks.py"])
def test_a_missing_file_is_named(imagined: Path, lost: str) -> None:
    (imagined / lost).unlink()
    (said,) = paper_problems(imagined)
    assert lost in said
