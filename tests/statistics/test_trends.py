"""Trends of columns and coordinates together: generalized least squares, as the textbooks write it."""

import numpy as np
import pytest
from kriging_problems import COV, problem, textbook

from h2gpu.statistics import Kriging, log_likelihood
from h2gpu.statistics.trends import trend_of

NUGGET = 0.05


def drifted(n=150, m=20):
    """Sites, observations and targets of a field with a plane and a drift in a column; the column at both."""
    X, y, T = problem(n, m)
    h, h_T = (np.cos(7 * Z[:, 0]) + Z[:, 1] ** 2 for Z in (X, T))
    return X, y - X[:, 1] + 4 * h, T, h, h_T


def plane_and(h, X):
    return np.column_stack([np.ones(len(X)), X, h])


@pytest.mark.parametrize("words", [["linear"], ["constant", "linear"]], ids=str)
def test_columns_and_coordinates_together_are_generalized_least_squares(way, words):
    X, y, T, h, h_T = drifted()
    kriging = Kriging(COV, NUGGET, [*words, 2]).fit(np.c_[X, h], y)
    F, f = plane_and(h, X), plane_and(h_T, T)
    mean, variances = textbook(COV, NUGGET, X, y, T, F, f)
    found, std = kriging.predict(np.c_[T, h_T], return_std=True)
    np.testing.assert_allclose(found, mean, atol=100 * way)
    np.testing.assert_allclose(std, np.sqrt(variances), rtol=100 * way)
    K = COV(X) + NUGGET * np.eye(len(X))
    beta = np.linalg.solve(F.T @ np.linalg.solve(K, F), F.T @ np.linalg.solve(K, y))
    np.testing.assert_allclose(kriging.trend_coefficients_, beta, atol=1000 * way)
    residual = y - F @ beta
    expected = -0.5 * (np.linalg.slogdet(K)[1] + residual @ np.linalg.solve(K, residual) + len(y) * np.log(2 * np.pi))
    found = log_likelihood(COV, np.c_[X, h], y, NUGGET, [*words, 2])
    assert found == pytest.approx(expected, abs=1e-6 + 5 * found.standard_error)


def test_columns_alone_stand_beside_a_constant():
    X, y, T, h, h_T = drifted()
    mean, _ = textbook(COV, NUGGET, X, y, T, np.c_[np.ones(len(X)), h], np.c_[np.ones(len(T)), h_T])
    for trend in ([2], ["constant", 2]):
        np.testing.assert_allclose(Kriging(COV, NUGGET, trend).fit(np.c_[X, h], y).predict(np.c_[T, h_T]), mean)


def test_a_plane_alone_may_be_a_list():
    X, y, T, _, _ = drifted()
    expected = Kriging(COV, NUGGET, "linear").fit(X, y).predict(T)
    np.testing.assert_array_equal(Kriging(COV, NUGGET, ["linear"]).fit(X, y).predict(T), expected)


def test_tables_name_their_columns(tmp_path):
    pandas, geopandas = pytest.importorskip("pandas"), pytest.importorskip("geopandas")
    X, y, T, h, h_T = drifted()
    trend = ["linear", "elevation"]
    expected = Kriging(COV, NUGGET, ["linear", 2]).fit(np.c_[X, h], y).predict(np.c_[T, h_T])
    tables = [pandas.DataFrame({"x": Z[:, 0], "elevation": g, "y": Z[:, 1]}) for Z, g in ((X, h), (T, h_T))]
    kriging = Kriging(COV, NUGGET, trend).fit(tables[0], y)
    np.testing.assert_allclose(kriging.predict(tables[1]), expected, rtol=1e-9)
    kriging.save(tmp_path / "field.h5")
    np.testing.assert_allclose(Kriging.load(tmp_path / "field.h5").predict(tables[1]), expected, rtol=1e-9)
    points = [
        geopandas.GeoDataFrame({"elevation": g, "other": 0}, geometry=geopandas.points_from_xy(*Z.T))
        for Z, g in ((X, h), (T, h_T))
    ]
    np.testing.assert_allclose(Kriging(COV, NUGGET, trend).fit(points[0], y).predict(points[1]), expected, rtol=1e-9)
    plain = Kriging(COV, NUGGET, ["linear"]).fit(points[0], y).predict(points[1])
    np.testing.assert_allclose(plain, Kriging(COV, NUGGET, "linear").fit(X, y).predict(T), rtol=1e-9)


@pytest.mark.parametrize("spec, names, words", [
    (["linear", "elevation"], ["x", "y"], "trend: expected names or indices of the 2 columns of X, got 'elevation'"),
    (["linear", "x", "y"], ["x", "y"], "some columns of X to remain as coordinates"),
    (["linear", "x"], ["x", "linear"], "trend: 'linear' is a column of X and a kind of trend; rename the column"),
    (["quadratic", 0], None, "trend: expected names or indices of the 2 columns of X, got 'quadratic'"),
    ([], None, r'a list of columns of X and "linear", got \[\]'),
])  # fmt: skip
def test_wrong_lists_are_refused(spec, names, words):
    with pytest.raises(ValueError, match=words):
        trend_of(spec, 2, names)
