"""Build tables and plots from the records of a run folder.

``builder.build(run_dir)`` writes every table and plot in the run's ``plan.json``; the same records
give the same bytes. This module imports nothing, because verdicts need no plots.
"""
