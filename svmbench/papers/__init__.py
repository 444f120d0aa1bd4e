"""The papers: a folder each with its printed numbers and claims, and the engine of verdicts.

    <key>/             paper.toml, published/*.csv, claims.toml, checks.py, outcome.toml
    judging/           from kept records to a verdict on each claim
    page_numbers.py    numbers and tables of pages, computed from kept results

:func:`svmbench.base.paper_folders.papers` finds the papers: the folders here, those that
``SVMBENCH_PAPERS`` names, and those of installed packages.
"""
