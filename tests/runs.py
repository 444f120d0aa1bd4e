"""Running the command line in the tests, in this process or in one of its own."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import yaml
from warm_python import RUN_COMMAND

COMMAND = [sys.executable, "-c", RUN_COMMAND]


@dataclass
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def said(self) -> str:
        """Everything it printed."""
        return self.out + self.err


def svmbench(*words: object) -> Ended:
    """Run a command in this process, as the installed script would."""
    from svmbench.cli import main

    out, err = io.StringIO(), io.StringIO()
    code: object = 0
    with (
        mock.patch.object(sys, "argv", ["svmbench", *map(str, words)]),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as end:
            code = end.code
    assert isinstance(code, int)
    return Ended(code, out.getvalue(), err.getvalue())


#: What a command says on a busy machine, where its first line takes more than two seconds.
_SIGN = re.compile(r".*(: starting|: \d+ s so far)\n")


def without_signs(errors: str) -> str:
    """Return what a command wrote to standard error, but its signs of life."""
    return _SIGN.sub("", errors)


class Started(subprocess.Popen[str]):
    """A command in a process of its own, whose signs of life are left out."""

    def communicate(self, *args: Any, **kwargs: Any) -> tuple[str, str]:
        said, errors = super().communicate(*args, **kwargs)
        return said, without_signs(errors)


def start(*words: object, **options: Any) -> Started:
    """Start a command in a process (and process group) of its own."""
    return Started(
        [*COMMAND, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **options,
    )


#: Wall seconds after which a test gives up a program that it waits for. A test that passes waits no
#: longer than the program takes, which on a busy machine is many times its CPU time.
PATIENCE_S = 300


def wait_until(what: Callable[[], bool], seconds: float = PATIENCE_S) -> None:
    """Wait until something is so, or fail."""
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.02)


def write_config(
    folder: Path, solvers: list[Any], block: dict[str, Any] | None = None, **top: Any
) -> Path:
    """Write a config of one block (by default: train once on breast-cancer) and one table."""
    content: dict[str, Any] = {
        "title": "A test",
        "timeout_s": PATIENCE_S,
        "memory_gb": 1.0,
        "datasets": ["breast-cancer"],
        "solvers": [{"name": s} if isinstance(s, str) else s for s in solvers],
        "blocks": [{"name": "main", "protocol": "fit", **(block or {})}],
        "tables": [{"name": "t", "block": "main"}],
        "profiles": {"quick": {}},
        **top,
    }
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return path


def lines_of(folder: Path) -> list[dict[str, Any]]:
    """Return every record of a results folder; each line has to be strict JSON."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    text = (folder / "runs.jsonl").read_text()
    return [json.loads(line, parse_constant=refuse) for line in text.splitlines()]


def cells_of(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the newest cell record of every solver (with its fold, where there are folds)."""
    return {
        record["solver"] + ("" if record["fold"] is None else f"/{record['fold']}"): record
        for record in lines_of(folder)
        if record["kind"] == "cell"
    }


def results_of(folder: Path) -> list[dict[str, Any]]:
    """Return what must be the same in every run of the same config: all but times and memory."""
    plan = json.loads((folder / "plan.json").read_text())["cells"]
    newest = {r["key"]: r for r in lines_of(folder) if r["kind"] == "cell"}
    varies = ("_s", "_mb")
    return [
        {
            **{k: cell[k] for k in ("key", "solver", "dataset", "size", "fold")},
            **{k: newest[cell["key"]].get(k) for k in ("status", "params", "counters")},
            "metrics": {
                name: value
                for name, value in newest[cell["key"]].get("metrics", {}).items()
                if not name.endswith(varies)
            },
        }
        for cell in plan
    ]


def cells_in_process(solvers: list[Any], block: dict[str, Any], **top: Any) -> list[dict[str, Any]]:
    """Plan a config of one block and run its cells in this process; return their outcomes."""
    from svmbench.experiment.config.models import Config
    from svmbench.experiment.plan.planner import make_plan
    from svmbench.experiment.protocols import function_of
    from svmbench.experiment.protocols.task import Task

    config = Config.model_validate(
        {"title": "t", "solvers": solvers, "blocks": [{"name": "main", **block}], **top}
    )
    plan = make_plan(config, "t", "paper")
    return [function_of(cell.spec)(Task(cell.spec)) for cell in plan.cells]
