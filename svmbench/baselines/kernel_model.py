"""What the kernel baselines share: their programs train, the suite's own model does the rest."""

from __future__ import annotations

from typing import Self

import numpy as np

from svmbench.core.contract.base import TrainingData, require_positive
from svmbench.core.models.kernel_base import KernelSolution
from svmbench.core.models.kernel_classifier import KernelClassifier


class KernelBaseline(KernelClassifier):
    """A C-SVC with a free offset, trained by another program on the inputs.

    The program's cache is the parameter `cache_size`; it limits its iterations by itself.

    Parameters
    ----------
    cache_size : float
        Kernel cache, MB.
    """

    cache_size: float

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_positive("cache_size", self.cache_size)

    def _keep(
        self,
        data: TrainingData,
        support: np.ndarray,
        coefficients: np.ndarray,
        *,
        b: float,
        n_iter: int,
        converged: bool,
    ) -> Self:
        """Store what a program returns.

        Parameters
        ----------
        data : TrainingData
        support : ndarray of int of shape (n_support,)
            Positions of the support vectors, in any order.
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
