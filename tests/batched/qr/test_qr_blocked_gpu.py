"""QR by blocks of reflections: LAPACK's criteria at edges of panels, tiles and classes; what a batch may not change."""

import numpy as np
import pytest
from latms import all_spectra, exceptional, normal

from h2gpu import batched
from h2gpu.apps.benchmarks.routines.criteria import failures, qr_error, triangle_error
from h2gpu.batched import MatrixBatch

cp = pytest.importorskip("cupy")
pytestmark = pytest.mark.gpu

DTYPES = [np.float64, np.float32]
EDGES = (17, 31, 32, 33, 48, 63, 64, 65)  # of panels and of the rows that a thread block holds
LARGE = [(128, 128), (129, 127), (256, 255), (257, 100), (512, 512), (513, 140), (1024, 300), (1000, 33), (1025, 200)]
WIDE = [(1, 2000), (16, 1025), (40, 3000), (300, 1100), (512, 1500)]


@pytest.fixture
def rng():
    return np.random.default_rng(41)


def check(A):
    ragged = isinstance(A, MatrixBatch)
    given = MatrixBatch(cp.asarray(A.buffer), A.offsets, A.rows, A.columns) if ragged else cp.asarray(A)
    assert not failures(qr_error, A, *batched.qr(given))
    assert not failures(triangle_error, A, batched.qr(given, mode="r"))


@pytest.mark.parametrize("dtype", DTYPES)
def test_edges_of_panels(dtype, rng):
    check(normal([(m, n) for m in EDGES for n in EDGES], dtype, rng))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", LARGE + WIDE)
def test_large_and_wide(shape, dtype, rng):
    check(normal([shape] * 2, dtype, rng))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(100, 40), (60, 90), (200, 150), (520, 70)])
def test_exceptional_and_graded(shape, dtype, rng):
    check(np.stack(list(exceptional(*shape, dtype, rng).values())))
    check(all_spectra(*shape, dtype, rng))


@pytest.mark.parametrize("dtype", DTYPES)
def test_mixed_sizes(dtype, rng):
    rows, columns = rng.integers(0, 600, (2, 120))
    check(normal(np.stack([rows, columns // 2], axis=1), dtype, rng))


@pytest.mark.parametrize("dtype", DTYPES)
def test_more_matrices_than_thread_blocks(dtype, rng):
    """Workspaces are used again and again; NaN and Inf stay in their matrices."""
    A = rng.standard_normal((70_000, 20, 18)).astype(dtype)
    A[100, 3, 4], A[200, 19, 17] = np.nan, np.inf
    Q, R = (M.get() for M in batched.qr(cp.asarray(A)))
    assert np.isnan(R[[100, 200]]).any(axis=(1, 2)).all()
    sound = [*range(0, 100, 9), *range(1700, 70_000, 997), 100 + 1584, 200 + 1584, 69_999]
    assert not failures(qr_error, A[sound], Q[sound], R[sound])
    assert np.isfinite(R[np.setdiff1d(np.arange(len(R)), [100, 200])]).all()
    for batch in (0, 1, 3, 0, 5000):
        check(A[1000 : 1000 + batch])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(300, 70, 50), (40, 300, 200)])
def test_same_bits_with_and_without_q_and_however_workspaces_are_shared(shape, dtype, rng, monkeypatch):
    from h2gpu.batched.qr import blocked

    A = cp.asarray(rng.standard_normal(shape).astype(dtype))
    Q, R = batched.qr(A)
    assert (batched.qr(A, mode="r") == R).all()
    monkeypatch.setattr(blocked, "WORKSPACE", 0)
    for M, again in zip((Q, R), batched.qr(A)):
        assert cp.array_equal(again, M)
