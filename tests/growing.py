"""Files grown from what they may say: from schemas and shapes, not from files that exist.

Every value is drawn anew: mostly of its kind, now and then a number without measure, a long text, a
long list of one thing, or something of another kind.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from typing import Any

Draw = random.Random

# fmt: off
#: What texts of no other rule are drawn from, by the key that they stand under.
WORDS: dict[str, list[str]] = {
    "name": ["a", "b", "c", "iris", "breast-cancer"], "block": ["a", "b", "c"],
    "datasets": ["iris", "breast-cancer", "a"], "dataset": ["iris", "a9a", "a"],
    "solver": ["csvc", "alsvm", "csvc|alsvm"], "kernel": ["linear", "rbf", "x"],
    "metrics": ["train_time_s", "accuracy_pct", "ratio", "cpu_time_s"],
    "rows": ["dataset", "rows", "size", "solver.C"], "columns": ["solver", "metric", "kernel"],
    "x": ["rows", "params.C", "solver.C", "cpu_time_s"], "y": ["train_time_s", "accuracy_pct"],
    "series": ["solver", "kernel"], "published": ["table1", "table2"],
    "scores": ["accuracy", "auc", "f1"], "select_by": ["accuracy", "auc"],
    "status": ["ok", "failed", "timeout", "planned", "unavailable"], "protocol": ["cv", "race"],
    "key": ["k1", "k2", "k3", "k4"], "kind": ["cell", "point"], "paper": ["smo", "cpsp", ""],
    "unit": ["s", "%"], "better": ["lower", "higher"], "environment": ["4be1c0de"],
    "crossing": ["csvc", "alsvm"], "file": ["/dev/null", "x.csv"], "url": ["https://x.org/a.svm"],
    "sha256": ["0" * 64], "label": ["first", "last", "csvc", "x"], "separator": [",", "whitespace"],
    "builtin": ["linear", "separable", "noise", "gaussians", "circle", "spiral", "clusters"],
    "normal": ["1", "a"], "positive": ["1", "a"], "select": ["1", "a"], "missing": ["?", ""],
    "folder": ["a", "b"], "folds": ["2"], "program": ["cat {train} {model}"],
    "predict": ["cat {test} {predictions} {model}"], "class": ["sklearn.svm.NuSVC", "x.Y"],
}
#: Keys of mappings that may have any.
KEYS: dict[str, list[str]] = {
    "grid": ["C", "gamma", "tol", "kernel"], "params": ["C", "gamma", "tol", "csvc", "max_iter"],
    "search": ["tol", "stop"], "sweep": ["rows", "features", "solver.C", "solver.gamma"],
    "profiles": ["quick", "paper", "all"],
    "metrics": ["train_time_s", "accuracy_pct", "cpu_time_s"],
    "spread": ["train_time_s"], "dimensions": ["rows", "solver.C"], "encode": ["1", "2", "x"],
    "parameters": ["n_samples", "n_features", "seed", "density", "noise", "n_positive"],
    "papers": ["smo", "cpsp"], "counters": ["n_iter"], "undefined": ["auc_pct"],
}
TEXTS = ["", "x", "a b", "1", "50%", "200%", "=1+1", "~nosuchuser", "../x", "{", "é"]
# fmt: on

NUMBERS = (0, 1, 2, 3, 5, 10, 100, 0.5, 1e-3)
#: Without measure: of counts, of sizes, of what is computed from them.
VAST = (
    *(10**4, 10**6, 10**9, 2**31 - 1, 2**31, 2**53, 2**63 - 1, 2**63, 10**18, 10**30, -1, -(10**9)),
    *(1e-300, 1e308, float("inf"), float("nan")),
)
#: Bytes of a grown file: beyond it, readers look at the size alone.
MOST_BYTES = 64 << 20
#: Bytes of a grown config, four times what one may have; PyYAML writes some 200 kB in a second.
MOST_BYTES_YAML = 512 << 10
#: Bytes that a value takes in a file beside the characters of its text: signs, blanks, digits.
BYTES_PER_VALUE = 4
LENGTHS = (200, 201, 3_000, 60_000)
#: Columns of a wide table; to read one takes seconds, so that one file in thirty is such a table.
WIDE = (20_000, 100_001)


class Grower:
    """Draws values that fit a JSON schema, most of the time.

    Parameters
    ----------
    chooser : random.Random
    definitions : mapping
        What the schema's references stand for.
    most : int, default 64 MiB
        How many bytes all repeated values may take in a file, about. A list in a list in a list
        may be repeated 3,000 times at each level; the last that does not fit is repeated less.
    """

    def __init__(
        self, chooser: Draw, definitions: Mapping[str, Any], most: int = MOST_BYTES
    ) -> None:
        self.chooser = chooser
        self.definitions = definitions
        self.left = most
        #: The share of values that are odd, one for the whole file: with many, none is deep.
        self.oddness = chooser.choice([0.0, 0.0, 0.01, 0.03, 0.1])

    def grow(self, schema: Mapping[str, Any], key: str = "", depth: int = 0) -> Any:
        """Return a value for a schema that stands under a key."""
        chooser = self.chooser
        if chooser.random() < self.oddness:
            return self.odd(key)
        if "$ref" in schema:
            return self.grow(self.definitions[schema["$ref"].rpartition("/")[2]], key, depth)
        for union in ("oneOf", "anyOf"):
            forms = [form for form in schema.get(union, ()) if form.keys() != {"required"}]
            if forms:
                return self.grow(chooser.choice(forms), key, depth)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return chooser.choice(schema["enum"])
        kinds = schema.get("type", "string")
        kind = chooser.choice(kinds) if isinstance(kinds, list) else kinds
        if kind == "object":
            return self._mapping(schema, key, depth)
        if kind == "array":
            return self._list(schema, key, depth)
        if kind in ("integer", "number"):
            low = schema.get("minimum", schema.get("exclusiveMinimum", 0))
            fits = [n for n in NUMBERS if n >= low and (kind == "number" or n == int(n))]
            return chooser.choice(fits or [low])
        if kind == "boolean":
            return chooser.random() < 0.5
        return None if kind == "null" else chooser.choice(WORDS.get(key, TEXTS))

    def _mapping(self, schema: Mapping[str, Any], key: str, depth: int) -> dict[str, Any]:
        chooser = self.chooser
        properties = schema.get("properties", {})
        most = 0.9 if depth < 2 else 0.25
        wanted = schema.get("required", ())
        if key == "solvers" and "class" in properties:
            wanted = [chooser.choice(["name", "name", "name", "class"])]
            properties = {k: v for k, v in properties.items() if k not in ("program", "predict")}
            properties = {k: v for k, v in properties.items() if k in wanted or k != "class"}
        found = {
            name: self.grow(each, name, depth + 1)
            for name, each in properties.items()
            if name in wanted or chooser.random() < most
        }
        further = schema.get("additionalProperties")
        if isinstance(further, dict) or (further is not False and not properties):
            for name in dict.fromkeys(
                chooser.choices(KEYS.get(key, TEXTS), k=chooser.choice([0, 1, 1, 2]))
            ):
                of = further if isinstance(further, dict) else {"type": ["number", "string"]}
                found[name] = self.grow(of, key if key == "params" else name, depth + 1)
        if chooser.random() < self.oddness / 4:
            found[chooser.choice(["x", "\x1b", "k" * chooser.choice(LENGTHS), ""])] = self.odd(key)
        return found

    def _list(self, schema: Mapping[str, Any], key: str, depth: int) -> list[Any]:
        chooser = self.chooser
        forms = schema.get("prefixItems")
        if forms:
            return [self.grow(form, key, depth + 1) for form in forms]
        items = schema.get("items", {"type": "number"})
        number = max(schema.get("minItems", 0), chooser.choice([0, 1, 1, 2, 3]))
        made = [self.grow(items, key, depth + 1) for _ in range(number)]
        if made and chooser.random() < self.oddness:
            times, takes = chooser.choice([100, 1000, 3000]), bytes_of(made, self.left)
            times = min(times, 1 + self.left // takes)
            self.left -= (times - 1) * takes
            return made * times
        return made

    def odd(self, key: str) -> Any:
        """Return something without measure, or of another kind."""
        chooser = self.chooser
        what = chooser.random()
        if what < 0.4:
            return chooser.choice(VAST)
        if what < 0.55:
            return chooser.choice("1ax .-:_=") * chooser.choice(LENGTHS)
        if what < 0.7:
            start = chooser.choice([0, -(10**9), -5])
            stop = chooser.choice([5, 199, 999, 10**6, 10**9])
            base = chooser.choice([1, 1.0001, 2, 1e-300])
            return {"base": base, "exponents": {"start": start, "stop": stop}}
        if what < 0.8:
            return [chooser.choice(WORDS.get(key, TEXTS))] * chooser.choice([0, 1, 100, 3000])
        return chooser.choice([None, True, "", [], {}, [[]], {"": None}, {"a": {"a": {}}}, "a.b"])


def bytes_of(value: Any, most: int) -> int:
    """Return how many bytes a value takes in a file, about; some number above `most` if more."""
    found, todo = 0, [value]
    while todo and found <= most:
        each = todo.pop()
        found += BYTES_PER_VALUE + (len(each) if isinstance(each, str) else 0)
        if isinstance(each, Mapping):
            todo += [*each, *each.values()]
        elif isinstance(each, list):
            todo += each
    return found


def grown(schema: Mapping[str, Any], chooser: Draw, most: int = MOST_BYTES) -> Any:
    """Return a value grown from a JSON schema; `most` is as for :class:`Grower`."""
    return Grower(chooser, schema.get("$defs", {}), most).grow(schema)


def of_shape(shape: Any) -> dict[str, Any]:
    """Return the JSON schema of a shape of the report (``svmbench.report.reading.shapes``)."""
    names = {str: "string", int: "integer", float: "number", bool: "boolean"}
    if isinstance(shape, Mapping):
        properties = {key: of_shape(each) for key, each in shape.items() if key != "*"}
        further = of_shape(shape["*"]) if "*" in shape else False
        return {"type": "object", "properties": properties, "additionalProperties": further}
    if isinstance(shape, list):
        return {"type": "array", "items": of_shape(shape[0])}
    kinds = shape if isinstance(shape, tuple) else (shape,)
    return {"type": [names[kind] for kind in kinds]}


def as_toml(value: Any) -> str:
    """Return a value as TOML writes it on one line; what it has no word for is empty text."""
    if isinstance(value, Mapping):
        said = (f"{_text(k)} = {as_toml(v)}" for k, v in value.items() if v is not None)
        return "{" + ", ".join(said) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(as_toml, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value).replace("e+", "e")
    return _text("" if value is None else str(value))


def _text(text: str) -> str:
    return json.dumps(text).replace("\x7f", "\\u007f")


def table_text(chooser: Draw) -> bytes:
    """Return a table or LIBSVM rows: now and then very wide, very long, of long words, or blank."""
    vast = chooser.random() < 0.15
    columns = chooser.choice([*WIDE, *8 * [3]] if vast else [1, 2, 3, 5])
    rows = chooser.choice([2, 50_000, 300_000] if vast and columns < 10 else [1, 2, 6, 30])
    long = chooser.random() < 0.1
    words = ["1", "0", "2.5", "-1e3", *chooser.choice([["?"], ["a"], ["nan", '"x'], ["", " "], []])]
    words += ["9" * chooser.choice(LENGTHS)] if chooser.random() < 0.05 else []
    sign = chooser.choice([",", ",", ",", " ", ";"])
    is_svm = chooser.random() < 0.4

    def row() -> str:
        label = chooser.choice(["1", "-1", "a", "b"] if not is_svm else ["1", "-1"])
        if long and chooser.random() < 0.3:
            label = "x" * chooser.choice(LENGTHS)
        if is_svm:
            index = chooser.choice([1, 3, 64, 10**6, 2**31 - 1] if vast else [1, 2, 5])
            return f"{label} {index}:{chooser.choice(words)}"
        return sign.join([*chooser.choices(words, k=columns), label])

    some = [row() for _ in range(min(rows, 50 if columns < 100 else 2))]
    text = "\n".join(
        some[i % len(some)] for i in range(min(rows, 3_000_000 // max(map(len, some)) + 2))
    )
    before, after = (chooser.choice(["", "", "\n", " \n\n", "\r\n"]) for _ in range(2))
    return (before + text + after).encode()


Mutate = Callable[[bytes, Draw], bytes]


def from_schema(
    schema: Callable[[], Mapping[str, Any]], write: Callable[[Any], str], most: int = MOST_BYTES
) -> Mutate:
    """Return what grows a file, whatever it is given; `most` is as for :class:`Grower`."""

    def grow(_content: bytes, chooser: Draw) -> bytes:
        return write(grown(schema(), chooser, most)).encode("utf-8", "replace")[:MOST_BYTES]

    return grow
