"""LAPACK's geqrt on the CPU: QR of tall matrices by recursive panels (Elmroth & Gustavson 2000).

Half the time of geqrf for 1500 × 64: its panels are products too. SciPy's own wrapper keeps the interpreter's lock, so
that threads would wait for each other; what SciPy gives Cython is called here without it.
"""

import ctypes
from functools import cache

import numpy as np
import scipy.linalg.cython_lapack

WIDTH = 8  # of a panel: 1700 × 64 in 0.44 ms, 0.49 with 16, 0.46 with 4; of 81 columns a seventh less than with 16
SIGNATURE = b"void (int *, int *, int *, "  # whose integers are those passed here
_word = ctypes.sizeof(ctypes.c_int)


def factor_tall(T):
    """Whether Tᵀ = Q R was worked out, R in the lower triangle of the leading part of T: C-contiguous, wide, real."""
    geqrt = _routine(T.dtype.char)
    if geqrt is None:
        return False
    n, m = T.shape
    width = min(n, WIDTH)
    numbers = (ctypes.c_int * 6)(m, n, width, m, width)  # the last: info
    block, work = np.empty((2, n, width), T.dtype)
    at = ctypes.addressof(numbers)
    places = (at, at + _word, at + 2 * _word, T.ctypes.data, at + 3 * _word)
    geqrt(*places, block.ctypes.data, at + 4 * _word, work.ctypes.data, at + 5 * _word)
    return True


@cache
def _routine(kind):
    """geqrt for float32 "f" or float64 "d"; None for others, and where SciPy has none that is called so."""
    capsule = getattr(scipy.linalg.cython_lapack, "__pyx_capi__", {}).get({"f": "sgeqrt", "d": "dgeqrt"}.get(kind))
    if capsule is None:
        return None
    python = ctypes.pythonapi
    name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", python))
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", python))
    name = name_of(capsule)
    if not name.startswith(SIGNATURE):
        return None
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 9)(pointer(capsule, name))
