"""The formats that `svmbench.experiment` writes and `svmbench.report` reads.

record.py
    The lines of ``runs.jsonl``: their fields, types and checks.
rechecks.py
    The file ``rechecks.jsonl``, and the age of a kept result.
specs.py
    The specifications of tables and plots in a config.
scores/
    The scores of a model: function, unit, direction, and the tolerance of the gate.
"""
