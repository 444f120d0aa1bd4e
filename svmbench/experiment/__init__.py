"""From a config to records, in the order of use.

settings/
    What a config may say of values, blocks and cells; imports none of the others.
measuring/
    The clock, one call in a process of its own, the machine, compiling ahead.
protocols/
    What one cell does, a file each, with folds and searches.
config/
    Reading YAML, and telling all of its mistakes at once.
plan/
    Cells in table order, their keys, and whether kept results are older than the code.
run/
    Worker processes, records, budgets; here or on a Dask cluster.
"""
