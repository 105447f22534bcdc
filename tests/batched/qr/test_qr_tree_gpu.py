"""R alone of matrices higher than a thread block holds, by a tree of triangles: as stable as Householder's QR."""

import numpy as np
import pytest
from test_qr_tall_gpu import assert_triangle, kinds, to_batch

from h2gpu import batched

cp = pytest.importorskip("cupy")
pytestmark = pytest.mark.gpu

DTYPES = [np.float64, np.float32]
HEIGHTS = {
    65: (513, 1100),
    100: (1025, 5000),
    128: (7000,),
    129: (1025, 2100),
    216: (5300,),
    343: (1100, 4000),
    512: (1025,),
}


def triangles(matrices):
    R = batched.qr(to_batch(matrices), mode="r")
    return [R[b].get() for b in range(len(R))]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n", "m"), [(n, m) for n, heights in HEIGHTS.items() for m in heights])
def test_singular_values_and_norms_of_columns(n, m, dtype):
    matrices = [np.resize(A, (m, n)) for A in kinds(n, dtype, seed=n).values()]  # rows of all repeated
    for A, R in zip(matrices, triangles(matrices)):
        assert_triangle(A, R)


@pytest.mark.parametrize("dtype", DTYPES)
def test_heights_and_widths_mixed(dtype):
    """Some end after one level, some after four, some do not come here; one order of the batch or another."""
    rng = np.random.default_rng(3)
    shapes = [
        (400, 100),
        (9000, 216),
        (30, 20),
        (600, 65),
        (1030, 343),
        (2000, 40),
        (100, 200),
        (1024, 216),
        (3000, 100),
    ]
    matrices = [rng.standard_normal(shape).astype(dtype) for shape in shapes]
    found = triangles(matrices)
    for A, R in zip(matrices, found):
        assert R.shape == (min(A.shape), A.shape[1])
        assert_triangle(A, R) if len(A) >= A.shape[1] else np.testing.assert_array_equal(np.tril(R, -1), 0)
    for R, again in zip(found[::-1], triangles(matrices[::-1])):
        np.testing.assert_array_equal(R, again)


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_as_ragged_batches(dtype):
    A = np.random.default_rng(4).standard_normal((3, 1500, 90)).astype(dtype)
    for R, again in zip(batched.qr(cp.asarray(A), mode="r").get(), triangles(list(A))):
        np.testing.assert_array_equal(R, again)


@pytest.mark.parametrize("dtype", DTYPES)
def test_more_pieces_than_thread_blocks(dtype):
    """Workspaces and places for reflectors are used again and again."""
    A = np.random.default_rng(5).standard_normal((7, 1300, 130)).astype(dtype)
    found = batched.qr(cp.asarray(np.tile(A, (60, 1, 1))), mode="r").get()
    for b, R in enumerate(found):
        np.testing.assert_array_equal(R, found[b % 7])
    for matrix, R in zip(A, found):
        assert_triangle(matrix, R)


@pytest.mark.parametrize("n", [70, 216])
def test_not_a_number_ends_and_harms_no_neighbour(n):
    A = np.random.default_rng(n).standard_normal((6, 2500, n))
    clean = batched.qr(cp.asarray(A), mode="r").get()
    A[1, 5, 2], A[3, 2400, n - 1], A[4, 0, 0] = np.nan, np.inf, -np.inf
    R = batched.qr(cp.asarray(A), mode="r").get()
    spoilt = np.isin(np.arange(6), (1, 3, 4))
    assert (~np.isfinite(R[spoilt])).any(axis=(1, 2)).all()
    np.testing.assert_array_equal(R[~spoilt], clean[~spoilt])
