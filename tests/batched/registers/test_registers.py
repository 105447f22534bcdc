"""Small problems in registers, not pivoted: LAPACK's criteria, breakdowns that are told, either back end."""

import numpy as np
import pytest
from reference import normal

from h2gpu.apps.benchmarks.routines.criteria import one_norm, worst
from h2gpu.arrays import to_host
from h2gpu.batched import registers
from h2gpu.batched.registers.layouts import THREAD, layout

DTYPES = [np.float32, np.float64, np.complex64]
THRESHOLD = 30
SHAPES = [(16, 4), (9, 5), (5, 9), (1, 7), (7, 1), (40, 20), (64, 33), (20, 40)]
LAYOUTS = ["auto", "2d", "row", "column"]


@pytest.fixture
def rng():
    return np.random.default_rng(6)


def dominant(rng, dtype, batch, n):
    """Matrices that need no pivoting."""
    return normal(rng, dtype, batch, n, n) + (4 * np.sqrt(n) * np.eye(n)).astype(dtype)


def wide(*arrays):
    """On the host, in double precision."""
    return [to_host(A).astype(np.result_type(to_host(A).dtype, np.float64)) for A in arrays]


def fraction(residual, unit, epsilon):
    """Of LAPACK's threshold."""
    return worst(one_norm(residual) / (np.where(unit > 0, unit, 1) * epsilon)) / THRESHOLD


def orthogonal(QR, tau):
    """Q = H_1 H_2 ⋯ of one matrix, m × m."""
    Q = np.eye(len(QR), dtype=QR.dtype)
    for k, t in enumerate(tau):
        v = np.concatenate((np.zeros(k), [1], QR[k + 1 :, k]))
        Q -= t * np.outer(Q @ v, v.conj())
    return Q


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [*range(1, 17), 23, 32, 33, 56, 64])
def test_lu_and_systems(n, dtype, xp, rng):
    A, b = dominant(rng, dtype, 35, n), normal(rng, dtype, 35, n, 2)
    epsilon = np.finfo(dtype).eps
    (F,), (M, B) = wide(registers.lu(xp.asarray(A))), wide(A, b)
    product = (np.tril(F, -1) + np.eye(n)) @ np.triu(F)
    assert fraction(product - M, n * one_norm(M), epsilon) < 1
    for method in registers.METHODS:
        (x,) = wide(registers.solve(xp.asarray(A), xp.asarray(b), method))
        assert fraction(M @ x - B, n * one_norm(M) * one_norm(x), epsilon) < 1


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", range(1, 17))
def test_cholesky_reads_the_lower_triangle(n, dtype, xp, rng):
    B = normal(rng, dtype, 33, n, n)
    A = B @ B.conj().swapaxes(1, 2) + n * np.eye(n, dtype=dtype)
    given = A.copy()
    given[:, np.triu(np.ones((n, n), bool), 1)] = np.nan
    L, (M,) = registers.cholesky(xp.asarray(given)), wide(A)
    (L,) = wide(L)
    assert not np.triu(L, 1).any()
    assert fraction(L @ L.conj().swapaxes(1, 2) - M, n * one_norm(M), np.finfo(dtype).eps) < 1


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [*((n, n) for n in range(1, 17)), *SHAPES])
def test_qr_of_all_scales(shape, dtype, xp, rng):
    (m, n), epsilon = shape, np.finfo(dtype).eps
    A = normal(rng, dtype, 6, m, n)
    A[0], A[1, :, 0] = 0, 0
    A[2] *= np.finfo(dtype).tiny * 2.0**30  # denormal numbers may count as zero
    A[3] *= np.finfo(dtype).max / 2**14
    QR, tau = registers.qr(xp.asarray(A))
    assert QR.dtype == dtype and tau.shape == (6, min(m, n))
    size = np.abs(A).max(axis=(1, 2), keepdims=True).astype(np.float64)
    size[size == 0] = 1
    F, tau, M = wide(QR, tau, A)
    Q, R, M = np.stack([orthogonal(f, t) for f, t in zip(F, tau)]), np.triu(F) / size, M / size
    assert fraction(Q @ R - M, max(m, n) * one_norm(M), epsilon) < 1
    assert fraction(Q.conj().swapaxes(1, 2) @ Q - np.eye(m), np.full(6, float(m)), epsilon) < 1
    assert not np.iscomplexobj(R) or np.abs(np.diagonal(R, axis1=1, axis2=2).imag).max() <= epsilon


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", LAYOUTS)
def test_every_layout_gives_the_same(kind, dtype, xp, rng):
    """What the layouts differ in is rounding."""
    for m, n in ((12, 12), (30, 17)):
        A, b = normal(rng, dtype, 4, m, n), normal(rng, dtype, 4, m)
        x, condition = registers.least_squares(xp.asarray(A), xp.asarray(b), kind)
        tolerance = 100 * np.finfo(dtype).eps * to_host(condition).max()
        expected = np.stack([np.linalg.lstsq(M, y, rcond=None)[0] for M, y in zip(*wide(A, b))])
        np.testing.assert_allclose(to_host(x), expected, rtol=0, atol=tolerance * np.abs(expected).max())
        assert (to_host(condition) >= 0.99 * np.linalg.cond(A.astype(np.result_type(dtype, np.float64)))).all()
        QR, _ = registers.qr(xp.asarray(A), kind)
        diagonal = np.abs(np.diagonal(to_host(QR), axis1=1, axis2=2))
        reference = np.abs(np.diagonal(np.linalg.qr(A, mode="r"), axis1=1, axis2=2))
        np.testing.assert_allclose(diagonal, reference, rtol=1e3 * np.finfo(dtype).eps * to_host(condition).max())


@pytest.mark.parametrize("n", [3, 20])
@pytest.mark.parametrize("dtype", DTYPES)
def test_breakdowns_are_told(n, dtype, xp, rng):
    A, b = dominant(rng, dtype, 5, n), normal(rng, dtype, 5, n)
    A[1, 0, 0] = 0
    A[2, 2] = 0
    A[3, 1, 1] = np.nan
    A[4, 0, 0] = np.finfo(dtype).eps
    given = xp.asarray(A), xp.asarray(b)
    for result in (
        registers.lu(given[0], return_info=True),
        *(registers.solve(*given, m, return_info=True) for m in registers.METHODS),
    ):
        info = to_host(result[1])
        assert info[0] == 0 and info[1] == 1 and info[2] == 3 and info[3] == -1 and info[4] == 1
    with pytest.raises(np.linalg.LinAlgError, match="matrices"):
        registers.lu(given[0])
    with pytest.raises(np.linalg.LinAlgError, match="a breakdown without pivoting in matrices 1"):
        registers.solve(given[0][:3], given[1][:3])


def test_cholesky_of_what_is_not_positive(xp):
    A = np.stack([np.eye(4), -np.eye(4), np.diag([1.0, 2.0, 0.0, 1.0])])
    _, info = registers.cholesky(xp.asarray(A), return_info=True)
    assert to_host(info).tolist() == [0, 1, 3]


def test_empty_batches_and_leading_dimensions(xp, rng):
    A, b = dominant(rng, np.float64, 6, 4), rng.standard_normal((6, 4))
    assert registers.lu(xp.asarray(A[:0])).shape == (0, 4, 4)
    x = registers.solve(xp.asarray(A.reshape(2, 3, 4, 4)), xp.asarray(b.reshape(2, 3, 4)))
    np.testing.assert_allclose(to_host(x).reshape(6, 4), np.linalg.solve(A, b[..., None])[..., 0], rtol=1e-12)
    assert registers.solve(xp.asarray(A[0]), xp.asarray(b[0])).shape == (4,)


@pytest.mark.parametrize(
    "call",
    [
        lambda: registers.lu(np.ones((2, 3, 4))),
        lambda: registers.solve(np.ones((2, 3, 3)), np.ones((2, 4))),
        lambda: registers.solve(np.ones((2, 3, 3)), np.ones((2, 3)), "pivoted"),
        lambda: registers.solve(np.ones((2, 3, 3), np.float32), np.ones((2, 3))),
        lambda: registers.least_squares(np.ones((2, 3, 4)), np.ones((2, 3))),
        lambda: registers.qr(np.ones((2, 3, 3), complex)),
        lambda: layout(np.float32, 3, 3, "diagonal"),
    ],
)
def test_doors(call):
    with pytest.raises(ValueError, match="expected"):
        call()


def test_layouts_hold_the_problem():
    assert layout(np.float32, 8, 8) == THREAD
    for dtype in DTYPES:
        for m in range(1, 130, 7):
            grid = layout(dtype, m, m + 1, "2d")
            if grid:
                height, width = grid.tile(m, m + 1)
                assert grid.rows * height >= m and grid.columns * width >= m + 1 and grid.threads % 32 == 0
    assert layout(np.complex64, 240, 67).threads == 512
    assert layout(np.float64, 1000, 1000) is None
