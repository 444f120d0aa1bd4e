"""The papers: a folder each, with what the paper prints and claims, and the engine of verdicts.

    <key>/        paper.toml, published/*.csv, claims.toml, checks.py
    judging/      from kept records to a verdict on each claim
    figures.py    figures and tables in prose, taken from kept results

``papers()`` finds them: those of this folder, those that ``SVMBENCH_PAPERS`` names, and those of
installed packages (:mod:`svmbench.base.paper_folders`, which data and report read, too).
"""

from __future__ import annotations

from svmbench.base.paper_folders import Paper, papers

__all__ = ["Paper", "papers"]
