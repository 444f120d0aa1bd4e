"""Classes from elsewhere than scikit-learn: taken with ``--trust``, and not imported without."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from runs import cells_of, start, svmbench, write_config

import svmbench as package
from svmbench.base.errors import ConfigError
from svmbench.base.paths import why_not_private
from svmbench.baselines import foreign
from svmbench.baselines.foreign import why_not_taken

MODULE = """
from pathlib import Path

from sklearn.dummy import DummyClassifier

Path(__file__).with_name("imported").touch()


class Majority(DummyClassifier):
    pass
"""

TWO_CLASSES = """
import numpy as np
from sklearn.svm import SVC


class TwoClasses(SVC):
    def fit(self, X, y):
        if len(np.unique(y)) != 2:
            raise ValueError("two classes only")
        return super().fit(X, y)
"""


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a config whose first solver is a class of a module beside it."""
    (tmp_path / "elsewhere.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    own = {"class": "elsewhere.Majority", "label": "majority"}
    yield write_config(tmp_path, [own, "liblinear-l1"])
    sys.modules.pop("elsewhere", None)
    foreign.adapted.cache_clear()


def test_without_trust_it_is_refused_and_not_imported(tmp_path: Path, config: Path) -> None:
    for words in (["validate", config], ["run", config, "--output", tmp_path / "out"]):
        ended = svmbench(*words)
        assert ended.code == 2
        assert "elsewhere.Majority is not a class of scikit-learn" in ended.err
        assert "other classes need --trust" in ended.err
    with pytest.raises(ConfigError, match="is not a class of scikit-learn"):
        package.run(str(config), output=tmp_path / "out")
    assert not (tmp_path / "imported").exists()
    assert not (tmp_path / "out").exists()


def test_with_trust_it_takes_part(tmp_path: Path, config: Path) -> None:
    checked = svmbench("validate", config, "--trust")
    assert checked.code == 0, checked.said
    ended = svmbench("run", config, "--output", tmp_path / "out", "--trust")
    assert ended.code == 0, ended.said
    cell = cells_of(tmp_path / "out")["majority"]
    assert cell["metrics"]["train_accuracy_pct"] == pytest.approx(100 * 357 / 569)
    assert cell["kernel"] == ""
    table = (tmp_path / "out" / "t.md").read_text()
    assert "| data set | majority train time (s) |" in table
    assert "| liblinear-l1 (linear) train time (s) |" in table
    assert table.count("\n| breast-cancer | ") == 1
    # The function goes the same way, and finds what the command has done.
    frame = package.run(str(config), output=tmp_path / "out", trust=True)
    assert frame["status"].tolist() == ["ok", "ok"]
    assert len((tmp_path / "out" / "runs.jsonl").read_text().splitlines()) == 2


def test_a_class_says_its_kernel_its_paper_and_its_task(tmp_path: Path, config: Path) -> None:
    (tmp_path / "elsewhere.py").write_text(TWO_CLASSES)
    said = {"kernel": "linear", "paper": "Doe 2024", "task": "binary", "label": "mine"}
    own = {"class": "elsewhere.TwoClasses", **said}
    block = {"multiclass": "one-vs-one"}
    write_config(tmp_path, [own, "liblinear-l1"], block, datasets=["digits"])
    ended = svmbench("run", config, "--output", tmp_path / "out", "--trust")
    assert ended.code == 0, ended.said
    # Ten classes are separated by pairs, each of which the class sees alone.
    assert cells_of(tmp_path / "out")["mine"]["metrics"]["train_accuracy_pct"] > 95
    table = (tmp_path / "out" / "t.md").read_text()
    assert "kernel linear" in table
    assert "`mine`: Doe 2024." in table
    write_config(tmp_path, [{**own, "task": "multiclass"}], block, datasets=["digits"])
    ended = svmbench("run", config, "--output", tmp_path / "alone", "--trust")
    assert "two classes only" in cells_of(tmp_path / "alone")["mine"]["reason"]
    for key, value in said.items():
        if key != "label":
            write_config(tmp_path, [{"name": "alsvm", key: value}])
            ended = svmbench("validate", config)
            assert ended.code == 2
            assert f"'{key}' is for a class or a program; 'alsvm' declares its own" in ended.err


def test_a_module_that_fails_is_a_sentence(tmp_path: Path, config: Path) -> None:
    (tmp_path / "elsewhere.py").write_text("1 / 0\n")
    ended = svmbench("validate", config, "--trust")
    assert ended.code == 2
    assert "elsewhere can't be imported: ZeroDivisionError" in ended.err
    assert "Traceback" not in ended.err


def test_time_and_describe_take_classes_by_the_same_rule(tmp_path: Path, config: Path) -> None:
    race = ["time", "breast-cancer", "--solver", "alsvm", "--rounds", 1, "--json", "--vs"]
    for words in ([*race, "elsewhere.Majority"], ["describe", "elsewhere.Majority"]):
        ended = svmbench(*words)
        assert ended.code == 2
        assert "elsewhere.Majority is not a class of scikit-learn" in ended.err
    assert not (tmp_path / "imported").exists()
    for name, more in (("elsewhere.Majority", ["--trust"]), ("sklearn.svm.NuSVC", [])):
        ended = svmbench(*race, name, *more)
        assert ended.code == 0, ended.said
        assert [one["solver"] for one in json.loads(ended.out)["solvers"]] == ["alsvm", name]
        ended = svmbench("describe", name, *more, "--json")
        assert ended.code == 0, ended.said
        card = json.loads(ended.out)
        assert (card["solver"], card["task"]) == (name, "multiclass")
        assert "never by objective" in card["minimises"]


def test_a_name_with_a_dot_that_is_nothing_is_one_sentence() -> None:
    ended = svmbench("describe", "a9a.t")
    assert ended.code == 2
    assert "no data set is called 'a9a.t', and as a class a9a.t is not" in ended.err
    ended = svmbench("describe", "sklearn.svm.NoSuch")
    assert ended.code == 2
    assert "there is no class 'sklearn.svm.NoSuch'" in ended.err


def test_compiled_code_is_taken_from_no_folder_that_others_can_write(tmp_path: Path) -> None:
    deep = tmp_path / "above" / "cache"
    deep.mkdir(parents=True)
    above = deep.parent
    for place in (above, deep):
        place.chmod(0o700)
    assert why_not_private(deep) == ""
    for place in (above, deep):
        place.chmod(0o777)
        assert why_not_private(deep) == f"anybody can write to {place}"
        place.chmod(0o700)
    above.chmod(0o1777)
    assert why_not_private(deep) == ""
    deep.chmod(0o1777)
    assert why_not_private(deep) == f"anybody can write to {deep}"


def test_compiled_code_is_taken_from_no_folder_of_another_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid() == 0:
        os.chown(tmp_path, 54321, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 54321)
    assert why_not_private(tmp_path).endswith("belongs to another user")


def test_a_folder_that_others_can_write_is_said_and_not_used(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    (folder / "planted.nbi").write_bytes(b"planted")
    code = "from svmbench.base import compiled; print(compiled.FOLDER)"
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder), "TMPDIR": str(temporary)}
    words = [sys.executable, "-c", code]
    for mode, expected in ((0o700, f"{temporary}/svmbench-"), (0o777, "None")):
        temporary.chmod(mode)
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
        assert done.stdout.startswith(expected)
        assert f"neither read nor kept in {folder}, since anybody can write to" in done.stderr
        assert not list(temporary.rglob("*.nbi"))


def test_warmup_imports_no_class_of_others_without_trust(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "evilpkg.py").write_text("raise SystemExit('it was imported')")
    monkeypatch.syspath_prepend(tmp_path)
    ended = svmbench("warmup", "evilpkg.Evil")
    assert ended.code == 2
    assert "other classes need --trust" in ended.err


@pytest.mark.slow
def test_a_long_temporary_folder_and_few_open_files_are_no_internal_error(tmp_path: Path) -> None:
    long = tmp_path / ("x" * 120)
    long.mkdir()
    config = write_config(tmp_path, ["liblinear-l2"])
    run = start("run", config, "--output", tmp_path / "a", env=os.environ | {"TMPDIR": str(long)})
    said = "".join(run.communicate(timeout=300))
    assert run.returncode == 0, said
    for number in (12, 14, 15, 16):  # each is too few at another place
        limit = lambda n=number: resource.setrlimit(resource.RLIMIT_NOFILE, (n, n))  # noqa: E731
        run = start("run", config, "--output", tmp_path / "b", preexec_fn=limit)
        said = "".join(run.communicate(timeout=300))
        assert run.returncode == 1 or number > 12, said
        assert run.returncode == 0 or "a larger number for 'ulimit -n'" in said
        assert "Traceback" not in said, (number, said)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("perc.py", "perc.py is a file: name a class in it as perc.Class, with --trust"),
        ("./perc", "a program is named with its files, as './perc {train} {model}'"),
    ],
)
def test_a_file_in_place_of_a_class_is_told_how_to_write_it(name: str, said: str) -> None:
    ended = svmbench("time", "breast-cancer", "--solver", name, "--vs", "dcd-l1")
    assert ended.code == 2
    assert said in ended.err


def test_a_class_of_this_folder_is_told_how_to_be_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "percclass.py").write_text("class Perc: pass\n")
    monkeypatch.chdir(tmp_path)
    assert "PYTHONPATH=. has modules of this folder found" in why_not_taken(
        "percclass.Perc", trust=True
    )
    assert "PYTHONPATH" not in why_not_taken("elsewhere_still.Perc", trust=True)
