"""Products with the matrix are those with the dense matrix of its blocks, in the caller's order of points."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from operators import COV, close, rectangular_matrix, symmetric_matrix, vectors
from reference import EPS, POINT_SETS, dense_of, point_sets, points_of

import h2gpu
from h2gpu.arrays import to_host
from h2gpu.batched.device import streams, threads
from h2gpu.covariance import Exponential, Gaussian, Matern
from h2gpu.h2matrix import matrix
from h2gpu.h2matrix.matrix import VECTORS_AT_A_TIME


@settings(max_examples=30)
@given(
    point_sets(largest=200),
    st.integers(1, 30),
    st.sampled_from([0.7, 1.0, 2.0]),
    st.integers(1, 4),
    st.sampled_from(["median", "mean"]),
)
def test_a_product_is_that_of_the_dense_matrix_of_the_blocks(points, leaf_size, eta, order, split):
    """A x = Σ U_t S_ts V_sᵀ x_s + Σ D_ts x_s"""
    A = h2gpu.build(points, COV, leaf_size=leaf_size, eta=eta, order=order, split=split)
    x = np.random.default_rng(0).standard_normal(len(points))
    expected = dense_of(A) @ x
    close(A @ x, expected, 1000 * EPS)
    close(A.to_dense(), dense_of(A))


def test_products_with_vectors_and_blocks_of_vectors(A):
    dense = dense_of(A)
    for count in ((), (1,), (3,), (0,), (2 * VECTORS_AT_A_TIME + 5,)):
        x, z = vectors(A, 1, *count), vectors(A, 0, *count)
        assert isinstance(A @ x, type(x)) and (A @ x).shape == (A.shape[0], *count)
        close(A @ x, dense @ to_host(x))
        close(A.T @ z, dense.T @ to_host(z))
        close(A.rmatvec(z), dense.T @ to_host(z))
        close(z.T @ A, to_host(z).T @ dense)
        for product in (A.matvec, A.matmat, A.dot):
            close(product(x), dense @ to_host(x))
        close(A.rmatmat(z), dense.T @ to_host(z))


def test_products_again_and_again_are_the_same(A):
    """A (2^k x) = 2^k A x and Aᵀ (2^k z) = 2^k Aᵀ z, though later ones are recorded ones on a GPU."""
    x, z = vectors(A, 1), vectors(A, 0)
    y, w = A @ x, A.T @ z
    for k in (0, 3, -2, 1):
        close(2.0**-k * (A @ (2.0**k * x)), to_host(y))
        close(2.0**-k * A.rmatvec(2.0**k * z), to_host(w))
    close(y, dense_of(A) @ to_host(x))


@pytest.mark.gpu
def test_products_from_two_streams_do_not_meet():
    """A (2^k x) = 2^k A x, bit for bit, of the first product and of recorded ones."""
    cp = pytest.importorskip("cupy")
    A = h2gpu.build(cp.asarray(points_of("uniform", 3000, 2)), COV)
    x = cp.asarray(np.random.default_rng(0).standard_normal(3000))
    y, own = A @ x, [cp.cuda.Stream(non_blocking=True) for _ in range(2)]
    cp.cuda.Device().synchronize()
    found = []
    for k in range(20):
        with own[k % 2]:
            found.append((k, A @ (2.0**k * x)))
    cp.cuda.Device().synchronize()
    assert all((of_stream == 2.0**k * y).all() for k, of_stream in found)


class Beside:
    """The urgent stream, which notes what it is asked for."""

    def __init__(self, stream):
        self.stream, self.asked = stream, []

    def __getattr__(self, name):
        self.asked.append(name)
        return getattr(self.stream, name)

    def __enter__(self):
        return self.stream.__enter__()

    def __exit__(self, *error):
        return self.stream.__exit__(*error)


@pytest.mark.gpu
def test_what_an_urgent_stream_gave_is_kept_until_it_has_been_added(monkeypatch):
    """It waits for the sum, behind its own work, before it has the memory of its part of the product again."""
    cp = pytest.importorskip("cupy")
    A = h2gpu.build(cp.asarray(points_of("uniform", 3000, 2)), COV)
    beside = Beside(streams.urgent_stream())
    monkeypatch.setattr(streams, "urgent_stream", lambda: beside)
    for count in (2, 1, 1):
        beside.asked.clear()
        A.matmat(cp.ones((3000, count)))
        assert beside.asked == ["wait_event", "record", "wait_event"]


def test_products_on_random_rows_are_those_of_the_exact_covariance():
    """|(A x − C x)_i| ≤ max |A − C| · Σ_j |x_j| for an n whose dense matrix would be too large here; order 8."""
    points, cov = points_of("uniform", 10_000, 2), Exponential(1.0, 0.1)
    A = h2gpu.build(points, cov)
    x = np.random.default_rng(1).standard_normal(10_000)
    rows = np.random.default_rng(2).integers(0, 10_000, 50)
    assert np.abs((A @ x)[rows] - cov(points[rows], points) @ x).max() < 1e-7 * np.abs(x).sum()


def test_products_do_not_change_x_and_accept_any_layout(A):
    x = vectors(A, 1, 6)
    before, z = x.copy(), A.nearfield.blocks.xp.asfortranarray(x)
    y = A @ x
    assert (x == before).all()
    close(A @ z, to_host(y), 0)
    close(A @ x[:, ::2], to_host(y[:, ::2]))
    if isinstance(x, np.ndarray):
        close(A @ x[:, 0].tolist(), y[:, 0])
        close(A @ np.ones(A.shape[1], int), A @ np.ones(A.shape[1]), 0)


def test_products_are_linear(A):
    """A (a x + b z) = a A x + b A z"""
    x, z = vectors(A, 1), vectors(A, 1, seed=1)
    close(A @ (2 * x - 3 * z), to_host(2 * (A @ x) - 3 * (A @ z)))


@pytest.mark.parametrize("name", POINT_SETS)
def test_symmetric_products_are_symmetric(name):
    """yᵀ A x = xᵀ A y, each pair of clusters stored once."""
    A = symmetric_matrix(name=name)
    x, y = vectors(A, 0), vectors(A, 0, seed=1)
    assert y @ (A @ x) == pytest.approx(x @ (A @ y), rel=1e-12, abs=1e-10)
    assert A.T is A and A.symmetric


def test_the_transpose_of_the_transpose_is_the_matrix():
    A = rectangular_matrix()
    assert A.T.shape == A.shape[::-1] and not A.T.symmetric
    close(A.T.to_dense(), A.to_dense().T)
    close(A.T.T.to_dense(), A.to_dense(), 0)
    assert A.T.memory == A.memory


def test_a_product_with_the_rectangular_matrix_is_the_symmetric_one_restricted():
    """C(X, Y) is a block of C(X ∪ Y)."""
    points, cols = points_of("uniform", 400, 2), points_of("uniform", 200, 2, seed=1)
    cov = Matern(1.0, 0.5, 2.5)
    A = h2gpu.build(points, cov, col_points=cols, order=8, leaf_size=32)
    np.testing.assert_allclose(A.to_dense(), cov(points, cols), rtol=0, atol=1e-6)


def test_float32_matrices_are_applied_in_float32(xp):
    A = symmetric_matrix(xp, dtype=np.float32)
    x = vectors(A, 1, 3)
    y = A @ x
    assert y.dtype == np.float32
    close(y, dense_of(A) @ to_host(x), 500 * np.finfo(np.float32).eps)


def test_a_zero_matrix_is_applied():
    A = h2gpu.build(np.zeros((30, 1)), Gaussian(), col_points=np.full((20, 1), 99.0), leaf_size=4, order=2)
    assert not (A @ np.ones(20)).any()


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.ones(701), r"A @ x: expected a numpy array of shape \(700,\) or \(700, count\), got .* \(701,\)"),
        (np.ones((1, 700)), r"got a numpy array of shape \(1, 700\)"),
        (np.ones((700, 1, 1)), r"\(700, 1, 1\)"),
        (np.float64(3), r"shape \(\)"),
        (np.ones(700, complex), "A @ x: expected real numbers, got complex128"),
        (np.full(700, None), "A @ x: expected real numbers, got object"),
        (np.full(700, "a"), "A @ x: expected real numbers"),
    ],
)
def test_a_wrong_vector_gives_one_clear_error(x, message):
    A = symmetric_matrix()
    for product in (A.__matmul__, A.rmatvec):
        with pytest.raises(ValueError, match=message):
            product(x)


def test_lists_are_vectors():
    A, x = symmetric_matrix(), np.arange(700.0)
    np.testing.assert_array_equal(A @ x.tolist(), A @ x)
    np.testing.assert_array_equal(x.tolist() @ A, x @ A)


@pytest.mark.parametrize("n", [7919, 700, 40, 1])
def test_products_where_compression_leaves_no_farfield(n, xp):
    """No ranks at all: far blocks of a short Gaussian vanish within rtol."""
    points, cov = np.random.default_rng(0).uniform(-3, 5, (n, 2)), Gaussian(length_scale=0.15)
    A = h2gpu.compress(h2gpu.build(xp.asarray(points), cov, order=6), rtol=1e-5)
    assert not sum(int(ranks.sum()) for ranks in A.ranks)
    x, B = np.random.default_rng(1).standard_normal((n, 3)), A.to_device("cpu")
    for y in (x, x[:, 0]):
        close(to_host(A @ xp.asarray(y)), B @ y, 1000 * EPS)
        close(to_host(A.T @ xp.asarray(y)), B.T @ y, 1000 * EPS)
    rows = slice(0, min(n, 50))
    assert np.linalg.norm((B @ x)[rows] - cov(points[rows], points) @ x) < 1e-4 * np.linalg.norm(x)


def test_products_of_a_rectangular_matrix_that_is_zero(xp):
    points = np.random.default_rng(0).random((300, 2))
    there, here = xp.asarray(points + 100), xp.asarray(points[:70])
    A = h2gpu.compress(h2gpu.build(here, Gaussian(length_scale=0.15), col_points=there, order=4), rtol=1e-5)
    assert not to_host(A @ xp.ones(300)).any() and not to_host(A.T @ xp.ones((70, 2))).any()


@pytest.mark.parametrize("sides", [(), (3,)])
def test_the_nearfield_beside_the_trees_changes_no_digit(sides, monkeypatch):
    sites = np.random.default_rng(0).random((2000, 2))
    A = h2gpu.covariance_matrix(sites, h2gpu.covariance.Exponential(length_scale=0.3), rtol=1e-4)
    x = np.random.default_rng(1).random((2000, *sides))
    after = A @ x, A.T @ x
    monkeypatch.setattr(matrix, "LARGE", 0)
    monkeypatch.setattr(threads, "thread_count", lambda: 2)
    for _ in range(3):
        np.testing.assert_array_equal((A @ x, A.T @ x), after)
