"""The base class of kernel baselines: another program trains, and the suite's model predicts."""

from __future__ import annotations

from typing import Self

import numpy as np

from svmbench.core.contract.base import TrainingData, require_positive
from svmbench.core.models.kernel_base import ClassifierWithC, KernelSolution


class KernelBaseline(ClassifierWithC):
    """A C-SVC with a free offset, trained by another program.

    `cache_size` sets the cache of the program, which has its own limit on iterations.

    Parameters
    ----------
    cache_size : float
        Kernel cache, MB.
    """

    cache_size: float

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_positive("cache_size", self.cache_size)

    def _store_result(
        self,
        data: TrainingData,
        support: np.ndarray,
        coefficients: np.ndarray,
        *,
        b: float,
        n_iter: int,
        converged: bool,
    ) -> Self:
        """Store the result of a program.

        Parameters
        ----------
        data : TrainingData
        support : ndarray of int of shape (n_support,)
            Indices of the support vectors, in any order.
        coefficients : ndarray of shape (n_support,)
            ``alpha_i y_i``.
        b : float
            Offset of f.
        n_iter : int
        converged : bool
        """
        signed = np.zeros(len(data.y))
        signed[support] = coefficients
        return self._store(
            KernelSolution(
                coefficients=signed,
                b=b,
                n_iter=n_iter,
                stop_reason="converged" if converged else "max_iter",
                counters={"iterations": max(1, n_iter)},
            ),
            data,
        )
