"""svmbench: the experiments of seven SVM-training papers, re-run and compared with print.

The same from Python as from the command line::

    import svmbench

    svmbench.solvers()                          # every solver with its declaration
    svmbench.solver("alsvm", C=1.0)             # one of them, a scikit-learn estimator
    svmbench.NuPath(nu=[0.1, 0.2]).fit(X, y)    # a ν-SVM at every nu, with safe screening
    svmbench.load("a9a")                        # a prepared data set
    svmbench.run("quickstart", profile="quick") # a config's records as a pandas frame

Nothing heavy is imported before it is asked for, so that ``svmbench --help`` is instant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from svmbench.catalogue import solver, solvers
    from svmbench.core.nu.nu_path import NuPath
    from svmbench.data import load
    from svmbench.experiment import run

__version__ = "0.1.0"
__all__ = ["NuPath", "__version__", "load", "run", "solver", "solvers"]

_HOMES = {
    "NuPath": "svmbench.core.nu.nu_path",
    "load": "svmbench.data",
    "run": "svmbench.experiment",
    "solver": "svmbench.catalogue",
    "solvers": "svmbench.catalogue",
}


def __getattr__(name: str) -> Any:
    """Import a public function from the room it lives in, when it is first used."""
    if name not in _HOMES:
        msg = f"module 'svmbench' has no attribute {name!r}"
        raise AttributeError(msg)
    from importlib import import_module

    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
