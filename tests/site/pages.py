"""Checking pages as a browser's strict sibling would: structure, links, names, colours, weight.

python tests/site/pages.py SITE    # everything that is wrong with a site; exit code 1 if any
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import html5lib

VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"}
#: What may stand directly inside some elements.
CHILDREN = {
    "ul": {"li"}, "ol": {"li"}, "dl": {"dt", "dd"}, "tr": {"th", "td"},
    "table": {"caption", "thead", "tbody"}, "thead": {"tr"}, "tbody": {"tr"},
}  # fmt: skip
#: What ends a paragraph, so that a closing tag of it has nothing to close.
NOT_IN_P = {"p", "ul", "ol", "dl", "table", "div", "section", "figure", "details", "article",
            "h1", "h2", "h3", "h4"}  # fmt: skip
INLINE = {"a", "b", "code", "em", "i", "span", "strong"}
NOT_NESTED = {"a", "button", "label"}
#: A page with all that it loads weighs less.
MOST_BYTES = 2_000_000
#: Properties that text has, and those of what it stands on.
INKS = ("--ink", "--quiet", "--link", "--good", "--part", "--bad", "--none", "--old")
GROUNDS = ("--paper", "--band")
#: The least contrast of text (WCAG 2.2, AA).
CONTRAST = 4.5
LOADS = {"img": "src", "script": "src", "link": "href", "iframe": "src", "source": "src"}


@dataclass
class Page(HTMLParser):
    """A page that was read, with everything that is wrong with it."""

    path: Path
    wrong: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    named_by: list[str] = field(default_factory=list)
    tags: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    text: str = ""

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.level = 0
        source = self.path.read_text(encoding="utf-8")
        if not source.startswith("<!DOCTYPE html>"):
            self.say("no doctype")
        # An ampersand or an angle bracket of its own is an error, which parsers forgive.
        for bare in re.findall(r"&(?!#?\w+;)|<(?![a-zA-Z/!])", source):
            self.say(f"bare {bare}")
        parser = html5lib.HTMLParser()
        parser.parse(source)
        self.wrong += [f"{place}: {error}" for place, error, _ in parser.errors]
        self.feed(source)
        self.close()
        if self.open:
            self.say(f"never closed: {self.open}")
        for one in {name for name in self.ids if self.ids.count(name) > 1}:
            self.say(f"id {one} twice")
        self.wrong += [f"no id {name}" for name in self.named_by if name not in self.ids]
        seen = [tag for tag, _ in self.tags]
        self.wrong += [f"{seen.count(t)} of {t}" for t in ("title", "main", "h1")
                       if seen.count(t) != 1]  # fmt: skip

    def say(self, what: str) -> None:
        self.wrong.append(f"{self.getpos()}: {what}")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if len(given) < len(attrs):
            self.say(f"{tag}: an attribute twice")
        parent = self.open[-1] if self.open else ""
        if tag not in CHILDREN.get(parent, {tag}):
            self.say(f"{tag} in {parent}")
        if "p" in self.open and tag in NOT_IN_P:
            self.say(f"{tag} in a paragraph")
        if tag in NOT_NESTED and tag in self.open:
            self.say(f"{tag} in {tag}")
        self.tags.append((tag, given))
        self.text += "" if tag in INLINE else " "
        self.ids += [given["id"]] if "id" in given else []
        self.named_by += given.get("aria-labelledby", "").split()
        self.links += [given["href"]] if tag == "a" else []
        if tag in LOADS:
            self.loads.append(given.get(LOADS[tag], ""))
        if tag == "img" and len(given.get("alt", "")) < 10:
            self.say("an image without words")
        if any(name.startswith("on") or name == "style" for name in given):
            self.say(f"{tag} with code of its own")
        if tag == "script" and "src" not in given:
            self.say("a script in the page")
        if tag in {"h1", "h2", "h3", "h4"}:
            if int(tag[1]) > self.level + 1:
                self.say(f"{tag} after h{self.level}")
            self.level = int(tag[1])
        if given.get("tabindex") == "0" and not (given.get("aria-label") or self.named_by):
            self.say("a place for the keyboard without a name")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open[-1] != tag:
            self.say(f"</{tag}> where {self.open[-1:]} is open")
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.open and self.open[-1] in CHILDREN and data.strip():
            self.say(f"text in {self.open[-1]}")


def read_pages(site: Path) -> dict[Path, Page]:
    """Read every page below a folder."""
    return {path.resolve(): Page(path) for path in sorted(site.rglob("*.html"))}


def dead_ends(pages: dict[Path, Page]) -> list[str]:
    """Return every link and file of some pages that leads nowhere, or out of the site.

    A reader may follow a link to another site (``https://``), from which nothing is loaded.
    """
    found = []
    for path, page in pages.items():
        inner = [target for target in page.links if not target.startswith("https://")]
        for target in [*inner, *page.loads]:
            where = f"{path.name}: {target}"
            file, _, fragment = target.partition("#")
            if re.match(r"[a-zA-Z][\w+.-]*:|//|/", file):
                found.append(f"{where} leads out")
                continue
            place = (path.parent / unquote(file)).resolve() if file else path
            if not place.is_file():
                found.append(f"{where} is not there")
            elif fragment and unquote(fragment) not in pages[place].ids:
                found.append(f"{where} has no such place")
    return found


def luminance(colour: str) -> float:
    """Return the relative luminance of ``#rrggbb`` (WCAG 2.2)."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    """Return the contrast ratio of two colours."""
    light, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def schemes(css: str) -> dict[str, dict[str, str]]:
    """Return the custom properties of each scheme, those of the first below the others'."""
    found = re.findall(r"((?:@media [^{]*\{\s*)?):root\s*\{([^}]*)\}", css)
    first: dict[str, str] = {}
    named = {}
    for media, body in found:
        own = dict(re.findall(r"(--[\w-]+):\s*(#[0-9a-f]{6})", body))
        first = first or own
        named[media.strip(" {\n") or "light"] = {**first, **own}
    return named


def faint(css: str) -> list[str]:
    """Return every pair of text and ground of a style sheet that is too hard to read."""
    found = []
    for scheme, colours in schemes(css).items():
        inks = ("--ink", "--quiet", "--link") if scheme == "@media print" else INKS
        pairs = [(ink, ground) for ink in inks for ground in GROUNDS]
        for ink, ground in [*pairs, ("--old", "--old-band")]:
            ratio = contrast(colours[ink], colours[ground])
            if ratio < CONTRAST:
                found.append(f"{scheme}: {ink} on {ground} {ratio:.1f}")
    return found


def heavy(pages: dict[Path, Page]) -> list[str]:
    """Return every page that weighs too much with all that it loads."""
    found = []
    for path, page in pages.items():
        parts = {path, *((path.parent / unquote(load)).resolve() for load in page.loads)}
        weight = sum(part.stat().st_size for part in parts if part.is_file())
        if weight >= MOST_BYTES:
            found.append(f"{path.name}: {weight:,} bytes")
    return found


def main(site: Path) -> int:
    """Print everything that is wrong with a site; return the exit code."""
    pages = read_pages(site)
    wrong = [f"{path.name}: {said}" for path, page in pages.items() for said in page.wrong]
    wrong += [*dead_ends(pages), *heavy(pages)]
    wrong += faint((site / "site.css").read_text(encoding="utf-8"))
    print("\n".join(wrong) or f"{len(pages)} pages: nothing is wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
