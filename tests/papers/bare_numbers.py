"""Numbers in prose that nothing makes: neither an expression, nor a file that the paragraph names.

Generated tables, verdicts and sentences, code, links, quotation marks and headings are left out.
So are columns of aims in tables that were written by hand, and numbers that say how something was
measured: settings, sizes, dates and versions, and conditions of an expression of the same
paragraph.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from svmbench.papers.page_numbers import _PAGE_NUMBER

#: What is no prose, or is generated.
_NO_PROSE = re.compile(
    r"<!-- table .*?<!-- /table -->|<!-- verdicts.*?<!-- /verdicts -->"
    r"|<!-- outcomes.*?<!-- /outcomes -->|<!-- choices.*?<!-- /choices -->"
    r"|<!-- suite -->.*?<!-- /suite -->|<!-- (?:defaults|made) -->.*?<!-- /(?:defaults|made) -->"
    r"|```.*?```|`[^`]*`|\]\([^)\n]*\)"
    r'|"[^"]{1,300}"|<[^>\n]*>|^#.*?$',
    re.DOTALL | re.MULTILINE,
)
_NUMBER = re.compile(r"(?<![\w.^-])[-−]?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?(?:\s*[×/]\s*\d+)?(?![\w⁻])")
#: A setting: a parameter's name before the number.
_SETTING = re.compile(
    r"(?:\b(?:C|k|t|T|tol|gamma|bias|tolerance|Table|Tables|Figures?|figures|Corollary|Theorem|Python"
    r"|Algorithm|section|equation|violation of|residual of|gap of|R|KKT tolerance)|[γνθελ]|-s|10)"
    r"(?:\s*(?:=|≤|>|<|of|from|up to))?\s*[-−\d.,/⁻⁰-⁹]*(?:\s*(?:and|or|to|,)\s*[-−\d.,e]*)*\s*$"
)
#: A size: what is counted stands after the number.
_SIZE = re.compile(
    r"\s*(?:(?:of|to|or|and|×|from)\s*[\d,.×\s/]+\s*)?(?:(?:small|larger|medium|data|basis|sparse"
    r"|unscaled|training|test|outer|inner|grid|kernel|digits of)\s+)*(?:rows?|sets|samples|examples"
    r"|digits|folds?|features|classes|vectors|points|values|widths|rounds|minutes|seconds|orders|GiB|MiB|MB"
    r"|cells|dimensions|grid|cross-validation|CV|artificial|of each|ν\b|C on\b|×)"
)
#: A table with a column of aims, which is its second one, and the second cell of each line.
_AIMS = re.compile(r"^\|[^|\n]*\| aim \|.*\n(?:\|.*\n)+", re.MULTILINE)
_AIM = re.compile(r"(?<=\|)[^|\n]*(?=\|)")
_DATE = re.compile(r"\d{4}-\d\d-\d\d|\b(?:19|20)\d\d\b|\d+\.\d+\.\d+")


def bare_numbers(page: Path) -> Iterator[tuple[int, str, str]]:
    """Yield line, number and sentence of each number of a page that has no origin."""
    text = page.read_text(encoding="utf-8")
    for pattern in (_PAGE_NUMBER, _NO_PROSE, _DATE):
        text = pattern.sub(lambda found: re.sub(r"[^\n]", "\0", found[0]), text)
    text = _AIMS.sub(lambda table: "\n".join(map(_without_aim, table[0].split("\n"))), text)
    original = page.read_text(encoding="utf-8")
    for start, end in _paragraphs(text):
        kept = _kept_numbers(original[start:end], page.parent)
        expressions = " ".join(one["what"] for one in _PAGE_NUMBER.finditer(original, start, end))
        conditions = set(re.findall(r"\d+(?:\.\d+)?", expressions))
        for found in _NUMBER.finditer(text, start, end):
            before = text[max(start, found.start() - 80) : found.start()].replace("\n", " ")
            after = text[found.end() : min(end, found.end() + 60)].replace("\n", " ")
            if _SETTING.search(before) or _SIZE.match(after) or _is_kept(found[0], kept):
                continue
            if found[0].strip(",").replace(",", "") in conditions:
                continue
            line = text.count("\n", 0, found.start()) + 1
            yield line, found[0], f"{before[-40:]}{found[0]}{after[:40]}".replace("\0", "").strip()


def _without_aim(line: str) -> str:
    cells = list(_AIM.finditer(line))
    if len(cells) < 2:
        return line
    start, end = cells[1].span()
    return line[:start] + "\0" * (end - start) + line[end:]


def _paragraphs(text: str) -> Iterator[tuple[int, int]]:
    """Yield begin and end of each paragraph or list item."""
    marks = [0, *(one.start() for one in re.finditer(r"\n\s*\n|\n(?=- )", text)), len(text)]
    yield from pairwise(marks)


def _kept_numbers(paragraph: str, folder: Path) -> list[float]:
    """Return the numbers of the CSV files that a paragraph names."""
    found: list[float] = []
    for name in re.findall(r"`(?:results/)?([\w/.-]+\.csv)`", paragraph):
        for place in (folder / name, folder.parent / name):
            if place.is_file():
                with place.open(encoding="utf-8", newline="") as lines:
                    for row in csv.reader(lines):
                        found += [
                            float(one)
                            for one in row
                            if re.fullmatch(r"-?\d+(\.\d*)?(e[-+]?\d+)?", one)
                        ]
    return found


def _is_kept(number: str, kept: list[float]) -> bool:
    """Return whether a number is one of some kept ones, with the digits that it is written with."""
    if not re.fullmatch(r"[-−]?[\d,.]+", number):
        return False
    plain = number.replace(",", "").replace("−", "-")
    places = len(plain.partition(".")[2])
    return any(
        round(one * scale, places) == float(plain) for one in kept for scale in (1.0, 100.0, 1000.0)
    )
