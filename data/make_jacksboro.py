"""Make jacksboro.h5: the elevations of matplotlib's sample data, on a plane in metres.

    x = N(φ₀) cos φ₀ (λ − λ₀),   y = M(φ₀) (φ − φ₀)

λ, φ are longitude and latitude in radians, (λ₀, φ₀) the centre of the model; N and M are the radii of curvature of
the WGS84 ellipsoid in the prime vertical and along the meridian (Snyder, Map Projections: A Working Manual, USGS
Professional Paper 1395 (1987), equations 4-18 to 4-20). Within the model this equirectangular projection stretches
no east-west distance by more than 0.19 % and no north-south distance by more than 0.003 %, and the raster stays a
raster. Coordinates are rounded to millimetres.

    python data/make_jacksboro.py [OUTPUT.h5]        needs matplotlib
"""

import sys
from pathlib import Path

import h5py
import numpy as np

NAME = "jacksboro_fault_dem.npz"
SEMI_MAJOR_AXIS = 6378137.0  # WGS84, metres
FLATTENING = 1 / 298.257223563

ATTRIBUTES = {
    "title": "Elevations around the Jacksboro fault, Tennessee, USA: 344 × 403 raster of 3 arc seconds",
    "source": f"matplotlib sample data, {NAME}",
    "licence": "matplotlib licence (PSF style); Copyright (c) 2012- Matplotlib Development Team; All Rights Reserved",
    "changes": "raster cells as a list of points; longitude and latitude projected onto a plane",
    "projection": "equirectangular about the centre on WGS84: x = N cos(lat0) (lon - lon0), y = M (lat - lat0)",
    "script": "data/make_jacksboro.py",
}


def raster():
    """Longitudes (403,) and latitudes (344,) of the cell centres in degrees, elevation (344, 403) in metres.

    Row 0 is the northernmost. Raises SystemExit with a message where matplotlib or its sample is missing.
    """
    try:
        from matplotlib import cbook

        dem = cbook.get_sample_data(NAME)
    except (ImportError, OSError) as error:
        sys.exit(f"{NAME}: not found ({error}); install matplotlib, whose sample data holds it")
    rows, columns = dem["elevation"].shape
    # xmin … ymax are the outer edges: (xmax − xmin)/dx is the number of columns. ymin is the northern edge.
    longitude = dem["xmin"] + (dem["xmax"] - dem["xmin"]) * (np.arange(columns) + 0.5) / columns
    latitude = dem["ymin"] + (dem["ymax"] - dem["ymin"]) * (np.arange(rows) + 0.5) / rows
    return longitude, latitude, dem["elevation"]


def project(longitude, latitude):
    """Metres east and north of the centre, rounded to millimetres, and the centre (lon₀, lat₀) in degrees."""
    centre = (longitude[0] + longitude[-1]) / 2, (latitude[0] + latitude[-1]) / 2
    phi = np.deg2rad(centre[1])
    e2 = FLATTENING * (2 - FLATTENING)
    root = np.sqrt(1 - e2 * np.sin(phi) ** 2)
    N, M = SEMI_MAJOR_AXIS / root, SEMI_MAJOR_AXIS * (1 - e2) / root**3
    east = N * np.cos(phi) * np.deg2rad(longitude - centre[0])
    north = M * np.deg2rad(latitude - centre[1])
    return east.round(3), north.round(3), centre


def jacksboro():
    """Points (138632, 2) in metres, elevations (138632,) in metres and the centre in degrees, row by row."""
    longitude, latitude, elevation = raster()
    east, north, centre = project(longitude, latitude)
    points = np.stack(np.meshgrid(east, north), axis=-1).reshape(-1, 2)
    return points, elevation.reshape(-1), centre


def main(path):
    points, elevation, centre = jacksboro()
    squeeze = {"compression": "gzip", "compression_opts": 9, "shuffle": True}
    with h5py.File(path, "w") as file:
        file.attrs.update(ATTRIBUTES)
        file.attrs["centre"] = centre
        # one column a chunk: neighbours in it are alike, which is what gzip can squeeze
        file.create_dataset("points", data=points, chunks=(len(points), 1), **squeeze)
        file.create_dataset("elevation", data=elevation, **squeeze)
        file["points"].attrs.update(units="metres", columns="east, north of the centre")
        file["elevation"].attrs.update(units="metres")
    print(f"{path}: {len(points)} points, {Path(path).stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main(*sys.argv[1:2] or [Path(__file__).with_name("jacksboro.h5")])
