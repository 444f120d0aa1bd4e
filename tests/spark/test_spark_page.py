"""The example of docs/spark.md, word for word."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "spark.md"


def test_the_python_of_the_page_runs(spark_home: Path) -> None:
    (example,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    names: dict[str, object] = {}
    exec(example, names)
    assert "search" in names
