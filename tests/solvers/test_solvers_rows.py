"""Products with sparse inverse factors: SciPy's numbers, and the same bits every time."""

import numpy as np
import pytest
import scipy.sparse

from h2gpu.arrays import to_host
from h2gpu.covariance import Exponential, Nugget
from h2gpu.solvers import vecchia
from h2gpu.solvers.inverse_factor import times


def sparse(rng, shape, most, dtype):
    """Rows of no, few and many entries, and the same in compressed rows on the host."""
    W = scipy.sparse.random_array(shape, density=min(1, most / shape[1]), rng=rng, format="csr", dtype=np.float64)
    dense = W.toarray()
    dense[::7] = 0
    dense[1 % shape[0]] = rng.standard_normal(shape[1])
    return scipy.sparse.csr_array(dense.astype(dtype))


def on(xp, W):
    if xp is np:
        return W
    import cupyx.scipy.sparse

    W = scipy.sparse.csr_matrix(W)
    return cupyx.scipy.sparse.csr_matrix(tuple(map(xp.asarray, (W.data, W.indices, W.indptr))), shape=W.shape)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", [(1, 1), (33, 70), (300, 120)])
@pytest.mark.parametrize("count", [None, 1, 3, 20])
def test_products_are_those_of_scipy(dtype, shape, count, xp):
    rng = np.random.default_rng(0)
    W = sparse(rng, shape, 9, dtype)
    x = rng.standard_normal((shape[1], 2 * (count or 1))).astype(dtype)[:, ::2]
    x = x[:, 0] if count is None else x
    found = to_host(times(on(xp, W), xp.asarray(x)))
    assert found.shape == (W @ x).shape and found.dtype == dtype
    np.testing.assert_allclose(found, W @ x, rtol=0, atol=100 * np.finfo(dtype).eps)


def test_precisions_are_mixed_as_numpy_does(xp):
    W = sparse(np.random.default_rng(0), (40, 40), 9, np.float32)
    x = np.random.default_rng(1).standard_normal(40)
    found = to_host(times(on(xp, W), xp.asarray(x)))
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, W.astype(float) @ x, atol=1e-13)


def test_other_lengths_are_refused(xp):
    with pytest.raises(ValueError, match="expected 40 rows, got 39"):
        times(on(xp, sparse(np.random.default_rng(0), (30, 40), 9, float)), xp.ones(39))


@pytest.mark.parametrize("count", [1, 5])
def test_products_have_the_same_bits_every_time(count, xp):
    rng = np.random.default_rng(0)
    W = vecchia(xp.asarray(rng.random((3000, 2))), Exponential(length_scale=0.2) + Nugget(0.01), 20)
    x = xp.asarray(rng.standard_normal((3000, count)))
    first = to_host(W @ x)
    assert all(np.array_equal(to_host(W @ x), first) for _ in range(10))


def test_squared_columns_are_the_diagonal_of_the_product(xp):
    W = vecchia(xp.asarray(np.random.default_rng(0).random((200, 2))), Exponential(length_scale=0.2), 12)
    np.testing.assert_allclose(to_host(W.squared_columns), np.diag(to_host(W @ xp.eye(200))), rtol=1e-12)
