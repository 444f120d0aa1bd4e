"""What `svmbench.experiment` writes and `svmbench.report` reads.

record.py
    A line of ``runs.jsonl``: its fields, their types, and what makes one invalid.
specs.py
    What a config may ask of a table or a plot.
scores/
    What a model is scored by: function, unit, direction, the gate's tolerance.
"""
