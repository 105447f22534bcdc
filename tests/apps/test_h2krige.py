"""h2krige: what it writes is kriging, and one line for whatever is wrong."""

import json
import os
import re
import subprocess
import sys

import h5py
import numpy as np
import pytest
import small_fields

import h2gpu
from h2gpu.apps import h2krige
from h2gpu.apps.command import devices
from h2gpu.apps.command.command import FailureError
from h2gpu.covariance import Exponential, Gneiting, Matern, Nugget, SpaceTime, on_sphere
from h2gpu.statistics import Kriging, log_likelihood, scores

COV, NUGGET = Matern(2.0, 0.3, 1.5), 0.05
GIVEN = ("--covariance", "matern", "--variance", "2", "--length-scale", "0.3", "--nugget", "0.05")


@pytest.fixture(scope="module")
def field():
    """Sites, values, targets, truth of a simulation."""
    points = np.random.default_rng(3).random((260, 2))
    values = 10 + small_fields.simulated(points, COV + Nugget(NUGGET))
    return points[:220], values[:220], points[220:], values[220:]


@pytest.fixture
def files(tmp_path, field):
    """A file to train and a file of targets with the truth."""
    for name, points, values in (("train.h5", *field[:2]), ("targets.h5", *field[2:])):
        with h5py.File(tmp_path / name, "w") as file:
            file["points"], file["values"] = points, values
            file["x"], file["y"], file["short"] = points[:, 0], points[:, 1], values[:9]
    return tmp_path / "train.h5", tmp_path / "targets.h5"


def krige(files, *arguments):
    return h2krige.main([str(files[0]), "--targets", str(files[1]), *map(str, arguments)])


def read(path):
    with h5py.File(path) as file:
        return {name: file[name][()] for name in file}, dict(file.attrs)


def fails(files, arguments, status, words, capsys):
    """The command ends with the status and one line on stderr, and leaves nothing."""
    before = sorted(os.listdir(files[0].parent))
    assert krige(files, *arguments) == status
    err = capsys.readouterr().err
    assert re.fullmatch(r"h2krige: error: .*\n", err) and len(err) < 500, err
    assert re.search(words, err), err
    assert sorted(os.listdir(files[0].parent)) == before


# What it does


def test_predictions_are_those_of_kriging(files, field, capsys):
    sites, values, targets, truth = field
    assert krige(files, *GIVEN) == 0
    told, err = capsys.readouterr()
    found, attributes = read(files[1].with_name("targets-kriged.h5"))
    model = Kriging(COV, NUGGET).fit(sites, values)
    mean, std = model.predict(targets, return_std=True)
    np.testing.assert_array_equal(found["points"], targets)
    np.testing.assert_allclose(found["mean"], mean, rtol=1e-9)
    np.testing.assert_allclose(found["std"], std, rtol=1e-9)
    np.testing.assert_allclose(found["std_observation"] ** 2, std**2 + NUGGET, rtol=1e-9)
    expected = scores.summary(truth, found["mean"], found["std_observation"])
    assert {name: attributes[name] for name in expected} == pytest.approx(expected)
    assert h2gpu.covariance.from_parameters(json.loads(attributes["covariance"])) == COV
    assert err == "" and "RMSE" in told and "220 sites in 2D · 40 targets" in told and "(given)" in told


def test_report_and_maps(files, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    out, report, plot = (tmp_path / name for name in ("out.h5", "r.json", "p.png"))
    assert krige(files, "-o", out, *GIVEN, "--trend", "linear", "--report", report, "--plot", plot) == 0
    said = json.loads(report.read_text(encoding="utf-8"))
    assert (said["n"], said["m"], said["dim"], said["nugget"]) == (220, 40, 2, 0.05)
    assert read(out)[1]["nugget"] == 0.05 and json.loads(read(out)[1]["covariance"])["variance"] > 0
    assert said["trend"]["kind"] == "linear" and len(said["trend"]["coefficients"]) == 3
    assert said["scores"]["rmse"] == read(out)[1]["rmse"] and 0 < said["scores"]["coverage"] <= 1
    assert {"write", "variances"} <= said["seconds"].keys() and "numpy" in said["versions"]
    assert said["estimated"] is None and said["rtol"]["asked"] == 1e-6 and said["peak_memory"]["process"] > 0
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_estimated_parameters_are_more_likely_than_the_true_ones(files, field, tmp_path, capsys):
    report, family = tmp_path / "r.json", ("--covariance", "matern", "--fit")
    assert krige(files, *family, "--report", report) == 0
    found = json.loads(report.read_text(encoding="utf-8"))
    parameters = found["estimated"]["parameters"]
    assert parameters.keys() == {"variance", "length_scale", "nugget"}
    assert all(p["interval"][0] < p["value"] < p["interval"][1] and p["error"] > 0 for p in parameters.values())
    assert parameters["nugget"]["value"] == found["nugget"] == pytest.approx(NUGGET, rel=0.5)
    truth = log_likelihood(COV, *field[:2], NUGGET, trend="constant")
    assert truth < found["estimated"]["log_likelihood"] < truth + 10
    told = capsys.readouterr().out
    assert "(estimated)" in told and "\n  variance " in told and "log-likelihood" in told
    assert krige(files, *family, "--fit-smoothness", "--report", report, "--quiet") == 0
    smooth = json.loads(report.read_text(encoding="utf-8"))
    assert smooth["estimated"]["parameters"]["smoothness"]["value"] == smooth["covariance"]["smoothness"] != 1.5
    assert smooth["estimated"]["log_likelihood"] > found["estimated"]["log_likelihood"]


@pytest.mark.parametrize("name, option, kind", [
    ("spherical", (), {}), ("cubic", (), {}), ("wendland", (), {}),
    ("powered-exponential", ("--exponent", "1.3"), {"exponent": 1.3}),
    ("rational-quadratic", ("--alpha", "0.7", "--rotation", "0.3"), {"alpha": 0.7, "rotation": 0.3}),
])  # fmt: skip
def test_further_covariances(files, field, name, option, kind):
    out = files[0].with_name("out.h5")
    given = ("--covariance", name, "--variance", "2", "--length-scale", "0.3,0.5", "--nugget", "0.1", *option)
    assert krige(files, *given, "-o", out, "--quiet") == 0
    model = getattr(h2gpu.covariance, name.title().replace("-", ""))(2.0, (0.3, 0.5), **kind)
    np.testing.assert_allclose(read(out)[0]["mean"], Kriging(model, 0.1).fit(*field[:2]).predict(field[2]), rtol=1e-9)


def test_time_is_the_last_coordinate(files, field, capsys):
    """Points in the plane and a column of times: by given numbers as in Python, and estimated."""
    for path, n in zip(files, (220, 40)):
        with h5py.File(path, "a") as file:
            file["day"] = np.arange(n) % 7 * 24.0
    out, (sites, values, targets, _) = files[0].with_name("out.h5"), field
    x, new = (np.column_stack([p, np.arange(len(p)) % 7 * 24.0]) for p in (sites, targets))
    more = ("--time-exponent", "0.7", "--interaction", "0.4")
    for options, cov in (
        ((), SpaceTime(COV, Exponential(1.0, 50.0))),
        (("--space-time", "gneiting", *more), Gneiting(COV, 50.0, 0.7, 0.4)),
    ):
        assert krige(files, *GIVEN, "--time", "day", "--time-scale", "50", *options, "-o", out, "--quiet") == 0
        found, attributes = read(out)
        np.testing.assert_allclose(found["mean"], Kriging(cov, NUGGET).fit(x, values).predict(new), rtol=1e-9)
        assert h2gpu.covariance.from_parameters(json.loads(attributes["covariance"])) == cov
        assert found["points"].shape == (40, 3)
    assert krige(files, "--fit", "--time", "day", "--points", "x,y", "-o", out, "--quiet") == 0
    assert json.loads(read(out)[1]["covariance"])["time"]["length_scale"] != 14.4
    fails(files, [*GIVEN, "--time", "day"], 2, "--time-scale: expected a number, or --fit", capsys)
    fails(files, [*GIVEN, "--time", "hour", "--time-scale", "1"], 2, "'hour' not found; .* choose with --time", capsys)
    wrong = [*GIVEN, "--time", "day", "--time-scale", "1", "--interaction", "0.3"]
    fails(files, wrong, 2, "--interaction: is for --space-time gneiting only", capsys)


def test_rotation_is_fitted_where_given(files):
    out = files[0].with_name("out.h5")
    assert krige(files, "--fit", "--rotation", "0.3", "-o", out, "--quiet") == 0
    assert json.loads(read(out)[1]["covariance"])["rotation"] != 0.3


def test_names_of_datasets(files, capsys):
    out = files[0].with_name("out.h5")
    assert krige(files, *GIVEN, "-o", out, "--quiet") == 0
    whole, attributes = read(out)
    assert krige(files, *GIVEN, "-o", out, "--quiet", "--points", "x,y", "--target-points", "points") == 0
    np.testing.assert_allclose(read(out)[0]["mean"], whole["mean"], rtol=1e-12)
    assert krige(files, *GIVEN, "-o", out, "--quiet", "--values", "x", "--truth", "y") == 0
    assert read(out)[1]["rmse"] != attributes["rmse"]
    assert capsys.readouterr() == ("", "")


def test_without_truth_there_are_no_scores(files, capsys):
    with h5py.File(files[1], "r+") as file:
        truth = file["values"][:]
        del file["values"]
    assert krige(files, *GIVEN) == 0
    assert "rmse" not in read(files[1].with_name("targets-kriged.h5"))[1]
    assert "scores" not in capsys.readouterr().out
    truth[5:] = np.nan  # known at some targets: scored there
    with h5py.File(files[1], "r+") as file:
        file["values"] = truth
    assert krige(files, *GIVEN, "--quiet") == 0
    found, attributes = read(files[1].with_name("targets-kriged.h5"))
    assert attributes["rmse"] == pytest.approx(scores.rmse(truth[:5], found["mean"][:5]))


def test_one_file_for_both(files, field, capsys):
    """Predicting at the sites themselves: without a nugget the observations, and no truth to score against."""
    given = ("--variance", "2", "--length-scale", "0.3")
    assert krige((files[0], files[0]), *given, "-o", files[0].with_name("out.h5")) == 0
    found, attributes = read(files[0].with_name("out.h5"))
    np.testing.assert_allclose(found["mean"], field[1], rtol=1e-8)
    assert found["std"].max() < 1e-5 and "rmse" not in attributes


def test_degrees_are_on_a_sphere_where_asked(files, field, capsys):
    sites, values, targets, _ = field
    for path, points in ((files[0], sites), (files[1], targets)):
        with h5py.File(path, "r+") as file:
            file["lon"], file["lat"] = 10 + 4 * points[:, 0], 50 + 4 * points[:, 1]
    out = files[0].with_name("out.h5")
    given = ("--covariance", "matern", "--variance", "2", "--nugget", "0.05", "-o", out, "--points", "lon,lat")
    for option, distance in ((["--sphere"], "chordal"), (["--sphere", "great-circle"], "great-circle")):
        smoothness = 1.5 if distance == "chordal" else 0.5
        asked = (*given, *option, "--length-scale", "100", "--smoothness", str(smoothness), "--quiet")
        assert krige(files, *asked) == 0 and capsys.readouterr().err == ""
        cov = on_sphere(Matern(2.0, 100.0, smoothness), distance=distance)
        model = Kriging(cov, 0.05).fit([10.0, 50.0] + 4 * sites, values)
        np.testing.assert_allclose(read(out)[0]["mean"], model.predict([10.0, 50.0] + 4 * targets), rtol=1e-6)
    assert krige(files, "--fit", "--sphere", "-o", out, "--points", "lon,lat", "--quiet") == 0
    assert 10 < json.loads(read(out)[1]["covariance"])["covariance"]["length_scale"] < 1000
    assert krige(files, *given, "--length-scale", "1") == 0
    assert "warning: --points lon,lat are taken for a plane; if they are deg" in capsys.readouterr().err


def test_other_dimensions(tmp_path, capsys):
    rng = np.random.default_rng(0)
    for dim in (1, 3):
        for name, n in (("a.h5", 60), ("b.h5", 1)):
            with h5py.File(tmp_path / name, "w") as file:
                file["points"], file["values"] = rng.random((n, dim)), rng.random(n)
        files = tmp_path / "a.h5", tmp_path / "b.h5"
        assert krige(files, "--variance", "1", "--length-scale", "0.3", "--nugget", "0.1", "--quiet") == 0
        assert read(tmp_path / "b-kriged.h5")[0]["mean"].shape == (1,)
        os.remove(tmp_path / "b-kriged.h5")
        fails(
            files, ["--variance", "1", "--length-scale", "1", "--plot", "p.png"], 2, "maps are of points in 2D", capsys
        )
        capsys.readouterr()


# What is wrong


BAD = {
    "no parameters": ([], "--variance and --length-scale: expected a number, or --fit"),
    "no length": (["--variance", "1"], "--length-scale: expected a number, or --fit"),
    "covariance": ([*GIVEN, "--covariance", "circular"], "invalid choice: 'circular'"),
    "exponent": ([*GIVEN, "--exponent", "1"], "--exponent: is for --covariance powered-exponential only"),
    "rotation": ([*GIVEN, "--rotation", "0.3"], "rotation: expected a length scale for each of 2 or 3 coordinates"),
    "degrees": ([*GIVEN, "--length-scale", "1,2", "--rotation", "30"], "--rotation: expected radians, .* got 30; degr"),
    "bad rotation": ([*GIVEN, "--rotation", "nan"], "expected finite numbers, got 'nan'"),
    "negative variance": ([*GIVEN, "--variance=-1"], "variance: expected a finite number above 0"),
    "trend": ([*GIVEN, "--trend", "cubic"], "invalid choice: 'cubic'"),
    "lengths": ([*GIVEN, "--length-scale", "1,2,3"], "expected 1 or 2 numbers for points in 2D"),
    "smoothness": ([*GIVEN, "--fit-smoothness"], "--fit-smoothness: is for --fit --covariance matern, "),
    "smoothness of another": (["--fit", "--fit-smoothness"], "--fit-smoothness: is for"),
    "time scale": ([*GIVEN, "--time-scale", "1"], "--time-scale: is for points with --time only"),
    "another format": ([*GIVEN, "-o", "map.png"], "--output: expected a name that ends in .h5, .csv, .tif or .nc"),
    "no grid": ([*GIVEN, "-o", "map.tif"], "map.tif: expected points on a regular grid in 2D, .* got 40 on none"),
    "drift": ([*GIVEN, "--drift", "height"], "'height' not found; .* choose with --drift"),
    "drift of no trend": ([*GIVEN, "--drift", "x", "--trend", "none"], "--drift: is for --trend constant or linear"),
    "short drift": ([*GIVEN, "--drift", "short"], "short: expected 220 values as there are points, got 9"),
    "reference system": (
        [*GIVEN, "--crs", "EPSG:0"],
        "--crs: expected a coordinate reference system such as",
    ),
    "plane on the sphere": ([*GIVEN, "--crs", "EPSG:32632", "--sphere"], "--sphere: expected longitudes and latitudes"),
    "radius": ([*GIVEN, "--radius", "1"], "--radius: is for --sphere only"),
    "smooth great circle": ([*GIVEN, "--sphere", "great-circle"], 'take distance="chordal"'),
    "unknown": ([*GIVEN, "--fast"], "unrecognized arguments: --fast"),
    "no values": ([*GIVEN, "--values", "height"], r"'height' not found; the file holds .* choose with --values"),
    "short values": ([*GIVEN, "--values", "short"], "short: expected 220 values as there are points, got 9"),
    "values of a shape": ([*GIVEN, "--values", "points"], r"points: expected shape \(n,\)"),
    "no truth": ([*GIVEN, "--truth", "height"], "'height' not found; .* choose with --truth"),
    "no targets there": ([*GIVEN, "--target-points", "places"], "'places' not found; .* choose with --target-points"),
    "dimensions": ([*GIVEN, "--target-points", "x"], "targets.h5: expected 2 coordinates a target .* got 1"),
    "output is input": ([*GIVEN, "-o", "train.h5"], "--output: train.h5 is the input too"),
    "output is targets": ([*GIVEN, "-o", "targets.h5"], "--output: targets.h5 is the targets too"),
    "report nowhere": ([*GIVEN, "--report", "absent/r.json"], "--report: .* does not exist"),
    "picture of a kind": ([*GIVEN, "--plot", "p.gif"], "--plot: expected a name that ends in .png"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_options(name, files, monkeypatch, capsys):
    if "--crs" in BAD[name][0] or "map.tif" in BAD[name][0]:
        pytest.importorskip("rasterio", reason="the extra files is not installed")
    monkeypatch.chdir(files[0].parent)
    fails(files, BAD[name][0], 2, BAD[name][1], capsys)


def test_targets_are_required(files, capsys):
    assert h2krige.main([str(files[0]), *GIVEN]) == 2
    assert "required: --targets" in capsys.readouterr().err
    fails((files[0], files[1].with_name("absent.h5")), GIVEN, 2, "absent.h5: No such file", capsys)


def test_bad_values(files, capsys):
    for bad, words in (
        (np.nan, "values: expected finite values .* 1 rows, first in row 3"),
        (np.inf, "expected finite"),
    ):
        with h5py.File(files[0], "r+") as file:
            file["values"][3] = bad
        fails(files, GIVEN, 2, words, capsys)
    with h5py.File(files[0], "r+") as file:
        file["names"] = np.array([b"a"] * 220)
        file["far"] = h5py.ExternalLink("targets.h5", "/values")
    fails(files, [*GIVEN, "--values", "names"], 2, "names: expected real numbers", capsys)
    fails(files, [*GIVEN, "--values", "far"], 2, "expected a dataset of this file, got a ExternalLink", capsys)


def test_sites_that_contradict_each_other(files, capsys):
    with h5py.File(files[0], "r+") as file:
        file["points"][1] = file["points"][0]
    fails(files, ["--variance", "1", "--length-scale", "0.3"], 2, "nugget", capsys)
    assert krige(files, *GIVEN, "--quiet") == 0


def test_too_little_memory_is_told_before_the_work(files, capsys):
    fails(files, [*GIVEN, "--max-memory", "100kB"], 1, "expected a job within --max-memory 100 kB", capsys)


def test_a_device_that_is_not_there(files, monkeypatch, capsys):
    def none(self):
        raise FailureError("--device cuda: expected CuPy and a CUDA device")

    monkeypatch.setattr(devices.CudaDevice, "__init__", none)
    fails(files, [*GIVEN, "--device", "cuda"], 1, "--device cuda: expected CuPy", capsys)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(28, "No space left on device", "out.h5"), "out.h5: No space left on device"),
        (np.linalg.LinAlgError("not positive definite"), "numerical failure: not positive definite"),
        (KeyboardInterrupt(), "interrupted"),
    ],
)
def test_failures_on_the_way_leave_the_old_file(error, words, files, monkeypatch, capsys):
    out = files[0].with_name("out.h5")
    out.write_bytes(b"old")

    def fail(*arguments, **rest):
        raise error

    monkeypatch.setattr(os, "fsync", fail)
    fails(files, [*GIVEN, "-o", out, "--quiet"], 1, words, capsys)
    assert out.read_bytes() == b"old"


def test_the_command_as_a_module(files):
    command = [sys.executable, "-m", "h2gpu.apps.h2krige", str(files[0]), "--targets", str(files[1])]
    done = subprocess.run([*command, *GIVEN], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "") and "scores" in done.stdout
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1


@pytest.mark.gpu
def test_the_gpu_predicts_the_same(files, capsys):
    out = files[0].with_name("gpu.h5")
    assert krige(files, *GIVEN, "--device", "cpu", "--quiet") == 0
    assert krige(files, *GIVEN, "--device", "cuda", "--quiet", "-o", out) == 0
    here, there = read(files[1].with_name("targets-kriged.h5"))[0], read(out)[0]
    np.testing.assert_allclose(there["mean"], here["mean"], rtol=1e-8)
    np.testing.assert_allclose(there["std"], here["std"], rtol=1e-6)
