"""Whatever standard output is, a command does what it does, and ends with its own exit code."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from runs import COMMAND, write_config

from svmbench.base.errors import SvmbenchError
from svmbench.cli import terminal

SHELL = Path("/bin/sh")
FULL = Path("/dev/full")
pytestmark = pytest.mark.skipif(not SHELL.exists(), reason="needs a shell")

#: What is done to a command's output, by the shell; `%s` is the command.
WORSE = {
    "full": "%s > /dev/full",
    "closed": "%s >&-",
    "all closed": "%s >&- 2>&- <&-",
    "reader gone": "%s | head -n 1 > /dev/null",
    "ascii": "%s",
}
if not FULL.exists():
    WORSE = {name: line for name, line in WORSE.items() if "/dev/full" not in line}


def shell(line: str, *words: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a line whose `%s` is svmbench with these words; the code is svmbench's own."""
    quoted = " ".join(f"'{word}'" for word in (*COMMAND, *words))
    command = f"{{ {quoted}; echo $? > code; }}"
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"} if line == "%s" else None
    done = subprocess.run(
        [SHELL, "-c", line % command],
        cwd=cwd, env=environment, capture_output=True, text=True, check=False, errors="replace",
        timeout=300,
    )  # fmt: skip
    done.returncode = int((cwd / "code").read_text())
    return done


class Screen(io.StringIO):
    """Standard output that says it is a terminal."""

    def isatty(self) -> bool:
        return True


HEADER = ("data set", "solver", "what")
ROWS = [
    ("[red]a[/red] :smile:", "svm\x1b[31m-train", "one long sentence of many words " * 4),
    ("b9" * 8, "", "short"),
]


def printed(monkeypatch: pytest.MonkeyPatch, screen: io.StringIO, columns: int) -> list[str]:
    for variable in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(sys, "stdout", screen)
    terminal.print_columns(ROWS, HEADER)
    return screen.getvalue().splitlines()


def test_no_columns_are_an_unknown_width(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = printed(monkeypatch, Screen(), 0)
    assert any("svm" in line for line in lines)
    assert max(map(len, lines)) > 40


def test_columns_in_a_pipe_are_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    long = ROWS[0][2].rstrip()
    expected = [
        "data set              solver          what",
        f"[red]a[/red] :smile:  svm\ufffd[31m-train  {long}",
        "b9b9b9b9b9b9b9b9                      short",
    ]
    assert printed(monkeypatch, io.StringIO(), 40) == expected
    monkeypatch.setenv("NO_COLOR", "1")
    screen = Screen()
    monkeypatch.setattr(sys, "stdout", screen)
    terminal.print_columns(ROWS, HEADER)
    assert screen.getvalue().splitlines() == expected


@pytest.mark.parametrize("columns", [40, 60, 80, 200])
def test_columns_on_a_terminal_fit_it_and_lose_nothing(
    monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    raw = printed(monkeypatch, Screen(), columns)
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in raw]
    assert max(map(len, lines)) <= columns
    text = "\n".join(lines)
    assert text.count("sentence") == text.count("words") == 4
    for cell in ("[red]a[/red]", ":smile:", "[31m-train", "b9" * 8, "short", "solver"):
        assert cell in text
    assert ("data set" in lines[1]) == (columns >= 80)


def test_a_terminal_has_colours_and_a_pipe_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = "\n".join(printed(monkeypatch, Screen(), 200))
    assert "\x1b[1;36mb9" in raw
    screen = Screen()
    monkeypatch.setattr(sys, "stdout", screen)
    terminal.print_columns([("smo-1", "partly")], ("claim", "verdict"), {"partly": "red"})
    assert "\x1b[31mpartly" in screen.getvalue()
    assert terminal.table_width(80, 4) == 195
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stdout", pipe)
    terminal.print_columns([("smo-1", "partly")], ("claim", "verdict"), {"partly": "red"})
    assert "\x1b" not in pipe.getvalue()
    assert terminal.table_width(80, 4) == 80


@pytest.mark.slow
@pytest.mark.parametrize("how", WORSE)
def test_a_run_ends_as_if_it_had_been_heard(tmp_path: Path, how: str) -> None:
    config = write_config(tmp_path, ["alsvm"], {"protocol": "fit"})
    done = shell(WORSE[how], "run", config, "--output", tmp_path / "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    lines = (tmp_path / "out" / "runs.jsonl").read_text().splitlines()
    assert [line[:1] for line in lines] == ["{"]  # and nothing else was written into the records
    assert (tmp_path / "out" / "tables.md").is_file()


@pytest.mark.slow
@pytest.mark.parametrize("how", ["closed", "reader gone"])
def test_a_run_that_is_refused_ends_with_its_own_code(tmp_path: Path, how: str) -> None:
    datasets = [{"file": str(tmp_path / "nowhere.csv")}]
    config = write_config(tmp_path, ["alsvm"], datasets=datasets)
    done = shell(WORSE[how], "run", config, "--output", tmp_path / "out", cwd=tmp_path)
    assert done.returncode == 2, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "words"),
    [
        *((how, ("describe", "a9a")) for how in WORSE),
        ("reader gone", ("list", "datasets")),
    ],
)
def test_a_list_is_printed_or_it_is_said_that_it_could_not_be(
    tmp_path: Path, how: str, words: tuple[str, ...]
) -> None:
    done = shell(WORSE[how], *words, cwd=tmp_path)
    lost = how in ("full", "closed", "all closed")
    assert done.returncode == (1 if lost else 0), done.stderr
    assert "Traceback" not in done.stderr
    if how in ("full", "closed"):
        assert "svmbench: can't write to standard output: " in done.stderr
        lines = [line for line in done.stderr.splitlines() if not line.endswith(": starting")]
        assert len(lines) == 1
    if how == "ascii":
        assert done.stdout.isascii()
        assert len(done.stdout) > 200


@pytest.mark.parametrize("how", ["all closed", "reader gone"])
def test_an_error_keeps_its_code(tmp_path: Path, how: str) -> None:
    assert shell(WORSE[how], "validate", "nowhere.yaml", cwd=tmp_path).returncode == 2


def test_steady_lets_go_what_can_not_be_written() -> None:
    with Path(os.devnull).open("w") as closed:
        pass
    for stream in (terminal.Steady(None), terminal.Steady(closed)):
        assert stream.write("é×\n") == 3
        stream.flush()
        assert stream.failure is not None
        assert not stream.isatty()


def test_only_a_product_that_was_lost_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stream = terminal.Steady(sys.stdout)
    monkeypatch.setattr(sys, "stdout", stream)
    terminal.write_output("{}")
    stream.failure = BrokenPipeError(32, "Broken pipe")
    terminal.write_output("{}")  # who reads it has had enough
    stream.failure = OSError(28, "No space left on device")
    terminal.print_line("nobody hears this")
    with pytest.raises(SvmbenchError, match="can't write to standard output: No space left"):
        terminal.write_output("{}")
    assert capsys.readouterr().out == "{}\n"
