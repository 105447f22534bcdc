"""Kriging among scikit-learn's estimators, and what it takes as data."""

import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from reference import points_of
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from h2gpu.covariance import Exponential, Matern, Nugget, on_sphere
from h2gpu.statistics import Kriging, log_likelihood, simulate, systems

COV = Matern(2.0, 0.3, 1.5)


def problem(n=120):
    X = points_of("uniform", n, 2)
    return X, simulate(COV, X, 1, 0, nugget=0.05)[:, 0]


@pytest.mark.parametrize(
    "kriging", [Kriging(Exponential(), 0.1), Kriging(Exponential(), fit_parameters=["variance"])], ids=repr
)
def test_scikit_learn_checks_pass(kriging):
    """All of them; skipped are those for which something is not installed."""
    results = check_estimator(kriging, on_fail=None, on_skip=None)
    failed = {result["check_name"]: result["exception"] for result in results if result["status"] == "failed"}
    assert not failed
    skipped = {result["check_name"] for result in results if result["status"] == "skipped"}
    assert skipped <= {
        "check_array_api_input",  # unless SCIPY_ARRAY_API is set
        "check_regressor_data_not_an_array",  # without pandas
        "check_sample_weights_pandas_series",
    }
    assert len(results) > 50


def test_clones_parameters_and_scores():
    X, y = problem()
    kriging = Kriging(COV, 0.05, "linear", neighbours=20).fit(X, y)
    again = clone(kriging)
    assert again.get_params() == kriging.get_params() and not hasattr(again, "weights_")
    scores = cross_val_score(kriging, X, y, cv=4)
    assert scores.shape == (4,) and scores.min() > 0.7
    search = GridSearchCV(Kriging(COV, 0.05), {"nugget": [0.05, 50.0], "trend": [None, "constant"]}, cv=3).fit(X, y)
    assert search.best_params_["nugget"] == 0.05
    pipeline = make_pipeline(StandardScaler(), Kriging(Matern(2.0, 1.0, 1.5), 0.05)).fit(X, y)
    assert pipeline.score(X, y) > 0.9


@pytest.mark.parametrize("dense", [4096, 0], ids=["dense", "H2Matrix"])
def test_a_fitted_one_is_pickled(monkeypatch, dense):
    monkeypatch.setattr(systems, "DENSE", dense)
    X, y = problem()
    kriging = Kriging(COV, 0.05).fit(X, y)
    again = pickle.loads(pickle.dumps(kriging))
    for a, b in zip(again.predict(X, return_std=True), kriging.predict(X, return_std=True)):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(again.sample_y(X, 2, 3), kriging.sample_y(X, 2, 3))


def test_the_fit_does_not_change_what_it_was_given():
    X, y = problem()
    X0, y0 = X.copy(), y.copy()
    kriging = Kriging(COV, 0.05, fit_parameters=True).fit(X, y)
    kriging.predict(X, return_std=True)
    np.testing.assert_array_equal(X, X0)
    np.testing.assert_array_equal(y, y0)
    assert kriging.cov == COV and kriging.nugget == 0.05


def test_predictions_for_other_features_are_refused():
    X, y = problem()
    kriging = Kriging(COV, 0.05).fit(X, y)
    with pytest.raises(ValueError, match="X has 3 features, but Kriging is expecting 2"):
        kriging.predict(np.zeros((4, 3)))
    with pytest.raises(ValueError, match="expected 2 coordinates a point"):
        Kriging(Exponential(1.0, (0.1, 0.2))).fit(np.zeros((4, 3)), np.zeros(4))


def test_gstools_models_are_taken():
    gstools = pytest.importorskip("gstools")
    X, y = problem()
    model = gstools.Exponential(dim=2, var=2.0, len_scale=0.3, nugget=0.1)
    ours = Kriging(Exponential(2.0, 0.3) + Nugget(0.1)).fit(X, y)
    theirs = gstools.krige.Ordinary(model, X.T, y, exact=True)
    T = points_of("uniform", 30, 2, 1)
    mean, variance = theirs(T.T, return_var=True)
    np.testing.assert_allclose(Kriging(model).fit(X, y).predict(T), mean, atol=1e-8)
    np.testing.assert_allclose(ours.predict(T, return_std=True)[1] ** 2, variance, atol=1e-8)
    assert log_likelihood(model, X, y) == log_likelihood(Exponential(2.0, 0.3) + Nugget(0.1), X, y)


# Tables


def with_elevation():
    X, y = problem()
    elevation = np.random.default_rng(1).random(len(X))
    y = y + 3 * elevation
    both = np.column_stack([X, elevation])
    expected = Kriging(COV, 0.05, trend=[2]).fit(both, y)
    assert expected.trend_coefficients_[1] == pytest.approx(3, abs=0.5)
    return X, elevation, y, expected.predict(both)


def test_columns_of_x_can_be_trend_columns():
    X, elevation, y, expected = with_elevation()
    first = np.column_stack([elevation, X])
    np.testing.assert_allclose(Kriging(COV, 0.05, trend=[0]).fit(first, y).predict(first), expected)
    as_function = Kriging(COV, 0.05, trend=lambda S: np.ones((len(S), 1))).fit(X, y)
    np.testing.assert_allclose(as_function.predict(X), Kriging(COV, 0.05).fit(X, y).predict(X))


def test_pandas_tables_name_their_trend_columns():
    pandas = pytest.importorskip("pandas")
    X, elevation, y, expected = with_elevation()
    table = pandas.DataFrame({"lon": X[:, 0], "elevation": elevation, "lat": X[:, 1]})
    kriging = Kriging(COV, 0.05, trend=["elevation"]).fit(table, pandas.Series(y))
    np.testing.assert_allclose(kriging.predict(table), expected)
    assert kriging.feature_names_in_.tolist() == ["lon", "elevation", "lat"]
    ours = log_likelihood(COV, table, y, 0.05, ["elevation"])
    assert ours == pytest.approx(log_likelihood(COV, np.column_stack([X, elevation]), y, 0.05, [2]))


def test_points_of_geopandas_are_coordinates_and_only_named_columns_count():
    geopandas = pytest.importorskip("geopandas")
    X, elevation, y, expected = with_elevation()
    columns = {"elevation": elevation, "name": ["a"] * len(X), "geometry": geopandas.points_from_xy(*X.T)}
    table = geopandas.GeoDataFrame(columns)
    np.testing.assert_allclose(Kriging(COV, 0.05, trend=["elevation"]).fit(table, y).predict(table), expected)
    kriging = Kriging(COV, 0.05).fit(table, y)
    np.testing.assert_allclose(kriging.predict(table.geometry), Kriging(COV, 0.05).fit(X, y).predict(X))
    np.testing.assert_allclose(simulate(COV, table, 1, 0), simulate(COV, X, 1, 0))


class Geometry:
    """What GeoPandas' tables answer, without GeoPandas."""

    def __init__(self, X, crs=None):
        self.x, self.y, self.name, self.crs = X[:, 0], X[:, 1], "geometry", crs

    @property
    def geometry(self):
        return self


def test_what_answers_like_geopandas_is_taken_like_it():
    X, y = problem()
    np.testing.assert_allclose(
        Kriging(COV, 0.05).fit(Geometry(X), y).predict(Geometry(X)), Kriging(COV, 0.05).fit(X, y).predict(X)
    )


@dataclass(frozen=True)
class System:
    """What a pyproj.CRS answers."""

    srs: str
    is_geographic: bool


def test_reference_systems_are_kept_and_must_agree():
    X, y = problem(30)
    degrees, metres = System("EPSG:4326", True), System("EPSG:32632", False)
    kriging = Kriging(COV, 0.05).fit(Geometry(X, metres), y)
    assert kriging.crs_ == metres
    np.testing.assert_allclose(kriging.predict(Geometry(X, metres)), kriging.predict(X))
    with pytest.raises(ValueError, match=r"system of the fit, EPSG:32632, got EPSG:4326; convert with X.to_crs"):
        kriging.predict(Geometry(X, degrees))
    with pytest.warns(UserWarning, match=r"EPSG:4326 are degrees, which Matern.* takes for a plane; wrap it with"):
        Kriging(COV, 0.05).fit(Geometry(X, degrees), y)
    sphere = on_sphere(Matern(2.0, 30.0, 1.5), distance="chordal")
    assert Kriging(sphere, 0.05).fit(Geometry(X, degrees), y).crs_ == degrees
    with pytest.raises(ValueError, match=r"expected longitudes and latitudes .* got EPSG:32632; convert"):
        Kriging(sphere, 0.05).fit(Geometry(X, metres), y)


def test_grids_of_xarray_are_sites_and_values_in_one_order():
    xarray = pytest.importorskip("xarray")
    values = np.random.default_rng(0).random((4, 5))
    grid = xarray.DataArray(values, dims=("lat", "lon"), coords={"lat": np.arange(4.0), "lon": 10 * np.arange(5.0)})
    for y in (grid, grid.T):
        kriging = Kriging(COV).fit(grid.coords.to_dataset(), y)
        np.testing.assert_allclose(kriging.predict([[2.0, 30.0]]), values[2, 3])  # lat, lon: the grid's order
    dataset = xarray.Dataset({"t": grid})
    kriging = Kriging(COV).fit(dataset, dataset.t)
    assert kriging.n_features_in_ == 2
    np.testing.assert_allclose(kriging.predict(dataset), values.ravel())
    np.testing.assert_allclose(kriging.predict(dataset.coords.to_dataset()), values.ravel())
    assert log_likelihood(COV, dataset, dataset.t) == log_likelihood(COV, grid.coords.to_dataset(), grid)
    with pytest.raises(ValueError, match="X: expected lat, lon as in fit, got a Dataset without lon"):
        kriging.predict(xarray.Dataset(coords={"lat": np.arange(3.0)}))
    sites = xarray.Dataset({"lon": ("site", [0.0, 1.0, 3.0]), "lat": ("site", [0.0, 2.0, 1.0])})
    kriging = Kriging(COV).fit(sites, xarray.DataArray([1.0, 2.0, 4.0], dims="site"))
    np.testing.assert_allclose(kriging.predict([[1.0, 2.0]]), 2.0)
    np.testing.assert_allclose(kriging.predict(xarray.DataArray([[1.0, 2.0]], dims=("site", "axis"))), 2.0)
