"""The hash of a source file stands for what it decides, however that is written down."""

from __future__ import annotations

import ast
import atexit
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

from svmbench.base.cached_entries import CachedEntries
from svmbench.base.paths import PACKAGE
from svmbench.experiment.plan import statements

PLAIN = '''
"""What it is for."""

import math
from svmbench.core.base import TrainingData

LIMIT = 3


@cached(size=2)
class Sum:
    """A sum."""

    kind: str = "sum"

    def of(self, values, *, start=1.0):
        """Add them."""
        total = start
        for value in values:
            total += value  # one by one
        "this string decides nothing either, but is no docstring"
        return f"{total:>{LIMIT}}" if total < LIMIT else None


async def later(x: int = 0):
    """Wait."""
    return await x
'''


def digest(text: str) -> str:
    return statements.parse_source(text.encode()).digest


def edited(old: str, new: str) -> str:
    assert old in PLAIN
    return PLAIN.replace(old, new, 1)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"""What it is for."""', '"""Something\n\nelse.\n"""'),
        ('"""What it is for."""', ""),
        ('"""A sum."""', "'Another.'"),
        ('        """Add them."""\n', ""),
        ('"""Wait."""', '"""Wait for it."""'),
        ("  # one by one", ""),
        ("LIMIT = 3", "# A limit.\n\n\nLIMIT = (\n    3\n)"),
        (
            "self, values, *, start=1.0",
            "\n        self,\n        values,\n        *,\n start=1.0,\n",
        ),
        ('"sum"', "'sum'"),
        ('"sum"', '"su" "m"'),
    ],
)
def test_how_it_is_said_does_not_matter(old: str, new: str) -> None:
    assert digest(edited(old, new)) == digest(PLAIN)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("LIMIT = 3", "LIMIT = 4"),
        ("LIMIT = 3", "LIMIT = 3.0"),
        ("LIMIT = 3", 'LIMIT = "3"'),
        ("LIMIT = 3", "LIMIT = 3\nLIMIT = 3"),
        ("start=1.0", "start=2.0"),
        ("start=1.0", "start"),
        ("values, *, start", "values, start"),
        ("total < LIMIT", "total <= LIMIT"),
        ("+=", "-="),
        ("@cached(size=2)\n", ""),
        ("@cached(size=2)", "@cached(size=3)"),
        ("kind: str", "kind: object"),
        ("x: int", "x: float"),
        (":>{LIMIT}", ":<{LIMIT}"),
        ("{total:", "{total!r:"),
        ('"this string decides nothing either, but is no docstring"', "pass"),
        ("else None", 'else "None"'),
        ("else None", "else False"),
        ("async def later(x: int = 0):", "def later(x: int = 0):"),
        ("await x", "x"),
        ("return f", "total = f"),
        ("import math", "import cmath"),
        ("class Sum:", "class Sum(Base):"),
    ],
)
def test_what_it_says_matters(old: str, new: str) -> None:
    assert digest(edited(old, new)) != digest(PLAIN)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a\nb", "a(b)"),
        ("if a:\n b\nc", "if a:\n b\n c"),
        ("if a:\n b\nelse:\n c", "if a:\n b\n c"),
        ("{**a, b: c}", "{a: c, **b}"),
        ("def f(a, /, b): pass", "def f(a, b, /): pass"),
        ("def f(*, a, b=1): pass", "def f(*, a=1, b): pass"),
        ("def f(*, a): pass", "def f(*, a=None): pass"),
        ("{**a}", "{None: a}"),
        ("def f(): return", "def f(): return None"),
        ("if a:\n 'b'\n c", "if a:\n c"),
        ("def f():\n 1\n return 2", "def f():\n return 2"),
        ("global a, b", "global a\nglobal b"),
        ("from . import a", "from .. import a"),
        ("x = 'a b'", "x = 'a', 'b'"),
        ("x[1:]", "x[:1]"),
        ("-1", "1"),
        ("x = -0.0", "x = 0.0"),
        ("b'a'", "1\n'a'"),
    ],
)
def test_two_files_that_decide_otherwise_are_told_apart(one: str, other: str) -> None:
    assert digest(one) != digest(other)


def test_every_file_of_the_package_is_told_from_every_other() -> None:
    """And what is said is all that is parsed: unparsed and read again, it is the same."""
    files = sorted((PACKAGE / "core").rglob("*.py"))
    found = [statements.parse_source(path.read_bytes()).digest for path in files]
    full = [hashed for hashed in found if hashed != digest("")]  # the others have a docstring alone
    assert len(set(full)) == len(full) > 75
    for path, hashed in list(zip(files, found, strict=True))[::10]:
        assert digest(ast.unparse(ast.parse(path.read_bytes()))) == hashed, path


def test_the_hash_is_one_under_every_version_of_python() -> None:
    """Read under 3.11, 3.12 and 3.13; another value means that all kept results look stale."""
    text = PLAIN + "\nmatch a:\n    case {'b': [1, *_], **c} if c: x = lambda *d: (yield)\n"
    assert digest(text) == "8e66121f9e86eda36b811df5ac3bea7893e942c69c6c985c64b72c7403f34015"


def test_a_module_that_moves_changes_no_hash() -> None:
    """Its path, and where its import is sorted, are not what a file decides; names are."""
    own = "from svmbench.core.base import Base\nfrom svmbench.core.qp import solve, trace as log\n"
    text = f"import math\n{own}def f():\n    from svmbench.errors import Wrong\n    return Wrong\n"
    moved = (
        "import math\nfrom svmbench.core.numeric.qp import trace as log, solve\n"
        "from svmbench.core.contract.solver import Base\n"
        "def f():\n    from svmbench.base.errors import Wrong\n    return Wrong\n"
    )
    assert digest(moved) == digest(text)
    assert (
        statements.parse_source(moved.encode()).imports
        != statements.parse_source(text.encode()).imports
    )
    for old, new in [
        ("Base\n", "Other\n"),
        ("trace as log", "trace"),
        ("trace as log", "trace as told"),
        ("solve, ", ""),
        ("import Wrong", "import Wrong as Wrong"),
        ("import math", "import cmath as math"),
        ("from svmbench.core.base", "from other.core.base"),
    ]:
        assert old in text
        assert digest(text.replace(old, new)) != digest(text), (old, new)


def test_imports_are_found_wherever_they_stand() -> None:
    text = "import a.b, c\nfrom d import e, f as g\ndef h():\n    from i.j import k\n    import l\n"
    text += "from . import own\nfrom .own import own\n"
    assert statements.parse_source(text.encode()).imports == (
        ("a.b", ()),
        ("c", ()),
        ("d", ("e", "f")),
        ("i.j", ("k",)),
        ("l", ()),
        (".", ("own",)),
        (".own", ("own",)),
    )


def test_what_is_no_python_is_an_error() -> None:
    with pytest.raises(SyntaxError):
        statements.parse_source(b"def")


@pytest.fixture
def emptied(private_cache: Path) -> Iterator[Path]:
    """Return the cache's file, which is not there yet; this process has parsed nothing."""
    entries = CachedEntries("statements", statements.__file__)
    with patch.object(statements, "_parsed", entries):
        yield entries.place()
    atexit.unregister(entries.write)


def test_a_later_process_parses_no_kept_file(
    emptied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = b"import a\nfrom b import c, d\nx = 1\n"
    parsed = statements.parse_source(content)
    assert statements.kept_source(content) == parsed
    statements._parsed.write()
    assert emptied.exists()
    statements._parsed.new.clear()
    monkeypatch.setattr(statements, "parse_source", lambda _: pytest.fail("parsed again"))
    assert statements.kept_source(content) == parsed
    with pytest.raises(pytest.fail.Exception, match="again"):
        statements.kept_source(content + b"y = 2\n")


@pytest.mark.parametrize("damage", [b"", b"[]", b"\xff", b'{"NAME": 1}', b'{"NAME": ["a", [1]]}'])
def test_a_damaged_cache_is_none(emptied: Path, damage: bytes) -> None:
    name = hashlib.sha256(b"x = 1\n").hexdigest()
    emptied.parent.mkdir(parents=True)
    emptied.write_bytes(damage.replace(b"NAME", name.encode()))
    assert statements.kept_source(b"x = 1\n") == statements.parse_source(b"x = 1\n")
    statements._parsed.write()
    kept = json.loads(emptied.read_bytes())[name]
    assert kept == [statements.parse_source(b"x = 1\n").digest, []]


def test_a_cache_that_cannot_be_written_is_no_error(emptied: Path) -> None:
    emptied.parent.parent.mkdir(parents=True)
    emptied.parent.write_text("no folder")
    statements.kept_source(b"x = 1\n")
    statements._parsed.write()
