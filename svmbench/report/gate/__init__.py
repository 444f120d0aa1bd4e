"""Comparisons of two folders of results.

``sides.py`` reads the two sides, and writes a side as a baseline; ``alike.py`` refuses sides of
different experiments; ``compare.py`` finds the changes, apart from the ratios of races, which
``race_times.py`` compares; ``trends.py`` finds small changes that all go one way; ``changes.py``
has the result. (``race --base`` is judged elsewhere, in ``studies/versions.py``.)
"""
