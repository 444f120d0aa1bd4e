"""The form of a solver's declaration, and the words that it may use."""

from __future__ import annotations

from dataclasses import dataclass

#: Names of the kernels, as scikit-learn has them.
KERNELS = ("linear", "rbf", "poly", "sigmoid")

#: Names of work counters, one for each kind of work; tables may ask for them. A solver that counts
#: something else declares it.
COUNTERS = (
    "basis_vectors", "bounded_support_vectors", "checks", "columns", "conjugate_gradient_steps",
    "cuts", "draws", "dropped", "dropped_pivots", "epochs", "examples", "faces",
    "factorisations", "fallbacks", "gram_rows", "iterations", "kernel_evaluations",
    "kernel_rows", "largest_chunk", "passes", "products", "projections", "qp_steps", "rebuilt",
    "refinements", "refreshes", "removals", "samples", "searches_failed", "steps",
    "support_vectors", "sweeps", "updates", "visits",
)  # fmt: skip

#: Tasks of solvers.
TASKS = ("binary", "one-class")

#: Forms of input, with the extra methods that a solver needs for each: arrays in memory; a kernel
#: matrix that fits share (`KernelSource`); blocks of rows, one at a time; the file of a program.
READS: dict[str, tuple[str, ...]] = {
    "arrays": (),
    "kernel": ("solve",),
    "blocks": ("fit_blocks", "path_blocks"),
    "file": (),
}


#: Promises about the solution if `fit` ends without a warning; {} stands for the parameter. A
#: violation is in units of the margin: of y f(x) >= 1 for a multiplier below its bound, and of
#: y f(x) <= 1 for a multiplier above 0 (with the extra term of quadratic losses).
PROMISES: dict[str, str] = {
    "violation": "no sample violates its optimality condition by more than {}",
    "violation relative to rho": "no sample violates its optimality condition by more than {} "
    "times rho (R^2 for a ball), nor by more than {} in LIBSVM's scale",
    "gap relative to C n": "the objective is at most {} times C n_samples above the optimum",
    "gap relative to the objective": "the objective is at most {} times itself above the optimum",
    "residual": "the linear system's residual is at most {} times as long as its right-hand side",
    "margin": "every training sample has at least 1 - {} of the margin",
    "rounding": "the solution is exact but for rounding",
}


@dataclass(frozen=True)
class Declaration:
    """The declared properties of a solver, checked against a config before anything runs.

    Attributes
    ----------
    name : str
        The paper's name in kebab case, as configs, records and tables spell it.
    problem : str
        The entry of `PROBLEMS` that it minimises; empty if it minimises no objective. `declare`
        also takes a new `Problem`, and enters it.
    summary : str
        One line for ``svmbench list solvers``.
    reference : str
        Paper with equation or algorithm numbers, or the program and its option.
    paper : str
        Key of the paper it comes from (``alsvm``, ``smo`` …); empty for a baseline.
    kernels : tuple of str
        ``("linear",)`` or the kernels it takes.
    sparse : bool
        Whether CSR input is used as it is; if not, a sparse data set is a skipped cell.
    task : str
        ``"binary"`` or ``"one-class"``; ``"multiclass"`` for an undeclared foreign class.
    paths : tuple of str
        The parameters along which `path` shares work between the solutions.
    reads : tuple of str
        The forms of input that it takes, keys of :data:`READS`. ``kernel`` is added for a class
        with `solve`.
    counters : tuple of str
        Its work counters that are not in :data:`COUNTERS`.
    promise : str
        A key of :data:`PROMISES`, for the solution if `fit` ends without a warning. Empty for a
        solver that ends after a number of steps, sees only some samples, or ends when a draw of
        samples has no violation. On a span of samples or points the promise concerns the optimum
        in that span.
    promised_by : str
        The parameter of the promise; if its value is None, nothing is promised.
    suits : str
        When to choose it and when another solver of the same problem, from measured ratios.
    """

    name: str
    problem: str
    summary: str
    reference: str
    paper: str = ""
    kernels: tuple[str, ...] = ("linear",)
    sparse: bool = True
    task: str = "binary"
    paths: tuple[str, ...] = ()
    reads: tuple[str, ...] = ("arrays",)
    counters: tuple[str, ...] = ()
    promise: str = ""
    promised_by: str = "tol"
    suits: str = ""
