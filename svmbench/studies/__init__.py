"""What the commands do, as functions: races, rechecks, verdicts, tables of one's own.

A function of this package takes values and returns a result; it prints nothing. Some take
`print_line`, which they call with a sentence about each step, or `hooks` that show the progress of
a run. `svmbench.cli` has the options of each command, calls a function and prints its result.

racing, versions
    Solvers in turn on a data set, and two versions of a solver.
trying
    From a table to a fitted pipeline.
rechecking, refreshing
    Kept cells run again: a random sample, or all that changed or are older than the code.
reproducing, queueing, batches
    Many configs in one call.
forecasting
    How long planned cells take, by kept records.
judging
    Verdicts on the papers' claims, the ages of results, the site.
sharing
    Packs of runs, and archives for registers.
listing, solver_cards, datasets, paper_check, doctor
    What there is: solvers, data sets, configs, papers, and the state of this machine.

``__init__.pyi`` lists the public functions. Nothing is imported before it is asked for.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

del lazy_loader
