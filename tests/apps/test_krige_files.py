"""h2krige and h2compress on CSV, GeoPackage and NumPy files: as from HDF5."""

import h5py
import numpy as np
import pytest

from h2gpu.apps import h2compress, h2krige
from h2gpu.covariance import Matern
from h2gpu.statistics import Kriging
from h2gpu.storage import load

pandas, geopandas, rasterio = (pytest.importorskip(name) for name in ("pandas", "geopandas", "rasterio"))
X = np.random.default_rng(0).random((90, 2)) * 100
HEIGHT, GRID = X[:, 0] * X[:, 1] / 1000, np.stack(np.meshgrid(*[np.arange(5.0, 100, 10)] * 2), -1).reshape(-1, 2)
RAIN = np.sin(X[:, 0] / 20) + 2 * HEIGHT
GIVEN = [
    "--variance",
    "1",
    "--length-scale",
    "30",
    "--covariance",
    "matern",
    "--nugget",
    "0.1",
    "--values",
    "rain",
    "--quiet",
]
MODEL = Matern(1.0, 30.0, 1.5)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Sites and targets in every format that is read."""
    monkeypatch.chdir(tmp_path)
    pandas.DataFrame({"x": X[:, 0], "y": X[:, 1], "rain": RAIN, "height": HEIGHT}).to_csv("s.csv", index=False)
    lifted = {"x": GRID[:, 0], "y": GRID[:, 1], "height": GRID.prod(axis=1) / 1000}
    pandas.DataFrame(lifted).to_csv("t.csv", index=False)
    geometry = geopandas.points_from_xy(*X.T)
    geopandas.GeoDataFrame({"rain": RAIN, "height": HEIGHT}, geometry=geometry, crs=32632).to_file("s.gpkg")
    np.savez("s.npz", points=X, rain=RAIN, height=HEIGHT)
    np.save("t.npy", GRID)
    return tmp_path


def krige(sites, targets, out, *more):
    return h2krige.main([sites, "--targets", targets, "-o", out, *GIVEN, *more])


@pytest.mark.parametrize("sites", ["s.csv", "s.gpkg", "s.npz"])
@pytest.mark.parametrize("targets", ["t.csv", "t.npy"])
def test_every_format_gives_the_same_predictions(sites, targets):
    assert krige(sites, targets, "m.h5") == 0
    mean, std = Kriging(MODEL, 0.1).fit(X, RAIN).predict(GRID, return_std=True)
    with h5py.File("m.h5") as file:
        np.testing.assert_allclose(file["mean"], mean, rtol=1e-9)
        np.testing.assert_allclose(file["std"], std, rtol=1e-9)
        assert ("crs" in file.attrs) == (sites == "s.gpkg")
    assert krige(sites, targets, "m.csv") == 0
    np.testing.assert_allclose(pandas.read_csv("m.csv")["mean"], mean, rtol=1e-9)
    assert krige(sites, targets, "m.tif") == 0
    with rasterio.open("m.tif") as file:
        np.testing.assert_allclose(file.read(1)[::-1].ravel(), mean, rtol=1e-9)
        assert (file.crs is not None) == (sites == "s.gpkg")


def test_columns_of_coordinates_and_of_time_keep_their_names(capsys):
    day = np.arange(90.0)
    pandas.DataFrame({"east": X[:, 0], "north": X[:, 1], "day": day, "rain": RAIN}).to_csv("d.csv", index=False)
    time, own = ["--time", "day", "--time-scale", "9"], ["--points", "east,north"]
    assert krige("d.csv", "d.csv", "o.csv", *time, *own) == 0
    assert list(pandas.read_csv("o.csv").columns)[:3] == ["east", "north", "day"]
    pandas.read_csv("d.csv").rename(columns={"east": "x", "north": "y"}).to_csv("e.csv", index=False)
    assert krige("e.csv", "e.csv", "o.csv", *time) == 0
    assert list(pandas.read_csv("o.csv").columns)[:3] == ["x", "y", "day"]
    np.savez("d.npz", points=X, day=day, rain=RAIN)
    assert krige("d.npz", "d.npz", "o.csv", *time) == 0
    assert list(pandas.read_csv("o.csv").columns)[:3] == ["x", "y", "day"]


def test_maps_say_what_their_axes_and_colours_are(monkeypatch):
    figure = pytest.importorskip("matplotlib.figure")
    seen = []
    monkeypatch.setattr(figure.Figure, "savefig", lambda self, *_, **__: seen.append(list(self.axes)))
    pandas.read_csv("s.csv").rename(columns={"x": "east", "y": "north"}).to_csv("e.csv", index=False)
    pandas.DataFrame(GRID / 10, columns=["lon", "lat"]).to_csv("ll.csv", index=False)
    sphere = ["--points", "x,y", "--target-points", "lon,lat", "--sphere"]
    for sites, targets, more in (
        ("s.gpkg", "t.csv", []),
        ("e.csv", "e.csv", ["--points", "east,north"]),
        ("s.csv", "ll.csv", sphere),
    ):
        pandas.read_csv("s.csv").assign(x=X[:, 0] / 2, y=X[:, 1] / 2).to_csv("s.csv", index=False)
        assert krige(sites, targets, "o.h5", "--plot", "o.png", *more) == 0
    told = [{ax.get_xlabel() for ax in axes if ax.get_xlabel()} for axes in seen]
    assert told == [{"x [metre]"}, {"east"}, {"longitude [°]"}]
    assert {ax.get_ylabel() for ax in seen[0]} == {"y [metre]", "rain", ""}


def test_shapes_are_fitted_by_one_option_which_the_command_names(capsys):
    fit = ["--values", "rain", "--fit", "--covariance", "rational-quadratic"]
    assert h2krige.main(["s.csv", "--targets", "t.csv", "-o", "o.h5", *fit]) == 0
    assert "alpha 1 is kept as given; --fit-smoothness estimates it too" in capsys.readouterr().err
    assert h2krige.main(["s.csv", "--targets", "t.csv", "-o", "o.h5", *fit, "--fit-smoothness"]) == 0
    told = capsys.readouterr()
    assert "\n  alpha " in told.out and "kept as given" not in told.err


def test_columns_of_both_files_are_drift(capsys):
    assert krige("s.csv", "t.csv", "m.csv", "--drift", "height", "--trend", "linear") == 0
    kriging = Kriging(MODEL, 0.1, ["linear", 2]).fit(np.c_[X, HEIGHT], RAIN)
    mean = kriging.predict(np.c_[GRID, GRID.prod(axis=1) / 1000])
    np.testing.assert_allclose(pandas.read_csv("m.csv")["mean"], mean, rtol=1e-9)
    assert krige("s.csv", "t.npy", "n.csv", "--drift", "height") == 2
    assert "choose with --drift" in capsys.readouterr().err


def test_matrices_of_all_formats_are_the_same():
    found = []
    for source in ("s.csv", "s.gpkg", "s.npz"):
        assert h2compress.main([source, "-o", "c.h5", "--length-scale", "30", "--quiet"]) == 0
        found.append(load("c.h5").to_dense())
    np.save("s.npy", X)
    assert h2compress.main(["s.npy", "-o", "c.h5", "--length-scale", "30", "--quiet"]) == 0
    for other in found:
        np.testing.assert_array_equal(load("c.h5").to_dense(), other)


@pytest.mark.parametrize("arguments, words", [
    (["s.csv", "--points", "lon,lat"], "s.csv: 'lon' not found; columns: x, y, rain, height; choose with --points"),
    (["s.gpkg", "--points", "none"], "layer 'none' not found; the file holds s; choose with --points"),
    (["s.npz", "--points", "none"], "s.npz: 'none' not found; arrays: points, rain, height; choose with --points"),
    (["s.csv", "--max-memory", "1kB"], "s.csv: expected a table that fits in 333 bytes"),
])  # fmt: skip
def test_wrong_names_are_told(arguments, words, capsys, folder):
    before = sorted(p.name for p in folder.iterdir())
    assert h2compress.main([*arguments, "-o", "c.h5"]) == 2
    err = capsys.readouterr().err
    assert words in err and err.count("\n") == 1
    assert sorted(p.name for p in folder.iterdir()) == before


def test_reference_systems_must_agree(capsys):
    assert krige("s.gpkg", "t.csv", "m.csv", "--crs", "EPSG:4326") == 2
    assert "expected one coordinate reference system, got EPSG:4326 of --crs and EPSG:32632" in capsys.readouterr().err
    assert krige("s.csv", "t.csv", "m.tif", "--crs", "EPSG:3035") == 0
    with rasterio.open("m.tif") as file:
        assert file.crs.to_epsg() == 3035


def test_a_missing_package_is_one_line(monkeypatch, capsys):
    monkeypatch.setitem(__import__("sys").modules, "rasterio", None)
    assert krige("s.csv", "t.csv", "m.tif") == 1
    assert capsys.readouterr().err == "h2krige: error: m.tif: needs rasterio: pip install 'h2gpu[files]'\n"
