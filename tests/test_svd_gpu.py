"""The Jacobi kernels of the GPU against LAPACK's own criteria for a singular value decomposition."""

import numpy as np
import pytest
from latms import MODES, latms

cp = pytest.importorskip("cupy")
from h2gpu import batched  # noqa: E402
from h2gpu.batched import MatrixBatch  # noqa: E402

pytestmark = pytest.mark.gpu
BOUND = 50  # of every criterion, LAPACK's
DTYPES = (np.float64, np.float32)
CONDITIONS = {np.float64: (2.0, 2.1e7, 4.5e14), np.float32: (2.0, 2.1e3, 4.5e6)}


def one_norm(A):
    return np.abs(A).sum(axis=-2).max(axis=-1)


def ratio(numerator, denominator):
    return np.where(numerator == 0, 0, numerator / np.where(denominator == 0, np.finfo(float).tiny, denominator))


def orthogonality(U, epsilon):
    m, k = U.shape[-2:]
    return one_norm(np.eye(k) - U.swapaxes(-1, -2) @ U) / (m * epsilon)


def check(A, U, s, Vt=None):
    """The criteria of kernels for a (batch, m, n) stack; without Vt, V is S⁻¹UᵀA implied and A ≈ U Uᵀ A is checked."""
    epsilon = np.finfo(s.dtype).eps
    A, U, s = (cp.asnumpy(M).astype(np.float64) for M in (A, U, s))
    m, n = A.shape[1:]
    k = min(m, n)
    assert U.shape == (len(A), m, k) and s.shape == (len(A), k)
    assert (s >= 0).all() and (np.diff(s, axis=1) <= 0).all()
    scale = np.abs(A).max(axis=(1, 2), initial=0)
    scale = np.where(scale > 0, scale, 1)
    A, s = A / scale[:, None, None], s / scale[:, None]
    assert orthogonality(U, epsilon).max(initial=0) < BOUND
    if Vt is not None:
        V = cp.asnumpy(Vt).astype(np.float64).swapaxes(1, 2)
        assert V.shape == (len(A), n, k)
        assert orthogonality(V, epsilon).max(initial=0) < BOUND
        residual = one_norm(A - (U * s[:, None, :]) @ V.swapaxes(1, 2))
    else:
        B = U.swapaxes(1, 2) @ A
        residual = one_norm(A - U @ B) + np.abs(np.linalg.norm(B, axis=2) - s).max(axis=1, initial=0)
    errors = ratio(residual, max(m, n) * one_norm(A) * epsilon)
    assert errors.max(initial=0) < BOUND, f"matrix {errors.argmax()}"
    exact = np.linalg.svd(A, compute_uv=False)
    assert (np.abs(exact - s) <= BOUND * max(m, n) * epsilon * exact[:, :1]).all()


def check_svd(A, method="auto", vectors=("both", "left", "none")):
    A = cp.asarray(A)
    s = None
    if "both" in vectors:
        U, s, Vt = batched.svd(A, "both", method)
        check(A, U, s, Vt)
    if "left" in vectors:
        check(A, *batched.svd(A, "left", method))
    if "none" in vectors:
        values = batched.svd(A, "none", method)
        reference = cp.asarray(np.linalg.svd(cp.asnumpy(A).astype(np.float64), compute_uv=False))
        scale = reference[:, :1]
        assert (abs(values - reference) <= BOUND * max(A.shape[1:]) * np.finfo(A.dtype).eps * scale).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("first", range(1, 131, 10))
def test_every_size_to_130(first, dtype, rng):
    for n in range(first, min(first + 10, 131)):
        check_svd(rng.standard_normal((5, n, n)).astype(dtype), vectors=("both", "left"))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "shape",
    [(1, 40), (40, 1), (3, 2), (9, 33), (33, 9), (64, 20), (20, 64), (130, 31), (17, 400), (900, 24), (200, 140)],
)
def test_rectangles(shape, dtype, rng):
    check_svd(rng.standard_normal((4, *shape)).astype(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [150, 192, 256, 343, 512])
def test_large(n, dtype, rng):
    A = latms(3, n, n, 3, 1e7 if dtype == np.float64 else 1e4, rng, dtype)
    A[2] = rng.standard_normal((n, n))
    check_svd(A, vectors=("both", "left") if n < 400 else ("left",))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("n", [5, 16, 31, 48, 64, 100])
def test_spectra(n, mode, dtype, rng):
    for condition in CONDITIONS[dtype]:
        check_svd(latms(4, n, n, mode, condition, rng, dtype), vectors=("both", "left"))
        check_svd(latms(4, n, n // 2 + 1, mode, condition, rng, dtype), vectors=("both", "left"))
        check_svd(latms(4, n // 2 + 1, n, mode, condition, rng, dtype), vectors=("both", "left"))


@pytest.mark.parametrize("method", ["auto", "shared", "block-gram", "block-direct"])
def test_methods(method, rng):
    for n in (16, 33, 64):
        check_svd(rng.standard_normal((6, n, n)), method)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", ["auto", "block-gram"])
@pytest.mark.parametrize("n", [1, 2, 7, 16, 32, 50, 64, 96])
def test_degenerate(n, method, dtype, rng):
    """Zero, identity, zero and duplicate columns, exact rank deficiency, tiny and huge entries, in one batch."""
    A = np.zeros((14, n, n))
    A[1:] = rng.standard_normal((13, n, n))
    A[1] = np.eye(n)
    A[2][:, 0] = 0
    A[3][:, -1] = 0
    A[4][:, n // 2 :] = 0
    A[5][:, n // 2 :] = A[5][:, : n - n // 2]
    A[6] = np.outer(A[6][0], A[6][1 % n])
    A[7] = A[7][:, : n // 3 + 1] @ A[7][: n // 3 + 1]
    A[8][n // 2 :] = 0
    A[9] = np.ones((n, n))
    A[10] *= np.finfo(dtype).tiny * 64
    A[11] *= np.finfo(dtype).max / 1e3
    A[12] = np.where(rng.random((n, n)) < 0.5, -0.0, A[12])
    A[13] = np.triu(A[13])
    for shape in ((n, n), (n, n // 2 + 1), (n // 2 + 1, n)):
        check_svd(A[:, : shape[0], : shape[1]].astype(dtype), method, vectors=("both", "left"))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [8, 24, 32, 60, 100])
def test_relative_accuracy(n, dtype, rng):
    """A = B D, B orthogonal columns scaled: every singular value to c n ε relatively, however small."""
    epsilon = np.finfo(dtype).eps
    largest = 50 if dtype == np.float64 else 24
    powers = np.sort(rng.integers(-largest, 1, n))[::-1]
    B = np.linalg.qr(rng.standard_normal((n, n)))[0]
    A = (B * 2.0 ** rng.permutation(powers)).astype(dtype)
    U, s = batched.svd(cp.asarray(A[None]), "left")
    s = cp.asnumpy(s)[0].astype(np.float64)
    assert (np.abs(s - 2.0**powers) <= 10 * n * epsilon * 2.0**powers).all()
    check(cp.asarray(A[None]), U, cp.asarray(s[None].astype(dtype)))


def test_relative_accuracy_against_many_digits(rng):
    """The same for a random well-conditioned B, against 60 digits."""
    mpmath = pytest.importorskip("mpmath")
    n = 12
    A = rng.standard_normal((n, n)) * 2.0 ** -np.linspace(0, 50, n).round()
    with mpmath.workdps(60):
        exact = np.array([float(x) for x in mpmath.svd_r(mpmath.matrix(A.tolist()), compute_uv=False)])
    for vectors in ("left", "none"):
        result = batched.svd(cp.asarray(A[None]), vectors)
        s = cp.asnumpy(result[1] if vectors == "left" else result)[0]
        assert (np.abs(s - exact) <= 20 * n * np.finfo(float).eps * exact).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_ragged(dtype, rng):
    shapes = rng.integers(0, 90, (200, 2))
    shapes[:6] = [(0, 5), (5, 0), (0, 0), (1, 1), (300, 12), (150, 140)]
    matrices = [rng.standard_normal(shape).astype(dtype) for shape in shapes]
    A = MatrixBatch.from_matrices([cp.asarray(M) for M in matrices])
    U, s, Vt = batched.svd(A)
    W, t = batched.svd(A, "left")
    for b, M in enumerate(matrices):
        if min(M.shape):
            check(M[None], U[b][None], s[b][None, :, 0], Vt[b][None])
            check(M[None], W[b][None], t[b][None, :, 0])


def test_ragged_subset(rng):
    """A sub-batch that shares its buffer and lies in it in another order."""
    A = MatrixBatch.from_matrices([cp.asarray(rng.standard_normal((7 + b, 5 + 2 * b))) for b in range(9)])[[7, 2, 5]]
    U, s, Vt = batched.svd(A)
    for b in range(3):
        check(A[b][None], U[b][None], s[b][None, :, 0], Vt[b][None])


@pytest.mark.parametrize("method", ["auto", "shared", "block-gram", "block-direct"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_bad_matrices_are_named_and_harm_no_neighbour(bad, method, rng):
    from h2gpu.batched.cuda_svd import decompose

    for n in (5, 20, 40, 70):
        A = rng.standard_normal((9, n, n))
        A[[3, 7], n // 2, n // 3] = bad
        with pytest.raises(np.linalg.LinAlgError, match="matrices 3, 7"):
            batched.svd(cp.asarray(A), "left", method)
        (U, s, Vt), info = decompose(cp.asarray(A), "both", method)
        good = [0, 1, 2, 4, 5, 6, 8]
        check(A[good], U[good], s[good][..., 0], Vt[good])
        assert np.isnan(cp.asnumpy(s)[[3, 7]]).all() and (cp.asnumpy(info)[[3, 7]] == -1).all()


@pytest.mark.parametrize("shape", [(0, 4, 4), (3, 0, 4), (3, 4, 0), (0, 0, 0)])
def test_empty(shape):
    U, s, Vt = batched.svd(cp.zeros(shape))
    k = min(shape[1:])
    assert U.shape == (shape[0], shape[1], k) and s.shape == (shape[0], k) and Vt.shape == (shape[0], k, shape[2])


def test_large_batches(rng):
    A = cp.asarray(rng.standard_normal((70_000, 6, 5)))
    U, s, Vt = batched.svd(A)
    assert float(abs((U * s[:, None, :]) @ Vt - A).max()) < 1e-13
    check_svd(cp.asnumpy(A[-3:]))


def test_alternating_batches(rng):
    """Results do not depend on what ran before."""
    batches = [cp.asarray(rng.standard_normal((count, n, n))) for count, n in ((3, 150), (50, 20), (1, 150), (7, 64))]
    first = [batched.svd(A, "left") for A in batches]
    again = [batched.svd(A, "left") for A in reversed(batches)][::-1]
    for (U, s), (W, t) in zip(first, again):
        assert (U == W).all() and (s == t).all()


@pytest.fixture
def rng():
    return np.random.default_rng(20)
