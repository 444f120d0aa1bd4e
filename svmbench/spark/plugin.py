"""Spark's solvers for ``svmbench run``, ``time`` and ``describe``.

``SVMBENCH_PLUGINS=svmbench.spark.plugin`` declares them. They take the arrays of a data set to a
session on this machine, whose start and whose data frame are outside of the clock. Without being
asked for they are not in the list: a session costs seconds.
"""

from __future__ import annotations

from dataclasses import asdict

from svmbench.core.contract.registry import declare
from svmbench.spark.alsvm import ALSVMSpark
from svmbench.spark.l2svm import L2SVMSpark

for solver in (ALSVMSpark, L2SVMSpark):
    declare(**asdict(solver.declaration))(solver)
