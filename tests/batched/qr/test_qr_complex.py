"""QR of complex matrices against LAPACK's criteria, on the CPU and on the GPU."""

import numpy as np
import pytest
from batches import assert_alone_as_together
from latms import COMPLEX, complex_extremes, complex_normal, complex_spectra, gaussian, to, turned_exceptional

from h2gpu import batched
from h2gpu.apps.benchmarks.routines.criteria import column_error, failures, on_host, qr_error, triangle_error
from h2gpu.batched import MatrixBatch

DIGITS = {np.complex128: 15, np.complex64: 10}
SHAPES = [(1, 1), (1, 7), (7, 1), (5, 5), (8, 8), (9, 17), (33, 20), (20, 64), (64, 33), (80, 16), (70, 66)]


@pytest.fixture
def rng():
    return np.random.default_rng(33)


def check(A, xp):
    """Q and R, and R alone, by the criteria; the diagonal of R is real."""
    given = to(A, xp)
    Q, R = (on_host(M) for M in batched.qr(given))
    assert not failures(qr_error, A, Q, R)
    assert all((np.diagonal(R[b]).imag == 0).all() for b in range(len(R)))
    assert not failures(triangle_error, A, batched.qr(given, mode="r")), "R alone"


@pytest.mark.parametrize("dtype", COMPLEX)
def test_stacks(dtype, xp, rng):
    for shape in SHAPES:
        check(gaussian((3, *shape), dtype, rng), xp)


@pytest.mark.parametrize("dtype", COMPLEX)
def test_ragged_batches_of_any_order(dtype, xp, rng):
    shapes = [*SHAPES, (0, 3), (4, 0), *SHAPES[3:7], (150, 20), (20, 150)]
    for order in (shapes, rng.permutation(shapes)):
        check(complex_normal(order, dtype, rng), xp)


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("shape", [(12, 12), (40, 19), (9, 30)])
def test_spectra_and_scales(shape, dtype, xp, rng):
    """LATMS modes 1 to 6; all of them near underflow, below it and near overflow as well."""
    A = complex_spectra(*shape, dtype, rng)
    check(np.concatenate([A, *(A * dtype(factor) for factor in complex_extremes(dtype))]), xp)


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (33, 32), (20, 41)])
def test_exceptional_matrices_together_and_alone(shape, dtype, xp, rng):
    """All kinds in one batch; the GPU gives each the same bits alone."""
    A = turned_exceptional(*shape, dtype, rng)
    check(A, xp)
    if xp is not np:
        assert_alone_as_together(batched.qr, to(A, xp))


@pytest.mark.parametrize("dtype", COMPLEX)
def test_every_column_is_right_to_its_own_rounding(dtype, xp, rng):
    """A = B D, D to condition 10¹⁵, in complex64 to 10¹⁰."""
    A = complex_normal([(n, n) for n in (2, 9, 31, 50)] + [(90, 30), (20, 40)], dtype, rng)
    for M in A.matrices():
        M *= (10.0 ** -rng.permutation(np.linspace(0, DIGITS[dtype], M.shape[1]))).astype(dtype)
    assert not failures(column_error, A, *batched.qr(to(A, xp)))


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("bad", [np.nan, 1j * np.inf])
def test_nan_and_infinity_harm_no_neighbour(bad, dtype, xp, rng):
    clean = complex_normal([(3, 3), (17, 9), (9, 17), (40, 40)] * 3, dtype, rng)
    spoilt, which = to(clean, np), range(1, 12, 3)
    for b in which:
        spoilt[b][-1, 0] = spoilt[b][0, -1] = bad
    before, after = ([on_host(M) for M in batched.qr(to(A, xp))] for A in (clean, spoilt))
    for old, new in zip(before, after):
        for b in set(range(12)) - set(which):
            np.testing.assert_array_equal(old[b], new[b])
    assert all(np.isnan(after[1][b]).any() for b in which)


@pytest.mark.parametrize("dtype", COMPLEX)
def test_r_alone_into_given_memory(dtype, xp, rng):
    A = to(complex_normal(rng.integers(0, 40, (12, 2)), dtype, rng), xp)
    expected = batched.qr(A, mode="r")
    places = MatrixBatch.zeros(np.repeat(expected.rows, 2), np.repeat(expected.columns, 2), dtype, xp)
    batched.qr(A, mode="r", out=places[::2])
    assert all((R == S).all() for R, S in zip(places[::2].matrices(), expected.matrices()))
    assert not any(R.any() for R in places[1::2].matrices())


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("place", ["inside", "panel", "outside"])
def test_every_place_gives_the_same_to_rounding(place, dtype, rng, monkeypatch):
    """Where the work is done changes the time alone."""
    cupy = pytest.importorskip("cupy")
    from h2gpu.batched.qr import complex_panels

    A = complex_normal([(50, 20), (20, 50), (33, 33), (9, 3)], dtype, rng)
    expected = [on_host(M) for M in batched.qr(to(A, cupy))]
    number = complex_panels.PLACES.index(place)
    monkeypatch.setattr(complex_panels, "places", lambda dtype, m, *_: np.full(m.shape, number))
    for M, N in zip(expected, batched.qr(to(A, cupy))):
        tolerance = 1e3 * np.finfo(dtype).eps * np.abs(M.buffer).max()  # instances may round each in their own way
        np.testing.assert_allclose(on_host(N).buffer, M.buffer, rtol=0, atol=tolerance)
    check(A, cupy)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("shape", [(240, 66), (300, 256), (256, 300), (1700, 20), (3000, 12)])
def test_sizes_beyond_shared_memory(shape, dtype, rng):
    check(gaussian((2, *shape), dtype, rng), pytest.importorskip("cupy"))
