"""File of a user → (n, dim) points, (n,) values, with one clear line for whatever is wrong with it.

.csv .tsv     columns by their names              .npy .npz     NumPy's arrays
.gpkg         GeoPackage: its points, columns     all others    HDF5: datasets
"""

from pathlib import Path

import numpy as np

from h2gpu.apps.command.inputs import hdf5, tables
from h2gpu.apps.command.inputs.checks import ALL, check_file, check_finite, rows_of
from h2gpu.storage.exchange import is_table


def read_points(path, names, dtype, most, option="--points", time=None, share=ALL):
    """The points of a file as an (n, dim) array of finite numbers.

    names   one dataset (n, dim) or (n,), or several (n,), one a coordinate; None: points, of CSV x and y. A GeoPackage
            has its geometry for that, and names mean its layer; a .npy file is the points
    time    a dataset or column (n,) that is a further, last coordinate
    dtype   "float32" or "float64"
    most    bytes that the points may take
    option  with which the user chooses the names
    share   (rank, ranks): this part of the rows alone; of HDF5 no others are read

    Raises InputError; ImportError where a format needs a package that is missing.
    """
    own = names or tables.DEFAULTS.get(check_file(path), ["points"])
    if is_table(path):
        columns = tables.columns(path, own, most, option)
        n = len(columns[0])
        columns = [column[rows_of(n, share)] for column in columns]
    else:
        columns, n = hdf5.columns(path, own, dtype, most, option, share)
    if time:
        columns = [*columns, read_values(path, time, n, "--time", missing=True, points=names, share=share)]
    points = np.column_stack(columns) if len(columns) > 1 else columns[0]
    points = points if points.ndim == 2 else points[:, None]
    with np.errstate(all="ignore"):
        points = points.astype(dtype, copy=False)
    check_finite(path, ",".join([*own, time] if time else own), points, "coordinates", rows_of(n, share).start)
    return points


def read_values(path, name, n, option, missing=False, points=None, share=ALL):
    """The dataset or column of that name as (n,) float64, one number a point; or a share of it, as of the points.

    missing whether NaN may stand for unknown ones
    option  with which the user chooses the name
    points  names with which the points were read: of a GeoPackage the layer

    Raises InputError.
    """
    check_file(path)
    if is_table(path):
        values = tables.values(path, name, n, option, tables.layer(path, points))
        values = values[rows_of(n, share)].astype(np.float64)
    else:
        values = hdf5.values(path, name, n, option, share)
    if not missing:
        check_finite(path, name, values[:, None], "values", rows_of(n, share).start)
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
