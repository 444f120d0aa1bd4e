"""Print the checksum and counts of a new data set's files, as TOML for datasets.toml.

::

    python scripts/new_dataset.py train.svm --test test.svm
    python scripts/new_dataset.py my.csv.gz --reading 'format = "table", label = "first"'
    python scripts/new_dataset.py my.svm --derivation 'positive = ["1"]' --name mine

Reading and derivation are written as in an entry; what is printed went through the same code that
will prepare the set.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tomllib
from pathlib import Path
from typing import Any

from svmbench.base.errors import SvmbenchError
from svmbench.data import archives, dataset, prepare
from svmbench.data.derive import derive
from svmbench.data.entries import DatasetEntry, Derivation, Reading, SourceFile
from svmbench.data.fetch import Fetched


def main(arguments: list[str] | None = None) -> int:
    """Run the tool; return its exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__.partition("\n")[0] if __doc__ else None,
        epilog="Example: python scripts/new_dataset.py my.csv --reading 'format = \"table\"'",
    )
    parser.add_argument("train", nargs="+", type=Path, help="training files, joined in order")
    parser.add_argument("--test", nargs="*", type=Path, default=[], help="test files")
    parser.add_argument("--name", help="of the data set; default: the first file's name")
    parser.add_argument("--reading", default="", metavar="TOML", help="fields of `reading`")
    parser.add_argument("--derivation", default="", metavar="TOML", help="fields of `derivation`")
    given = parser.parse_args(arguments)
    try:
        print(entry_text(given.train, given.test, given.name, given.reading, given.derivation))
    except (SvmbenchError, OSError, ValueError) as error:
        print(f"new_dataset: {error}", file=sys.stderr)
        return 1
    return 0


def entry_text(
    train: list[Path], test: list[Path], name: str | None, reading: str, derivation: str
) -> str:
    """Return the entry's TOML, with everything that the files themselves tell.

    Parameters
    ----------
    train, test : list of Path
        The files of each part, plain or compressed.
    name : str or None
        Of the data set; None for the first file's name.
    reading, derivation : str
        The insides of TOML tables, as in an entry.
    """
    how = Reading.model_validate(_fields(reading))
    what = Derivation.model_validate(_fields(derivation))
    got = [_read(place, "train") for place in train] + [_read(place, "test") for place in test]
    name = name or got[0].file.name
    # The shape isn't known yet: any that is large enough lets the files be read.
    draft = DatasetEntry(
        name=name,
        title="?",
        task="binary",
        homepage="?",
        licence="?",
        citation="?",
        files=tuple(fetched.file for fetched in got),
        reading=how,
        n_samples=1,
        n_features=2**31 - 1,
        n_test=1 if test else 0,
    )
    train_part, test_part = prepare.read_entry_files(draft, got)
    if how.format == "libsvm":  # cut what the draft's shape added
        widest = max(
            int(part.X.indices.max()) + 1 if part.X.nnz else 1
            for part in (train_part, test_part)
            if part is not None
        )
        for part in (train_part, test_part):
            if part is not None:
                part.X.resize(part.X.shape[0], widest)
    derived = derive(name, train_part, test_part, what)
    facts = dataset.described(derived, {})
    task = "binary" if len(facts["classes"]) == 2 else "multiclass"
    files = "\n".join(
        f'  {{ name = {json.dumps(one.file.name)}, part = "{one.file.part}", url = "?", '
        f'sha256 = ["{one.sha256}"] }},'
        for one in got
    )
    lines = [
        f"[{json.dumps(name)}]",
        'origin = "?"  # libsvm, uci …: gives licence and homepage',
        'title = "?"',
        f'task = "{task}"',
        'citation = "?"',
        f"files = [\n{files}\n]",
        *([f"reading = {{ {reading} }}"] if reading else []),
        *([f"derivation = {{ {derivation} }}"] if derivation else []),
        f"n_samples = {facts['n_samples']}",
        f"n_features = {facts['n_features']}",
        f"density = {round(facts['density'], 4)}",
        f"counts = {facts['counts']}  # {', '.join(facts['classes'])}",
    ]
    if derived.y_test is not None:
        lines += [f"n_test = {facts['n_test']}", f"test_counts = {facts['test_counts']}"]
    return "\n".join(lines)


def _fields(text: str) -> dict[str, Any]:
    return tomllib.loads(f"fields = {{ {text} }}")["fields"] if text else {}


def _read(place: Path, part: str) -> Fetched:
    content = archives.decompressed(place.read_bytes(), place.name)
    name = place.name
    for suffix in archives.COMPRESSION_SUFFIXES[1:]:
        name = name.removesuffix(suffix)
    digest = hashlib.sha256(content).hexdigest()
    file = SourceFile(name=name, part=part, sha256=(digest,))  # type: ignore[arg-type]
    return Fetched(file, content, digest, "sha256", "mirror")


if __name__ == "__main__":
    sys.exit(main())
