"""Tables of sites: CSV, GeoPackage and NumPy files → named columns, one clear line for whatever is wrong with them.

    name₁, name₂, …     CSV: the first line; separated by commas, semicolons or tabs
    x₁,    y₁,    …

Sizes are compared with what may be read before it is. Format: RFC 4180; OGC GeoPackage 1.3; NumPy's, NEP 1.
"""

import os
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from h2gpu.memory import readable
from h2gpu.storage.exchange.extras import extra

READ = (".csv", ".tsv", ".gpkg", ".npy", ".npz")
SEPARATORS = ",;\t"
LISTED = 20  # columns named in a message
HEAD = 1 << 20  # bytes of the first line of a CSV file, at most
UNPACKED = 4  # times the size of a CSV file: what its numbers take at most in memory, "1," is eight bytes


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of a file.

    columns   {name: (n,) or (n, dim) array of real numbers}
    points    (n, 2) of a GeoPackage, (n, dim) of a .npy file; None of others
    crs       coordinate reference system, a pyproj.CRS; None where the file has none
    """

    columns: dict
    points: object = None
    crs: object = None

    def __getitem__(self, name):
        return self.columns[name]


def is_table(path):
    """Whether the name of a file is that of a table which `read_table` reads."""
    return Path(path).suffix.lower() in READ


def read_table(path, names=None, *, layer=None, most=None):
    """The Table of a file, its format by the name.

    names   columns that are wanted; None: all that are numbers
    layer   of a GeoPackage with several
    most    bytes that the table may take in memory; None: any

    Raises ValueError, one line that begins with the path, for files in disorder, columns that are not there or are no
    real numbers; ImportError without pandas or GeoPandas; OSError where the file cannot be opened.
    """
    kind = Path(path).suffix.lower()
    if kind not in READ:
        raise ValueError(f"{path}: expected a name that ends in {', '.join(READ)}, got {kind or 'none'}")
    with open(path, "rb"):
        pass
    reader = {".gpkg": _geopackage, ".npy": _numpy_array, ".npz": _numpy_arrays}.get(kind, _csv)
    try:
        return reader(path, names, layer, most)
    except (ImportError, OSError, MemoryError):
        raise
    except Exception as error:  # parsers have errors of their own for bytes of unknown origin
        raise ValueError(f"{path}: {' '.join(str(error).split()):.300}") from None


def _csv(path, names, layer, most):
    pandas = extra("pandas", f"{path}")
    _check_size(UNPACKED * os.path.getsize(path), most)
    with open(path, encoding="utf-8-sig", newline="") as file:
        head = file.readline(HEAD)
    if not head.strip():
        raise ValueError("expected a line of names, then one of numbers a site, got an empty file")
    separator = max(SEPARATORS, key=head.count)
    options = {"sep": separator, "skipinitialspace": True, "encoding": "utf-8-sig", "compression": None}
    there = list(pandas.read_csv(path, nrows=0, **options).columns)
    wanted = there if names is None else list(names)
    _check_there(wanted, there, "columns")
    frame = pandas.read_csv(path, low_memory=False, **options)  # all columns: with some, longer lines pass unseen
    if not isinstance(frame.index, pandas.RangeIndex):  # taken for names of rows
        raise ValueError(f"expected {len(there)} numbers a line as there are names, got more")
    columns = {name: _numbers(pandas, frame[name], name, names is None) for name in wanted}
    return Table({name: column for name, column in columns.items() if column is not None})


def _geopackage(path, names, layer, most):
    geopandas, pyogrio = extra("geopandas", f"{path}"), extra("pyogrio", f"{path}")
    _check_size(UNPACKED * os.path.getsize(path), most)
    layers = [str(name) for name, _ in pyogrio.list_layers(path)]
    if layer is None and len(layers) != 1:
        raise ValueError(f"expected one layer, or its name, got {len(layers)}: {', '.join(layers[:LISTED])}")
    if layer is not None and layer not in layers:
        raise ValueError(f"layer {layer!r} not found; the file holds {', '.join(layers[:LISTED])}")
    frame = geopandas.read_file(path, layer=layer or layers[0])
    kinds = set() if "geometry" not in frame else set(frame.geometry.geom_type.fillna("none"))
    if kinds != {"Point"} or bool(frame.geometry.is_empty.any()):
        raise ValueError(f"expected points, one a row, got {', '.join(sorted(kinds)) or 'none'}")
    there = [name for name in frame.columns if name != "geometry"]
    wanted = there if names is None else list(names)
    _check_there(wanted, there, "columns")
    pandas = extra("pandas", f"{path}")
    columns = {name: _numbers(pandas, frame[name], name, names is None) for name in wanted}
    points = np.column_stack([frame.geometry.x, frame.geometry.y])
    return Table({name: column for name, column in columns.items() if column is not None}, points, frame.crs)


def _numpy_array(path, names, layer, most):
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, SyntaxError, OSError):
        raise ValueError("expected an array of numbers as numpy.save writes it") from None
    _check_there(names or (), [], "names, it is one array")
    _check_size(array.nbytes, most)
    points = np.array(_real(array, "the array"))
    return Table({}, points[:, None] if points.ndim == 1 else points)


def _numpy_arrays(path, names, layer, most):
    try:
        with zipfile.ZipFile(path) as archive:
            sizes = {info.filename.removesuffix(".npy"): info.file_size for info in archive.infolist()}
    except zipfile.BadZipFile:
        raise ValueError("expected arrays as numpy.savez writes them") from None
    wanted = list(sizes) if names is None else list(names)
    _check_there(wanted, list(sizes), "arrays")
    _check_size(sum(sizes[name] for name in wanted), most)
    with np.load(path, allow_pickle=False) as arrays:
        found = {name: arrays[name] for name in wanted}
    return Table({name: _real(a, name) for name, a in found.items() if names is not None or a.dtype.kind in "fiu"})


def _numbers(pandas, column, name, any_kind):
    """A column as float64 or integers; None for one of texts that was not asked for. ValueError for one that was."""
    if column.dtype.kind in "fiu":
        return column.to_numpy()
    numbers = pandas.to_numeric(column, errors="coerce")
    bad = np.flatnonzero((numbers.isna() & column.notna()).to_numpy())
    if column.dtype.kind == "b" or len(bad):
        if any_kind:
            return None
        text = column.iloc[int(bad[0]) if len(bad) else 0]
        row = f" in row {int(bad[0])}" if len(bad) else ""
        raise ValueError(f"{name}: expected real numbers, got {str(text)!r:.40}{row}")
    return numbers.to_numpy(np.float64, na_value=np.nan)


def _real(array, name):
    if array.dtype.kind not in "fiu" or array.ndim not in (1, 2):
        raise ValueError(f"{name}: expected real numbers of shape (n,) or (n, dim), got {array.dtype} {array.shape}")
    return array


def _check_there(wanted, there, what):
    for name in wanted:
        if name not in there:
            more = " and more" if len(there) > LISTED else ""
            listed = ", ".join(map(str, there[:LISTED])) or "none"
            raise ValueError(f"{name!r} not found; {what}: {listed}{more}")


def _check_size(size, most):
    if most is not None and size > most:
        raise ValueError(f"expected a table that fits in {readable(most)}, got up to {readable(size)} of it")
