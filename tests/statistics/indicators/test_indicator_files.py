"""Files of a fitted IndicatorKriging: they predict the same, to the last bit, and nothing in them is trusted."""

import numpy as np
import pytest
from kriging_problems import problem
from stored import changed_settings

from h2gpu.covariance import Exponential, Nugget, Spherical, from_distance
from h2gpu.statistics import IndicatorKriging, Kriging
from h2gpu.statistics.results import files

COV = Exponential(0.2, 0.3)
OPTIONS = {
    "one factorization": {"cov": COV + Nugget(0.1), "nugget": 0.05, "rtol": 1e-5, "random_state": 3},
    "simple kriging": {"cov": COV, "thresholds": np.array([3.5, 4.5]), "nugget": 0.02, "trend": None},
    "groups interleaved": {"cov": [COV, Spherical(0.2, 0.5), COV], "thresholds": (3.0, 4.0, 5.0), "nugget": (0.1,) * 3},
    "fitted": {"cov": Spherical(0.2, 0.5), "quantiles": [0.3, 0.7], "fit_variograms": True, "trend": "linear"},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_a_file_predicts_the_same_bits(tmp_path, monkeypatch, options):
    X, y, T = problem(150, 40)
    X, weights = np.asfortranarray(np.r_[X, X[:5]]), np.linspace(1, 2, 155)
    y = np.r_[y, y[:5]]
    y[7] = np.nan
    model = IndicatorKriging(**options, missing="skip").fit(X, y, weights)
    model.save(tmp_path / "zones.h5")
    monkeypatch.setattr(files, "covariance_system", lambda *_: pytest.fail("solved again"))
    again, T = IndicatorKriging.load(tmp_path / "zones.h5"), np.r_[T, X[:3]]
    for corrected in (True, False):
        np.testing.assert_array_equal(again.predict_cdf(T, corrected), model.predict_cdf(T, corrected))
    np.testing.assert_array_equal(again.predict(T), model.predict(T))
    np.testing.assert_array_equal(again.predict_quantiles(T, [0.1, 0.9]), model.predict_quantiles(T, [0.1, 0.9]))
    np.testing.assert_array_equal(again.predict_exceedance(T, 4.2), model.predict_exceedance(T, 4.2))
    for name in ("thresholds_", "marginal_", "covs_", "nuggets_", "ends_", "n_features_in_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
    given, kept = model.get_params(), again.get_params()
    for name in given:
        np.testing.assert_array_equal(kept[name], given[name])
    again.save(tmp_path / "twice.h5")
    assert np.array_equal(IndicatorKriging.load(tmp_path / "twice.h5").predict(T), model.predict(T))
    with pytest.raises(ValueError, match=r"expected a file of Kriging\.save, got expected h2gpu-kriging"):
        Kriging.load(tmp_path / "zones.h5")


@pytest.mark.parametrize("trend", [None, "linear"])
def test_a_loaded_estimator_has_the_same_equations(tmp_path, trend):
    X, y, T = problem(100)
    model = IndicatorKriging([COV, Spherical(0.2, 0.5)], [3.5, y.max()], nugget=0.02, trend=trend).fit(X, y)
    model.save(tmp_path / "zones.h5")
    for kept, found in zip(model._solved, IndicatorKriging.load(tmp_path / "zones.h5")._solved):
        variances = [one.equations.means_and_variances(T, 0.0, 0)[1] for one in (kept, found)]
        np.testing.assert_allclose(variances[1], variances[0], rtol=1e-10)  # the factor is made again
        assert found.equations.spread == kept.equations.spread  # the scale of the accuracy asked for
        np.testing.assert_array_equal(found.equations.regression.information, kept.equations.regression.information)


def test_columns_are_known_by_name(tmp_path):
    pandas = pytest.importorskip("pandas")
    X, y, _ = problem(60)
    table = pandas.DataFrame({"e": X[:, 0], "n": X[:, 1], "h": X[:, 0] ** 2})
    model = IndicatorKriging(COV, [4.0], nugget=0.1, trend=["linear", "h"]).fit(table, y)
    model.save(tmp_path / "zones.h5")
    again = IndicatorKriging.load(tmp_path / "zones.h5")
    np.testing.assert_array_equal(again.predict_cdf(table), model.predict_cdf(table))
    with pytest.raises(ValueError, match="feature names"):
        again.predict(table[["e", "h", "n"]])


def replaced(name, array):
    return lambda file, settings: (file.pop(name), file.create_dataset(name, data=np.asarray(array, float)))


@pytest.mark.parametrize("change, words", [
    (lambda file, settings: file.attrs.update(format="h2gpu-kriging"), "expected h2gpu-indicator-kriging"),
    (lambda file, settings: settings.pop("covs_"), "KeyError: 'covs_'"),
    (lambda file, settings: settings["covs_"].pop(), "covs_: expected one, or one for each of 2 thresholds, got 1"),
    (lambda file, settings: settings.update(covs_=[3, 4]), "IndicatorKriging in order"),
    (lambda file, settings: settings.update(covs_=7), "TypeError"),
    (lambda file, settings: settings.update(covs_=[Exponential(1.0, (1.0,) * 3).parameters()] * 2), "expected 3 coord"),
    (lambda file, settings: settings.update(nuggets_=[0.1, -1]), "nuggets_: expected a finite number ≥ 0"),
    (lambda file, settings: settings.update(nuggets_=[0.1, 0.2]), r"solved: expected shape \(2, 40, 1\)"),
    (lambda file, settings: settings.update(rtol="small"), "rtol: expected a finite number"),
    (lambda file, settings: settings.update(missing="keep"), 'missing: expected "raise" or "skip"'),
    (lambda file, settings: settings.update(trend="cubic"), "trend: expected None"),
    (lambda file, settings: file.pop("solved"), "got no dataset solved"),
    (replaced("thresholds", [4.0, 3.5]), "thresholds: expected ascending finite numbers"),
    (replaced("thresholds", [4.0, 1e9]), "thresholds: expected values from"),
    (replaced("weights", np.zeros(40)), "sample_weight: expected weights of which some are not zero"),
    (replaced("weights", -np.ones(40)), "sample_weight: expected 40 finite numbers"),
    (replaced("y", np.full(40, np.nan)), "y: expected finite numbers"),
    (replaced("y", np.ones(3)), "y: expected 40 observations, one a row of X and one at least, got 3"),
    (replaced("w", np.ones((40, 1))), r"w: expected shape \(40, 2\), got \(40, 1\)"),
    (replaced("w", np.ones((39, 2))), r"w: expected shape \(40,\), got \(39,\)"),
    (replaced("gamma", np.ones((2, 2))), r"gamma: expected shape \(1,\), got \(2,\)"),
    (replaced("solved", np.ones((1, 40, 2))), r"solved: expected shape \(40, 1\), got \(40, 2\)"),
], ids=range(22))  # fmt: skip
def test_nothing_in_a_file_is_trusted(tmp_path, change, words):
    X, y, _ = problem(40)
    path = tmp_path / "zones.h5"
    IndicatorKriging(COV, [3.5, 4.5], nugget=0.1).fit(X, y).save(path)
    changed_settings(path, change)
    with pytest.raises(ValueError, match=words) as found:
        IndicatorKriging.load(path)
    assert "\n" not in str(found.value) and str(path) in str(found.value)


def test_what_is_no_file_of_it_is_refused(tmp_path):
    path = tmp_path / "zones.h5"
    path.write_bytes(b"nothing")
    with pytest.raises(ValueError, match=r"expected a file of IndicatorKriging\.save"):
        IndicatorKriging.load(path)
    with pytest.raises(FileNotFoundError):
        IndicatorKriging.load(tmp_path / "none.h5")
    X, y, _ = problem(40)
    for options, words in (
        ({"cov": [COV, from_distance(lambda r: np.exp(-r))]}, "cannot be written to a file"),
        ({"trend": lambda X: X}, "save: expected trend to be a value that a file can hold"),
    ):
        model = IndicatorKriging(**{"cov": COV, "thresholds": [3.5, 4.5], "nugget": 0.1} | options).fit(X, y)
        with pytest.raises(ValueError, match=words):
            model.save(tmp_path / "new.h5")
    assert not (tmp_path / "new.h5").exists()
