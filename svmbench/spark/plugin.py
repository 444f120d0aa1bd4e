"""Declare the Spark solvers for ``svmbench run``, ``time`` and ``describe``.

``SVMBENCH_PLUGINS=svmbench.spark.plugin`` declares them. They send the arrays of a data set to a
session on this machine; starting the session and making the data frame are not timed. By default
they are not declared, because a session takes seconds to start.
"""

from __future__ import annotations

from dataclasses import asdict

from svmbench.core.contract.registry import declare
from svmbench.spark.alsvm import ALSVMSpark
from svmbench.spark.l2svm import L2SVMSpark

for solver in (ALSVMSpark, L2SVMSpark):
    declare(**asdict(solver.declaration))(solver)
