"""QR of every size and kind of matrix against LAPACK's criteria, on the CPU and on the GPU."""

import numpy as np
import pytest
from batches import assert_alone_as_together
from latms import EXCEPTIONAL, all_spectra, exceptional, extremes, normal, to

from h2gpu import batched
from h2gpu.apps.benchmarks.routines.criteria import column_error, failures, on_host, qr_error, triangle_error
from h2gpu.batched import MatrixBatch

DTYPES = [np.float64, np.float32]
EVERY = 130  # sizes without a gap; beyond: limits of the kernels' classes of columns and their neighbours
SELECTED = [131, 160, 192, 255, 256, 257, 384, 511, 512, 513, 777, 1024]
LARGEST_ON_CPU = 192
DIGITS = {np.float64: 15, np.float32: 10}


@pytest.fixture
def rng():
    return np.random.default_rng(31)


def shapes_of(n):
    """Square, taller and wider: the reduced wide one, a little more, twice as many rows as columns and beyond."""
    return (n, n), (n + 1 + n // 3, n), (2 * n, n), (3 * n + 7, n), (n, n + 1 + n // 3), (n, 2 * n + 5)


def check(A, xp):
    """Q and R, and R alone, of a batch by the criteria."""
    given = to(A, xp)
    found = failures(qr_error, A, *batched.qr(given))
    assert not found
    found = failures(triangle_error, A, batched.qr(given, mode="r"))
    assert not found, "R alone"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", range(6))
def test_every_size_in_one_batch(shape, dtype, xp, rng):
    sizes = range(1, EVERY + 1, 11 if xp is np else 1)
    check(normal([shapes_of(n)[shape] for n in sizes], dtype, rng), xp)


@pytest.mark.parametrize("dtype", DTYPES)
def test_few_sizes_many_times_in_any_order(dtype, xp, rng):
    """Ragged, yet most matrices are alike: they go together, and come back where they were."""
    runs = np.repeat([(9, 5), (5, 9), (30, 30), (0, 3), (64, 20)], [40, 20, 30, 9, 25], axis=0)
    for shapes in (runs, rng.permutation(runs)):
        check(normal(shapes, dtype, rng), xp)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", range(6))
def test_every_size_by_itself(shape, dtype, rng):
    cupy = pytest.importorskip("cupy")
    for n in range(1, EVERY + 1):
        check(rng.standard_normal((2, *shapes_of(n)[shape])).astype(dtype), cupy)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("start", range(4))
def test_selected_sizes_to_1024(start, dtype, xp, rng):
    for n in SELECTED[start::4]:
        if n <= LARGEST_ON_CPU or xp is not np:
            check(normal([(n, n), (n + n // 2 + 1, n), (n // 3, n), (2 * n + 5, n // 2)], dtype, rng), xp)
            check(rng.standard_normal((1, n, n)).astype(dtype), xp)


@pytest.mark.parametrize("dtype", DTYPES)
def test_matrices_of_more_columns_than_there_are_kernels_for(dtype, xp, rng):
    check(normal([(40, 1100), (20, 1500), (5, 3)], dtype, rng), xp)
    check(rng.standard_normal((2, 30, 1200)).astype(dtype), xp)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (20, 20), (65, 64), (33, 90), (100, 37), (300, 121), (200, 150)])
def test_spectra_and_scales(shape, dtype, xp, rng):
    """LATMS modes 1 to 6 of every condition; all of them near underflow, below it and near overflow as well."""
    if xp is np and max(shape) > 100:
        shape = shape[0] // 4, shape[1] // 4
    A = all_spectra(*shape, dtype, rng)
    check(np.concatenate([A, *(A * dtype(factor) for factor in extremes(dtype).values())]), xp)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (7, 7), (33, 32), (65, 65), (45, 90), (129, 60), (300, 130)])
def test_exceptional_matrices_together_and_alone(shape, dtype, xp, rng):
    """All kinds in one batch; the GPU gives each the same bits alone."""
    A = np.stack(list(exceptional(*shape, dtype, rng).values()))
    check(A, xp)
    if xp is not np:
        assert_alone_as_together(lambda A: (*batched.qr(A), batched.qr(A, mode="r")), xp.asarray(A), list(EXCEPTIONAL))


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_column_is_right_to_its_own_rounding(dtype, xp, rng):
    """A = B D, D to condition 10¹⁵; in float32 10¹⁰, where squares of a column's entries are still above underflow."""
    shapes = [(n, n) for n in (2, 9, 31, 64, 90)] + [(200, 50), (40, 90), (500, 130)]
    A = normal(shapes, dtype, rng)
    for M in A.matrices():
        M *= (10.0 ** -rng.permutation(np.linspace(0, DIGITS[dtype], M.shape[1]))).astype(dtype)
    assert not failures(column_error, A, *batched.qr(to(A, xp)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_end_and_harm_no_neighbour(bad, dtype, xp, rng):
    shapes = [(n, n) for n in (3, 17, 40, 90, 200)] + [(60, 9), (9, 60), (300, 100), (900, 128), (260, 250)]
    clean = normal([shape for shape in shapes for _ in range(3)], dtype, rng)
    spoilt = to(clean, np)
    for b in range(1, len(spoilt), 3):
        spoilt[b][-1, 0] = spoilt[b][0, -1] = bad
    for mode in ("reduced", "r"):
        before, after = (batched.qr(to(A, xp), mode) for A in (clean, spoilt))
        for old, new in zip(*((M,) if mode == "r" else M for M in (before, after))):
            old, new = on_host(old), on_host(new)
            for b in range(len(clean)):
                if b % 3 != 1:
                    np.testing.assert_array_equal(old[b], new[b])
        bad_R = on_host(after if mode == "r" else after[1])
        assert all(np.isnan(bad_R[b]).any() for b in range(1, len(spoilt), 3))


SHAPES = [(70_000, 9, 5), (3, 150, 140), (0, 9, 5), (70_000, 24, 8), (1, 9, 5), (200, 200, 64), (700, 140, 33)]
RAGGED = [(50, 200), (2500, 100)]  # matrices, and what no side reaches


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES)
def test_batches_in_turn_give_the_same_bits(dtype, rng):
    """70,000 matrices, beyond a grid's second dimension, few, one and none: nothing is left of what ran before."""
    cupy = pytest.importorskip("cupy")
    batches = [cupy.asarray(rng.standard_normal(shape).astype(dtype)) for shape in SHAPES]
    batches += [to(normal(rng.integers(0, largest, (count, 2)), dtype, rng), cupy) for count, largest in RAGGED]
    first = [(*batched.qr(A), batched.qr(A, mode="r")) for A in batches]
    again = [(*batched.qr(A), batched.qr(A, mode="r")) for A in reversed(batches)][::-1]
    for A, results, repeated in zip(batches, first, again):
        for M, N in zip(results, repeated):
            M, N = (on_host(X.buffer if isinstance(X, MatrixBatch) else X) for X in (M, N))
            np.testing.assert_array_equal(M, N)
        some = np.unique(np.append(np.linspace(0, len(A) - 1, min(len(A), 50)), [65_535, 65_536]).astype(int))
        some = some[some < len(A)]
        A, Q, R, R_alone = (on_host(M)[some] for M in (A, *results))
        assert not failures(qr_error, A, Q, R) and not failures(triangle_error, A, R_alone)


@pytest.mark.parametrize("dtype", DTYPES)
def test_r_alone_into_given_memory(dtype, xp, rng):
    """Into every other place of a batch, placed or not; one size and many."""
    for m, n in (([40] * 9, [20] * 9), (rng.integers(0, 90, 30), rng.integers(0, 60, 30))):
        A = MatrixBatch.from_matrices([xp.asarray(rng.standard_normal(shape).astype(dtype)) for shape in zip(m, n)])
        expected = batched.qr(A, mode="r")
        places = MatrixBatch.zeros(np.repeat(expected.rows, 2), np.repeat(expected.columns, 2), dtype, xp)
        batched.qr(A, mode="r", out=places[::2])
        assert all((R == S).all() for R, S in zip(places[::2].matrices(), expected.matrices()))
        assert not any(R.any() for R in places[1::2].matrices())
        A, places = MatrixBatch.place(A, places)
        batched.qr(A, mode="r", out=places[1::2])
        assert all((R == S).all() for R, S in zip(places[1::2].matrices(), expected.matrices()))
    with pytest.raises(ValueError, match="rows of out"):
        batched.qr(A, mode="r", out=MatrixBatch.zeros(expected.rows + 1, expected.columns, dtype, xp))
    with pytest.raises(ValueError, match="expected out"):
        batched.qr(A, out=expected)
