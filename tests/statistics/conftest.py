"""Fixtures for the tests of kriging: both ways to the same predictions."""

import pytest

from h2gpu.statistics import systems


@pytest.fixture(params=["dense", "H2Matrix"])
def way(request, monkeypatch):
    """Both ways to the same predictions, and how closely the second follows the first."""
    if request.param == "H2Matrix":
        monkeypatch.setattr(systems, "DENSE", 0)
        return 1e-4
    return 1e-9
