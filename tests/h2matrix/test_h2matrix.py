"""The matrix as an operator: it is the dense matrix of its blocks, in the caller's order of points."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import EPS, POINT_SETS, bases_of, dense_of, members, point_sets, points_of

import h2gpu
from h2gpu.arrays import to_host
from h2gpu.covariance import Exponential, Gaussian, Matern, Nugget
from h2gpu.h2matrix.matrix import VECTORS_AT_A_TIME, ranks_by_level

COV = Exponential(2.0, 0.3) + Nugget(0.5)


def symmetric_matrix(xp=np, name="clustered", n=700, dim=2, cov=COV, dtype=np.float64, **parameters):
    parameters = {"leaf_size": 16, "order": 4, "split": "mean", **parameters}
    return h2gpu.build(xp.asarray(points_of(name, n, dim), dtype=dtype), cov, **parameters)


def rectangular_matrix(xp=np, n=500, m=300, cov=COV, dtype=np.float64, **parameters):
    points, cols = points_of("uniform", n, 2), points_of("clustered", m, 2, seed=1)
    parameters = {"leaf_size": 16, "order": 4, **parameters}
    return h2gpu.build(xp.asarray(points, dtype=dtype), cov, col_points=xp.asarray(cols, dtype=dtype), **parameters)


MATRICES = {"symmetric": symmetric_matrix, "rectangular": rectangular_matrix}


@pytest.fixture(params=MATRICES)
def A(request, xp):
    return MATRICES[request.param](xp)


def vectors(A, side, *count, seed=0, dtype=np.float64):
    """Random vectors of the rows' (0) or columns' (1) length, where A lives."""
    x = np.random.default_rng(seed).standard_normal((A.shape[side], *count)).astype(dtype)
    return A.nearfield.blocks.xp.asarray(x)


def close(y, expected, tolerance=200 * EPS):
    np.testing.assert_allclose(to_host(y), expected, rtol=0, atol=tolerance * np.abs(expected).max(initial=1))


# Products


@settings(max_examples=40)
@given(
    point_sets(largest=300),
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
    y, streams = A @ x, [cp.cuda.Stream(non_blocking=True) for _ in range(2)]
    cp.cuda.Device().synchronize()
    found = []
    for k in range(20):
        with streams[k % 2]:
            found.append((k, A @ (2.0**k * x)))
    cp.cuda.Device().synchronize()
    assert all((of_stream == 2.0**k * y).all() for k, of_stream in found)


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


# Diagonal, memory, ranks, words


@pytest.mark.parametrize("name", POINT_SETS)
def test_the_diagonal_is_the_variance_plus_the_nugget(name):
    """A_ii = C(0) + nugget > 0, always from dense blocks."""
    A = symmetric_matrix(name=name)
    np.testing.assert_allclose(A.diagonal(), 2.5, rtol=1e-15)
    B = h2gpu.compress(A, 1e-2)
    np.testing.assert_array_equal(B.diagonal(), A.diagonal())


def test_the_diagonal_stands_in_the_order_of_the_points(xp):
    """A user's covariance that is not stationary tells the points apart."""
    from h2gpu.covariance import from_function

    points = points_of("clustered", 300, 2)
    cov = from_function(lambda x, y: 1 + x[..., 0] * y[..., 0])
    A = h2gpu.build(xp.asarray(points), cov, leaf_size=8, order=3, split="mean")
    np.testing.assert_allclose(to_host(A.diagonal()), 1 + points[:, 0] ** 2, rtol=1e-14)
    np.testing.assert_allclose(to_host(A.to_dense()), 1 + np.outer(points[:, 0], points[:, 0]), rtol=1e-12)


def test_rectangular_matrices_have_no_diagonal():
    with pytest.raises(ValueError, match=r"diagonal: expected a symmetric matrix, got .* \(500, 300\)"):
        rectangular_matrix().diagonal()


def test_memory_adds_up_to_the_entries_stored(A):
    bases = [A.row_basis] if A.symmetric else [A.row_basis, A.col_basis]
    memory = A.memory
    assert list(memory) == ["nearfield", "leaf_basis", "transfer", "coupling", "total"]
    assert memory["nearfield"] == 8 * A.nearfield.blocks.sizes.sum() == A.nearfield.blocks.buffer.nbytes
    assert memory["leaf_basis"] == sum(8 * (b.tree.sizes[b.tree.leaves] * b.ranks[b.tree.leaves]).sum() for b in bases)
    assert memory["transfer"] == sum(8 * (b.ranks * b.ranks[b.tree.parent] * (b.tree.parent >= 0)).sum() for b in bases)
    assert memory["coupling"] == 8 * sum(
        int(A.row_basis.ranks[t] * A.col_basis.ranks[s]) for t, s in zip(A.couplings.rows, A.couplings.columns)
    )
    assert memory["total"] == A.nbytes == sum(memory.values()) - memory["total"]


def test_ranks_are_listed_by_level():
    A = symmetric_matrix()
    tree = A.row_basis.tree
    assert [len(ranks) for ranks in A.ranks] == np.diff(tree.level_offsets).tolist()
    np.testing.assert_array_equal(np.concatenate(A.ranks), A.row_basis.ranks)
    summary = ranks_by_level(A)
    assert summary[0] == {"min": 0, "mean": 0.0, "max": 0} and len(summary) == tree.levels
    assert summary[-1]["max"] == max(A.ranks[-1])


def test_repr_tells_shape_ranks_memory_and_gain():
    words = repr(symmetric_matrix(name="uniform"))
    assert words.startswith("H2Matrix(700 × 700, float64, symmetric, ranks ") and "MB" in words and "times" in words
    assert "symmetric" not in repr(rectangular_matrix())
    assert ", dense, " in repr(symmetric_matrix(n=5))


def test_attributes_are_those_of_a_matrix(A):
    assert A.ndim == 2 and A.dtype == np.float64 and len(A.shape) == 2
    assert A.replace(couplings=A.couplings).row_basis is A.row_basis


def test_forward_and_backward_transformations_are_transposes():
    """x̂_t = U_tᵀ x_t and y_t = Σ over ancestors U ŷ for all clusters: ⟨x̂, ŷ⟩ = ⟨x, y⟩."""
    basis = symmetric_matrix().row_basis
    U, tree, rng = bases_of(basis), basis.tree, np.random.default_rng(0)
    x, y_hat = rng.standard_normal((tree.n, 2)), rng.standard_normal((int(basis.starts[-1]), 2))
    x_hat = basis.forward(x)
    for t in range(len(tree)):
        own = slice(basis.starts[t], basis.starts[t + 1])
        close(x_hat[own], U[t].T @ x[tree.start[t] : tree.stop[t]])
    assert len(members(tree, 0)) == tree.n
    inner = np.sum(x_hat * y_hat)
    assert np.sum(x * basis.backward(y_hat.copy())) == pytest.approx(inner, rel=1e-11)


def test_float32_matrices_are_applied_in_float32(xp):
    A = symmetric_matrix(xp, dtype=np.float32)
    x = vectors(A, 1, 3)
    y = A @ x
    assert y.dtype == np.float32
    close(y, dense_of(A) @ to_host(x), 500 * np.finfo(np.float32).eps)


# SciPy


def test_scipy_takes_it_as_a_linear_operator(xp):
    A = symmetric_matrix()
    L = scipy.sparse.linalg.aslinearoperator(A)
    x = vectors(A, 1, 4)
    assert L.shape == A.shape and L.dtype == A.dtype
    close(L @ x, dense_of(A) @ x)
    close(L.H @ x, dense_of(A).T @ x)
    B = rectangular_matrix()
    close(scipy.sparse.linalg.aslinearoperator(B).rmatvec(vectors(B, 0)), dense_of(B).T @ vectors(B, 0))


def test_conjugate_gradients_solve_with_it():
    """A x = b for the positive definite matrix of a covariance with a nugget."""
    A = symmetric_matrix(n=300, order=6)
    b = vectors(A, 0)
    x, info = scipy.sparse.linalg.cg(A, b, rtol=1e-10, maxiter=2000)
    assert info == 0
    close(A @ x, b, 1e-8)
    close(x, scipy.linalg.solve(dense_of(A), b), 1e-6)


def test_lanczos_finds_its_largest_eigenvalues():
    A = symmetric_matrix(n=300, order=6)
    found = scipy.sparse.linalg.eigsh(A, k=3, return_eigenvectors=False)
    np.testing.assert_allclose(np.sort(found), np.linalg.eigvalsh(dense_of(A))[-3:], rtol=1e-10)


def test_a_covariance_matrix_with_a_nugget_stays_positive_definite():
    """λ_min(A) ≥ nugget − ‖A − C‖₂ > 0"""
    A = symmetric_matrix(n=300, order=5, leaf_size=25)
    assert np.linalg.eigvalsh(dense_of(A)).min() > 0.4


def test_cupys_linear_operators_take_it_too(xp):
    if xp is np:
        return
    from cupyx.scipy.sparse.linalg import aslinearoperator, cg

    A = symmetric_matrix(xp, order=6)
    b = vectors(A, 0)
    x, info = cg(aslinearoperator(A), b, rtol=1e-10, maxiter=2000)
    assert info == 0
    close(A @ x, to_host(b), 1e-8)


# Corners


@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_smallest_matrices_work(n):
    A = h2gpu.build(points_of("uniform", n, 2), COV, leaf_size=1, order=2)
    close(A.to_dense(), COV(points_of("uniform", n, 2)), 1e-15)
    assert h2gpu.build(np.zeros((1, 1)), COV, col_points=np.ones((1, 1))).shape == (1, 1)


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
