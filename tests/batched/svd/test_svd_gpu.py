"""What the Jacobi kernels of the GPU promise beyond LAPACK's criteria (test_svd_matrices.py): relative accuracy, a Gram
method that notices where it is not accurate, the same bits whatever ran before.
"""

import numpy as np
import pytest
from latms import latms, normal, to

from h2gpu.apps.benchmarks.routines.criteria import failures, on_host, svd_error, values_error

cp = pytest.importorskip("cupy")
from h2gpu import batched  # noqa: E402
from h2gpu.batched import MatrixBatch  # noqa: E402
from h2gpu.batched.svd import blocks  # noqa: E402

pytestmark = pytest.mark.gpu
DTYPES = (np.float64, np.float32)
METHODS = ("auto", "shared", "block-gram", "block-direct")
BATCHES = [(70_000, 6, 5), (3, 150, 150), (0, 6, 5), (50, 20, 20), (1, 150, 150), (7, 64, 90), (66_000, 2, 40)]


@pytest.fixture
def rng():
    return np.random.default_rng(20)


def each_way(A, method):
    """Singular values of one matrix as float64, by every choice of vectors."""
    A = cp.asarray(A[None])
    for vectors in ("both", "left", "none"):
        results = batched.svd(A, vectors, method)
        yield on_host(results if vectors == "none" else results[1])[0].astype(np.float64)


# Relative accuracy


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [5, 24, 32, 60, 100, 140])
def test_singular_values_of_scaled_columns_are_relatively_accurate(n, method, dtype, rng):
    """A = B D, B orthogonal, D to condition 10¹⁵: |s − σ| ≤ c n ε σ for every σ, and for those of the wide Aᵀ.

    All methods promise it. The exact singular values are D's: powers of two scale B without rounding, and B is
    orthogonal to rounding.
    """
    epsilon = np.finfo(dtype).eps
    powers = np.sort(rng.integers(-50 if dtype == np.float64 else -24, 1, n))[::-1]
    B = np.linalg.qr(rng.standard_normal((n + n // 2, n)))[0]
    A = (B * 2.0 ** rng.permutation(powers)).astype(dtype)
    for M in (A, np.ascontiguousarray(A.T)):
        for s in each_way(M, method):
            assert (np.abs(s - 2.0**powers) <= 10 * n * epsilon * 2.0**powers).all()


@pytest.mark.parametrize("method", METHODS)
def test_singular_values_of_scaled_columns_against_many_digits(method, rng):
    """The same for a square random B, whose exact singular values mpmath finds in 60 digits."""
    mpmath = pytest.importorskip("mpmath")
    n = 12
    A = rng.standard_normal((n, n)) * 2.0 ** -np.linspace(0, 50, n).round()
    with mpmath.workdps(60):
        exact = np.array([float(x) for x in mpmath.svd_r(mpmath.matrix(A.tolist()), compute_uv=False)])
    for s in each_way(A, method):
        assert (np.abs(s - exact) <= 20 * n * np.finfo(float).eps * exact).all()


# The Gram method


def by_gram(A):
    """U, s of a matrix by the eigenvectors of AᵀA in A's precision and nothing else."""
    s, V = np.linalg.eigh(A.T @ A)
    s = np.sqrt(np.maximum(s[::-1], 0))
    return A @ V[:, ::-1] / np.maximum(s, np.finfo(A.dtype).tiny), s


@pytest.mark.parametrize("mode", [1, 3, 5])
@pytest.mark.parametrize("gram_sweeps", [1, None])
def test_gram_method_hands_on_what_it_does_not_finish(gram_sweeps, mode, rng, monkeypatch):
    """Ill-conditioned float32, where a Gram matrix alone is far from the criteria: block-gram meets them.

    With one sweep of its own it finishes nothing: sweeps after it are the direct method's, and where those are taken
    away as well the matrix is named.
    """
    A = latms(3, 150, 150, mode, 1e6, rng, np.float32)
    if gram_sweeps:
        monkeypatch.setattr(blocks, "GRAM_SWEEPS", gram_sweeps)
    assert len(failures(svd_error, A, *map(np.stack, zip(*map(by_gram, A))))) == len(A)
    U, s, info = batched.svd(cp.asarray(A), "left", "block-gram", return_info=True)
    assert not failures(svd_error, A, U, s)
    assert (on_host(info) > (gram_sweeps or 0)).all()
    if gram_sweeps:
        monkeypatch.setattr(blocks, "DIRECT_SWEEPS", 0)
        with pytest.raises(np.linalg.LinAlgError, match="no convergence in matrices 0, 1, 2"):
            batched.svd(cp.asarray(A), "left", "block-gram")


# Batches


@pytest.mark.parametrize("dtype", DTYPES)
def test_batches_in_turn_give_the_same_bits(dtype, rng):
    """70,000 matrices, beyond a grid's second dimension, few, one and none: nothing is left of what ran before."""
    batches = [cp.asarray(rng.standard_normal(s).astype(dtype)) for s in BATCHES]
    batches += [to(normal(rng.integers(0, 90, (50, 2)), dtype, rng), cp)]
    first = [(*batched.svd(A), batched.svd(A, "none")) for A in batches]
    again = [(*batched.svd(A), batched.svd(A, "none")) for A in reversed(batches)][::-1]
    for A, results, repeated in zip(batches, first, again):
        for M, N in zip(results, repeated):
            M, N = (on_host(X.buffer if isinstance(X, MatrixBatch) else X) for X in (M, N))
            np.testing.assert_array_equal(M, N)
        some = slice(None) if len(A) < 100 else [0, 1, len(A) // 2, 65_535, len(A) - 1]
        A, *factors, values = (on_host(M)[some] for M in (A, *results))
        assert not failures(svd_error, A, *factors) and not failures(values_error, A, values)


@pytest.mark.parametrize("method", METHODS)
def test_a_matrix_has_the_same_bits_wherever_it_stands(method, rng):
    """One of many sizes among others of its size; and in a sub-batch that shares its buffer in another order."""
    for n in (5, 20, 33, 64, 100, 150):
        A = cp.asarray(rng.standard_normal((40, n, n // 2 + 1)))
        whole, part = batched.svd(A, "both", method), batched.svd(A[17:20], "both", method)
        for many, few in zip(whole, part):
            np.testing.assert_array_equal(on_host(many[17:20]), on_host(few))
    shapes = [(7 + b, 5 + 2 * b) for b in range(9)]
    A = to(normal(shapes, np.float64, rng), cp)[[7, 2, 5]]
    assert not failures(svd_error, A, *batched.svd(A, "both", method))


@pytest.mark.parametrize("shape", [(0, 4, 4), (3, 0, 4), (3, 4, 0), (0, 0, 0)])
def test_empty(shape):
    U, s, Vt = batched.svd(cp.zeros(shape))
    k = min(shape[1:])
    assert U.shape == (shape[0], shape[1], k) and s.shape == (shape[0], k) and Vt.shape == (shape[0], k, shape[2])


def test_most_columns(rng):
    """Rank 1024 is the last; one more is refused with the numbers."""
    with pytest.raises(ValueError, match=r"svd: expected min\(m, n\) ≤ 1024 on the GPU, got 1025"):
        batched.svd(cp.zeros((1, 1025, 1030)))


@pytest.mark.parametrize("vectors", ["none", "left"])
def test_a_long_matrix_beside_a_wide_one_needs_no_more_shared_memory_than_either(vectors, rng):
    """The workspace of (225, 97) and of (190, 128) fits, that of (225, 128) would not."""
    matrices = [rng.standard_normal(shape) for shape in ((225, 97), (190, 128), (190, 97))]
    batch = MatrixBatch.from_matrices([cp.asarray(A) for A in matrices])
    results = batched.svd(batch, vectors, "shared")
    for A, s in zip(matrices, (results if vectors == "none" else results[1]).matrices()):
        sigma = np.linalg.svd(A, compute_uv=False)
        assert np.abs(cp.asnumpy(s)[:, 0] - sigma).max() <= 100 * np.finfo(float).eps * sigma[0]
