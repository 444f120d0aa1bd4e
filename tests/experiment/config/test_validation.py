"""A valid config that hasn't changed is not validated again, and any change is noticed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from runs import without_signs, write_config

from svmbench.base.cached_entries import CachedEntries
from svmbench.base.errors import ConfigError
from svmbench.base.paths import PACKAGE
from svmbench.experiment.config import loader, validation
from svmbench.experiment.config.validation import Outline, Validation

BLOCK = {"protocol": "fit", "sizes": [100, 200]}


@pytest.fixture(autouse=True)
def own_cache(private_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test see what others kept."""
    for name in ("SVMBENCH_PLUGINS", "SVMBENCH_DATASETS", "SVMBENCH_PAPERS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(validation, "_outlines", CachedEntries("configs", validation.__file__))


def validated(path: Path, **options: Any) -> Outline:
    """Validate a config as a process of its own would, and keep its outline."""
    validation._outlines.new.clear()
    this = Validation(**options)
    outline = this.outline(str(path))
    this.write_cache()
    return outline


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return write_config(tmp_path, ["alsvm"], BLOCK, profiles={"quick": {"sizes": [100]}})


def refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a second look at any config fail."""
    monkeypatch.setattr(loader, "check_config", lambda *_, **__: pytest.fail("validated again"))


def test_an_unchanged_config_is_not_validated_again(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = validated(config)
    assert first == (1, ("quick",))
    refuse(monkeypatch)
    assert validated(config) == first
    config.write_text(config.read_text() + "\n# changed\n")
    with pytest.raises(pytest.fail.Exception, match="again"):
        validated(config)


def test_a_mistake_is_told_each_time(config: Path) -> None:
    validated(config)
    config.write_text(config.read_text().replace("alsvm", "alsmv"))
    for _ in range(2):
        with pytest.raises(ConfigError, match="unknown solver 'alsmv'; did you mean 'alsvm'"):
            validated(config)


def test_other_code_validates_again(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    validated(config)
    refuse(monkeypatch)
    monkeypatch.setattr(validation, "surroundings", lambda: "other")
    with pytest.raises(pytest.fail.Exception, match="again"):
        validated(config)


def test_unknown_surroundings_validate_again(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    validated(config)
    monkeypatch.setattr(validation, "surroundings", lambda: "")
    assert validated(config) == (1, ("quick",))
    refuse(monkeypatch)
    with pytest.raises(pytest.fail.Exception, match="again"):
        validated(config)


def test_trust_validates_again(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    validated(config, trust=True)
    refuse(monkeypatch)
    for trust in (False, True):
        with pytest.raises(pytest.fail.Exception, match="again"):
            validated(config, trust=trust)


def test_a_file_that_is_gone_is_noticed(tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("a,b\n")
    config = write_config(tmp_path, ["alsvm"], BLOCK, datasets=[{"file": str(rows)}])
    assert validated(config).n_blocks == 1
    rows.unlink()
    with pytest.raises(ConfigError, match="there is no file"):
        validated(config)


def test_an_installed_program_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = {"program": "own-train {train} {model}", "predict": "own {test} {model} {output}"}
    entry = {**program, "label": "own", "optional": True, "params": {"nonsense": 1}}
    config = write_config(tmp_path, ["alsvm", entry], BLOCK)
    assert validated(config).n_blocks == 1
    for name in ("own-train", "own"):
        tool = tmp_path / "bin" / name
        tool.parent.mkdir(exist_ok=True)
        tool.write_text("#!/bin/sh\n")
        tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(ConfigError, match="no parameter 'nonsense'"):
        validated(config)


def test_a_config_that_changes_meanwhile_is_not_kept(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = loader.check_config

    def check(*given: Any, **options: Any) -> Any:
        found = real(*given, **options)
        config.write_text(config.read_text() + "\n# changed\n")
        return found

    monkeypatch.setattr(loader, "check_config", check)
    validated(config)
    assert not validation._outlines.new


@pytest.mark.parametrize("damage", ["null", "[]", "[1]", '["a", []]', "[1, 2]"])
def test_a_damaged_entry_is_none(config: Path, damage: str) -> None:
    validated(config)
    place = validation._outlines.place()
    (key,) = validation._outlines.new
    place.write_text(f'{{"{key}": {damage}}}')
    assert validated(config) == (1, ("quick",))


@pytest.mark.slow
def test_a_later_command_says_the_same_and_imports_no_solver(
    private_cache: Path, tmp_path: Path
) -> None:
    shipped = [PACKAGE.parent / "configs" / f"{name}.yaml" for name in ("quickstart", "novelty")]
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("title: t\n")
    listed = (
        "import sys; from svmbench.cli import main\n"
        "try: main()\n"
        "finally: print(*{'sklearn', 'numba'} & {*sys.modules}, file=sys.stderr)"
    )

    def command(*configs: Path) -> tuple[int, str, list[str]]:
        done = subprocess.run(
            [sys.executable, "-c", listed, "validate", *map(str, configs)],
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout, without_signs(done.stderr).splitlines()

    code, out, loaded = command(*shipped)
    assert (code, set(loaded[0].split())) == (0, {"sklearn", "numba"})
    assert command(*shipped) == (0, out, [""])
    assert [line.partition(": ")[2][:3] for line in out.splitlines()] == ["ok ", "ok "]
    code, said, errors = command(*shipped, wrong)
    assert (code, said) == (2, out)
    assert errors[0] == f"svmbench: {wrong}:1:1: blocks: the key 'blocks' is missing"
