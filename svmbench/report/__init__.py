"""From records to tables and plots: reads a run folder and nothing else.

``build(run_dir)`` writes every table and plot that the run's ``plan.json`` asks for, byte for byte
the same from the same records.
"""

from __future__ import annotations

from svmbench.report.builder import BuiltReport, build

__all__ = ["BuiltReport", "build"]
