"""What the full likelihood is expected to gain over Vecchia's, before it is evaluated."""

import numpy as np
import pytest
from reference import points_of

from h2gpu.covariance import Exponential, Matern
from h2gpu.solvers.neighbours import nearest_earlier, nearest_earlier_of
from h2gpu.statistics import simulate
from h2gpu.statistics.efficiency import expected_gain
from h2gpu.statistics.likelihood import estimation
from h2gpu.statistics.likelihood.estimation import estimate
from h2gpu.statistics.likelihood.log_likelihood import Data
from h2gpu.statistics.likelihood.parameters import Model
from h2gpu.statistics.likelihood.vecchia_moments import VecchiaRows, row_scores, vecchia_rows
from h2gpu.statistics.places import places_of
from h2gpu.statistics.trends import trend_of

COV = Matern(1.0, 0.25, 1.5)


def data_of(cov, n, nugget, seed):
    X = points_of("uniform", n, 2, seed)
    y = simulate(cov, X, 1, seed, nugget=nugget)[:, 0]
    return Data(places_of(X, y, np.ones(n)), trend_of("constant", 2))


def test_row_scores_add_up_to_the_gradient():
    data = data_of(Matern(1.0, 0.2, 1.5), 120, 0.1, 1)
    model = Model(Matern(1.3, 0.15, 1.5), 0.2)
    rows = vecchia_rows(data.sites, model.cov, 8, 0)
    tail = VecchiaRows(rows.sites, rows.head[:0], rows.tail)
    gradient = data.vecchia(model, tail)[0].gradient
    np.testing.assert_allclose(row_scores(model, tail, data.places.noise, data.B).sum(axis=0), gradient, rtol=1e-8)


@pytest.mark.parametrize("m", [3, 12])
def test_neighbours_of_some_are_those_of_all(m):
    x = np.random.default_rng(0).random((500, 2))
    some = np.array([m, m + 1, 40, 41, 300, 499])
    np.testing.assert_array_equal(nearest_earlier_of(some, x, 500, m), nearest_earlier(x, 500, m)[some - m])


def test_the_gain_expected_is_what_is_gained_in_the_mean(monkeypatch):
    """With a nugget and few neighbours; ten samples tell the mean of a χ² of two to some ten per cent."""
    expected, gained, squares, steps = [], [], [], []
    for seed in range(10):
        data, model = (
            data_of(Matern(1.0, 0.25, 1.5), 250, 0.3, seed),
            Model(Matern(1.0, 0.25, 1.5), 0.3, ("variance", "nugget")),
        )
        monkeypatch.setattr(estimation, "EXACT", 0)
        vecchia = estimate(data, model, 4)
        monkeypatch.setattr(estimation, "EXACT", 1500)
        full = estimate(data, model)
        gain, lost = expected_gain(data, vecchia, 4)
        expected.append(gain)
        squares.append(np.diagonal(lost))
        steps.append(full.model.theta - vecchia.model.theta)
        gained.append(float(full.value - data.full(vecchia.model)[0]))
    assert min(gained) > -1e-3
    assert np.mean(expected) == pytest.approx(np.mean(gained), rel=0.7) and np.mean(gained) > 0.05
    np.testing.assert_allclose(np.sqrt(np.mean(squares, axis=0)), np.sqrt(np.mean(np.square(steps), axis=0)), rtol=0.5)


def test_more_neighbours_and_less_noise_leave_less_to_gain(monkeypatch):
    monkeypatch.setattr(estimation, "EXACT", 0)
    gains = []
    for nugget, neighbours in ((0.5, 5), (0.5, 30), (0.0, 30)):
        data = data_of(Exponential(1.0, 0.3), 300, nugget, 3)
        kinds = ("variance", "length_scale", "nugget") if nugget else ("variance", "length_scale")
        found = estimate(data, Model(Exponential(1.0, 0.3), nugget, kinds), neighbours)
        gains.append(expected_gain(data, found, neighbours)[0])
    assert gains[0] > 3 * gains[1] > 9 * gains[2] >= 0
