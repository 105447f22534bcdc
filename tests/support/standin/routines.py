"""pytest -p routines: the GPU's routines on the stand-in, whose kernels do nothing, with the numbers of the CPU's.

A routine of a room's cuda.py runs as it is: sizes, uploads and launches, which refuse what a kernel could not read.
Then what its twin in cpu.py makes of the same arguments is put into its results, which must have the same
shapes. Where it reads itself what kernels made, its results are the twin's.
"""

import ctypes
import inspect
from contextlib import contextmanager
from dataclasses import fields, replace
from importlib import import_module

import cupy
import numpy as np
from cupy.arrays import device_array
from cupyx.scipy.sparse import csr_matrix
from launched import Kernel as Checked

from h2gpu.batched.device import compiler

running = 0  # routines that run, one inside another


class Kernel(Checked):
    """A kernel that does nothing unless it is one of MADE_HERE."""

    def run(self, grid, block, arguments, shared_bytes):
        if self.name in MADE_HERE:
            MADE_HERE[self.name](*arguments)
        elif not running:
            raise NotImplementedError(f"{self.name}: no numbers without a GPU")


def table(out, batch, count, packed):
    """kernels/copies/table.cuh"""
    flat = host(out).reshape(-1)
    for first, step, place, along in packed["words"].reshape(-1, 4)[: int(count)].tolist():
        if step < 0:
            numbers = ctypes.cast(first, ctypes.POINTER(ctypes.c_longlong))
            column = np.ctypeslib.as_array(numbers, (-step * (int(batch) - 1) + 1,))[::-step]
        else:
            column = first + step * np.arange(batch)
        flat[place : place + batch * along : along] = column


def owners(first, owner, count):
    """kernels/copies/owners.cuh"""
    host(owner)[:] = np.repeat(np.arange(count), np.diff(host(first)))


def find_not_finite(A, size, found):
    """kernels/copies/all_finite.cuh"""
    host(found)[0] |= not np.isfinite(host(A)).all()


def signs(info, found, size):
    """kernels/copies/signs.cuh"""
    host(found)[0] |= (host(info) < 0).any()
    host(found)[1] |= (host(info) > 0).any()


def cycles(*arguments):
    """kernels/common/thread/stopwatch.cuh: one for each part, and one for writing them."""
    numbers = host(arguments[-1])
    numbers[:] = 1
    numbers[:, -1] = numbers.shape[1]


MADE_HERE = {"table": table, "owners": owners, "find_not_finite": find_not_finite, "signs": signs}
MADE_HERE |= dict.fromkeys(("block_lu_cycles", "block_qr_cycles"), cycles)
MADE_HERE |= dict.fromkeys(("bidiagonalize_cycles", "bidiagonalize_large_cycles"), cycles)


@contextmanager
def idle_kernels():
    global running
    running += 1
    try:
        with np.errstate(all="ignore"):  # nobody has written the numbers
            yield
    finally:
        running -= 1


def host(x):
    """The same where the CPU's routines take it, sharing memory."""
    if isinstance(x, cupy.ndarray):
        return x._entries
    if type(x) in (list, tuple):
        return type(x)(map(host, x))
    if isinstance(x, MatrixBatch):
        return MatrixBatch(*map(host, (x.buffer, x.offsets, x.rows, x.columns)))
    if x is cupy:
        return np
    if isinstance(x, csr_matrix):
        return x.matrix
    if isinstance(x, (BlockSparse, Nested, Products)):
        return replace(x, **{field.name: host(getattr(x, field.name)) for field in fields(x) if field.init})
    return x


def device(x):
    """The CPU's results on the device, sizes of batches on the host."""
    if isinstance(x, MatrixBatch):
        return replace(x, buffer=device_array(x.buffer))
    return tuple(map(device, x)) if type(x) is tuple else device_array(x)


def stays_on_device(A, atol, padded=False, return_info=False, consume=False):
    """Whether the host does not read the ranks of a truncated SVD."""
    return return_info and resident.fits(A)


def copied(x):
    if isinstance(x, MatrixBatch):
        return MatrixBatch.from_matrices(x.matrices()) if len(x) else x
    if x is None:
        return None
    return tuple(map(copied, x)) if type(x) is tuple else np.array(x)


def fill(results, numbers):
    """Put the CPU's numbers, None for zeros, into results on the device, and into their sizes where these are there."""
    if numbers is None:
        if results is not None:
            host(results)[...] = 0
    elif type(results) is tuple:
        for part, right in zip(results, numbers, strict=True):
            fill(part, right)
    elif isinstance(results, MatrixBatch):
        for side in ("rows", "columns"):
            sizes, right = getattr(results, side), getattr(numbers, side)
            if isinstance(sizes, cupy.ndarray):
                host(sizes)[...] = right
            np.testing.assert_array_equal(host(sizes), right)
        for matrix, right in zip(host(results).matrices(), numbers.matrices()):
            matrix[...] = right
    elif isinstance(results, np.ndarray):  # ranks that the routine has read
        assert results.shape == np.shape(numbers)
        results[...] = numbers
    else:
        assert isinstance(results, cupy.ndarray) and results.shape == np.shape(numbers)
        host(results)[...] = numbers


def routine(gpu, cpu):
    """The GPU's routine with the numbers of the CPU's."""
    signature = inspect.signature(gpu)

    def call(*args, **kwargs):
        bound = signature.bind(*args, **kwargs)
        numbers = copied(cpu(*map(host, bound.args), **{name: host(a) for name, a in bound.kwargs.items()}))
        if bound.arguments.get("xp") is np:
            return numbers
        if gpu.__name__ == "truncated_svd" and not stays_on_device(**bound.arguments):
            return device(numbers)
        with idle_kernels():
            results = gpu(*args, **kwargs)
        if gpu.__name__ == "cholesky_basis" and results[1] is not None:  # the CPU's triangles are none, for ones
            numbers = numbers[0], np.broadcast_to(np.eye(results[1].shape[1]), results[1].shape)
        if results is not None:  # else they are in `out`, where the twin has written
            fill(results, numbers)
        return results

    return call


def gather(A, index, transpose, out):
    """The CPU's takes arrays alone."""
    index = np.arange(len(out)) if index is None else index
    return copies.gather(A, index, np.broadcast_to(transpose, len(index)), out) if len(out) else out


def pairwise(function, X, Y, out):
    """The CPU's takes blocks that follow one another."""
    return pairs.pairwise(function, X, Y, MatrixBatch.empty(out.rows, out.columns, out.dtype))


compiler.kernel = Kernel  # before the modules that import it
from h2gpu.batched import MatrixBatch  # noqa: E402
from h2gpu.batched.copies import cpu as copies  # noqa: E402
from h2gpu.batched.products import gaussian as samples  # noqa: E402
from h2gpu.batched.qr.products import Products  # noqa: E402
from h2gpu.batched.svd import randomized, resident  # noqa: E402
from h2gpu.blocksparse import cpu_nested, cuda_nested  # noqa: E402
from h2gpu.blocksparse.block_sparse import BlockSparse  # noqa: E402
from h2gpu.blocksparse.nested import Nested  # noqa: E402
from h2gpu.clustering import cuda as clustering  # noqa: E402
from h2gpu.clustering import splitting  # noqa: E402
from h2gpu.covariance.pairs import cpu as pairs  # noqa: E402
from h2gpu.h2matrix.interpolation import chebyshev  # noqa: E402
from h2gpu.h2matrix.interpolation import cuda as interpolation  # noqa: E402
from h2gpu.solvers import cuda as solvers  # noqa: E402
from h2gpu.solvers import inverse_factor, small_factors  # noqa: E402
from h2gpu.solvers.skeletonization import cuda as skeletonization  # noqa: E402
from h2gpu.solvers.skeletonization import entries  # noqa: E402

TWINS = {"gather": gather, "pairwise": pairwise}
ROOMS = {
    "h2gpu.batched.copies": "add_to_diagonals frobenius_norms gather join rounding_errors",
    "h2gpu.batched.products": "axpy gemm gemv sampled symv syrk triple_product",
    "h2gpu.batched.qr": "cholesky_basis cholesky_qr pivoted_qr qr triangles_of_products",
    "h2gpu.batched.bidiagonal": "bidiagonalize",
    "h2gpu.batched.svd": "discarded shared_ranks svd svd_of_transposed truncated_svd",
    "h2gpu.batched.systems": "cholesky cholesky_solve det inv lu_factor lu_solve slogdet solve trsm",
    "h2gpu.blocksparse": "block_multiply",
    "h2gpu.covariance.pairs": "pairwise",
}
REPEATED = {
    "h2gpu.batched.copies": "frobenius_norms",
    "h2gpu.batched.products": "axpy gemm gemv symv syrk",
    "h2gpu.batched.systems": "by_factors cholesky cholesky_solve det inv lu_factor slogdet solve trsm",
}
for _room, _names in ROOMS.items():
    _cpu, _cuda = (import_module(f"{_room}.{_twin}") for _twin in ("cpu", "cuda"))
    for _name in _names.split():
        setattr(_cuda, _name, routine(getattr(_cuda, _name), TWINS.get(_name, getattr(_cpu, _name))))
for _name in ("grids_like", "values_in_boxes", "transfer_values", "mean_squares"):
    setattr(interpolation, _name, routine(getattr(interpolation, _name), getattr(chebyshev, _name)))
_packing = "pack_triangles", "unpack_triangles", "unpack_parts"
for _name in ("along", "mask_panels", "add_blocks", "subtract_updates", *_packing):
    setattr(skeletonization, _name, routine(getattr(skeletonization, _name), getattr(entries, _name)))
solvers.row_products = routine(solvers.row_products, inverse_factor.row_products)
for _name in ("find_singular", "rows_of_factors"):
    setattr(solvers, _name, routine(getattr(solvers, _name), getattr(small_factors, _name)))
clustering.orders = splitting.orders  # by array operations: its kernels run on the emulator
for _name in ("up", "down_inner", "down_outer"):
    setattr(cuda_nested, _name, routine(getattr(cuda_nested, _name), getattr(cpu_nested, _name)))
for _room, _names in REPEATED.items():  # each call gets its twin's numbers
    for _name in _names.split():
        setattr(import_module(f"{_room}.repeats"), _name, lambda *_, **__: None)
samples.gaussian = randomized.gaussian = routine(samples.gaussian, samples.gaussian)
