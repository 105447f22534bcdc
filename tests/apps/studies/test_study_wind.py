"""The study of Irish wind: coordinates, residuals, and its rows on a simulated field of the same form."""

import numpy as np
import pytest

from h2gpu.apps.studies.spacetime import wind
from h2gpu.covariance import Exponential, SpaceTime
from h2gpu.statistics import simulate


def test_degrees_of_texts():
    assert wind.degrees("51d56'N") == pytest.approx(51 + 56 / 60)
    assert wind.degrees("6d21'36\"W") == pytest.approx(-6.36)


def test_residuals_are_free_of_season_and_means():
    rng, angle = np.random.default_rng(0), 2 * np.pi * np.arange(1461) / wind.YEAR
    roots = 3 + 0.5 * np.cos(angle)[:, None] + rng.random(4) + 0.01 * rng.standard_normal((1461, 4))
    R = wind.residuals(roots**2 / wind.KNOT)
    np.testing.assert_allclose(R.mean(axis=0), 0, atol=1e-12)
    assert abs(R).max() < 0.06


def test_models_are_better_than_yesterday(monkeypatch):
    places, days = 300 * np.random.default_rng(0).random((6, 2)), 50
    X, _ = wind.stacked(places, np.zeros((days, 6)), 0, days)
    speeds = simulate(SpaceTime(Exponential(1.0, 100.0), Exponential(1.0, 2.0)), X, 1, 0)[:, 0].reshape(days, 6)
    monkeypatch.setattr(wind, "MODELS", {"one": wind.MODELS["exponential × exponential"]})
    row, yesterday = wind.study(places, speeds, 30, 20)
    assert row["rmse"] < yesterday["rmse"] and 0.8 < row["coverage"] <= 1 and row["observations"] == 180
