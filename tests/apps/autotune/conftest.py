"""Fixtures for the tests of tuning: tables of few sizes."""

import pytest

from h2gpu.batched.products import fixed_plans


@pytest.fixture(autouse=True)
def few_sizes(monkeypatch):
    """A table of all sizes takes as many plans."""
    monkeypatch.setattr(fixed_plans, "LARGEST", 9)
