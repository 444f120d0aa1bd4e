"""svmbench: the experiments of seven SVM-training papers, re-run and compared with print.

The same from Python as from the command line::

    import svmbench

    svmbench.solvers()                          # every solver with its declaration
    svmbench.solver("alsvm", C=1.0)             # one of them, a scikit-learn estimator
    svmbench.CSVC(C=10.0).fit(X, y)             # the same by the name of its class
    svmbench.NuPath(nu=[0.1, 0.2]).fit(X, y)    # a ν-SVM at every nu, with safe screening
    svmbench.certify(model, X, y)               # how near to its optimum any fitted model is
    svmbench.load("a9a")                        # a prepared data set
    frame = svmbench.run("quickstart")          # a config's records as a pandas frame
    svmbench.table(frame)                       # its means as a table, a pandas frame
    svmbench.plot(frame, "bar", y="cpu_time_s") # and as a matplotlib figure

Nothing heavy is imported before it is asked for, so that ``svmbench --help`` is instant.
"""

import gc
from importlib import import_module
from typing import Any

import lazy_loader

# The names, and the modules that define them, stand in __init__.pyi alone. A solver of the tree
# has the name of its class without a line there, which only type checkers need.
_imported, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    """Import a public name at its first use, without the collector of reference cycles.

    What an import makes stays. The collector would look at all of it again and again, which takes a
    third of the CPU time of importing Numba.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return _imported(name)
    except AttributeError:
        from svmbench.base.known_names import solver_modules

        module = solver_modules().get(name)
        if module is None:
            raise
        return getattr(import_module(module), name)
    finally:
        if was_enabled:
            gc.enable()


del lazy_loader
