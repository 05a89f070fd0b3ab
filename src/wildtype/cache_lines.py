"""Asking for memory before it is read, in compiled loops whose next address no processor can guess."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from wildtype.compiled import njit

LINE = 64
"""Bytes that a processor fetches at once."""
_BYTE, _INT = ir.IntType(8), ir.IntType(32)


def fetch_line(builder: Any, pointer: Any) -> None:
    """Write the instruction that asks for the cache line at ``pointer``; harmless where nothing is there."""
    name = "llvm.prefetch.p0"
    kind = ir.FunctionType(ir.VoidType(), [_BYTE.as_pointer(), _INT, _INT, _INT])
    prefetch = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
    read, keep_near, data = (ir.Constant(_INT, value) for value in (0, 3, 1))
    builder.call(prefetch, [builder.bitcast(pointer, _BYTE.as_pointer()), read, keep_near, data])


@intrinsic  # type: ignore[untyped-decorator]
def _fetch(typing: Any, address: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        fetch_line(builder, builder.inttoptr(arguments[0], _BYTE.as_pointer()))
        return context.get_dummy_value()

    return types.void(types.int64), emit


def _fetch_all(first: Any, last: Any) -> None:
    """Ask for the memory from address ``first`` to before ``last``."""
    for address in range(first, last, LINE):
        _fetch(address)


def _fetch_row(row: Any, matrix: Any) -> None:
    """Ask for the memory of a row of a dense matrix."""
    first = np.int64(matrix.ctypes.data) + matrix.strides[0] * row
    fetch_all(first, first + matrix.strides[0])


fetch_all = njit(inline="always")(_fetch_all)
fetch_row = njit(inline="always")(_fetch_row)
