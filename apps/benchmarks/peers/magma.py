"""R and reflectors by MAGMA's batched QR, of a library that exports it.

Asked are the library that $H2GPU_MAGMA names, PyTorch's and the system's. PyTorch's wheels carry parts of MAGMA, not
this one. MAGMA has no batched orgqr: Q is not asked for. How a library is made: benchmarks/README.md.
"""

import ctypes
import os
from ctypes.util import find_library
from functools import cache
from pathlib import Path

from h2gpu.apps.benchmarks.peers.linear import LETTERS, in_place, places_of
from h2gpu.apps.benchmarks.routines import spot_checks

PATH = "H2GPU_MAGMA"  # environment variable: a library's file
NAME = "MAGMA geqrf_batched"
FUNCTION = "magma_dgeqrf_batched_work"
CALLER = b"h2gpu", b"magma.py", 0  # whom MAGMA names in its errors


def times(A, by_columns):
    """The Peer in a list, empty where no library has the function.

    A            one input, (batch, m, n), m ≥ n
    by_columns   inputs in rotation with it as the first, (batch, n, m)

    Raises ArithmeticError where R is wrong, RuntimeError where MAGMA refuses.
    """
    found = library()
    if found is None:
        return []
    factor = Factorization(found, by_columns[0].shape, by_columns[0].dtype)
    try:
        error = spot_checks.qr(A, None, factor.triangle(by_columns[0]))
        if not error < 1:
            raise ArithmeticError(f"{NAME}: R has {error:.3g} of the allowed error")
        return [in_place(NAME, by_columns, factor, len(A))]
    finally:
        factor.close()


class Factorization:
    """Reflectors and R of matrices by columns, (batch, n, m), in place; workspace is made once."""

    def __init__(self, library, shape, dtype):
        import cupy

        self.library, (self.batch, self.n, self.m) = library, shape
        self.work = getattr(library, f"magma_{LETTERS[dtype.name]}geqrf_batched_work")
        self.tau, self.queue = cupy.empty(shape[:2], dtype), ctypes.c_void_p()
        self.taus, self.length = places_of(self.tau), ctypes.c_int(-1)  # less than nothing: how much is needed?
        stream, device = ctypes.c_void_p(cupy.cuda.get_current_stream().ptr), cupy.cuda.runtime.getDevice()
        library.magma_queue_create_from_cuda_internal(device, stream, None, None, ctypes.byref(self.queue), *CALLER)
        self.call(None, None, None, None)
        self.room = cupy.empty(max(1, self.length.value), "uint8")

    def __call__(self, places, info):
        """places, info   addresses of the matrices on the device, and a number of each, 0 where all is well"""
        self.call(*(ctypes.c_void_p(array.data.ptr) for array in (places, self.taus, info, self.room)))

    def call(self, places, taus, info, room):
        rest = info, room, ctypes.byref(self.length), self.batch, self.queue
        if status := self.work(self.m, self.n, places, self.m, taus, *rest):
            raise RuntimeError(f"{NAME}: status {status}")

    def triangle(self, A):
        """R of matrices that stay as they are, (batch, n, n)."""
        import cupy

        copy = A.copy()
        self(places_of(copy), cupy.empty(self.batch, "int32"))
        return cupy.triu(copy[:, :, : self.n].swapaxes(1, 2))

    def close(self):
        """MAGMA's queue ends."""
        self.library.magma_queue_destroy_internal(self.queue, *CALLER)


def note(routine):
    """What rows of "qr" and "qr_r" say where MAGMA's QR was not timed."""
    if library() is None:
        where = ", ".join(Path(name).name for name in _candidates()) or "no library"
        return f"MAGMA's batched QR: {where}, no {FUNCTION}"
    return "MAGMA's batched QR: R alone" if routine == "qr" else ""


@cache
def library():
    """The first library that exports the function, ready for use; None where there is none.

    Raises OSError where that of $H2GPU_MAGMA cannot be loaded, RuntimeError where MAGMA does not begin.
    """
    if chosen := os.environ.get(PATH):
        ctypes.CDLL(chosen)
    for name in _candidates():
        if exports(name, FUNCTION):
            found = ctypes.CDLL(name)
            if status := found.magma_init():
                raise RuntimeError(f"{NAME}: magma_init gives {status}")
            return found
    return None


def exports(library, function):
    """Whether a library can be loaded and has the function."""
    try:
        return hasattr(ctypes.CDLL(library), function)
    except OSError:
        return False


def _candidates():
    return [name for name in (os.environ.get(PATH), _of_torch(), find_library("magma")) if name]


def _of_torch():
    """The library of PyTorch that carries MAGMA, if it is there."""
    try:
        import torch
    except ImportError:
        return None
    path = Path(torch.__file__).parent / "lib" / "libtorch_cuda_linalg.so"
    return str(path) if path.is_file() else None
