"""Products of every size: |ΔC| < 3 ε (√(k + 2) |α| |A| |B| + 2 |β| |C|), and nothing leaks in or out."""

import numpy as np
import pytest
from reference import normal

from h2gpu import batched
from h2gpu.arrays import to_host
from h2gpu.batched import MatrixBatch
from h2gpu.batched.device import tuning
from h2gpu.batched.products import choice, fixed_plans

DTYPES = [np.float64, np.float32, np.complex64, np.complex128]
TRANSPOSES = [(False, False), (True, False), (False, True), (True, True)]
SIZES = range(1, 161)
SOME = (1, 2, 7, 8, 9, 16, 17, 31, 33, 48, 64, 65, 72, 73, 96, 97, 127, 129, 160, 161)
SHAPES = [
    (5, 64, 33),
    (64, 5, 33),
    (33, 64, 5),
    (100, 10, 3),
    (3, 100, 70),
    (17, 33, 160),
    (160, 160, 1),
    (2, 2, 160),
    (1, 7, 30),
]
SHARED_BYTES, THREADS = 227 << 10, 1024  # of a block of an H200


def random(shape, dtype, seed):
    return normal(np.random.default_rng(seed), dtype, *np.atleast_1d(shape))


def check(xp, batch, m, n, k, dtype, transa=False, transb=False, beta=0, method="fixed"):
    """One batch, whose second matrix is NaN: that of its result alone."""
    A = random((batch, k, m) if transa else (batch, m, k), dtype, 1)
    B, C = random((batch, n, k) if transb else (batch, k, n), dtype, 2), random((batch, m, n), dtype, 3)
    A[1:2] = np.nan
    given = [xp.asarray(M) for M in (A, B, C if beta else np.full_like(C, np.nan))]
    out = to_host(batched.gemm(*given, 1.5, beta, transa, transb, method=method))
    A, B = (M.swapaxes(1, 2) if turned else M for M, turned in ((A, transa), (B, transb)))
    wide = np.complex128 if out.dtype.kind == "c" else np.float64
    exact = 1.5 * (A.astype(wide) @ B.astype(wide)) + (beta * C if beta else 0)
    sizes = np.linalg.norm(A, axis=2)[:, :, None] * np.linalg.norm(B, axis=1)[:, None, :] * 1.5
    allowed = 3 * np.finfo(dtype).eps * (np.sqrt(k + 2) * sizes + 2 * abs(beta) * np.abs(C))
    assert out.dtype == dtype and np.isnan(out[1:2]).all()
    good = np.arange(batch) != 1
    assert (np.abs(out - exact)[good] <= allowed[good]).all()


@pytest.mark.parametrize("dtype", DTYPES[:2])
@pytest.mark.parametrize("first", SIZES[::16])
def test_every_size(xp, first, dtype):
    for n in range(first, first + 16, 3 if xp is np else 1):  # the CPU has no plan a size
        plan = fixed_plans.plan(np.dtype(dtype), n, n, n, False, False)
        check(xp, 2 * plan.group + 1, n, n, n, dtype)


@pytest.mark.parametrize("trans", TRANSPOSES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_transposes_and_sums(xp, dtype, trans):
    for n in SOME:
        check(xp, 3, n, n, n, dtype, *trans, beta=-0.5)


@pytest.mark.parametrize("trans", TRANSPOSES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_shapes(xp, dtype, trans):
    for shape in SHAPES:
        check(xp, 7, *shape, dtype, *trans)


@pytest.mark.parametrize("method", ["auto", "tiles", "vendor"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_other_methods(xp, dtype, method):
    for n in (3, 33, 65):
        check(xp, 4, n, n + 1, n + 2, dtype, beta=2, method=method)


@pytest.mark.parametrize("method", ["tiles", "redirected"])
@pytest.mark.parametrize("trans", TRANSPOSES)
@pytest.mark.parametrize("dtype", DTYPES[:2])
def test_ragged_batches(xp, dtype, trans, method):
    """Matrices of all sizes up to the kernel's edges, one of them NaN."""
    (transa, transb), rng = trans, np.random.default_rng(5)
    for largest in (1, 15, 16, 23, 32, 33, 41, 64, 65, 80, 81):
        m, n, k = rng.integers(0, largest + 1, (3, 20))
        m[0] = n[0] = k[0] = k[1] = largest
        A = MatrixBatch.empty(*((k, m) if transa else (m, k)), dtype)
        B = MatrixBatch.empty(*((n, k) if transb else (k, n)), dtype)
        C = MatrixBatch.empty(m, n, dtype)
        for i, M in enumerate((A, B, C)):
            M.buffer[:] = random(M.buffer.size, dtype, i)
        A[1][...] = np.nan
        given = [M.to(xp) for M in (A, B, C)]
        out = batched.gemm(*given, 1.5, -0.5, transa, transb, method=method).to(np)
        for b in range(len(A)):
            X, Y = (M.T if turned else M for M, turned in ((A[b], transa), (B[b], transb)))
            exact = 1.5 * (X.astype(float) @ Y) - 0.5 * C[b]
            allowed = 3 * np.finfo(dtype).eps * (np.sqrt(k[b] + 2) * 1.5 * (np.abs(X) @ np.abs(Y)) + 2 * np.abs(C[b]))
            assert np.isnan(out[b]).all() if b == 1 else (np.abs(out[b] - exact) <= allowed).all()


def test_batches(xp):
    for batch in (0, 1, 70_000):
        check(xp, batch, 3, 2, 4, np.float64)
    check(xp, 70_000, 9, 9, 9, np.float32)
    for dtype in DTYPES[:2]:  # more matrices than blocks that stay on a device, and bands of unequal heights
        check(xp, 700 if xp is not np else 70, 66, 65, 70, dtype)
        check(xp, 400 if xp is not np else 40, 144, 33, 129, dtype)


@pytest.mark.gpu
@pytest.mark.parametrize("n", [3, 16, 33, 64, 65, 80, 128, 129])
def test_misaligned_matrices(n):
    """Stacks that begin between two multiples of 16 bytes, as those behind an odd number of entries do."""
    cp = pytest.importorskip("cupy")
    A, B, C = (cp.asarray(random(3 * n * n + 1, np.float64, i))[1:].reshape(3, n, n) for i in range(3))
    out = cp.full(3 * n * n + 2, np.nan)
    assert batched.gemm(A, B, C, 1.5, -0.5, method="fixed", out=out[1:-1].reshape(3, n, n)) is not None
    expected = 1.5 * (A.get() @ B.get()) - 0.5 * C.get()
    np.testing.assert_allclose(out[1:-1].get().reshape(3, n, n), expected, rtol=0, atol=1e-11)
    assert np.isnan(out[[0, -1]].get()).all()


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES[:2])
def test_large_batches_are_compiled_for_their_size_unasked(dtype, monkeypatch):
    cp = pytest.importorskip("cupy")
    from h2gpu.batched.products import fixed
    from h2gpu.batched.products.gemm import way_of as _way

    _way.cache_clear()
    taken, ready = [], fixed.ready
    monkeypatch.setattr(fixed, "ready", lambda dtype, batch, *rest: taken.append(batch) or ready(dtype, batch, *rest))
    batch = -(-choice.WORTH // 65**3)
    A, B = (cp.asarray(random((batch, 65, 65), dtype, i)) for i in range(2))
    allowed = 100 * np.finfo(dtype).eps * 65
    assert float(abs(batched.gemm(A, B) - A @ B).max()) < allowed
    batched.gemm(A[1:], B[1:])
    batched.gemm(A[:-1], B[:-1].swapaxes(1, 2), transb=True)
    assert taken == [batch]


def fringed(n, dtype):
    """The first plan of each kernel with one or two last rows or columns by themselves."""
    families = fixed_plans.families(np.dtype(dtype), n, n, n, False, False)
    return [next(plan for _, plan in family) for family in families if family[0][1].fringe]


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES[:2])
@pytest.mark.parametrize("n", [17, 34, 65, 73, 82, 129, 145])
def test_last_rows_and_columns_by_themselves(n, dtype):
    cp = pytest.importorskip("cupy")
    for plan in fringed(n, dtype):
        with tuning.trial("fixed_gemm", **plan.knobs(dtype, n)):
            check(cp, 2 * plan.group + 1, n, n, n, dtype, beta=-0.5)


@pytest.mark.parametrize("dtype", DTYPES[:2])
def test_a_fringe_leaves_whole_tiles(dtype):
    for n in (33, 34, 65, 97, 98, 129, 130):
        plans = fringed(n, dtype)
        assert (dtype == np.float32 and n == 33) or plans
        assert all(plan.excess(dtype, n, n) == 0 for plan in plans)
        assert not fixed_plans.plan(np.dtype(dtype), n, n, n, False, False).fringe
    assert not fringed(64, dtype) and not fringed(67, dtype) and not fringed(16, dtype)


@pytest.mark.parametrize("dtype", DTYPES[:2])
@pytest.mark.parametrize("n", [7, 16, 33, 65, 97, 129, 159])
def test_a_row_of_the_table_tells_the_plan(n, dtype):
    for plan in fixed_plans.candidates(np.dtype(dtype), n, n, n, False, False):
        assert fixed_plans.Plan.of(plan.knobs(dtype, n), dtype, n) == plan
        assert plan.shared <= SHARED_BYTES and plan.threads(n) <= THREADS


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_plans_fit_the_device(dtype):
    for n in range(1, fixed_plans.LARGEST + 1):
        for trans in TRANSPOSES:
            plan = fixed_plans.plan(np.dtype(dtype), n, n, n, *trans)
            assert plan.shared <= SHARED_BYTES and plan.threads(n) <= THREADS
            assert plan.group == 1 or plan.band == n
            work = -(-5 // plan.group) * -(-n // plan.band)
            assert plan.blocks(5, n, 132) == work
            bands = -(-n // plan.band)
            if plan.streams:
                assert plan.blocks(5, n, 1) % bands == 0 and 0 < plan.blocks(5, n, 1) <= max(plan.resident, bands)
    assert fixed_plans.plan(np.dtype(dtype), 161, 4, 4, False, False) is None
    assert fixed_plans.plan(np.dtype(dtype), 4, 0, 4, False, False) is None
