"""SVDs of every size and kind of matrix against LAPACK's criteria: LAPACK's own on the CPU, every kernel on the GPU."""

import importlib

import numpy as np
import pytest
from batches import assert_alone_as_together
from latms import EXCEPTIONAL, all_spectra, exceptional, extremes, normal, to

from h2gpu import batched
from h2gpu.apps.benchmarks.routines.criteria import failures, on_host, svd_error, values_error

DTYPES = [np.float64, np.float32]
METHODS = ["auto", "shared", "block-gram", "block-direct", "bidiagonal"]  # auto takes "register" wherever it can run
EVERY = 130  # sizes without a gap; beyond: limits of the kernels' classes of ranks and their neighbours
SELECTED = [131, 160, 161, 192, 255, 257, 343, 385, 511, 513, 777, 1024]
LARGEST_ON_CPU = 192


@pytest.fixture(params=[("numpy", "auto"), *(pytest.param(("cupy", m), marks=pytest.mark.gpu) for m in METHODS)])
def back_end(request):
    """(array module, method)"""
    return importlib.import_module(request.param[0]), request.param[1]


@pytest.fixture
def rng():
    return np.random.default_rng(32)


def shapes_of(n):
    """Square, taller and wider."""
    return (n, n), (n + 1 + n // 3, n), (3 * n + 7, n), (n, n + 1 + n // 3), (n, 2 * n + 5)


def check(A, back_end, vectors=("both", "left", "none")):
    """Both sides, left vectors and values of a batch by the criteria."""
    xp, method = back_end
    given = to(A, xp)
    for wanted in vectors:
        results = batched.svd(given, wanted, method)
        found = failures(values_error, A, results) if wanted == "none" else failures(svd_error, A, *results)
        assert not found, wanted


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", range(5))
def test_every_size_in_one_batch(shape, dtype, back_end, rng):
    sizes = range(1, EVERY + 1, 13 if back_end[0] is np else 1)
    check(normal([shapes_of(n)[shape] for n in sizes], dtype, rng), back_end)


@pytest.mark.parametrize("dtype", DTYPES)
def test_few_sizes_many_times_in_any_order(dtype, back_end, rng):
    """Ragged, yet most matrices are alike: they go together, and come back where they were."""
    runs = np.repeat([(9, 5), (5, 9), (30, 30), (0, 3), (64, 40)], [40, 20, 30, 9, 25], axis=0)
    for shapes in (runs, rng.permutation(runs)):
        check(normal(shapes, dtype, rng), back_end)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("first", range(1, EVERY + 1, 26))
def test_every_size_by_itself(first, dtype, rng):
    cupy = pytest.importorskip("cupy")
    for n in range(first, first + 26):
        for shape in (n, n), (n // 2 + 1, n), (2 * n, n):
            check(rng.standard_normal((2, *shape)).astype(dtype), (cupy, "auto"), ("both", "left"))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("start", range(4))
def test_selected_sizes_to_1024(start, dtype, back_end, rng):
    for n in SELECTED[start::4]:
        if n <= LARGEST_ON_CPU or back_end[0] is not np:
            check(normal([(n, n), (n // 3, n)], dtype, rng), back_end, ("both", "none"))
            check(rng.standard_normal((1, n + n // 4, n)).astype(dtype), back_end, ("left",))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "shape", [(1, 1), (6, 5), (5, 16), (31, 31), (48, 33), (33, 64), (64, 64), (101, 70), (70, 141)]
)
def test_spectra_and_scales(shape, dtype, back_end, rng):
    """LATMS modes 1 to 6 of every condition; all of them near underflow, below it and near overflow as well."""
    if back_end[0] is np and max(shape) > 64:
        shape = shape[0] // 3, shape[1] // 3
    A = all_spectra(*shape, dtype, rng)
    check(A, back_end, ("both", "none"))
    check(np.concatenate([A * dtype(factor) for factor in extremes(dtype).values()]), back_end, ("both", "left"))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "shape", [(1, 1), (2, 3), (7, 7), (33, 32), (16, 40), (64, 64), (65, 97), (120, 50), (160, 150)]
)
def test_exceptional_matrices_together_and_alone(shape, dtype, back_end, rng):
    """All kinds in one batch; the GPU gives each the same bits alone."""
    xp, method = back_end
    names = [name for name in EXCEPTIONAL if xp is np or name != "ones"]  # those: the next test
    found = exceptional(*shape, dtype, rng)
    A = np.stack([found[name] for name in names])
    check(A, back_end, ("both", "left"))
    if xp is not np:
        assert_alone_as_together(lambda A: batched.svd(A, "both", method), xp.asarray(A), names)


@pytest.mark.gpu
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(7, 7), (16, 40), (33, 32), (160, 150)])
def test_equal_entries(shape, dtype, method):
    """Rank one up to rounding errors that are equal in all columns, so that each sweep uncovers smaller ones below."""
    cupy = pytest.importorskip("cupy")
    check(np.ones((2, *shape), dtype), (cupy, method), ("both", "left"))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_end_are_named_and_harm_no_neighbour(bad, dtype, back_end, rng):
    xp, method = back_end
    shapes = [(n, n) for n in (3, 17, 40, 90, 150)] + [(60, 9), (9, 60), (300, 100), (80, 200)]
    clean = normal([shape for shape in shapes for _ in range(3)], dtype, rng)
    spoilt, which = to(clean, np), range(1, len(clean), 3)
    for b in which:
        spoilt[b][-1, 0] = bad
    for wanted in ("both", "left", "none"):
        with pytest.raises(np.linalg.LinAlgError, match=f"NaN or Inf in matrices {', '.join(map(str, which))}$"):
            batched.svd(to(spoilt, xp), wanted, method)
        before, after = (batched.svd(to(A, xp), wanted, method, return_info=True) for A in (clean, spoilt))
        np.testing.assert_array_equal(on_host(after[-1]) == -1, np.isin(np.arange(len(clean)), which))
        for old, new in zip(before[:-1], after[:-1]):
            old, new = on_host(old), on_host(new)
            for b in range(len(clean)):
                if b in which:
                    assert np.isnan(new[b]).all()
                else:
                    np.testing.assert_array_equal(old[b], new[b])
