"""Pages of results as GitHub renders them: no figure's expression breaks a paragraph."""

from __future__ import annotations

import re
from pathlib import Path

import cmarkgfm
import pytest
from cmarkgfm.cmark import Options

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("results/**/README.md"))]


def broken(text: str) -> list[str]:
    """Return the expressions of figures that start a block of HTML.

    A comment at the start of a line ends the paragraph before it; what follows is no Markdown.
    """
    html = cmarkgfm.github_flavored_markdown_to_html(text, options=Options.CMARK_OPT_UNSAFE)
    return re.findall(r"(?m)^\s*<!--=.*", html)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name)
def test_no_figure_breaks_a_paragraph(page: Path) -> None:
    assert broken(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("text", "n_broken"),
    [
        ("csvc is <!--= value of a -->36 times as fast\nas LIBSVM.", 0),
        ("csvc is\n<!--= value of a -->36 times as fast.", 1),
        ("- csvc is\n  <!--= value of a -->36 times as fast.", 1),
        ("| a |\n| --- |\n| <!--= value of a -->36 |", 0),
    ],
)
def test_what_breaks_a_paragraph_is_found(text: str, n_broken: int) -> None:
    assert len(broken(text)) == n_broken
