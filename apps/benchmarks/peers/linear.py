"""LU, Cholesky and its solutions by others: the vendor's batched routines, and PyTorch's, among them MAGMA's LU.

The vendor's overwrite their input. It is written anew before each call, and what that takes, measured alone, is taken
off; it then lies in the cache, where ours must fetch it from memory.
"""

import warnings
from functools import cache

import numpy as np

from h2gpu.apps.benchmarks import timing
from h2gpu.apps.benchmarks.peers.peers import FEW, Peer, grown

LETTERS = {"float32": "s", "float64": "d", "complex64": "c"}


def times(routine, inputs):
    """Peers of "lu" or "cholesky" of (batch, n, n) CuPy arrays in rotation, of "cholesky_solve" of pairs of L and b."""
    return {"lu": _lu, "cholesky": _cholesky, "cholesky_solve": _cholesky_solve}[routine](inputs)


def _lu(inputs):
    return [cublas_lu(inputs), *_torch("torch.linalg.lu_factor", inputs)]


def _cholesky(inputs):
    return [cusolver_cholesky(inputs), *_torch("torch.linalg.cholesky", inputs)]


def _cholesky_solve(inputs):
    return [cusolver_solve(inputs), *_torch("torch.cholesky_solve", inputs)]


def cublas_lu(inputs, pivoted=True):
    """getrfBatched of the transposes."""
    import cupy
    from cupy_backends.cuda.libs import cublas

    (batch, n), letter = inputs[0].shape[:2], LETTERS[inputs[0].dtype.name]
    getrf, handle = getattr(cublas, f"{letter}getrfBatched"), cupy.cuda.device.get_cublas_handle()
    pivots = cupy.empty((batch, n), np.int32) if pivoted else None

    def factor(pointers, info):
        getrf(handle, n, pointers.data.ptr, n, pivots.data.ptr if pivoted else 0, info.data.ptr, batch)

    return in_place("cuBLAS getrfBatched" + ("" if pivoted else ", not pivoted"), inputs, factor, batch)


def cusolver_cholesky(inputs):
    """potrfBatched."""
    import cupy
    from cupy_backends.cuda.libs import cublas, cusolver

    batch, n = inputs[0].shape[:2]
    potrf = getattr(cusolver, f"{LETTERS[inputs[0].dtype.name]}potrfBatched")
    handle = cupy.cuda.device.get_cusolver_handle()

    def factor(pointers, info):
        potrf(handle, cublas.CUBLAS_FILL_MODE_LOWER, n, pointers.data.ptr, n, info.data.ptr, batch)

    return in_place("cuSOLVER potrfBatched", inputs, factor, batch)


def cusolver_solve(pairs):
    """potrsBatched, whose factor is the transpose of ours."""
    import cupy
    from cupy_backends.cuda.libs import cublas, cusolver

    batch, n = pairs[0][1].shape
    potrs = getattr(cusolver, f"{LETTERS[pairs[0][1].dtype.name]}potrsBatched")
    handle = cupy.cuda.device.get_cusolver_handle()
    factors = [cupy.ascontiguousarray(L.swapaxes(1, 2)) for L, _ in pairs]
    places = {b.data.ptr: places_of(F) for (_, b), F in zip(pairs, factors)}

    def solve(pointers, info, b):
        of_factors, lower = places[b.data.ptr].data.ptr, cublas.CUBLAS_FILL_MODE_LOWER
        potrs(handle, lower, n, 1, of_factors, n, pointers.data.ptr, n, info.data.ptr, batch)

    return in_place("cuSOLVER potrsBatched", [b for _, b in pairs], solve, 1, given=True)


def in_place(name, arrays, call, verdicts, given=False, room=None):
    """The Peer of a routine that overwrites its input.

    arrays     inputs in rotation
    call       (pointers to the matrices of a copy, info) → nothing; given: and the input that was copied
    verdicts   numbers in info, 0 where all is well
    room       for the copy; None: its own
    """
    import cupy

    room = cupy.empty_like(arrays[0]) if room is None else room
    info = cupy.full(verdicts, -1, np.int32)
    pointers = places_of(room)

    def refresh(array):
        cupy.copyto(room, array)

    def work(array):
        refresh(array)
        call(pointers, info, *([array] * given))

    ms, call_ms = (time(work, arrays) - time(refresh, arrays) for time in (timing.device_ms, timing.call_ms))
    if info.any():
        raise ArithmeticError(f"{name}: expected all matrices to have a factor")
    return Peer(name, ms, call_ms, len(room))


def places_of(array):
    """Addresses of the matrices of a stack, on the device."""
    import cupy

    return array.data.ptr + cupy.arange(len(array), dtype=np.int64) * array[0].nbytes


def _torch(name, inputs):
    """PyTorch's Peer, where it is installed."""
    try:
        import torch
    except ImportError:
        return []
    works = {
        "torch.linalg.lu_factor": torch.linalg.lu_factor_ex,
        "torch.linalg.cholesky": torch.linalg.cholesky_ex,
        "torch.cholesky_solve": lambda L, b: torch.cholesky_solve(b[..., None], L),
    }
    pairs = [one if isinstance(one, tuple) else (one,) for one in inputs]
    tensors = [tuple(map(torch.from_dlpack, pair)) for pair in pairs]
    if name != "torch.linalg.lu_factor":
        return [grown(name, works[name], tensors)]
    try:
        return [grown(f"{name}, {library(torch)}", works[name], tensors)]
    finally:
        torch.backends.cuda.preferred_linalg_library("default")


def library(torch):
    """Whose LU PyTorch calls from now on: MAGMA's where it has it and does not say that it will be asked no longer."""
    if not torch.cuda.has_magma:
        return "cuSOLVER or cuBLAS"
    torch.backends.cuda.preferred_linalg_library("magma")
    return "cuSOLVER or cuBLAS" if _refuses(torch) else "MAGMA"


@cache
def _refuses(torch):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        torch.linalg.lu_factor_ex(torch.eye(2, device="cuda").repeat(FEW, 1, 1))
    return any("magma" in str(warning.message).lower() for warning in told)
