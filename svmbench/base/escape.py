"""Escaping of untrusted text, one function for each medium.

Names, titles, labels and reasons come from configs, data files, plug-ins and other people's result
folders. Escaped, they can't act as terminal escape sequences, as HTML or links in Markdown, as tags
in a page, or as formulas in a spreadsheet or a plot.
"""

from __future__ import annotations

import re
from html import escape as html_escape

#: The replacement of an unprintable character.
HIDDEN = "�"

#: Characters, also their wide forms, with which a spreadsheet's formula begins.
_FORMULA = "=+-@\uff1d\uff0b\uff0d\uff20"
#: A number. Each digit matches in one way only, so that the time is linear in the text's length.
_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:inf|nan)")
#: Characters with a meaning inside a line of Markdown. An underscore has one only at the edge of a
#: word, a closing bracket only before a link's address, name or definition.
_MARKS = r"[\\`*<>|$]|~(?!\w)|(?<=[\w~])~|\](?=[(\[:])|(?<![^\W_])_|_(?![^\W_])"
_MARKS_AND_BRACKETS = re.compile(rf"[\[\]]|{_MARKS}")
#: In addition, the parts of a bare address that make it a link: ``://`` and ``www.``.
_MARKS_AND_ADDRESSES = re.compile(rf"{_MARKS}|:(?=//)|(?<=[wW]{{3}})\.")
#: The sign inside an e-mail address. GitHub makes links of addresses after it has read escapes and
#: entities; a comment between the name and the sign prevents this.
_MAIL = re.compile(r"(?<=[\w.+-])@(?=[\w.-])")
#: Characters that begin a heading, a quotation, a list or a rule at the beginning of a line.
_OPENING = re.compile(
    r"^(\s*)(#+(?=\s|$)|[-+](?=\s|$)|-+$|=+$)|^(\s*\d{1,9})([.)])(?=\s|$)",
)
_ENTITY = re.compile(r"&(?=#?\w+;)")


def line(text: object, most: int | None = None) -> str:
    """Return a text as one line without control characters, for a terminal.

    Parameters
    ----------
    text : object
        A text, or an object that ``str`` converts.
    most : int, optional
        Largest number of characters; a longer text is cut and ends in an ellipsis.
    """
    full_text = str(text)
    cut = full_text if most is None or len(full_text) <= most else full_text[: most - 1] + "…"
    if cut.isprintable():
        return cut
    return "".join(c if c.isprintable() else " " if c in "\n\t" else HIDDEN for c in cut)


def lines(text: object) -> str:
    """Return a text of several lines, each escaped by :func:`line`."""
    return "\n".join(line(each) for each in str(text).split("\n"))


def markdown(text: object) -> str:
    """Return a text as one line of Markdown, with all marks escaped."""
    shown = _MARKS_AND_ADDRESSES.sub(lambda mark: "\\" + mark[0], _ENTITY.sub("&amp;", line(text)))
    shown = _MAIL.sub("<!-- -->@", shown)
    return _OPENING.sub(lambda m: f"{m[1] or m[3] or ''}\\{m[2] or m[4]}", shown)


def markdown_label(text: object) -> str:
    """Return a text as the label of an image or link in Markdown."""
    return _MARKS_AND_BRACKETS.sub(lambda mark: "\\" + mark[0], _ENTITY.sub("&amp;", line(text)))


def markdown_code(text: object) -> str:
    """Return a text as a code span in Markdown."""
    return f"`{line(text).replace('`', HIDDEN).replace('|', HIDDEN)}`"


def html(text: object) -> str:
    """Return a text as one line of HTML, for text or attributes."""
    return html_escape(line(text), quote=True)


#: The LaTeX code of special characters and of characters that its text fonts lack.
_LATEX = {
    **{character: "\\" + character for character in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "×": r"$\times$",
    "−": r"$-$",
    "²": r"$^2$",
    "…": r"\ldots{}",
    "±": r"$\pm$",
    "†": r"\dag{}",
    "‡": r"\ddag{}",
    "§": r"\S{}",
    "–": "--",
    "µ": r"\textmu{}",
    "·": r"$\cdot$",
}


def latex(text: object) -> str:
    """Return a text as one line of LaTeX, with all special characters escaped."""
    return "".join(_LATEX.get(character, character) for character in line(text))


def csv_field(value: object) -> object:
    """Return a value as a CSV field that no spreadsheet evaluates; numbers stay unchanged.

    A text that a spreadsheet would take for a formula gets an apostrophe before it. So does a text
    that begins with an apostrophe, so that :func:`csv_value` restores every text.
    """
    if value is None or isinstance(value, int | float):
        return value
    shown = line(value)
    if shown[:1].isalnum():
        return shown
    first = shown.lstrip()[:1]
    if shown.startswith("'") or (first and first in _FORMULA and not _NUMBER.fullmatch(shown)):
        return "'" + shown
    return shown


def csv_value(field: str) -> str:
    """Return the text from which :func:`csv_field` made a field."""
    return field.removeprefix("'")


def drawn(text: object) -> str:
    """Return a text for matplotlib, with dollar signs escaped so that they begin no formula."""
    return line(text).replace("$", r"\$")
