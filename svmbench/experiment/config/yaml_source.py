"""Reading of YAML with the line and column of every value, without the surprises of YAML 1.1.

PyYAML implements YAML 1.1, where ``1e-6`` is text and ``no`` is false, and PyYAML silently drops
the first of two equal keys. Here ``1e-6`` is a number, ``no`` is text, and a repeated key is an
error.

Size, depth and number of values (with aliases expanded) are limited, since a few hundred bytes of
aliases can expand to gigabytes.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from svmbench.base import escape
from svmbench.base.errors import ConfigError

#: A value's place in the document: keys and list indices from the root.
ConfigPlace = tuple[str | int, ...]


_COLLECTIONS = ("tag:yaml.org,2002:seq", "tag:yaml.org,2002:map")


#: Largest number of characters of a document.
MAX_YAML_CHARS = 1 << 17
#: Largest number of nested levels.
MAX_YAML_DEPTH = 50
#: Largest number of values, with aliases expanded.
MAX_YAML_VALUES = 5_000
#: Largest number of characters of a text, such as a title or a program's command.
MAX_YAML_TEXT_CHARS = 4_096

_SCALARS = tuple(f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null"))
#: A translation table that removes newlines and tabs, the unprintable characters that are allowed.
_BLANKS = str.maketrans("", "", "\n\t")


class _BoundedComposer(yaml.composer.Composer):
    """A composer with limits on depth and number of values."""

    _depth = 0
    _values = 0
    _sizes: dict[int, int]
    peek_event: Any  # methods of the parser
    check_event: Any

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Compose a value, or raise an error beyond the limits.

        An alias counts as many values as the value that it repeats.
        """
        self._depth += 1
        self._values += 1
        before = self._values
        mark = self.peek_event().start_mark
        is_alias = self.check_event(yaml.AliasEvent)
        if self._depth > MAX_YAML_DEPTH:
            raise yaml.composer.ComposerError(
                problem=f"it is nested more than {MAX_YAML_DEPTH} levels deep", problem_mark=mark
            )
        if self._values <= MAX_YAML_VALUES:
            try:
                node = super().compose_node(parent, index)
            finally:
                self._depth -= 1
            if is_alias:  # an alias of a value that contains it has no size yet
                self._values += self._sizes.get(id(node), 0)
            else:
                self._sizes[id(node)] = self._values - before
        if self._values > MAX_YAML_VALUES:
            raise yaml.composer.ComposerError(problem=_TOO_LONG, problem_mark=mark)
        return node


class _CoreSchema(yaml.resolver.Resolver):
    """The scalars of YAML 1.2's core schema."""


class _Loader(_CoreSchema, _BoundedComposer, yaml.SafeLoader):
    """SafeLoader with the core schema and limits."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._sizes = {}


_TOO_LONG = f"it has more than {MAX_YAML_VALUES:,} values, those of its aliases counted"


_CoreSchema.yaml_implicit_resolvers = {}
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
    _CoreSchema.add_implicit_resolver(
        f"tag:yaml.org,2002:{tag}",
        re.compile(f"^{pattern}$"),
        [*first.replace("\0", ""), ""] if "\0" in first else list(first),
    )


def _decimal_int(loader: _Loader, node: yaml.ScalarNode) -> int:
    return int(str(loader.construct_scalar(node)), 10)


_Loader.add_constructor("tag:yaml.org,2002:int", _decimal_int)


def _compose_fast(text: str) -> yaml.Node | None:
    """Parse a document with libyaml; return its root, or None without libyaml or with an error.

    After None, PyYAML's own parser, which is ten times slower, parses the document or reports the
    error.
    """
    if not yaml.__with_libyaml__ or yaml.reader.Reader.NON_PRINTABLE.search(text):
        return None

    parser: Any = vars(yaml.cyaml)["CParser"]

    class Composer(_BoundedComposer, _CoreSchema, parser):  # type: ignore[misc]
        def __init__(self) -> None:
            parser.__init__(self, text)
            yaml.composer.Composer.__init__(self)
            yaml.resolver.Resolver.__init__(self)
            self._sizes = {}

    try:
        return Composer().get_single_node()
    except (yaml.YAMLError, ValueError):
        return None


class YamlSource:
    """A parsed YAML document: its data, with the line and column of each value.

    Attributes
    ----------
    name : str
        The file's name in error messages.
    data : object
        The document as plain Python values.
    problems : dict of tuple to str
        Messages on wrong values and keys, by place. The data are read without these values.
    """

    def __init__(self, text: str, name: str) -> None:
        self.name = name
        self._marks: dict[ConfigPlace, tuple[int, int]] = {}
        self._overrides: dict[ConfigPlace, str] = {}
        self.problems: dict[ConfigPlace, str] = {}
        if len(text) > MAX_YAML_CHARS:
            raise ConfigError(f"{name}: has more than the {MAX_YAML_CHARS:,} allowed characters")
        try:
            loader = _Loader(text)
        except yaml.reader.ReaderError as error:
            raise ConfigError(_unprintable(text, name, error)) from error
        try:
            node = _compose_fast(text) or loader.get_single_node()
            self.data = None if node is None else self._build(loader, node, (), ())
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            where = f"{name}:{mark.line + 1}:{mark.column + 1}" if mark else name
            message = " ".join(str(error.problem).split())
            raise ConfigError(f"{where}: not valid YAML: {shorten(message)}") from error
        except yaml.reader.ReaderError as error:
            raise ConfigError(_unprintable(text, name, error)) from error
        except (yaml.YAMLError, ValueError) as error:  # a version such as %YAML 9…9.1
            message = " ".join(str(error).split())
            raise ConfigError(f"{name}: not valid YAML: {shorten(message)}") from error
        finally:
            loader.dispose()

    @classmethod
    def read(cls, path: Path) -> YamlSource:
        """Read and parse a file.

        Raises
        ------
        svmbench.base.errors.ConfigError
            If the file can't be read, is not UTF-8, or is not YAML.
        """
        try:
            with path.open("rb") as stream:  # read a limited size: a device may have no end
                content = stream.read(4 * MAX_YAML_CHARS + 1)
            text = content.decode("utf-8")
        except UnicodeDecodeError as error:
            if error.reason == "unexpected end of data" and len(content) > 4 * MAX_YAML_CHARS:
                text = "\n" * len(content)  # the file is too long, which `cls` reports
            else:
                line = content.count(b"\n", 0, error.start) + 1
                raise ConfigError(f"{path}:{line}: not a UTF-8 text file") from error
        except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
            message = getattr(error, "strerror", None) or str(error)
            raise ConfigError(f"{shorten(str(path))}: {message}") from error
        return cls(text, str(path))

    def checked(self) -> YamlSource:
        """Return itself.

        Raises
        ------
        svmbench.base.errors.ConfigError
            If a key is repeated, or a value is invalid.
        """
        if self.problems:
            raise ConfigError(list(self.problems.values()))
        return self

    def override(self, place: ConfigPlace, text: str) -> None:
        """Note that ``--set text`` on the command line replaces the value at `place`."""
        self._overrides[place] = text
        for each in [each for each in self._marks if each[: len(place)] == place]:
            del self._marks[each]
        for each in [each for each in self.problems if each[: len(place)] == place]:
            del self.problems[each]

    @property
    def is_overridden(self) -> bool:
        """True if the command line has replaced a value."""
        return bool(self._overrides)

    def where(self, place: ConfigPlace) -> str:
        """Return ``file:line:column`` of the value at `place`, or of the value around it.

        For a value of the command line, return ``--set`` with its text.
        """
        nearest = self._nearest(place)
        if nearest in self._overrides:
            return f"--set {shorten(self._overrides[nearest])}"
        return ":".join(map(str, (self.name, *self._marks.get(nearest, ()))))

    def position(self, place: ConfigPlace) -> tuple[int, int]:
        """Return the line and column that :meth:`where` names; (0, 0) for the command line."""
        # The place of a wrong key ends with its line and column.
        if place and str(place[-1]).startswith("\0"):
            line, _, column = str(place[-1])[1:].partition(":")
            return int(line), int(column)
        return self._marks.get(self._nearest(place), (0, 0))

    def _nearest(self, place: ConfigPlace) -> ConfigPlace:
        """Return the place or the innermost place around it whose position is known."""
        around = (place[:length] for length in range(len(place), 0, -1))
        return next((p for p in around if p in self._overrides or p in self._marks), ())

    def _build(
        self, loader: _Loader, node: yaml.Node, place: ConfigPlace, inside: tuple[int, ...]
    ) -> Any:
        self._marks.setdefault(place, (node.start_mark.line + 1, node.start_mark.column + 1))
        if id(node) in inside:
            return self._problem(place, "an anchor refers to itself")
        inside = (*inside, id(node))
        if isinstance(node, yaml.CollectionNode) and node.tag not in _COLLECTIONS:
            return self._problem(place, f"the tag {shorten(node.tag)!r} means nothing here")
        if isinstance(node, yaml.SequenceNode):
            return [self._build(loader, n, (*place, i), inside) for i, n in enumerate(node.value)]
        if isinstance(node, yaml.MappingNode):
            return self._build_mapping(loader, node, place, inside)
        return self._scalar(loader, node, place)

    def _problem(self, place: ConfigPlace, message: str) -> None:
        """Note the mistake of a value, which is read as None."""
        self.problems[place] = f"{self.where(place)}: {message}"

    def _scalar(self, loader: _Loader, node: yaml.Node, place: ConfigPlace) -> Any:
        if node.tag not in _SCALARS:
            return self._problem(place, f"the tag {shorten(node.tag)!r} means nothing here")
        kind = node.tag.rpartition(":")[2]
        try:
            value = loader.construct_object(node)
        except (ValueError, KeyError, TypeError, OverflowError, IndexError):
            return self._problem(place, f"{shorten(str(node.value))!r} is no {_KINDS[kind]}")
        if isinstance(value, int) and abs(value) >= 2**63:
            return self._problem(place, "the integer is beyond 64 bits")
        if isinstance(value, str) and len(value) > MAX_YAML_TEXT_CHARS:
            message = (
                f"a text of {len(value):,} characters, more than the {MAX_YAML_TEXT_CHARS:,} of one"
            )
            return self._problem(place, message)
        if isinstance(value, str) and not _is_printable(value):
            return self._problem(place, f"{shorten(value)!r} has a control character")
        return value

    def _build_mapping(
        self, loader: _Loader, node: yaml.MappingNode, place: ConfigPlace, inside: tuple[int, ...]
    ) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        values_of_keys: dict[str, Any] = {}
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
            mark = key_node.start_mark
            if not isinstance(key_node, yaml.ScalarNode) or not _is_printable(key_node.value):
                self._wrong_key(place, key_node, "a key should be plain text")
                continue
            key = str(key_node.value)
            if len(key) > MAX_YAML_TEXT_CHARS:
                self._wrong_key(place, key_node, f"the key {shorten(key)!r} is too long")
                continue
            if key in values_of_keys:
                self._wrong_key(place, key_node, f"the key {shorten(key)!r} is given twice")
                continue
            # An error about a value names the line and column of its key.
            self._marks[(*place, key)] = (mark.line + 1, mark.column + 1)
            values_of_keys[key] = self._build(loader, value_node, (*place, key), inside)
        return {**merged, **values_of_keys}

    def _wrong_key(self, place: ConfigPlace, node: yaml.Node, message: str) -> None:
        # Use a place of its own, so that mistakes of other keys are reported as well.
        mark = f"{node.start_mark.line + 1}:{node.start_mark.column + 1}"
        self.problems[(*place, f"\0{mark}")] = f"{self.name}:{mark}: {message}"


_KINDS = {
    "int": "whole number",
    "float": "number",
    "bool": "true or false",
    "null": "null",
    "str": "text",
}


#: Texts that may be read as a number.
_NUMERIC = re.compile(r"[-+]?[0-9._]+([eE][-+]?[0-9]+)?")


def source_of_value(config: Any, name: str) -> YamlSource:
    """Return a config that the program has made, as if it were read from a file.

    Parameters
    ----------
    config : dict
        A mapping of keys to dicts, lists and plain values.
    name : str
        The file's name in error messages.
    """
    return YamlSource(yaml_of_value(config), name)


def yaml_of_value(config: dict[str, Any]) -> str:
    """Return a config as YAML, with its keys in their order."""
    return yaml.dump(config, Dumper=_Dumper, sort_keys=False, allow_unicode=True)


class _Dumper(yaml.SafeDumper):
    """Quotes a text such as 1e3, which :class:`YamlSource`, unlike PyYAML, reads as a number."""


_Dumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style="'" if _NUMERIC.fullmatch(text) else None
    ),
)


def _is_printable(text: str) -> bool:
    return text.translate(_BLANKS).isprintable()


def shorten(text: str) -> str:
    """Return a text as one line of at most 80 characters, without control sequences."""
    return escape.line(text, 80)


def _unprintable(text: str, name: str, error: yaml.reader.ReaderError) -> str:
    line = text.count("\n", 0, error.position) + 1
    column = error.position - text.rfind("\n", 0, error.position)
    return f"{name}:{line}:{column}: the character {error.character:#04x} is not allowed in YAML"


def parse_value(text: str) -> Any:
    """Parse the value of ``--set key=VALUE`` as YAML."""
    return YamlSource(text, "--set").checked().data
