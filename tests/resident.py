"""Truncation whose ranks stay on a GPU, without one: the host's part of it, with the CPU's routines for kernels.

CuPy is replaced by the stand-in of tests/instances.py; the routines that truncation calls take matrices whose sizes are
arrays of the stand-in, as they would be on a device, and answer like those of h2gpu.batched.cuda. Run as a program, so
that nothing of this stays behind in the process of the tests: it fails where a result differs from the CPU's by a bit.
"""

import sys

import instances
import numpy as np

Array = instances.Array


def host(a):
    return np.asarray(a).view(np.ndarray) if isinstance(a, np.ndarray) else a


def there(a):
    return np.array(host(a)).view(Array)


instances.install(set())
import cupy  # noqa: E402  the stand-in

from h2gpu.batched import MatrixBatch, cpu, cuda, launch, modules  # noqa: E402
from h2gpu.covariance import Exponential  # noqa: E402
from h2gpu.h2matrix import truncation  # noqa: E402
from h2gpu.h2matrix.construction import deferred  # noqa: E402
from h2gpu.h2matrix.decompositions import TruncatedSVD  # noqa: E402
from h2gpu.h2matrix.orthogonalization import triangular_factors  # noqa: E402
from h2gpu.h2matrix.weights import total_weights  # noqa: E402


def sized(M):
    """The matrices with sizes on the host."""
    return MatrixBatch(*map(host, (M.buffer, M.offsets, M.rows, M.columns)))


def gemm(A, B, C, alpha, beta, transa, transb, out, method="auto"):
    cpu.gemm(sized(A), sized(B), None, alpha, beta, transa, transb, sized(out))
    return out


def gather(A, index, transpose, out):
    index = np.arange(len(out)) if index is None else host(index)
    cpu.gather(sized(A), index, np.broadcast_to(transpose, index.shape), sized(out))
    return out


def truncated_svd(A, atol, padded=False, return_info=False, consume=False):
    (m, n), count = A.bounds, len(A)
    k, (U, s, missed) = min(m, n), cpu.truncated_svd(sized(A), host(atol))[:3]
    ranks, sigma = there(U.columns), np.zeros((count, k), A.dtype)
    out = MatrixBatch.empty(there(A.rows), ranks, A.dtype, cupy, (m, k))
    cpu.gather(U, np.arange(count), np.zeros(count, bool), sized(out))
    for row, values in zip(sigma, s.matrices()):
        row[: len(values)] = values[:, 0]
    places = there(k * np.arange(count)), ranks, there(np.ones(count, np.int64))
    return out, MatrixBatch(there(sigma).reshape(-1), *places, (k, 1)), there(missed), there(np.zeros(count, np.int32))


def concatenate(parts, axis=0, whole=np.concatenate):
    """NumPy's, but as in CuPy arrays of one kind alone."""
    assert len({isinstance(part, Array) for part in parts}) == 1, "arrays of the host beside those of the device"
    return whole(parts, axis)


def install():
    np.concatenate = concatenate
    cupy.asarray = lambda a, dtype=None: np.asarray(a, dtype).view(Array)
    launch.launch = modules.kernel = launch.kernel = lambda *_, **__: None
    cuda.gemm, cuda.gather, cuda.truncated_svd = gemm, gather, truncated_svd
    cuda.shared_ranks = lambda sigma, allowance: there(cpu.shared_ranks(host(sigma), float(allowance)))
    cuda.discarded = lambda sigma, ranks: there(cpu.discarded(host(sigma), host(ranks)))
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith("h2gpu") and hasattr(module, "to_host"):
            module.to_host = host


def moved(M):
    return MatrixBatch(M.buffer.view(Array), M.offsets, M.rows, M.columns)


def compare(split, order, leaf_size):
    """Truncations that wait at no level, at some, at all: the CPU's."""
    points = np.random.default_rng(0).random((2000, 2)) ** 2
    A = deferred(points, Exponential(1.0, 0.2), leaf_size=leaf_size, order=order, split=split)
    Z = total_weights(A.row_basis, A.couplings, triangular_factors(A.col_basis))
    task = 1e-4, TruncatedSVD(), truncation.SharedBudget()
    expected, change = truncation.truncate(A.row_basis, list(Z), *task)
    basis = truncation.replace(A.row_basis, leaf=moved(A.row_basis.leaf), transfer=moved(A.row_basis.transfer))
    for room in (0, 4 << 15, 16 << 15, 1 << 40):
        truncation.ROOM["cupy"] = room
        found, changed = truncation.truncate(basis, [moved(level) for level in Z], *task)
        assert (host(found.ranks) == expected.ranks).all()
        for one, other in ((found.leaf, expected.leaf), (found.transfer, expected.transfer)):
            assert (host(one.entries) == host(other.entries)).all()
        assert (host(changed.matrices.entries) == host(change.matrices.entries)).all()
        yield len(A.row_basis.tree.level_offsets) - 1 - truncation._first_to_wait(basis, 0, task[1], Z)


if __name__ == "__main__":
    install()
    for case in (("median", 5, 25), ("mean", 5, 30), ("median", 8, 64)):
        print(*case, "levels that wait:", *compare(*case))
