"""Make earthquakes.h5: a week of earthquakes as points in three dimensions.

    (x, y, z) = (R − depth) (cos φ cos λ, cos φ sin λ, sin φ),   R = 6371 km

λ, φ are longitude and latitude; the axes point to (0°, 0°), to 90° east and to the north pole.

    python data/make_earthquakes.py [EARTHQUAKES.json [OUTPUT.h5]]

Without arguments it fetches the npm package vega-datasets with `npm pack`.
"""

import io
import json
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import h5py
import numpy as np

PACKAGE = "vega-datasets@3.2.1"
MEMBER = "package/data/earthquakes.json"
RADIUS = 6371.0  # kilometres

ATTRIBUTES = {
    "title": "All earthquakes of a week, 31 January to 7 February 2018: 1707 events of the USGS feed",
    "source": f"USGS Earthquake Hazards Program, feed all_week.geojson, from the npm package {PACKAGE}",
    "licence": "U.S. Public Domain (https://www.usgs.gov/information-policies-and-instructions/copyrights-and-credits)",
    "changes": "coordinates and magnitude only; points computed on a sphere of 6371 km",
    "script": "data/make_earthquakes.py",
}


def fetch():
    """The text of earthquakes.json from the npm package. Raises SystemExit with a message where that fails."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            subprocess.run(["npm", "pack", PACKAGE], cwd=folder, check=True, capture_output=True, text=True)
        except (OSError, subprocess.CalledProcessError) as error:
            reason = getattr(error, "stderr", None) or error
            sys.exit(f"npm pack {PACKAGE} failed ({reason}); install npm, or give the path of earthquakes.json")
        with tarfile.open(next(Path(folder).glob("*.tgz"))) as package:
            return io.TextIOWrapper(package.extractfile(MEMBER), encoding="utf-8").read()


def events(text):
    """Longitude and latitude (n, 2) in degrees, depth (n,) in kilometres and magnitude (n,) of a GeoJSON text."""
    features = json.loads(text)["features"]
    coordinates = np.array([event["geometry"]["coordinates"] for event in features], dtype=np.float64)
    magnitude = np.array([event["properties"]["mag"] for event in features], dtype=np.float64)
    return coordinates[:, :2], coordinates[:, 2], magnitude


def in_space(lonlat, depth):
    """Points (n, 3) in kilometres from the Earth's centre."""
    lon, lat = np.deg2rad(lonlat).T
    direction = np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=1)
    return (RADIUS - depth)[:, None] * direction


def main(source=None, path=None):
    if source is not None and not Path(source).is_file():
        sys.exit(f"{source}: no such file; give the path of earthquakes.json, or nothing to fetch it with npm")
    path = path or Path(__file__).with_name("earthquakes.h5")
    lonlat, depth, magnitude = events(Path(source).read_text(encoding="utf-8") if source else fetch())
    columns = {
        "points": (in_space(lonlat, depth), "kilometres from the Earth's centre"),
        "lonlat": (lonlat, "degrees: longitude, latitude"),
        "depth": (depth, "kilometres below sea level"),
        "magnitude": (magnitude, "as reported, of several scales"),
    }
    with h5py.File(path, "w") as file:
        file.attrs.update(ATTRIBUTES)
        for name, (data, units) in columns.items():
            file.create_dataset(name, data=data, compression="gzip", compression_opts=9, shuffle=True)
            file[name].attrs["units"] = units
    print(f"{path}: {len(depth)} events, {Path(path).stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main(*sys.argv[1:3])
