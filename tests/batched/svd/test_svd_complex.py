"""SVD of complex matrices against LAPACK's criteria, on the CPU and on the GPU."""

import numpy as np
import pytest
from batches import assert_alone_as_together
from latms import COMPLEX, complex_extremes, complex_normal, complex_spectra, gaussian, to, turned_exceptional

from h2gpu import batched
from h2gpu.apps.benchmarks.routines.criteria import failures, on_host, svd_error, values_error
from h2gpu.arrays import to_host

SHAPES = [(1, 1), (1, 7), (7, 1), (5, 5), (8, 8), (9, 17), (33, 20), (20, 64), (40, 33), (31, 32)]
VECTORS = ("both", "left", "none")


@pytest.fixture
def rng():
    return np.random.default_rng(34)


def check(A, xp, vectors=VECTORS):
    """Both sides, left vectors and values of a batch by the criteria."""
    given = to(A, xp)
    for wanted in vectors:
        results = batched.svd(given, wanted)
        found = failures(values_error, A, results) if wanted == "none" else failures(svd_error, A, *results)
        assert not found, wanted


@pytest.mark.parametrize("dtype", COMPLEX)
def test_stacks(dtype, xp, rng):
    for shape in SHAPES:
        check(gaussian((3, *shape), dtype, rng), xp)


@pytest.mark.parametrize("dtype", COMPLEX)
def test_ragged_batches_of_any_order(dtype, xp, rng):
    shapes = [*SHAPES, (0, 3), (4, 0), *SHAPES[3:7], (70, 9), (9, 70)]
    for order in (shapes, rng.permutation(shapes)):
        check(complex_normal(order, dtype, rng), xp)


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("shape", [(6, 6), (24, 11), (11, 24), (20, 17)])
def test_spectra_and_scales(shape, dtype, xp, rng):
    """LATMS modes 1 to 6 of every condition; all of them near underflow, below it and near overflow as well."""
    A = complex_spectra(*shape, dtype, rng)
    check(np.concatenate([A, *(A * dtype(factor) for factor in complex_extremes(dtype))]), xp, ("both", "left"))


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (33, 32), (9, 24)])
def test_exceptional_matrices_together_and_alone(shape, dtype, xp, rng):
    """All kinds in one batch; the GPU gives each the same bits alone."""
    A = turned_exceptional(*shape, dtype, rng)
    check(A, xp)
    if xp is not np:
        assert_alone_as_together(batched.svd, to(A, xp))


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("bad", [np.nan, 1j * np.inf])
def test_nan_and_infinity_are_named_and_harm_no_neighbour(bad, dtype, xp, rng):
    clean = complex_normal([(3, 3), (17, 9), (9, 40), (20, 20)] * 3, dtype, rng)
    spoilt, which = to(clean, np), range(1, 12, 3)
    for b in which:
        spoilt[b][-1, 0] = bad
    for wanted in VECTORS:
        with pytest.raises(np.linalg.LinAlgError, match=f"NaN or Inf in matrices {', '.join(map(str, which))}$"):
            batched.svd(to(spoilt, xp), wanted)
        before, after = (batched.svd(to(A, xp), wanted, return_info=True) for A in (clean, spoilt))
        np.testing.assert_array_equal(on_host(after[-1]) == -1, np.isin(np.arange(12), which))
        for old, new in zip(before[:-1], after[:-1]):
            old, new = on_host(old), on_host(new)
            for b in range(12):
                if b in which:
                    assert np.isnan(new[b]).all()
                else:
                    np.testing.assert_array_equal(old[b], new[b])


@pytest.mark.gpu
def test_singular_values_of_scaled_columns_are_relatively_accurate(rng):
    """A = B D, B random, D of powers of two to 2⁻²⁴: |s − σ| ≤ c n ε σ, σ by LAPACK in double precision; Aᴴ too."""
    cupy, n = pytest.importorskip("cupy"), 14
    A = (gaussian((20, n), np.complex64, rng) * 2.0 ** -rng.permutation(np.linspace(0, 24, n).round())).astype(
        np.complex64
    )
    sigma = np.linalg.svd(A.astype(np.complex128), compute_uv=False)
    for M in (A, np.ascontiguousarray(A.conj().T)):
        s = to_host(batched.svd(cupy.asarray(M[None]), "none"))[0]
        assert (np.abs(s - sigma) <= 10 * n * np.finfo(np.float32).eps * sigma).all()


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", COMPLEX)
def test_columns_in_device_memory_some_matrices_at_a_time(dtype, rng, monkeypatch):
    cupy = pytest.importorskip("cupy")
    from h2gpu.batched.svd import complex_jacobi

    A = complex_normal([(20, 12), (12, 20), (40, 9), (5, 5)], dtype, rng)
    monkeypatch.setattr(complex_jacobi, "shared_limit", lambda device: 0)
    monkeypatch.setattr(complex_jacobi, "WORKSPACE_BYTES", 1 << 14)
    check(A, cupy)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", COMPLEX)
def test_a_deficient_rank_costs_no_sweeps(dtype, rng):
    """Errors of errors are not turned: of rank one or less, no more sweeps than a random matrix takes."""
    cupy = pytest.importorskip("cupy")
    one = np.multiply.outer(gaussian((16,), dtype, rng), gaussian((15,), dtype, rng))
    A = np.stack([gaussian((16, 15), dtype, rng), one, np.ones((16, 15), dtype), np.zeros((16, 15), dtype)])
    sweeps = to_host(batched.svd(cupy.asarray(A), "none", return_info=True)[-1])
    assert 0 < sweeps[0] <= 12 and (sweeps[1:] <= sweeps[0]).all()


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("shape", [(240, 66), (66, 240), (256, 256)])
def test_radar_and_sizes_beyond_shared_memory(shape, dtype, rng):
    check(gaussian((1, *shape), dtype, rng), pytest.importorskip("cupy"))
