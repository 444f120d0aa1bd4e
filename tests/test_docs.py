"""The worked examples of the documentation, run word for word."""

from __future__ import annotations

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from runs import COMMAND
from warm_python import WarmPython

from svmbench.base import compiled
from svmbench.base.paper_folders import papers
from svmbench.baselines.catalogue import solvers
from svmbench.experiment.protocols.declare import PROTOCOLS

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"

#: A fence, its language, the file that it is the content of, and its lines.
FENCE = re.compile(r"^```(\w+)(?: file=(\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass
class Step:
    """One command of a page and what the page says it prints (``…`` stands for anything)."""

    command: str
    expected: list[str]


def files_of(page: str) -> dict[str, str]:
    """Return the content of each file that a page shows."""
    return {name: content for _, name, content in FENCE.findall(page) if name}


def steps_of(page: str) -> list[Step]:
    """Return every ``$ command`` of a page's console blocks; ``> `` goes on with the one before."""
    steps: list[Step] = []
    for language, _, content in FENCE.findall(page):
        if language != "console":
            continue
        for line in content.splitlines():
            if line.startswith("$ "):
                steps.append(Step(line[2:], []))
            elif line.startswith(">"):
                steps[-1].command += "\n" + line[2:]
            else:
                steps[-1].expected.append(line)
    return steps


def run_in_one_shell(steps: list[Step], folder: Path, path: Path, cache: Path) -> list[str]:
    """Run commands in turn in one Bash, which keeps what they export; return the outputs."""
    mark = "=== end of step: exit code "
    script = "".join(f"{step.command}\necho '{mark}'$?\n" for step in steps)
    unset = {"SVMBENCH_MIRROR", "SVMBENCH_PLUGINS", "SVMBENCH_DATASETS", "SVMBENCH_PAPERS"}
    unset |= {"PYTHONPATH"}
    environment = {k: v for k, v in os.environ.items() if k not in unset}
    environment |= {
        "PATH": f"{path}{os.pathsep}{environment['PATH']}",
        "SVMBENCH_CACHE": str(cache),
        # Machine code of this tree is compiled once, for all tests.
        "NUMBA_CACHE_DIR": str(compiled.FOLDER),
        "SVMBENCH_OFFLINE": "1",
    }
    done = subprocess.run(
        ["bash", "--norc", "-c", script],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    outputs = re.split(rf"{re.escape(mark)}(\d+)\n", done.stdout)
    assert outputs[1::2] == ["0"] * len(steps), done.stdout
    return outputs[:-1:2]


def says(output: str, expected: list[str]) -> bool:
    """Return whether the expected lines are among the output's, in their order."""
    lines = iter(output.splitlines())
    for line in expected:
        pattern = ".*".join(re.escape(part) for part in line.split("…"))
        if not any(re.fullmatch(pattern, given.rstrip()) for given in lines):
            return False
    return True


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory, warm_python: WarmPython) -> Path:
    """Return a folder with ``svmbench`` and ``python`` as a user has them on the path."""
    folder = tmp_path_factory.mktemp("bin")
    (folder / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (folder / "python").chmod(0o755)
    warm_python.write_program(folder / "svmbench")
    return folder


#: Pages that name files of the repository in backticks.
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
    *sorted(DOCS.glob("*.md")),
    *sorted((ROOT / "results").glob("*/README.md")),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.name}")
def test_files_that_a_page_names_are_there(page: Path) -> None:
    named = re.findall(
        r"`(?:python )?((?:tests|scripts|configs|docs)/[\w/.-]+\.\w+|results/[\w/.-]+\.(?:py|csv))",
        page.read_text(encoding="utf-8"),
    )
    assert [name for name in named if not (ROOT / name).exists()] == []


@pytest.mark.slow
def test_a_solver_in_the_tree_needs_no_more_than_its_file(tmp_path: Path) -> None:
    """What the page says of the tree: the module alone registers the solver."""
    site = tmp_path / "site"
    caches = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "svmbench", site / "svmbench", ignore=caches)
    shutil.copytree(ROOT / "configs", site / "configs")
    shutil.copy(ROOT / "datasets.toml", site)
    files = files_of((DOCS / "adding-a-solver.md").read_text(encoding="utf-8"))
    (site / "svmbench" / "core" / "linear" / "lbfgs.py").write_text(files["lbfgs.py"])
    (site / "configs" / "lbfgs.yaml").write_text(files["lbfgs.yaml"])
    environment = {**os.environ, "PYTHONPATH": str(site)}
    environment.pop("SVMBENCH_PLUGINS", None)
    done = subprocess.run(
        [*COMMAND, "validate", "lbfgs"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "lbfgs: ok (1 block, profiles quick)\n", done.stderr


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_the_solver_of_the_page_is_held_to_this_trees_checks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is shown as an example keeps the house's own rules."""
    files = files_of((DOCS / "adding-a-solver.md").read_text(encoding="utf-8"))
    for name in ("lbfgs.py", "test_lbfgs.py"):
        (tmp_path / name).write_text(files[name])
    config = ["--config", str(ROOT / "pyproject.toml")]
    for words in (["check", "--ignore", "D,I"], ["format", "--check"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *words, *config, "."],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout
    monkeypatch.syspath_prepend(str(tmp_path))
    import lbfgs
    from sklearn.utils.estimator_checks import check_estimator

    from svmbench.core.contract.registry import REGISTRY

    try:
        check_estimator(lbfgs.LBFGS())
    finally:
        del REGISTRY["lbfgs-l2"]
        del sys.modules["lbfgs"]


def test_a_page_that_errs_is_noticed() -> None:
    page = "```console\n$ echo one two\none …\n```\n```python file=x.py\n1\n```\n"
    (step,) = steps_of(page)
    assert files_of(page) == {"x.py": "1\n"}
    assert says("one two\n", step.expected)
    assert not says("two one\n", step.expected)
    assert not says("b\na\n", ["a", "b"])


@pytest.mark.slow
def test_the_python_of_the_estimators_page_runs() -> None:
    page = (DOCS / "estimators.md").read_text(encoding="utf-8")
    blocks = [content for language, _, content in FENCE.findall(page) if language == "python"]
    assert len(blocks) == 3
    names: dict[str, object] = {}
    for block in blocks:
        exec(block, names)
    assert "p" in names


def test_every_link_inside_the_docs_leads_somewhere() -> None:
    pages = [*DOCS.glob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    lost = [
        f"{page.name}: {target}"
        for page in pages
        for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert lost == []


@pytest.mark.parametrize("path", sorted(DOCS.glob("*.md")), ids=lambda path: path.stem)
def test_a_page_has_one_title(path: Path) -> None:
    # A second one would be a page of its own in the site's table of contents.
    prose = re.sub(r"(?ms)^```.*?^```", "", path.read_text(encoding="utf-8"))
    assert prose.startswith("# ")
    assert len(re.findall(r"(?m)^# ", prose)) == 1


def test_the_paper_cites_what_its_bibliography_has() -> None:
    text = (ROOT / "paper/paper.md").read_text(encoding="utf-8")
    listed = (ROOT / "paper/paper.bib").read_text("utf-8")
    entries = re.findall(r"(?m)^@\w+\{(\w+),", listed)
    assert set(re.findall(r"@(\w+)[;\]]", text)) == set(entries)
    assert listed.count("{") == listed.count("}")
    titles = re.findall(r"(?m)^  title = \{(.*)\},$", listed)
    plain = {title.replace("{", "").replace("}", "").lower() for title in titles}
    assert len(titles) == len(entries)
    assert {paper.title.lower() for paper in papers().values()} <= plain
    assert "# Statement of need" in text
    assert "name: the svmbench maintainers" in text
    assert "name: the svmbench maintainers" in (ROOT / "CITATION.cff").read_text("utf-8")


def test_the_container_for_development_sets_up_by_a_target_of_make() -> None:
    told = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text("utf-8"))
    make, target = told["postCreateCommand"].split()
    assert make == "make"
    assert re.search(rf"(?m)^{target}:", (ROOT / "Makefile").read_text("utf-8"))
    assert (ROOT / ".devcontainer" / told["build"]["dockerfile"]).is_file()


def test_the_lists_of_solvers_and_protocols_are_whole() -> None:
    listed = (DOCS / "solvers.md").read_text(encoding="utf-8")
    assert [name for name in solvers() if f"`{name}`" not in listed] == []
    table = (DOCS / "architecture.md").read_text(encoding="utf-8")
    names = {name.replace("-", "_") for name in PROTOCOLS}
    assert [name for name in sorted(names) if f"`{name}`" not in table] == []


def test_the_changes_between_runs_of_the_baseline_are_those_of_its_file() -> None:
    baseline = json.loads((ROOT / "results" / "regress" / "baseline.json").read_text("utf-8"))
    runs = [ratios for race in baseline["repeats"].values() for ratios in race.values()]
    changes = [max(ratios) / min(ratios) for ratios in runs]
    means = [statistics.geometric_mean(together) for together in zip(*runs, strict=True)]
    told = " ".join((DOCS / "measuring.md").read_text(encoding="utf-8").split())
    numbers = re.search(
        r"any of the eleven ratios of times was a factor of ([\d.]+), and the largest change of "
        r"their geometric mean was a factor of ([\d.]+)\.",
        told,
    )
    assert numbers is not None
    assert len(runs) == 11
    assert numbers.groups() == (f"{max(changes):.2f}", f"{max(means) / min(means):.3f}")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "touched"),
    [
        ("adding-a-solver", ["hersvm.py", "lbfgs.py", "test_lbfgs.py", "lbfgs.yaml"]),
        ("adding-a-dataset", ["own.toml"]),
        ("adding-a-table", ["losses.yaml"]),
        ("adding-a-protocol", ["bootstrap.py", "test_bootstrap.py", "bags.yaml"]),
        (
            "adding-a-paper",
            [
                *("imagined/paper.toml", "imagined/published/numbers.csv", "imagined_table1.yaml"),
                *("imagined/claims.toml", "imagined/checks.py"),
            ],
        ),
        ("adding-a-score", ["mcc.py", "test_mcc.py", "scored.yaml"]),
        ("first-hour", ["hersvm.py", "make_table.py"]),
    ],
)
def test_a_page_does_what_it_says(
    tmp_path: Path, programs: Path, shared_cache: Path, name: str, touched: list[str]
) -> None:
    page = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    files = files_of(page)
    assert list(files) == touched  # one code file, one test, one YAML; one TOML; one YAML
    folder = tmp_path / "work"
    folder.mkdir()
    for file, content in files.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(content, encoding="utf-8")
    steps = steps_of(page)
    assert len(steps) >= 5
    outputs = run_in_one_shell(steps, folder, programs, shared_cache)
    for step, output in zip(steps, outputs, strict=True):
        assert says(output, step.expected), f"$ {step.command}\n{output}"
