"""Kernel functions, the matrices and rows of their values, and sums over them.

kernels.py
    The kernel functions, and `KernelSource`, by which solvers ask for values.
exponential.py, products.py, bits.py
    The RBF kernel's exponential; inner products and distances; binary samples as machine words.
storage.py, float32_rows.py, difference_rows.py, columns.py, kernel_product.py
    Makers of values in compiled loops, of rows, columns and products.
row_store.py, fetched_rows.py
    Rows that are kept within a budget.
prediction.py, pair_sums.py
    Decision values at many rows, in tiles.
given_kernel.py, gamma_scale.py
    Kernels by name or handed in; ``gamma="scale"`` and ``"auto"``.
threads.py
    Threads that share one job.
"""
