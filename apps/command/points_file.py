"""File of a user → (n, dim) points, (n,) values, with one clear line for whatever is wrong with it.

.csv .tsv     columns by their names              .npy .npz     NumPy's arrays
.gpkg         GeoPackage: its points, columns     all others    HDF5: datasets
"""

from pathlib import Path

import numpy as np

from h2gpu.apps.command.inputs import hdf5, tables
from h2gpu.apps.command.inputs.checks import check_file, check_finite
from h2gpu.storage.exchange import is_table


def read_points(path, names, dtype, most, option="--points", time=None):
    """The points of a file as an (n, dim) array of finite numbers.

    names   one dataset (n, dim) or (n,), or several (n,), one a coordinate; None: points, of CSV x and y. A GeoPackage
            has its geometry for that, and names mean its layer; a .npy file is the points
    time    a dataset or column (n,) that is a further, last coordinate
    dtype   "float32" or "float64"
    most    bytes that the points may take
    option  with which the user chooses the names

    Raises InputError; ImportError where a format needs a package that is missing.
    """
    own = names or tables.DEFAULTS.get(check_file(path), ["points"])
    if is_table(path):
        columns = tables.columns(path, own, most, option)
    else:
        columns = hdf5.columns(path, own, dtype, most, option)
    if time:
        columns = [*columns, read_values(path, time, len(columns[0]), "--time", missing=True, points=names)]
    points = columns[0].reshape(len(columns[0]), -1) if len(columns) == 1 else np.column_stack(columns)
    with np.errstate(all="ignore"):
        points = points.astype(dtype, copy=False)
    check_finite(path, ",".join([*own, time] if time else own), points, "coordinates")
    return points


def read_values(path, name, n, option, missing=False, points=None):
    """The dataset or column of that name as (n,) float64, one number a point.

    missing whether NaN may stand for unknown ones
    option  with which the user chooses the name
    points  names with which the points were read: of a GeoPackage the layer

    Raises InputError.
    """
    check_file(path)
    if is_table(path):
        values = tables.values(path, name, n, option, tables.layer(path, points)).astype(np.float64)
    else:
        values = hdf5.values(path, name, n, option)
    if not missing:
        check_finite(path, name, values[:, None], "values")
    return values


def holds(path, name, points=None):
    """Whether the file has a dataset or column of that name. Raises InputError for a file that cannot be read."""
    check_file(path)
    return tables.holds(path, name, tables.layer(path, points)) if is_table(path) else hdf5.holds(path, name)


def names_for(path, names):
    """Names given for another file, as far as they can mean something in this one; else None."""
    return None if Path(path).suffix.lower() in tables.WITHOUT_NAMES else names


def read_crs(path, points=None):
    """The coordinate reference system of a GeoPackage; None of other files, and without one. Raises InputError."""
    return tables.crs(path, points)
