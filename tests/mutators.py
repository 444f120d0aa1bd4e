"""What damages a file: bits, pieces, words, lines, and values of JSON.

A mutator makes of a file's content, and a generator of random numbers, another content.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable
from typing import Any

Mutator = Callable[[bytes, random.Random], bytes]

# fmt: off
NASTY = [
    b"\x00", b"\x1b[2J", b"\xff\xfe", b"\xef\xbb\xbf", b"\r", b"\n\n", b"", b" ", b"\t", b"-",
    b"+", b"nan", b"inf", b"-1", b"0", b"1e400", b"1" * 400, b"9" * 5000, b"1_0", b"0x10",
    b"\xe2\x80\xa8", b"../../x", b"=1+1", b"<script>", b"null", b"true", b"[]", b"{}", b'""',
    b"[" * 60, b"{" * 60, b"*a", b"&a", b"<<: *a", b"!!int abc", b"!!timestamp z", b"1:1", b"qid:3",
    b"#", b'"', b"'", b":", b"a" * 3000, b",", b";", b"\\", b"\x80", b"2147483648", b"4294967295",
    b"18446744073709551616",
]
JSON_VALUES = [
    b"null", b"true", b"[]", b"{}", b'""', b"0", b"-1", b"1e308", b"[[1]]", b'{"a": 1}', b'"=1+1"',
    b'"\\u001b[2J"', b'"<b>"', b'"../x"', b'"\\ud800"',
]
# fmt: on


def flip(content: bytes, chooser: random.Random) -> bytes:
    """Change one to four bits."""
    changed = bytearray(content)
    for _ in range(chooser.randint(1, 4)):
        changed[chooser.randrange(len(changed))] ^= 1 << chooser.randrange(8)
    return bytes(changed)


def flip_in_words(content: bytes, chooser: random.Random) -> bytes:
    """Change one to four bits, half of the times only where a letter or digit remains one.

    Anywhere in text most changed bits end its grammar: a blank becomes a control character.
    """
    if chooser.random() < 0.5:
        return flip(content, chooser)
    places = [i for i, byte in enumerate(content) if chr(byte).isalnum() and byte < 128]
    changed = bytearray(content)
    for _ in range(chooser.randint(1, 4) if places else 0):
        at, bit = chooser.choice(places), 1 << chooser.randrange(6)
        if chr(changed[at] ^ bit).isalnum():
            changed[at] ^= bit
    return bytes(changed)


def cut(content: bytes, chooser: random.Random) -> bytes:
    """Leave out a piece, or the end."""
    start = chooser.randrange(len(content))
    stop = min(len(content), start + chooser.choice([1, 2, 8, 64, len(content)]))
    return content[:start] + content[stop:]


def repeat(content: bytes, chooser: random.Random) -> bytes:
    """Put a piece in a second time, somewhere."""
    start, at = chooser.randrange(len(content)), chooser.randrange(len(content))
    piece = content[start : start + chooser.choice([1, 4, 40, 400])]
    return content[:at] + piece * chooser.choice([1, 1, 2, 30]) + content[at:]


def repeat_in_words(content: bytes, chooser: random.Random) -> bytes:
    """Put a piece in a second time, half of the times a word after itself."""
    if chooser.random() < 0.5:
        return repeat(content, chooser)
    start, stop = chooser.choice(_words(content))
    if content[start] == content[stop - 1] == ord('"'):
        start, stop = start + 1, stop - 1
    return content[:stop] + content[start:stop] * chooser.choice([1, 1, 2, 30]) + content[stop:]


def put(content: bytes, chooser: random.Random) -> bytes:
    """Put something nasty in, or in the place of a few bytes."""
    at = chooser.randrange(len(content))
    return content[:at] + chooser.choice(NASTY) + content[at + chooser.choice([0, 0, 1, 4]) :]


def replace_word(content: bytes, chooser: random.Random) -> bytes:
    """Put something nasty in the place of a word."""
    words = _words(content)
    start, stop = chooser.choice(words)
    return content[:start] + chooser.choice(NASTY) + content[stop:]


def replace_json_word(content: bytes, chooser: random.Random) -> bytes:
    """Put a value of JSON, mostly, in the place of a word."""
    start, stop = chooser.choice(_words(content))
    return content[:start] + chooser.choice(3 * JSON_VALUES + NASTY) + content[stop:]


def swap_words(content: bytes, chooser: random.Random) -> bytes:
    """Put a word in the place of another."""
    words = _words(content)
    (start, stop), (first, last) = chooser.choice(words), chooser.choice(words)
    return content[:start] + content[first:last] + content[stop:]


def shuffle_lines(content: bytes, chooser: random.Random) -> bytes:
    """Move, drop and repeat some lines."""
    lines = content.split(b"\n")
    for _ in range(chooser.randint(1, 3)):
        line = lines.pop(chooser.randrange(len(lines))) if len(lines) > 1 else lines[0]
        for _ in range(chooser.choice([0, 1, 1, 2])):
            lines.insert(chooser.randrange(len(lines) + 1), line)
    return b"\n".join(lines)


def _words(content: bytes) -> list[tuple[int, int]]:
    stops = [i for i, byte in enumerate(content) if byte in b" \t\n,:;=[]{}()"]
    edges = [-1, *stops, len(content)]
    found = [(a + 1, b) for a, b in itertools.pairwise(edges) if b > a + 1]
    return found or [(0, len(content))]


ODD_VALUES: list[Any] = [
    None, True, False, 0, -1, 3.5, 1e308, 10**400, -(2**63), "", "x", "a\nb", "\x1b[31m", "=1+1",
    "<b>", "../x", "\ud800", [], [1], [[]], {}, {"a": 1}, {"": None}, "9" * 500,
]  # fmt: skip


def change_value(content: bytes, chooser: random.Random) -> bytes:
    """Put a value of another kind at a place in JSON; in a file of lines, in one of them."""
    lines = content.splitlines()
    at = chooser.randrange(len(lines)) if _is_lines(lines) else -1
    whole = json.loads(lines[at] if at >= 0 else content)
    places: list[tuple[Any, Any]] = []
    todo = [whole]
    while todo:
        each = todo.pop()
        keys = list(each) if isinstance(each, dict) else range(len(each))
        places += [(each, key) for key in keys]
        todo += [each[key] for key in keys if isinstance(each[key], dict | list)]
    for _ in range(chooser.randint(1, 2)):
        holder, key = chooser.choice(places)
        what = chooser.random()
        try:
            if what < 0.15:
                del holder[key]
            elif what < 0.25 and isinstance(holder, dict):
                holder[chooser.choice(["", "x", "key", "\x1b"])] = chooser.choice(ODD_VALUES)
            else:
                holder[key] = chooser.choice(ODD_VALUES)
        except (KeyError, IndexError):
            continue
    text = json.dumps(whole).encode()
    return b"\n".join([*lines[:at], text, *lines[at + 1 :], b""]) if at >= 0 else text


def _is_lines(lines: list[bytes]) -> bool:
    return len(lines) > 1 and lines[0].startswith(b"{") and lines[0].endswith(b"}")


BYTES = (flip, cut, repeat, put)
TEXT = (flip_in_words, cut, repeat, put, replace_word, swap_words, shuffle_lines)
JSON = (
    *(change_value, change_value, flip_in_words, cut, repeat_in_words, put),
    *(replace_json_word, swap_words, shuffle_lines),
)
