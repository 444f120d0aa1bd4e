"""Papers as folders: those that ship, those that a variable names, and those of other packages."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from runs import COMMAND, svmbench

from svmbench.base.errors import ConfigError, SvmbenchError
from svmbench.base.paper_folders import papers
from svmbench.papers import judging
from svmbench.report.reading.published import lookup, numbers

ROOT = Path(__file__).resolve().parents[2]

PAPER = 'title = "A Title"\nauthors = ["A. Author"]\nvenue = "Somewhere 2020"\n'
NUMBERS = (
    "table,dataset,kernel,size,solver,metric,value\ntable1,wdbc,linear,,ours,accuracy_pct,96.5\n"
)
CLAIMS = """
[own-1]
where = "table1"
statement = "It holds."
fixed = "2026-11-23"
quote = "Its own words."
rule = "the check"
uncertainty = "none"
limits = {points = 2.0}
configs = ["own_table1"]
"""
CHECKS = """
from svmbench.papers.judging import Part
from svmbench.papers.judging.checks import check
from svmbench.papers.judging.measures import counted

@check("own-1", "points")
def holds(claim, kept):
    return [Part("all", counted(claim.limits["points"], at_least=1.0), "it does")]
"""


def make(folder: Path, **files: str) -> Path:
    """Write a paper's folder, with other contents of some files."""
    contents = {"paper": PAPER, "numbers": NUMBERS, "claims": CLAIMS, "checks": CHECKS, **files}
    names = {"paper": "paper.toml", "numbers": "published/numbers.csv"}
    names |= {"claims": "claims.toml", "checks": "checks.py"}
    (folder / "published").mkdir(parents=True)
    for name, content in contents.items():
        (folder / names[name]).write_text(content, encoding="utf-8")
    return folder


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = make(tmp_path / "own")
    monkeypatch.setenv("SVMBENCH_PAPERS", str(folder))
    return folder


def test_every_paper_that_ships_is_whole() -> None:
    shipped = sorted(
        place.parent.name for place in (ROOT / "svmbench/papers").glob("*/claims.toml")
    )
    assert sorted(papers()) == shipped
    orders = [paper.order for paper in papers().values()]
    assert orders == list(range(1, len(orders) + 1))
    for key, paper in papers().items():
        assert paper.ships
        assert paper.datasets, key
        assert (paper.folder / "checks.py").is_file(), key
        configs = [path.stem for path in (ROOT / "configs").glob(f"{key}_*.yaml")]
        assert configs, key


def test_a_folder_that_the_variable_names_is_a_paper(own: Path) -> None:
    paper = list(papers().values())[-1]
    assert (paper.key, paper.folder, paper.ships) == ("own", own, False)
    assert paper.citation == "A. Author: A Title. Somewhere 2020"
    assert len(numbers("own")) == 1
    assert lookup("own", "table1", "wdbc", "accuracy_pct", "ours", "linear") == 96.5
    assert "own-1" in [claim.id for claim in judging.read_all_claims()]
    assert "own  " in svmbench("list", "papers").out


def test_names_that_a_paper_prints_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = '[printed.datasets]\nwdbc = ["breast-cancer"]\n[printed.solvers]\nours = ["alsvm"]\n'
    stated = '[datasets]\nbreast-cancer = {published_as = "wdbc", n_samples = 569}\n'
    folder = make(tmp_path / "own", paper=PAPER + stated + printed)
    monkeypatch.setenv("SVMBENCH_PAPERS", str(folder))
    assert lookup("own", "table1", "breast-cancer", "accuracy_pct", "alsvm", "linear") == 96.5
    assert lookup("own", "table1", "wdbc", "accuracy_pct", "ours", "linear") is None
    from svmbench import data

    assert data.names_of_paper("own") == ["breast-cancer"]
    assert data.entry("breast-cancer").papers["own"].n_samples == 569


def verdict(folder: Path, *, trust: bool) -> judging.Verdict:
    known = [claim for claim in judging.read_all_claims() if claim.paper == "own"]
    (found,) = judging.judge(known, judging.gather_evidence([folder]), trust=trust)
    return found


def test_checks_of_others_run_only_when_they_are_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = tmp_path / "mark"
    code = f"open({str(mark)!r}, 'w').close()\n{CHECKS.replace('own-1', 'own-2')}"
    claims = CLAIMS.replace("own-1", "own-2")
    monkeypatch.setenv("SVMBENCH_PAPERS", str(make(tmp_path / "own", checks=code, claims=claims)))
    (tmp_path / "results").mkdir()
    found = verdict(tmp_path / "results", trust=False)
    assert found.outcome == judging.NOT_TESTED
    assert found.reason.startswith("its check is other people's code, which --trust runs: ")
    assert not mark.exists()
    assert verdict(tmp_path / "results", trust=True).outcome != judging.NOT_TESTED
    assert mark.exists()


def test_a_bool_of_a_check_is_an_error_with_its_place(own: Path, tmp_path: Path) -> None:
    code = CHECKS.replace('counted(claim.limits["points"], at_least=1.0)', "True")
    (own / "checks.py").write_text(code.replace("own-1", "own-1"))
    (tmp_path / "results").mkdir()
    judging.CHECKS.pop("own-1", None)
    with pytest.raises(ConfigError, match="own-1: its check gives 'all' the answer True: it must"):
        verdict(tmp_path / "results", trust=True)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"paper": "title = 3\n"}, "paper.toml: title: should be text, not 3"),
        ({"paper": PAPER + "yaer = 3\n"}, "paper.toml: yaer: unknown key 'yaer'"),
        ({"paper": "title = \n"}, "paper.toml: Invalid value"),
        ({"numbers": "table,dataset\n"}, "numbers.csv: there is no column kernel, size"),
        ({"numbers": NUMBERS + "a,b\n"}, "numbers.csv, line 3: there are too few columns"),
        ({"numbers": NUMBERS.replace("96.5", "inf")}, "line 2: inf is no finite number"),
        ({"claims": CLAIMS.replace("own-1", "smo-1")}, "no paper has a claim of this name"),
        ({"claims": CLAIMS.replace("where", "wher")}, "unknown key 'wher'; did you mean 'where'?"),
    ],
)
def test_what_is_wrong_with_a_folder_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], said: str
) -> None:
    monkeypatch.setenv("SVMBENCH_PAPERS", str(make(tmp_path / "own", **files)))
    with pytest.raises(ConfigError) as caught:
        numbers("own") and judging.read_all_claims()
    assert said in str(caught.value)


def test_two_papers_of_one_key_and_folders_without_a_paper(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "none").mkdir()
    names = [make(tmp_path / "smo"), tmp_path / "none"]
    monkeypatch.setenv("SVMBENCH_PAPERS", os.pathsep.join(map(str, names)))
    with pytest.raises(ConfigError) as caught:
        papers()
    assert len(caught.value.problems) == 2
    assert "have one key" in caught.value.problems[0]
    assert "can't read paper.toml: No such file" in caught.value.problems[1]


def test_a_check_that_fails_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "results").mkdir()
    stranger = make(tmp_path / "a" / "own", checks=CHECKS.replace("own-1", "smu-1"))
    broken = make(tmp_path / "b" / "own", checks="1 / 0\n")
    for folder, said in ((stranger, "'smu-1' is no claim of this paper"), (broken, "ZeroDivision")):
        monkeypatch.setenv("SVMBENCH_PAPERS", str(folder))
        with pytest.raises(SvmbenchError, match=said):
            verdict(tmp_path / "results", trust=True)
    judging.CHECKS.pop("smu-1")


@pytest.mark.slow
def test_a_package_names_its_papers_and_is_not_imported(tmp_path: Path) -> None:
    make(tmp_path / "their_package" / "papers" / "theirs")
    (tmp_path / "their_package" / "__init__.py").write_text("raise SystemExit('imported')\n")
    info = tmp_path / "their_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-package\nVersion: 1.0\n")
    entry = "[svmbench.papers]\ntheirs = their_package.papers.theirs\n"
    (info / "entry_points.txt").write_text(entry)
    done = subprocess.run(
        [*COMMAND, "list", "papers"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("theirs ")


#: Modules below the package that the command may load, all of them counted: packages, the command
#: line, and the checks of one paper. By the option.
MOST_MODULES = {"--no-ages": 44, "--ages": 50}
#: Files that may be loaded to read the claims and records of a paper and to judge them, without the
#: command. An ``__init__.py`` with a docstring alone doesn't count.
MOST_TO_JUDGE = 26


def _has_code(name: str) -> bool:
    """Whether a module is a file of its own, or a package with more than a docstring."""
    place = ROOT.joinpath(*name.split("."))
    if not place.is_dir():
        return True
    init = place / "__init__.py"
    body = ast.parse(init.read_text(encoding="utf-8")).body if init.is_file() else []
    return any(not isinstance(one, ast.Expr) for one in body)


def _loaded(code: str) -> tuple[str, set[str]]:
    """Run a piece of Python in a fresh process; return its output and the modules it loaded."""
    listed = "import sys\ntry:\n    {}\nfinally: print(*sys.modules, file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", listed.format(code)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout, {name for name in done.stderr.split() if name.startswith("svmbench.")}


@pytest.mark.parametrize("option", MOST_MODULES)
def test_verdicts_load_little_of_the_package(option: str) -> None:
    words = ["svmbench", "claims", "results/smo", "--paper", "smo", option]
    said, loaded = _loaded(f"from svmbench.cli import main; sys.argv = {words}; main()")
    assert "13 claims: " in said
    assert len(loaded) <= MOST_MODULES[option], sorted(loaded)
    assert "svmbench.papers.smo.checks" in loaded
    drawing = ("svmbench.report.plots", "svmbench.report.tables", "svmbench.report.output")
    assert not any(name.startswith(drawing) for name in loaded)
    assert not any(name.startswith("svmbench.schema.scores") for name in loaded)
    assert not any(name.startswith(("svmbench.core", "svmbench.site")) for name in loaded)


def test_few_files_judge_claims() -> None:
    said, loaded = _loaded(
        "from pathlib import Path; from svmbench.papers import judging; "
        "known = [one for one in judging.read_all_claims() if one.paper == 'smo']; "
        "kept = judging.gather_evidence([Path('results/smo')]); "
        "print(len(judging.judge(known, kept)))"
    )
    assert said.split() == ["13"]
    files = {name for name in loaded if _has_code(name)}
    assert {"svmbench.papers.smo.checks", "svmbench.report.reading.records"} <= files
    assert len(files) <= MOST_TO_JUDGE, sorted(files)


def test_the_architecture_page_has_the_numbers_of_loaded_modules() -> None:
    page = " ".join((ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").split())
    assert f"At most {MOST_TO_JUDGE} files are loaded to read and judge" in page
    few, many = MOST_MODULES.values()
    assert f"loads {few} modules, packages and command line among them, and {many} if" in page
