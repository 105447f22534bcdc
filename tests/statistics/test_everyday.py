"""What practice asks of a fitted kriging: cross-validation, joint covariances, intervals, files, updates, gaps."""

import json

import h5py
import numpy as np
import pytest
from kriging_problems import COV, problem
from scipy.stats import norm

from h2gpu.covariance import Exponential, Nugget, from_distance
from h2gpu.statistics import Kriging, scores, systems
from h2gpu.statistics.results import leave_one_out as crossed

TRENDS = [None, "constant", "linear"]

# Leave one out


@pytest.mark.parametrize("trend", TRENDS)
@pytest.mark.parametrize("cov, nugget", [(COV, 0.05), (Exponential(2.0, 0.2) + Nugget(0.1), 0.0)], ids=repr)
def test_leaving_one_out_is_kriging_from_all_others(trend, cov, nugget):
    X, y, _ = problem(60)
    level = 0.0 if trend else 2.0
    found = Kriging(cov, nugget, trend, mean=level).fit(X, y).leave_one_out()
    for i in range(0, 60, 7):
        rest = np.arange(60) != i
        mean, std = (
            Kriging(cov, nugget, trend, mean=0.0 if trend else 2.0)
            .fit(X[rest], y[rest])
            .predict(X[i : i + 1], True, True)
        )
        assert found.mean[i] == pytest.approx(mean[0], abs=1e-8) and found.std[i] == pytest.approx(std[0], rel=1e-7)
    np.testing.assert_allclose(found.values, y, rtol=1e-12)
    assert found.std_error == 0


def test_weights_and_repeated_sites_are_left_out_as_places():
    X, y, _ = problem(40)
    twice, weights = np.concatenate([X, X[:5]]), np.linspace(0.5, 2, 45)
    values = np.concatenate([y, y[:5] + 0.1])
    found = Kriging(COV, 0.05).fit(twice, values, weights).leave_one_out()
    rest = np.setdiff1d(np.arange(45), [2, 42])
    mean, std = Kriging(COV, 0.05).fit(twice[rest], values[rest], weights[rest]).predict(X[2:3], True)
    assert found.mean.shape == (40,) and found.mean[2] == pytest.approx(mean[0], abs=1e-8)
    assert found.std[2] ** 2 == pytest.approx(std[0] ** 2 + 0.05 / (weights[2] + weights[42]), rel=1e-7)


def test_many_sites_are_left_out_to_the_error_told(monkeypatch):
    X, y, _ = problem(400)
    exact = Kriging(COV, 0.05, "linear").fit(X, y).leave_one_out()
    monkeypatch.setattr(systems, "DENSE", 0)
    found = Kriging(COV, 0.05, "linear", neighbours=15).fit(X, y).leave_one_out()
    relative = np.sqrt(np.mean((found.std / exact.std - 1) ** 2))
    assert 0 < found.std_error < 0.05 and relative < 1.5 * found.std_error
    np.testing.assert_allclose(found.mean, exact.mean, atol=0.1)
    monkeypatch.setattr(crossed, "PROBES", 512)
    assert Kriging(COV, 0.05, "linear", neighbours=15).fit(X, y).leave_one_out().std_error < 0.4 * found.std_error


# Joint covariances and intervals


@pytest.mark.parametrize("trend", TRENDS)
def test_joint_covariances_are_those_of_the_errors(way, trend):
    X, y, T = problem(150, 12)
    cov, T = Exponential(2.0, 0.3) + Nugget(0.2), np.concatenate([T, T[:1], X[:1]])
    kriging = Kriging(cov, 0.05, trend).fit(X, y)
    mean, joint = kriging.predict(T, return_cov=True)
    both = np.concatenate([X, T])
    same = (both[:, None] == both[None]).all(axis=-1)
    S = Exponential(2.0, 0.3)(both) + 0.2 * same
    F = {None: lambda Z: np.zeros((len(Z), 0)), "constant": lambda Z: np.ones((len(Z), 1))}.get(
        trend, lambda Z: np.column_stack([np.ones(len(Z)), Z])
    )
    K, k = S[:150, :150] + 0.05 * np.eye(150), S[:150, 150:]
    lagrange = np.block([[K, F(X)], [F(X).T, np.zeros((F(X).shape[1],) * 2)]])
    weights = np.linalg.solve(lagrange, np.concatenate([k, F(T).T]))[:150]
    errors = np.concatenate([weights, -np.eye(len(T))])  # of the prediction, by observations and targets
    noisy = S + np.diag(np.r_[np.full(150, 0.05), np.zeros(len(T))])
    np.testing.assert_allclose(joint, errors.T @ noisy @ errors, atol=100 * way)
    assert joint[0, 12] == pytest.approx(joint[0, 0])
    same_mean, std = kriging.predict(T, return_std=True)
    np.testing.assert_allclose(mean, same_mean, rtol=1e-10)
    np.testing.assert_allclose(np.sqrt(np.diag(joint)), std, rtol=1e-3)
    new = kriging.predict(T, observations=True, return_cov=True)[1]
    np.testing.assert_allclose(new - joint, 0.05 * np.eye(len(T)), atol=1e-6)


def test_intervals_are_those_of_the_normal_distribution():
    X, y, T = problem()
    kriging = Kriging(COV, 0.05).fit(X, y)
    mean, std = kriging.predict(T, return_std=True, observations=True)
    found = kriging.predict(T, observations=True, interval=0.9)
    for ours, theirs in zip(found, (mean, norm.ppf(0.05, mean, std), norm.ppf(0.95, mean, std))):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    assert 0.8 < scores.coverage(y, *kriging.predict(X, True, True)) <= 1


@pytest.mark.parametrize("options, words", [
    ({"return_std": True, "return_cov": True}, "predict: expected one of return_std, return_cov and interval"),
    ({"interval": "95 %"}, "interval: expected a level between 0 and 1, such as 0.95, got '95 %'"),
    ({"interval": 95}, "interval: expected a level between 0 and 1, such as 0.95, got 95"),
])  # fmt: skip
def test_wrong_requests_are_refused(options, words, monkeypatch):
    X, y, T = problem(30)
    kriging = Kriging(COV, 0.05).fit(X, y)
    with pytest.raises(ValueError, match=words):
        kriging.predict(T, **options)
    monkeypatch.setattr(crossed, "MOST_TARGETS", 10)
    with pytest.raises(ValueError, match="return_cov: expected at most 10 targets"):
        kriging.predict(T, return_cov=True)


# Gaps and updates


def test_missing_observations_are_skipped_when_asked():
    X, y, T = problem(50)
    gaps = np.where(np.arange(50) % 7 == 2, np.nan, y)
    known, weights = np.isfinite(gaps), np.linspace(1, 2, 50)
    skipping = Kriging(COV, 0.05, missing="skip").fit(X, gaps, weights)
    expected = Kriging(COV, 0.05).fit(X[known], y[known], weights[known])
    np.testing.assert_array_equal(skipping.predict(T), expected.predict(T))
    assert Kriging(COV, 0.05, missing="skip").fit(X, gaps).weights_.shape == (known.sum(),)
    with pytest.raises(ValueError, match="y: expected finite numbers, got NaN or infinity in 7 of 50"):
        Kriging(COV, 0.05).fit(X, gaps)
    with pytest.raises(ValueError, match="y: expected some observations, got NaN for all 50"):
        Kriging(COV, 0.05, missing="skip").fit(X, gaps * np.nan)
    with pytest.raises(ValueError, match="y: expected finite"):
        Kriging(COV, 0.05, missing="skip").fit(X, np.where(known, y, np.inf))
    with pytest.raises(ValueError, match='missing: expected "raise" or "skip"'):
        Kriging(COV, 0.05, missing="drop").fit(X, y)


@pytest.mark.filterwarnings("ignore:maximum likelihood")
@pytest.mark.parametrize("trend", TRENDS)
def test_an_update_is_a_fit_of_all_at_the_parameters_in_use(trend):
    X, y, T = problem(120)
    kriging = Kriging(Exponential(), trend=trend, mean=0.0 if trend else 1.0, fit_parameters=True).fit(X[:80], y[:80])
    cov, nugget, estimates = kriging.cov_, kriging.nugget_, kriging.parameters_
    gap = y.copy()
    gap[90] = np.nan
    assert kriging.set_params(missing="skip").update(X[80:], gap[80:]) is kriging
    rest = np.arange(120) != 90
    expected = Kriging(cov, nugget, trend, mean=0.0 if trend else 1.0).fit(X[rest], y[rest])
    np.testing.assert_allclose(kriging.predict(T), expected.predict(T), rtol=1e-10)
    assert (kriging.cov_, kriging.nugget_, kriging.parameters_) == (cov, nugget, estimates)
    assert kriging.weights_.shape == (119,)
    with pytest.raises(ValueError, match="expecting 2 features"):
        kriging.update(np.zeros((2, 3)), [1.0, 2.0])
    exact = Kriging(Exponential()).fit(X, y)
    with pytest.raises(ValueError, match="one value a site"):
        exact.update(X[:2], y[:2] + 1)
    np.testing.assert_allclose(exact.predict(X), y, atol=1e-8)  # as before the failure


# Files


@pytest.mark.parametrize("trend", [*TRENDS, [2]], ids=repr)
def test_a_saved_kriging_predicts_the_same(tmp_path, monkeypatch, trend):
    X, y, T = problem(80)
    X, T = (np.column_stack([Z, Z[:, 0] ** 2]) for Z in (X, T)) if trend == [2] else (X, T)
    X, y = np.concatenate([X, X[:3]]), np.concatenate([y, y[:3] + 0.1])
    kriging = Kriging(COV + Nugget(0.1), 0.05, trend, mean=0.0 if trend else 2.0, missing="skip").fit(
        X, y, np.linspace(1, 2, 83)
    )
    kriging.save(tmp_path / "field.h5")
    with monkeypatch.context() as m:
        m.setattr("h2gpu.statistics.results.files.covariance_system", lambda *_: pytest.fail("solved again"))
        again = Kriging.load(tmp_path / "field.h5")
        np.testing.assert_allclose(again.predict(T), kriging.predict(T), rtol=1e-12)
    for ours, theirs in zip(again.predict(T, return_std=True), kriging.predict(T, return_std=True)):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)
    assert again.get_params() == kriging.get_params() and again.cov_ == kriging.cov_
    np.testing.assert_allclose(again.leave_one_out().std, kriging.leave_one_out().std, rtol=1e-9)
    np.testing.assert_allclose(again.sample_y(T, 2, 1), kriging.sample_y(T, 2, 1), rtol=1e-7)
    assert again.log_marginal_likelihood() == pytest.approx(kriging.log_marginal_likelihood())
    np.testing.assert_allclose(again.update(T, T[:, 0]).predict(X), kriging.update(T, T[:, 0]).predict(X), rtol=1e-8)


@pytest.mark.filterwarnings("ignore:maximum likelihood")
def test_a_saved_estimate_keeps_what_it_found(tmp_path):
    X, y, _ = problem(80)
    kriging = Kriging(Exponential(1.0, (1.0, 1.0), rotation=0.1), fit_parameters=True).fit(X, y)
    kriging.save(tmp_path / "field.h5")
    again = Kriging.load(tmp_path / "field.h5")
    assert (again.parameters_, again.converged_, again.cov_) == (kriging.parameters_, kriging.converged_, kriging.cov_)
    assert again.parameter_intervals_ == kriging.parameter_intervals_
    assert again.parameter_errors_ == kriging.parameter_errors_ and again.nugget_ == kriging.nugget_


def damaged(path, change):
    with h5py.File(path, "r+") as file:
        change(file)


@pytest.mark.parametrize("change, words", [
    (lambda f: f.attrs.__setitem__("version", 9), "of version 1, got h2gpu-kriging of version 9"),
    (lambda f: f.attrs.__delitem__("settings"), "expected a file of Kriging.save"),
    (lambda f: f.__delitem__("w"), "expected a file of Kriging.save, got no dataset w"),
    (lambda f: f["y"].__setitem__(3, np.nan), "y: expected finite numbers"),
    (lambda f: (f.__delitem__("w"), f.__setitem__("w", np.zeros(3))), r"w: expected shape \(20,\), got \(3,\)"),
    (lambda f: (f.__delitem__("y"), f.__setitem__("y", np.zeros(3))), "observations of one length"),
    (lambda f: f.attrs.__setitem__("settings", json.dumps({})), "expected a Kriging in order, got KeyError"),
    (lambda f: f.attrs.__setitem__("settings", f.attrs["settings"].replace("Matern", "Mattern")), "a name of"),
    (lambda f: f.attrs.__setitem__("settings", f.attrs["settings"].replace('"rtol": 1e-06', '"rtol": 7')), "rtol: exp"),
], ids=range(9))  # fmt: skip
def test_damaged_files_are_refused_in_one_line(tmp_path, change, words):
    X, y, _ = problem(20)
    path = tmp_path / "field.h5"
    Kriging(COV, 0.05).fit(X, y).save(path)
    damaged(path, change)
    with pytest.raises(ValueError, match=words) as found:
        Kriging.load(path)
    assert "\n" not in str(found.value) and str(path) in str(found.value)
    path.write_bytes(b"nothing")
    with pytest.raises(ValueError, match=r"expected a file of Kriging\.save"):
        Kriging.load(path)
    with pytest.raises(FileNotFoundError):
        Kriging.load(tmp_path / "none.h5")


@pytest.mark.parametrize("cov, trend", [(from_distance(lambda r: np.exp(-r)), None), (COV, lambda X: X)])
def test_functions_cannot_be_saved(tmp_path, cov, trend):
    X, y, _ = problem(20)
    with pytest.raises(ValueError, match=r"cannot be written to a file|save: expected trend to be a value"):
        Kriging(cov, 0.05, trend).fit(X, y).save(tmp_path / "field.h5")
    assert not (tmp_path / "field.h5").exists()
