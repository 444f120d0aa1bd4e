"""What a notebook calls: the functions of the commands, without the command line."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from svmbench import studies
from svmbench.base.errors import ConfigError
from svmbench.experiment.run.forecast import Forecast, in_all
from svmbench.experiment.run.session import Request, plan_run
from svmbench.studies.forecasting import forecast_of

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "studies.md").read_text(encoding="utf-8")


def test_the_page_names_every_function() -> None:
    called = set(re.findall(r"`?(?:studies\.)?(\w+)\(", PAGE))
    functions = {name for name in studies.__all__ if name.islower()}
    assert functions - called == {"ages_of", "compare_environments", "requests_of"}


@pytest.mark.slow
def test_the_python_of_the_page_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """All blocks but that of a table, which the page's reader has."""
    monkeypatch.chdir(ROOT)
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    names: dict[str, object] = {}
    for block in blocks:
        if "my.csv" not in block:
            exec(block.replace("minutes=1", "minutes=0.05"), names)
    result = names["result"]
    assert isinstance(result, dict)
    assert [one["solver"] for one in result["solvers"]] == ["dcd-l1 C=1", "liblinear-l1 C=1"]
    assert result["ratios"][0]["ratio"] > 0


def test_a_race_needs_two_solvers() -> None:
    with pytest.raises(ConfigError, match="two solvers"):
        studies.race("breast-cancer", ["csvc"])


def test_importing_studies_imports_no_study() -> None:
    code = "import sys, svmbench.studies; print([m for m in sys.modules if 'studies.' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_dry_run_says_of_which_size_its_profile_is() -> None:
    planned = plan_run(Request(config="alsvm_table2"), prepare=False)
    first, size, *_ = forecast_of(planned).lines
    assert first.startswith("alsvm_table2 (quick): ")
    assert size.startswith("size 'quick': at most 3,000 rows a data set")


def test_a_dry_run_without_any_data_tells_the_cells_and_the_time(private_cache: Path) -> None:
    planned = plan_run(Request(config="alsvm_table2", profile="paper"), prepare=False)
    assert {cell.status for cell in planned.cells} == {"not run"}
    *lines, last = forecast_of(planned).lines
    assert "  nested-cv · a9a: 20 cells, data not here yet (alsvm, falsvm, liblinear-l1," in (
        "\n".join(lines)
    )
    assert re.search(
        r"to run: about [\d.,]+ (minute|hour)s by recorded times; they wait for data", last
    )
    assert not (private_cache / "prepared").exists()


def test_the_time_of_all_configs_is_the_sum_of_theirs() -> None:
    many, few = Forecast(("a",), 7, 7200.0, 2), Forecast(("b",), 1_000, 3600.0)
    total = "in all 2 configs with 1,007 cells to run: about 3 hours by recorded times"
    assert in_all([many, few]) == f"{total}; no record tells how long 2 of them take"
    assert in_all([Forecast(("c",), 3, 0.0, 3)]) == (
        "in all 1 config with 3 cells to run; no record tells how long 3 of them take"
    )
    assert in_all([Forecast(("nothing to run",))]) == "in all 1 config with 0 cells to run"
