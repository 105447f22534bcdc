"""Vecchia's maximum corrected by the full likelihood: steps gain what is told, and those that fail are taken back."""

import numpy as np
import pytest
from kriging_problems import sample
from sklearn.exceptions import ConvergenceWarning

from h2gpu.covariance import Exponential, Matern
from h2gpu.statistics import Kriging, refinement, systems
from h2gpu.statistics.efficiency import expected_gain
from h2gpu.statistics.likelihood import estimation
from h2gpu.statistics.likelihood.log_likelihood import LogLikelihood
from h2gpu.statistics.likelihood.parameters import Model


def test_vecchias_maximum_is_corrected_by_the_full_likelihood(monkeypatch):
    X, y = sample(Matern(1.5, 0.3, 2.3), 600, 0.3, 5)
    monkeypatch.setattr(estimation, "EXACT", 100)
    monkeypatch.setattr(refinement, "WORTH", 0.002)
    coarse = Kriging(Matern(1.0, 1.0, 2.3), fit_parameters=True, refine=False, neighbours=8).fit(X, y)
    exact = Kriging(Matern(1.0, 1.0, 2.3), fit_parameters=True, neighbours=8).fit(X, y)
    gradients = [abs(k.log_marginal_likelihood(gradient=True).gradient).max() for k in (coarse, exact)]
    assert gradients[1] < 0.2 * gradients[0]
    assert exact.log_marginal_likelihood() > coarse.log_marginal_likelihood() + 0.1
    monkeypatch.setattr(systems, "DENSE", 0)
    large = Kriging(Matern(1.0, 1.0, 2.3), fit_parameters=True, neighbours=8).fit(X, y)
    for name, value in large.parameters_.items():
        assert abs(np.log(value / exact.parameters_[name])) < 0.3 * exact.parameter_errors_[name]
    assert large.estimation_.value.standard_error > 0 and large.iterations_ > 0


def test_where_little_is_to_be_gained_nothing_is_corrected(monkeypatch):
    X, y = sample(Exponential(2.0, 0.2), 450)
    monkeypatch.setattr(estimation, "EXACT", 100)
    monkeypatch.setattr(refinement, "_at", lambda *_: pytest.fail("the full likelihood was evaluated"))
    one = Kriging(Exponential(), fit_parameters=True, refine=False).fit(X, y)
    other = Kriging(Exponential(), fit_parameters=True).fit(X, y)
    assert one.parameters_ == other.parameters_
    lost = expected_gain(one._data(), one.estimation_)[1]
    for name, error, more in zip(one.parameters_, one.parameter_errors_.values(), np.diagonal(lost)):
        assert other.parameter_errors_[name] == pytest.approx(np.sqrt(error**2 + more)) and more > 0
    assert other.parameters_["nugget"] == pytest.approx(0.1, rel=0.3)


def test_information_is_corrected_along_a_step_alone():
    rng = np.random.default_rng(0)
    F, step, other = rng.standard_normal((4, 4)), rng.standard_normal(4), rng.standard_normal(4)
    information, fall = F @ F.T, 7 * step + 0.1 * other
    found = refinement._corrected(information, step, fall)
    assert np.allclose(found @ step, fall) and np.linalg.eigvalsh(found)[0] > 0
    aside = other - step * (other @ information @ step) / (step @ information @ step)  # conjugate to the step,
    aside -= step * (fall @ aside) / (fall @ step)  # and to it as it was seen
    along = information @ step
    change = aside @ (found - information) @ aside
    assert change == pytest.approx(-((aside @ along) ** 2) / (step @ along), rel=1e-9)
    assert refinement._corrected(information, step, -step) is information  # no maximum along it


@pytest.mark.parametrize("told", [0.125, 0.5, 2.0])
def test_where_information_is_wrong_the_values_show_it_and_the_maximum_is_found(told, monkeypatch):
    """Vecchia's information tells less than all: steps by it may be several times too long."""
    X, y = sample(Matern(1.5, 0.3, 2.3), 600, 0.3, 5)
    monkeypatch.setattr(estimation, "EXACT", 100)
    monkeypatch.setattr(refinement, "WORTH", 0.002)
    begin, right = (
        Kriging(Matern(1.0, 1.0, 2.3), fit_parameters=True, refine=refine, neighbours=8).fit(X, y)
        for refine in (False, True)
    )
    newton, at, asked = refinement.newton_step, refinement._at, []
    monkeypatch.setattr(refinement, "newton_step", lambda information, *given: newton(told * information, *given))
    monkeypatch.setattr(refinement, "_at", lambda *given: (asked.append(given[-1]), at(*given))[1])
    found = Kriging(Matern(1.0, 1.0, 2.3), fit_parameters=True, neighbours=8).fit(X, y)
    before, best, after = (float(k.log_marginal_likelihood()) for k in (begin, right, found))
    assert best > before + 0.1 and after > before + 0.95 * (best - before) and not found.estimation_.messages
    assert asked[0] and not any(asked[1:])  # slopes where the value has risen alone


@pytest.mark.parametrize("bend", [0.6, 1.0, 3.0])
def test_what_is_left_after_a_step_is_told_by_values_along_it(bend):
    gained = 2.0  # of 2 gained t − bend gained t², which is highest at 1/bend
    rise, top, aside = (2 - bend) * gained, gained / bend, (bend - 1) ** 2 / (4 * bend)
    assert refinement._left(gained, rise) == pytest.approx(top - rise + aside * max(rise, 0))
    if bend == 3:  # shortened to the top
        assert refinement._left(gained / bend, top, (bend, rise)) == pytest.approx(aside * top)


def test_after_a_fall_the_top_of_a_cubic_is_told():
    def p(t):
        return 2 * t + 0.2 * t**2 - 2.6 * t**3

    part = 0.38
    highest = p(np.linspace(0, 1, 10001)).max()
    assert refinement._highest(part, p(part), 1 / part, p(1)) == pytest.approx(highest, abs=1e-6)
    assert refinement._highest(1.0, 1.0, 3.0, -3.0) == pytest.approx(1.0)  # a parabola
    aside = (1 / part - 1) ** 2 * part / 4 * p(part)
    assert refinement._left(part, p(part), (1 / part, p(1))) == pytest.approx(highest - p(part) + aside, abs=1e-6)


class Quadratic:
    """ℓ = −½ bend |θ − top|², where Newton's steps expect a bend of 100 in all directions; gradients are counted."""

    def __init__(self, top, bend):
        self.top, self.bend, self.sites, self.slopes = top, bend, np.zeros((5, 2)), 0

    def system(self, model, **options):
        return model

    def full(self, model, gradient, system=None, **options):
        d = self.top - model.theta
        self.slopes += gradient
        value = -0.5 * self.bend * float(d @ d)
        return LogLikelihood(value, 0.0, self.bend * d if gradient else None, None, model.names), None

    def information(self, model, moments):
        return 100 * np.eye(len(model.theta))


@pytest.mark.parametrize(("height", "slopes"), [(0.36, 1), (2.0, 2)])
def test_a_shortened_step_that_gained_little_asks_for_no_slopes_again(height, slopes, monkeypatch):
    model, bend = Model(Exponential(1.0, 0.2), 0.1), 263.0
    away = np.array([0.5, -0.4, 0.3])
    data = Quadratic(model.theta + away * np.sqrt(2 * height / bend / (away @ away)), bend)
    found = estimation.Estimate(model, LogLikelihood(-9.0), np.eye(3), 1)
    monkeypatch.setattr(refinement, "expected_gain", lambda *_: (10.0, 0.0))
    found, _ = refinement.refined(data, found, 1e-6, 30, 0, "direct")
    assert data.slopes == slopes and found.value > -0.01 * height and not found.messages


@pytest.mark.parametrize("failure", ["refused", "worse", "no information", "no likelihood"])
def test_a_step_that_fails_is_taken_back(monkeypatch, failure):
    X, y = sample(Matern(1.5, 0.3, 2.3), 300, 0.3, 5)
    monkeypatch.setattr(estimation, "EXACT", 100)
    kriging = Kriging(Matern(1.0, 1.0, 2.3), fit_parameters=True, refine=False, neighbours=4).fit(X, y)
    monkeypatch.setattr(refinement, "WORTH", 0.0)
    at, calls = refinement._at, []

    def failing(data, model, options, gradient):
        calls.append(model)
        if failure == "no likelihood" or (len(calls) > 1 and failure == "refused"):
            raise np.linalg.LinAlgError("not positive definite")
        system, value, moments = at(data, model, options, gradient)
        return system, type(value)(value - 100 * (len(calls) > 1), gradient=value.gradient), moments

    def unsolved(*_):
        raise np.linalg.LinAlgError("conjugate gradients left 1 of 3 columns")

    monkeypatch.setattr(refinement, "_at", failing)
    if failure == "no information":
        monkeypatch.setattr(refinement, "_stepped", unsolved)
    again = kriging.set_params(refine=True).parameters_.copy()
    with pytest.warns(ConvergenceWarning, match="kept the parameters"):
        kriging.fit(X, y)
    assert len(calls) == {"refused": 2, "worse": 2 + refinement.BACK}.get(failure, 1)
    assert kriging.parameters_ == again and "kept" in kriging.estimation_.messages[0]
    assert np.isfinite(kriging.predict(X[:3])).all()


def test_curvature_is_known_well_enough_where_solves_stagnate():
    X, y = sample(Matern(1.5, 0.3, 2.3), 300, 0.3, 5)
    system = systems.hierarchical_system(X, Matern(1.5, 0.3, 2.3), 0.3, 1e-6, 30, 0)
    with pytest.raises(np.linalg.LinAlgError, match="conjugate gradients left"):
        system.solve(y[:, None], rtol=1e-20)
    usual, stagnated = system.solve(y[:, None]), system.solve(y[:, None], rtol=1e-20, enough=1e-2)
    assert np.linalg.norm(stagnated - usual) < 1e-6 * np.linalg.norm(usual)
