"""What a matrix tells of itself (diagonal, memory, ranks, words), and SciPy's solvers that take it."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse.linalg
from operators import COV, close, rectangular_matrix, symmetric_matrix, vectors
from reference import POINT_SETS, bases_of, dense_of, members, points_of

import h2gpu
from h2gpu.arrays import to_host
from h2gpu.h2matrix.matrix import ranks_by_level

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
    for count in (1, x.shape[1]):  # what is added to is added to once
        alone = basis.backward(y_hat[:, :count].copy())
        assert np.array_equal(basis.backward(y_hat[:, :count].copy(), x[:, :count].copy()), x[:, :count] + alone)


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
