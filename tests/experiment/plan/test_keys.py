"""A cell's key covers what decides its result, and nothing else."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pathlib import Path

import pytest

from svmbench.base.paths import PACKAGE
from svmbench.baselines.catalogue import solver_class, solvers
from svmbench.experiment.plan import keys
from svmbench.experiment.plan.keys import code_of, modules_of_kind
from svmbench.experiment.protocols import protocols


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a copy of the package whose files keys are made of."""
    copied = tmp_path / "svmbench"
    shutil.copytree(PACKAGE, copied, ignore=shutil.ignore_patterns("__pycache__", "published"))
    monkeypatch.setattr(keys, "PACKAGE", copied)
    keys.forget()
    yield copied
    keys.forget()


#: Solvers of each room, those that the tests below name among them.
SOME = ("alsvm", "csvc", "nl-sgd", "kernel-pegasos", "nu-svm", "one-class", "libsvm", "svc")

#: Protocols that measure no training.
NOTHING_TIMED = {"facts", "check", "simulate"}


def all_hashes(
    names: Iterable[str] = SOME, under: Iterable[str] = tuple(protocols())
) -> dict[tuple[str, str], str]:
    keys.forget()
    return {
        (solver, protocol): code_of(solver, protocol, solvers()[solver].task, form_of(solver))
        for solver in names
        for protocol in under
    }


def form_of(solver: str) -> str:
    """Return the form in which a solver takes its rows under most protocols."""
    return "kernel" if "kernel" in solvers()[solver].reads else "arrays"


def touch(file: Path, more: str = "another = 1") -> None:
    file.write_text(f"{file.read_text(encoding='utf-8')}\n{more}\n", encoding="utf-8")


def test_no_edit_of_what_shows_results_changes_a_key(tree: Path) -> None:
    before = all_hashes()
    folders = (
        *("cli", "data", "report", "site"),
        *("experiment/config", "experiment/plan", "experiment/run", "experiment/settings"),
    )
    for folder in folders:
        files = list((tree / folder).glob("*.py"))
        assert files, folder
        for file in files:
            touch(file)
    assert all_hashes() == before


@pytest.mark.parametrize(
    ("file", "changes"),
    [
        (
            "experiment/protocols/kernel_search.py",
            lambda solver, protocol: "nested" in protocol and form_of(solver) == "kernel",
        ),
        ("experiment/protocols/folds.py", lambda *_: True),
        ("experiment/measuring/measure.py", lambda _s, protocol: protocol not in NOTHING_TIMED),
        ("experiment/protocols/race.py", lambda _solver, protocol: protocol == "race"),
        ("core/kernel_svm/nl_sgd.py", lambda solver, _: solver in {"nl-sgd", "kernel-pegasos"}),
    ],
)
def test_an_edit_of_what_decides_a_result_changes_its_keys(
    tree: Path, file: str, changes: Callable[[str, str], bool]
) -> None:
    before = all_hashes()
    touch(tree / file)
    after = all_hashes()
    for of, hashed in before.items():
        if changes(*of):
            assert after[of] != hashed, of


@pytest.mark.parametrize(
    ("file", "task", "reads"),
    [
        ("core/models/multiclass.py", "multiclass", "arrays"),
        ("experiment/protocols/in_blocks.py", "binary", "blocks"),
        ("experiment/protocols/kernel_search.py", "binary", "kernel"),
    ],
)
def test_an_edit_of_what_some_cells_need_leaves_the_others_their_keys(
    tree: Path, file: str, task: str, reads: str
) -> None:
    def hashes() -> dict[tuple[str, str], str]:
        keys.forget()
        kinds = {("binary", "arrays"), (task, reads)}
        return {kind: code_of("alsvm-batch", "nested-cv", *kind) for kind in kinds}

    before = hashes()
    touch(tree / file)
    after = hashes()
    assert {kind for kind in before if before[kind] != after[kind]} == {(task, reads)}


def test_a_key_covers_the_modules_of_a_cell_s_own_scores(tree: Path) -> None:
    def hashes() -> dict[tuple[str, str], str]:
        keys.forget()
        return {
            (protocol, score): code_of("alsvm", protocol, "binary", "arrays", score)
            for protocol in ("fit", "check")
            for score in ("accuracy", "log-loss")
        }

    before = hashes()
    touch(tree / "schema" / "scores" / "calibration.py")
    after = hashes()
    changed = {kind for kind in before if before[kind] != after[kind]}
    assert changed == {("fit", "log-loss")}


def test_a_key_follows_relative_imports_and_those_inside_functions(tree: Path) -> None:
    before = keys.closure("svmbench.core.numeric.qp")
    touch(tree / "core/numeric/qp.py", "def more():\n    from ..linear import dcd\n    return dcd")
    keys.forget()
    assert keys.closure("svmbench.core.numeric.qp") - before >= {"svmbench.core.linear.dcd"}
    touch(tree / "core/linear/dcd.py", "from ..models import kernel_base\nfrom . import pegasos")
    keys.forget()
    found = keys.closure("svmbench.core.numeric.qp")
    assert {"svmbench.core.models.kernel_base", "svmbench.core.linear.pegasos"} <= found


@pytest.mark.parametrize(
    ("text", "reached", "not_reached"),
    [
        (
            "from svmbench.plugins import LinearClassifier, declare",
            {"svmbench.core.contract.linear_base"},
            {"svmbench.core.models.kernel_base", "svmbench.plugins"},
        ),
        (
            "from svmbench import Pegasos",
            {"svmbench.core.linear.pegasos"},
            {"svmbench.core.linear.dcd", "svmbench.core.csvc"},
        ),
        (
            "from svmbench.plugins import folds",
            {"svmbench.experiment.protocols.folds"},
            {"svmbench.core.contract.linear_base"},
        ),
        ("from svmbench import core", {"svmbench.core"}, {"svmbench.core.contract.linear_base"}),
        ("import svmbench.plugins as face", {"svmbench.core.models.kernel_base"}, set()),
        ("import svmbench", {"svmbench.core.linear.dcd"}, set()),
    ],
)
def test_a_plug_in_s_key_covers_the_modules_that_define_what_it_imports(
    text: str,
    reached: set[str],
    not_reached: set[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "own_solver.py").write_text(f"{text}\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own_solver", raising=False)
    import_module("own_solver")
    keys.forget()
    found = keys.closure("own_solver")
    keys.forget()
    assert found >= reached
    assert not found & not_reached
    if not_reached:
        assert not any(name.startswith("svmbench.report") for name in found)


def test_an_edit_of_what_is_said_of_the_code_changes_no_key(tree: Path) -> None:
    before = all_hashes()
    for file in sorted(tree.rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        if text.startswith('"""'):
            file.write_text(f'"""Other words.\n\n{text[3:]}', encoding="utf-8")
        touch(file, "# another line")
    assert all_hashes() == before


def test_an_edit_of_one_solver_leaves_the_others_their_keys(tree: Path) -> None:
    before = all_hashes(solvers(), ["fit"])
    touch(tree / "core" / "kernel_svm" / "nl_sgd.py")
    after = all_hashes(solvers(), ["fit"])
    assert {solver for solver, _ in before if before[solver, "fit"] != after[solver, "fit"]} == {
        "nl-sgd",
        "kernel-pegasos",
    }


@pytest.mark.parametrize("package", ["numpy", "scipy", "scikit-learn", "numba", "libsvm-official"])
def test_another_version_of_a_package_is_another_key(
    monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    modules = modules_of_kind("libsvm", "nested-cv", "binary", "arrays")
    keys.forget()
    before = keys.code_hash(*modules)
    linear = keys.versions(keys.closure(solver_class("alsvm").__module__))
    assert "libsvm-official" not in linear
    real = keys.version
    keys.forget()
    monkeypatch.setattr(keys, "version", lambda name: "0.0" if name == package else real(name))
    assert keys.code_hash(*modules) != before
    keys.forget()


def test_nobody_looks_for_the_package_of_a_module_that_is_not_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keys.forget()
    monkeypatch.setattr(keys, "packages_distributions", lambda: pytest.fail("it takes 0.3 s"))
    assert keys._distributions("no_such_module") == ["no_such_module"]
    with pytest.raises(pytest.fail.Exception):
        keys._distributions("importlib")  # one that is installed under another name
    keys.forget()


def test_a_solver_s_key_follows_what_it_imports() -> None:
    reached = keys.closure("svmbench.core.linear.pegasos")
    assert {"svmbench.core.contract.base", "svmbench.core.contract.problems"} <= reached
    assert not any(name.startswith("svmbench.experiment") for name in reached)
