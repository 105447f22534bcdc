"""Randomized SVD: exact up to the rank, near the best beyond."""

import numpy as np
import pytest
from batches import DTYPES, close, of_sizes, stack

from h2gpu import batched


@pytest.mark.parametrize("dtype", DTYPES)
def test_rsvd_is_exact_for_matrices_of_that_rank(dtype):
    A = stack((6, 40, 5), dtype) @ stack((6, 5, 30), dtype, seed=1)
    U, s, Vt = batched.rsvd(A, 5, random_state=0)
    assert U.shape == (6, 40, 5) and s.shape == (6, 5) and Vt.shape == (6, 5, 30) and U.dtype == dtype
    for b in range(6):
        close(U[b] * s[b] @ Vt[b], A[b], 40)
        close(U[b].T @ U[b], np.eye(5, dtype=dtype), 40)
    close(s, batched.svd(A, vectors="none")[:, :5], 100)


@pytest.mark.parametrize("power", [0, 2])
def test_rsvd_errs_little_more_than_the_discarded_singular_values(power):
    """E ‖A − U s Vt‖_F² ≤ (1 + k / (oversample − 1)) Σ_{i>k} σ_i²: Halko, Martinsson & Tropp (2011), theorem 10.5."""
    Q, P = batched.qr(stack((20, 50, 30)))[0], batched.qr(stack((20, 30, 30), seed=1))[0]
    sigma = 0.7 ** np.arange(30)
    A = Q * sigma @ P
    U, s, Vt = batched.rsvd(A, 8, oversample=8, power=power, random_state=3)
    errors = np.linalg.norm(A - U * s[:, None] @ Vt, axis=(1, 2))
    bound = np.sqrt((1 + 8 / 7) * np.sum(sigma[8:] ** 2))
    assert (errors >= np.linalg.norm(sigma[8:]) * (1 - 1e-12)).all()
    assert errors.mean() <= (bound if power == 0 else 1.001 * np.linalg.norm(sigma[8:]))


def test_rsvd_does_not_depend_on_neighbours_and_repeats_with_its_seed():
    A = of_sizes([(30, 20), (7, 9), (40, 33)])
    whole, alone = batched.rsvd(A, 4, random_state=5), batched.rsvd(A[1:2].packed(), 4, random_state=5)
    for together, single in zip(whole, alone):
        close(together[1], single[0], 30)
    again, other = batched.rsvd(A, 4, random_state=5), batched.rsvd(A, 4, random_state=6)
    np.testing.assert_array_equal(again[0].buffer, whole[0].buffer)
    assert (other[0].buffer != whole[0].buffer).any()


@pytest.mark.parametrize("shape", [(0, 4, 3), (3, 0, 5), (3, 5, 0), (4, 2), (2, 3, 4, 5)])
def test_rsvd_has_the_shapes_of_numpy(shape):
    k = min(2, *shape[-2:])
    U, s, Vt = batched.rsvd(stack(shape), 2)
    lead = shape[:-2]
    assert (U.shape, s.shape, Vt.shape) == ((*lead, shape[-2], k), (*lead, k), (*lead, k, shape[-1]))
