"""Write docs/datasets.md from datasets.toml: the facts about each data set beside the printed ones.

Run it after changing the registry::

    python scripts/datasets_md.py

A test compares the file with what this script would write.
"""

from __future__ import annotations

from pathlib import Path

from svmbench.base import escape
from svmbench.base.paper_folders import papers
from svmbench.data import card
from svmbench.data.entries import DatasetEntry, Statement
from svmbench.data.registry import registry

TARGET = Path(__file__).resolve().parent.parent / "docs" / "datasets.md"

INTRODUCTION = """\
# Data sets

`scripts/datasets_md.py` writes this page from `datasets.toml`. Change that file instead of this
page.

`svmbench list datasets` also shows which data sets are in your cache; `svmbench describe NAME`
shows all facts about one. A name may have a range of rows, counted from 0 (`a9a[:6414]`). It
may join training and test rows (`ijcnn1+test`), or do both (`ijcnn1+test[:90000]`).

**Classes.** Two classes have the labels −1 and +1, in this order in the tables below. More than
two classes have the labels 0 … k−1, in the numeric order of the file's labels (alphabetical if
the labels are words). If an entry names no positive class, the larger label is the positive
class.

**Verified.** The last column says how the files are verified:

- *sha256*: the checksum of the official file's uncompressed bytes is known.
- *md5*: the checksum of the official file as downloaded is known.
- *mirror*: the checksum belongs to a copy whose text was rebuilt from exact values; the
  official file itself is unverified.
- *unverified*: no copy was available yet. The numbers of rows and features (and of classes, if
  known) are compared with the file's page or with the paper, and the checksum is recorded at
  the first fetch.
- *generated*: there is no file.

**Storage.** A data set with more than 64 features and less than a third of non-zero values is
stored as CSR; all others are dense. Both are float64 and memory-mapped.
"""

#: If more classes than this have the same size, the page shows their number and their size.
MOST_LISTED_CLASSES = 20

ADDING = """\
## OpenML

`openml:40994` names a data set of [OpenML](https://www.openml.org) by its number, for `svmbench
try`, `time`, `race -d`, `describe` and `svmbench.load`. A config's entry may state the checksum:

```yaml
datasets:
  - {openml: 40994}
  - {openml: 1590, sha256: "<64 hexadecimal digits>", impute: true}
```

On the command line and in Python, the checksum stands behind an `@` (`openml:40994@<64
hexadecimal digits>`). It is the sha256 of the uncompressed ARFF file, which `svmbench describe
openml:40994` prints. If it differs, the data set is refused and nothing is kept.

scikit-learn's `fetch_openml` downloads a data set and compares the file with OpenML's md5. Its
answers are kept in `openml/NUMBER` of the cache, with the checksum of the first download, and are
read from there afterwards. If the kept copy is damaged, it is downloaded again. A mirror has no
data sets of OpenML; with `SVMBENCH_OFFLINE`, only kept ones are used. In a run, a data set that
can't be downloaded is marked `unavailable`. The records have a hash of the encoded rows and labels
(`data_sha256`), so a changed version of the data is rerun.

The columns are read as in a table of one's own. The label is the column that OpenML names, or
`label_column` (`--label`). Columns that OpenML declares as identifiers or to be ignored are left
out. Nominal values and text are one-hot encoded, or
`ordinal` with `text`. Missing values are refused and listed unless `impute` is given. A sparse
data set stays sparse; `try` doesn't take it. The first reading of a large file is slow; the
prepared arrays are kept.

## Adding a data set

    python scripts/new_dataset.py my.svm
    python scripts/new_dataset.py my.csv --reading 'format = "table", label = "first"'

This script prints the entry's checksum, shape, density and class counts as TOML. Paste them
into `datasets.toml`, and add title, homepage, licence and citation. Name the data set in the
`paper.toml` of each paper that uses it, with the printed counts (`german = { n_samples = 1000
}` below `[datasets]`; a count that differs from the data needs a `why`). Then run `python
scripts/datasets_md.py`. `svmbench/data/entries.py` describes the fields.

The tests give 3,000 random inputs to the parser of LIBSVM files, and 900 to the parsers of
tables and IDX files. `SVMBENCH_FUZZ=40000 pytest tests/data -k fuzz` runs 240,000 inputs in
all.
"""


def page() -> str:
    """Return the whole of docs/datasets.md."""
    parts = [INTRODUCTION]
    entries = registry()
    for paper in papers():
        used = {name: one for name, one in entries.items() if paper in one.papers}
        parts.append(f"## {paper}\n\n{_paper_table(paper, used)}")
    unused = {name: one for name, one in entries.items() if not one.papers}
    parts.append(f"## In no paper's table\n\n{_facts_table(unused)}")
    parts.append(
        "## Source and preparation of each data set\n\n"
        + "\n\n".join(map(_story, entries.values()))
        + "\n"
    )
    parts.append(ADDING)
    return "\n".join(parts)


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join([_row(head), _row(["---"] * len(head)), *map(_row, rows)]) + "\n"


def _number(value: int) -> str:
    return f"{value:,}"


def _counts(counts: list[int] | tuple[int, ...]) -> str:
    if len(counts) > MOST_LISTED_CLASSES and len(set(counts)) == 1:
        return f"{_number(len(counts))} × {_number(counts[0])}"
    return " / ".join(map(_number, counts)) if counts else "?"


def _verified(one: DatasetEntry) -> str:
    if one.builtin:
        return "generated"
    kinds = set()
    for file in one.files:
        if file.rebuilt and file.sha256:
            kinds.add("mirror")
        elif file.sha256:
            kinds.add("sha256")
        else:
            kinds.add("md5" if file.md5 else "unverified")
    return ", ".join(sorted(kinds))


def _paper_table(paper: str, used: dict[str, DatasetEntry]) -> str:
    rows = []
    for name, one in used.items():
        said = one.papers[paper]
        have = card.expected(one, said)
        rows.append(
            [
                f"`{name}`" + ("+test" if said.parts == "all" else ""),
                _printed_name(name, said),
                _number(have["n_samples"]),
                _number(have["n_features"]),
                _counts(have["counts"]),
                _states(said),
                _agreement(one, said),
                _verified(one),
            ]
        )
    head = [
        *("data set", "printed name", "rows", "features", "classes", "printed counts"),
        *("agreement", "verified"),
    ]
    return _table(head, rows)


def _printed_name(name: str, said: Statement) -> str:
    if said.stands_in_for:
        return f"*for {escape.markdown(said.stands_in_for)}*"
    return escape.markdown(said.published_as or name)


def _states(said: Statement) -> str:
    stated = card.stated(said)
    shape = [_number(stated[key]) for key in ("n_samples", "n_features") if key in stated]
    words = [" × ".join(shape)] if shape else []
    if "counts" in stated:
        words.append(_counts(stated["counts"]))
    return "; ".join(words) or "—"


def _agreement(one: DatasetEntry, said: Statement) -> str:
    if card.printed_differences(one, said):
        return f"**differs**: {escape.markdown(said.why)}"
    if said.why:
        return escape.markdown(said.why)
    if not card.stated(said):
        return ""
    return "agrees" if card.was_prepared(one) else "not seen yet"


def _facts_table(entries: dict[str, DatasetEntry]) -> str:
    rows = [
        [
            f"`{name}`",
            _number(one.n_samples),
            _number(one.n_test) if one.n_test else "",
            _number(one.n_features),
            _counts(one.counts),
            _verified(one),
        ]
        for name, one in entries.items()
    ]
    return _table(["data set", "rows", "test rows", "features", "classes", "verified"], rows)


def _story(one: DatasetEntry) -> str:
    lines = [f"**`{one.name}`** — {escape.markdown(one.title)}."]
    shape = f"{one.n_samples:,} × {one.n_features:,}"
    if one.n_test:
        shape += f", {one.n_test:,} test rows"
    if one.density is not None:
        shape += f", {100 * one.density:.3g} % non-zero"
    lines.append(f"{shape}.")
    lines += map(escape.markdown, card.derivation_in_words(one))
    lines += map(escape.markdown, one.notes)
    lines += [
        escape.markdown(f"{file.name}: {card.verification(file)}.")
        for file in one.files
        if file.rebuilt
    ]
    said = escape.markdown(f"{one.citation} Licence: {one.licence}.")
    lines.append(f"{said} <{escape.markdown_label(one.homepage)}>")
    return " ".join(lines)


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
    print(f"wrote {TARGET.name}")
