"""Write what README.md, docs/measuring.md and the pages of results take from kept results.

    python scripts/write_pages.py            # write what differs
    python scripts/write_pages.py --check    # only say what differs; exit code 1 if anything

A figure stands after the expression that it is the value of, a table between two comments; see
``svmbench/papers/page_numbers.py``. The pictures of a page's claims lie in ``claims`` beside it.
README.md is docs/README.in without its comments.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from pathlib import Path

from svmbench.base.errors import ResultsError
from svmbench.papers import page_numbers

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results"
#: The page with expressions, and the page that is written from it.
TEMPLATE, README = ROOT / "docs" / "README.in", ROOT / "README.md"


def pages() -> list[Path]:
    """Return the pages that quote kept results."""
    measuring = ROOT / "docs" / "measuring.md"
    return [TEMPLATE, measuring, RESULTS / "README.md", *sorted(RESULTS.glob("*/README.md"))]


def write_page(page: Path, before: str, after: str, *, check: bool) -> bool:
    """Print how a page differs, and write it unless `check`; return True if it differs."""
    if after == before:
        return False
    if not check:
        page.write_text(after, encoding="utf-8")
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), str(page), "from kept results", "", "", 0, ""
    )
    print("\n".join(lines))
    return True


def write_pictures(page: Path, text: str, results: page_numbers.Results, *, check: bool) -> bool:
    """Write the pictures of a page's claims beside it; return True if one differed."""
    folder = page.parent / page_numbers.PICTURES
    made = page_numbers.claim_pictures(text, results)
    kept = {one.name: one.read_text(encoding="utf-8") for one in folder.glob("*.svg")}
    for name in sorted(made.keys() | kept.keys()):
        if made.get(name) == kept.get(name):
            continue
        print(f"{folder / name}: {'differs' if name in made else 'no claim of the page has it'}")
        if check:
            continue
        if name in made:
            folder.mkdir(exist_ok=True)
            (folder / name).write_text(made[name], encoding="utf-8")
        else:
            (folder / name).unlink()
    return made != kept


def main(words: list[str] | None = None) -> int:
    """Write or check; return the exit code."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("pages", nargs="*", type=Path, help="default: all that quote kept results")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where they lie")
    parser.add_argument("--check", action="store_true", help="write nothing")
    given = parser.parse_args(words)
    stale = False
    results = page_numbers.Results(given.results)
    for page in given.pages or pages():
        try:
            before = page.read_text(encoding="utf-8")
            after = page_numbers.refresh_page(before, results, str(page))
            stale |= write_page(page, before, after, check=given.check)
            stale |= write_pictures(page, after, results, check=given.check)
            if page == TEMPLATE:
                text = page_numbers.without_comments(after)
                stale |= write_page(
                    README, README.read_text(encoding="utf-8"), text, check=given.check
                )
        except (OSError, ResultsError) as error:
            sys.exit(str(error))
    if not stale:
        print("nothing differs")
    return 1 if given.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
