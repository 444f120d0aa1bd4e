"""Damaged files of every kind that the program reads: each is read, or refused in a sentence.

A case is a real file, changed by one of the mutators of its kind. What becomes of it is an outcome:
``read``; ``refused`` (an error of ours with exit code 2 whose every line can be printed); or a
finding: ``internal`` (any other exception), ``garbled`` (a sentence that is none), ``slow`` (more
than two seconds of CPU time) or ``large`` (more than 500 MB).

A mutator that only ever breaks the first byte tests nothing, so each case tells whether it went
past the first check of its kind, and the share of those is counted for each mutator.
"""

from __future__ import annotations

import atexit
import bz2
import contextlib
import gzip
import hashlib
import inspect
import io
import json
import lzma
import os
import random
import resource
import shutil
import signal
import tempfile
import time
import tomllib
import typing
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import growing
import numpy as np
import sklearn.datasets
import yaml
from damaged_runs import every_kind
from matplotlib.figure import Figure
from mutators import BYTES, JSON, TEXT, Mutator, change_value

from svmbench.base.errors import EXIT_USAGE, SvmbenchError
from svmbench.base.paper_folders import papers
from svmbench.base.version import __version__
from svmbench.baselines.catalogue import solvers
from svmbench.data import (
    archives,
    dataset,
    derive,
    entries,
    fetch,
    idx,
    libsvm,
    on_disk,
    prepare,
    registry,
    synthetic,
    tables,
    userfile,
)
from svmbench.experiment import protocols
from svmbench.experiment.config import loader as config
from svmbench.experiment.config import schema
from svmbench.experiment.config.yaml_source import YamlSource
from svmbench.experiment.plan.planner import make_plan
from svmbench.experiment.run import record_file
from svmbench.experiment.settings.blocks import RaceBlock, TrainingBlock
from svmbench.papers import judging as claims
from svmbench.papers.judging import export
from svmbench.report.gate import compare, sides
from svmbench.report.output import packs
from svmbench.report.output.formats.markdown import markdown_table
from svmbench.report.plots.kinds import decision
from svmbench.report.plots.plot_data import PlotData, read_plot, read_plot_data
from svmbench.report.reading import shapes
from svmbench.report.reading.records import read_run
from svmbench.report.tables.grids import grid_of
from svmbench.report.tables.layout import lay_out, read_spec, wide_csv
from svmbench.report.tables.tidy import tidy_csv
from svmbench.schema import record
from svmbench.schema.rechecks import MANIFEST
from svmbench.schema.record import parse_record
from svmbench.schema.specs import PlotSpec, TableSpec

ROOT = Path(__file__).resolve().parent.parent
CPU_SECONDS = 2.0
MEGABYTES = 500.0

Reached = Callable[[], None]

# ---------------------------------------------------------------- kinds


@dataclass(frozen=True)
class Kind:
    """A kind of file: real ones, what changes them, and what reads them."""

    name: str
    seeds: Callable[[], list[bytes]]
    mutators: tuple[Mutator, ...]
    read: Callable[[bytes, Path, Reached], None]
    #: Limits of its own; None for those of all.
    cpu_seconds: float | None = None
    megabytes: float | None = None


def _sklearn(folder: str, name: str) -> bytes:
    return (Path(sklearn.datasets.__file__).parent / folder / name).read_bytes()


def _first_lines(content: bytes, number: int) -> bytes:
    return b"\n".join(content.splitlines()[:number]) + b"\n"


def libsvm_files() -> list[bytes]:
    """Return scikit-learn's example, and the digits and the iris flowers as LIBSVM text."""
    found = [_sklearn("tests/data", "svmlight_classification.txt")]
    for X, y in (
        sklearn.datasets.load_digits(return_X_y=True),
        sklearn.datasets.load_iris(return_X_y=True),
    ):
        out = io.BytesIO()
        sklearn.datasets.dump_svmlight_file(X[::40], y[::40], out, zero_based=False)
        found.append(out.getvalue())
    return found


def read_libsvm(content: bytes, _folder: Path, reached: Reached) -> None:
    """Parse LIBSVM text and derive a data set."""
    libsvm.check_text(content, "x.svm")
    reached()
    for sort in (False, True):
        part = userfile.parse_file(content, "x.svm", entries.Reading(sort_indices=sort))
        derive.derive("x.svm", part, None, entries.Derivation())


def csv_files() -> list[bytes]:
    """Return the first lines of tables that ship with scikit-learn."""
    names = ["iris.csv", "wine_data.csv", "breast_cancer.csv"]
    return [_first_lines(_sklearn("data", name), 25) for name in names]


def read_csv(content: bytes, _folder: Path, reached: Reached) -> None:
    """Read a table with a header and without, and derive a data set."""
    reading = entries.Reading(format="table", skip_lines=1, incomplete="mean", missing="?")
    tables_frame = tables.read_table(content, "x.csv", reading)
    reached()
    tables.samples([tables_frame], ["x.csv"], reading)
    with_header = entries.Reading(format="table", header=True)
    part = userfile.parse_file(content, "x.csv", with_header)
    derive.derive("x.csv", part, None, entries.Derivation())


def idx_files() -> list[bytes]:
    """Return the digits' images and their labels in MNIST's format."""
    digits = sklearn.datasets.load_digits()
    images = np.asarray(digits.images[:30], dtype=np.uint8)
    labels = np.asarray(digits.target[:30], dtype=np.uint8)
    return [
        bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes() + array.tobytes()
        for array in (images, labels)
    ]


def read_idx(content: bytes, _folder: Path, reached: Reached) -> None:
    """Read an idx array."""
    if content[:3] == b"\0\0\x08":
        reached()
    idx.read_idx(content, "x-ubyte")


def archive_files() -> list[bytes]:
    """Return a text in each of the four kinds of archives, its ending before it."""
    text = libsvm_files()[1]
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inside", text)
    return [
        b".xz\n" + lzma.compress(text),
        b".bz2" + bz2.compress(text),
        b".gz\n" + gzip.compress(text, mtime=0),
        b".zip" + packed.getvalue(),
    ]


def read_archive(content: bytes, _folder: Path, reached: Reached) -> None:
    """Unpack an archive; the first four bytes say which, and are left as they are."""
    ending, stored = content[:4].decode("latin-1").strip(), content[4:]
    signs = {".xz": b"\xfd7zXZ\0", ".bz2": b"BZh", ".gz": b"\x1f\x8b", ".zip": b"PK\x03\x04"}
    if stored.startswith(signs.get(ending, b"?")):
        reached()
    archives.decompressed(stored, f"x{ending}", "inside" if ending == ".zip" else None)


def _behind_the_ending(mutate: Mutator) -> Mutator:
    def inside(content: bytes, chooser: random.Random) -> bytes:
        return content[:4] + mutate(content[4:], chooser)

    inside.__name__ = mutate.__name__
    return inside


def yaml_files() -> list[bytes]:
    """Import all solvers, and return every config that ships with the package.

    Without this, the first config that is read would be charged the time of the import.
    """
    solvers()
    return [path.read_bytes() for path in sorted((ROOT / "configs").glob("*.yaml"))]


def read_yaml(content: bytes, folder: Path, reached: Reached) -> None:
    """Check a config as ``svmbench validate`` does."""
    path = folder / "x.yaml"
    path.write_bytes(content)

    def read(place: Path) -> YamlSource:
        source = YamlSource.read(place)
        reached()
        return source

    with mock.patch.object(config, "YamlSource", mock.Mock(read=read)):
        found = config.check_config(path, files=True)
    for profile in found.profiles:
        config.apply_profile(found, profile)


def toml_files() -> list[bytes]:
    """Return parts of the registry that ships with the package, each with the origins."""
    text = (ROOT / "datasets.toml").read_bytes()
    parts = text.split(b"\n\n[")
    origins = b"\n\n[".join(part for part in parts if part.startswith(b"origin."))
    rest = [part for part in parts[1:] if not part.startswith(b"origin.")]
    return [
        b"[" + origins + b"\n\n[" + b"\n\n[".join(rest[start : start + 3]) + b"\n"
        for start in range(0, 30, 3)
        if not any(b"based_on" in part for part in rest[start : start + 3])
    ]


def read_toml(content: bytes, folder: Path, reached: Reached) -> None:
    """Read a registry of one's own."""
    path = folder / "x.toml"
    path.write_bytes(content)
    registry._parsed(path)
    reached()
    registry._read.__wrapped__((path,))


@cache
def _run() -> Path:
    """Return a run folder as ``svmbench run`` writes them."""
    below = Path(tempfile.mkdtemp(prefix="svmbench-fuzz-run-"))
    atexit.register(shutil.rmtree, below, ignore_errors=True)
    run = every_kind(below)
    for path in run.glob("*.json"):  # as the program lays them out
        path.write_text(json.dumps(json.loads(path.read_bytes()), indent=1) + "\n")
    return run


#: The file that says what the run was measured on.
_ENVIRONMENT = "environment-4be1c0de.json"


@cache
def _run_file(name: str) -> bytes:
    (path,) = _run().glob(name)
    return path.read_bytes()


def _in_a_run(name: str) -> Callable[[bytes, Path, Reached], None]:
    """Return what reads a run folder of which one file is given and the others are whole."""

    def read(content: bytes, folder: Path, reached: Reached) -> None:
        for other in ("plan.json", "runs.jsonl", _ENVIRONMENT):
            (folder / other).write_bytes(content if other == name else _run_file(other))
        if name == "runs.jsonl":
            if any(parse_record(line) for line in content.splitlines()):
                reached()
            with record_file.RunFolder(folder):
                pass
        elif isinstance(_json(content), dict):
            reached()
        _report(folder)

    return read


def artifact_files() -> list[bytes]:
    """Return the arrays of a plane of two classes, packed and not, and of one of several."""
    x, y = np.linspace(-2, 2, 12), np.linspace(-1, 1, 9)
    points = {"X": np.column_stack([x, x[::-1]]), "y": np.arange(12) % 3}
    values = x[np.newaxis, :] + y[:, np.newaxis]
    marked = {"marked": np.arange(12) < 4, "levels": np.array([-1.0, 0.0, 1.0])}
    out = [io.BytesIO() for _ in range(3)]
    np.savez(out[0], grid_x=x, grid_y=y, decision=values, **points, **marked)
    np.savez_compressed(out[1], grid_x=x, grid_y=y, decision=values, **points, **marked)
    np.savez(out[2], grid_x=x, grid_y=y, regions=np.floor(values), **points)
    return [stream.getvalue() for stream in out]


def read_artifact(content: bytes, folder: Path, reached: Reached) -> None:
    """Collect what a plot of kind ``decision`` draws; of one in forty, draw it."""
    path = folder / "x.npz"
    path.write_bytes(content)
    if zipfile.is_zipfile(path):
        reached()
    panel = decision.panel_of("x", path)
    if zlib.crc32(content) % 40 == 0:
        axes = Figure().add_subplot()
        curves = PlotData(PlotSpec(name="x", block="x", kind="decision"), (panel,), [], "decision")
        styles = {series.name: i for i, series in enumerate(panel.series)}
        decision.draw_decision(axes, curves, panel, styles, False)


def _in_a_member(mutate: Mutator) -> Mutator:
    """Return what damages a file in an archive, whose own marks then fit what is in it."""

    def inside(content: bytes, chooser: random.Random) -> bytes:
        out = io.BytesIO()
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(out, "w") as new:
                members = {name: old.read(name) for name in old.namelist()}
                chosen = chooser.choice(list(members))
                members[chosen] = mutate(members[chosen], chooser)
                for name, each in members.items():
                    new.writestr(name, each)
        except (zipfile.BadZipFile, IndexError, ValueError):  # emptied by an earlier time
            return content
        return out.getvalue()

    inside.__name__ = f"{mutate.__name__}_inside"
    return inside


def pack_files() -> list[bytes]:
    """Return what ``svmbench pack`` writes of a run that lacks no fact."""
    with tempfile.TemporaryDirectory() as folder:
        run, pack = Path(folder) / "run", Path(folder) / "x.zip"
        shutil.copytree(_run(), run)
        plan, facts = json.loads(_run_file("plan.json")), json.loads(_run_file(_ENVIRONMENT))
        lacking = {
            "cpu": "a CPU",
            "blas": ["openblas"],
            "packages": {"numpy": "2.0"},
            "svmbench": __version__,
        }
        (run / "plan.json").write_text(json.dumps({**plan, "schema": packs.PLAN_SCHEMA}))
        (run / _ENVIRONMENT).write_text(json.dumps({**facts, **lacking}))
        packs.write_pack(run, pack)
        return [pack.read_bytes()]


def read_pack(content: bytes, folder: Path, reached: Reached) -> None:
    """Unpack a pack and report its run, as ``svmbench add`` does but for its data."""
    path = folder / "x.zip"
    path.write_bytes(content)
    if zipfile.is_zipfile(path):
        reached()
    with tempfile.TemporaryDirectory(dir=folder) as unpacked:
        packs.unpack_pack(path, Path(unpacked))
        _report(Path(unpacked))


def _with_fitting_manifest(mutate: Mutator) -> Mutator:
    """Return what damages a file of a pack, whose manifest then has the sha256 of what is in it."""
    damage = _in_a_member(mutate)

    def forged(content: bytes, chooser: random.Random) -> bytes:
        changed, out = damage(content, chooser), io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(changed)) as old, zipfile.ZipFile(out, "w") as new:
            members = {name: old.read(name) for name in old.namelist()}
            stated = _json(members.pop(MANIFEST))
            if not isinstance(stated, dict):  # the manifest itself was damaged
                return changed
            stated["files"] = {
                name: {"bytes": len(part), "sha256": hashlib.sha256(part).hexdigest()}
                for name, part in members.items()
            }
            new.writestr(MANIFEST, json.dumps(stated))
            for name, part in members.items():
                new.writestr(name, part)
        return out.getvalue()

    forged.__name__ = f"{mutate.__name__}_forged"
    return forged


def baseline_files() -> list[bytes]:
    """Return what ``svmbench keep`` would keep of a run, had it no holes."""
    return [json.dumps(sides.summarise_run(_run()), indent=1).encode()]


def read_baseline(content: bytes, folder: Path, reached: Reached) -> None:
    """Compare a run with a kept baseline."""
    (folder / "baseline.json").write_bytes(content)
    if isinstance(_json(content), dict):
        reached()
    _compare(sides.read_side(folder), sides.read_side(_run()))


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def _report(folder: Path) -> None:
    """Make the tables and curves of a run, all but the drawing, and compare it with itself."""
    run = read_run(folder)
    plan = str(folder / "plan.json")
    laid_out = [lay_out(run, read_spec(raw, plan)) for raw in run.tables]
    for table in laid_out:
        markdown_table(grid_of(run, table, in_seconds=True))
        wide_csv(run, table)
    for raw in run.plots:
        read_plot_data(run, read_plot(raw, plan))
    tidy_csv(run, laid_out)
    side = sides.read_side(folder)
    _compare(side, side)


def _compare(kept: sides.Side, new: sides.Side) -> None:
    try:
        compare.compare_folders(kept, new)
    except SvmbenchError as error:
        if "nothing to compare" not in str(error):
            raise


KINDS = {
    kind.name: kind
    for kind in (
        Kind("libsvm", libsvm_files, TEXT, read_libsvm),
        Kind("csv", csv_files, TEXT, read_csv),
        Kind("idx", idx_files, BYTES, read_idx),
        Kind("archive", archive_files, tuple(map(_behind_the_ending, BYTES)), read_archive),
        Kind("yaml", yaml_files, TEXT, read_yaml),
        Kind("toml", toml_files, TEXT, read_toml),
        Kind("records", lambda: [_run_file("runs.jsonl")], JSON, _in_a_run("runs.jsonl")),
        Kind("plan", lambda: [_run_file("plan.json")], JSON, _in_a_run("plan.json")),
        Kind("artifact", artifact_files, (*BYTES, *map(_in_a_member, BYTES)), read_artifact),
        Kind("pack", pack_files, (*BYTES, *map(_with_fitting_manifest, JSON)), read_pack),
        Kind("baseline", baseline_files, JSON, read_baseline),
        Kind(
            "environment", lambda: [_run_file("environment-*.json")], JSON, _in_a_run(_ENVIRONMENT)
        ),
    )
}

# ---------------------------------------------------------------- kinds that are grown


@cache
def _config_schema() -> dict[str, Any]:
    found = schema.config_schema()
    blocks = found["properties"]["blocks"]["items"]
    del blocks["properties"]  # a mark for editors; the forms say which protocols there are
    return found


@cache
def _registry_schema() -> dict[str, Any]:
    entry = entries.DatasetEntry.model_json_schema()
    definitions = entry.pop("$defs")
    for name in ("based_on", "origin"):
        entry["properties"][name] = {"type": "string"}
    table = {"type": "array", "minItems": 1, "items": entry}
    return {"$defs": definitions, **table}


#: Keys of blocks that name something, or fit some protocols and solvers alone.
_REFERRING = ("datasets", "solvers", "task", "scores", "select_by", "sizes", "features", "sweep")
_REFERRING_IN_PROFILES = ("datasets", "grid", "params", "sizes", "features", "sweep")


def _as_config(value: Any) -> str:
    """Return a config as YAML; of most, the names fit together, and the counts are as they grew."""
    if isinstance(value, dict) and len(repr(value)) % 4:
        value = _fitting(value)
    return yaml.safe_dump(value)


def _fitting(value: dict[str, Any]) -> dict[str, Any]:
    searched = {"grid": {"C": [0.5, 1]}}
    grown_grid = [
        spec["grid"]["C"]
        for spec in _dicts(value.get("solvers"))
        if isinstance(spec.get("grid"), dict) and "C" in spec["grid"]
    ]
    if grown_grid and len(repr(value)) % 3 == 0:
        searched = {"grid": {"C": grown_grid[0]}}
    blocks = [
        {key: each for key, each in block.items() if key not in _REFERRING} | {"name": f"b{i}"}
        for i, block in enumerate(_dicts(value.get("blocks")))
    ]
    for block in blocks:
        declared = protocols.protocols().get(str(block.get("protocol")))
        if declared is None or not issubclass(declared.settings, TrainingBlock):
            continue
        if declared.grid == "none":
            block["solvers"] = [{"name": "csvc", "params": {"C": 1}}, {"name": "alsvm"}]
        if issubclass(declared.settings, RaceBlock):
            block.pop("racers", None)
            block |= {"pairs": [["csvc", "alsvm"]]} if "pairs" in block else {}
    n_folds = [block.get("outer_folds", 5) for block in blocks]
    for block, of in zip(blocks, n_folds, strict=True):
        if isinstance(block.get("run_folds"), int) and isinstance(of, int):
            block["run_folds"] = min(block["run_folds"], of)
    profiles = value.get("profiles")
    names = {key: each for key, each in profiles.items() if isinstance(each, dict)} if isinstance(
        profiles, dict) else {}  # fmt: skip
    fits = {
        key: {k: v for k, v in each.items() if k not in (*_REFERRING_IN_PROFILES, "run_folds")}
        for key, each in names.items()
    }
    kept = {k: v for k, v in value.items() if k not in ("profiles", "plots", "tables", "blas_core")}
    return kept | {
        "datasets": [{"name": "iris"}, {"name": "breast-cancer", "sizes": [50, 100]}],
        "solvers": [{"name": "csvc", **searched}, {"name": "alsvm", **searched}],
        "blocks": blocks or [{"name": "b0", "protocol": "cv"}],
        "profiles": fits or {"paper": {}},
    }


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


#: Parameters of the functions that generate data, of all of them.
_PARAMETERS = {
    "n_samples": 60, "n_features": 40, "noise": 0.1, "density": 0.2, "seed": 1, "n_positive": 20,
    "n_negative": 30, "n_classes": 3, "n_per_class": 9, "mean_positive": 1.0,
    "mean_negative": -1.0, "spread": 0.2, "turns": 1.0,
}  # fmt: skip


def _of_a_builtin(name: Any, grown: Any) -> dict[str, Any]:
    """Return parameters that a function takes, those that were grown among them."""
    make = synthetic.BUILTINS.get(name) if isinstance(name, str) else None
    takes = inspect.signature(make).parameters if make else {}
    all_of_them = _PARAMETERS | (grown if isinstance(grown, dict) else {})
    return {key: each for key, each in all_of_them.items() if key in takes}


def _as_registry(value: Any) -> str:
    tables = value if isinstance(value, list) else [value]
    for i, each in enumerate(tables):
        if isinstance(each, dict) and len(repr(each)) % 4:  # mostly one that fits together
            tables[i] = each = {**each}
            for key in ("based_on", "origin", "counts", "test_counts", "n_test", "density", "name"):
                each.pop(key, None)
            each |= {"n_samples": 2, "n_features": 2, "task": "binary", "derivation": {}}
            each.pop(gone := ("files", "builtin")[len(repr(each)) % 2], None)
            if gone == "files" or not each.get("files"):
                each.pop("files", None)
                each["builtin"] = each.get("builtin", "circle")
                given = _of_a_builtin(each["builtin"], each.get("parameters"))
                of_classes = (given.get("n_positive"), given.get("n_negative"))
                each |= {"parameters": given, "n_features": given.get("n_features", 2)}
                each["n_samples"] = given.get("n_samples") or 50
                if all(isinstance(count, int) for count in of_classes):
                    each["n_samples"] = sum(of_classes)  # type: ignore[arg-type]
            if isinstance(each.get("files"), list):
                each["files"] = [f for f in each["files"] if not isinstance(f, dict)
                                 or f.pop("part", 0) or True]  # fmt: skip
    names = ("a", "b", "c", "origin")
    return "".join(
        f"{names[i % 4] if i < 4 else f'x{i}'} = {growing.as_toml(each)}\n"
        for i, each in enumerate(tables)
    )


def read_grown_config(content: bytes, folder: Path, reached: Reached) -> None:
    """Check a config as ``svmbench validate`` does, and plan it without any data."""
    path = folder / "x.yaml"
    path.write_bytes(content)
    if config._read(YamlSource.read(path), ())[0] is not None:
        reached()
    found = config.check_config(path, files=False)
    for profile in found.profiles:
        make_plan(config.apply_profile(found, profile), "x", profile, prepare=False).to_json()


def read_grown_registry(content: bytes, folder: Path, reached: Reached) -> None:
    """Read a registry, and what its entries generate, or make of a small file."""
    path = folder / "x.toml"
    path.write_bytes(content)
    registry._parsed(path)
    reached()
    for one in registry._read.__wrapped__((path,)).values():
        rows = b"1 1:1\n-1 2:1\n" if one.reading.format == "libsvm" else b"1,2,a\n3,4,b\n"
        got = [fetch.Fetched(file, rows, "", "unverified", "mirror") for file in one.files]
        train, test = prepare._generated(one) if one.builtin else prepare.read_entry_files(one, got)
        derived = derive.derive(one.name, train, test, one.derivation)
        prepare.check_entry_counts(one, dataset.described(derived, {"task": one.task}))


def read_grown_data(content: bytes, folder: Path, _reached: Reached) -> None:
    """Read a table or LIBSVM rows whole, and in blocks."""
    first = next(filter(None, content.split()), b"")
    place = folder / ("x.csv" if b"," in first else "x.svm")
    place.write_bytes(content)
    _reached()
    said = []
    for read in (_read_whole, _read_in_blocks):
        try:
            read(content, place)
        except SvmbenchError as error:
            said.append(error)
    if said:
        raise said[0]


def _read_whole(content: bytes, place: Path) -> None:
    part = userfile.parse_file(content, place.name, userfile.reading_of(place))
    derive.derive(place.name, part, None, entries.Derivation())


def _read_in_blocks(_content: bytes, place: Path) -> None:
    on_disk.scan(place)


@cache
def _records_schema() -> dict[str, Any]:
    parts = {"cell": record.CellRecord, "point": record.PointRecord}
    definitions: dict[str, Any] = {}
    numbers = {"type": "object", "additionalProperties": {"type": "number"}}
    for name, kind in parts.items():
        properties: dict[str, Any] = {}
        for key in typing.get_type_hints(kind):
            properties[key] = {"type": "string"}
            if key in record._NUMBERS:
                properties[key] = numbers
            elif key in record._MAPPINGS:
                of = {"type": "string"} if key == "undefined" else {"type": ["number", "string"]}
                properties[key] = {"type": "object", "additionalProperties": of}
            elif key in record._WHOLE_NUMBERS:
                properties[key] = {"type": ["integer", "null"]}
        properties |= {
            "schema": {"const": record.RECORD_SCHEMA},
            "kind": {"const": name},
            "wall_s": {"type": "number"},
            "contended": {"type": "boolean"},
            "warnings": {"type": "array", "items": {"type": "string"}},
            "trace": {"type": "array", "items": {"prefixItems": 3 * [{"type": "number"}],
                                                 "type": "array"}},
        }  # fmt: skip
        definitions[name] = {
            "type": "object",
            "properties": properties,
            "required": [*properties] if name == "cell" else ["kind", "key", "schema", "point"],
            "additionalProperties": False,
        }
    forms = [{"$ref": f"#/$defs/{name}"} for name in parts]
    return {"$defs": definitions, "type": "array", "minItems": 1, "items": {"anyOf": forms}}


@cache
def _plan_schema() -> dict[str, Any]:
    made = growing.of_shape(shapes.PLAN_SHAPE)
    definitions: dict[str, Any] = {}
    for name, kind in (("tables", TableSpec), ("plots", PlotSpec)):
        spec = kind.model_json_schema()
        definitions |= spec.pop("$defs", {})
        made["properties"][name] = {"type": "array", "items": spec}
    made["required"] = [*made["properties"]]
    return {"$defs": definitions, **made}


@cache
def _baseline_schema() -> dict[str, Any]:
    made = growing.of_shape(shapes.BASELINE_SHAPE)
    cell = made["properties"]["cells"]["items"]
    numbers = {"type": "object", "additionalProperties": {"type": "number"}}
    kept = {"contended": {"type": "boolean"}, "params": numbers, "counters": numbers}
    cell["properties"] |= kept | {"metrics": numbers}
    cell["required"] = [*cell["properties"]]
    made["properties"]["cells"]["minItems"] = 1
    made["properties"]["schema"] = {"const": 1}
    for facts in made["properties"]["environments"]["items"], made:
        facts["required"] = [*facts["properties"]]
    return made


@cache
def _claims_schema() -> dict[str, Any]:
    found = {
        name: claim
        for paper in papers().values()
        for name, claim in tomllib.loads((paper.folder / "claims.toml").read_text("utf-8")).items()
    }
    texts = ("where", "quote", "statement", "rule", "uncertainty", "printed")
    names = {"type": "array", "items": {"type": "string"}}
    properties = {}
    for name, claim in found.items():
        limits = {limit: {"type": "number"} for limit in claim.get("limits", {})}
        own: dict[str, Any] = {text: {"const": "x"} for text in texts}
        own |= {"fixed": {"const": "2026-11-23"}, "after_records": {"type": "boolean"}}
        for key in ("metrics", "configs"):
            kept = {"const": claim.get(key, [])}
            own[key] = {"anyOf": [kept, kept, kept, names]}
        own["limits"] = {
            "type": "object", "properties": limits, "required": [*limits],
            "additionalProperties": False,
        }  # fmt: skip
        properties[name] = {
            "type": "object", "properties": own, "required": [*own], "additionalProperties": False
        }  # fmt: skip
    return {"anyOf": [{"type": "object", "properties": {k: v}, "required": [k],
                       "additionalProperties": False} for k, v in properties.items()]}  # fmt: skip


def _as_claims(value: Any) -> str:
    tables = value if isinstance(value, dict) else {"smo-1": value}
    return "".join(f"{growing.as_toml(k)} = {growing.as_toml(v)}\n" for k, v in tables.items())


@cache
def _kept_runs() -> Any:
    return claims.gather_evidence([ROOT / "results"])


def read_grown_claims(content: bytes, folder: Path, reached: Reached) -> None:
    """Read claims, and judge them from the kept results."""
    path = folder / "x.toml"
    path.write_bytes(content)
    found = claims.read_all_claims(path)
    reached()
    export.summary(claims.judge(found, _kept_runs()))


def _grown(name: str, grow: Mutator, read: Callable[[bytes, Path, Reached], None]) -> Kind:
    grow.__name__ = "grow"
    return Kind(name, lambda: [b""], (grow,), read, cpu_seconds=20.0, megabytes=1000.0)


def _lines(value: Any) -> str:
    return "".join(
        json.dumps(one) + "\n" for one in (value if isinstance(value, list) else [value])
    )


def grown_data(_content: bytes, chooser: random.Random) -> bytes:
    """Return a table or LIBSVM rows."""
    return growing.table_text(chooser)


GROWN = {
    kind.name: kind
    for kind in (
        _grown(
            "grown-config",
            growing.from_schema(_config_schema, _as_config, growing.MOST_BYTES_YAML),
            read_grown_config,
        ),
        _grown(
            "grown-registry",
            growing.from_schema(_registry_schema, _as_registry),
            read_grown_registry,
        ),
        _grown("grown-claims", growing.from_schema(_claims_schema, _as_claims), read_grown_claims),
        _grown("grown-data", grown_data, read_grown_data),
        _grown(
            "grown-records", growing.from_schema(_records_schema, _lines), _in_a_run("runs.jsonl")
        ),
        _grown(
            "grown-environment",
            growing.from_schema(lambda: growing.of_shape(shapes.ENVIRONMENT_SHAPE), json.dumps),
            _in_a_run(_ENVIRONMENT),
        ),
        _grown("grown-baseline", growing.from_schema(_baseline_schema, json.dumps), read_baseline),
        _grown("grown-plan", growing.from_schema(_plan_schema, json.dumps), _in_a_run("plan.json")),
    )
}

# ---------------------------------------------------------------- cases


class OutOfTimeError(BaseException):
    """A case took more CPU time than it may; no handler of errors catches it."""


@dataclass
class FuzzResult:
    """What became of the cases of one kind."""

    outcomes: Counter[str] = field(default_factory=Counter)
    cases: Counter[str] = field(default_factory=Counter)
    past: Counter[str] = field(default_factory=Counter)
    slowest: float = 0.0
    largest: float = 0.0
    findings: list[str] = field(default_factory=list)

    @property
    def shares(self) -> dict[str, float]:
        """Return for each mutator the share of its cases that went past the first check."""
        return {name: self.past[name] / number for name, number in self.cases.items()}


def damaged(kind: Kind, seed: int, number: int) -> tuple[bytes, Mutator]:
    """Return the content of a case, the same each time, and the mutator that made it."""
    chooser = random.Random(f"{kind.name} {seed} {number}")
    seeds = kind.seeds()
    content = seeds[number % len(seeds)]
    mutate = kind.mutators[(number // len(seeds)) % len(kind.mutators)]
    content = mutate(content, chooser)
    for _ in range(chooser.choice([0, 0, 1])):
        if content and mutate is not change_value:
            content = mutate(content, chooser)
    return content, mutate


def fuzz(
    kind: Kind,
    number: int,
    seed: int,
    folder: Path,
    told: Callable[[int, FuzzResult], None] = lambda *_: None,
) -> FuzzResult:
    """Read so many damaged files of a kind; after each, `told` gets their number and the result."""
    result = FuzzResult()
    held = kind.seeds()
    kind = replace(kind, seeds=lambda: held)
    for i in range(number):
        content, mutate = damaged(kind, seed, i)
        result.cases[mutate.__name__] += 1
        _one(kind, content, mutate.__name__, folder, result, f"{kind.name} {seed} {i}")
        told(i + 1, result)
    return result


def _one(
    kind: Kind, content: bytes, mutator: str, folder: Path, result: FuzzResult, case: str
) -> None:
    clear(folder)
    is_past = []
    before = _forget_peak()
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with _limited_cpu(kind.cpu_seconds or CPU_SECONDS):
                kind.read(content, folder, lambda: is_past.append(True))
            outcome, said = "read", ""
        except SvmbenchError as error:
            outcome, said = _judged(error)
        except OutOfTimeError:
            outcome, said = "slow", "out of time"
        except Exception as error:  # this is what is looked for
            outcome, said = "internal", f"{type(error).__name__}: {error}"
    seconds = time.process_time() - began
    result.slowest = max(result.slowest, seconds)
    if seconds > (kind.cpu_seconds or CPU_SECONDS):
        outcome = "slow"
    held = _peak() - before
    result.largest = max(result.largest, held)
    if held > (kind.megabytes or MEGABYTES):
        outcome = "large"
    result.outcomes[outcome] += 1
    result.past[mutator] += bool(is_past)
    if outcome not in ("read", "refused"):
        result.findings.append(f"{case} ({mutator}): {outcome}: {said[:300]}")


def clear(folder: Path) -> None:
    """Remove what a case left."""
    for old in folder.iterdir():
        shutil.rmtree(old) if old.is_dir() else old.unlink()


def _peak() -> float:
    """Return the most memory (MB) that this process has held since its peak was forgotten."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _forget_peak() -> float:
    """Let the peak start from what the process holds now, lest an earlier case hide a later one."""
    with contextlib.suppress(OSError):  # not every system lets a process do so
        Path("/proc/self/clear_refs").write_text("5")
    return _peak()


def _judged(error: SvmbenchError) -> tuple[str, str]:
    lines = str(error).split("\n")
    if error.exit_code != EXIT_USAGE:
        return "internal", f"exit code {error.exit_code}: {error}"
    if not all(line and line.isprintable() and len(line) < 2000 for line in lines):
        return "garbled", repr(str(error)[:300])
    return "refused", ""


@contextmanager
def _limited_cpu(seconds: float) -> Any:
    def stop(*_: object) -> None:
        raise OutOfTimeError

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, 2 * seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def scratch() -> Path:
    """Return a folder for the files of cases, in memory where there is one there."""
    shared = Path("/dev/shm")
    base = shared if os.access(shared, os.W_OK) else None
    return Path(tempfile.mkdtemp(prefix="svmbench-fuzz-", dir=base))
