"""Hashes of source files, without comments, docstrings and layout.

Files that differ only in comments, docstrings and layout have the same hash. A file is parsed and
serialised node by node. The output of ``ast.dump`` and ``ast.unparse`` depends on Python's version;
here empty fields are left out, and a file has the same hash under Python 3.11, 3.12 and 3.13. The
hash covers names, constants, defaults, annotations, decorators, and strings that are statements but
not docstrings.

For an import from this package, the hash covers the imported names, but neither the module's path
nor the order of such imports: moving a module changes neither its hash nor the hashes of the
modules that import it. The imported module has a hash of its own.
"""

from __future__ import annotations

import ast
import atexit
import hashlib
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, TypeGuard

from svmbench.base.cached_entries import CachedEntries

#: The package whose own module paths are left out of hashes.
OWN_PACKAGE = "svmbench"

_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


class ParsedSource(NamedTuple):
    """The hash and the imports of a source file.

    Attributes
    ----------
    digest : str
        SHA-256 of the file's statements.
    imports : tuple of (str, tuple of str)
        The modules of all import statements, also inside functions, each with the imported names;
        without names for ``import module``. Relative modules begin with their dots.
    """

    digest: str
    imports: tuple[tuple[str, tuple[str, ...]], ...]


@cache
def parse_source(content: bytes) -> ParsedSource:
    """Parse a source file.

    Parameters
    ----------
    content : bytes
        The file's content.

    Raises
    ------
    SyntaxError
        If it is not Python.
    """
    words: list[str] = []
    imports: list[tuple[str, tuple[str, ...]]] = []
    _serialise(ast.parse(content), words.append, imports)
    return ParsedSource(hashlib.sha256("".join(words).encode()).hexdigest(), tuple(imports))


#: The parsed files, by the hash of their bytes.
_parsed = CachedEntries("statements", __file__)


def kept_source(content: bytes) -> ParsedSource:
    """Parse a source file, or return its entry in the user's cache.

    The entry's key is the hash of the file's bytes. Keys of cells cover some 90 files, which take
    0.5 s of CPU time to parse.

    Raises
    ------
    SyntaxError
        If it is not Python.
    """
    name = hashlib.sha256(content).hexdigest()
    known = _checked(_parsed.find(name))
    if known is None:
        if not _parsed.new:
            atexit.register(_parsed.write, _parsed.place())
        known = _parsed.new[name] = parse_source(content)
    return known


def _checked(entry: Any) -> ParsedSource | None:
    """Return an entry of the cache, or None if it is damaged."""
    try:
        digest, imports = entry
        return ParsedSource(
            str(digest), tuple((str(name), tuple(names)) for name, names in imports)
        )
    except (TypeError, ValueError):
        return None


def _serialise(
    node: ast.AST, add: Callable[[str], None], imports: list[tuple[str, tuple[str, ...]]]
) -> None:
    """Serialise a node and its descendants, unambiguously; collect the imports."""
    if isinstance(node, ast.Constant):
        add(f"{node.value!a} ")
        return
    if isinstance(node, ast.Import):
        imports += [(alias.name, ()) for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        module = "." * node.level + (node.module or "")
        imports.append((module, tuple(alias.name for alias in node.names)))
    add(f"({type(node).__name__} ")
    for name, value in ast.iter_fields(node):
        if name == "ctx" or value is None:  # the node's place shows whether a name is read or set
            continue
        if isinstance(value, list):
            items = _without_docstring(node, value) if name == "body" else value
            if items:
                add(f"{name}[")
                own_imports = [item for item in items if _is_own_import(item)]
                imports += [
                    (str(statement.module), tuple(a.name for a in statement.names))
                    for statement in own_imports
                ]
                imported_names = (
                    f"{a.name} {a.asname} " for statement in own_imports for a in statement.names
                )
                add("".join(sorted(imported_names)))
                for item in items:
                    if not _is_own_import(item):
                        _serialise_item(node, item, add, imports)
                add("]")
        elif isinstance(value, ast.AST):
            add(f"{name}:")
            _serialise(value, add, imports)
        else:
            add(f"{name}:{value} ")
    add(")")


def _is_own_import(node: object) -> TypeGuard[ast.ImportFrom]:
    """Return True if a statement imports names from a module of this package."""
    return (
        isinstance(node, ast.ImportFrom)
        and not node.level
        and (node.module or "").partition(".")[0] == OWN_PACKAGE
    )


def _serialise_item(
    node: ast.AST,
    item: object,
    add: Callable[[str], None],
    imports: list[tuple[str, tuple[str, ...]]],
) -> None:
    """Serialise an item of a node's list: a node, a name, or None for a missing item.

    A missing item, such as the default of a parameter without one, differs from the constant None.
    """
    if not isinstance(item, ast.AST):
        add("- " if item is None else f"{item} ")
    # Python 3.12 ends an f-string with an empty string, other versions don't.
    elif not (isinstance(node, ast.JoinedStr) and getattr(item, "value", None) == ""):
        _serialise(item, add, imports)


def _without_docstring(node: ast.AST, body: list[ast.stmt]) -> list[ast.stmt]:
    if isinstance(node, _DOCUMENTED) and body and isinstance(body[0], ast.Expr):
        value = body[0].value
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            return body[1:]
    return body
