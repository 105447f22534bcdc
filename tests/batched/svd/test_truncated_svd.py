"""Truncated SVDs: the promised residual, orthonormal vectors and the values that LAPACK finds, on either back end."""

import numpy as np
import pytest
from latms import latms, orthonormal

from h2gpu import batched
from h2gpu.arrays import to_host
from h2gpu.batched import MatrixBatch
from h2gpu.batched.core.tails import padded

DTYPES = [np.float64, np.float32]
SHAPES = [
    (5, 1, 1),
    (4, 9, 3),
    (4, 3, 9),
    (3, 32, 32),
    (3, 64, 64),
    (3, 70, 64),
    (3, 64, 81),
    (3, 121, 121),
    (2, 150, 64),
]
LARGE = [(2, 128, 130), (2, 216, 216), (2, 40, 300)]


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def decaying(shape, rng, dtype, rate=0.7):
    """Singular values exp(−rate k)."""
    batch, m, n = shape
    k = min(m, n)
    return (
        (orthonormal(batch, m, k, rng) * np.exp(-rate * np.arange(k))) @ orthonormal(batch, n, k, rng).swapaxes(1, 2)
    ).astype(dtype)


def check(A, U, s, missed, atol):
    """The theorems for one matrix and its results without padding."""
    A, U, s = (to_host(M).astype(np.float64) for M in (A, U, s))
    epsilon = np.finfo(np.float64).eps if missed is None else check.epsilon
    m, n, r = *A.shape, len(s)
    scale = np.linalg.norm(A)
    assert U.shape == (m, r) and r <= min(m, n)
    assert (s >= 0).all() and (np.diff(s) <= 0).all()
    assert np.linalg.norm(U.T @ U - np.eye(r)) <= 30 * max(m, n) * epsilon
    error = np.linalg.norm(A - U @ (U.T @ A))
    slack = 10 * max(m, n) * epsilon * scale
    assert error <= atol * (1 + 1e-3) + slack
    assert abs(error - missed) <= 1e-3 * missed + slack
    exact = np.linalg.svd(A, compute_uv=False)
    # of Uᵀ A, which has lost at most `missed`
    assert (np.abs(exact[:r] - s) <= atol + slack).all()
    assert np.allclose(np.linalg.svd(U.T @ A, compute_uv=False), s, rtol=0, atol=slack)
    least = int(np.count_nonzero(np.sqrt(np.cumsum(exact[::-1] ** 2)) > atol))
    return r - least


def check_batch(A, atol, xp):
    check.epsilon = np.finfo(A.dtype).eps
    atol = np.broadcast_to(atol, len(A))
    U, s, missed = batched.truncated_svd(xp.asarray(A), atol)
    assert U.dtype == s.dtype == A.dtype and missed.dtype == np.float64
    U, s, missed = (to_host(M) for M in (U, s, missed))
    excess = []
    for b in range(len(A)):
        r = np.count_nonzero(s[b])
        assert (U[b][:, r:] == 0).all() and (s[b][r:] == 0).all()
        excess.append(check(A[b], U[b][:, :r], s[b][:r], missed[b], atol[b]))
    return excess


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES + LARGE)
def test_truncation_keeps_its_promise(shape, dtype, xp, rng):
    """‖A − U Uᵀ A‖_F = missed ≤ atol, UᵀU = I, s of UᵀA"""
    A = decaying(shape, rng, dtype)
    norm = np.linalg.norm(A[0].astype(float))
    for rtol in (1e-1, 1e-3) if dtype == np.float32 else (1e-1, 1e-4, 1e-8):
        excess = check_batch(A, rtol * norm, xp)
        assert max(excess) <= (0 if xp is np else 6)  # of the rank: pivoting is nearly as good as singular values


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", [1, 2, 3, 4, 5, 6])
def test_spectra(mode, dtype, xp, rng):
    for n in (7, 31, 64, 100):
        A = latms(3, n, n, mode, 1e4, rng, dtype)
        for rtol in (0.5, 1e-2):
            check_batch(A, rtol * np.linalg.norm(A[0].astype(float)), xp)


@pytest.mark.parametrize("dtype", DTYPES)
def test_tolerances_of_each_matrix(dtype, xp, rng):
    """0 keeps everything, the norm and more nothing."""
    A = rng.standard_normal((5, 20, 20)).astype(dtype)
    norms = np.linalg.norm(A.astype(float), axis=(1, 2))
    check_batch(A, norms * np.array([0, 0.1, 0.5, 1.01, 1e300]), xp)
    s = to_host(batched.truncated_svd(xp.asarray(A), norms * np.array([0, 0.1, 0.5, 1.01, np.inf]))[1])
    assert (s[0] > 0).all() and (s[3:] == 0).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_degenerate_matrices(dtype, xp, rng):
    """Zero, rank one, zero columns, huge and tiny entries, in one batch."""
    for n in (6, 40):
        A = rng.standard_normal((7, n, n))
        A[0] = 0
        A[1] = np.outer(A[1][0], A[1][1])
        A[2][:, : n // 2] = 0
        A[3] *= np.finfo(dtype).max / 1e4
        A[4] *= np.finfo(dtype).tiny * 64
        A[5] = np.eye(n)
        A[6] = A[6][:, :2] @ A[6][:2]
        A = A.astype(dtype)
        s = to_host(batched.truncated_svd(xp.asarray(A), 1e-4 * np.abs(A.astype(float)).max(axis=(1, 2)))[1])
        assert (np.count_nonzero(s, axis=1) == [0, 1, n - n // 2, n, n, n, 2]).all()
        check_batch(A[[0, 1, 2, 5, 6]], 1e-4, xp)


@pytest.mark.parametrize("dtype", DTYPES)
def test_ragged_ranks_are_exact(dtype, xp, rng):
    shapes = [(0, 5), (5, 0), (1, 1), (64, 64), (30, 90), (90, 30), (128, 128), (33, 129), (17, 9)]
    matrices = [decaying((1, *shape), rng, dtype)[0] for shape in shapes]
    check.epsilon = np.finfo(dtype).eps
    A = MatrixBatch.from_matrices([xp.asarray(M) for M in matrices])
    U, s, missed = batched.truncated_svd(A, 1e-3)
    assert U.is_packed and (s.columns == 1).all() and (s.rows == U.columns).all() and (U.rows == A.rows).all()
    for b, M in enumerate(matrices):
        check(M, U[b], s[b][:, 0], float(missed[b]), 1e-3)
    sub = batched.truncated_svd(A[[5, 3]], 1e-3)
    assert (to_host(sub[0][0]) == to_host(U[5])).all() and (to_host(sub[1][1]) == to_host(s[3])).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("copies", [1, 80])
def test_ranks_may_stay_where_the_matrices_are(copies, dtype, xp, rng):
    """Results whose ranks nobody has read keep the same promise; what is not finite is told, and harms no neighbour."""
    shapes = [(0, 5), (5, 0), (1, 1), (64, 64), (30, 90), (90, 30), (128, 128), (33, 128), (17, 9), (40, 64)]
    shapes *= copies if xp is not np else min(copies, 8)
    matrices = [decaying((1, *shape), rng, dtype)[0] for shape in shapes]
    check.epsilon = np.finfo(dtype).eps
    matrices[3][2, 1] = np.nan if xp is not np else 0
    A = MatrixBatch.from_matrices([xp.asarray(M) for M in matrices])
    U, s, missed, info = batched.truncated_svd(A, 1e-3, return_info=True)
    info, missed, sigma = to_host(info), to_host(missed), to_host(padded(s))
    U = batched.leading(U, to_host(U.rows), to_host(U.columns)).to(np)
    for b, M in enumerate(matrices):
        if not np.isfinite(M).all():
            assert info[b] < 0 and np.isnan(missed[b])
            continue
        assert info[b] >= 0 and (sigma[b][U[b].shape[1] :] == 0).all()
        check(M, U[b], sigma[b][: U[b].shape[1]], missed[b], 1e-3)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1), (5, 7), (40, 64), (3000, 40)])
def test_shared_ranks_and_what_they_discard(shape, dtype, xp, rng):
    """The fewest values whose discarded squares are affordable, and the sum of these."""
    sigma = np.sort(rng.random(shape) ** 9, axis=1)[:, ::-1].astype(dtype)
    sigma[1::3, shape[1] // 2 :] = 0
    sigma[sigma < 1e-15] = 0  # no subnormal numbers
    for share in (-1, 0, 1e-9, 0.1, 0.5, 2):
        allowance = share * float(np.sum(sigma.astype(float) ** 2))
        ranks = batched.shared_ranks(xp.asarray(sigma), xp.asarray(allowance))
        spent = float(batched.discarded(xp.asarray(sigma), ranks))
        ranks = to_host(ranks)
        kept = np.arange(shape[1]) < ranks[:, None]
        assert np.isclose(spent, np.sum(sigma[~kept].astype(float) ** 2), rtol=1e-12, atol=0)
        assert spent <= max(allowance, 0) * (1 + 1e-12) and (sigma[kept] > 0).all()
        if kept.any():
            assert spent + float(sigma[kept].min()) ** 2 > allowance * (1 - 1e-12)


@pytest.mark.parametrize("shape", [(0, 4, 4), (3, 0, 4), (3, 4, 0), (0, 0, 0), (2, 3, 4, 5), (5, 4)])
def test_empty_and_leading_dimensions(shape, xp, rng):
    A = rng.standard_normal(shape)
    U, s, missed = batched.truncated_svd(xp.asarray(A), 0.0)
    k = min(shape[-2:])
    assert U.shape == (*shape[:-1], k) and s.shape == (*shape[:-2], k) and missed.shape == shape[:-2]


def test_bad_matrices_are_named(xp, rng):
    A = rng.standard_normal((9, 20, 20))
    A[[3, 7], 2, 5] = np.nan, np.inf
    with pytest.raises(np.linalg.LinAlgError, match="NaN or Inf in matrices 3, 7"):
        batched.truncated_svd(xp.asarray(A), 1e-3)


@pytest.mark.parametrize("atol", [-1.0, np.nan, "1", [1.0, 2.0], None])
def test_bad_tolerances_give_one_clear_error(atol, xp):
    with pytest.raises(ValueError, match="atol: expected a number ≥ 0"):
        batched.truncated_svd(xp.zeros((3, 2, 2)), atol)


@pytest.mark.gpu
def test_gpu_pieces_are_joined_and_name_matrices_by_their_place(monkeypatch, rng):
    cupy = pytest.importorskip("cupy")
    from h2gpu.batched.svd import truncated

    A = decaying((50, 40, 30), rng, np.float64)
    whole = batched.truncated_svd(cupy.asarray(A), 1e-5)
    monkeypatch.setattr(truncated, "piece_bytes", lambda cupy: 200_000)
    for X, Y in zip(whole, batched.truncated_svd(cupy.asarray(A), 1e-5)):
        assert (X == Y).all()
    A[33, 0, 0] = np.nan
    with pytest.raises(np.linalg.LinAlgError, match="matrices 33"):
        batched.truncated_svd(cupy.asarray(A), 1e-5)


@pytest.mark.gpu
def test_gpu_ranks_on_the_device_are_the_same_piece_by_piece(monkeypatch, rng):
    """To the last bit, for the whole batch decides which kernels are launched."""
    cupy = pytest.importorskip("cupy")
    from h2gpu.batched.svd import resident

    A = batched.MatrixBatch.from_stack(cupy.asarray(decaying((7, 40, 30), rng, np.float64)))
    for few in (resident.FEW, 3):  # of all, or of the last piece alone
        monkeypatch.setattr(resident, "FEW", few)
        found = []
        for room in (1 << 30, 1 << 17):  # of all; of two or three
            monkeypatch.setattr(resident, "piece_bytes", lambda cupy, room=room: room)
            found.append(batched.truncated_svd(A, 1e-5, return_info=True))
        for X, Y in zip(*found):
            X, Y = (M.on_host().matrices() if isinstance(M, batched.MatrixBatch) else [M] for M in (X, Y))
            for one, other in zip(X, Y, strict=True):
                np.testing.assert_array_equal(to_host(one), to_host(other))


@pytest.mark.parametrize("vectors", ["both", "left", "none"])
def test_info_tells_what_failed_and_harms_no_neighbour(vectors, xp, rng):
    A = rng.standard_normal((2, 3, 12, 10))
    A[0, 2, 1, 1], A[1, 0, 0, 0] = np.nan, np.inf
    *results, info = batched.svd(xp.asarray(A), vectors, return_info=True)
    info = to_host(info)
    bad = ~np.isfinite(A).all(axis=(2, 3))
    assert info.shape == (2, 3) and info.dtype.kind == "i" and (info[bad] == -1).all() and (info[~bad] >= 0).all()
    for M in map(to_host, results):
        assert np.isnan(M[bad]).all() and np.isfinite(M[~bad]).all()
    s = to_host(results[0 if vectors == "none" else 1])
    np.testing.assert_allclose(s[~bad], np.linalg.svd(A[~bad], compute_uv=False), atol=1e-13)
    ragged = MatrixBatch.from_stack(xp.asarray(A.reshape(6, 12, 10)))
    assert (to_host(batched.svd(ragged, vectors, return_info=True)[-1]) < 0).tolist() == bad.ravel().tolist()


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_may_be_consumed_gives_the_same_in_its_place(dtype, rng):
    """On the CPU: wide and tall matrices, one by one and in stacks of one shape."""
    shapes = [(64, 64), (30, 90), (0, 5), (90, 30), (17, 9)] + 9 * [(20, 31)] + 9 * [(31, 20)]
    A = MatrixBatch.from_matrices([decaying((1, *shape), rng, dtype)[0] for shape in shapes])
    before = A.buffer.copy()
    U, s, missed, _ = batched.truncated_svd(A, 1e-3, return_info=True)
    assert A.buffer.tobytes() == before.tobytes()
    V, t, rest, _ = batched.truncated_svd(A, 1e-3, return_info=True, consume=True)
    assert (A.buffer != before).any() and (rest == missed).all()
    for one, other in ((U, V), (s, t)):
        assert (one.columns == other.columns).all() and one.buffer.tobytes() == other.buffer.tobytes()
