"""Kernel functions, the matrices and rows of their values, and sums over them.

kernels.py
    The kernel functions, and `KernelSource`, by which solvers ask for values.
bits.py, sparse_products.py, differences.py, moved_inputs.py
    Inner products of binary and of sparse inputs; distances where products lose digits.
storage.py, float32_rows.py, difference_rows.py, columns.py, one_column.py, kernel_product.py
    Makers of rows, columns and products, in double and in single precision.
row_store.py, fetched_rows.py, member_rows.py
    Rows that are kept within a budget.
prediction.py, tile_loops.py, pair_sums.py
    Decision values at many rows, in tiles.
given_kernel.py, widths.py
    Kernels by name or handed in; ``gamma="scale"`` and ``"auto"``.
threads.py
    Threads that share one job.
"""
