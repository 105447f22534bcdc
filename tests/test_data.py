"""The data sets in data/ are what their README says, and their scripts make them."""

import importlib.util
import json
from pathlib import Path

import h5py
import numpy as np
import pytest

DATA = Path(__file__).parents[1] / "data"


def script(name):
    spec = importlib.util.spec_from_file_location(name, DATA / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read(name):
    with h5py.File(DATA / name) as file:
        return {key: file[key][()] for key in file}, dict(file.attrs), {key: dict(file[key].attrs) for key in file}


@pytest.mark.parametrize("name", ["jacksboro.h5", "earthquakes.h5"])
def test_every_file_tells_source_licence_script_and_units(name):
    columns, attributes, units = read(name)
    assert {"title", "source", "licence", "changes", "script"} <= attributes.keys()
    assert (DATA.parent / attributes["script"]).is_file()
    assert all("units" in u for u in units.values())
    assert all(np.isfinite(column).all() for column in columns.values())
    assert len({len(column) for column in columns.values()}) == 1
    assert (DATA / name).stat().st_size < 2e6


def test_jacksboro_is_the_raster_in_metres():
    columns, _, _ = read("jacksboro.h5")
    points, elevation = columns["points"], columns["elevation"]
    assert points.shape == (344 * 403, 2) and points.dtype == np.float64
    assert (elevation.min(), elevation.max()) == (236, 1076)
    assert len(np.unique(points, axis=0)) == len(points)
    np.testing.assert_allclose(points.max(axis=0), [14989.204, 15859.458])
    np.testing.assert_allclose(points.min(axis=0), -points.max(axis=0))


def test_jacksboro_again_from_matplotlib():
    pytest.importorskip("matplotlib")
    columns, attributes, _ = read("jacksboro.h5")
    points, elevation, centre = script("make_jacksboro").jacksboro()
    np.testing.assert_array_equal(columns["points"], points)
    np.testing.assert_array_equal(columns["elevation"], elevation)
    np.testing.assert_array_equal(attributes["centre"], centre)


def test_jacksboro_distances_agree_with_the_sphere():
    # the WGS84 radii here differ from 6371 km by less than 0.3 %, the projection adds less than 0.2 %
    pytest.importorskip("matplotlib")
    from h2gpu.covariance.sphere import Sphere

    module = script("make_jacksboro")
    longitude, latitude, _ = module.raster()
    lonlat = np.stack(np.meshgrid(longitude[::50], latitude[::50]), axis=-1).reshape(-1, 2)
    east, north, _ = module.project(longitude, latitude)
    plane = np.stack(np.meshgrid(east[::50], north[::50]), axis=-1).reshape(-1, 2)
    space = Sphere(6371e3).embed(lonlat)
    on_plane = np.linalg.norm(plane[:, None] - plane, axis=-1)
    on_sphere = np.linalg.norm(space[:, None] - space, axis=-1)
    np.testing.assert_allclose(on_plane, on_sphere, rtol=5e-3, atol=1e-3)


def test_earthquakes_lie_at_their_depth_below_their_place():
    columns, _, _ = read("earthquakes.h5")
    points, lonlat, depth = columns["points"], columns["lonlat"], columns["depth"]
    assert points.shape == (1707, 3) and points.dtype == np.float64
    np.testing.assert_allclose(6371.0 - np.linalg.norm(points, axis=1), depth, atol=1e-9)
    np.testing.assert_allclose(np.rad2deg(np.arctan2(points[:, 1], points[:, 0])), lonlat[:, 0], atol=1e-9)
    np.testing.assert_allclose(np.rad2deg(np.arcsin(points[:, 2] / (6371.0 - depth))), lonlat[:, 1], atol=1e-9)
    assert -3 < depth.min() < 0 and 570 < depth.max() < 580
    assert columns["magnitude"].max() < 10
    assert len(np.unique(points, axis=0)) == len(points) - 1  # one pair of duplicates


def test_earthquakes_script_reads_geojson_and_writes_the_file(tmp_path, capsys):
    columns, _, _ = read("earthquakes.h5")
    features = [
        {"geometry": {"coordinates": [*map(float, ll), float(d)]}, "properties": {"mag": float(m)}}
        for ll, d, m in zip(columns["lonlat"], columns["depth"], columns["magnitude"])
    ]
    source, path = tmp_path / "earthquakes.json", tmp_path / "earthquakes.h5"
    source.write_text(json.dumps({"features": features}), encoding="utf-8")
    script("make_earthquakes").main(source, path)
    assert "1707 events" in capsys.readouterr().out
    with h5py.File(path) as again:
        for name, column in columns.items():
            np.testing.assert_allclose(again[name][()], column, rtol=1e-15, atol=1e-12)


def test_scripts_say_what_is_missing(tmp_path, monkeypatch):
    module = script("make_earthquakes")
    with pytest.raises(SystemExit, match="no such file; give the path"):
        module.main(tmp_path / "absent.json")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit, match=r"npm pack .* failed .*install npm"):
        module.fetch()
    pytest.importorskip("matplotlib")
    module = script("make_jacksboro")
    monkeypatch.setattr(module, "NAME", "absent.npz")
    with pytest.raises(SystemExit, match=r"absent\.npz: not found .*install matplotlib"):
        module.raster()
