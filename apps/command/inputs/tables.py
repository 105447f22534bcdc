"""CSV, GeoPackage and NumPy files of a user → columns of real numbers, by `h2gpu.storage.exchange`."""

from pathlib import Path

from h2gpu.apps.command.command import InputError
from h2gpu.apps.command.inputs.checks import check_lengths, check_shape
from h2gpu.storage.exchange import read_table

GEOPACKAGE, ARRAY = ".gpkg", ".npy"
WITHOUT_NAMES = GEOPACKAGE, ARRAY  # points are what these are about
GEOMETRY = ["its points"]  # of a GeoPackage, in messages
DEFAULTS = {".csv": ["x", "y"], ".tsv": ["x", "y"], GEOPACKAGE: GEOMETRY, ARRAY: ["the array"], ".npz": ["points"]}


def columns(path, names, most, option):
    """Columns (n,) or (n, dim) of those names, of one length; see `points_file.read_points`."""
    if Path(path).suffix.lower() in WITHOUT_NAMES:
        found = [_table(path, [], layer(path, names), most / 3, option).points]
    else:
        table = _table(path, names, None, most / 3, option)
        found = [table.columns[name] for name in names]
    for array, name in zip(found, names):
        _check(path, array, name, len(found) > 1)
    check_lengths(names, found, option)
    return found


def values(path, name, n, option, layer):
    """The column (n,) of that name."""
    found = _table(path, [name], layer, None, option).columns[name]
    _check(path, found, name, several=True)
    if len(found) != n:
        raise InputError(f"{path}: {name}: expected {n} values as there are points, got {len(found)}")
    return found


def holds(path, name, layer):
    """Whether the file has a column of that name."""
    if Path(path).suffix.lower() == ARRAY:
        return False
    try:
        read_table(path, [name], layer=layer)
    except ValueError as error:
        if "not found" in str(error):
            return False
        raise InputError(str(error)) from None
    return True


def crs(path, names):
    """The coordinate reference system of a GeoPackage; None of other files, and without one."""
    return _table(path, [], layer(path, names), None, "--points").crs if _is_geopackage(path) else None


def layer(path, names):
    """The layer that --points names; None of files without layers, and where it is not given."""
    return ",".join(names) if names and names != GEOMETRY and _is_geopackage(path) else None


def _is_geopackage(path):
    return Path(path).suffix.lower() == GEOPACKAGE


def _table(path, names, layer, most, option):
    """The Table of a file, errors in the words of the commands."""
    try:
        return read_table(path, names, layer=layer, most=most)
    except ValueError as error:
        advice = f"; choose with {option}" if "not found" in str(error) or "one layer" in str(error) else ""
        raise InputError(f"{error}{advice}") from None


def _check(path, array, name, several):
    if 0 in array.shape:
        raise InputError(f"{path}: {name}: expected at least one point, got shape {array.shape}")
    try:
        check_shape(array.shape, name, several)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
