"""SVD of transposed triangles, which the randomized SVD ends with."""

import numpy as np
import pytest
from triplets import check_triplets, decaying

from h2gpu import batched
from h2gpu.arrays import to_host
from h2gpu.batched import MatrixBatch

DTYPES = [np.float64, np.float32]


@pytest.fixture
def rng():
    return np.random.default_rng(11)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 3, 8, 20, 32, 33, 70, 100, 150])
def test_svd_of_transposed_triangles(n, dtype, xp, rng):
    """Of graded, random and wide R, of equal columns."""
    epsilon = 30 * n * np.finfo(dtype).eps
    graded, any_R, wide = (
        decaying((3, n, n), rng, rate=0.1),
        rng.standard_normal((3, n, n)),
        rng.standard_normal((2, n, n + 4)),
    )
    for A in (any_R, graded, wide, np.ones((2, n, n))):
        R = np.linalg.qr(A, mode="r").astype(dtype)
        U, s, Vt, info = batched.svd_of_transposed(xp.asarray(R))
        V, t, _ = batched.svd_of_transposed(MatrixBatch.from_stack(xp.asarray(R)), "left")
        exact = np.linalg.svd(R.astype(float), compute_uv=False)
        assert (to_host(info) >= 0).all()
        assert np.abs(to_host(s) - exact).max() <= epsilon * exact.max()
        assert np.abs(to_host(t.entries).reshape(exact.shape) - exact).max() <= epsilon * exact.max()
        for b in range(len(R)):
            assert check_triplets(R[b].T, U[b], s[b], Vt[b]) <= epsilon * exact.max()
            W = to_host(V[b]).astype(float)
            assert np.linalg.norm(R[b].T - W @ (W.T @ R[b].T)) <= epsilon * exact.max()
        rank = -(-n // 3)
        for vectors, whole in (("both", (U[..., :rank], s[:, :rank], Vt[:, :rank])), ("left", None)):
            *some, info = batched.svd_of_transposed(xp.asarray(R), vectors, rank)
            whole = whole or (M[..., :rank] for M in batched.svd_of_transposed(xp.asarray(R), vectors)[:2])
            assert all((to_host(part) == to_host(M)).all() for part, M in zip(some, whole, strict=True))
            assert (to_host(info) >= 0).all()


def values_by_jacobi(L):
    """Singular values of a matrix of even order, by one-sided Jacobi in long double: relatively accurate for B D."""
    X, order = L.astype(np.longdouble), np.arange(len(L))
    for _ in range(12):
        for _ in range(len(L) - 1):
            i, j = order[: len(L) // 2], order[len(L) // 2 :][::-1]
            x, y = X[:, i], X[:, j]
            difference, twice = (y * y).sum(0) - (x * x).sum(0), 2 * (x * y).sum(0)
            root = np.abs(difference) + np.hypot(difference, twice)
            t = np.where(twice == 0, 0, np.copysign(1, difference) * twice / np.where(root == 0, 1, root))
            c = 1 / np.sqrt(1 + t * t)
            X[:, i], X[:, j] = c * (x - t * y), c * (t * x + y)
            order = np.r_[order[:1], order[-1:], order[1:-1]]
    return np.sort(np.sqrt((X * X).sum(0)))[::-1]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [20, 40, 72, 100])
def test_small_values_of_graded_triangles_are_right_relatively(n, dtype, xp, rng):
    """Rows scaled down far below rounding of the largest: the GPU has every value to c n ε of itself."""
    R = np.triu(rng.standard_normal((2, n, n))) / np.sqrt(n) + 3 * np.eye(n)
    R = (R * np.geomspace(1, 1e-7 if dtype == np.float32 else 1e-20, n)[:, None]).astype(dtype)
    exact = np.stack([values_by_jacobi(M.T) for M in R])
    assert np.abs(exact - np.linalg.svd(R.astype(float), compute_uv=False)).max() < 1e-12
    s = to_host(batched.svd_of_transposed(xp.asarray(R))[1])
    bound = 30 * n * np.finfo(dtype).eps * (exact if xp is not np else exact.max())
    assert (np.abs(s - exact) <= bound).all()


@pytest.mark.parametrize("n", [34, 64, 72])
@pytest.mark.parametrize("size", [0, 1e-9, 1e-5])
def test_right_vectors_divided_by_a_rest(size, n, xp, rng):
    """V (I + F)⁻ᵀ for rows of Vt, to rounding."""
    rank = n - 8
    R = (np.triu(rng.standard_normal((3, n, n))) / 9 + np.eye(n)) * np.geomspace(1, 1e-6, n)[:, None]
    F = size * np.triu(rng.uniform(-1, 1, (3, n, n)))
    R, F = xp.asarray(R), xp.asarray(F)
    _, _, Vt, _ = batched.svd_of_transposed(R, "both", rank)
    _, _, Wt, _ = batched.svd_of_transposed(R, "both", rank, F)
    expected = np.linalg.solve(np.eye(n) + to_host(F), to_host(Vt).swapaxes(1, 2)).swapaxes(1, 2)
    assert np.abs(to_host(Wt) - expected).max() <= 8 * np.finfo(np.float64).eps


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [20, 34, 64, 72, 80, 82, 300])
def test_left_vectors_times_a_triangle(n, dtype, xp, rng):
    """X U for U, to rounding."""
    rank = n - 8
    R = ((np.triu(rng.standard_normal((3, n, n))) / 9 + np.eye(n)) * np.geomspace(1, 1e-4, n)[:, None]).astype(dtype)
    X = (np.eye(n) + 0.1 * np.triu(rng.standard_normal((3, n, n)))).astype(dtype)
    U, s, Vt, _ = batched.svd_of_transposed(xp.asarray(R), "both", rank)
    XU, same, equal, _ = batched.svd_of_transposed(xp.asarray(R), "both", rank, None, xp.asarray(X))
    assert (s == same).all() and (Vt == equal).all()
    expected = X.astype(np.float64) @ to_host(U)
    assert np.abs(to_host(XU) - expected).max() <= n * np.finfo(dtype).eps
