"""What coverage need not follow is left out, and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from untraced import FOREIGN, leave_out_foreign_work, untraced


def inner() -> None:
    return None


def foreign() -> None:
    inner()


def foreign_and_wrong() -> None:
    raise ValueError("wrong")


def test_foreign_work_is_not_followed_and_what_comes_after_is() -> None:
    entered: list[str] = []

    def trace(frame: FrameType, event: str, _value: Any) -> Any:
        entered.append(f"{event} {frame.f_code.co_name}")
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        untraced(foreign)()
        with pytest.raises(ValueError, match="wrong"):
            untraced(foreign_and_wrong)()
        inner()
    finally:
        sys.settrace(before)
    assert not {"call foreign", "call foreign_and_wrong"} & {*entered}
    assert entered.count("call inner") == 1
    # Each wrapper is left as often as it is entered: a tracer keeps count.
    assert entered.count("call quiet") == entered.count("return quiet") == 2


def test_what_is_named_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    import matplotlib.figure
    import numba.core.dispatcher

    places = [
        (numba.core.dispatcher.Dispatcher, "compile"),
        (matplotlib.figure.Figure, "savefig"),
    ]
    assert len(places) == len(FOREIGN)
    before = [getattr(*place) for place in places]
    for place, value in zip(places, before, strict=True):
        monkeypatch.setattr(*place, value)  # put back afterwards
    leave_out_foreign_work()
    assert [getattr(*place).__wrapped__ for place in places] == before


IN_A_WORKER = """
import multiprocessing

def work():
    import coverage.collector
    assert not coverage.collector.short_stack()

if __name__ == "__main__":
    import untraced

    untraced.spare_workers()
    process = multiprocessing.get_context("forkserver").Process(target=work)
    process.start()
    process.join()
    raise SystemExit(process.exitcode)
"""


def test_a_worker_that_is_spared_is_measured_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(IN_A_WORKER)
    (tmp_path / "never.py").write_text("never = 1\n")
    (tmp_path / ".coveragerc").write_text(
        "[run]\nsource = .\nparallel = true\nconcurrency = multiprocessing\n"
    )
    mine = {name: text for name, text in os.environ.items() if not name.startswith("COV")}
    paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    mine["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    for words in (["run", "script.py"], ["combine", "-q"], ["json", "-q"]):
        subprocess.run(
            [sys.executable, "-m", "coverage", *words], cwd=tmp_path, env=mine, check=True
        )
    files = json.loads((tmp_path / "coverage.json").read_text())["files"]
    text = IN_A_WORKER.splitlines()
    seen = [text[number - 1].strip() for number in files["script.py"]["executed_lines"]]
    assert "assert not coverage.collector.short_stack()" in seen
    assert files["never.py"]["executed_lines"] == []  # named by the parent
