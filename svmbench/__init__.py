"""svmbench: the experiments of seven SVM-training papers, re-run and compared with print.

The same from Python as from the command line::

    import svmbench

    svmbench.solvers()                          # every solver with its declaration
    svmbench.solver("alsvm", C=1.0)             # one of them, a scikit-learn estimator
    svmbench.CSVC(C=10.0).fit(X, y)             # the same by the name of its class
    svmbench.NuPath(nu=[0.1, 0.2]).fit(X, y)    # a ν-SVM at every nu, with safe screening
    svmbench.load("a9a")                        # a prepared data set
    svmbench.run("quickstart", profile="quick") # a config's records as a pandas frame

Nothing heavy is imported before it is asked for, so that ``svmbench --help`` is instant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

# For type checkers and editors alone; a test holds these lines and the table below to each other.
if TYPE_CHECKING:
    from svmbench.baselines.catalogue import solver as solver
    from svmbench.baselines.catalogue import solvers as solvers
    from svmbench.core.csvc import CSVC as CSVC
    from svmbench.core.kernel_svm.bvm import BVM as BVM
    from svmbench.core.kernel_svm.chunking import Chunking as Chunking
    from svmbench.core.kernel_svm.cpsp import CPSP as CPSP
    from svmbench.core.kernel_svm.cpsp import CPSPTr as CPSPTr
    from svmbench.core.kernel_svm.cvm import CVM as CVM
    from svmbench.core.kernel_svm.decomposition import SVMLight as SVMLight
    from svmbench.core.kernel_svm.fixed_threshold import FixedThresholdSMO as FixedThresholdSMO
    from svmbench.core.kernel_svm.icf import ICF as ICF
    from svmbench.core.kernel_svm.lasvm import LASVM as LASVM
    from svmbench.core.kernel_svm.lssvm import LSSVM as LSSVM
    from svmbench.core.kernel_svm.lssvm_cg import LSSVMCG as LSSVMCG
    from svmbench.core.kernel_svm.mn_svm import MNSVM as MNSVM
    from svmbench.core.kernel_svm.nl_sgd import NLSGD as NLSGD
    from svmbench.core.kernel_svm.nl_sgd import KernelPegasos as KernelPegasos
    from svmbench.core.kernel_svm.nn_isda import NNISDA as NNISDA
    from svmbench.core.kernel_svm.nystrom import Nystrom as Nystrom
    from svmbench.core.kernel_svm.osuna import Osuna as Osuna
    from svmbench.core.kernel_svm.sgd_lssvm import SGDLSSVM as SGDLSSVM
    from svmbench.core.kernel_svm.smo import SMO as SMO
    from svmbench.core.linear.alsvm import ALSVM as ALSVM
    from svmbench.core.linear.alsvm import FALSVM as FALSVM
    from svmbench.core.linear.alsvm_batch import ALSVMBatch as ALSVMBatch
    from svmbench.core.linear.asvm import ASVM as ASVM
    from svmbench.core.linear.cutting_plane import SVMPerf as SVMPerf
    from svmbench.core.linear.dcd import DCDL1 as DCDL1
    from svmbench.core.linear.dcd import DCDL2 as DCDL2
    from svmbench.core.linear.lsvm import LSVM as LSVM
    from svmbench.core.linear.newton import NewtonL2 as NewtonL2
    from svmbench.core.linear.pegasos import Pegasos as Pegasos
    from svmbench.core.models.multiclass import OneVsOne as OneVsOne
    from svmbench.core.nu.c_svm import CSVMBounded as CSVMBounded
    from svmbench.core.nu.nu_path import NuPath as NuPath
    from svmbench.core.nu.nu_svc import NuSVC as NuSVC
    from svmbench.core.nu.nu_svm import NuSVM as NuSVM
    from svmbench.core.nu.nu_svm import SRBONuSVM as SRBONuSVM
    from svmbench.core.nu.oc_svm import OCSVM as OCSVM
    from svmbench.core.nu.oc_svm import SRBOOCSVM as SRBOOCSVM
    from svmbench.core.oneclass.fosvm import FOSVM1 as FOSVM1
    from svmbench.core.oneclass.fosvm import FOSVM2 as FOSVM2
    from svmbench.core.oneclass.kde import KernelDensityDetector as KernelDensityDetector
    from svmbench.core.oneclass.one_class import OneClass as OneClass
    from svmbench.core.oneclass.svdd import SVDD as SVDD
    from svmbench.data import load as load
    from svmbench.experiment.run.session import run as run

__version__ = "0.1.0"

#: The public names, by the module that each is imported from when it is first used.
_NAMES = {
    "svmbench.baselines.catalogue": ("solver", "solvers"),
    "svmbench.core.kernel_svm.bvm": ("BVM",),
    "svmbench.core.kernel_svm.chunking": ("Chunking",),
    "svmbench.core.kernel_svm.cpsp": ("CPSP", "CPSPTr"),
    "svmbench.core.csvc": ("CSVC",),
    "svmbench.core.kernel_svm.cvm": ("CVM",),
    "svmbench.core.kernel_svm.decomposition": ("SVMLight",),
    "svmbench.core.kernel_svm.fixed_threshold": ("FixedThresholdSMO",),
    "svmbench.core.kernel_svm.icf": ("ICF",),
    "svmbench.core.kernel_svm.lasvm": ("LASVM",),
    "svmbench.core.kernel_svm.lssvm": ("LSSVM",),
    "svmbench.core.kernel_svm.lssvm_cg": ("LSSVMCG",),
    "svmbench.core.kernel_svm.mn_svm": ("MNSVM",),
    "svmbench.core.kernel_svm.nl_sgd": ("KernelPegasos", "NLSGD"),
    "svmbench.core.kernel_svm.nn_isda": ("NNISDA",),
    "svmbench.core.nu.nu_svc": ("NuSVC",),
    "svmbench.core.kernel_svm.nystrom": ("Nystrom",),
    "svmbench.core.kernel_svm.osuna": ("Osuna",),
    "svmbench.core.kernel_svm.sgd_lssvm": ("SGDLSSVM",),
    "svmbench.core.kernel_svm.smo": ("SMO",),
    "svmbench.core.linear.alsvm": ("ALSVM", "FALSVM"),
    "svmbench.core.linear.alsvm_batch": ("ALSVMBatch",),
    "svmbench.core.linear.asvm": ("ASVM",),
    "svmbench.core.linear.cutting_plane": ("SVMPerf",),
    "svmbench.core.linear.dcd": ("DCDL1", "DCDL2"),
    "svmbench.core.linear.lsvm": ("LSVM",),
    "svmbench.core.linear.newton": ("NewtonL2",),
    "svmbench.core.linear.pegasos": ("Pegasos",),
    "svmbench.core.models.multiclass": ("OneVsOne",),
    "svmbench.core.nu.c_svm": ("CSVMBounded",),
    "svmbench.core.nu.nu_path": ("NuPath",),
    "svmbench.core.nu.nu_svm": ("NuSVM", "SRBONuSVM"),
    "svmbench.core.nu.oc_svm": ("OCSVM", "SRBOOCSVM"),
    "svmbench.core.oneclass.fosvm": ("FOSVM1", "FOSVM2"),
    "svmbench.core.oneclass.kde": ("KernelDensityDetector",),
    "svmbench.core.oneclass.one_class": ("OneClass",),
    "svmbench.core.oneclass.svdd": ("SVDD",),
    "svmbench.data": ("load",),
    "svmbench.experiment.run.session": ("run",),
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names}

__all__ = ["__version__", *sorted(_HOMES)]


def __getattr__(name: str) -> Any:
    """Import a public name from the room it lives in, when it is first used."""
    if name not in _HOMES:
        msg = f"module 'svmbench' has no attribute {name!r}"
        raise AttributeError(msg)
    from importlib import import_module

    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return what is here and what would be imported."""
    return sorted({*globals(), *__all__})
