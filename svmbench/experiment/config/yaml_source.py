"""Reading of YAML with the place of every value, without the surprises of YAML 1.1.

PyYAML implements YAML 1.1, where ``1e-6`` is text and ``no`` is false, and where the second of two
equal keys silently wins. Here ``1e-6`` is a number, ``no`` is text, a repeated key is an error, and
every value remembers the line and column it stands at.

Size, depth and number of values (with aliases expanded) are limited, since a few hundred bytes of
aliases can stand for gigabytes.
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
#: Largest number of characters of a text: a title, a sentence, a program's command.
MAX_YAML_TEXT_CHARS = 4_096

_SCALARS = tuple(f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null"))
#: What a text may hold beside what can be printed.
_BLANKS = str.maketrans("", "", "\n\t")


class _BoundedComposer(yaml.composer.Composer):
    """A composer with bounds."""

    _depth = 0
    _values = 0
    _sizes: dict[int, int]
    peek_event: Any  # of the parser
    check_event: Any

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Compose a value, unless it is one too many or lies too deep.

        An alias counts as what it stands for, so that nothing without measure is ever built.
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
            if is_alias:  # one that refers to what it stands in has no size yet
                self._values += self._sizes.get(id(node), 0)
            else:
                self._sizes[id(node)] = self._values - before
        if self._values > MAX_YAML_VALUES:
            raise yaml.composer.ComposerError(problem=_TOO_LONG, problem_mark=mark)
        return node


class _CoreSchema(yaml.resolver.Resolver):
    """The scalars of YAML 1.2's core schema."""


class _Loader(_CoreSchema, _BoundedComposer, yaml.SafeLoader):
    """SafeLoader with the core schema and bounds."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._sizes = {}


_TOO_LONG = f"it holds more than {MAX_YAML_VALUES:,} values, those of its aliases counted"


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
    """Return the root of a document as libyaml parses it; None without libyaml or for an error.

    PyYAML's own parser, ten times slower, then says what is wrong.
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
    """A parsed YAML document: its data, and where each value stands.

    Attributes
    ----------
    name : str
        The file's name, as errors print it.
    data : object
        The document as plain Python values.
    problems : dict of tuple to str
        What is wrong with single values and keys, by place: the rest can be read without them.
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
            said = " ".join(str(error.problem).split())
            raise ConfigError(f"{where}: not valid YAML: {shorten(said)}") from error
        except yaml.reader.ReaderError as error:
            raise ConfigError(_unprintable(text, name, error)) from error
        except (yaml.YAMLError, ValueError) as error:  # a version such as %YAML 9…9.1
            said = " ".join(str(error).split())
            raise ConfigError(f"{name}: not valid YAML: {shorten(said)}") from error
        finally:
            loader.dispose()

    @classmethod
    def read(cls, path: Path) -> YamlSource:
        """Read and parse a file.

        Raises
        ------
        svmbench.base.errors.ConfigError
            If it can't be read, is not UTF-8, or is not YAML.
        """
        try:
            with path.open("rb") as stream:  # no more of it: it may be a device without end
                content = stream.read(4 * MAX_YAML_CHARS + 1)
            text = content.decode("utf-8")
        except UnicodeDecodeError as error:
            if error.reason == "unexpected end of data" and len(content) > 4 * MAX_YAML_CHARS:
                text = "\n" * len(content)  # cut off there: it is too long
            else:
                line = content.count(b"\n", 0, error.start) + 1
                raise ConfigError(f"{path}:{line}: not a UTF-8 text file") from error
        except (OSError, ValueError) as error:  # a zero byte in its name
            said = getattr(error, "strerror", None) or str(error)
            raise ConfigError(f"{shorten(str(path))}: {said}") from error
        return cls(text, str(path))

    def checked(self) -> YamlSource:
        """Return itself.

        Raises
        ------
        svmbench.base.errors.ConfigError
            If a key is repeated, or a value is none.
        """
        if self.problems:
            raise ConfigError(list(self.problems.values()))
        return self

    def override(self, place: ConfigPlace, text: str) -> None:
        """Remember that the value at `place` was given on the command line, by ``--set text``."""
        self._overrides[place] = text
        for each in [each for each in self._marks if each[: len(place)] == place]:
            del self._marks[each]
        for each in [each for each in self.problems if each[: len(place)] == place]:
            del self.problems[each]

    @property
    def is_overridden(self) -> bool:
        """True if an override was given on the command line."""
        return bool(self._overrides)

    def where(self, place: ConfigPlace) -> str:
        """Return ``file:line:column`` of the value at `place`, or of what encloses it.

        Of what was given on the command line: ``--set``, with what was given.
        """
        known = self._nearest(place)
        if known in self._overrides:
            return f"--set {shorten(self._overrides[known])}"
        return ":".join(map(str, (self.name, *self._marks.get(known, ()))))

    def position(self, place: ConfigPlace) -> tuple[int, int]:
        """Return line and column of what :meth:`where` names; (0, 0) on the command line."""
        # The place of a wrong key is its own line and column.
        if place and str(place[-1]).startswith("\0"):
            line, _, column = str(place[-1])[1:].partition(":")
            return int(line), int(column)
        return self._marks.get(self._nearest(place), (0, 0))

    def _nearest(self, place: ConfigPlace) -> ConfigPlace:
        """Return the innermost place around a place of which it is known where it stands."""
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

    def _problem(self, place: ConfigPlace, said: str) -> None:
        """Remember what is wrong with a value, in whose place nothing stands."""
        self.problems[place] = f"{self.where(place)}: {said}"

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
            said = (
                f"a text of {len(value):,} characters, more than the {MAX_YAML_TEXT_CHARS:,} of one"
            )
            return self._problem(place, said)
        if isinstance(value, str) and not _is_printable(value):
            return self._problem(place, f"{shorten(value)!r} holds a control character")
        return value

    def _build_mapping(
        self, loader: _Loader, node: yaml.MappingNode, place: ConfigPlace, inside: tuple[int, ...]
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
            mark = key_node.start_mark
            if not isinstance(key_node, yaml.ScalarNode) or not _is_printable(key_node.value):
                self._wrong_key(place, key_node, "a key should be plain text")
                continue
            key = str(key_node.value)
            if len(key) > MAX_YAML_TEXT_CHARS:
                self._wrong_key(place, key_node, f"the key {shorten(key)!r} is too long")
                continue
            if key in own:
                self._wrong_key(place, key_node, f"the key {shorten(key)!r} is given twice")
                continue
            # An error about a value names the place of its key: that is where one looks for it.
            self._marks[(*place, key)] = (mark.line + 1, mark.column + 1)
            own[key] = self._build(loader, value_node, (*place, key), inside)
        return {**merged, **own}

    def _wrong_key(self, place: ConfigPlace, node: yaml.Node, said: str) -> None:
        # A place of its own: what stands there under another key is no less wrong for it.
        mark = f"{node.start_mark.line + 1}:{node.start_mark.column + 1}"
        self.problems[(*place, f"\0{mark}")] = f"{self.name}:{mark}: {said}"


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
    """Return a config that the program itself has put together as if a file held it.

    Parameters
    ----------
    config : dict
        Made of dicts, lists and plain values.
    name : str
        Stands before its mistakes.
    """
    return YamlSource(yaml_of_value(config), name)


def yaml_of_value(config: dict[str, Any]) -> str:
    """Return a config as YAML, with its keys in the order that they have."""
    return yaml.dump(config, Dumper=_Dumper, sort_keys=False, allow_unicode=True)


class _Dumper(yaml.SafeDumper):
    """Quotes texts such as 1e3: PyYAML reads it as text, :class:`YamlSource` as a number."""


_Dumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style="'" if _NUMERIC.fullmatch(text) else None
    ),
)


def _is_printable(text: str) -> bool:
    return text.translate(_BLANKS).isprintable()


def shorten(text: str) -> str:
    """Return a text as one line of 80 characters at most that a terminal shows, not obeys."""
    return escape.line(text, 80)


def _unprintable(text: str, name: str, error: yaml.reader.ReaderError) -> str:
    line = text.count("\n", 0, error.position) + 1
    column = error.position - text.rfind("\n", 0, error.position)
    return f"{name}:{line}:{column}: the character {error.character:#04x} is not allowed in YAML"


def parse_value(text: str) -> Any:
    """Read one command-line value (``--set key=VALUE``) as YAML would."""
    return YamlSource(text, "--set").checked().data
