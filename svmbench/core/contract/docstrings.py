"""Docstrings of estimators: a parameter of several solvers is described once.

The text of a shared parameter or attribute is in the docstring of a common base class. A solver
describes its own, and those with another meaning. `document` completes the docstring when `declare`
enters the class: first the parameters in the order and with the defaults of the signature, then the
attributes of the class and its base classes.
"""

from __future__ import annotations

import inspect
from itertools import groupby
from typing import Any, NamedTuple


class Entry(NamedTuple):
    """The description of one parameter or attribute: its type, and the lines below."""

    kind: str
    lines: tuple[str, ...]


#: Sections of a class docstring that are completed.
PARAMETERS, ATTRIBUTES = "Parameters", "Attributes"


def document(cls: Any) -> Any:
    """Complete the docstring of an estimator's class from its base classes; return the class."""
    if cls.__doc__ is None:  # python -OO
        return cls
    sections = _sections(cls.__doc__)
    lead, others = sections.pop(""), sections
    known = _described(cls, PARAMETERS)
    parameters = []
    for name, parameter in inspect.signature(cls).parameters.items():
        entry = known.get(name, Entry("", ()))
        parameters.append(_header(name, _fill(entry.kind, cls), parameter.default))
        parameters += [_fill(line, cls) for line in entry.lines]
    attributes = []
    for entry, group in groupby(_described(cls, ATTRIBUTES).items(), lambda item: item[1]):
        names = ", ".join(name for name, _ in group)
        attributes += [_header(names, entry.kind), *entry.lines]
    parts = {PARAMETERS: parameters, ATTRIBUTES: attributes}
    others = {title: lines for title, lines in others.items() if title not in parts}
    written = [
        "\n".join([title, "-" * len(title), *lines])
        for title, lines in {**parts, **others}.items()
        if lines
    ]
    cls.__doc__ = "\n\n".join(["\n".join(lead), *written]) + "\n"
    return cls


def _described(cls: type, title: str) -> dict[str, Entry]:
    """Return the entries of one section of a class and its bases, the nearest first."""
    entries_of: dict[str, Entry] = {}
    for base in cls.__mro__:
        for name, entry in entries(vars(base).get("__doc__"), title).items():
            # The type and the text are inherited one by one.
            earlier = entries_of.get(name, entry)
            entries_of[name] = Entry(earlier.kind or entry.kind, earlier.lines or entry.lines)
    return entries_of


def entries(docstring: str | None, title: str) -> dict[str, Entry]:
    """Return the entries of the section `title` of a numpydoc docstring, by name.

    A header ``a, b : type`` describes two names.
    """
    blocks: list[tuple[str, list[str]]] = []
    for line in _sections(docstring or "").get(title, ()):
        if line[:1].strip():
            blocks.append((line, []))
        elif blocks:
            blocks[-1][1].append(line)
    by_name: dict[str, Entry] = {}
    for header, lines in blocks:
        names, _, kind = header.partition(" : ")
        entry = Entry(kind.partition(", default=")[0], tuple(lines))
        by_name |= dict.fromkeys(names.split(", "), entry)
    return by_name


def _sections(docstring: str) -> dict[str, list[str]]:
    """Return the lines of each section by its title, those before the first one by ""."""
    lines = inspect.cleandoc(docstring).splitlines()
    sections: dict[str, list[str]] = {"": []}
    title = ""
    for line, below in zip(lines, [*lines, ""][1:], strict=True):
        if line and below == "-" * len(line):
            title = line
            sections[title] = []
        elif line != "-" * len(title) or not title:
            sections[title].append(line)
    for content in sections.values():
        while content and not content[-1].strip():
            content.pop()
    return sections


def _header(names: str, kind: str, default: Any = inspect.Parameter.empty) -> str:
    """Return the first line of an entry."""
    value = f'"{default}"' if isinstance(default, str) else repr(default)
    stated = "" if default is inspect.Parameter.empty else f"default={value}"
    what = ", ".join(part for part in (kind, stated) if part)
    return f"{names} : {what}" if what else names


def _fill(text: str, cls: Any) -> str:
    """Return a text with what the class declares in the place of {kernels} and {problem}."""
    declared = getattr(cls, "declaration", None)
    if declared is None:
        return text
    kernels = ", ".join(f'"{kernel}"' for kernel in declared.kernels)
    choice = f"{{{kernels}}}"
    takes_given = getattr(cls, "takes_given_kernel", None)
    if takes_given is not None and takes_given():
        choice = f'{{{kernels}, "precomputed"}} or callable'
    return text.replace("{kernels}", choice).replace("{problem}", declared.problem)
