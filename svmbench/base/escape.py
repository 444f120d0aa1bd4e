"""Escaping of untrusted text, one function for each medium.

Names, titles, labels and reasons come from configs, data files, plug-ins and other people's result
folders. Escaped, they can't act as terminal escape sequences, as HTML or links in Markdown, as tags
in a page, or as formulas in a spreadsheet or a plot.
"""

from __future__ import annotations

import re
from html import escape as html_escape

#: What stands for a character that can't be seen.
HIDDEN = "�"

#: A spreadsheet takes a field for a formula that begins with one of these, or their wide forms.
_FORMULA = "=+-@\uff1d\uff0b\uff0d\uff20"
#: Each digit can be matched in one way alone, else a long text would take the square of its length.
_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:inf|nan)")
#: What means something inside a line of Markdown: an underscore only at the edge of a word, and a
#: closing bracket where a link's address, its name or its definition follows.
_MARKS = r"[\\`*<>|$]|~(?!\w)|(?<=[\w~])~|\](?=[(\[:])|(?<![^\W_])_|_(?![^\W_])"
_MARKS_AND_BRACKETS = re.compile(rf"[\[\]]|{_MARKS}")
#: Also what makes a link of a bare address, outside the text of another link: ``://`` or ``www.``.
_MARKS_AND_ADDRESSES = re.compile(rf"{_MARKS}|:(?=//)|(?<=[wW]{{3}})\.")
#: The sign inside an e-mail address. GitHub looks for addresses after it has read escapes and
#: entities, so that only something between the name and the sign, here a comment, keeps it a text.
_MAIL = re.compile(r"(?<=[\w.+-])@(?=[\w.-])")
#: What would begin a heading, a quotation, a list or a rule at the beginning of a line.
_OPENING = re.compile(
    r"^(\s*)(#+(?=\s|$)|[-+](?=\s|$)|-+$|=+$)|^(\s*\d{1,9})([.)])(?=\s|$)",
)
_ENTITY = re.compile(r"&(?=#?\w+;)")


def line(text: object, most: int | None = None) -> str:
    """Return a text as one line that a terminal shows and does not obey.

    Parameters
    ----------
    text : object
        Shown as ``str`` does.
    most : int, optional
        Characters at most; what is longer ends in an ellipsis.
    """
    whole = str(text)
    cut = whole if most is None or len(whole) <= most else whole[: most - 1] + "…"
    if cut.isprintable():
        return cut
    return "".join(c if c.isprintable() else " " if c in "\n\t" else HIDDEN for c in cut)


def lines(text: object) -> str:
    """Return a text of several lines, each of which a terminal shows and does not obey."""
    return "\n".join(line(each) for each in str(text).split("\n"))


def markdown(text: object) -> str:
    """Return a text as one line of Markdown that reads as the text and does nothing."""
    shown = _MARKS_AND_ADDRESSES.sub(lambda mark: "\\" + mark[0], _ENTITY.sub("&amp;", line(text)))
    shown = _MAIL.sub("<!-- -->@", shown)
    return _OPENING.sub(lambda m: f"{m[1] or m[3] or ''}\\{m[2] or m[4]}", shown)


def markdown_label(text: object) -> str:
    """Return a text as that of an image or a link, which ends where the text does."""
    return _MARKS_AND_BRACKETS.sub(lambda mark: "\\" + mark[0], _ENTITY.sub("&amp;", line(text)))


def markdown_code(text: object) -> str:
    """Return a text as a code span, which ends where the text does."""
    return f"`{line(text).replace('`', HIDDEN).replace('|', HIDDEN)}`"


def html(text: object) -> str:
    """Return a text as one line of HTML, inside or outside an attribute, that does nothing."""
    return html_escape(line(text), quote=True)


#: What LaTeX would obey, and the signs that its fonts of text lack.
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
    """Return a text as one line of LaTeX that reads as the text and does nothing."""
    return "".join(_LATEX.get(character, character) for character in line(text))


def csv_field(value: object) -> object:
    """Return a value as a CSV field: a number unchanged, a text that no spreadsheet evaluates.

    What a spreadsheet would take for a formula has an apostrophe before it, and so has what begins
    with one already, so that :func:`csv_value` gives each text back.
    """
    if value is None or isinstance(value, int | float):
        return value
    shown = line(value)
    if shown[:1].isalnum():
        return shown
    begins = shown.lstrip()[:1]
    if shown.startswith("'") or (begins and begins in _FORMULA and not _NUMBER.fullmatch(shown)):
        return "'" + shown
    return shown


def csv_value(field: str) -> str:
    """Return the text that a field made by :func:`csv_field` stands for."""
    return field.removeprefix("'")


def drawn(text: object) -> str:
    """Return a text as matplotlib draws it, character by character: a dollar begins no formula."""
    return line(text).replace("$", r"\$")
