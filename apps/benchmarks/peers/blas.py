"""Products with vectors and triangular solves by cuBLAS: gemvStridedBatched, which CuPy does not wrap, and trsmBatched.

It has no batched symv: symmetric matrices are multiplied as others, all of their entries read.
"""

import ctypes
from functools import cache
from pathlib import Path

from h2gpu.apps.benchmarks import timing
from h2gpu.apps.benchmarks.peers.linear import LETTERS, in_place, places_of
from h2gpu.apps.benchmarks.peers.peers import Peer

NOT_TURNED, TURNED = 0, 1  # of the library's operations
REALS = {"s": ctypes.c_float, "d": ctypes.c_double}


def times(routine, pairs):
    """The Peer of "gemv", "gemv_t", "symv" or "trsm", of pairs of CuPy arrays in rotation, in a list."""
    return [_trsm(pairs) if routine == "trsm" else _gemv(pairs, routine == "gemv_t")]


def _gemv(pairs, transposed):
    import cupy

    A = pairs[0][0]
    out = cupy.empty((len(A), A.shape[2 if transposed else 1]), A.dtype)

    def work(pair):
        gemv(*pair, out, transposed)

    return Peer("cuBLAS gemvStridedBatched", timing.device_ms(work, pairs), timing.call_ms(work, pairs), len(A))


def gemv(A, x, out, transposed=False):
    """out_b = A_b x_b, or A_bᵀ x_b: (batch, m, n) and vectors, contiguous CuPy arrays of one precision, real."""
    library, handle = cublas()
    (batch, m, n), letter = A.shape, LETTERS[A.dtype.name]
    one, zero = map(REALS[letter], (1, 0))
    way = NOT_TURNED if transposed else TURNED  # rows of ours are the library's columns
    status = getattr(library, f"cublas{letter.upper()}gemvStridedBatched")(
        handle,
        way,
        n,
        m,
        ctypes.byref(one),
        ctypes.c_void_p(A.data.ptr),
        n,
        ctypes.c_longlong(m * n),
        ctypes.c_void_p(x.data.ptr),
        1,
        ctypes.c_longlong(x.shape[1]),
        ctypes.byref(zero),
        ctypes.c_void_p(out.data.ptr),
        1,
        ctypes.c_longlong(out.shape[1]),
        batch,
    )
    if status:
        raise RuntimeError(f"cuBLAS gemvStridedBatched: status {status}")


@cache
def cublas():
    """cuBLAS as CuPy has loaded it, and a handle of it, for the default stream."""
    import cupy

    cupy.cuda.device.get_cublas_handle()  # loads it
    maps = Path("/proc/self/maps").read_text(encoding="utf-8").split()
    library, handle = ctypes.CDLL(next(word for word in maps if "libcublas.so" in word)), ctypes.c_void_p()
    if library.cublasCreate_v2(ctypes.byref(handle)):
        raise RuntimeError("cuBLAS: no handle")
    return library, handle


def _trsm(pairs):
    from h2gpu.batched.systems.trsm import solve_at

    places = {B.data.ptr: places_of(A) for A, B in pairs}

    def solve(pointers, info, B):
        solve_at(places[B.data.ptr], pointers, B, 1, right=False, lower=True, trans=False, unit=False)

    return in_place("cuBLAS trsmBatched", [B for _, B in pairs], solve, 0, given=True)
