"""Where modules of older versions are now.

Kept plans name the modules that their cells are of, and a plug-in may still import one by its
former name: freshness looks the names up here, and so does the error of an import that fails.
"""

from __future__ import annotations

#: By the dotted name below the package until 2026-11-23, the name since.
RENAMED = {
    "core.arrays": "core.numeric.arrays",
    "core.base": "core.contract.base",
    "core.bits": "core.kernels.bits",
    "core.compiled": "base.compiled",
    "core.copies": "core.contract.copies",
    "core.crew": "core.kernels.threads",
    "core.differences": "core.kernels.differences",
    "core.given_kernel": "core.kernels.given_kernel",
    "core.joint_pairs": "core.models.joint_pairs",
    "core.kernel": "core.kernel_svm",
    "core.kernel.basis": "core.kernel_svm.basis",
    "core.kernel.bvm": "core.kernel_svm.bvm",
    "core.kernel.chunking": "core.kernel_svm.chunking",
    "core.kernel.columns": "core.kernels.columns",
    "core.kernel.conjugate_gradient": "core.numeric.conjugate_gradient",
    "core.kernel.core_set": "core.kernel_svm.core_set",
    "core.kernel.cpsp": "core.kernel_svm.cpsp",
    "core.kernel.csvc": "core.csvc",
    "core.kernel.csvc.active": "core.csvc.active",
    "core.kernel.csvc.all_pairs": "core.csvc.all_pairs",
    "core.kernel.csvc.box": "core.csvc.box",
    "core.kernel.csvc.c_path": "core.csvc.c_path",
    "core.kernel.csvc.classifier": "core.csvc.classifier",
    "core.kernel.csvc.difference_rows": "core.kernels.difference_rows",
    "core.kernel.csvc.driver": "core.csvc.driver",
    "core.kernel.csvc.exact": "core.csvc.exact",
    "core.kernel.csvc.float32_rows": "core.kernels.float32_rows",
    "core.kernel.csvc.growing_matrix": "core.csvc.growing_matrix",
    "core.kernel.csvc.margin_tolerance": "core.csvc.margin_tolerance",
    "core.kernel.csvc.narrowing": "core.csvc.narrowing",
    "core.kernel.csvc.pair_loops": "core.csvc.pair_loops",
    "core.kernel.csvc.passes": "core.csvc.passes",
    "core.kernel.csvc.whole_matrix": "core.csvc.whole_matrix",
    "core.kernel.csvc.working_sets": "core.csvc.working_sets",
    "core.kernel.cvm": "core.kernel_svm.cvm",
    "core.kernel.decomposition": "core.kernel_svm.decomposition",
    "core.kernel.feature_map": "core.kernel_svm.feature_map",
    "core.kernel.fetched_rows": "core.kernels.fetched_rows",
    "core.kernel.fixed_threshold": "core.kernel_svm.fixed_threshold",
    "core.kernel.growth": "core.kernel_svm.growth",
    "core.kernel.hull_steps": "core.kernel_svm.hull_steps",
    "core.kernel.icf": "core.kernel_svm.icf",
    "core.kernel.kernel_product": "core.kernels.kernel_product",
    "core.kernel.l2svm": "core.kernel_svm.l2svm",
    "core.kernel.lasvm": "core.kernel_svm.lasvm",
    "core.kernel.lasvm_steps": "core.kernel_svm.lasvm_steps",
    "core.kernel.lssvm": "core.kernel_svm.lssvm",
    "core.kernel.lssvm_cg": "core.kernel_svm.lssvm_cg",
    "core.kernel.member_rows": "core.kernels.member_rows",
    "core.kernel.mn_svm": "core.kernel_svm.mn_svm",
    "core.kernel.moved_inputs": "core.kernels.moved_inputs",
    "core.kernel.nl_sgd": "core.kernel_svm.nl_sgd",
    "core.kernel.nn_isda": "core.kernel_svm.nn_isda",
    "core.kernel.nu_svc": "core.nu.nu_svc",
    "core.kernel.nystrom": "core.kernel_svm.nystrom",
    "core.kernel.one_column": "core.kernels.one_column",
    "core.kernel.one_slack": "core.kernel_svm.one_slack",
    "core.kernel.osuna": "core.kernel_svm.osuna",
    "core.kernel.platt": "core.kernel_svm.platt",
    "core.kernel.preimage": "core.kernel_svm.preimage",
    "core.kernel.preimage_inputs": "core.kernel_svm.preimage_inputs",
    "core.kernel.refined_solve": "core.kernel_svm.refined_solve",
    "core.kernel.row_store": "core.kernels.row_store",
    "core.kernel.sgd_lssvm": "core.kernel_svm.sgd_lssvm",
    "core.kernel.shifted_solve": "core.kernel_svm.shifted_solve",
    "core.kernel.smo": "core.kernel_svm.smo",
    "core.kernel.steepest_steps": "core.kernel_svm.steepest_steps",
    "core.kernel.storage": "core.kernels.storage",
    "core.kernel.working_set": "core.kernel_svm.working_set",
    "core.kernel_base": "core.models.kernel_base",
    "core.kernel_classifier": "core.models.kernel_classifier",
    "core.kernels": "core.kernels.kernels",
    "core.labels": "core.contract.labels",
    "core.linear_base": "core.contract.linear_base",
    "core.models": "core.models.expansion",
    "core.multiclass": "core.models.multiclass",
    "core.novelty_base": "core.models.novelty_base",
    "core.pair_sums": "core.kernels.pair_sums",
    "core.pair_training": "core.models.pair_training",
    "core.pairs": "core.models.pairs",
    "core.prediction": "core.kernels.prediction",
    "core.prefetch": "core.numeric.prefetch",
    "core.problems": "core.contract.problems",
    "core.qp": "core.numeric.qp",
    "core.registry": "core.contract.registry",
    "core.seeded": "core.numeric.seeded",
    "core.several": "core.models.several",
    "core.shared_points": "core.models.shared_points",
    "core.sparse_products": "core.kernels.sparse_products",
    "core.submatrix": "core.numeric.submatrix",
    "core.tile_loops": "core.kernels.tile_loops",
    "core.useless": "core.contract.useless",
    "core.weights": "core.contract.weights",
    "core.widths": "core.kernels.widths",
}


def present_name(module: str) -> str:
    """Return the present name of one of this package's modules.

    Parameters
    ----------
    module : str
        Dotted, with ``svmbench``. A name of another package, or one that was never renamed, is
        returned as it is.
    """
    package, _, rest = module.partition(".")
    return f"svmbench.{RENAMED[rest]}" if package == "svmbench" and rest in RENAMED else module
