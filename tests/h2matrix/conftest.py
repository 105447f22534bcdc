"""Fixtures for the tests of H²-matrices: a symmetric and a rectangular one."""

import pytest
from operators import MATRICES


@pytest.fixture(params=MATRICES)
def A(request, xp):
    return MATRICES[request.param](xp)
