"""Kernel functions, loops that compute their values, the row cache, and sums of kernel values.

The problem
-----------
A solver wants values K(x_i, x_j) of n samples: single ones, rows, columns, blocks, products with a
vector; a model wants sums over its points at new samples. Inputs are dense, CSR, or binary, and
float32 often suffices. In bulk a value takes about 1 ns: each kind of request has its own loop.

The variables
-------------
X : samples, shape (n, d); a `KernelFunction` is the formula with gamma, degree and coef0.
`source` : a `KernelSource`, from which all solvers get kernel values: ``diag()``, ``block(I, J)``,
``rows(I)``, ``subset(indices)``, and their count. It has inputs or a given matrix. `columns` : the
samples of the columns, in the layout that `Rows` read for each row.

Who calls whom
--------------
::

    kernel=, gamma= ------> KernelFunction, KernelSource (kernels) <------ solvers
                              |            ^
     +----------------+-------+-------+----|-------------+
     |                |               |    |             |
    Rows          Columns      Storage, MemberInputs   weighted_sums, add_up
    (rows)        (columns)    (storage, member_inputs) (prediction)
     |                |               |                  |
     +-- RowCache (rows), SourceRowCache (source_row_cache)
     |          KernelProduct (columns)                  |
     +----------------+---------------+------------------+
                      |
     products (dense, CSR, binary; the RBF exponential)   ThreadPool (kernels)

Which class when
----------------
========================== =====================================================================
blocks and rows, exact     `KernelSource`, in double precision; the fallback of all others
many rows, several times   `Rows`, chosen by `float32_rows`: `BitRows` (all inputs 0 or 1),
                           `DifferenceRows` (RBF, few features, or where products would lose
                           digits), `DenseRows` (one product of matrices), `SourceRows` (the rest)
each column once           `Columns`, chosen by `columns_of`: the whole matrix up to 1,024 samples;
                           `Rows` for binary inputs and many columns; else `Float32Columns`
some rows inside SMO       `LazyMatrix`: a row is computed when a step first reads it
one sample with a list,    `Storage` (SMO; every kernel, double precision), `MemberInputs` (LASVM,
inside a compiled loop     CVM; exponential in single precision)
products with vectors      `KernelProduct`: blocks right of the diagonal, each used twice
sums at new samples        `weighted_sums` (one model), `add_up` (all pairs of classes), in tiles
========================== =====================================================================

Choices
-------
- One update, ``v -= sum_q f_q K[q]`` (`rows.subtract_rows`), four rows at a time in double
  precision. The nu solvers and FOSVM have loops of their own, whose comments state the gain.
- Float32 rows share one loop over tiles that stay in the cache (``rows.take_off_pieces``).
- One row cache (`RowCache`); `KernelProduct` stores blocks, of one half of the symmetric matrix.
- `Rows` (one set of samples, float32) and the tiles of `prediction` (two sets, either precision)
  are separate, so that predictions have the accuracy that `predict` documents.
"""
