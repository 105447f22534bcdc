"""Block Jacobi by Gram matrices at the edges of its panels, and where it turns all pairs at once or one by one."""

import numpy as np
import pytest
from latms import latms, orthonormal

from h2gpu.apps.benchmarks.routines.criteria import failures, svd_error, values_error

cp = pytest.importorskip("cupy")
from h2gpu import batched  # noqa: E402
from h2gpu.batched import MatrixBatch  # noqa: E402

pytestmark = pytest.mark.gpu
DTYPES = (np.float64, np.float32)


@pytest.fixture
def rng():
    return np.random.default_rng(31)


def check(A):
    """Both sides and the left alone meet the criteria."""
    U, s, Vt = batched.svd(cp.asarray(A), "both", "block-gram")
    assert not failures(svd_error, A, U, s, Vt)
    assert not failures(svd_error, A, *batched.svd(cp.asarray(A), "left", "block-gram"))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [33, 63, 64, 65, 96, 97, 128, 129, 191, 257])
def test_sizes_about_the_panels(n, dtype, rng):
    """One panel, a missing partner, a panel of one column; tall and wide."""
    check(rng.standard_normal((3, n, n)).astype(dtype))
    check(rng.standard_normal((2, n + 40, n)).astype(dtype))
    check(rng.standard_normal((2, n, n + 40)).astype(dtype))


def spectra(k):
    """Singular values by name: from those that are one apart to those of one size."""
    steps = np.arange(k)
    return {
        "steep": 2.0 ** -(steps / 4),  # every angle is small
        "equal": np.ones(k),  # rounding alone decides on the angles, up to 45°
        "two sizes": np.where(steps < k // 2, 1, 1e-3),
        "pairs": 1.1 ** -(steps // 2).astype(float),
        "half zero": np.where(steps < k // 2, 1 / (1 + steps), 0),
    }


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", spectra(1))
def test_small_and_large_angles(name, dtype, rng):
    k = 150
    U, V = orthonormal(3, k, k, rng), orthonormal(3, k, k, rng)
    check(((U * spectra(k)[name]) @ V.swapaxes(1, 2)).astype(dtype))


def check_each_way(A, method, most_sweeps):
    """Both sides, the left alone and values alone meet the criteria, in so many sweeps."""
    for vectors in ("both", "left", "none"):
        *results, sweeps = batched.svd(cp.asarray(A), vectors, method, return_info=True)
        assert sweeps.min() > 0 and sweeps.max() <= most_sweeps
        found = failures(values_error, A, *results) if vectors == "none" else failures(svd_error, A, *results)
        assert not found, vectors


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", ["block-gram", "block-direct"])
@pytest.mark.parametrize("shape", [(100, 100), (130, 100), (100, 130)])
def test_values_below_rounding_cost_no_sweeps(shape, method, dtype, rng):
    """σ_j = exp(−0.7 j) falls below rounding half way: the rest of the triangles is noise, or zero."""
    m, n = shape
    U, V = orthonormal(4, m, min(shape), rng), orthonormal(4, n, min(shape), rng)
    A = ((U * np.exp(-0.7 * np.arange(min(shape)))) @ V.swapaxes(1, 2)).astype(dtype)
    check_each_way(A, method, 10)


def with_rows_of_zeros(k, dtype, rng):
    """A triangle of falling columns, two fifths of its rows zero: a QR leaves them where they are."""
    R = np.triu(rng.standard_normal((k, k))) * 2.0 ** -(np.arange(k) / 5.0)
    R[rng.permutation(k)[: 2 * k // 5]] = 0
    return R.astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", ["block-gram", "block-direct"])
@pytest.mark.parametrize("wide", [False, True])
def test_deficient_ranks(wide, method, dtype, rng):
    """Triangles with rows of zeros among others, equal columns, rank one, zeros; a NaN is named and harms none."""
    k = 70
    A = rng.standard_normal((5, k + 5, k)).astype(dtype)
    A[0] = np.pad(with_rows_of_zeros(k, dtype, rng), ((0, 5), (0, 0)))
    A[1, :, k // 2 :] = A[1, :, : k // 2]
    A[2] = np.outer(A[2, :, 0], A[2, 0])
    A[3] = 0
    A[4, 5, 7] = np.nan
    A = np.ascontiguousarray(A.swapaxes(1, 2)) if wide else A
    check_each_way(A[:4], method, 16)
    for vectors in ("both", "left"):
        *results, info = batched.svd(cp.asarray(A), vectors, method, return_info=True)
        assert not failures(svd_error, A[:4], *(M[:4] for M in results))
        assert info.max() <= (9 if wide and vectors == "left" else 16)  # those pass one QR more
        assert info[4] == -1 and all(np.isnan(cp.asnumpy(M[4])).all() for M in results)


@pytest.mark.parametrize("dtype", DTYPES)
def test_nearly_orthogonal_columns(dtype, rng):
    """A = Q D (I + δ): angles about δ, the series of few terms."""
    k = 128
    for size in np.sqrt(np.finfo(dtype).eps) ** np.array([0.25, 0.5, 1.0, 1.5]):
        A = orthonormal(2, k, k, rng) * 1.5 ** -(np.arange(k) / 8.0)
        check((A @ (np.eye(k) + size * rng.standard_normal((k, k)) / k)).astype(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_ranks_of_one_group_share_nothing(dtype, rng):
    """Ragged: workspaces are as large as the largest needs, and hold rows and columns of zeros behind the others."""
    matrices = [latms(1, k, k, 3, 1e3, rng, dtype)[0] for k in (150, 129, 160, 131, 159)]
    matrices += [with_rows_of_zeros(k, dtype, rng) for k in (157, 130)]
    batch = MatrixBatch.from_matrices([cp.asarray(M) for M in matrices])
    assert not failures(svd_error, batch, *batched.svd(batch, "both", "block-gram"))
