"""gemv, symv, syrk, trsm and axpy on both devices, stacks and ragged batches, against NumPy in double precision."""

from importlib import import_module

import numpy as np
import pytest
from reference import normal

from h2gpu import batched
from h2gpu.arrays import to_host
from h2gpu.batched import MatrixBatch
from h2gpu.batched.device import tuning

REAL, COMPLEX = [np.float32, np.float64], [np.complex64, np.complex128]
SHAPES = [(4, 1, 1), (3, 5, 3), (5, 17, 32), (4, 33, 65), (2, 130, 127), (2, 3, 300), (2, 300, 4), (3, 4, 0), (0, 4, 4)]
SHAPES += [(40, 16, 150), (3, 64, 96)]  # on a GPU few rows: one a team; columns of whole pieces, for a warp each
ORDERS = (1, 2, 7, 8, 9, 31, 32, 33, 64, 65, 100, 131)
RAGGED = np.array([(3, 5), (64, 65), (1, 1), (33, 2), (0, 4), (7, 0), (130, 17), (16, 16)])


def random(shape, dtype, seed=0):
    return normal(np.random.default_rng(seed), dtype, *np.atleast_1d(shape))


SYRK_METHODS = {  # of the GPU, and (batch, n, k): pieces that reach over rows and matrices; whole matrices and slabs
    "entries": ((700, 1, 1), (301, 3, 2), (5, 33, 1), (9, 32, 1), (3, 64, 2), (2, 130, 1)),
    "fixed": ((3, 9, 4), (3, 33, 17), (5, 33, 18), (2, 64, 64), (2, 66, 40), (2, 130, 64)),
}


def ragged(rows, columns, dtype, seed=0):
    A = MatrixBatch.empty(rows, columns, dtype)
    A.buffer[:] = random(A.buffer.size, dtype, seed)
    return A


def close(found, exact, sizes, dtype):
    """|Δ| ≤ 10 ε (sizes + 1) entry by entry: sizes are sums of |factors|."""
    found = to_host(found)
    assert found.shape == exact.shape and found.dtype == dtype
    assert (np.abs(found - exact) <= 10 * np.finfo(dtype).eps * (sizes + 1)).all()


def wide(*arrays):
    return [A.astype(np.complex128 if A.dtype.kind == "c" else np.float64) for A in arrays]


def turned(A, flag):
    return A.swapaxes(-1, -2) if flag else A


def matrices_of(batch):
    return batch.to(np).matrices()


@pytest.mark.parametrize("trans", [False, True])
@pytest.mark.parametrize("dtype", REAL + COMPLEX)
@pytest.mark.parametrize("shape", SHAPES)
def test_gemv(xp, shape, dtype, trans):
    A = random(shape, dtype)
    m, n = turned(A, trans).shape[1:]
    x, y = random((len(A), n), dtype, 1), random((len(A), m), dtype, 2)
    (op, X, Y), on = wide(turned(A, trans), x, y), [xp.asarray(M) for M in (A, x, y)]
    sizes = (np.abs(op) @ np.abs(X)[..., None])[..., 0]
    close(batched.gemv(*on[:2], trans=trans), (op @ X[..., None])[..., 0], sizes, dtype)
    expected = 1.5 * (op @ X[..., None])[..., 0] - 0.5 * Y
    close(batched.gemv(*on, 1.5, -0.5, trans), expected, 2 * sizes + np.abs(Y), dtype)


@pytest.mark.gpu
def test_threads_share_long_sums_of_few_matrices():
    import cupy

    from h2gpu.batched.device.limits import multiprocessors
    from h2gpu.batched.products import vectors

    busy, dtype = multiprocessors(cupy.cuda.runtime.getDevice()), np.dtype(np.float64)
    for batch, m, n, alone in ((1, 16, 128, 0), (1, 64, 64, 1), (100, 30, 100, 1), (100, 16, 512, 0), (100, 8, 8, 1)):
        for shape, way in (((m, n), vectors.BY_ROWS), ((n, m), vectors.BY_COLUMNS)):
            assert vectors.in_runs(dtype, batch * busy, *shape, way) == alone
    for n, way, aligned in (
        (64, vectors.BY_ROWS, True),
        (64, vectors.BY_COLUMNS, False),
        (46, vectors.BY_COLUMNS, True),
    ):
        assert vectors.in_runs(dtype, 100 * busy, 64, n, way, aligned)
    assert not vectors.in_runs(dtype, 100 * busy, 64, 48, vectors.BY_COLUMNS, True)
    for batch, of_team in ((3, (vectors.GEMV_THREADS, 1)), (4, (32, 1)), (15, (32, 1)), (16, (32, 4))):  # of one row
        assert vectors.spread(batch * busy, 1, 32, 4, 128)[:2] == of_team
    fit = vectors.GEMV_RESIDENT // 256 * busy
    assert [vectors.resident(blocks, 256) for blocks in (fit, fit + 1, 2 * fit, 2 * fit + 1)] == [256, 128, 128, 256]


@pytest.mark.parametrize("trans", [False, True])
@pytest.mark.parametrize("dtype", REAL)
def test_gemv_of_ragged_matrices(xp, dtype, trans):
    A = ragged(*RAGGED.T, dtype)
    m, n = (RAGGED.T[::-1]) if trans else RAGGED.T
    x, y = (ragged(rows, np.ones_like(rows), dtype, 1 + i) for i, rows in enumerate((n, m)))
    found = matrices_of(batched.gemv(A.to(xp), x.to(xp), y.to(xp), 1.5, -0.5, trans))
    for b in range(len(A)):
        op, X, Y = wide(turned(A[b], trans), x[b], y[b])
        close(found[b], 1.5 * op @ X - 0.5 * Y, 2 * np.abs(op) @ np.abs(X) + np.abs(Y), dtype)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("shift", [0, 1, 3])
def test_what_lies_beside_a_run_of_matrices_is_not_used(shift, dtype):
    """Pieces of 16 bytes reach beyond the first and the last matrix: the same bits whatever lies there."""
    cp = pytest.importorskip("cupy")
    m, n, batch, found = 5, 5, 2001, []
    x = cp.asarray(random((batch, n), dtype, 1))
    for beside in (0, np.nan):
        buffer = cp.full(shift + batch * m * n + 7, beside, dtype)
        A = buffer[shift:][: batch * m * n].reshape(batch, m, n)
        A[...] = cp.asarray(random((batch, m, n), dtype))
        found.append([f.get() for f in (batched.gemv(A, x), batched.gemv(A, x, trans=True), batched.symv(A, x))])
    for y, z in zip(*found):
        assert np.isfinite(y).all() and (y == z).all()


@pytest.mark.gpu
@pytest.mark.parametrize("trans", [False, True])
@pytest.mark.parametrize("shift", [1, 2, 3])
@pytest.mark.parametrize("n", [64, 164])
def test_gemv_of_misaligned_matrices(n, shift, trans):
    cp = pytest.importorskip("cupy")
    buffer = cp.asarray(random(4 * n * n + shift, np.float32))
    A, x = buffer[shift:].reshape(4, n, n), cp.asarray(random((4, n), np.float32, 1))
    (op, X) = wide(turned(A.get(), trans), x.get())
    sizes = (np.abs(op) @ np.abs(X)[..., None])[..., 0]
    close(batched.gemv(A, x, trans=trans), (op @ X[..., None])[..., 0], sizes, np.float32)


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("dtype", REAL)
def test_symv_reads_one_triangle(xp, dtype, lower):
    for n in ORDERS:
        A, x, y = random((3, n, n), dtype), random((3, n), dtype, 1), random((3, n), dtype, 2)
        half, X, Y = wide(np.tril(A) if lower else np.triu(A), x, y)
        whole = half + half.swapaxes(1, 2) * (1 - np.eye(n))
        poisoned = np.where(np.tri(n, dtype=bool) if lower else np.tri(n, dtype=bool).T, A, np.nan).astype(dtype)
        found = batched.symv(*(xp.asarray(M) for M in (poisoned, x, y)), 1.5, -0.5, lower)
        sizes = 2 * (np.abs(whole) @ np.abs(X)[..., None])[..., 0] + np.abs(Y)
        close(found, 1.5 * (whole @ X[..., None])[..., 0] - 0.5 * Y, sizes, dtype)


def test_symv_of_ragged_matrices(xp):
    n = np.array(ORDERS)
    A, x = ragged(n, n, np.float64), ragged(n, np.ones_like(n), np.float64, 1)
    for found, M, v in zip(matrices_of(batched.symv(A.to(xp), x.to(xp))), A.matrices(), x.matrices()):
        whole = np.tril(M) + np.tril(M, -1).T
        close(found, whole @ v, np.abs(whole) @ np.abs(v), np.float64)


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("trans", [False, True])
@pytest.mark.parametrize("dtype", REAL)
def test_syrk_touches_one_triangle(xp, dtype, trans, lower):
    triangle = np.tril if lower else np.triu
    for n, k in ((1, 1), (5, 0), (16, 7), (17, 33), (65, 20), (130, 64)):
        A, C = random((2, n, k), dtype), random((2, n, n), dtype, 1)
        given = np.ascontiguousarray(turned(A, trans))
        op, start = wide(A, C)
        P, sizes = op @ turned(op, True), np.abs(op) @ np.abs(turned(op, True))
        close(batched.syrk(xp.asarray(given), trans=trans, lower=lower), triangle(P), sizes, dtype)
        found = batched.syrk(xp.asarray(given), xp.asarray(C), 1.5, -0.5, trans, lower)
        inside = triangle(np.ones((n, n), bool))
        close(found, np.where(inside, 1.5 * P - 0.5 * start, start), 2 * sizes + np.abs(start), dtype)


@pytest.mark.gpu
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("trans", [False, True])
@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("method", SYRK_METHODS)
def test_syrk_by_every_method(method, dtype, trans, lower):
    cp = pytest.importorskip("cupy")
    for batch, n, k in SYRK_METHODS[method]:
        A, C = random((batch, n, k), dtype), random((batch, n, n), dtype, 1)
        given, triangle = np.ascontiguousarray(turned(A, trans)), np.tril if lower else np.triu
        op, start = wide(A, C)
        P, sizes = op @ turned(op, True), np.abs(op) @ np.abs(turned(op, True))
        inside = triangle(np.ones((n, n), bool))
        with tuning.trial("syrk", method=method):
            found = batched.syrk(cp.asarray(given), alpha=1.5, trans=trans, lower=lower)
            again = batched.syrk(cp.asarray(given), alpha=1.5, trans=trans, lower=lower)
            added = batched.syrk(cp.asarray(given), cp.asarray(C), 1.5, -0.5, trans, lower)
        assert (found == again).all() and not found[:, ~cp.asarray(inside)].any()
        close(found, 1.5 * triangle(P), 1.5 * sizes, dtype)
        close(added, np.where(inside, 1.5 * P - 0.5 * start, start), 2 * sizes + np.abs(start), dtype)


def test_syrk_of_ragged_matrices(xp):
    A = ragged(*RAGGED.T, np.float64)
    for found, M in zip(matrices_of(batched.syrk(A.to(xp))), A.matrices()):
        close(found, np.tril(M @ M.T), np.abs(M) @ np.abs(M.T), np.float64)


def triangular(n, lower, unit, dtype, batch=(3,)):
    """Well conditioned, NaN where nobody may look; and the same as it is meant."""
    A = random((*batch, n, n), dtype) / max(1, n)
    A[..., range(n), range(n)] = np.nan if unit else 2 + np.abs(A[..., range(n), range(n)])
    keep = np.tri(n, dtype=bool) if lower else np.tri(n, dtype=bool).T
    meant = np.where(keep, A, 0)
    if unit:
        meant[..., range(n), range(n)] = 1
    return np.where(keep, A, np.nan).astype(dtype), meant.astype(np.float64)


@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("trans", [False, True])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("dtype", REAL)
def test_trsm(xp, dtype, side, lower, trans, unit):
    """|αB − op(A) X| ≤ 10 ε (|op(A)| |X| + |αB|)."""
    for n, k in ((1, 1), (5, 3), (32, 16), (33, 21), (64, 1), (100, 2), (100, 9), (100, 70), (130, 20)):
        A, meant = triangular(n, lower, unit, dtype)
        B = random((3, n, k) if side == "left" else (3, k, n), dtype, 1)
        X = to_host(batched.trsm(xp.asarray(A), xp.asarray(B), 1.5, side, lower, trans, unit)).astype(np.float64)
        op, times = turned(meant, trans), (lambda P, Y: P @ Y) if side == "left" else (lambda P, Y: Y @ P)
        close(times(op, X).astype(dtype), 1.5 * B, 3 * times(np.abs(op), np.abs(X)) + 3 * np.abs(B), dtype)


@pytest.mark.gpu
@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("trans", [False, True])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("dtype", REAL)
def test_trsm_by_blocks(blas, monkeypatch, dtype, side, lower, trans, unit):
    """Products of cuBLAS between triangles on the diagonal, those of small ones too: the same bound, and B stays as it
    was."""
    import cupy

    room = import_module("h2gpu.batched.systems.trsm")

    blas(dtype)
    monkeypatch.setattr("h2gpu.batched.products.choice.MUCH", 0)
    for n, k in ((150, 6), (256, 40), (128, 16), (130, 20)):
        assert room.plan(np.dtype(dtype), 2, n, k, side == "right", lower, trans, unit, False) is None
        A, meant = triangular(n, lower, unit, dtype, (2,))
        B = random((2, n, k) if side == "left" else (2, k, n), dtype, 1)
        given = cupy.asarray(A), cupy.asarray(B)
        for _ in range(2):
            X = to_host(batched.trsm(*given, -0.5, side, lower, trans, unit)).astype(np.float64)
        np.testing.assert_array_equal(to_host(given[1]), B)
        op, times = turned(meant, trans), (lambda P, Y: P @ Y) if side == "left" else (lambda P, Y: Y @ P)
        close(times(op, X).astype(dtype), -0.5 * B, 3 * times(np.abs(op), np.abs(X)) + 3 * np.abs(B), dtype)


def test_trsm_of_ragged_matrices(xp):
    n, k = np.array([(5, 3), (64, 65), (1, 1), (33, 2), (0, 4), (7, 0), (100, 17)]).T
    A, B = ragged(n, n, np.float64), ragged(n, k, np.float64, 1)
    for M in A.matrices():
        M /= max(1, len(M))
        M[range(len(M)), range(len(M))] = 2
    for X, M, right in zip(matrices_of(batched.trsm(A.to(xp), B.to(xp))), A.matrices(), B.matrices()):
        close(np.tril(M) @ X, right, np.abs(np.tril(M)) @ np.abs(X), np.float64)


@pytest.mark.gpu
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("trans", [False, True])
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("n, dtype", [(1030, np.float32), (1030, np.float64), (7100, np.float64)])
def test_triangles_too_large_for_shared_memory(n, dtype, side, trans, lower):
    """Such as the root of a direct factorization; the other triangle is not read."""
    import cupy

    if n > 2000:
        pytest.importorskip("cupy_backends.cuda.libs.cublas")
    A = cupy.asarray(random((2, n, n), dtype) / n + 2 * np.eye(n, dtype=dtype))
    B = cupy.asarray(random((2, n, 3) if side == "left" else (2, 3, n), dtype, 1))
    T = cupy.tril(A) if lower else cupy.triu(A)
    T = T.swapaxes(1, 2) if trans else T
    A[:, *(np.triu_indices(5, 1) if lower else np.tril_indices(5, -1))] = np.nan
    X = batched.trsm(A, B, -0.5, side, lower, trans)
    product, size = (T @ X, abs(T) @ abs(X)) if side == "left" else (X @ T, abs(X) @ abs(T))
    close(to_host(product), -0.5 * to_host(B), max(3, n / 500) * to_host(size), dtype)  # sums of n terms
    pieces = batched.trsm(
        MatrixBatch.from_matrices(list(A)), MatrixBatch.from_matrices(list(B)), -0.5, side, lower, trans
    )
    for x, y in zip(pieces.matrices(), X):
        close(to_host(x), to_host(y), n * to_host(abs(y).max()), dtype)


def test_a_bad_right_hand_side_spoils_what_comes_after_it_alone(xp):
    A, _ = triangular(40, True, False, np.float64)
    B = np.ones((3, 40, 20))
    B[1, 20, 7] = np.nan
    X = to_host(batched.trsm(xp.asarray(A), xp.asarray(B)))
    assert np.isnan(X[1, 20:, 7]).all() and np.isfinite(X[1, :20, 7]).all()
    assert np.isfinite(np.delete(X, 7, axis=2)).all() and np.isfinite(X[[0, 2]]).all()


@pytest.mark.parametrize("dtype", REAL)
def test_axpy(xp, dtype):
    X, Y, alpha = random((130, 5, 7), dtype), random((130, 5, 7), dtype, 1), random(130, dtype, 2)
    on = xp.asarray(X), xp.asarray(Y)
    close(batched.axpy(*on, 2), 2.0 * X + Y, 2 * np.abs(X) + np.abs(Y), dtype)
    shifted = [M.reshape(-1)[1:] for M in on]  # begins at no multiple of 16 bytes
    flat = np.abs(X).ravel()[1:], np.abs(Y).ravel()[1:]
    expected = (2.0 * X + Y).ravel()[None, None, 1:]
    close(batched.axpy(*(M[None, None] for M in shifted), 2), expected, 2 * flat[0] + flat[1], dtype)
    expected = wide(alpha)[0][:, None, None] * X + Y
    close(batched.axpy(*on, xp.asarray(alpha)), expected, np.abs(expected) + np.abs(Y), dtype)
    X, Y = ragged(*RAGGED.T, dtype), ragged(*RAGGED.T, dtype, 1)
    for factors, asked in ((np.full(len(X), 2.0), 2), (alpha[: len(X)].astype(float), xp.asarray(alpha[: len(X)]))):
        for b, found in enumerate(matrices_of(batched.axpy(X.to(xp), Y.to(xp), asked))):
            expected = factors[b] * X[b] + Y[b]
            close(found, expected, np.abs(expected) + np.abs(Y[b]), dtype)


def test_factors_in_an_array_are_read_at_every_call(xp):
    X, Y = (xp.asarray(random((7, 3, 3), np.float64, seed)) for seed in (0, 1))
    for alpha in (xp.ones(7), xp.asarray(1.0)):
        for factor in (2.0, -3.0):
            alpha[...] = factor
            for _ in range(3):
                np.testing.assert_allclose(to_host(batched.axpy(X, Y, alpha)), to_host(factor * X + Y), atol=1e-15)


def test_many_and_none(xp):
    for batch in (0, 1, 70_000):
        A, x = xp.asarray(random((batch, 3, 3), np.float64)), xp.asarray(random((batch, 3), np.float64, 1))
        expected = (to_host(A) @ to_host(x)[..., None])[..., 0]
        np.testing.assert_allclose(to_host(batched.gemv(A, x)), expected, rtol=0, atol=1e-12)
        assert batched.syrk(A).shape == (batch, 3, 3) and batched.symv(A, x).shape == (batch, 3)
        upper = to_host(batched.trsm(A + 9 * xp.eye(3), A, lower=False))
        np.testing.assert_allclose(np.triu(to_host(A) + 9 * np.eye(3)) @ upper, to_host(A), rtol=0, atol=1e-12)


def test_doors():
    A, x = np.ones((2, 3, 4)), np.ones((2, 4))
    batch = MatrixBatch.from_stack(A)
    calls = [
        (lambda: batched.gemv(A, np.ones((2, 3))), "gemv: expected x of shape"),
        (lambda: batched.gemv(A, x.astype(np.float32)), "gemv: expected x of the precision of A"),
        (lambda: batched.gemv(batch, x), "gemv: expected x a MatrixBatch"),
        (lambda: batched.gemv(batch, batch), "gemv: expected x of the sizes"),
        (lambda: batched.symv(A, x), "symv: expected square"),
        (lambda: batched.symv(batch, batch), "symv: expected square"),
        (lambda: batched.symv(A[:, :, :3] + 0j, x[:, :3]), "symv: expected float32 or float64"),
        (lambda: batched.syrk(A, np.ones((2, 4, 4))), "syrk: expected C of shape"),
        (lambda: batched.trsm(A[:, :, :3], A, side="up"), 'expected side "left" or "right"'),
        (lambda: batched.trsm(A[:, :, :3], np.ones((2, 4, 3))), "expected B with 3 rows"),
        (lambda: batched.trsm(MatrixBatch.from_stack(A[:, :, :3].copy()), A), "expected B a MatrixBatch"),
        (lambda: batched.axpy(A, A, np.ones(3)), "axpy: expected alpha a number"),
        (lambda: batched.axpy(batch, MatrixBatch.from_stack(A[:1])), "axpy: expected Y a MatrixBatch of 2"),
        (lambda: batched.gemm(A, A, transb=True, method="fast"), "gemm: expected method one of"),
    ]
    for call, words in calls:
        with pytest.raises(ValueError, match=words):
            call()
