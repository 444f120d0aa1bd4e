"""Versions in turn: what an interrupt leaves."""

import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from svmbench.base.errors import SvmbenchError
from svmbench.studies import versions

#: Ends with SIGTERM and a trace of it; before, it interrupts who started it.
STANDIN = """#!{python} -SE
import os, signal, sys, time
def leave(*_):
    open("ended", "w").close()
    sys.exit(130)
signal.signal(signal.SIGTERM, leave)
os.kill(os.getppid(), signal.SIGINT)
time.sleep(60)
"""


def test_an_interrupt_lets_the_command_end_by_itself(tmp_path: Path) -> None:
    standin = tmp_path / "python"
    standin.write_text(STANDIN.format(python=sys.executable))
    standin.chmod(standin.stat().st_mode | stat.S_IXUSR)
    side = versions.Version("base", dict(os.environ), str(standin))
    with pytest.raises(KeyboardInterrupt):
        side.run(["run", "c.yaml"], tmp_path)
    side.end()
    assert (tmp_path / "ended").exists()


def test_a_process_runs_commands_until_it_is_ended(tmp_path: Path) -> None:
    (tmp_path / "svmbench").mkdir()
    (tmp_path / "svmbench" / "__init__.py").touch()
    (tmp_path / "svmbench" / "cli.py").write_text(
        "import os, sys\n"
        "def main():\n"
        "    print(os.getpid(), *sys.argv, file=open('log', 'a'))\n"
        "    print('svmbench: no', sys.argv[1], file=sys.stderr, flush=True)\n"
        "    if sys.argv[1] == 'dies': os._exit(7)\n"
        "    raise SystemExit(int(sys.argv[1]))\n"
    )
    side = versions.Version("base", {**os.environ, "PYTHONPATH": str(tmp_path)})
    side.run(["0"], tmp_path)
    side.run(["3", "a b"], tmp_path)  # failed cells
    with pytest.raises(SvmbenchError, match=r"^at base: no 2$"):
        side.run(["2"], tmp_path)
    side.end()
    with pytest.raises(SvmbenchError, match=r"^at base: no dies$"):
        side.run(["dies"], tmp_path)
    side.end()
    lines = [line.split(maxsplit=1) for line in (tmp_path / "log").read_text().splitlines()]
    assert [words for _, words in lines] == [f"svmbench {w}" for w in ("0", "3 a b", "2", "dies")]
    assert len({pid for pid, _ in lines}) == 2


def test_a_gate_fails_for_time_and_for_accuracy():
    def of(times, base, new):
        sides = {"base": {"accuracy_pct": base}, "new": {"accuracy_pct": new}}
        one = {"solver": "s", "dataset": "d", "ratio": times, **sides}
        return versions.regressions({"results": [one]}, 1.3)

    assert of(1.3, 90.0, 89.0) == []
    assert of(None, None, None) == []
    assert of(1.0, 50.0, 90.0) == []
    assert of(1.31, 90.0, 90.0) == [
        "slower: s on d takes 1.31 times the CPU time of the base; 1.3 times are allowed"
    ]
    assert of(0.5, 87.33, 50.5) == [
        "less accurate: s on d has 50.50 % on the test rows, the base 87.33 %;"
        " 1 point less is allowed"
    ]


def test_a_gate_fails_for_a_worse_objective():
    def of(base, new):
        sides = {"base": {"objective": base}, "new": {"objective": new}}
        for side in sides.values():
            side["accuracy_pct"] = 90.0
        return versions.regressions(
            {"results": [{"solver": "s", "dataset": "d", "ratio": 1.0, **sides}]}, 1.3
        )

    assert of(100.0, 101.0) == of(100.0, 50.0) == of(None, 5.0) == of(-2.0, -2.0) == []
    (said,) = of(-2.0, -1.9)  # objectives of nu-SVMs are negative
    assert said == (
        "less exact: s on d stops at the objective -1.9, the base at -2; 1 % more is allowed"
    )


def test_a_gate_that_found_nothing_says_whose_objectives_it_could_not_compare() -> None:
    known, unknown = ({"objective": value} for value in (1.0, None))
    rows = [
        {"solver": "a", "base": known, "new": known},
        {"solver": "b", "base": known, "new": unknown},
    ]
    sentence = "no solver takes more than 1.5 times the CPU time of the base, or is less accurate"
    assert versions.nothing_worse({"results": rows[:1]}, 1.5) == f"{sentence} or exact"
    assert (
        versions.nothing_worse({"results": rows}, 1.5)
        == f"{sentence}; objectives of b were not compared"
    )


def test_a_gate_fails_for_a_build_that_sleeps_in_every_round() -> None:
    def of(base: list[float], new: list[float], rounds: int = 9) -> tuple[list[str], list[str]]:
        def records(walls: list[float]) -> list[dict[tuple[str, str], Any]]:
            return [
                {("d", "s"): {"status": "ok", "metrics": {"cpu_time_s": 1.0, "train_time_s": wall}}}
                for wall in walls
            ]

        one = versions._compared(("d", "s"), {"base": records(base), "new": records(new)})
        result = {"results": [one], "rounds": rounds}
        return versions.regressions(result, 1.3), versions.notes_on_versions([], result)

    assert of([1.0, 1.1, 1.0], [1.0, 1.1, 1.2]) == ([], [])
    (said,), (note,) = of([1.0, 1.1, 1.0], [5.0, 6.0, 7.0])
    assert said == (
        "waits longer: s on d takes at least 5 s of wall time in every round, the base at most"
        " 1.1 s; 1.3 times are allowed"
    )
    assert "its wall time is 6 times the base's, its CPU time 1 times" in note
    # A machine with other programs on it: told, not judged. So are two rounds.
    failed, (note,) = of([1.0, 6.0, 1.0], [5.0, 6.0, 7.0])
    assert failed == []
    assert "or other programs ran beside it" in note
    assert of([1.0, 1.0], [5.0, 6.0], rounds=2)[0] == []
