"""Maps of predictions as files of others: CSV, GeoTIFF and NetCDF, whole or not at all.

    x_i = x_0 + i Δx,  y_j = y_0 + j Δy     points on a grid become rows and columns; gaps in it are NaN

GeoTIFF: pixels around the points, the first row is the northernmost, a band a column. NetCDF: CF conventions, the
reference system in `spatial_ref`. Format: OGC GeoTIFF 1.1; CF-1.11.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from h2gpu.storage.exchange.extras import extra
from h2gpu.storage.whole_file import whole_file

WRITTEN = (".csv", ".tif", ".tiff", ".nc")
NEEDS = {".tif": ("rasterio",), ".tiff": ("rasterio",), ".nc": ("xarray", "h5netcdf"), ".csv": ()}
SAME = 1e-6  # of the extent: coordinates nearer than that are the same line of a grid
OFF = 1e-3  # of the spacing: how far a point may lie off its line
EMPTIEST = 20  # pixels a point: a sparser grid is none
AXES = ("x", "y", "z")


def is_map(path):
    """Whether the name of a file is that of a map which `write_map` writes."""
    return Path(path).suffix.lower() in WRITTEN


def check_map(path, points=None):
    """What `write_map` would refuse: ImportError for packages that are missing, ValueError for points (n, dim) that are
    on no grid where the format needs one."""
    kind = _kind(path)
    for name in NEEDS[kind]:
        extra(name, f"{path}")
    if points is not None and kind in (".tif", ".tiff") and Grid.of(points) is None:
        raise ValueError(
            f"{path}: expected points on a regular grid in 2D, as GeoTIFF holds pixels, got {len(points)} on none; "
            "write .csv or .nc"
        )


def write_map(path, points, columns, crs=None, attributes=None, names=None):
    """Write numbers at points, the format by the name: .csv, .tif or .nc. Whole or not at all.

    points       (n, dim)
    columns      {name: (n,)}, such as {"mean": mean, "std": std}
    crs          coordinate reference system: what rasterio and pyproj take, such as "EPSG:32632" or a pyproj.CRS. CSV
                 has no place for it
    attributes   {name: number or text} that GeoTIFF and NetCDF keep
    names        of the coordinates in CSV and NetCDF; default: lon and lat where crs is geographic, else x, y, z

    Raises ValueError for other shapes and names, and for GeoTIFF of points on no grid; ImportError where a package is
    missing; OSError when the disk refuses.
    """
    points = np.asarray(points, np.float64)
    if points.ndim != 2 or not len(points) or not np.isfinite(points).all():
        raise ValueError(f"points: expected finite numbers of shape (n, dim), got {points.shape}")
    columns = {name: np.asarray(values, np.float64) for name, values in columns.items()}
    for name, values in columns.items():
        if values.shape != (len(points),):
            raise ValueError(f"{name}: expected {len(points)} numbers as there are points, got shape {values.shape}")
    names = _names(points.shape[1], crs) if names is None else tuple(map(str, names))
    if len(names) != points.shape[1]:
        raise ValueError(f"names: expected {points.shape[1]}, one a coordinate, got {', '.join(names)}")
    check_map(path, points)
    write = {".csv": _csv, ".nc": _netcdf}.get(_kind(path), _geotiff)
    with whole_file(path) as temporary:
        write(temporary, points, columns, crs, attributes or {}, names)


@dataclass(frozen=True, eq=False)
class Grid:
    """Points on a grid.

    x, y         ascending coordinates of its columns and rows, equally spaced
    column, row  (n,) of the points
    """

    x: np.ndarray
    y: np.ndarray
    column: np.ndarray
    row: np.ndarray

    @classmethod
    def of(cls, points):
        """The Grid of points (n, 2); None where they are on none, or two on one place of it."""
        points = np.asarray(points, np.float64)
        if points.ndim != 2 or points.shape[1] != 2 or len(points) < 2:
            return None
        lines = [_lines(values) for values in points.T]
        spacings = [spacing for _, _, spacing in lines if spacing]
        if not spacings or any(spacing is None for _, _, spacing in lines):
            return None
        (x, column, dx), (y, row, dy) = lines
        if len(x) * len(y) > EMPTIEST * len(points) or len(np.unique(row * len(x) + column)) < len(points):
            return None
        x, y = (x[0] + np.arange(len(x)) * (dx or dy)), (y[0] + np.arange(len(y)) * (dy or dx))
        return cls(x, y, column, row)

    @property
    def spacing(self):
        """(Δx, Δy): a single row or column has the other's."""
        steps = [a[1] - a[0] if len(a) > 1 else None for a in (self.x, self.y)]
        return steps[0] or steps[1], steps[1] or steps[0]

    def image(self, values):
        """(rows, columns) of values (n,), NaN in gaps, the first row with the least y."""
        image = np.full((len(self.y), len(self.x)), np.nan)
        image[self.row, self.column] = values
        return image


def _lines(values):
    """Equally spaced coordinates, the index of each value, and the spacing: 0 for one line, None for no grid."""
    low, extent = values.min(), np.ptp(values)
    if extent == 0:
        return np.array([low]), np.zeros(len(values), np.int64), 0.0
    steps = np.diff(np.sort(values))
    steps = steps[steps > SAME * extent]
    count = round(extent / float(steps.min()))
    spacing = extent / count
    index = np.rint((values - low) / spacing).astype(np.int64)
    if count > EMPTIEST * len(values) or np.abs(values - low - index * spacing).max() > OFF * spacing:
        return np.array([low]), index, None
    return low + spacing * np.arange(count + 1), index, spacing


def _names(dim, crs):
    """Of the coordinates."""
    geographic = bool(getattr(crs, "is_geographic", False))
    return ("lon", "lat") if geographic and dim == 2 else AXES[:dim] if dim <= 3 else [f"x{k}" for k in range(dim)]


def _csv(path, points, columns, crs, attributes, names):
    head = ",".join([*names, *columns])
    np.savetxt(
        path, np.column_stack([points, *columns.values()]), "%.17g", ",", header=head, comments="", encoding="utf-8"
    )


def _geotiff(path, points, columns, crs, attributes, names):
    rasterio = extra("rasterio", "GeoTIFF")
    grid = Grid.of(points)
    dx, dy = grid.spacing
    transform = rasterio.Affine(dx, 0.0, grid.x[0] - dx / 2, 0.0, -dy, grid.y[-1] + dy / 2)
    shape = {"height": len(grid.y), "width": len(grid.x), "count": len(columns), "dtype": "float64"}
    crs = crs.to_wkt() if hasattr(crs, "to_wkt") else crs
    options = {"driver": "GTiff", "nodata": np.nan, "compress": "deflate", "crs": crs, "transform": transform}
    with rasterio.open(path, "w", **shape, **options) as file:
        file.update_tags(**{name: str(value) for name, value in attributes.items()})
        for band, (name, values) in enumerate(columns.items(), 1):
            file.write(grid.image(values)[::-1], band)
            file.set_band_description(band, name)


def _netcdf(path, points, columns, crs, attributes, names):
    xarray, grid = extra("xarray", "NetCDF"), Grid.of(points)
    if grid is None:
        data = {name: ("point", values) for name, values in columns.items()}
        coordinates = {name: ("point", values) for name, values in zip(names, points.T)}
    else:
        data = {name: (names[::-1], grid.image(values)) for name, values in columns.items()}
        coordinates = {names[0]: grid.x, names[1]: grid.y}
    dataset = xarray.Dataset(data, coordinates, {**attributes, "Conventions": "CF-1.11"})
    if crs is not None:
        described = extra("pyproj", "NetCDF").CRS.from_user_input(crs)
        dataset = dataset.assign_coords(spatial_ref=((), 0, described.to_cf()))
        for name in columns:
            dataset[name].attrs["grid_mapping"] = "spatial_ref"
    dataset.to_netcdf(path, engine="h5netcdf")


def _kind(path):
    kind = Path(path).suffix.lower()
    if kind not in WRITTEN:
        raise ValueError(f"{path}: expected a name that ends in {', '.join(WRITTEN)}, got {kind or 'none'}")
    return kind
