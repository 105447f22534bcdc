"""Tables of sites that users bring, known by what they can do, their libraries never imported.

pandas      as scikit-learn takes it: the columns are coordinates, or trend columns where the trend names them
GeoPandas   x and y of the points, and the columns that the trend names
xarray      a DataArray (n, dim); a Dataset: its variables but the observed one, or its coordinates where it has no
            others, on their common grid
"""

import warnings

import numpy as np

from h2gpu.covariance.base import PLANE
from h2gpu.texts import brief


def variables_of(X, y=None):
    """Names of the variables or coordinates of an xarray Dataset that are columns, y not among them; None of others."""
    if not hasattr(X, "data_vars"):
        return None
    observed = getattr(y, "name", None)
    return [name for name in X.data_vars if name != observed] or list(X.coords)


def table(X, columns=(), variables=None):
    """X as an array or a pandas table.

    columns     names of columns that are wanted beside the points of a GeoDataFrame
    variables   names that are wanted of an xarray Dataset; None: all of them
    """
    if hasattr(X, "geometry") and hasattr(X.geometry, "x"):
        return _points(X, [name for name in columns if isinstance(name, str)])
    if hasattr(X, "data_vars"):
        names = variables_of(X) if variables is None else variables
        missing = [name for name in names if name not in X]
        if missing:
            raise ValueError(f"X: expected {', '.join(map(str, names))} as in fit, got a Dataset without {missing[0]}")
        return np.column_stack([_on_grid(X[name], X) for name in names])
    return np.asarray(X.values) if _is_data_array(X) else X


def crs_of(X):
    """The coordinate reference system of a GeoDataFrame or GeoSeries; None without."""
    return getattr(X, "crs", None) if hasattr(X, "geometry") else None


def check_crs(crs, cov, stacklevel=5):
    """Degrees need a covariance on the sphere, and that needs degrees: ValueError for the latter, else a warning.

    crs   what pyproj calls one, or None
    """
    geographic, sphere = getattr(crs, "is_geographic", None), cov.embedding not in (None, PLANE)
    if geographic is False and sphere:
        raise ValueError(
            f"X: expected longitudes and latitudes for {cov!r}, got {_named(crs)}; convert with X.to_crs(4326)"
        )
    if geographic and not sphere:
        wrap = "" if cov.variables else 'wrap it with h2gpu.covariance.on_sphere(…, distance="chordal"), or '
        warnings.warn(
            f"X: {_named(crs)} are degrees, which {brief(cov, 80)} takes for a plane; {wrap}convert with X.to_crs to a "
            "projected system",
            stacklevel=stacklevel,
        )


def check_same_crs(fitted, crs):
    """ValueError where sites of the fit and targets have different coordinate reference systems."""
    if fitted is not None and crs is not None and fitted != crs:
        raise ValueError(
            f"X: expected the coordinate reference system of the fit, {_named(fitted)}, got {_named(crs)}; convert "
            "with X.to_crs"
        )


def _named(crs):
    return f"{getattr(crs, 'srs', crs)}"


def values(y, X):
    """Values as an array; those of an xarray DataArray in the order of the grid of X."""
    if not _is_data_array(y):
        return y
    return _on_grid(y, X) if hasattr(X, "data_vars") else np.asarray(y.values).ravel()


def _is_data_array(x):
    return hasattr(x, "dims") and hasattr(x, "coords") and hasattr(x, "values")


def _on_grid(variable, X):
    """(n,) values of an xarray variable on the grid of the Dataset X, its last dimension running fastest."""
    return np.asarray(variable.broadcast_like(X).transpose(*X.sizes).values).ravel()


def _points(X, columns):
    """The points of a GeoDataFrame or GeoSeries, and some other columns of the former."""
    points = X.geometry
    coordinates = {"x": np.asarray(points.x), "y": np.asarray(points.y)}
    if not columns:
        return np.column_stack(list(coordinates.values()))
    return X[columns].assign(**coordinates)[[*coordinates, *columns]]
