"""LU on both back ends: LAPACK's criteria, its pivots, its info."""

import numpy as np
import pytest
from lu_matrices import C64, C128, F32, F64, random, singular_matrices
from scipy.linalg import lu_factor

from h2gpu import batched
from h2gpu.apps.benchmarks.routines.criteria import lu_error
from h2gpu.arrays import to_host
from h2gpu.batched import MatrixBatch

METHODS = ("matrix", "shared", "panel", "column", "unblocked")
SHAPES = ((1, 1), (5, 5), (17, 17), (32, 32), (8, 31), (31, 8), (1, 9), (9, 1))
LARGER = ((33, 33), (64, 64), (100, 37), (37, 100), (129, 129))
HALVES = (
    (96, 49),
    (65, 96),
    (90, 65),
    (90, 95),
    (128, 65),
    (97, 128),
    (100, 128),
    (125, 110),
    (160, 81),
    (131, 160),
    (150, 97),
    (192, 97),
    (161, 192),
)


def factored(xp, A, method="auto"):
    """LU, piv, info on the host."""
    return tuple(to_host(M) for M in batched.lu_factor(xp.asarray(A), method, return_info=True))


def check(xp, A, method="auto"):
    LU, piv, info = factored(xp, A, method)
    assert not info.any()
    assert max(lu_error(*parts) for parts in zip(A, LU, piv)) < 1
    return piv


@pytest.mark.parametrize("dtype", [F64, F32])
def test_every_size_meets_the_criteria(xp, dtype):
    for n in range(1, 131):
        check(xp, random(3, n, n, dtype=dtype, seed=n))


@pytest.mark.parametrize("dtype", [F64, F32, C128, C64])
@pytest.mark.parametrize("method", METHODS)
def test_every_method_for_every_shape_and_type(xp, method, dtype):
    for shape in SHAPES + (() if method == "matrix" else LARGER[:4]):
        check(xp, random(2, *shape, dtype=dtype), method)


@pytest.mark.parametrize("method", METHODS)
def test_pivots_are_lapacks_where_unique(xp, method):
    for shape in SHAPES + (() if method == "matrix" else LARGER):
        A = random(3, *shape, seed=shape[0])
        np.testing.assert_array_equal(check(xp, A, method), batched.lu_factor(A)[1])


def test_half_of_the_columns_at_a_time(xp):
    """Shapes that method "shared" takes in two windows of columns, the second wide or narrow, few or many rows left."""
    for shape in HALVES:
        A = random(3, *shape, seed=shape[0])
        np.testing.assert_array_equal(check(xp, A), batched.lu_factor(A)[1])
        check(xp, A.astype(F32))


@pytest.mark.parametrize(("dtype", "shapes"), [(F64, ((128, 208), (123, 224))), (F32, ((204, 272), (193, 288)))])
def test_matrices_that_fit_fit_together(xp, dtype, shapes):
    """Of a ragged batch, where the most rows and the most columns of two would be too large for shared memory."""
    matrices = [random(*shape, dtype=dtype, seed=i) for i, shape in enumerate(shapes)]
    LU, piv = batched.lu_factor(MatrixBatch.from_matrices([xp.asarray(A) for A in matrices]), "shared")
    for A, factors, pivots in zip(matrices, LU, piv):
        assert lu_error(A, to_host(factors), to_host(pivots).ravel()) < 1


@pytest.mark.parametrize("method", METHODS)
def test_of_equal_candidates_the_first_is_the_pivot(xp, method):
    """Edges and vertices of a tree: totally unimodular, every step leaves 0 and ±1, many of them in a column."""
    rng = np.random.default_rng(1)
    for n in (8, 31) if method == "matrix" else (8, 31, 70, 100):
        A = -np.eye(n)
        for edge in range(1, n):
            A[edge, rng.integers(edge)] = 1
        A = A[rng.permutation(n)][:, rng.permutation(n)][None]
        LU, piv, info = factored(xp, A, method)
        expected = A[0].copy()
        for k in range(n):
            first = k + np.argmax(np.abs(expected[k:, k]))
            assert piv[0, k] == first
            expected[[k, first]] = expected[[first, k]]
            expected[k + 1 :, k] /= expected[k, k]
            expected[k + 1 :, k + 1 :] -= np.outer(expected[k + 1 :, k], expected[k, k + 1 :])
        assert not info.any() and np.array_equal(LU[0], expected)


@pytest.mark.parametrize("dtype", [F64, F32])
def test_growth_of_inverses_of_l_does_no_harm(xp, dtype):
    """−t below the diagonal of 16 × 16, t near 1: entries of L⁻¹ reach 2¹⁴, U stays small, no rows change places."""
    rng = np.random.default_rng(17)
    for m, n, batch in ((17, 17, 60), (16, 20, 60), (64, 64, 2), (128, 128, 2)):
        L, U = (
            np.zeros((batch, m, min(m, n))) + np.eye(m, min(m, n)),
            np.zeros((batch, min(m, n), n)) + np.eye(min(m, n), n),
        )
        for k in range(0, min(m, n) - 15, 16):
            t = 1 - 2.0 ** -rng.integers(5, 10, (batch, 1, 1))
            L[:, k : k + 16, k : k + 16] -= t * np.tri(16, k=-1)
            U[:, k : k + 16, k + 16 :] = np.rint(64 * rng.uniform(-1, 1, (batch, 16, max(0, n - k - 16)))) / 64
        check(xp, (L @ U).astype(dtype), "shared")


@pytest.mark.parametrize("dtype", [F64, F32])
@pytest.mark.parametrize("method", METHODS)
def test_of_nearly_equal_candidates_the_larger_is_the_pivot(xp, method, dtype):
    """Squares of two rows, spread over all: the only candidates of a column differ by a unit in the last place."""
    rng = np.random.default_rng(2)
    square = np.array([[1.5, 1], [np.nextafter(dtype(1.5), dtype(2)), 0.25]], dtype)
    for n in (8, 30) if method == "matrix" else (8, 30, 64, 70, 96, 128):
        A = np.kron(np.eye(n // 2, dtype=dtype), square)[rng.permutation(n)][None]
        piv = factored(xp, A, method)[1]
        np.testing.assert_array_equal(piv[0], lu_factor(A[0])[1])


def test_many_matrices_share_warps(xp):
    for n in (3, 20):
        A = random(5000 if xp is not np else 1000, n, n)
        np.testing.assert_array_equal(check(xp, A), batched.lu_factor(A)[1])


@pytest.mark.parametrize("method", METHODS)
def test_growth_of_wilkinsons_matrix_is_exact(xp, method):
    """Ones on the diagonal and in the last column, −1 below: no interchange, last column of U 1, 2, 4, …"""
    n = 30
    A = np.eye(n) - np.tri(n, k=-1)
    A[:, -1] = 1
    LU, piv, info = factored(xp, A[None], method)
    np.testing.assert_array_equal(piv[0], np.arange(n))
    np.testing.assert_array_equal(LU[0][:, -1], 2.0 ** np.arange(n))
    assert info[0] == 0


@pytest.mark.parametrize("method", METHODS)
def test_the_first_zero_pivot_is_reported(xp, method):
    sizes = ((4, F64), (30, F64), (30, F32)) + (() if method == "matrix" else ((70, F64), (40, F32), (64, F32)))
    for n, dtype in sizes:
        A = singular_matrices(n, dtype)
        LU, piv, info = factored(xp, A, method)
        expected = [1, 2, 1, n // 2 + 1, n, n // 2 + 1, 0]
        np.testing.assert_array_equal(info, expected)
        np.testing.assert_array_equal(info, batched.lu_factor(A, return_info=True)[2])
        assert max(lu_error(*parts) for parts in zip(A, LU, piv)) < 1


@pytest.mark.parametrize("method", METHODS)
def test_nan_and_infinity_are_refused_and_neighbours_untouched(xp, method):
    for n in (5, 30) if method == "matrix" else (5, 40, 70):
        A = random(6, n, n)
        clean = factored(xp, A, method)
        A[1, n // 2, 1], A[4, -1, -1] = np.nan, np.inf
        LU, piv, info = factored(xp, A, method)
        np.testing.assert_array_equal(info, [0, -1, 0, 0, -1, 0])
        assert np.isnan(LU[[1, 4]]).all()
        for found, expected in zip((LU, piv), clean):
            np.testing.assert_array_equal(found[[0, 2, 3, 5]], expected[[0, 2, 3, 5]])
        with pytest.raises(np.linalg.LinAlgError, match="lu_factor: NaN or Inf in matrices 1, 4"):
            batched.lu_factor(xp.asarray(A), method)


@pytest.mark.parametrize("dtype", [F64, F32, C128])
def test_nan_and_infinity_are_seen_wherever_they_are(xp, dtype):
    for m, n in ((7, 7), (33, 33), (64, 40), (90, 90), (128, 128), (97, 128)):
        places = [(i, j) for i in range(0, m, -(-m // 6)) for j in range(0, n, -(-n // 6))]
        A = random(2 * len(places), m, n, dtype=dtype, seed=m)
        for b, place in enumerate(places):
            A[2 * b][place] = np.nan if b % 2 else -np.inf
        LU, _, info = factored(xp, A)
        np.testing.assert_array_equal(info, [-1, 0] * len(places))
        assert np.isnan(LU[::2]).all() and np.isfinite(LU[1::2]).all()


@pytest.mark.parametrize("method", METHODS)
def test_factors_that_overflow_are_no_reason_to_refuse(xp, method):
    """Wilkinson's matrix: its last column doubles with every step."""
    n = 31
    A = np.eye(n) - np.tri(n, k=-1)
    A[:, -1] = 1
    LU, _, info = factored(xp, 1e305 * A[None], method)
    assert info[0] >= 0 and not np.isfinite(LU[0, -1, -1]) and np.isfinite(LU[0, :, :-1]).all()


@pytest.mark.parametrize(("dtype", "scale"), [(F64, 1e-306), (F64, 1e-290), (F64, 4e306), (F32, 4e36), (C128, 4e306)])
def test_near_under_and_overflow(xp, dtype, scale):
    for n in (7, 50):
        check(xp, np.dtype(dtype).type(scale) * np.clip(random(3, n, n, dtype=dtype).real, -2, 2).astype(dtype))


def test_hardly_regular_matrices(xp):
    for n in (6, 20, 48):
        i = np.arange(1, n + 1)
        hilbert = 1 / (i[:, None] + i - 1)
        LU, piv, _ = factored(xp, hilbert[None])
        assert lu_error(hilbert, LU[0], piv[0]) < 1


def test_ragged_batches_are_what_their_matrices_are(xp):
    shapes = [(3, 3), (0, 4), (40, 40), (12, 30), (3, 3), (70, 20), (33, 0), (31, 31), (200, 180), (5, 40)]
    matrices = [random(*shape, seed=b) for b, shape in enumerate(shapes)]
    matrices[4][1, 1] = np.nan
    batch = MatrixBatch.from_matrices([xp.asarray(A) for A in matrices])
    LU, piv, info = batched.lu_factor(batch, return_info=True)
    np.testing.assert_array_equal(to_host(info), [-1 if b == 4 else 0 for b in range(len(shapes))])
    for b, A in enumerate(matrices):
        if A.size and b != 4:
            assert lu_error(A, to_host(LU[b]), to_host(piv[b]).ravel()) < 1
    part = MatrixBatch.from_matrices([xp.asarray(A) for A in matrices[::-1]])[::-1]  # not packed in order
    again, _, _ = batched.lu_factor(part, return_info=True)
    np.testing.assert_array_equal(to_host(again.entries), to_host(LU.entries))


@pytest.mark.gpu
def test_methods_say_what_is_too_large_for_them():
    import cupy

    for method, n in (("matrix", 33), ("shared", 400)):
        with pytest.raises(ValueError, match=f"{n} × {n} is too large"):
            batched.lu_factor(cupy.zeros((1, n, n)), method)


@pytest.mark.gpu
def test_tall_panels_beyond_registers():
    """Every width of a panel in registers, and columns beyond."""
    import cupy

    for dtype, rows in ((F64, (600, 1500, 2100)), (F32, (1100,)), (C128, (600, 1100))):
        for m in rows:
            A = random(2, m, 40, dtype=dtype)
            check(cupy, A, "panel")
