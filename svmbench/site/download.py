"""Write all records as one CSV, with a Croissant description (JSON-LD) beside it."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from svmbench.base import escape
from svmbench.report.numbers.summary import metric_names, value_of
from svmbench.report.output.builder import Content
from svmbench.report.reading.records import split_races

#: Names of the files.
_CSV, _CROISSANT = "records.csv", "croissant.json"
#: The columns before those of the metrics, and their meanings.
_IDENTITY = {
    "run": "name of the run on this site",
    "config": "config of the run",
    "paper": "key of the paper, if any",
    "profile": "profile of the run: quick, paper …",
    "block": "block of the config",
    "dataset": "data set",
    "kernel": "kernel",
    "dimensions": "swept dimensions, as JSON",
    "solver": "label of the solver in the config; 'a vs b' for the ratio of a race",
    "declared_solver": "name of the solver behind the label",
    "fold": "outer fold, if any",
    "status": "ok, or the reason why there are no values",
    "environment": "id of the machine and its libraries",
}
#: The context of Croissant 1.0, as far as this description uses it.
_CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "recordSet": "cr:recordSet",
    "field": "cr:field",
    "source": "cr:source",
    "fileObject": "cr:fileObject",
    "extract": "cr:extract",
    "column": "cr:column",
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
}


def write_download(
    contents: Sequence[tuple[str, Content]], declared: Any, folder: Path, *, about: dict[str, str]
) -> int:
    """Write the CSV and its description; return the number of rows.

    Parameters
    ----------
    contents : sequence of (str, Content)
        Runs with their slugs.
    declared : callable
        From a config and a label to the name of a declared solver.
    folder : Path
        Where the files go.
    about : dict of str to str
        Fields of the description: version, url; empty ones are left out.
    """
    cells = [
        (slug, content.run, cell)
        for slug, content in contents
        for cell in split_races(content.run.cells)
    ]
    metrics = sorted(metric_names([cell for _, _, cell in cells]))
    path = folder / _CSV
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(map(escape.csv_field, [*_IDENTITY, *metrics]))
        for slug, run, cell in cells:
            row = [
                slug, run.name, cell.paper, run.profile, cell.block, cell.dataset, cell.kernel,
                json.dumps(dict(cell.dimensions), sort_keys=True) if cell.dimensions else "",
                cell.solver, declared(run.name, cell.solver or ""), cell.fold, cell.status,
                cell.environment,
            ]  # fmt: skip
            texts = [escape.csv_field("" if field is None else str(field)) for field in row]
            values_of = {name: value_of(cell, name) for name in (*cell.metrics, *cell.counters)}
            values = (values_of.get(metric) for metric in metrics)
            writer.writerow(
                [*texts, *("" if value is None else f"{value:.10g}" for value in values)]
            )
    described = _croissant(path, metrics, about)
    text = json.dumps(described, indent=1, ensure_ascii=False)
    (folder / _CROISSANT).write_text(text + "\n", encoding="utf-8")
    return len(cells)


def _croissant(path: Path, metrics: Iterable[str], about: dict[str, str]) -> dict[str, Any]:
    """Return the Croissant 1.0 description of the CSV."""
    content = path.read_bytes()
    fields = [(name, meaning, "sc:Text") for name, meaning in _IDENTITY.items()]
    fields += [(name, f"metric or counter {name}", "sc:Float") for name in metrics]
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": "svmbench-records",
        "description": "One row for each fit of the runs on this site: data set, solver, setting, "
        "times, accuracies, objectives and counters.",
        "license": "https://spdx.org/licenses/BSD-3-Clause.html",
        "creator": {"@type": "Organization", "name": "the svmbench maintainers"},
        **{key: value for key, value in about.items() if value},
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": _CSV,
                "name": _CSV,
                "contentUrl": _CSV,
                "contentSize": f"{len(content)} B",
                "encodingFormat": "text/csv",
                "sha256": hashlib.sha256(content).hexdigest(),
            }
        ],
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": "fits",
                "name": "fits",
                "field": [
                    {
                        "@type": "cr:Field",
                        "@id": f"fits/{name}",
                        "name": name,
                        "description": meaning,
                        "dataType": kind,
                        "source": {"fileObject": {"@id": _CSV}, "extract": {"column": name}},
                    }
                    for name, meaning, kind in fields
                ],
            }
        ],
    }
