"""What lies under results/ is what its records say."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import yaml
from script_loading import load_script

from svmbench.cli import cli
from svmbench.report.output import kept

ROOT = Path(__file__).resolve().parent.parent
KEPT = kept.folders(ROOT / "results")


@pytest.mark.parametrize("folder", KEPT, ids=lambda path: path.name)
def test_kept_tables_and_plots_are_what_their_records_make(folder: Path) -> None:
    assert kept.rebuild_differences(folder) == [], "run scripts/rebuild_results.py"


def test_there_are_kept_results() -> None:
    assert KEPT


def test_the_page_on_default_parameters_has_the_tables_of_the_kept_run() -> None:
    script = load_script("default_parameters", "results/perf")
    page = script.PAGE.read_text(encoding="utf-8")
    assert "| `predict` of `csvc` beside SVC |" in page
    assert script.page_with_tables(page) == page, "call the script with --table"


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


PAGES = [*sorted((ROOT / "results").glob("*/README.md")), ROOT / "results" / "README.md"]
#: A command of a fenced block, with the lines that a backslash joins to it, or one in a sentence.
_COMMAND = re.compile(
    r"^ *((?:svmbench|python|make) (?:\\\n|[^\n#])*)|`((?:svmbench|python|make) [^`]+)`",
    re.MULTILINE,
)


def quoted_commands(text: str) -> list[list[str]]:
    """Return the commands of a page as words, without comments."""
    found = [first or second for first, second in _COMMAND.findall(text)]
    return [shlex.split(one.replace("\\\n", " ")) for one in found]


def named(config: object, key: str) -> set[str]:
    """Return the names under a key anywhere in a config, with the labels of solvers."""
    if isinstance(config, list):
        return set().union(*(named(one, key) for one in config))
    if not isinstance(config, dict):
        return set()
    own = config.get(key, [])
    found = {
        str(one.get("label", one.get("name"))) if isinstance(one, dict) else str(one)
        for one in (own if isinstance(own, list) else [])
    }
    return found.union(*(named(one, key) for one in config.values()))


def command_problems(words: list[str]) -> Iterator[str]:
    """Yield a sentence for what a command names and nothing here has."""
    program, *rest = words
    said = " ".join(words)
    if program == "make":
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        yield from (
            f"{said}: no target {one}" for one in rest if one not in targets and "=" not in one
        )
    elif program == "python":
        if not (ROOT / rest[0]).is_file():
            yield f"{said}: no file {rest[0]}"
    else:
        yield from svmbench_problems(said, rest)


def svmbench_problems(said: str, words: list[str]) -> Iterator[str]:
    """Yield a sentence for an option, a config, a profile or a filter that there is not."""
    name, *rest = words
    command = cli.get_command(click.Context(cli), name)
    if command is None:
        yield f"{said}: no command {name}"
        return
    try:
        given = command.make_context(name, list(rest), resilient_parsing=True).params
        command.make_parser(click.Context(command)).parse_args(list(rest))
    except click.UsageError as error:
        yield f"{said}: {error.message}"
        return
    if name != "run" or not rest:
        return
    place = ROOT / "configs" / f"{Path(str(rest[0])).stem}.yaml"
    if not place.is_file():
        yield f"{said}: no config {rest[0]}"
        return
    config = yaml.load(place.read_text(encoding="utf-8"), yaml.CSafeLoader)
    profile = given.get("profile") or "quick"
    if profile not in {"paper", *config.get("profiles", {})}:
        yield f"{said}: no profile {profile}"
    for one in (pair for text in given.get("only") or () for pair in text.split(",")):
        key, _, value = one.partition("=")
        key = {"dataset": "datasets", "solver": "solvers", "block": "blocks"}[key]
        if value not in named(config, key):
            yield f"{said}: {place.name} has no {value} in its {key}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name)
def test_commands_of_the_pages_name_what_there_is(page: Path) -> None:
    commands = quoted_commands(page.read_text(encoding="utf-8"))
    assert commands
    assert [said for words in commands for said in command_problems(words)] == []


def test_the_readme_makes_each_run_folder_before_it_reads_it() -> None:
    """A reader copies its commands in their order, into a shell that has the command."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    text = text.partition("## Start\n")[2].partition("\n## ")[0]
    block = text.partition("```\n")[2].partition("```")[0]
    assert block.index("make quickstart") < block.index("source .venv/bin/activate")
    assert block.index("source .venv/bin/activate") < block.index("svmbench ")
    made: set[str] = set()
    for words in quoted_commands(text):
        assert words[0] == "python" or list(command_problems(words)) == []
        named_here = {word for word in words if word.startswith("results/")}
        assert named_here <= made, f"{' '.join(words)}: no command before makes this folder"
        if words[:2] == ["make", "quickstart"]:
            made.add("results/quickstart-quick")
        elif words[:2] == ["svmbench", "run"] and "--dry-run" not in words:
            made.add(f"results/{words[2]}-quick")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("svmbench run cpsp_fig9 --profile small", "no config cpsp_fig9"),
        ("svmbench run cpsp_fig1 --profile thinned", "no profile thinned"),
        ("svmbench run cpsp_fig1 --profil small", "No such option"),
        ("svmbench run cpsp_fig1 --only dataset=iris", "has no iris in its datasets"),
        ("svmbench runn cpsp_fig1", "no command runn"),
        ("python results/cpsp/none.py", "no file results/cpsp/none.py"),
        ("make tea", "no target tea"),
    ],
)
def test_a_command_that_names_what_is_gone_is_found(command: str, said: str) -> None:
    (problem,) = command_problems(command.split())
    assert said in problem
