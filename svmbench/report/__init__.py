"""From the records of runs to tables, plots and numbers, in the order of use.

reading/
    Run folders and their records, newest results, printed numbers, units and wording.
numbers/
    Statistics, estimates of a claim's quantities, comparisons of solvers over many runs.
tables/
    One layout of a table for every format: rows, columns, captions, the best values, rankings.
plots/
    Curves from records, and the kinds of plot that draw them.
gate/
    Whether a run is worse than a kept one.
output/
    Files: the tables and plots of a run folder, LaTeX, data frames, packs and archives.

``output.builder.build(run_dir)`` writes every table and plot in the run's ``plan.json``; the same
records give the same bytes. The ``__init__`` of these packages imports nothing: verdicts need no
plots.
"""
