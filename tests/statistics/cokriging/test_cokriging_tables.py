"""Cokriging from tables: reference systems kept, checked and saved, as Kriging keeps them."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from test_cokriging import LINEAR, MATERN, NUGGETS, sample

from h2gpu.covariance import Exponential
from h2gpu.statistics import CoKriging, GeneralizedKriging, Kriging
from h2gpu.statistics.blocks.discretization import areas

geopandas = pytest.importorskip("geopandas")


def tables(crs, n=40):
    """A GeoDataFrame of sites with both variables, and one of some targets."""
    X, Y, _ = sample(LINEAR, n)
    points = geopandas.points_from_xy(*X.T)
    data = {"zinc": Y[:, 0], "lead": Y[:, 1], "name": ["a"] * n}
    return geopandas.GeoDataFrame(data, geometry=points, crs=crs), X, Y


def test_points_of_a_table_and_its_reference_system_count(tmp_path):
    table, X, Y = tables(32632)
    model = CoKriging(LINEAR, NUGGETS).fit(table, table[["zinc", "lead"]])
    expected = CoKriging(LINEAR, NUGGETS).fit(X, Y).predict(X[:5] + 0.1)
    moved = geopandas.GeoSeries(geopandas.points_from_xy(*(X[:5] + 0.1).T), crs=32632)
    np.testing.assert_array_equal(model.predict(moved), expected)
    assert model.crs_ == table.crs
    squares = moved.buffer(1, 1)
    model.save(tmp_path / "metals.h5")
    for one in (model, CoKriging.load(tmp_path / "metals.h5")):
        assert one.crs_ == "EPSG:32632"
        np.testing.assert_array_equal(one.predict(moved), expected)
        for wrong in (
            lambda one: one.predict(moved.to_crs(4326)),
            lambda one: one.sample_y(moved.to_crs(4326)),
            lambda one: one.update(moved.to_crs(4326), np.ones((5, 2))),
            lambda one: one.predict_blocks(areas(squares.to_crs(4326))),
        ):
            with pytest.raises(ValueError, match="reference system of the fit, EPSG:32632, got EPSG:4326"):
                wrong(one)


def test_degrees_are_told():
    table, _, Y = tables(4326)
    with pytest.warns(UserWarning, match="EPSG:4326 are degrees, .* for a plane; convert with X.to_crs") as told:
        CoKriging(LINEAR, NUGGETS).fit(table, Y)
    assert told[0].filename == __file__


def test_warnings_point_at_the_line_that_asked(caplog):
    X, Y, _ = sample(MATERN, 40)
    calls = (
        lambda: Kriging(Exponential(), 0.1, mean=1.0).fit(X, X[:, 0]),
        lambda: GeneralizedKriging(Exponential(), mean=1.0).fit(X, np.rint(X[:, 0])),
        lambda: CoKriging(MATERN, NUGGETS, mean=1.0).fit(X, Y),
        lambda: GeneralizedKriging(Exponential(), fit_parameters=True).fit(X, np.rint(20 * X[:, 0])),
    )
    for call in calls:
        with pytest.warns(UserWarning, match="mean: 1.0 is not used|exceeds the extent") as told:
            call()
        assert {one.filename for one in told} == {__file__}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of so few sites the likeliest correlation is 1
        CoKriging(MATERN, fit_parameters=True).fit(X, Y)  # which begins with each variable by itself
    assert caplog.text.count("is kept as given") == 2
