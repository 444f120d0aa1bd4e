"""From records to tables and plots: reads a run folder and nothing else.

``builder.build(run_dir)`` writes every table and plot that the run's ``plan.json`` asks for, byte
for byte the same from the same records. This module imports nothing: verdicts need no plots.
"""
