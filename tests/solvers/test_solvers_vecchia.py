"""Sparse inverse factors: A⁻¹ ≈ Wᵀ W, exact with all neighbours."""

import numpy as np
import pytest
import scipy.sparse
from reference import EPS, points_of

import h2gpu
from h2gpu.arrays import to_host
from h2gpu.covariance import Exponential, Gaussian, Matern, Nugget, on_sphere
from h2gpu.progress import watched_by
from h2gpu.solvers import block_jacobi, smallest_eigenvalue, sufficient_rtol, vecchia
from h2gpu.solvers.neighbours import nearest_earlier
from h2gpu.solvers.ordering import maximin_order
from h2gpu.solvers.small_factors import cholesky, covariances, last_rows, leading_rows

COV = Matern(2.0, 0.3, 1.5) + Nugget(0.1)
SPHERE = on_sphere(Exponential(1.0, 2000.0) + Nugget(0.05))
ANISOTROPIC = Matern(1.0, (0.05, 0.8), 0.7) + Nugget(0.01)


def dense(W):
    """W of an InverseFactor as a dense array, rows and columns in its order."""
    return to_host(W.W.todense() if hasattr(W.W, "todense") else W.W.toarray())


def lonlat(n):
    return np.random.default_rng(0).uniform((-180, -90), (180, 90), (n, 2))


# Small factors


def test_rows_are_those_of_the_inverse_factor(xp):
    points = xp.asarray(np.random.default_rng(0).random((7, 40, 2)))
    K = covariances(COV.values, points, COV.nugget)
    exact = np.stack([COV(x) for x in to_host(points)])
    np.testing.assert_allclose(np.tril(to_host(K)), np.tril(exact), atol=10 * EPS)
    L, bad = cholesky(K)
    assert not bad.any()
    rows = to_host(last_rows(L))
    np.testing.assert_allclose(rows, np.linalg.inv(np.linalg.cholesky(exact))[:, -1], atol=1e-10)


@pytest.mark.parametrize("m", [1, 2, 31, 70])
def test_rows_of_the_leading_parts_are_the_triangle_of_the_inverse(m, xp):
    rng = np.random.default_rng(0)
    L = np.tril(rng.standard_normal((1, m, m)), -1) / m + np.diag(1 + rng.random(m))
    rows = np.zeros((m, m))
    rows[np.tril_indices(m)] = to_host(leading_rows(xp.asarray(L)))
    np.testing.assert_allclose(rows @ L[0], np.eye(m), atol=1e-12)
    np.testing.assert_allclose(to_host(last_rows(xp.asarray(L)))[0], rows[-1], rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("nugget", [0.5, "one a point", "one a point and matrix"])
def test_covariances_with_nuggets_of_every_kind(nugget, xp):
    rng = np.random.default_rng(1)
    x = rng.random((3, 37, 2))
    values = {"one a point": rng.random(37), "one a point and matrix": rng.random((3, 37))}.get(nugget, nugget)
    exact = np.stack([COV.values(p[:, None], p[None]) for p in x])
    exact[:, np.arange(37), np.arange(37)] += values
    for function in (COV.values, COV.pair_function):
        K = covariances(function, xp.asarray(x), values if np.ndim(values) == 0 else xp.asarray(values))
        np.testing.assert_allclose(np.tril(to_host(K)), np.tril(exact), atol=10 * EPS)


def test_only_singular_matrices_are_regularized(xp):
    K = np.stack([np.eye(3), np.ones((3, 3)), 2 * np.eye(3), [[1, 1, 0], [1, 1, 0], [0, 0, 1]]])
    L, bad = (to_host(part) for part in cholesky(xp.asarray(K)))
    assert bad.tolist() == [False, True, False, True]
    assert to_host(cholesky(xp.asarray(1e-20 * K))[1]).tolist() == bad.tolist()
    np.testing.assert_allclose(L @ L.swapaxes(1, 2), K, atol=1e-9)
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        cholesky(xp.asarray(-K))


# Vecchia


@pytest.mark.parametrize(
    "points, cov",
    [
        (points_of("uniform", 120, 2), COV),
        (points_of("clustered", 120, 3), COV),
        (points_of("duplicates", 120, 2), COV),
        (points_of("all_equal", 40, 2), COV),
        (points_of("collinear", 90, 2), Exponential(1.0, 0.2)),
        (points_of("uniform", 120, 1), Exponential(3.0, 0.2)),
        (points_of("uniform", 120, 2), ANISOTROPIC),
        (lonlat(120), SPHERE),
        (np.zeros((1, 2)), COV),
    ],
    ids=["2D", "3D", "duplicates", "one place", "collinear", "1D", "anisotropic", "sphere", "one site"],
)
def test_with_all_neighbours_the_factor_is_the_exact_inverse(points, cov, xp):
    n, A = len(points), cov(points)
    W = vecchia(xp.asarray(points), cov, neighbours=n - 1)
    condition = np.linalg.cond(A)
    np.testing.assert_allclose(to_host(W @ xp.asarray(A)), np.eye(n), atol=100 * n * EPS * condition)
    assert W.log_determinant == pytest.approx(np.linalg.slogdet(A)[1], abs=1e-12 * condition + 1e-10)
    assert W.regularized == 0 and sorted(W.order.tolist()) == list(range(n))


@pytest.mark.parametrize("factor", [lambda x, cov: vecchia(x, cov, 12), lambda x, cov: block_jacobi(x, cov, 20)])
def test_factors_are_triangular_and_whiten_each_site(factor, xp):
    """W lower triangular in the order, positive on the diagonal, and diag(W A Wᵀ) = 1."""
    points = points_of("clustered", 300, 2)
    P = factor(xp.asarray(points), COV)
    W, A = dense(P), COV(points)[np.ix_(P.order, P.order)]
    assert np.array_equal(W, np.tril(W)) and (np.diag(W) > 0).all()
    np.testing.assert_allclose(np.einsum("ij,jk,ik->i", W, A, W), 1, atol=1e-9)
    x = np.random.default_rng(0).standard_normal((300, 3))
    inside = np.empty_like(x)
    inside[P.order] = W.T @ (W @ x[P.order])
    np.testing.assert_allclose(to_host(P @ xp.asarray(x)), inside, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(to_host(P @ xp.asarray(x[:, 0])), inside[:, 0], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(to_host(P.whiten(P.colour(xp.asarray(x)))), x, atol=1e-9)
    np.testing.assert_allclose(to_host(P.colour(P.whiten(xp.asarray(x[:, 0])))), x[:, 0], atol=1e-9)
    assert P.log_determinant == pytest.approx(-2 * np.log(np.diag(W)).sum())
    assert "300 × 300" in repr(P) and P.nbytes > 0 and P.shape == (300, 300)


def test_a_row_depends_on_its_neighbours_alone():
    """Each row is that of the exact inverse factor of its own sites: m + 1 entries."""
    points = points_of("uniform", 200, 2)
    P = vecchia(points, COV, 15)
    W = scipy.sparse.csr_array(P.W)
    assert (np.diff(W.indptr)[15:] == 16).all()
    for i in (15, 60, 199):
        sites = W.indices[W.indptr[i] : W.indptr[i + 1]]
        L = np.linalg.cholesky(COV(points[P.order[sites]]))
        np.testing.assert_allclose(W.data[W.indptr[i] : W.indptr[i + 1]], np.linalg.inv(L)[-1], atol=1e-10)


def test_more_neighbours_are_a_better_approximation():
    """The Kullback–Leibler divergence, which is Σ log w_ii's shortfall, falls with the neighbours."""
    points = points_of("uniform", 500, 2)
    exact = np.linalg.slogdet(COV(points))[1]
    excess = [vecchia(points, COV, m).log_determinant - exact for m in (0, 3, 10, 30, 100)]
    assert (np.diff(excess) < 0).all() and 0 < excess[-1] < 0.2


def test_no_neighbours_are_the_diagonal():
    W = dense(vecchia(points_of("uniform", 50, 2), COV, 0))
    np.testing.assert_allclose(W, np.eye(50) / np.sqrt(2.1))


def test_a_nugget_of_the_covariance_and_one_beside_are_the_same():
    points = points_of("uniform", 100, 2)
    for factor in (vecchia, block_jacobi):
        first, second = factor(points, COV, 20), factor(points, Matern(2.0, 0.3, 1.5), 20, nugget=0.1)
        np.testing.assert_allclose(dense(first), dense(second), rtol=1e-12)


def test_nuggets_may_differ_from_site_to_site(xp):
    points, nuggets = points_of("uniform", 120, 2), np.random.default_rng(0).uniform(0.1, 2, 120)
    W = vecchia(xp.asarray(points), COV, 119, nugget=nuggets)
    exact = np.linalg.inv(COV(points) + np.diag(nuggets))
    np.testing.assert_allclose(to_host(W @ xp.eye(120)), exact, atol=1e-9)
    same = vecchia(points, COV, 20, nugget=np.full(120, 0.3))
    np.testing.assert_allclose(same.W.data, vecchia(points, COV, 20, nugget=0.3).W.data)
    with pytest.raises(ValueError, match="nugget: expected one finite number ≥ 0, or 120 of them"):
        vecchia(points, COV, 20, nugget=nuggets[:5])


def test_anisotropic_neighbours_are_near_in_the_field():
    points = points_of("uniform", 400, 2)
    A, exact = ANISOTROPIC(points), np.linalg.slogdet(ANISOTROPIC(points))[1]
    stretched = vecchia(points, ANISOTROPIC, 10).log_determinant - exact
    round_cov = Matern(1.0, 0.7, 0.7)
    order, places = maximin_order(points)
    near = nearest_earlier(points[order], places, 10)
    sites = np.concatenate([near, np.arange(10, 400)[:, None]], axis=1)
    plain = sum(
        np.log(np.linalg.inv(A[np.ix_(order[s], order[s])])[-1, -1]) for s in sites
    )  # −log of the conditional variances
    head = np.linalg.slogdet(A[np.ix_(order[:10], order[:10])])[1]
    assert 0 < stretched < (head - plain) - exact
    assert round_cov.units is None


@pytest.mark.parametrize("cov", [Exponential(1.0, 0.3), Gaussian(1.0, 0.4), Matern(1.0, 0.5, 4.5)], ids=repr)
def test_singular_covariances_are_regularized_not_refused(cov):
    points = points_of("duplicates", 200, 2)
    P = vecchia(points, cov)
    x = np.random.default_rng(0).standard_normal(200)
    assert P.regularized > 0 and np.isfinite(P @ x).all() and x @ (P @ x) > 0
    assert np.isfinite(block_jacobi(points, cov) @ x).all()


def test_chunks_do_not_change_a_bit(monkeypatch):
    from h2gpu.solvers import small_factors

    points = points_of("uniform", 500, 2)
    whole = dense(vecchia(points, COV, 10))
    monkeypatch.setitem(small_factors.CHUNK, "numpy", 1000)
    np.testing.assert_allclose(dense(vecchia(points, COV, 10)), whole, rtol=1e-12)


def test_progress_is_told():
    seen = []
    with watched_by(lambda *event: seen.append(event)):
        vecchia(points_of("uniform", 300, 2), COV, 10)
        block_jacobi(points_of("uniform", 300, 2), COV, 64)
    assert ("vecchia", 290, 290) in seen and ("vecchia", None, 290) in seen
    assert any(name == "block Jacobi" and done == total for name, done, total in seen)


def test_block_jacobi_is_the_inverse_of_the_leaves_blocks():
    points = points_of("uniform", 200, 2)
    P = block_jacobi(points, COV, leaf_size=30)
    tree = h2gpu.ClusterTree.build(points, 30)
    expected = np.zeros((200, 200))
    for t in tree.leaves:
        own = tree.permutation[tree.start[t] : tree.stop[t]]
        expected[np.ix_(own, own)] = np.linalg.inv(COV(points[own]))
    np.testing.assert_allclose(P @ np.eye(200), expected, atol=1e-9)
    whole = block_jacobi(points, COV, leaf_size=200)
    np.testing.assert_allclose(whole @ COV(points), np.eye(200), atol=1e-8)


@pytest.mark.parametrize(
    "arguments, words",
    [
        ((np.zeros((3, 2)), "matern"), "cov: expected a covariance"),
        ((np.zeros(3), COV), "points: expected shape"),
        ((np.full((3, 2), np.nan), COV), "points: expected finite coordinates, got NaN or infinity in 3 rows"),
        ((np.zeros((3, 2)), COV, -1), "expected an? .*integer"),
        ((np.zeros((3, 2)), COV, 2.5), "expected an? .*integer"),
    ],
)
@pytest.mark.parametrize("factor", [vecchia, block_jacobi])
def test_bad_arguments_are_refused(factor, arguments, words):
    with pytest.raises(ValueError, match=words):
        factor(*arguments)
    with pytest.raises(ValueError, match="nugget: expected"):
        factor(np.zeros((3, 2)), COV, 2, nugget=np.inf)


# Accuracy of the matrix


def test_the_smallest_eigenvalue_is_found():
    points = points_of("uniform", 400, 2)
    for cov in (Exponential(1.0, 0.3), COV):
        exact = np.linalg.eigvalsh(cov(points))[0]
        assert smallest_eigenvalue(vecchia(points, cov, 60)) == pytest.approx(exact, rel=0.1)


def test_a_matrix_of_sufficient_rtol_is_positive_definite(caplog):
    points, cov = points_of("uniform", 700, 2), Matern(1.0, 0.1, 2.3)
    with caplog.at_level("INFO", logger="h2gpu"):
        rtol = sufficient_rtol(points, cov, vecchia(points, cov))
    assert rtol < 1e-7 and "smallest eigenvalue" in caplog.text
    A = h2gpu.covariance_matrix(points, cov, rtol)
    assert np.linalg.eigvalsh((A.to_dense() + A.to_dense().T) / 2)[0] > 0
    noisy = cov + Nugget(0.5)
    assert sufficient_rtol(points, noisy, vecchia(points, noisy)) == 1e-6
    assert sufficient_rtol(points, noisy, vecchia(points, noisy), highest=1e-3) > 1e-5


def test_what_no_accuracy_can_hold_is_told(caplog):
    points, cov = points_of("uniform", 400, 2), Gaussian(1.0, 1.0)
    assert sufficient_rtol(points, cov, vecchia(points, cov)) < 1e-12
    assert "add a nugget" in caplog.text
