"""The picture of a claim's parts: where intervals, claimed bands and printed values stand."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from runs import svmbench

from svmbench.papers.judging.measures import Answer, Criterion, SideTest
from svmbench.papers.judging.picture import MAX_SHOWN_PARTS, alternative_text, draw_parts
from svmbench.papers.judging.verdict import Part
from svmbench.report.numbers.statistics import Interval

ROOT = Path(__file__).resolve().parents[2]
SVG = "{http://www.w3.org/2000/svg}"


def part(what, value, low, high, *, least=-math.inf, most=math.inf, printed=""):
    answer = Answer((Criterion(Interval(value, low, high), least, most),))
    return Part(what, answer, f"{value:g}", printed)


def drawn(parts, **settings):
    return ET.fromstring(draw_parts(parts, **settings))


def bands(root):
    """Return the two ends of each row's band; the last band is the legend's."""
    found = [one for one in root.iter(f"{SVG}rect") if one.get("class") == "band"][:-1]
    return [(x := float(one.get("x")), x + float(one.get("width"))) for one in found]


def lines(root, kind):
    found = [one for one in root.iter(f"{SVG}line") if one.get("class") == kind]
    return [(float(one.get("x1")), float(one.get("x2"))) for one in found]


def texts(root):
    return ["".join(one.itertext()) for one in root.iter(f"{SVG}text")]


def test_intervals_bands_and_printed_values_share_an_axis():
    root = drawn([
        part("inside", 1.0, 0.9, 1.1, least=0.8, most=1.2, printed="1"),
        part("outside", 2.0, 1.8, 2.2, least=0.8, most=1.2, printed="1.1"),
        part("across", 1.2, 0.9, 1.5, least=0.8, most=1.2),
    ])  # fmt: skip
    (low, high), *others = bands(root)
    assert others == [(low, high)] * 2
    ((start, end),) = lines(root, "holds")
    assert low < start < end < high
    ((start, end),) = lines(root, "fails")
    assert high < start < end
    ((start, end),) = lines(root, "undecided")
    assert low < start < high < end
    # Pixels are proportional to numbers: 0.4 is the width of the band, and of the failed interval.
    ((start, end),) = lines(root, "fails")
    assert end - start == pytest.approx(high - low, abs=0.2)
    crosses = [(a + b) / 2 for a, b in lines(root, "cross")]  # two strokes each, then the legend's
    assert crosses[0] == pytest.approx((low + high) / 2, abs=0.2)
    assert crosses[2] == pytest.approx(low + 0.75 * (high - low), abs=0.2)
    assert len(crosses) == 6
    said = texts(root)
    assert "claimed: 0.8 to 1.2" in said
    assert {"✓ inside", "✗ outside", "○ across"} <= set(said)


def test_an_open_band_reaches_the_end_of_the_axis():
    root = drawn([part("a", 12.0, 11.0, 13.0, least=10.0), part("b", 2.0, 1.0, 3.0, least=10.0)])
    assert "claimed: at least 10" in texts(root)
    assert {end for _, end in bands(root)} == {440.0 - 14.0}


def test_ratios_far_apart_are_on_a_logarithmic_axis():
    root = drawn([part(str(x), x, x / 2, 2 * x, least=10.0) for x in (1.0, 100.0)])
    assert "claimed: at least 10; logarithmic" in texts(root)
    (first,), (second,) = lines(root, "fails"), lines(root, "holds")
    assert first[1] - first[0] == pytest.approx(second[1] - second[0], abs=0.2)


def test_differences_of_other_magnitudes_share_a_scale_on_both_sides_of_zero():
    parts = [part("held", -1e-5, -1.5e-5, -0.5e-5, most=-5e-324)]
    parts.append(part("larger", -1e-2, -2e-2, -0.5e-2, most=-5e-324))
    parts.append(replace(part("failed", 10.0, 5.0, 15.0, most=-5e-324), printed="a 5 s, b 9 s"))
    root = drawn(parts)
    said = texts(root)
    assert "claimed: below 0; logarithmic on both sides" in said
    assert "printed: a 5 s, b 9 s" in said
    assert {"−0.001", "0", "0.001", "10"} <= {*said}
    (held, larger), (failed,) = lines(root, "holds"), lines(root, "fails")
    ((_, zero), *others) = bands(root)
    assert all(other[1] == zero for other in others)
    assert larger[0] < larger[1] < held[0] < held[1] < zero < failed[0] < failed[1]


def test_parts_without_an_interval_have_a_sentence():
    tested = Part("p", Answer((SideTest(0.12, 1.0, 0.05),)), "p 0.12")
    lost = Part("q", None, "unavailable (q: get it with …)", unavailable=True)
    root = drawn([tested, lost])
    assert texts(root) == ["○ p", "p 0.12", "○ q: data not available"]
    assert lines(root, "undecided") == []


def test_parts_without_an_interval_share_a_row_where_they_say_the_same():
    lost = [Part(f"set-{i}", None, "not run (no record of it yet)") for i in range(30)]
    other = Part("another", None, "the model has no margin")
    root = drawn([*lost[:15], part("first", 1.0, 0.5, 1.5, least=1.0), other, *lost[15:]])
    said = texts(root)
    assert said.index("○ first") < said.index(
        "○ set-0, set-1, set-2, set-3, set-4, set-5 and 24 more"
    )
    assert said.count("not run (no record of it yet)") == 1
    assert said.index("○ another") + 1 == said.index("the model has no margin")
    assert not any("more part" in text for text in said)
    # Rows that a page leaves out count with all of their parts.
    several = [part(f"p{i}", 1.0, 0.5, 1.5, least=1.0) for i in range(MAX_SHOWN_PARTS)]
    assert "and 31 more parts" in texts(drawn([other, *lost, *several]))


def test_an_interval_without_ends_is_a_point():
    root = drawn([part("a", 1.0, None, None, least=0.5)])
    assert lines(root, "undecided") == []
    # One of them is in the legend.
    assert sum(one.get("class") == "undecided" for one in root.iter(f"{SVG}circle")) == 2


def test_beyond_twenty_parts_failures_come_first_and_the_rest_is_counted():
    parts = [part(f"part {i}", 1.0, 0.9, 1.1, most=2.0) for i in range(MAX_SHOWN_PARTS + 4)]
    parts.append(part("failed", 3.0, 2.9, 3.1, most=2.0))
    said = texts(drawn(parts))
    assert said.index("✗ failed") < said.index("✓ part 0")
    assert "and 5 more parts" in said
    whole = texts(drawn(parts, most=None))
    assert f"✓ part {MAX_SHOWN_PARTS + 3}" in whole
    assert not [one for one in whole if "more" in one]


def test_names_are_escaped_and_the_sentence_counts():
    one = part("<b>&", 1.0, 0.9, 1.1, most=2.0)
    assert "✓ <b>&" in texts(drawn([one]))
    failed = part("f", 3.0, 2.9, 3.1, most=2.0)
    said = alternative_text([one, failed, failed])
    assert said == "Intervals of 3 parts of the claim: 1 holding, 2 failing"


def test_every_kept_claim_is_drawn_within_its_width(tmp_path):
    file = tmp_path / "one.svg"
    done = svmbench("claims", "--claim", "smo-1", "--plot", file, "--no-ages", ROOT / "results")
    assert (done.code, done.out.strip()) == (0, str(file))
    root = ET.fromstring(file.read_text("utf-8"))
    places = [float(one.get(end)) for one in root.iter(f"{SVG}line") for end in ("x1", "x2")]
    assert places
    assert 0.0 <= min(places) <= max(places) <= 440.0
    assert re.search(r"SMO's exponent", " ".join(texts(root)))


@pytest.mark.parametrize(
    "asked", [("--plot", "a.svg"), ("--claim", "smo-1", "--claim", "smo-2", "--plot", "a.svg"),
              ("--claim", "smo-1", "--plot", "a.png")]
)  # fmt: skip
def test_a_plot_is_of_one_claim_and_an_svg(asked, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = svmbench("claims", *asked)
    assert done.code != 0
    assert "--claim ID --plot FILE.svg" in done.err
    assert list(tmp_path.iterdir()) == []
