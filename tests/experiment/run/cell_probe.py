"""What a cell does in its worker: calls of the worker's functions, observed from inside."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import threadpoolctl


def probed(function: Callable[..., Any], args: tuple[Any, ...], folder: str) -> Any:
    """Call a worker's function; write its imports, and how often it looked for thread pools."""
    before = set(sys.modules)
    with patch.object(
        threadpoolctl.ThreadpoolController,
        "_load_libraries",
        autospec=True,
        side_effect=threadpoolctl.ThreadpoolController._load_libraries,
    ) as looked:
        reply = function(*args)
    facts = {
        "function": function.__name__,
        "imported": sorted(set(sys.modules) - before - {"cell_probe"}),
        "looks": looked.call_count,
    }
    Path(folder, f"{os.getpid()}.json").write_text(json.dumps(facts))
    return reply
