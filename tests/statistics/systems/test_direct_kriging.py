"""Kriging, likelihoods and simulation by a direct factorization, against dense truth."""

import json
from dataclasses import replace
from types import SimpleNamespace

import h5py
import numpy as np
import pytest
from kriging_problems import textbook

from h2gpu.arrays import to_host
from h2gpu.covariance import Exponential, Matern, Nugget, Spherical, on_sphere
from h2gpu.solvers import skeletonization
from h2gpu.statistics import Kriging, log_likelihood, refinement, simulate, systems
from h2gpu.statistics.likelihood import estimation
from h2gpu.statistics.likelihood.direct_moments import _diagonals, _implied
from h2gpu.statistics.likelihood.estimation import Estimate
from h2gpu.statistics.likelihood.log_likelihood import Data
from h2gpu.statistics.likelihood.parameters import Model
from h2gpu.statistics.places import places_of
from h2gpu.statistics.systems import direct
from h2gpu.statistics.trends import trend_of

SMOOTH, ROUGH = Matern(1.3, 0.1, 1.5), Exponential(1.0, 0.2)
N = 450


@pytest.fixture
def sparse(monkeypatch):
    """Few sites are eliminated on several levels, in place of a dense factorization."""
    monkeypatch.setattr(systems, "DENSE", 0)
    monkeypatch.setattr(skeletonization, "ROOT", 100)
    monkeypatch.setattr(skeletonization, "WIDER", 1)


def data(cov, nugget, n=N):
    X = np.random.default_rng(0).random((n, 2))
    return X, simulate(cov, X, random_state=1, nugget=nugget)[:, 0]


@pytest.mark.parametrize("cov, nugget", [(SMOOTH, 0.05), (ROUGH, 0.0), (ROUGH + Nugget(0.1), 0.0)])
def test_predictions_are_the_textbooks(cov, nugget, sparse, xp):
    (X, y), T = data(cov, nugget), np.random.default_rng(2).random((100, 2))
    T[0] = X[5]
    kriging = Kriging(cov, nugget, trend="linear", solver="direct").fit(xp.asarray(X), xp.asarray(y))
    mean, std = map(to_host, kriging.predict(xp.asarray(T), return_std=True))
    F, f = (np.column_stack([np.ones(len(x)), x]) for x in (X, T))
    expected, variance = textbook(cov, nugget, X, y, T, F, f)
    np.testing.assert_allclose(mean[1:], expected[1:], atol=1e-3 * np.sqrt(variance.max()))
    np.testing.assert_allclose(std[1:], np.sqrt(variance[1:]), rtol=1e-3)
    if nugget == 0:  # variation below the sampling distance is shared at one place
        assert abs(mean[0] - y[5]) < 1e-3 and std[0] < 0.02
    assert kriging.variance_error_.neighbours is None and kriging.iterations_ == 0 and kriging.residual_ < 1e-3


@pytest.mark.parametrize(
    "cov, nugget", [(SMOOTH, 0.05), (ROUGH, 0.0), (ROUGH + Nugget(0.1), 0.0), (SMOOTH + ROUGH, 0.1)]
)
def test_the_likelihood_and_its_gradient_are_those_of_the_dense_matrix(cov, nugget, monkeypatch, xp):
    X, y = data(cov, nugget)
    exact = log_likelihood(cov, X, y, nugget, "constant", gradient=True)
    monkeypatch.setattr(systems, "DENSE", 0)
    monkeypatch.setattr(skeletonization, "ROOT", 100)
    monkeypatch.setattr(skeletonization, "WIDER", 1)
    X, y = xp.asarray(X), xp.asarray(y)
    found = log_likelihood(cov, X, y, nugget, "constant", gradient=True, solver="direct")
    assert abs(found - exact) < 0.01 and found.standard_error == 0 and found.gradient_error is None
    np.testing.assert_allclose(found.gradient, exact.gradient, atol=0.05)  # of scores of standard deviation 20
    one_weight = log_likelihood(cov, X, y, nugget, "constant", solver="direct", sample_weight=np.full(N, 1.0))
    assert float(one_weight) == float(found)


@pytest.mark.parametrize("nugget", [0.1, 0.0])
def test_the_slope_of_the_scale_is_that_of_central_differences(nugget, sparse):
    X, y = data(SMOOTH, 0.1)
    model = Matern(1.3, 0.1, 0.5) if nugget == 0 else SMOOTH
    found = log_likelihood(model, X, y, nugget, "constant", gradient=True, solver="direct")
    h = 1e-3
    high, low = (
        log_likelihood(replace(model, variance=1.3 * c), X, y, nugget * c, "constant", solver="direct")
        for c in (np.exp(h), np.exp(-h))
    )
    scale = found.gradient[0] + (found.gradient[2] if nugget else 0.0)
    assert abs(scale - (high - low) / (2 * h)) < 1e-4 * abs(scale) + 1e-3


def test_errors_of_measurement_differ_from_site_to_site(monkeypatch):
    X, y = data(SMOOTH, 0.1)
    weights = np.random.default_rng(3).uniform(0.2, 3, N)
    exact = log_likelihood(SMOOTH, X, y, 0.1, gradient=True, sample_weight=weights)
    monkeypatch.setattr(systems, "DENSE", 0)
    monkeypatch.setattr(skeletonization, "ROOT", 100)
    monkeypatch.setattr(skeletonization, "WIDER", 1)
    found = log_likelihood(SMOOTH, X, y, 0.1, gradient=True, sample_weight=weights, solver="direct")
    assert abs(found - exact) < 0.01
    np.testing.assert_allclose(found.gradient, exact.gradient, atol=0.05)


def test_estimates_are_of_greatest_likelihood(sparse, monkeypatch):
    X, y = data(SMOOTH, 0.05, 400)
    exact = Kriging(Matern(smoothness=1.5), fit_parameters=True).fit(X, y)
    monkeypatch.setattr(estimation, "EXACT", 100)
    found = Kriging(Matern(smoothness=1.5), fit_parameters=True, solver="direct").fit(X, y)
    for name, value in exact.parameters_.items():
        assert abs(np.log(found.parameters_[name] / value)) < 0.3 * exact.parameter_errors_[name], name


def test_profiles_of_the_full_likelihood_are_the_exact_ones(sparse, monkeypatch):
    X, y = data(SMOOTH, 0.05, 400)
    kriging = Kriging(Matern(smoothness=1.5), fit_parameters=["variance", "length_scale"], nugget=0.05).fit(X, y)
    values = kriging.parameters_["length_scale"] * np.array([0.9, 1.1])
    exact = kriging.profile("length_scale", values)
    monkeypatch.setattr(estimation, "EXACT", 100)
    kriging.set_params(solver="direct")
    full, vecchia = (kriging.profile("length_scale", values, full=full) for full in (True, False))
    np.testing.assert_allclose(full.log_likelihood, exact.log_likelihood, atol=0.02)
    assert abs(vecchia.log_likelihood - exact.log_likelihood).max() > 0.02


def test_a_gradient_names_the_variance_that_follows_from_the_others(sparse, monkeypatch):
    assert _implied(Model(SMOOTH, 0.1)) == 0 and _implied(Model(SMOOTH, 0.0)) == 0
    assert _implied(Model(SMOOTH, 0.1, ("variance", "length_scale"))) is None  # the nugget is held
    assert _implied(Model(SMOOTH + Nugget(0.1), 0.2)) is None and _implied(Model(SMOOTH, 0.1, ("nugget",))) is None


@pytest.mark.parametrize("model", [Model(SMOOTH, 0.1), Model(SMOOTH + Nugget(0.1), 0.0)])
def test_only_the_nugget_changes_a_diagonal_alone(model):
    (j,) = [j for j, one in enumerate(model.free) if one.kind == "nugget"]
    found = _diagonals(model, lambda nugget: nugget * np.ones(3))
    assert list(found) == [j]
    np.testing.assert_allclose(found[j], 0.1, rtol=1e-6)


def test_simulated_fields_have_the_covariance(sparse, monkeypatch):
    monkeypatch.setattr(direct, "FEWEST", 0)
    X = np.random.default_rng(0).random((N, 2))
    Z = simulate(ROUGH, X, 40, random_state=3)
    quadratic = (Z * np.linalg.solve(ROUGH(X), Z)).sum(axis=0)
    assert abs(quadratic.mean() / N - 1) < 5 * np.sqrt(2 / N / 40)
    X, y = data(SMOOTH, 0.05)
    kriging, T = Kriging(SMOOTH, 0.05, solver="direct").fit(X, y), np.random.default_rng(2).random((30, 2))
    samples, (mean, std) = kriging.sample_y(T, 400, 0), kriging.predict(T, return_std=True)
    assert (abs(samples.mean(axis=1) - mean) < 5 * std / 20).all()
    np.testing.assert_allclose(samples.std(axis=1), std, rtol=0.2)


def test_leave_one_out_by_probes_is_near_the_exact_one(sparse):
    X, y = data(ROUGH, 0.1)
    found = Kriging(ROUGH, 0.1, solver="direct").fit(X, y).leave_one_out()
    K = ROUGH(X) + 0.1 * np.eye(N)
    K_inverse = np.linalg.inv(K)
    u = K_inverse.sum(axis=1)
    P = np.diag(K_inverse) - u**2 / u.sum()
    assert abs(found.std * np.sqrt(P) - 1).mean() < 0.1


def test_auto_factors_where_that_was_measured_to_be_faster(monkeypatch):
    X = np.zeros((direct.FEWEST, 2))
    assert direct.is_direct("auto", X, SMOOTH) and direct.is_direct("auto", X[:, :1], SMOOTH)
    assert direct.is_direct("auto", X, on_sphere(ROUGH))
    assert not direct.is_direct("auto", X[1:], SMOOTH) and not direct.is_direct("auto", np.zeros((5000, 3)), SMOOTH)
    assert not direct.is_direct("auto", X, Spherical())
    assert direct.is_direct("direct", X[:5], Spherical()) and not direct.is_direct("iterative", X, SMOOTH)
    room = direct.BYTES["numpy"] * len(X)
    for factors, likelihood, fits in ((2.1, False, True), (1.9, False, False), (3.1, True, True), (2.1, True, False)):
        monkeypatch.setattr(direct, "free_memory", lambda xp, there=factors * room: there)
        assert direct.is_direct("auto", X, SMOOTH, likelihood) == fits


def test_fits_with_a_nugget_iterate_on_the_cpu_unless_told_otherwise(monkeypatch):
    X, noisy = np.zeros((5, 2)), SMOOTH + Nugget(0.1)
    assert direct.solver_of_fits("auto", X, SMOOTH, 0.1) == direct.solver_of_fits("auto", X, noisy, 0.0) == "iterative"
    assert direct.solver_of_fits("auto", X, SMOOTH, 0.0) == "auto"
    assert direct.solver_of_fits("direct", X, SMOOTH, 0.1) == "direct"
    asked, found = [], Estimate(Model(SMOOTH, 0.1, ("variance",)), None, np.zeros((1, 1)), 1)
    monkeypatch.setattr(refinement, "expected_gain", lambda *_: (10.0, 0.0))
    monkeypatch.setattr(
        refinement, "_at", lambda data, model, options, gradient: asked.append(options["solver"]) or 1 / 0
    )
    for solver in ("auto", "direct", "iterative"):
        with pytest.raises(ZeroDivisionError):
            refinement.refined(SimpleNamespace(sites=X), found, 1e-6, 30, 0, solver)
    assert asked == ["iterative", "direct", "iterative"]


@pytest.mark.gpu
def test_auto_factors_on_a_gpu_for_likelihoods_alone():
    import cupy

    X = cupy.zeros((direct.FEWEST, 2))
    assert direct.is_direct("auto", X, SMOOTH, likelihood=True) and not direct.is_direct("auto", X, SMOOTH)
    assert not direct.is_direct("auto", X, Spherical(), likelihood=True)


@pytest.mark.gpu
def test_steps_of_fits_factor_on_a_gpu_and_iterate_where_that_fails(sparse, monkeypatch, caplog):
    import cupy

    X, y = map(cupy.asarray, data(SMOOTH, 0.05, 300))
    monkeypatch.setattr(direct, "FEWEST", 0)
    monkeypatch.setattr(systems, "hierarchical_system", lambda *_: "iterations")
    accuracy = {"rtol": 1e-6, "neighbours": 30, "random_state": 0}
    accuracy["solver"] = direct.solver_of_fits("auto", X, SMOOTH, 0.05)
    likelihoods, model = Data(places_of(X, y, np.ones(300)), trend_of("constant", 2)), Model(SMOOTH, 0.05)
    assert isinstance(likelihoods.system(model, **accuracy), direct.DirectSystem)
    assert systems.covariance_system(X, SMOOTH, 0.05, **accuracy) == "iterations"  # predictions alone

    def refuse(*_, **__):
        raise np.linalg.LinAlgError("no factor")

    monkeypatch.setattr(direct.solvers, "skeletonize", refuse)
    assert likelihoods.system(model, **accuracy) == "iterations" and "no factor; taking iterations" in caplog.text


def test_auto_falls_back_to_iterations_and_direct_does_not(sparse, monkeypatch, caplog):
    def refuse(*_, **__):
        raise np.linalg.LinAlgError("no factor")

    X, y = data(SMOOTH, 0.05, 300)
    monkeypatch.setattr(direct, "FEWEST", 0)
    monkeypatch.setattr(direct.solvers, "skeletonize", refuse)
    assert Kriging(SMOOTH, 0.05).fit(X, y).iterations_ > 0
    assert "no factor; taking iterations" in caplog.text
    assert log_likelihood(SMOOTH, X, y, 0.05).standard_error > 0
    for work in (
        lambda: Kriging(SMOOTH, 0.05, solver="direct").fit(X, y),
        lambda: log_likelihood(SMOOTH, X, y, 0.05, solver="direct"),
    ):
        with pytest.raises(np.linalg.LinAlgError, match="no factor"):
            work()


def test_files_keep_the_solver_and_old_ones_have_none(sparse, tmp_path):
    (X, y), T = data(SMOOTH, 0.05), np.random.default_rng(2).random((70, 2))
    kriging = Kriging(SMOOTH, 0.05, solver="direct").fit(X, y)
    kriging.save(tmp_path / "k.h5")
    again = Kriging.load(tmp_path / "k.h5")
    assert again.solver == "direct"
    np.testing.assert_allclose(again.predict(T, return_std=True), kriging.predict(T, return_std=True), rtol=1e-12)
    with h5py.File(tmp_path / "k.h5", "r+") as file:
        settings = json.loads(file.attrs["settings"])
        del settings["solver"]
        file.attrs["settings"] = json.dumps(settings)
    assert Kriging.load(tmp_path / "k.h5").solver == "auto"


def test_other_solvers_and_sites_in_space_are_refused(sparse):
    X, y = data(SMOOTH, 0.05, 50)
    for work in (lambda: Kriging(SMOOTH, solver="fast").fit(X, y), lambda: log_likelihood(SMOOTH, X, y, solver="fast")):
        with pytest.raises(ValueError, match="solver: expected one of auto, iterative, direct, got 'fast'"):
            work()
    with pytest.raises(ValueError, match="three dimensions the skeletons grow"):
        Kriging(SMOOTH, 0.1, solver="direct").fit(np.random.default_rng(0).random((50, 3)), y)
