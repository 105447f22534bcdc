"""The blocks that some rows meet give those rows: e_iᵀ A is the same with all others left out."""

import numpy as np
import pytest
from reference import dense_of, points_of

import h2gpu
from h2gpu.arrays import to_host
from h2gpu.covariance import Matern, Nugget
from h2gpu.h2matrix.rows import WORTHWHILE, meeting

ROWS = np.array([3, 119, 4, 77])
COV = Matern(1.0, 0.3, 1.5) + Nugget(0.2)
KINDS = [{"storage": "full"}, {"storage": "auto"}, {"nearfield": "computed"}]


def unit_vectors(A):
    E = np.zeros((A.shape[0], len(ROWS)), A.dtype)
    E[ROWS, np.arange(len(ROWS))] = 1
    return A.xp.asarray(E)


@pytest.fixture
def picked(monkeypatch):
    """Blocks are picked however many there are, on every device."""
    for name in WORTHWHILE:
        monkeypatch.setitem(WORTHWHILE, name, 1.0)


def test_rows_are_the_same_on_every_device(A, picked):
    part, E = meeting(A, ROWS), unit_vectors(A)
    assert len(part.couplings) < len(A.couplings)
    np.testing.assert_allclose(to_host(part.rmatmat(E)).T, dense_of(A)[ROWS], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("columns", [None, 900])
def test_rows_are_those_of_the_whole_matrix(kind, columns):
    col_points = None if columns is None else points_of("uniform", columns, 2)
    A = h2gpu.covariance_matrix(points_of("clustered", 3000, 2), COV, 1e-4, col_points=col_points, **kind)
    part, E = meeting(A, ROWS), unit_vectors(A)
    assert len(part.nearfield) < 0.5 * len(A.nearfield)
    np.testing.assert_allclose(part.rmatmat(E), A.rmatmat(E), rtol=0, atol=1e-13)


def test_no_block_is_picked_where_nearly_all_are_met():
    A = h2gpu.covariance_matrix(points_of("uniform", 600, 2), COV, 1e-4)
    part = meeting(A, np.arange(600))
    assert part.couplings is A.couplings
    assert part.nearfield is A.nearfield
