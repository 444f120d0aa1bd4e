"""Packs: what one machine packs another adds; damaged, forged and hostile packs are refused."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from runs import svmbench, write_config

from svmbench.report.output import packs
from svmbench.report.output.kept import compress_records, rebuild_differences, rebuild_folder
from svmbench.report.reading.folders import CONFIRMED, ELSEWHERE, OURS, origin_of
from svmbench.report.reading.records import result_lines
from svmbench.schema.rechecks import RECHECKS, Ages

Files = dict[str, bytes]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two cells that needs no compiled loop."""
    folder = tmp_path_factory.mktemp("made")
    config = write_config(folder, ["alsvm"], {"protocol": "cv", "folds": 3}, seed=3)
    ended = svmbench("run", config, "--output", folder / "run", "--quiet")
    assert ended.code == 0, ended.said
    return folder / "run"


@pytest.fixture(scope="module")
def packed(made: Path) -> Path:
    target = made.parent / "run.svmbench.zip"
    assert svmbench("pack", made, "-o", target).code == 0
    return target


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files_of(pack: Path) -> Files:
    with zipfile.ZipFile(pack) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write(target: Path, files: Files) -> Path:
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return target


def forged(pack: Path, target: Path, change: Callable[[Files, dict[str, Any]], None]) -> Path:
    """Write a pack with changed files, whose manifest has the sha256 of what it holds."""
    files = files_of(pack)
    manifest = json.loads(files.pop("manifest.json"))
    change(files, manifest)
    manifest["files"] = {
        name: {"bytes": len(part), "sha256": hashlib.sha256(part).hexdigest()}
        for name, part in files.items()
    }
    return write(target, {"manifest.json": json.dumps(manifest).encode(), **files})


def edited(files: Files, name: str, **changed: Any) -> None:
    files[name] = json.dumps({**json.loads(files[name]), **changed}).encode()


def recorded(files: Files, here: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the records of a pack."""
    folder = here / "scratch"
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    lines: list[Any] = list(result_lines(folder))
    for one in lines:
        change(one)
    files["runs.jsonl.xz"] = compress_records(lines)


def refused(pack: Path, *said: str) -> None:
    """Add a pack that has to be refused in one sentence, and leave nothing behind."""
    ended = svmbench("add", pack)
    assert ended.code in (1, 2), ended.said
    assert "Traceback" not in ended.said
    assert all(word in ended.err for word in said), ended.err
    assert len(ended.err.strip().splitlines()) == 1
    assert not list(Path("results").rglob("*.json")) if Path("results").exists() else True


def test_the_same_run_gives_the_same_bytes(made: Path, packed: Path, here: Path) -> None:
    os.utime(made / "plan.json", (1, 1))
    assert svmbench("pack", made, "-o", "again.zip").code == 0
    assert Path("again.zip").read_bytes() == packed.read_bytes()
    assert sorted(files_of(packed)) == sorted(
        ["manifest.json", "plan.json", "runs.jsonl.xz",
         *(path.name for path in made.glob("environment-*.json"))]
    )  # fmt: skip


def test_a_pack_is_added_and_shown_apart(packed: Path) -> None:
    shown = svmbench("add", packed)
    assert shown.code == 0, shown.said
    assert "from elsewhere" in shown.out
    (folder,) = Path("results/contributed").iterdir()
    assert folder.name.startswith("a-test-quick-") or folder.name.startswith("config-quick-")
    assert "**From elsewhere**" in (folder / "tables.md").read_text()
    assert [one["status"] for one in result_lines(folder)] == ["ok"]
    assert "results: from elsewhere, fresh" in svmbench("table", folder).out
    again = svmbench("add", packed)
    assert (again.code, "is there already" in again.out) == (0, True)
    # It is no run of ours: nothing of it is measured again, or packed again.
    assert "nothing changed" in svmbench("refresh", "results", "--dry-run").out
    assert "pass that pack on" in svmbench("pack", folder).err


def test_a_recheck_here_confirms_it(packed: Path) -> None:
    assert svmbench("add", packed).code == 0
    (folder,) = Path("results/contributed").iterdir()
    assert origin_of(folder, None) == ELSEWHERE
    assert origin_of(folder, Ages({"k": "fresh"}, 0)) == ELSEWHERE
    assert origin_of(folder, Ages({"k": "fresh"}, 1, is_sampled=True)) == CONFIRMED
    assert origin_of(Path("results"), None) == OURS


def test_cells_run_again_here_confirm_a_pack_of_another_cpu(
    made: Path, packed: Path, here: Path
) -> None:
    def change(files: Files, manifest: dict[str, Any]) -> None:
        plan = json.loads(files["plan.json"])
        plan["config"]["name"] = manifest["config"] = "config.yaml"
        files["plan.json"] = json.dumps(plan).encode()
        for name in [one for one in files if one.startswith("environment-")]:
            edited(files, name, cpu="Another CPU")

    shutil.copy(made.parent / "config.yaml", here)
    assert svmbench("add", forged(packed, here / "p.zip", change)).code == 0
    (folder,) = Path("results/contributed").iterdir()
    assert "results: from elsewhere" in svmbench("table", folder).out
    shown = svmbench("recheck", "results")
    assert shown.code == 0, shown.said
    assert "1 of 1 cells agree (0 by equal arithmetic, 1 in every number)" in shown.out
    assert "results: confirmed here" in svmbench("table", folder).out


def test_rechecks_and_manifest_outlive_a_rebuild(packed: Path) -> None:
    assert svmbench("add", packed).code == 0
    (folder,) = Path("results/contributed").iterdir()
    (folder / RECHECKS).write_text("{}\n")
    assert rebuild_differences(folder) == []
    (folder / "tables.md").write_text("stale")
    rebuild_folder(folder)
    assert (folder / RECHECKS).read_text() == "{}\n"
    assert (folder / "manifest.json").exists()


@pytest.mark.parametrize("name", ["plan.json", "runs.jsonl.xz"])
def test_a_wrong_hash(packed: Path, here: Path, name: str) -> None:
    files = files_of(packed)
    files[name] += b" "
    refused(write(here / "p.zip", files), f"the sha256 of {name} is not the one in its manifest")


def test_data_with_another_sha256(packed: Path, here: Path) -> None:
    other = "0" * 64

    def change(files: Files, manifest: dict[str, Any]) -> None:
        recorded(files, here, lambda one: one.update(data_sha256=other))
        manifest["datasets"] = {"breast-cancer": [other]}

    pack = forged(packed, here / "p.zip", change)
    refused(pack, "other data than 'breast-cancer' here", f"sha256 {other}")


def test_a_data_set_that_nobody_knows(packed: Path, here: Path) -> None:
    def change(files: Files, manifest: dict[str, Any]) -> None:
        plan = json.loads(files["plan.json"])
        for cell in plan["cells"]:
            cell["dataset"] = "no-such-set"
        files["plan.json"] = json.dumps(plan).encode()
        recorded(files, here, lambda one: one.update(dataset="no-such-set"))
        manifest["datasets"] = {"no-such-set": manifest["datasets"]["breast-cancer"]}

    refused(forged(packed, here / "p.zip", change), "'no-such-set' is not registered here")


def manifest_of(**changed: Any) -> Callable[[Files, dict[str, Any]], None]:
    return lambda _, manifest: manifest.update(changed)


FORGED: dict[str, tuple[Callable[[Files, dict[str, Any]], None], str]] = {
    "unknown schema": (manifest_of(schema=2), "its schema is 2"),
    "no schema": (manifest_of(schema=None), "its schema is None"),
    "schema of the plan": (
        lambda files, _: edited(files, "plan.json", schema=99),
        "the schema of its plan is 99",
    ),
    "later version": (manifest_of(svmbench="99.0"), "it is of svmbench 99.0"),
    "no version": (manifest_of(svmbench="new"), "has no version of svmbench"),
    "no list of data": (manifest_of(datasets=[]), "datasets should be a mapping"),
    "other data in the manifest": (manifest_of(datasets={}), "name other data"),
    "another config": (manifest_of(config="other"), "are not those of its manifest"),
    "damaged records": (
        lambda files, _: files.update({"runs.jsonl.xz": files["runs.jsonl.xz"][:-9]}),
        "can't read runs.jsonl.xz",
    ),
    "no result": (
        lambda files, _: files.update({"runs.jsonl.xz": compress_records([])}),
        "it has no result",
    ),
    "records of another plan": (
        lambda files, _: edited(files, "plan.json", cells=[]),
        "of an earlier plan",
    ),
    "a plan of another shape": (
        lambda files, _: edited(files, "plan.json", cells={}),
        "plan.json is not a plan",
    ),
    "a plan that is no mapping": (
        lambda files, _: files.update({"plan.json": b"[1]"}),
        "the schema of its plan is None",
    ),
    "a plan that is not JSON": (
        lambda files, _: files.update({"plan.json": b"{,"}),
        "can't read plan.json",
    ),
    "no environment": (
        lambda files, _: [files.pop(one) for one in list(files) if one.startswith("env")],
        "is missing or incomplete",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", FORGED)
def test_a_forged_pack(packed: Path, here: Path, what: str) -> None:
    change, said = FORGED[what]
    refused(forged(packed, here / "p.zip", change), "is refused", said)


@pytest.mark.parametrize(
    "name",
    ["../outside.json", "/outside.json", "a/plan.json", "rechecks.jsonl", "checks.py",
     "environment-../x.json"],
)  # fmt: skip
def test_a_path_outside_or_a_file_of_another_kind(packed: Path, here: Path, name: str) -> None:
    def change(files: Files, _: dict[str, Any]) -> None:
        files[name] = b"{}"

    refused(forged(packed, here / "p.zip", change), "is no file of a pack")
    assert not (here.parent / "outside.json").exists()


def test_a_link_in_a_pack(packed: Path, here: Path) -> None:
    link = zipfile.ZipInfo("environment-x.json")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    shutil.copy(packed, "p.zip")
    with zipfile.ZipFile("p.zip", "a") as archive:
        archive.writestr(link, "/etc/passwd")
    refused(Path("p.zip"), "is a link or no regular file")


def test_a_compressed_file_in_a_pack(packed: Path) -> None:
    with zipfile.ZipFile("p.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files_of(packed).items():
            archive.writestr(name, content)
    refused(Path("p.zip"), "is compressed or encrypted")


def test_a_file_twice(packed: Path) -> None:
    shutil.copy(packed, "p.zip")
    with zipfile.ZipFile("p.zip", "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr(zipfile.ZipInfo("plan.json"), b"{}")
    refused(Path("p.zip"), "has 'plan.json' twice")


def test_a_file_is_missing(packed: Path) -> None:
    files = files_of(packed)
    del files["runs.jsonl.xz"]
    refused(write(Path("p.zip"), files), "has no runs.jsonl.xz")


def test_sizes_are_bounded(packed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(packs._ALLOWED, "plan.json", 10)
    refused(packed, "'plan.json' in it has more than 10 bytes")
    monkeypatch.setattr(packs, "MAX_PACK_BYTES", 10)
    refused(packed, "more than the 10 allowed bytes")


def test_too_many_files(packed: Path) -> None:
    many = {f"environment-{n}.json": b"{}" for n in range(packs.MAX_PACK_FILES + 1)}
    refused(write(Path("p.zip"), {**files_of(packed), **many}), "more than the 64 files")


def cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def flipped(content: bytes) -> bytes:
    place = content.index(b"runs.jsonl.xz") + 40
    return content[:place] + bytes([content[place] ^ 255]) + content[place + 1 :]


def without_beginning(content: bytes) -> bytes:
    return content[-60:]


@pytest.mark.parametrize(
    "damage", [cut, flipped, without_beginning, lambda _: b"", lambda _: b"x" * 99]
)
def test_a_damaged_pack(packed: Path, damage: Callable[[bytes], bytes]) -> None:
    Path("p.zip").write_bytes(damage(packed.read_bytes()))
    refused(Path("p.zip"), "is refused: it is damaged")


def test_no_regular_file(packed: Path, here: Path) -> None:
    refused(here / "nowhere.zip", "can't read")
    os.mkfifo("pipe.zip")
    refused(Path("pipe.zip"), "not a regular file")
    Path("link.zip").symlink_to(packed)
    refused(Path("link.zip"), "it is a link")


def test_a_pack_that_is_killed_while_it_is_placed(
    packed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("svmbench.report.output.builder.build", fail)
    assert svmbench("add", packed).code == 130
    assert list(Path("results/contributed").iterdir()) == []


def test_nothing_is_packed_without_a_result_or_over_a_file(made: Path, here: Path) -> None:
    bare = Path(shutil.copytree(made, here / "bare"))
    (bare / "runs.jsonl").write_text("")
    assert "has no result to pack" in svmbench("pack", bare).err
    Path("run.svmbench.zip").write_text("mine")
    assert "is there already" in svmbench("pack", made).err
    assert Path("run.svmbench.zip").read_text() == "mine"
    assert "is not a run folder" in svmbench("pack", here).err


def test_machines_are_judged_apart_and_together(packed: Path, here: Path) -> None:
    from svmbench.papers.judging import gather_by_machine

    def change(files: Files, _: dict[str, Any]) -> None:
        for name in [one for one in files if one.startswith("environment-")]:
            edited(files, name, cpu="Another CPU")

    assert svmbench("add", forged(packed, here / "p.zip", change)).code == 0
    assert list(gather_by_machine([Path("results")])) == ["Another CPU (contributed)"]


def test_the_archive_has_no_comment(packed: Path) -> None:
    assert zipfile.ZipFile(io.BytesIO(packed.read_bytes())).comment == b""
