"""LAPACK's QR on the CPU without the interpreter's lock, which SciPy's own wrappers keep: threads would wait.

What SciPy gives Cython is called here: geqrf, and of tall matrices geqrt, QR by recursive panels (Elmroth & Gustavson
2000), half the time of geqrf for 1500 × 64, as its panels are products too.
"""

import ctypes
from functools import cache

import numpy as np
import scipy.linalg.cython_lapack

BLOCK = 64  # columns that geqrf may factor at a time
TALL = 1.5  # times as many rows as columns, from which geqrt is ahead: 162 × 81 in 117 µs, not 162
WIDTH = 8  # of a panel: 1700 × 64 in 0.44 ms, 0.49 with 16, 0.46 with 4; of 81 columns a seventh less than with 16
SIGNATURES = {"geqrf": b"void (int *, int *, ", "geqrt": b"void (int *, int *, int *, "}  # whose integers are as here
_word = ctypes.sizeof(ctypes.c_int)


def factor(T):
    """Whether Tᵀ = Q R was worked out, R in the lower triangle of the leading part of T: C-contiguous, real."""
    n, m = T.shape
    tall = m > TALL * n
    call = _routine("geqrt" if tall else "geqrf", T.dtype.char)
    if call is None:
        return False
    width = min(n, WIDTH)
    numbers = (ctypes.c_int * 6)(m, n, width, width, BLOCK * n)  # the last: info
    at = ctypes.addressof(numbers)
    rows, columns, panel, stored, room, info = range(at, at + 6 * _word, _word)
    work = np.empty((BLOCK + 1) * n, T.dtype)
    scales, rest = work.ctypes.data, work[n:].ctypes.data
    if tall:
        block = np.empty((n, width), T.dtype)
        call(rows, columns, panel, T.ctypes.data, rows, block.ctypes.data, stored, scales, info)
    else:
        call(rows, columns, T.ctypes.data, rows, scales, rest, room, info)
    return True


@cache
def _routine(name, kind):
    """geqrf or geqrt for float32 "f" or float64 "d"; None for others, and where SciPy has none that is called so."""
    return function_of({"f": "s", "d": "d"}.get(kind, "?") + name, SIGNATURES[name])


@cache
def function_of(name, signature=b"void ("):
    """LAPACK's function of a name with its letter, "dgeqrf", as SciPy gives it to Cython, to be called with addresses.

    None where SciPy has none, or one whose C signature begins otherwise.
    """
    capsule = getattr(scipy.linalg.cython_lapack, "__pyx_capi__", {}).get(name)
    if capsule is None:
        return None
    python = ctypes.pythonapi
    name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", python))
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", python))
    found = name_of(capsule)
    if not found.startswith(signature):
        return None
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (found.count(b",") + 1))(pointer(capsule, found))
