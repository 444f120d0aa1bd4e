"""Scores of models, each declared once with its unit, direction and tolerance.

A score is a function from an :class:`Evaluation` (a fitted model, its test rows, its predictions)
to a number. The decorator :func:`score` enters it into :data:`SCORES` with its unit, its direction
and the tolerance of the gate. Protocols call :func:`compute_scores` with an evaluation;
:func:`evaluate` also makes the evaluation. Plans carry :func:`describe_scores`, from which tables,
plots and comparisons learn the rest.

A score may be undefined on some rows, as the area under the curve with one class. Its function then
raises :class:`Undefined` with the reason, which is recorded instead of a value. The cell keeps its
other results. A score is never NaN.

``contract.py`` has the contract, and accuracy. The other scores are in ``measures.py`` (of
predictions and decision values), ``calibration.py`` (of probabilities) and ``costs.py`` (a model's
size, time).
"""

from __future__ import annotations

from importlib import import_module

from svmbench.schema.scores.contract import (
    SCORES,
    Evaluation,
    Score,
    Undefined,
    compute_scores,
    describe_scores,
    evaluate,
    find,
    score,
    values_of_models,
)

__all__ = [
    "SCORES",
    "Evaluation",
    "Score",
    "Undefined",
    "compute_scores",
    "describe_scores",
    "evaluate",
    "find",
    "score",
    "values_of_models",
]

# Imported by name, because the key of a cell covers only the modules of its scores
# (`keys.modules_of_kind`). This is also the order of lists of scores.
for _module in ("measures", "calibration", "costs"):
    import_module(f"{__name__}.{_module}")
