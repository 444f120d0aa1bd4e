"""Plots of kinds convergence and decision, and what makes a kind a kind."""

from __future__ import annotations

import base64
import io
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import synthetic_runs as runs
import yaml
from PIL import Image

from svmbench.base.errors import DamagedResultsError, ResultsError
from svmbench.report.output.builder import build
from svmbench.report.plots import kinds
from svmbench.report.plots.kinds import Kind, kind_of
from svmbench.report.plots.kinds.curve import grows_by_factors
from svmbench.report.plots.plot_data import PlotData, read_plot, read_plot_data
from svmbench.report.reading import artifacts
from svmbench.report.reading.records import read_run
from svmbench.schema.specs import PLOT_KINDS, PlotSpec

ROOT = Path(__file__).resolve().parents[3]


def curves_of(folder: Path) -> PlotData:
    run = read_run(folder)
    return read_plot_data(run, read_plot(run.plots[0], "plan.json"))


def convergence(folder: Path, **more: Any) -> Path:
    """One solver with a trace, and the ladder of another; the best objective is 100."""
    cells = [runs.planned("conv", "a9a", "dcd-l1")]
    trace = [[0.1, 10, 150.0], [0.2, 20, 110.0], [0.4, 40, 101.0]]
    records = [runs.record(cells[0], {"objective": 101.0, "cpu_time_s": 0.35}, trace=trace)]
    for tol, time, objective in ((0.1, 0.2, 120.0), (0.001, 0.8, 100.0), (0.01, 0.4, 102.0)):
        cells.append(runs.planned("conv", "a9a", "liblinear", dimensions={"solver.tol": tol}))
        metrics = {"objective": objective, "cpu_time_s": time, "n_iter": round(time * 100)}
        records.append(runs.record(cells[-1], metrics))
    cells.append(runs.planned("conv", "w8a", "dcd-l1"))
    records.append(runs.record(cells[-1], {"train_time_s": 1.0}))
    plot = {"name": "conv", "kind": "convergence", "block": "conv", **more}
    return runs.write_run(folder, cells, records, plots=[plot])


def points(plot: PlotData) -> dict[str, list[tuple[float, float]]]:
    (panel,) = plot.panels
    return {
        series.name: [(point.x, pytest.approx(point.y)) for point in series.points]
        for series in panel.series
    }


def test_a_convergence_is_what_is_above_the_best(tmp_path: Path) -> None:
    folder = convergence(tmp_path)
    plot = curves_of(folder)
    # The trace's own columns; the ladder by its times, and without the best, which is 0 above.
    assert points(plot) == {
        "dcd-l1": [(0.1, 0.5), (0.2, 0.1), (0.4, 0.01)],
        "liblinear": [(0.2, 0.2), (0.4, 0.02)],
    }
    assert plot.gaps == "objective above the best (relative) of w8a (dcd-l1)"
    assert len(build(folder).plots["conv"]) == 2


def test_a_convergence_may_be_against_work(tmp_path: Path) -> None:
    assert points(curves_of(convergence(tmp_path, x="work", dataset="a9a"))) == {
        "dcd-l1": [(10.0, 0.5), (20.0, 0.1), (40.0, 0.01)],
        "liblinear": [(20.0, 0.2), (40.0, 0.02)],
    }
    with pytest.raises(ResultsError, match="x of a convergence is cpu_time_s or work"):
        curves_of(convergence(tmp_path / "rows", x="rows"))


def test_folds_of_a_convergence_are_panels(tmp_path: Path) -> None:
    """Each fold has other rows, and a best objective of its own."""
    cells = [runs.planned("conv", "a9a", "dcd-l1", fold) for fold in (0, 1)]
    records = [
        runs.record(c, {"objective": c["fold"] + 1.0}, trace=[[0.1, 1, 2.0 * (c["fold"] + 1)]])
        for c in cells
    ]
    plot = {"name": "conv", "kind": "convergence", "block": "conv"}
    plot = curves_of(runs.write_run(tmp_path, cells, records, plots=[plot]))
    assert [panel.title for panel in plot.panels] == ["fold 1", "fold 2"]
    assert [point.y for point in plot.points()] == [1.0, 1.0]


def plane(folder: Path, **arrays: Any) -> Path:
    """A cell that has left a grid, and one that has not."""
    cells = [runs.planned("plane", name, "svc") for name in ("moons", "blobs")]
    plot = {"name": "plane", "kind": "decision", "block": "plane"}
    runs.write_run(folder, cells, [runs.record(c, {"n": 1}) for c in cells], plots=[plot])
    (folder / "artifacts").mkdir()
    x, y = np.linspace(-2, 2, 30), np.linspace(-1, 1, 20)
    given = {
        "grid_x": x,
        "grid_y": y,
        "decision": x[np.newaxis, :] + y[:, np.newaxis],
        "X": np.array([[-1.0, 0.5], [1.0, 0.0], [0.2, -0.3]]),
        "y": np.array([-1, 1, 1]),
        "marked": np.array([False, False, True]),
        **arrays,
    }
    wanted = {name: array for name, array in given.items() if array is not None}
    np.savez(folder / "artifacts" / f"{cells[0]['key']}.npz", **wanted)
    return folder


@pytest.mark.slow
def test_a_plane_shows_classes_and_what_is_marked(tmp_path: Path) -> None:
    folder = plane(tmp_path)
    plot = curves_of(folder)
    (panel,) = plot.panels
    assert panel.title == "moons"
    assert {s.name: [(p.x, p.y) for p in s.points] for s in panel.series} == {
        "class -1": [(-1.0, 0.5)],
        "class 1": [(1.0, 0.0), (0.2, -0.3)],
        "marked": [(0.2, -0.3)],
    }
    assert panel.grid is not None
    assert panel.grid.levels == (-1.0, 0.0, 1.0)
    assert plot.gaps == "grid of decision values of blobs (svc)"
    before = build(folder).plots["plane"][0].read_bytes()
    assert build(folder).plots["plane"][0].read_bytes() == before
    moved = plane(tmp_path / "moved", decision=np.full((20, 30), -3.0))
    assert build(moved).plots["plane"][0].read_bytes() != before


@pytest.mark.slow
def test_a_crowded_plane_is_one_small_picture_in_its_svg(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    crowd = {"X": rng.uniform(-1, 1, (2000, 2)), "y": np.repeat([-1, 1], 1000), "marked": None}
    svg = build(plane(tmp_path, **crowd)).plots["plane"][0].read_text()
    (picture,) = re.findall(r'data:image/png;base64,([^"]+)"', svg)
    with Image.open(io.BytesIO(base64.b64decode(picture))) as image:
        assert (image.mode, image.width > 300) == ("P", True)
        assert 4 < len(image.getcolors()) <= 64
    assert len(svg) < 120_000
    few = plane(tmp_path / "few")
    assert "data:image" not in build(few).plots["plane"][0].read_text()


def test_a_path_that_has_left_one_plane_is_one_panel(tmp_path: Path) -> None:
    folder = plane(tmp_path)
    lines = (folder / "runs.jsonl").read_text().splitlines()
    key = json.loads(lines[0])["key"]
    for number, nu in enumerate((0.3, 0.4, 0.5)):
        point = {"schema": 1, "kind": "point", "key": key, "point": str(number)}
        lines.append(json.dumps({**point, "dimensions": {"solver.nu": nu}, "metrics": {"n": nu}}))
    (folder / "runs.jsonl").write_text("\n".join(lines) + "\n")
    plot = curves_of(folder)
    assert len(plot.cells) == 4
    assert [panel.title for panel in plot.panels] == ["moons"]


@pytest.mark.slow
def test_a_plane_names_what_its_points_are_marked_as(tmp_path: Path) -> None:
    marks = {"marked": None, "marks": np.array([0, 2, 1]), "mark_names": np.array(["low", "high"])}
    folder = plane(tmp_path, **marks)
    (panel,) = curves_of(folder).panels
    assert {s.name: [(p.x, p.y) for p in s.points] for s in panel.series[2:]} == {
        "marked: low": [(0.2, -0.3)],
        "marked: high": [(1.0, 0.0)],
    }
    before = build(folder).plots["plane"][0].read_bytes()
    other = {**marks, "marks": np.array([0, 1, 2])}
    assert build(plane(tmp_path / "other", **other)).plots["plane"][0].read_bytes() != before


def test_a_plane_of_several_classes_has_regions(tmp_path: Path) -> None:
    regions = np.arange(600).reshape(20, 30) // 200
    folder = plane(tmp_path, regions=regions, decision=None, marked=None, y=np.array([0, 1, 2]))
    (panel,) = curves_of(folder).panels
    assert panel.grid is not None
    assert panel.grid.levels == ()
    assert [series.name for series in panel.series] == ["class 0", "class 1", "class 2"]
    assert len(build(folder).plots["plane"]) == 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"decision": None},
        {"decision": np.zeros((30, 20))},
        {"X": np.zeros((3, 3))},
        {"marked": np.zeros(2, dtype=bool)},
        {"marks": np.zeros(2), "mark_names": np.array(["low"])},
        {"mark_names": np.array(["low"])},
        {"y": np.array([None, 1, 2])},
        {"grid_x": np.linspace(2, -2, 30)},
        {"decision": np.full((20, 30), np.nan)},
        {"X": np.array([["a", "b"]] * 3)},
        {"levels": np.zeros((2, 2))},
        {"grid_x": np.zeros(0), "decision": np.zeros((20, 0))},
    ],
)
def test_a_grid_that_cannot_be_drawn_is_one_sentence(tmp_path: Path, wrong: Any) -> None:
    with pytest.raises(ResultsError, match=r"can't draw .*\.npz: "):
        build(plane(tmp_path, **wrong))


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"no archive", b"PK\x05\x06" + bytes(18)])
def test_a_damaged_grid_is_one_sentence(tmp_path: Path, content: bytes) -> None:
    folder = plane(tmp_path)
    (file,) = (folder / "artifacts").iterdir()
    file.write_bytes(content)
    with pytest.raises(DamagedResultsError, match=r"can't draw .*\.npz: ") as caught:
        build(folder)
    assert "\n" not in str(caught.value)


def test_a_grid_that_would_fill_the_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(artifacts, "MAX_ARTIFACT_BYTES", 1 << 20)
    folder = plane(tmp_path)
    (file,) = (folder / "artifacts").iterdir()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("grid_x.npy", bytes(artifacts.MAX_ARTIFACT_BYTES + 1))
    with pytest.raises(DamagedResultsError, match="has more than"):
        build(folder)


def test_words_along_an_axis_of_numbers_are_refused(tmp_path: Path) -> None:
    """A plan may have been merged or edited by hand."""
    cells = [runs.planned("b", "a9a", "alsvm", dimensions={"rows": rows}) for rows in ("many", 3)]
    records = [runs.record(cell, {"train_time_s": 1.0, "cpu_time_s": 1.0}) for cell in cells]
    plot = {"name": "p", "block": "b", "kind": "scaling"}
    folder = runs.write_run(tmp_path, cells, records, plots=[plot])
    with pytest.raises(
        DamagedResultsError, match="plot 'p': rows is 'many', which is not a number"
    ):
        curves_of(folder)
    plan = json.loads((folder / "plan.json").read_text())
    plan["plots"][0]["kind"] = "curve"
    (folder / "plan.json").write_text(json.dumps(plan))
    (panel,) = curves_of(folder).panels
    assert [point.x for point in panel.series[0].points] == [3, "many"]


@pytest.mark.parametrize("name", PLOT_KINDS.names())
def test_every_kind_says_what_is_usual(name: str) -> None:
    kind = kind_of(PlotSpec(name="p", block="b", kind=name))
    assert isinstance(kind, Kind)
    assert kind.x
    assert kind.y
    spec = read_plot({"name": "p", "block": "b", "kind": name}, "here")
    assert (spec.x, spec.y, spec.series) == (kind.x, kind.y, "solver")
    # What isn't drawn leaves nothing behind, whatever the kind.
    assert json.loads(json.dumps(spec.model_dump(mode="json")))["kind"] == name


def test_the_page_on_adding_a_kind_does_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (ROOT / "docs" / "adding-a-plot-kind.md").read_text(encoding="utf-8")
    ((name, code),) = re.findall(r"```python file=(\w+)\.py\n(.*?)```", page, re.DOTALL)
    (tmp_path / f"{name}.py").write_text(code, encoding="utf-8")
    # As if the file stood beside the others.
    monkeypatch.setattr(kinds, "__path__", [*kinds.__path__, str(tmp_path)])
    monkeypatch.setattr(PLOT_KINDS, "paths", [*PLOT_KINDS.paths, str(tmp_path)])
    (plot,) = yaml.safe_load(re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)[0])["plots"]
    cells = [
        runs.planned(plot["block"], "a9a", "svc", dimensions={"rows": rows})
        for rows in (100, 1000, 10000)
    ]
    records = [runs.record(cell, {"accuracy_pct": 80.0 + i}) for i, cell in enumerate(cells)]
    report = build(runs.write_run(tmp_path / "run", cells, records, plots=[plot]))
    assert list(report.plots) == [plot["name"]]
    (panel,) = curves_of(tmp_path / "run").panels
    assert [(p.x, p.y) for p in panel.series[0].points] == [(100, 80), (1000, 81), (10000, 82)]


@pytest.mark.parametrize("name", PLOT_KINDS.names())
def test_no_kind_draws_empty_axes(tmp_path: Path, name: str) -> None:
    cell = runs.planned("b", "a9a", "svc")
    plot = {"name": "p", "block": "b", "kind": name}
    report = build(runs.write_run(tmp_path, [cell], [], plots=[plot]))
    assert report.plots == {}
    assert "Not drawn, there is no point: not run: a9a." in report.all_tables.read_text()


@pytest.mark.parametrize(
    ("values", "by_factors"),
    [
        ([0.1, 0.01, 0.001], True),
        ([1, 2, 4, 8, 16, 32, 64], True),
        ([10, 20, 50, 90, 1000], True),
        ([100, 200, 300, 400], False),
        ([1, 500, 1000], False),
        ([0.0, 0.01, 1.0], False),
        ([1, 100], False),
        (["a", "b", "c"], False),
    ],
)
def test_an_axis_is_logarithmic_where_values_grow_by_factors(values, by_factors):
    assert grows_by_factors(values) is by_factors
