"""A hint to the processor: this array element is needed soon.

A loop over randomly ordered rows spends most of its time waiting for them. It knows its order a
few rows ahead, and asking for those rows early hides the wait. Under ``NUMBA_DISABLE_JIT=1``, and
as plain Python, the hint does nothing; results never depend on it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from svmbench.base.compiled import JIT_DISABLED


def _no_hint(array: np.ndarray, index: int) -> None:
    """Do nothing."""


def _make_hint() -> Any:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    @intrinsic
    def prefetch(typing_context: Any, array: Any, index: Any) -> Any:
        """Ask for the cache line of ``array.flat[index]`` (C order); no check of the bounds."""

        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            items = context.make_array(signature.args[0])(context, builder, args[0]).data
            offset = context.cast(builder, args[1], signature.args[1], types.intp)
            address = builder.bitcast(builder.gep(items, [offset]), cgutils.voidptr_t)
            word = ir.IntType(32)
            hint = builder.module.declare_intrinsic(
                "llvm.prefetch",
                (cgutils.voidptr_t,),
                ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, word, word, word]),
            )
            # For reading, into every level of the data cache.
            builder.call(hint, [address, word(0), word(3), word(1)])
            return context.get_dummy_value()

        return types.void(array, index), emit

    return prefetch


prefetch = _no_hint if JIT_DISABLED else _make_hint()
