"""The numbers that a paper prints: every one is laid out, also those that nothing made again."""

from __future__ import annotations

import pytest

from svmbench.base.paper_folders import papers
from svmbench.report.reading.published import numbers
from svmbench.site.printed_tables import printed_tables

WITH_NUMBERS = [key for key in papers() if numbers(key)]


@pytest.mark.parametrize("key", WITH_NUMBERS)
def test_every_printed_number_has_a_cell(key: str) -> None:
    tables = printed_tables(key)
    shown = sorted(
        (one.name, float(cell.replace(",", "")))
        for one in tables
        for _, cells in one.rows
        for cell in cells
        if cell
    )
    assert shown == sorted((one.table, one.value) for one in numbers(key))
    assert [one.count for one in tables] == [sum(map(_filled, one.rows)) for one in tables]
    for one in tables:
        for names, cells in one.rows:
            assert (len(names), len(cells)) == (len(one.fields), len(one.heads))


def _filled(row: tuple[tuple[str, ...], list[str]]) -> int:
    return sum(map(bool, row[1]))


def test_the_c_svm_and_the_signed_ranks_of_srbo_are_shown() -> None:
    tables = {one.name: one for one in printed_tables("srbo")}
    cells = 0
    for name in ("table4", "table5"):
        one = tables[name]
        places = [k for k, head in enumerate(one.heads) if head.startswith("c-svm: ")]
        assert len(places) == 2
        cells += sum(bool(row[k]) for _, row in one.rows for k in places)
    assert cells == 78
    twelve = tables["table12"]
    assert (twelve.title, twelve.fields[:2]) == ("Table 12", ["data set", "kernel"])
    where = twelve.heads.index("nu-svm: wilcoxon p")
    assert {names: row[where] for names, row in twelve.rows if row[where]} == {
        ("small", "linear"): "0.0402",
        ("small", "rbf"): "0.0007",
    }


def test_a_table_names_where_its_numbers_stand_beside_measured_ones() -> None:
    made = [("table2", "Table II again", "run-table2"), ("table9", "Another", "x")]
    tables = {one.name: one for one in printed_tables("alsvm", made)}
    assert tables["table2"].made_in == [("Table II again", "run-table2")]
    assert tables["table1"].made_in == []
    assert printed_tables("nobody") == []
