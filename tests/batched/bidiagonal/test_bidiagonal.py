"""Bidiagonal reduction by LAPACK's criteria for GEBRD, and singular values from it.

|A − Q B Pt| / (max(m, n) |A| ε) < 50,   |I − QᵀQ| / (m ε) < 30,   |I − Pt Ptᵀ| / (n ε) < 30
"""

import numpy as np
import pytest
from latms import EXCEPTIONAL, all_spectra, exceptional, extremes, normal, to

from h2gpu import batched
from h2gpu.apps.benchmarks.routines.criteria import (
    bidiagonal,
    failures,
    on_host,
    reduction_error,
    svd_error,
    values_error,
)
from h2gpu.batched import MatrixBatch
from h2gpu.batched.bidiagonal import plans
from h2gpu.batched.device import tuning

DTYPES = [np.float64, np.float32]
EVERY = 40  # sizes without a gap; beyond, on either side of the limits of the kernels' instances
SELECTED = [47, 48, 49, 63, 64, 65, 80, 81, 96, 97, 127, 128, 129, 160, 168]
TOO_MANY_ENTRIES = 60000  # for shared memory, in float32
LARGER = [200, 256, 257, 512, 700]  # on the GPU alone
SHARED_LIMIT, MULTIPROCESSORS = 223 << 10, 132  # of an H200


@pytest.fixture
def rng():
    return np.random.default_rng(65)


@pytest.fixture(params=(1, *plans.CLUSTERS))
def sharing(request, monkeypatch):
    """CuPy, with so many thread blocks for every matrix in device memory, where the device has clusters."""
    monkeypatch.setattr(plans, "blocks", lambda knobs, *_: request.param if knobs.held else 1)
    return pytest.importorskip("cupy")


def check(A, xp):
    """A batch by the criteria, with vectors and without."""
    given = to(A, xp)
    results = batched.bidiagonalize(given)
    assert not failures(reduction_error, A, *results)
    for whole, alone in zip(results[1:3], batched.bidiagonalize(given, vectors="none")):
        whole, alone = (M.buffer if isinstance(M, MatrixBatch) else M for M in map(on_host, (whole, alone)))
        np.testing.assert_array_equal(whole, alone)


def shapes_of(n):
    """Square, taller and wider."""
    return (n, n), (n + 1 + n // 3, n), (3 * n + 7, n), (n, n + 1 + n // 3), (n, 2 * n + 5)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", range(5))
def test_every_size_in_one_batch(shape, dtype, xp, rng):
    every = range(1, EVERY + 1, 3 if xp is np else 1)  # the CPU has no kernel a size
    check(normal([shapes_of(n)[shape] for n in [*every, *SELECTED[::4]]], dtype, rng), xp)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("start", range(5))
def test_selected_sizes_by_themselves(start, dtype, xp, rng):
    for n in SELECTED[start::5]:
        check(rng.standard_normal((2, n, n)).astype(dtype), xp)
        check(rng.standard_normal((1, n // 2, n)).astype(dtype), xp)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", LARGER)
def test_larger_sizes(n, dtype, sharing, rng):
    check(rng.standard_normal((2, n, n)).astype(dtype), sharing)
    check(normal([(n, n // 3), (n // 4, n)], dtype, rng), sharing)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 31, 32, 33, 48])
def test_ends_of_panels(n, dtype, sharing, rng):
    """Too tall for shared memory, with few columns."""
    check(rng.standard_normal((1, TOO_MANY_ENTRIES // n, n)).astype(dtype), sharing)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("held", [8, 32, 64])
def test_panels_of_other_widths(held, dtype, rng, monkeypatch):
    """Those that `tune` may put into the table, by one thread block."""
    monkeypatch.setattr(plans, "blocks", lambda *_: 1)
    cupy, before = pytest.importorskip("cupy"), plans.keys(8, [9000], [21], SHARED_LIMIT)[-1]
    with tuning.trial(plans.TABLE, held=held, warps=4, resident=1):
        assert plans.keys(8, [9000], [21], SHARED_LIMIT)[-1] == held != before
        check(rng.standard_normal((1, TOO_MANY_ENTRIES // 21, 21)).astype(dtype), cupy)
    assert plans.keys(8, [9000], [21], SHARED_LIMIT)[-1] == before


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES)
def test_exceptions_and_scales_in_device_memory(dtype, sharing, rng):
    """Exceptional matrices, entries near the ends of the range, and NaN, which spoils its matrix alone."""
    shape = 230, 270
    found = exceptional(*shape, dtype, rng)
    A = rng.standard_normal((1, *shape)).astype(dtype)
    scales = np.concatenate([A * dtype(factor) for factor in extremes(dtype).values()])
    given = np.concatenate([np.stack([found[name] for name in EXCEPTIONAL]), scales])
    check(given, sharing)
    spoilt = given.copy()
    spoilt[-2, 229, 3] = np.nan
    before, after = (list(map(on_host, batched.bidiagonalize(sharing.asarray(M)))) for M in (given, spoilt))
    assert np.isnan(after[1][-2]).any()
    for old, new in zip(before, after):
        np.testing.assert_array_equal(np.delete(new, -2, 0), np.delete(old, -2, 0))


@pytest.mark.parametrize("itemsize", [4, 8])
def test_few_large_matrices_are_shared(itemsize):
    """By more blocks the fewer there are; all at once; never in shared memory or where one block is as fast."""

    def blocks(n, count):
        knobs = plans.plan(itemsize, n, n, SHARED_LIMIT)
        each = plans.blocks(knobs, itemsize, n, n, count, MULTIPROCESSORS)
        assert each == 1 or count * each <= knobs.resident * MULTIPROCESSORS
        return each

    assert [blocks(1024, count) for count in (1, 14, 15, 28, 29, 66, 67, 500)] == [8, 8, 4, 4, 2, 2, 1, 1]
    assert [blocks(512, count) for count in (8, 50, 132, 200)] == {4: [8, 4, 2, 1], 8: [8, 2, 1, 1]}[itemsize]
    assert {blocks(n, count) for n in (129, 160) for count in (1, 20, 200)} == {1}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (6, 5), (5, 16), (31, 31), (48, 33), (64, 64), (30, 101)])
def test_spectra_and_scales(shape, dtype, xp, rng):
    A = all_spectra(*shape, dtype, rng)
    check(A, xp)
    given = np.concatenate([A * dtype(factor) for factor in extremes(dtype).values()])
    assert not failures(reduction_error, given, *batched.bidiagonalize(to(given, xp)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (7, 7), (33, 32), (16, 40), (64, 64), (65, 97)])
def test_exceptional_matrices_together(shape, dtype, xp, rng):
    found = exceptional(*shape, dtype, rng)
    check(np.stack([found[name] for name in EXCEPTIONAL]), xp)


@pytest.mark.parametrize("dtype", DTYPES)
def test_shapes_of_arrays(dtype, xp, rng):
    """Leading dimensions, single matrices, none, no rows or columns."""
    Q, d, e, Pt = batched.bidiagonalize(xp.asarray(rng.standard_normal((2, 3, 5, 4)).astype(dtype)))
    assert (Q.shape, d.shape, e.shape, Pt.shape) == ((2, 3, 5, 4), (2, 3, 4), (2, 3, 3), (2, 3, 4, 4))
    d, e = batched.bidiagonalize(xp.asarray(rng.standard_normal((4, 5)).astype(dtype)), vectors="none")
    assert (d.shape, e.shape, d.dtype) == ((4,), (3,), dtype)
    for shape, k in (((0, 5, 3), 3), ((2, 0, 3), 0), ((2, 3, 0), 0)):
        Q, d, e, Pt = batched.bidiagonalize(xp.zeros(shape, dtype))
        assert (Q.shape, Pt.shape) == ((*shape[:2], k), (shape[0], k, shape[2]))
        assert (d.shape, e.shape) == ((shape[0], k), (shape[0], max(k - 1, 0)))


def test_singular_values_are_those_of_the_matrix(xp, rng):
    A = rng.standard_normal((3, 20, 30))
    d, e = map(on_host, batched.bidiagonalize(xp.asarray(A), vectors="none"))
    B = np.stack([bidiagonal(d[b], e[b], False) for b in range(3)])
    singular = [np.linalg.svd(M, compute_uv=False) for M in (A, B)]
    np.testing.assert_allclose(singular[1], singular[0], rtol=0, atol=1e-13 * singular[0].max())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_and_infinity_stay_in_their_matrix(bad, dtype, xp, rng):
    A = rng.standard_normal((3, 9, 7)).astype(dtype)
    spoilt = A.copy()
    spoilt[1, 8, 3] = bad
    before, after = (list(map(on_host, batched.bidiagonalize(xp.asarray(M)))) for M in (A, spoilt))
    assert np.isnan(after[1][1]).any()
    for old, new in zip(before, after):
        np.testing.assert_array_equal(new[::2], old[::2])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", range(5))
def test_svd_by_bidiagonalization(shape, dtype, xp, rng):
    """Values alone, left vectors and both, of all sizes up to 33 and some larger."""
    A = normal([shapes_of(n)[shape] for n in [*range(1, 34, 1 if shape == 0 else 5), 50, 70]], dtype, rng)
    for wanted in ("both", "left", "none"):
        results = batched.svd(to(A, xp), wanted, "bidiagonal")
        found = failures(values_error, A, results) if wanted == "none" else failures(svd_error, A, *results)
        assert not found, wanted


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(6, 5), (33, 31), (16, 40)])
def test_svd_of_spectra_and_exceptional_matrices(shape, dtype, xp, rng):
    exceptions = exceptional(*shape, dtype, rng)
    for A in (all_spectra(*shape, dtype, rng), np.stack([exceptions[name] for name in EXCEPTIONAL])):
        assert not failures(svd_error, A, *batched.svd(to(A, xp), "both", "bidiagonal"))
        assert not failures(values_error, A, batched.svd(to(A, xp), "none", "bidiagonal"))


def test_wrong_arguments():
    with pytest.raises(ValueError, match='bidiagonalize: expected vectors "both" or "none", got \'left\''):
        batched.bidiagonalize(np.eye(3), vectors="left")
    with pytest.raises(ValueError, match="expected float32 or float64 matrices"):
        batched.bidiagonalize(np.zeros(3))


@pytest.mark.gpu
def test_too_many_columns_for_the_gpu():
    cupy = pytest.importorskip("cupy")
    with pytest.raises(ValueError, match="expected min\\(m, n\\) ≤ 1024 on the GPU, got 1025"):
        batched.bidiagonalize(cupy.zeros((1, 1025, 1025)))
