"""The counts of ``scripts/size.py`` on a small package, and its limits."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from script_loading import load_script

size = load_script("size")

ROOT = Path(__file__).resolve().parents[2]

SOLVER = '''"""Solve one problem."""

from __future__ import annotations

# Largest number of steps.
MOST_STEPS = 10
_HIDDEN = 1


class Found:
    """What was found."""

    def value(self, a, b, c, d, e, f, g):
        """Return what it found."""
        return a  # the first


def solve(a, b, c, d, *, e, f, g, h):
    """Return whatever was solved."""
    return a
'''

NARROWING = '''"""How rows are left out.

Twice.
"""

MOST_STEPS: int = 20
_HIDDEN = 2


def solve_again(a, b, c, d, e, f, g, *rest, **others):
    return a
'''


@pytest.fixture
def package(tmp_path: Path) -> Path:
    (tmp_path / "inner").mkdir()
    (tmp_path / "solver.py").write_text(SOLVER)
    (tmp_path / "inner" / "narrowing.py").write_text(NARROWING)
    return tmp_path


def test_everything_is_counted(package: Path) -> None:
    found = size.measure(size.modules_in(package))
    assert found.lines == len(SOLVER.splitlines()) + len(NARROWING.splitlines())
    assert found.modules == 2
    assert found.many_arguments == 1  # `solve`; neither `self` nor `*rest` counts
    # MOST_STEPS of MOST_STEPS, Found, solve and solve_again
    assert found.colliding_names == pytest.approx(25.0)
    # Two comments; eight lines of code in the first module, four in the second
    assert found.comments == pytest.approx(100 * 2 / 12)
    # "What was found", "Return what it found" and "How rows ..." of five; "whatever" is no opening
    assert found.indirect_docstrings == pytest.approx(60.0)
    assert found.project_words == 2  # the class and the module, not the folder `inner`


@pytest.mark.slow
def test_a_name_that_a_folder_has_by_contract_has_one_meaning() -> None:
    kinds = [Path(f"svmbench/report/plots/kinds/{name}.py") for name in ("bars", "race")]
    assert not size.collides("KIND", kinds)
    assert size.collides("KIND", [*kinds, Path("svmbench/cli/options.py")])
    assert size.collides("SHAPE", kinds)
    for name, folder in size.CONTRACTS.items():
        defined = size.defined_in(size.modules_in(ROOT / folder))
        assert len(defined[name]) > 1, "the contract has one definition: it needs no exception"


def test_parameters_and_variables_are_names_too(tmp_path: Path) -> None:
    (tmp_path / "lines.py").write_text(
        "def draw(tally, top):\n    errand = self.aim = labels = tally\n    return errand, ledger\n"
    )
    (module,) = size.modules_in(tmp_path)
    # `top` and `labels` are ordinary words, and `ledger` is defined elsewhere
    assert sorted(name for _, name, _ in size.project_words(module)) == ["aim", "errand", "tally"]


@pytest.mark.parametrize(
    ("docstring", "expected"),
    [
        ("What the rows say.", True),
        ("Yield which rows are left.", True),
        ("Return whether it fits.", True),
        ("Return True if it fits.", False),
        ("However many there are.", False),
        ("Say how long it takes.", True),
    ],
)
def test_openings_of_docstrings(docstring: str, expected: bool) -> None:
    assert size.indirect(docstring) is expected


def test_a_limit_may_be_what_was_reached(monkeypatch: pytest.MonkeyPatch, package: Path) -> None:
    found = size.measure(size.modules_in(package))
    monkeypatch.setattr(size, "LIMITS", {("here", "modules"): size.Limit(goal=1, reached=2)})
    assert list(size.exceeded("here", found)) == []
    assert list(size.exceeded("here", found._replace(modules=3))) == [
        "here: modules: 3.0, at most 2.0"
    ]
    assert list(size.exceeded("elsewhere", found._replace(modules=3))) == []


def test_the_exit_code_is_1_above_a_limit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], package: Path
) -> None:
    monkeypatch.setattr(sys, "argv", ["size.py", str(package), "--names", "--style"])
    monkeypatch.setattr(size, "LIMITS", {(str(package), "lines"): size.Limit(goal=1, reached=1)})
    assert size.main() == 1
    printed = capsys.readouterr()
    assert "MOST_STEPS: " in printed.out
    assert "narrowing is called shrinking" in printed.out
    assert "lines: " in printed.err
    monkeypatch.setattr(size, "LIMITS", {})
    assert size.main() == 0


def test_limits_name_counts_and_folders_of_the_table() -> None:
    for folder, count in size.LIMITS:
        assert folder in size.FOLDERS
        assert count in size.Size._fields
    assert set(size.TITLES) == set(size.Size._fields)
