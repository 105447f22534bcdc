"""Files of others: what is read is what was written by their libraries, and what is written is read back by them."""

import sys
import zipfile

import numpy as np
import pytest

from h2gpu.storage.exchange import check_map, is_map, is_table, maps, read_table, write_map

X = np.random.default_rng(0).random((40, 2)) * 1000
VALUE = np.sin(X[:, 0])
GRID = np.stack(np.meshgrid(100 + 5.0 * np.arange(7), -3 + 2.0 * np.arange(4)), axis=-1).reshape(-1, 2)


def csv(path, text):
    path.write_text(text, encoding="utf-8")
    return path


# Read


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_csv_holds_its_numbers_to_the_last_digit(tmp_path, separator):
    pytest.importorskip("pandas")
    rows = [separator.join(map(repr, (*map(float, p), float(v), 7))) for p, v in zip(X, VALUE)]
    path = csv(tmp_path / "a.csv", "\ufeff" + separator.join(["x", "y", "v", "k"]) + "\n" + "\n".join(rows))
    table = read_table(path)
    np.testing.assert_allclose(np.column_stack([table["x"], table["y"], table["v"]]), np.c_[X, VALUE], rtol=4e-16)
    assert (table["k"] == 7).all() and table.points is None and table.crs is None
    assert list(read_table(path, ["v"]).columns) == ["v"]


def test_texts_are_left_out_and_gaps_are_nan(tmp_path):
    pytest.importorskip("pandas")
    table = read_table(csv(tmp_path / "a.csv", 'name,x,v\n"a, b",1,\nc,2,5\n'))
    assert list(table.columns) == ["x", "v"] and np.isnan(table["v"][0]) and table["v"][1] == 5


def test_geopackages_keep_points_columns_and_reference_system(tmp_path):
    geopandas = pytest.importorskip("geopandas")
    path = tmp_path / "a.gpkg"
    frame = geopandas.GeoDataFrame({"v": VALUE, "name": "a"}, geometry=geopandas.points_from_xy(*X.T), crs=32632)
    frame.to_file(path, layer="one")
    table = read_table(path)
    np.testing.assert_array_equal(table.points, X)
    np.testing.assert_array_equal(table["v"], VALUE)
    assert table.crs.to_epsg() == 32632 and list(table.columns) == ["v"]
    frame[:9].to_file(path, layer="two")
    assert len(read_table(path, layer="two").points) == 9
    for layer, words in (
        (None, "expected one layer, or its name, got 2: one, two"),
        ("three", "layer 'three' not found"),
    ):
        with pytest.raises(ValueError, match=words):
            read_table(path, layer=layer)
    areas = tmp_path / "areas.gpkg"
    frame.set_geometry(frame.buffer(1)).to_file(areas)
    with pytest.raises(ValueError, match="expected points, one a row, got Polygon"):
        read_table(areas)
    with pytest.raises(ValueError, match="name: expected real numbers, got 'a' in row 0"):
        read_table(path, ["name"], layer="one")


def test_arrays_of_numpy(tmp_path):
    np.save(tmp_path / "a.npy", X)
    np.savez(tmp_path / "a.npz", points=X, v=VALUE, names=np.array(["a"]))
    np.testing.assert_array_equal(read_table(tmp_path / "a.npy").points, X)
    table = read_table(tmp_path / "a.npz")
    np.testing.assert_array_equal(table["points"], X)
    assert list(table.columns) == ["points", "v"]
    np.save(tmp_path / "line.npy", VALUE)
    assert read_table(tmp_path / "line.npy").points.shape == (40, 1)


@pytest.mark.parametrize("name, text, words", [
    ("a.csv", "x,y\n1,2\n3,b\n", r"a\.csv: y: expected real numbers, got 'b' in row 1"),
    ("a.csv", "x,y\n1,True\n2,False\n", "y: expected real numbers, got 'True'"),
    ("a.csv", "x,z\n1,2\n", "'y' not found; columns: x, z"),
    ("a.csv", "x,y\n1,2\n1,2,3\n", "a.csv: .*Expected 2 fields in line 3, saw 3"),
    ("a.csv", "x,y\n1,2,3\n1,2,3\n", "a.csv: .*"),
    ("a.csv", "", "expected a line of names"),
    ("a.gpkg", "x,y\n", "a.gpkg: .*not recognized"),
    ("a.npy", "x,y\n", "a.npy: expected an array of numbers as numpy.save"),
    ("a.npz", "x,y\n", "a.npz: expected arrays as numpy.savez"),
    ("a.txt", "x,y\n", "expected a name that ends in .csv"),
])  # fmt: skip
def test_files_in_disorder_are_told_in_one_line(tmp_path, name, text, words):
    pytest.importorskip("geopandas")
    with pytest.raises(ValueError, match=words) as found:
        read_table(csv(tmp_path / name, text), ["x", "y"])
    assert "\n" not in str(found.value) and str(tmp_path) in str(found.value)


def test_pickles_are_not_opened_and_sizes_are_compared_first(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{}], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "a.npz", points=np.array([{}], dtype=object))
    for name in ("a.npy", "a.npz"):
        with pytest.raises(ValueError, match=r"expected an array of numbers|allow_pickle"):
            read_table(tmp_path / name, ["points"] if name == "a.npz" else None)
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("points.npy", bytes(10**7))
    np.save(tmp_path / "b.npy", np.zeros((10**5, 2)))
    for name in ("bomb.npz", "b.npy"):
        with pytest.raises(ValueError, match="expected a table that fits in 100 kB, got up to"):
            read_table(tmp_path / name, most=10**5)
    with pytest.raises(FileNotFoundError):
        read_table(tmp_path / "none.csv")


# Write


def test_csv_is_read_back(tmp_path):
    pandas = pytest.importorskip("pandas")
    write_map(tmp_path / "m.csv", X, {"mean": VALUE, "std": VALUE**2})
    frame = pandas.read_csv(tmp_path / "m.csv")
    assert list(frame.columns) == ["x", "y", "mean", "std"]
    np.testing.assert_allclose(frame.to_numpy(), np.c_[X, VALUE, VALUE**2], rtol=4e-16)


def test_coordinates_have_the_names_that_are_given(tmp_path):
    xarray, pandas = pytest.importorskip("xarray"), pytest.importorskip("pandas")
    pytest.importorskip("h5netcdf")
    for name in ("m.csv", "m.nc"):
        write_map(tmp_path / name, X, {"mean": VALUE}, names=("east", "day"))
    assert list(pandas.read_csv(tmp_path / "m.csv").columns) == ["east", "day", "mean"]
    with xarray.open_dataset(tmp_path / "m.nc") as data:
        np.testing.assert_array_equal(np.column_stack([data["east"], data["day"]]), X)
    with pytest.raises(ValueError, match="names: expected 2, one a coordinate, got x"):
        write_map(tmp_path / "m.csv", X, {"mean": VALUE}, names=("x",))


def test_geotiff_has_pixels_around_the_points(tmp_path):
    rasterio = pytest.importorskip("rasterio")
    kept = np.arange(len(GRID)) != 9  # a gap
    order = np.random.default_rng(0).permutation(np.flatnonzero(kept))
    values = 10.0 * GRID[:, 0] + GRID[:, 1]
    write_map(tmp_path / "m.tif", GRID[order], {"mean": values[order], "std": -values[order]}, "EPSG:32632", {"n": 3})
    with rasterio.open(tmp_path / "m.tif") as file:
        assert file.descriptions == ("mean", "std") and file.crs.to_epsg() == 32632 and file.tags()["n"] == "3"
        left, top, step = file.transform.c, file.transform.f, (file.transform.a, -file.transform.e)
        rows, columns = ((top - GRID[:, 1]) // step[1]).astype(int), ((GRID[:, 0] - left) // step[0]).astype(int)
        at = file.read()[:, rows, columns].T
        np.testing.assert_array_equal(at[kept], np.c_[values, -values][kept])
        assert np.isnan(at[9]).all() and step == (5.0, 2.0)
        assert (left, top) == (97.5, 4.0)  # half a pixel north-west of the north-western point


def test_netcdf_keeps_grids_scattered_points_and_the_reference_system(tmp_path):
    xarray, pyproj = pytest.importorskip("xarray"), pytest.importorskip("pyproj")
    pytest.importorskip("h5netcdf")
    values = 10.0 * GRID[:, 0] + GRID[:, 1]
    write_map(tmp_path / "m.nc", GRID, {"mean": values}, pyproj.CRS(4326), {"source": "a"})
    with xarray.open_dataset(tmp_path / "m.nc") as data:
        assert data["mean"].dims == ("lat", "lon") and data.attrs["source"] == "a"
        np.testing.assert_allclose(data["mean"].values.ravel(), values)
        assert data["mean"].sel(lon=105.0, lat=1.0) == 1051.0
        assert pyproj.CRS.from_cf(data["spatial_ref"].attrs).to_epsg() == 4326
    write_map(tmp_path / "p.nc", np.c_[X, VALUE], {"mean": VALUE})
    with xarray.open_dataset(tmp_path / "p.nc") as data:
        assert data["mean"].dims == ("point",)
        np.testing.assert_array_equal(np.column_stack([data["x"], data["y"], data["z"]]), np.c_[X, VALUE])


def test_grids_are_seen_through_rounding_and_nothing_else_is_one():
    noisy = GRID + 1e-9 * np.random.default_rng(0).standard_normal(GRID.shape)
    grid = maps.Grid.of(noisy)
    assert grid.spacing == pytest.approx((5, 2)) and len(grid.x) == 7 and len(grid.y) == 4
    row = maps.Grid.of(GRID[:7])
    assert len(row.y) == 1 and row.spacing == (5.0, 5.0)
    assert maps.Grid.of(X) is None and maps.Grid.of(GRID[:1]) is None and maps.Grid.of(GRID[[0, 0, 1]]) is None
    assert maps.Grid.of(np.r_[GRID, GRID[:3] + 0.4]) is None and maps.Grid.of(np.c_[GRID, GRID]) is None
    assert maps.Grid.of(np.array([[0.0, 0.0], [1.0, 1.0], [1e6, 1e6]])) is None  # a grid of 10¹² pixels


def test_what_cannot_be_written_is_refused_and_nothing_is_left(tmp_path, monkeypatch):
    pytest.importorskip("rasterio")
    for name, points, columns, words in (
        ("m.tif", X, {"v": VALUE}, "expected points on a regular grid in 2D.*write .csv or .nc"),
        ("m.png", X, {"v": VALUE}, "expected a name that ends in .csv, .tif"),
        ("m.csv", X, {"v": VALUE[:3]}, r"v: expected 40 numbers as there are points, got shape \(3,\)"),
        ("m.csv", X[0], {"v": VALUE}, r"points: expected finite numbers of shape \(n, dim\)"),
        ("m.csv", X * np.nan, {"v": VALUE}, "points: expected finite"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            write_map(tmp_path / name, points, columns)
    old = tmp_path / "m.csv"
    old.write_bytes(b"old")
    monkeypatch.setattr(np, "savetxt", lambda *a, **k: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match=r"No space left.*m\.csv"):
        write_map(old, X, {"v": VALUE})
    assert old.read_bytes() == b"old" and [p.name for p in tmp_path.iterdir()] == ["m.csv"]
    assert is_map("a.NC") and not is_map("a.h5") and is_table("a.GPKG") and not is_table("a.h5")


@pytest.mark.parametrize("module, call", [
    ("pandas", lambda path: read_table(path / "a.csv")), ("geopandas", lambda path: read_table(path / "a.gpkg")),
    ("rasterio", lambda path: check_map(path / "a.tif")), ("xarray", lambda path: check_map(path / "a.nc")),
])  # fmt: skip
def test_missing_packages_are_named(tmp_path, monkeypatch, module, call):
    for name in ("a.csv", "a.gpkg"):
        (tmp_path / name).write_text("x,y\n1,2\n")
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"needs {module}: pip install 'h2gpu\[files\]'"):
        call(tmp_path)
