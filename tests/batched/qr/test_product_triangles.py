"""W_bᵀ W_b = Σ_l P_lᵀ P_l on both back ends, as accurate as a QR of the stack of the P_l."""

from dataclasses import replace

import numpy as np
import pytest

from h2gpu import batched
from h2gpu.arrays import to_host
from h2gpu.batched import MatrixBatch, Products

COUNTS = (
    0,
    1,
    2,
    3,
    7,
    40,
    140,
)  # links of a segment: none, fewer rows than columns, more than a block reads at a time
SIDES = (1, 5, 16, 31, 48, 64, 70, 110)
SLACK = 300  # of ε ‖P‖


def triangles(rng, rows, columns):
    return np.triu(rng.standard_normal((rows, columns)))


def decaying(rng, rows, columns):
    """Singular values down to 1e-20, vectors in no particular direction."""
    k = min(rows, columns)
    U, V = (np.linalg.qr(rng.standard_normal((side, k)))[0] for side in (rows, columns))
    return U * np.exp(-0.7 * np.arange(k)) @ V.T


def smooth(rng, rows, columns):
    """A few singular values, then none: preconditioned columns are parallel to rounding."""
    x, y = np.linspace(0, 1, rows)[:, None] + 1.5 + 3 * rng.random(), np.linspace(0, 1, columns)
    return np.exp(-((x - y) ** 2) / 2)


KINDS = {
    "random": lambda rng, *shape: rng.standard_normal(shape),
    "decaying": decaying,
    "smooth": smooth,
    "graded": lambda rng, m, n: rng.standard_normal((m, n)) * 10.0 ** -np.linspace(0, 14, n),
    "equal columns": lambda rng, m, n: np.repeat(rng.standard_normal((m, 1)), n, axis=1),
    "zero": lambda rng, *shape: np.zeros(shape),
    "tiny": lambda rng, *shape: 1e-170 * rng.standard_normal(shape),
    "huge": lambda rng, *shape: 1e170 * rng.standard_normal(shape),
    "half the rows": lambda rng, m, n: rng.standard_normal((m, n)) * (np.arange(m) // 8 % 2)[:, None],
}


def lists_of(rng, make, side, dtype, xp, counts=COUNTS):
    """Links turned, straight and with full F, and the stacks of their products in float64, one a count."""
    n = np.where(np.arange(len(counts)) % 2, rng.integers(1, side + 1, len(counts)), side)
    stacks, lists = [[np.zeros((0, columns))] for columns in n], []
    for turned, triangular in ((True, True), (False, True), (True, False)):
        F, S, first = [np.zeros((0, 1), dtype)], [np.zeros((0, 1), dtype)], [1]
        for b, count in enumerate(counts):
            for _ in range((count + turned) // 2 if triangular else b % 2):
                inner = side if rng.random() < 0.5 else int(rng.integers(1, side + 1))
                rows = inner if rng.random() < 0.8 else int(rng.integers(0, inner + 1))
                F.append(
                    (triangles(rng, rows, inner) if triangular else rng.standard_normal((rows, inner))).astype(dtype)
                )
                A = make(rng, inner, n[b]).astype(dtype)
                S.append(np.ascontiguousarray(A.T) if turned else A)
                stacks[b].append(F[-1].astype(float) @ A.astype(float))
            first.append(len(F))
        batches = (MatrixBatch.from_matrices(some).to(xp) for some in (F, S))
        lists.append(Products(*batches, xp.asarray(np.array(first)), turned, triangular))
    return lists, [np.concatenate(some) for some in stacks]


def result_of(lists, stacks, dtype, xp):
    """W of every segment, poisoned before; none for segments without links."""
    n = np.array([M.shape[1] for M in stacks])
    out = MatrixBatch.empty(np.where([len(M) > 0 for M in stacks], n, 0), n, dtype, xp)
    out.buffer[:] = np.nan
    batched.triangles_of_products(lists, out)
    return [to_host(out[b]) for b in range(len(out))]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("side", SIDES)
def test_squares_and_singular_values_are_those_of_the_stack(side, kind, dtype, xp):
    """‖WᵀW − MᵀM‖ ≤ c ε ‖M‖²  and  |σ(W) − σ(M)| ≤ c ε ‖M‖"""
    if kind in ("tiny", "huge") and dtype == np.float32:
        pytest.skip("beyond the precision")
    counts = COUNTS[:-1] if xp is np else COUNTS  # the CPU has no such blocks
    lists, stacks = lists_of(np.random.default_rng(side), KINDS[kind], side, dtype, xp, counts)
    for W, M in zip(result_of(lists, stacks, dtype, xp), stacks):
        if not len(M):
            continue
        n, bound = M.shape[1], SLACK * np.finfo(dtype).eps
        assert W.shape == (n, n) and np.isfinite(W).all()
        size = np.abs(M).max(initial=0) or 1.0
        W, M = W / dtype(size), M / size
        sigma = np.zeros(n)
        sigma[: min(M.shape)] = np.linalg.svd(M, compute_uv=False)
        W = W.astype(float)
        assert np.abs(W.T @ W - M.T @ M).max() <= bound * sigma[0] ** 2
        assert np.abs(np.linalg.svd(W, compute_uv=False) - sigma).max() <= bound * sigma[0]


def test_the_same_bits_every_time(xp):
    lists, stacks = lists_of(np.random.default_rng(0), decaying, 64, np.float64, xp)
    for first, second in zip(*(result_of(lists, stacks, np.float64, xp) for _ in range(2))):
        np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("poison", [np.nan, np.inf])
@pytest.mark.parametrize("side", [8, 64])
def test_nan_and_inf_end_and_harm_no_neighbour(side, poison, dtype, xp):
    lists, stacks = lists_of(np.random.default_rng(1), KINDS["random"], side, dtype, xp, counts=(3, 3, 3))
    clean = result_of(lists, stacks, dtype, xp)
    S = lists[0].S[int(lists[0].first[1])]
    S[0, 0] = poison
    with np.errstate(invalid="ignore"):
        W = result_of(lists, stacks, dtype, xp)
    assert not np.isfinite(W[1]).all()
    for b in (0, 2):
        np.testing.assert_array_equal(W[b], clean[b])


def test_lists_that_do_not_match_are_refused(xp):
    lists, _ = lists_of(np.random.default_rng(0), decaying, 5, np.float64, xp)
    out = MatrixBatch.empty([5, 5], 5, np.float64, xp)
    with pytest.raises(ValueError, match="triangles_of_products: expected lists of 2 segments and of float64, got 7"):
        batched.triangles_of_products(lists, out)


@pytest.mark.parametrize("width", [0, 3])
def test_factors_without_rows_add_nothing(width):
    """As where truncation has discarded all of the other side."""
    F, S = (MatrixBatch.empty([m] * 3, [width] * 3, np.float64) for m in (0, 5))
    S.buffer[:], out = 1, MatrixBatch.empty([2, 2], [5, 5], np.float64)
    out.buffer[:] = 7
    batched.triangles_of_products([Products(F, S, np.array([0, 2, 3]), turned=True, triangular=True)], out)
    assert not out.buffer.any()


@pytest.mark.gpu
def test_numbers_of_matrices_need_not_stand_one_behind_the_other():
    """As columns of a table, as which some indices give them."""
    import cupy

    from h2gpu.batched.core.matrix_batch import ResidentBatch

    def apart(M):
        return ResidentBatch.of_numbers(M.buffer, cupy.asarray(np.ascontiguousarray(to_host(M.numbers).T)).T, M.bounds)

    lists, stacks = lists_of(np.random.default_rng(8), KINDS["random"], 31, np.float64, cupy)
    strided = [replace(kind, F=apart(kind.F), S=apart(kind.S)) for kind in lists]
    expected = result_of(lists, stacks, np.float64, cupy)
    for W, right in zip(result_of(strided, stacks, np.float64, cupy), expected):
        np.testing.assert_array_equal(W, right)
