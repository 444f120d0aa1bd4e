"""YAML as people mean it, with the place of every value.

PyYAML implements YAML 1.1, where ``1e-6`` is text and ``no`` is false, and where the second of two
equal keys silently wins. Here ``1e-6`` is a number, ``no`` is text, a repeated key is an error, and
every value remembers the line and column it stands at.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from svmbench.errors import ConfigError

#: A value's place in the document: keys and list indices from the root.
Place = tuple[str | int, ...]


_COLLECTIONS = ("tag:yaml.org,2002:seq", "tag:yaml.org,2002:map")


class _Loader(yaml.SafeLoader):
    """SafeLoader with the scalars of YAML 1.2's core schema."""


_Loader.yaml_implicit_resolvers = {}
for tag, pattern, first in (
    ("bool", r"(?:true|True|TRUE|false|False|FALSE)", "tTfF"),
    ("int", r"[-+]?[0-9]+", "-+0123456789"),
    (
        "float",
        r"(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))",
        "-+0123456789.",
    ),
    ("null", r"(?:~|null|Null|NULL|)", "~nN\0"),
    ("merge", r"<<", "<"),
):
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{tag}",
        re.compile(f"^{pattern}$"),
        [*first.replace("\0", ""), ""] if "\0" in first else list(first),
    )


def _decimal_int(loader: _Loader, node: yaml.ScalarNode) -> int:
    return int(str(loader.construct_scalar(node)), 10)


_Loader.add_constructor("tag:yaml.org,2002:int", _decimal_int)


class YamlSource:
    """A parsed YAML document: its data, and where each value stands.

    Attributes
    ----------
    name : str
        The file's name, as errors print it.
    data : object
        The document as plain Python values.
    """

    def __init__(self, text: str, name: str) -> None:
        self.name = name
        self._marks: dict[Place, tuple[int, int]] = {}
        self._problems: list[str] = []
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            self.data = None if node is None else self._build(loader, node, (), ())
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            where = f"{name}:{mark.line + 1}:{mark.column + 1}" if mark else name
            raise ConfigError(f"{where}: not valid YAML: {error.problem}") from error
        except yaml.YAMLError as error:
            raise ConfigError(f"{name}: not valid YAML: {error}") from error
        finally:
            loader.dispose()
        if self._problems:
            raise ConfigError(self._problems)

    @classmethod
    def read(cls, path: Path) -> YamlSource:
        """Read and parse a file.

        Raises
        ------
        svmbench.errors.ConfigError
            If it can't be read, is not UTF-8, is not YAML, or repeats a key.
        """
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise ConfigError(f"{path}: not a UTF-8 text file") from error
        except OSError as error:
            raise ConfigError(f"{path}: {error.strerror or error}") from error
        return cls(text, str(path))

    def where(self, place: Place) -> str:
        """Return ``file:line:column`` of the value at `place`, or of what encloses it."""
        for length in range(len(place), -1, -1):
            if place[:length] in self._marks:
                line, column = self._marks[place[:length]]
                return f"{self.name}:{line}:{column}"
        return self.name

    def _build(
        self, loader: _Loader, node: yaml.Node, place: Place, inside: tuple[int, ...]
    ) -> Any:
        self._marks.setdefault(place, (node.start_mark.line + 1, node.start_mark.column + 1))
        if id(node) in inside:
            raise ConfigError(f"{self.where(place)}: an anchor refers to itself")
        inside = (*inside, id(node))
        if isinstance(node, yaml.CollectionNode) and node.tag not in _COLLECTIONS:
            raise ConfigError(f"{self.where(place)}: the tag {node.tag!r} means nothing here")
        if isinstance(node, yaml.SequenceNode):
            return [self._build(loader, n, (*place, i), inside) for i, n in enumerate(node.value)]
        if isinstance(node, yaml.MappingNode):
            return self._build_mapping(loader, node, place, inside)
        return loader.construct_object(node)

    def _build_mapping(
        self, loader: _Loader, node: yaml.MappingNode, place: Place, inside: tuple[int, ...]
    ) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        own: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                parts = (
                    value_node.value if isinstance(value_node, yaml.SequenceNode) else [value_node]
                )
                for part in reversed(parts):
                    values = self._build(loader, part, (*place, "<<"), inside)
                    if isinstance(values, dict):
                        merged.update(values)
                continue
            key = str(getattr(key_node, "value", "?"))
            mark = key_node.start_mark
            if key in own:
                self._problems.append(
                    f"{self.name}:{mark.line + 1}:{mark.column + 1}: the key {key!r} is given twice"
                )
                continue
            # An error about a value names the place of its key: that is where one looks for it.
            self._marks[(*place, key)] = (mark.line + 1, mark.column + 1)
            own[key] = self._build(loader, value_node, (*place, key), inside)
        return {**merged, **own}


def parse_value(text: str) -> Any:
    """Read one command-line value (``--set key=VALUE``) as YAML would."""
    return YamlSource(text, "--set").data
