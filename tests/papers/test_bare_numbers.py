"""Numbers in prose have an expression, or a file that the paragraph names, or are no results."""

from pathlib import Path

import pytest
from bare_numbers import bare_numbers

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "docs/README.in", *sorted((ROOT / "results").rglob("README.md"))]

#: Numbers that say how something was measured, in words of their own; by page.
ALLOWED = {
    "alsvm": {
        "more than 1.15 times": "the limit from which tables mark a time (report.reading.records)",
        "within 1 % of": "where solvers are stopped",
        "run to within 0.1 % of": "where solvers are stopped",
    },
    "nlsgd": {
        "gradient of 1e-3": "the tolerance",
        "after 20,000 steps": "the limit of steps, in the config",
        "or 5e-3 C n": "the tolerance",
    },
    "sgdlssvm": {"at most 100,000 iterations": "the limit of iterations, in the config"},
    "smo": {"hold 95 % intervals": "the level"},
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name)
def test_numbers_in_prose_have_an_origin(page):
    allowed = ALLOWED.get(page.parent.name, {})
    found = list(bare_numbers(page))
    bare = [one for one in found if not any(phrase in one[2] for phrase in allowed)]
    assert bare == [], "put an expression before it (CONTRIBUTING.md), or leave it out"
    used = {phrase for phrase in allowed for one in found if phrase in one[2]}
    assert used == set(allowed), "the page says this no more"


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("csvc is 36 times as fast.", ["36"]),
        ("csvc is <!--= median ratio of smo/perf_kernel -->36 times as fast.", []),
        ("17 GB/s and 100,752 pair steps", ["17", "100,752"]),
        ("a hundred times at C = 10, gamma 1/64 and ν = 0.1, on 2,000 rows", []),
        ('The paper says "97" and `C=3`; see [a page](x-12.html), 2026-11-24, 0.1.0.', []),
        ("| a | b |\n|---|---|\n| 3.5 | <!--= count x of y -->4 |", ["3.5"]),
        ("| a | aim | c |\n|---|---|---|\n| a9a | 3.5 | 4.5 |\n\n7.5", ["4.5", "7.5"]),
        ("It takes 85 % of `profile.csv`.", ["85"]),
        ("It takes 41.3 % of the training (`smo/profile.csv`).", []),
        ("It has <!--= value a of b rows=6414 -->2,914 at 6,414.", []),
    ],
)
def test_a_bare_number_is_one_without_an_origin(text, bare, tmp_path):
    page = tmp_path / "README.md"
    page.write_text(text.replace("`smo/profile.csv`", "`kept.csv`"))
    (tmp_path / "kept.csv").write_text("share_pct\n41.3\n")
    assert [number for _, number, _ in bare_numbers(page)] == bare
