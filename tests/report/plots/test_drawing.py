"""Plots: the data they draw, and files that decode, have the right size and never change."""

import csv
import dataclasses
import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import synthetic_runs as runs
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

from svmbench.base.errors import ResultsError
from svmbench.report.output.builder import build, read_content
from svmbench.report.plots import axes
from svmbench.report.plots import drawing as plots
from svmbench.report.plots.kinds import bars, curve
from svmbench.report.plots.plot_data import read_plot, read_plot_data
from svmbench.report.reading.folders import run_folders
from svmbench.report.reading.records import read_run
from svmbench.report.reading.wording import label_of


def curves_of(folder, name):
    run = read_run(folder)
    raw = next(plot for plot in run.plots if plot["name"] == name)
    return read_plot_data(run, read_plot(raw, "plan.json"))


def watched(monkeypatch, kind, look):
    """Return a list that gets what `look` finds on each pair of axes that a kind has drawn."""
    seen = []
    drawn = kind.KIND.draw

    def draw(axes, *rest):
        drawn(axes, *rest)
        seen.append(look(axes))

    monkeypatch.setattr(kind, "KIND", dataclasses.replace(kind.KIND, draw=draw))
    return seen


def bars_run(folder, metric, values):
    """One data set, a solver for each value, and bars of them."""
    cells = [runs.planned("fit", "a9a", solver) for solver in values]
    records = [runs.record(c, {metric: v}) for c, v in zip(cells, values.values(), strict=True)]
    plot = {"name": "bars", "kind": "bars", "title": "Bars", "block": "fit", "x": "dataset",
            "y": metric, "series": "solver"}  # fmt: skip
    return runs.write_run(folder, cells, records, plots=[plot])


def test_a_second_block_stands_beside_the_first(tmp_path):
    cells = [runs.planned(block, "a9a", "alsvm") for block in ("chosen", "own")]
    records = [runs.record(c, {"train_time_s": s}) for c, s in zip(cells, (3.0, 5.0), strict=True)]
    plot = {"name": "bars", "kind": "bars", "block": "chosen", "beside": "own"}
    (panel,) = curves_of(runs.write_run(tmp_path, cells, records, plots=[plot]), "bars").panels
    drawn = [(series.name, [point.y for point in series.points]) for series in panel.series]
    assert drawn == [("alsvm", [3.0]), ("alsvm (own)", [5.0])]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "widths"),
    [
        (runs.alsvm_run, {"times": 960, "accuracies": 960}),
        (runs.sweep_run, {"fig1": 1440, "fig2": 1440}),
        (runs.race_run, {"race": 960}),
        (runs.smo_run, {"adult": 960}),
    ],
)
def test_files_decode_and_have_the_expected_size(tmp_path, make, widths):
    report = build(make(tmp_path))
    assert set(report.plots) == set(widths)
    for name, (svg, png) in report.plots.items():
        with Image.open(png) as image:
            image.load()
            assert image.width == widths[name]
            assert 300 < image.height < 1200
            # Something is drawn: neither blank nor one colour.
            assert len(image.convert("L").getcolors()) > 20
        root = ET.fromstring(svg.read_text())
        assert root.tag.endswith("svg")
        assert "<dc:date>" not in svg.read_text()


@pytest.mark.slow
def test_a_crossing_is_found_and_said(tmp_path):
    report = build(runs.sweep_run(tmp_path, crossing_at=640.0))
    expected = "falsvm rises above liblinear-l1 at 640 (features kept 100 to 2000)"
    assert curves_of(tmp_path, "fig2").crossings == [
        f"real-sim: {expected}",
        f"news20: {expected}",
    ]
    assert f"- Crossing: real-sim: {expected}." in report.all_tables.read_text()


def test_a_crossing_is_marked_where_both_curves_are(tmp_path, monkeypatch):
    folder = runs.sweep_run(tmp_path, crossing_at=640.0)
    crossed = [panel.crossed for panel in curves_of(folder, "fig2").panels]
    assert crossed == [((pytest.approx(640.0), pytest.approx(1.0, rel=0.02)),)] * 2
    seen = watched(
        monkeypatch,
        curve,
        lambda axes: (
            [text.get_text() for text in axes.texts],
            [tuple(line.get_xydata()[0]) for line in axes.lines if line.get_markersize() == 11],
        ),
    )
    assert plots.draw_plot(read_run(folder), curves_of(folder, "fig2"), endings=("svg",))
    assert seen == [(["crossing at 640"], list(crossed[0]))] * 2


@pytest.mark.slow
def test_a_crossing_without_points_says_so(tmp_path):
    folder = runs.sweep_run(tmp_path)
    lines = (folder / "runs.jsonl").read_text().splitlines(keepends=True)
    (folder / "runs.jsonl").write_text("".join(line for line in lines if "falsvm" not in line))
    for sentence in curves_of(folder, "fig2").crossings:
        assert "unknown, falsvm has no points" in sentence
    build(folder)


def test_scaling_fits_each_panel(tmp_path):
    panels = curves_of(runs.sweep_run(tmp_path), "fig1").panels
    assert [panel.title for panel in panels] == ["covtype", "cod-rna-train"]
    fits = {series.name: series.fit for series in panels[0].series}
    assert fits["liblinear-l1"].exponent == pytest.approx(1.7, abs=0.1)
    assert fits["alsvm"].n_points == 6
    assert all(point.contended for series in panels[1].series for point in series.points)


def test_printed_exponents_are_found(tmp_path):
    (panel,) = curves_of(runs.smo_run(tmp_path), "adult").panels
    assert {s.name: s.printed_exponent for s in panel.series} == {"smo": 2.1, "chunking": 2.9}


def test_exponents_are_a_table_of_their_own(tmp_path):
    folder = runs.smo_run(tmp_path)
    (panel,) = curves_of(folder, "adult").panels
    assert [x for x, _ in panel.series[0].printed] == [p.x for p in panel.series[0].points]
    report = build(folder)
    assert report.exponents["adult"] in report.files
    lines = list(csv.DictReader(report.exponents["adult"].open()))
    assert [line["series"] for line in lines] == ["smo", "chunking"]
    assert lines[1]["printed"] == "2.9"
    for line in lines:
        # The synthetic run measured what the paper prints.
        assert line["exponent"] == line["printed_fit_exponent"]
        assert float(line["low"]) < float(line["exponent"]) < float(line["high"])


def test_a_curve_may_run_across_data_sets(tmp_path):
    sizes = {"w1a": 2477, "w2a": 3470, "w3a": 4912}
    cells = [
        runs.planned("web", name, "smo", paper="smo", kernel="linear", protocol="fit")
        for name in sizes
    ]
    records = [
        runs.record(cell, {"train_time_s": (size / 1000) ** 2, "n_train": size})
        for cell, size in zip(cells, sizes.values(), strict=True)
    ]
    plot = {"name": "web", "kind": "scaling", "block": "web", "x": "n_train",
            "y": "train_time_s", "series": "solver", "across": "dataset",
            "published": "web_linear"}  # fmt: skip
    folder = runs.write_run(tmp_path, cells, records, [], [plot], paper="smo")
    (panel,) = curves_of(folder, "web").panels
    (series,) = panel.series
    assert series.fit.exponent == pytest.approx(2.0)
    assert series.printed == ((2477.0, 2.2), (3470.0, 4.9), (4912.0, 8.1))
    assert series.printed_exponent == 1.6
    del plot["across"]
    apart = runs.write_run(tmp_path, cells, records, [], [plot], paper="smo")
    assert [panel.title for panel in curves_of(apart, "web").panels] == list(sizes)


@pytest.mark.slow
def test_contention_shows_in_the_picture(tmp_path):
    folder = runs.sweep_run(tmp_path)
    hollow = build(folder).plots["fig1"][1].read_bytes()
    filled = build(folder, allow_contended=True).plots["fig1"][1].read_bytes()
    assert hollow != filled


@pytest.mark.slow
def test_a_plot_without_a_point_is_not_drawn_and_a_stale_one_goes(tmp_path):
    folder = runs.sweep_run(tmp_path)
    before = build(folder)
    files = [*before.plots["fig1"], *before.plots["fig2"], before.exponents["fig1"]]
    assert all(path.exists() for path in files)
    (folder / "runs.jsonl").unlink()
    report = build(folder)
    assert report.plots == {}
    assert report.exponents == {}
    assert not any(path.exists() for path in files)
    text = report.all_tables.read_text()
    assert (
        "## Training time against features kept\n\n"
        "Not drawn, there is no point: not run: real-sim, news20.\n"
    ) in text
    assert ".svg" not in text


def test_a_plot_of_a_block_that_the_profile_leaves_out_is_not_drawn(tmp_path):
    folder = runs.sweep_run(tmp_path)
    plan = json.loads((folder / "plan.json").read_text())
    plan["plots"][0]["block"] = "medium"
    (folder / "plan.json").write_text(json.dumps(plan))
    report = build(folder)
    assert list(report.plots) == ["fig1"]
    why = "Not drawn, there is no point: this profile's plan has no cells for it."
    assert why in report.all_tables.read_text()


def test_what_a_plot_lacks_is_never_nothing(tmp_path):
    """Finished cells without the metric are a gap, and their data set has no panel."""
    cells = [runs.planned("fit", name, "alsvm") for name in ("a9a", "w8a", "ijcnn1")]
    records = [
        runs.record(cells[0], {"train_time_s": 1.0, "auc_pct": 90.0}),
        runs.record(cells[1], {"train_time_s": 1.0}, undefined={"auc_pct": "one class"}),
    ]
    spec = {"name": "p", "kind": "bars", "block": "fit", "y": "auc_pct", "series": "solver"}
    folder = runs.write_run(tmp_path, cells, records, plots=[spec])
    plot = curves_of(folder, "p")
    assert plot.gaps == "not run: ijcnn1; AUC (%) of w8a (alsvm)"
    assert "missing: not run: ijcnn1; AUC (%) of w8a (alsvm)" in plots.footer(
        read_run(folder), plot, hollow=True
    )
    whole = runs.write_run(tmp_path / "whole", cells[:1], records[:1], plots=[spec])
    assert curves_of(whole, "p").gaps == ""
    assert plots.footer(read_run(whole), curves_of(whole, "p"), hollow=True).endswith(
        "missing: nothing"
    )
    both = [runs.planned("fit", name, "falsvm") for name in ("a9a", "w8a")]
    records += [
        runs.record(cells[1], {"auc_pct": 91.0}),
        *(runs.record(c, {"train_time_s": 1.0}) for c in both),
    ]
    every = runs.write_run(tmp_path / "every", [*cells[:2], *both], records, plots=[spec])
    assert curves_of(every, "p").gaps == "AUC (%) of falsvm on every data set"
    panels = {**spec, "kind": "curve", "x": "params.C"}
    apart = runs.write_run(tmp_path / "apart", cells, records[:2], plots=[panels])
    assert [panel.title for panel in curves_of(apart, "p").panels] == ["a9a"]


def test_a_race_lacks_the_ratios_of_pairs_alone(tmp_path):
    folder = runs.race_run(tmp_path)
    assert curves_of(folder, "race").gaps == ("crashed: cod-rna-train")
    lines = (
        (folder / "runs.jsonl").read_text().replace('"ratio:alsvm-batch:liblinear-l2": 9.7, ', "")
    )
    (folder / "runs.jsonl").write_text(lines)
    assert curves_of(folder, "race").gaps == (
        "crashed: cod-rna-train; times faster of a9a (alsvm-batch vs liblinear-l2)"
    )


def timed(tmp_path, cpu_of):
    cells = [runs.planned("sizes", "a9a", "alsvm", size=size) for size in (100, 200, 400)]
    records = [
        # Wall times of a busy machine; the CPU's grow in proportion.
        runs.record(c, {"train_time_s": 1.0 + c["size"] ** 2, **cpu_of(c["size"])})
        for c in cells
    ]
    plot = {"name": "p", "kind": "scaling", "title": "Times", "block": "sizes", "x": "size",
            "y": "train_time_s", "series": "solver"}  # fmt: skip
    return runs.write_run(tmp_path, cells, records, plots=[plot])


def test_exponents_are_fitted_to_cpu_time_where_records_have_it(tmp_path):
    folder = timed(tmp_path / "both", lambda size: {"cpu_time_s": size / 100})
    plot = curves_of(folder, "p")
    assert plot.y == "cpu_time_s"
    ((series,),) = [panel.series for panel in plot.panels]
    assert series.fit.exponent == pytest.approx(1.0)
    assert [point.y for point in series.points] == [1.0, 2.0, 4.0]
    report = build(folder)
    (line,) = csv.DictReader(report.exponents["p"].open())
    assert (line["metric"], line["exponent"]) == ("cpu_time_s", "1.0000")
    assert "from 3 points of CPU time" in report.all_tables.read_text()
    some = timed(tmp_path / "some", lambda size: {"cpu_time_s": 1.0} if size > 100 else {})
    assert curves_of(some, "p").y == "train_time_s"


def test_load_from_outside_is_hollow_and_the_footer_tells_the_reasons_apart(tmp_path):
    folder = timed(tmp_path, lambda size: {"cpu_time_s": float(size)})
    plot = curves_of(folder, "p")
    assert all(point.disturbed and point.busy for point in plot.points())
    footer = plots.footer(read_run(folder), plot, hollow=True)
    assert "hollow: measured under load from other programs, no timing to compare" in footer
    assert "other workers" not in footer
    hollow = build(folder).plots["p"][1].read_bytes()
    assert hollow != build(folder, allow_contended=True).plots["p"][1].read_bytes()


def test_folds_of_different_environments_are_series_of_their_own(tmp_path):
    cells = [runs.planned("fit", "a9a", "alsvm", fold, size=100) for fold in range(3)]
    records = [
        runs.record(c, {"train_time_s": 1.0 + c["fold"]}, environment="ab"[c["fold"] // 2])
        for c in cells
    ]
    plot = {"name": "p", "kind": "curve", "block": "fit", "x": "size", "y": "train_time_s",
            "series": "solver"}  # fmt: skip
    folder = runs.write_run(tmp_path, cells, records, plots=[plot])
    ((first, second),) = [panel.series for panel in curves_of(folder, "p").panels]
    assert [(s.name, s.points[0].y, s.points[0].partial) for s in (first, second)] == [
        ("alsvm (a)", 1.5, True),
        ("alsvm (b)", 3.0, True),
    ]
    build(folder)


def test_x_can_be_a_parameter_or_a_metric(tmp_path):
    cells = [runs.planned("fit", "a9a", "alsvm", fold) for fold in range(3)]
    records = [
        runs.record(c, {"train_time_s": 1.0 + c["fold"], "n_sv": 10 * (3 - c["fold"])},
                    params={"C": 2.0 ** c["fold"]})
        for c in cells
    ]  # fmt: skip
    plots = [
        {"name": name, "kind": "curve", "title": name, "block": "fit", "x": x,
         "y": "train_time_s", "series": "solver"}
        for name, x in (("by-c", "params.C"), ("by-sv", "n_sv"))
    ]  # fmt: skip
    runs.write_run(tmp_path, cells, records, plots=plots)
    points = {
        name: [(p.x, p.y) for p in curves_of(tmp_path, name).points()] for name in ("by-c", "by-sv")
    }
    assert points["by-c"] == [(1.0, 1.0), (2.0, 2.0), (4.0, 3.0)]
    assert points["by-sv"] == [(10.0, 3.0), (20.0, 2.0), (30.0, 1.0)]
    build(tmp_path)


def test_bars_of_different_orders_are_seen_to_their_ends(tmp_path, monkeypatch):
    times = {"alsvm": 0.2, "falsvm": 0.01, "pegasos": 40.0}
    seen = watched(monkeypatch, bars, lambda axes: axes.get_ylim())
    build(bars_run(tmp_path, "train_time_s", times))
    assert seen
    assert all(low < 0.01 and high > 40.0 for low, high in seen)


@pytest.mark.parametrize(
    ("shares", "begins", "n_bars"), [([47.0, 60.0], 40.0, 0), ([44.0, 99.0], 0.0, 2)]
)
def test_dots_stand_for_bars_that_could_not_begin_at_zero(
    tmp_path, monkeypatch, shares, begins, n_bars
):
    def look(axes):
        dots = {float(y) for line in axes.lines for y in line.get_ydata()}
        return axes.get_ylim()[0], len(axes.patches), set(shares) <= dots

    seen = watched(monkeypatch, bars, look)
    build(bars_run(tmp_path, "accuracy_pct", dict(zip(("alsvm", "falsvm"), shares, strict=True))))
    assert seen == [(begins, n_bars, n_bars == 0)]


def test_a_plot_can_show_one_data_set_alone(tmp_path):
    folder = runs.sweep_run(tmp_path)
    plan = json.loads((folder / "plan.json").read_text())
    plan["plots"][0]["dataset"] = "real-sim"
    (folder / "plan.json").write_text(json.dumps(plan))
    plot = curves_of(folder, "fig2")
    assert [sentence.split(":")[0] for sentence in plot.crossings] == [
        "falsvm rises above liblinear-l1 at 900 (features kept 100 to 2000)"
    ]
    # The cells that news20 lacks are no gap of this plot.
    assert {cell.dataset for cell in plot.cells} == {"real-sim"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kind": "pie"}, "kind: 'pie' is none of bars, "),
        ({"block": None}, "block: should be text, not nothing"),
        ({"series": "colour"}, "series: a field of a cell is .*, not 'colour'"),
        ({"crossing": ["falsvm"]}, "crossing: a crossing needs two series, not 1"),
        ({"name": "fig2"}, "is taken"),
    ],
)
def test_an_impossible_plot_is_one_sentence(tmp_path, change, said):
    folder = runs.sweep_run(tmp_path)
    plan = json.loads((folder / "plan.json").read_text())
    plan["plots"][1].update(change)
    (folder / "plan.json").write_text(json.dumps(plan))
    with pytest.raises(ResultsError, match=said):
        build(folder)


def test_a_solver_keeps_its_colour_whatever_it_is_drawn_with():
    assert axes.series_styles(["smo", "chunking", "libsvm"]) == {
        "smo": 1, "chunking": 2, "libsvm": 0,
    }  # fmt: skip
    beside = axes.series_styles(["csvc", "libsvm", "my-svm", "smo"])
    assert beside == {"csvc": 4, "libsvm": 0, "my-svm": 2, "smo": 1}
    # Two that never shared a plot until now: the second takes a free colour.
    crowded = axes.series_styles(["smo", "cvm", *"abcdefg"])
    assert crowded["smo"] == axes.SOLVER_STYLES["cvm"]
    assert sorted(crowded.values()) == list(range(9))


@pytest.mark.slow
def test_kept_plots_have_no_two_solvers_of_one_colour():
    for folder in run_folders(Path(__file__).parents[3] / "results"):
        for one in read_content(folder).plots:
            names = list(dict.fromkeys(s.name for panel in one.panels for s in panel.series))
            own = [axes.SOLVER_STYLES[name] for name in names if name in axes.SOLVER_STYLES]
            assert len(set(own)) == len(own), f"{folder.name}: {names}"


def test_linear_and_logarithmic_axes_have_ticks_of_one_style():
    figure = Figure()
    linear, log = figure.subplots(1, 2)
    linear.plot([0, 2000], [-0.3, 0.3])
    log.loglog([1, 2000], [1, 2])
    axes.plain_ticks(linear)
    axes.log_ticks(log, "x")
    figure.canvas.draw()
    assert "2,000" in [text.get_text() for text in linear.get_xticklabels()]
    assert "1,000" in [text.get_text() for text in log.get_xticklabels()]
    assert [t.get_text() for t in linear.get_yticklabels()][1:-1] == [
        "−0.3", "−0.2", "−0.1", "0", "0.1", "0.2", "0.3",
    ]  # fmt: skip


def test_a_speed_up_is_drawn_beside_a_line_at_one(tmp_path, monkeypatch):
    seen = watched(monkeypatch, curve, lambda a: [line.get_ydata() for line in a.get_lines()])
    for metric, n_lines in (("speedup", 1), ("accuracy_pct", 0)):
        folder = tmp_path / metric
        cells = [runs.planned("fit", "a9a", "smo", size=size) for size in (10, 20)]
        records = [runs.record(cell, {metric: 90.0}) for cell in cells]
        plot = {"name": "line", "kind": "curve", "title": "Line", "block": "fit", "x": "rows",
                "y": metric, "series": "solver"}  # fmt: skip
        build(runs.write_run(folder, cells, records, plots=[plot]))
        at_one = [ys for ys in seen.pop() if list(ys) == [1.0, 1.0]]
        assert len(at_one) == n_lines


def test_times_begin_at_zero_and_axes_say_what_they_show(tmp_path, monkeypatch):
    seen = watched(
        monkeypatch, curve, lambda a: (a.get_xlabel(), a.get_ylabel(), a.get_ylim()[0])
    )  # fmt: skip
    for metric in ("train_time_s", "accuracy_pct"):
        cells = [runs.planned("fit", "a9a", "smo", size=size) for size in (10, 20)]
        records = [
            runs.record(cell, {metric: value})
            for cell, value in zip(cells, (90.0, 91.0), strict=True)
        ]
        plot = {"name": "line", "kind": "curve", "title": "Line", "block": "fit", "x": "rows",
                "y": metric, "series": "solver"}  # fmt: skip
        build(runs.write_run(tmp_path / metric, cells, records, plots=[plot]))
        across, up, low = seen.pop()
        assert (across, up) == ("rows", label_of(metric))
        assert low == 0.0 if metric == "train_time_s" else low > 80.0


def test_more_series_than_colours_are_told_apart(tmp_path, monkeypatch):
    seen = watched(
        monkeypatch, bars,
        lambda drawn: {(bar.get_facecolor(), bar.get_edgecolor()) for bar in drawn.patches},
    )  # fmt: skip
    build(bars_run(tmp_path, "train_time_s", {f"solver-{n}": 1.0 + n for n in range(9)}))
    assert len(seen.pop()) == 9


@pytest.mark.slow
def test_a_plot_is_drawn_once_and_laid_out_as_if_drawn_twice(tmp_path, monkeypatch):
    content = read_content(runs.sweep_run(tmp_path / "run"))
    plot, endings = content.plots[0], ("svg", "png", "pdf")
    n_drawn = []
    draw = Axes.draw
    monkeypatch.setattr(Axes, "draw", lambda *args: n_drawn.append(1) or draw(*args))
    once = plots.draw_plot(content.run, plot, endings=endings)
    n_once = len(n_drawn)
    monkeypatch.setattr("svmbench.report.plots.drawing._figure_class", lambda: Figure)
    assert plots.draw_plot(content.run, plot, endings=endings) == once
    assert len(n_drawn) - n_once == 2 * n_once
