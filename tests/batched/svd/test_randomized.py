"""Randomized SVD: its samples, the promised norms and ranks, on either back end."""

import numpy as np
import pytest
from latms import orthonormal

from h2gpu import batched
from h2gpu.arrays import to_host
from h2gpu.batched import MatrixBatch
from h2gpu.batched.products.gaussian import gaussian, philox

DTYPES = [np.float64, np.float32]


@pytest.fixture
def rng():
    return np.random.default_rng(11)


def decaying(shape, rng, dtype=np.float64, rate=0.5):
    """Singular values exp(−rate k)."""
    batch, m, n = shape
    k = min(m, n)
    U, V = orthonormal(batch, m, k, rng), orthonormal(batch, n, k, rng)
    return ((U * np.exp(-rate * np.arange(k))) @ V.swapaxes(1, 2)).astype(dtype)


def check_triplets(A, U, s, Vt):
    """Orthonormal vectors, descending values, for one matrix; returns ‖A − U s Vt‖_F."""
    A, U, s, Vt = (to_host(M) for M in (A, U, s, Vt))
    epsilon = 30 * max(A.shape) * np.finfo(s.dtype).eps
    A, U, s, Vt = (M.astype(np.float64) for M in (A, U, s, Vt))
    k = len(s)
    assert U.shape == (A.shape[0], k) and Vt.shape == (k, A.shape[1])
    assert (s >= 0).all() and (np.diff(s) <= 0).all()
    assert np.linalg.norm(U.T @ U - np.eye(k)) <= epsilon and np.linalg.norm(Vt @ Vt.T - np.eye(k)) <= epsilon
    return np.linalg.norm(A - (U * s) @ Vt)


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e160, 1e300])
def test_ranks_do_not_depend_on_the_scale(scale, xp, rng):
    A = decaying((3, 40, 30), rng)
    A[1] *= 1e-3 / scale if scale < 1 else 1 / scale  # one of usual size beside them
    U, s, Vt = map(to_host, batched.rsvd(xp.asarray(A * scale), rtol=1e-3, random_state=1))
    for b in range(3):
        B = A[b] * scale
        largest = np.abs(B).max()
        rest = B / largest - (U[b] * (s[b] / largest)) @ Vt[b]
        assert np.linalg.norm(rest) <= 1e-3 * np.linalg.norm(B / largest)
        assert 0 < np.count_nonzero(s[b]) < 25


def test_seeds_by_their_kinds(rng):
    A = decaying((2, 12, 9), rng)
    for kind in (np.random.default_rng, np.random.RandomState):
        first, again = (batched.rsvd(A, 3, random_state=kind(4))[0] for _ in range(2))
        assert (first == again).all()
    assert batched.rsvd(A, 3)[1].shape == (2, 3)
    for bad in ("4", -1, 1.5, [1]):
        with pytest.raises(ValueError, match="random_state: expected an integer ≥ 0"):
            batched.rsvd(A, 3, random_state=bad)


# The generator


@pytest.mark.parametrize(
    ("counter", "key", "words"),
    [
        ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
    ],
)
def test_philox_gives_the_known_answers_of_its_authors(counter, key, words):
    counter, key, words = ([int(word, 16) for word in text.split()] for text in (counter, key, words))
    found = philox([np.array([word], np.uint32) for word in counter], np.array(key, np.uint32))
    assert found[:, 0].tolist() == words


def test_samples_are_normal(xp):
    z = to_host(gaussian(400, 500, 1, np.float64, xp)).ravel()
    assert abs(z.mean()) < 4 / np.sqrt(z.size) and abs(z.var() - 1) < 6 / np.sqrt(z.size)
    assert abs((z**4).mean() - 3) < 40 / np.sqrt(z.size) and abs((z[1:] * z[:-1]).mean()) < 4 / np.sqrt(z.size)
    assert len(np.unique(z)) == z.size


def test_float32_samples_have_eleven_bits(xp):
    """They are those of float64 to half a unit of the last, and half of that in float32 again."""
    z, exact = (to_host(gaussian(300, 40, 1, dtype, xp)).astype(np.float64) for dtype in DTYPES[::-1])
    mantissa, _ = np.frexp(z)
    assert (mantissa * 2**11 == np.rint(mantissa * 2**11)).all()
    assert (np.abs(z - exact) <= np.abs(exact) * (2.0**-11 + 2.0**-24)).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_sample_depends_on_seed_and_place_alone(dtype, xp):
    large = to_host(gaussian(30, 20, 5, dtype, xp))
    assert large.dtype == dtype
    assert (large[:7, :9] == to_host(gaussian(7, 9, 5, dtype, xp))).all()
    assert not (large == to_host(gaussian(30, 20, 6, dtype, xp))).any()
    assert np.mean(large == to_host(gaussian(30, 20, None, dtype, xp))) < 0.05  # some of few bits may agree


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES)
def test_samples_of_both_back_ends_agree(dtype):
    cupy = pytest.importorskip("cupy")
    X, Y = gaussian(300, 70, 9, dtype, np), to_host(gaussian(300, 70, 9, dtype, cupy))
    np.testing.assert_allclose(X, Y, rtol=0, atol=1e-14 if dtype == np.float64 else 1e-6)


# A rank that is given


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 60, 40), (4, 40, 60), (3, 100, 9), (3, 5, 80), (2, 300, 200), (2, 1, 1)])
@pytest.mark.parametrize("power", [0, 1])
def test_the_error_is_near_that_of_the_discarded_values(shape, power, dtype, xp, rng):
    A = decaying(shape, rng, dtype)
    for rank in (1, 8):
        U, s, Vt = batched.rsvd(xp.asarray(A), rank, power=power, random_state=3)
        k = min(rank, *shape[1:])
        exact = np.exp(-0.5 * np.arange(min(shape[1:])))
        least, slack = np.linalg.norm(exact[k:]), 100 * max(shape) * np.finfo(dtype).eps
        for b in range(len(A)):
            assert check_triplets(A[b], U[b], s[b], Vt[b]) <= 1.5 * least + slack
        assert (np.abs(to_host(s) - exact[:k]) <= 0.1 * exact[:k] + slack).all()


def test_arrays_and_ragged_batches_agree(xp, rng):
    A = xp.asarray(decaying((5, 70, 50), rng))
    U, s, Vt = batched.rsvd(A, 6, random_state=1)
    V, t, Wt = batched.rsvd(MatrixBatch.from_stack(A), 6, random_state=1)
    assert float(abs(s.ravel() - t.entries).max()) <= 1e-14
    for b in range(5):
        difference = (U[b] * s[b]) @ Vt[b] - (V[b] * t[b].T) @ Wt[b]
        assert float(abs(difference).max()) <= 1e-13
    alone = batched.rsvd(A[3:4], 6, random_state=1)
    assert float(abs((U[3] * s[3]) @ Vt[3] - (alone[0][0] * alone[1][0]) @ alone[2][0]).max()) <= 1e-13


def test_ragged_shapes(xp, rng):
    shapes = [(0, 5), (5, 0), (1, 1), (64, 64), (30, 90), (90, 30), (7, 300), (150, 140)]
    matrices = [rng.standard_normal(shape) for shape in shapes]
    A = MatrixBatch.from_matrices([xp.asarray(M) for M in matrices])
    U, s, Vt = batched.rsvd(A, 400, random_state=0)
    for b, M in enumerate(matrices):
        assert check_triplets(M, U[b], s[b][:, 0], Vt[b]) <= 1e-11


@pytest.mark.parametrize("arguments", [{"rank": 4}, {"rtol": 1e-3}, {"rank": 2, "rtol": 1e-3}])
@pytest.mark.parametrize("shape", [(0, 4, 4), (3, 0, 4), (3, 4, 0), (2, 3, 5, 4), (5, 4)])
def test_empty_and_leading_dimensions(shape, arguments, xp, rng):
    U, s, Vt = batched.rsvd(xp.asarray(rng.standard_normal(shape)), **arguments)
    k = s.shape[-1]
    assert U.shape == (*shape[:-1], k) and s.shape == (*shape[:-2], k) and Vt.shape == (*shape[:-2], k, shape[-1])


def test_zero_matrices(xp):
    U, s, Vt = batched.rsvd(xp.zeros((3, 20, 12)), 4, random_state=0)
    for b in range(3):
        assert check_triplets(np.zeros((20, 12)), U[b], s[b], Vt[b]) == 0
    assert batched.rsvd(xp.zeros((3, 20, 12)), rtol=1e-3)[1].shape == (3, 0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_more_triplets_than_the_rank(dtype, xp, rng):
    """Ranks one, equal entries or not, and half of the columns: what is beyond is zero to rounding."""
    A = np.ones((3, 90, 60), dtype)
    A[1] *= rng.standard_normal((90, 1)).astype(dtype)
    A[2] = np.repeat(rng.standard_normal((90, 30)).astype(dtype), 2, axis=1)
    U, s, Vt = batched.rsvd(xp.asarray(A), 40, random_state=0)
    for b in range(3):
        epsilon = 50 * np.finfo(dtype).eps * np.linalg.norm(A[b])
        assert check_triplets(A[b], U[b], s[b], Vt[b]) <= epsilon
        assert np.abs(to_host(s[b])[(1, 1, 30)[b] :]).max() <= epsilon


@pytest.mark.parametrize("arguments", [{"rank": 4}, {"rtol": 1e-3}])
def test_bad_matrices_are_named(arguments, xp, rng):
    A = rng.standard_normal((9, 60, 50))
    A[[3, 7], 2, 5] = np.nan
    with pytest.raises(np.linalg.LinAlgError, match="NaN or Inf in matrices 3, 7"):
        batched.rsvd(xp.asarray(A), **arguments)


# A rank that is found


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 90, 70), (4, 70, 90), (3, 30, 20), (2, 200, 150)])
def test_the_rank_found_keeps_rtol(shape, dtype, xp, rng):
    """‖A − U s Vt‖_F ≤ rtol ‖A‖_F, with hardly more triplets than are needed."""
    A = np.concatenate([decaying((1, *shape[1:]), rng, dtype, rate) for rate in (0.9, 0.2, 0.02, 3.0)])
    for rtol in (1e-1, 1e-3) if dtype == np.float32 else (1e-1, 1e-4, 1e-8):
        ragged = batched.rsvd(MatrixBatch.from_stack(xp.asarray(A)), rtol=rtol, random_state=2)
        U, s, Vt = batched.rsvd(xp.asarray(A), rtol=rtol, random_state=2)
        for b in range(len(A)):
            r, norm = ragged[1][b].shape[0], np.linalg.norm(A[b].astype(float))
            assert (
                check_triplets(A[b], *(M[b] if i != 1 else M[b][:, 0] for i, M in enumerate(ragged)))
                <= rtol * norm * 1.001
            )
            assert check_triplets(A[b], U[b][:, :r], s[b][:r], Vt[b][:r]) <= rtol * norm * 1.001
            assert not U[b][:, r:].any() and not s[b][r:].any() and not Vt[b][r:].any()
            exact = np.linalg.svd(A[b].astype(float), compute_uv=False)
            least = np.count_nonzero(np.sqrt(np.cumsum(exact[::-1] ** 2)) > rtol * norm)
            assert least <= r <= least + 3


def test_rank_is_the_most_that_rtol_may_take(xp, rng):
    A = xp.asarray(decaying((3, 90, 80), rng, rate=0.05))
    s = batched.rsvd(A, 10, rtol=1e-6, random_state=0)[1]
    assert s.shape == (3, 10)
    assert batched.rsvd(A, 10, rtol=0.9, random_state=0)[1].shape[1] < 10


@pytest.mark.parametrize("rtol", [-1e-3, 1.0, np.nan, "1e-3"])
def test_an_rtol_out_of_range_gives_one_clear_error(rtol):
    with pytest.raises(ValueError, match="rsvd: expected rtol a number from 0 to below 1"):
        batched.rsvd(np.eye(3), rtol=rtol)


def test_rank_or_rtol_is_needed():
    with pytest.raises(ValueError, match="rsvd: expected an integer rank ≥ 1, got None"):
        batched.rsvd(np.eye(3))


# Triangles


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
    R = np.triu(rng.standard_normal((3, n, n))) / np.sqrt(n) + 3 * np.eye(n)
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
