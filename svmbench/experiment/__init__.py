"""From a config to records, in the order of use.

settings/
    Types of a config's values, blocks and cells; imports none of the others.
measuring/
    The clock, one call in a process of its own, the machine's description, compiling ahead.
protocols/
    The procedures of cells, a file each, with folds and searches.
config/
    Reading a config, and reporting all its mistakes at once.
plan/
    Cells in table order, their keys, and whether kept results are older than the code.
run/
    Worker processes, records, budgets; here or on a Dask cluster.
"""
