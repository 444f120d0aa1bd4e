"""What a model is scored by: each score declared once, with all that others need to know of it.

A score is a function from an :class:`Exam` (a fitted model, the rows it is tested on, and what it
says of them) to a number; :func:`score` enters it into :data:`SCORES` with its unit, its direction
and the gate's tolerance. Protocols call :func:`evaluate`; plans carry :func:`describe`, from which
tables, plots and comparisons learn the rest.

A score may be undefined on some rows: the area under the curve of one class is no number. Its
function then raises :class:`Undefined` with the reason, which is recorded in the value's place. No
score is ever NaN, and none that is undefined costs a cell its result.

The contract is in ``contract.py``, with accuracy. The other scores that ship stand in
``measures.py`` (of predictions and decision values), ``calibration.py`` (of probabilities) and
``costs.py`` (a model's size, time).
"""

from __future__ import annotations

from importlib import import_module

from svmbench.schema.scores.contract import (
    SCORES,
    Exam,
    Score,
    Undefined,
    decision_values,
    describe,
    evaluate,
    find,
    mark,
    score,
)

__all__ = [
    "SCORES",
    "Exam",
    "Score",
    "Undefined",
    "decision_values",
    "describe",
    "evaluate",
    "find",
    "mark",
    "score",
]

# By name: a cell's key covers the modules of its own scores (`planner.modules_of_kind`). Scores are
# listed in this order.
for _module in ("measures", "calibration", "costs"):
    import_module(f"{__name__}.{_module}")
