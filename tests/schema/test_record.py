"""Lines of ``runs.jsonl`` in every form that a version of the suite has written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from synthetic_runs import planned, record, write_run

from svmbench.report.reading.records import read_run
from svmbench.schema.record import MAX_RECORD_NAME_CHARS, RECORD_SCHEMA, parse_record

#: What each form lacks or has beside today's fields, oldest first.
FORMS: dict[str, tuple[set[str], dict[str, Any]]] = {
    # A sweep of rows is the field `size`; no reason of an end, no undefined scores.
    "rows as size": ({"dimensions", "stop_reason", "undefined", "warnings"}, {"size": 500}),
    # A sweep is a mapping; scores that have no value are not told yet.
    "dimensions": ({"undefined", "size"}, {"dimensions": {"rows": 500}}),
    # Today's.
    "undefined scores": (
        set(),
        {"dimensions": {"rows": 500}, "undefined": {"auc_pct": "all rows are of one class"}},
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_record_of_each_form_is_read(tmp_path: Path, form: str) -> None:
    without, more = FORMS[form]
    swept = {name: more[name] for name in ("size", "dimensions") if name in more}
    cell = planned("cv", "a9a", "alsvm", **swept)
    line = {**record(cell, {"train_time_s": 0.5, "accuracy_pct": 84.0}), **more}
    line = {name: value for name, value in line.items() if name not in without}
    assert parse_record(json.dumps(line).encode()) == line
    (found,) = read_run(write_run(tmp_path / "run", [cell], [line])).cells
    assert found.dimensions == {"rows": 500}
    assert found.metrics["accuracy_pct"] == 84.0


def test_a_record_of_a_version_to_come_is_passed_over() -> None:
    line = record(planned("cv", "a9a", "alsvm"), {"accuracy_pct": 84.0})
    assert parse_record(json.dumps(line).encode()) is not None
    assert parse_record(json.dumps({**line, "schema": RECORD_SCHEMA + 1}).encode()) is None
    del line["schema"]
    assert parse_record(json.dumps(line).encode()) is None


def test_a_name_is_no_longer_than_it_may_be() -> None:
    """Looked at in lines of any length that could hold one."""
    line = record(planned("cv", "a9a", "a" * MAX_RECORD_NAME_CHARS), {"accuracy_pct": 84.0})
    assert parse_record(json.dumps(line).encode()) is not None
    assert (
        parse_record(json.dumps({**line, "solver": "a" * (MAX_RECORD_NAME_CHARS + 1)}).encode())
        is None
    )
