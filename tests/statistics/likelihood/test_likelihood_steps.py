"""Steps of maximum likelihood: Newton's where they are short, along ridges, never across a bound."""

from types import SimpleNamespace

import numpy as np
import pytest

from h2gpu.statistics.likelihood import estimation
from h2gpu.statistics.likelihood.log_likelihood import LogLikelihood


def step_of(gradient, information, low=-100.0, high=100.0, theta=0.0):
    """A step from a Point whose model has these logarithms."""
    size = len(gradient)
    model = SimpleNamespace(theta=np.full(size, theta))
    value = LogLikelihood(0.0, gradient=np.array(gradient, float))
    point = estimation.Point(model, value, np.array(information, float), 1.0)
    return estimation._step(point, 0.0, np.full(size, low), np.full(size, high))


def test_a_step_is_newtons_where_it_is_short():
    A = np.array([[4.0, 1.0], [1.0, 3.0]])
    step, gain = step_of([1.0, 2.0], A)
    np.testing.assert_allclose(A @ step, [1.0, 2.0], rtol=1e-12)
    assert gain == pytest.approx(0.5 * step @ A @ step)


def test_what_nothing_holds_is_cut_and_the_others_go_all_the_way():
    step, gain = step_of([-1e-4, 2.0, -1.0], np.diag([1e-7, 4.0, 10.0]))
    np.testing.assert_allclose(step, [-estimation.LONGEST, 0.5, -0.1], rtol=1e-12)
    assert gain == pytest.approx(2e-4 + 0.5 + 0.05, rel=1e-3)


@pytest.mark.parametrize("slope", [0.5, 0.9, 2.0])
def test_a_step_along_a_ridge_stays_on_it(slope):
    """The likelihood falls fast but along θ₁ = slope θ₀, where the maximum is far away."""
    across, along = np.array([-slope, 1.0]), np.array([1.0, slope])
    A = 1e6 * np.outer(across, across) + 1e-3 * np.outer(along, along)
    step, gain = step_of(0.1 * along, A)
    assert abs(step).max() == pytest.approx(estimation.LONGEST) and gain > 0
    assert step[1] == pytest.approx(slope * step[0], rel=1e-4)


def test_a_part_at_its_bound_stays_and_none_crosses_one():
    step, _ = step_of([-1.0, 1.0], np.eye(2), low=0.0)
    assert step.tolist() == [0.0, 1.0]
    step, _ = step_of([-1.0, 1.0], np.eye(2), low=-0.25, high=0.5)
    assert step.tolist() == [-0.25, 0.5]
