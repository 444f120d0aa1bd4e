"""The six tasks of a contributor: their pages have the files that the script takes."""

from __future__ import annotations

from pathlib import Path

import pytest
from script_loading import load_script

six_tasks = load_script("six_tasks")
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", six_tasks.TASKS)
def test_a_page_has_the_files_of_its_task(name: str) -> None:
    task = six_tasks.TASKS[name]
    page = (ROOT / "docs" / task.page).read_text(encoding="utf-8")
    assert set(task.files) <= {file for file, _ in six_tasks.FENCE.findall(page)}
    assert task.files or task.edits
    for target in task.files.values():
        assert not (ROOT / target).exists()
    for target in set(task.edits) - set(task.files.values()):
        assert (ROOT / target).is_file()


def test_a_file_of_the_tree_imports_names_from_their_modules() -> None:
    text = "from svmbench.plugins import (\n    Format,\n    Kind,\n    declare_format,\n)\n"
    assert six_tasks.into_tree(text) == (
        "from svmbench.report.output.formats import Format, declare_format\n"
        "from svmbench.report.plots.kinds import Kind\n"
    )
