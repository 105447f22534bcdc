"""h2compress and h2info: what they write and tell, and one line for whatever is wrong."""

import errno
import json
import os
import pty
import re
import subprocess
import sys
import termios
import threading

import h5py
import numpy as np
import pytest

import h2gpu
from h2gpu.apps import h2compress, h2info
from h2gpu.apps.command import devices, options, progress_bars, structure_plot
from h2gpu.apps.command.command import FailureError, InputError
from h2gpu.covariance import Exponential, Gaussian, Matern, Nugget
from h2gpu.storage import read_header

FAST = ("--leaf-size", "16", "--eta", "1", "--rtol", "1e-3")


@pytest.fixture(scope="module")
def points():
    return np.random.default_rng(1).random((500, 2))


@pytest.fixture
def source(tmp_path, points):
    """A file of points under several names and types."""
    path = tmp_path / "places.h5"
    with h5py.File(path, "w") as file:
        file["points"] = points
        file["x"], file["y"], file["short"] = points[:, 0], points[:, 1], points[:9, 0]
        file["survey/sites"] = (1000 * points).round().astype(np.int32)
    return path


@pytest.fixture
def matrix_file(source, capsys):
    """A compressed matrix of those points."""
    path = source.with_name("matrix.h5")
    assert h2compress.main([str(source), "-o", str(path), "--length-scale", "0.5", *FAST]) == 0
    capsys.readouterr()
    return path


def put(path, name, data):
    with h5py.File(path, "r+") as file:
        file[name] = data


def failed(main, arguments, status, words, capsys):
    """The command ends with the status and one line on stderr that holds the words; stdout has no traceback."""
    assert main([str(a) for a in arguments]) == status
    out, err = capsys.readouterr()
    assert re.fullmatch(rf"{main.__module__.split('.')[-1]}: error: .*\n", err), err
    assert re.search(words, err), err
    assert "Traceback" not in out + err and len(err) < 500


def compressing_fails(arguments, status, words, capsys):
    failed(h2compress.main, arguments, status, words, capsys)


# What they do


def test_compress_writes_matrix_report_and_picture(source, points, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    out, report, plot = (tmp_path / name for name in ("out.h5", "report.json", "picture.png"))
    arguments = [source, "-o", out, "--report", report, "--plot", plot, "--nugget", "0.1", "--rtol", "1e-4"]
    assert h2compress.main([*map(str, arguments), "--covariance", "matern", "--length-scale", "0.3,0.6"]) == 0
    told, err = capsys.readouterr()
    assert err == ""
    B, cov = h2gpu.load(out), Matern(1.0, (0.3, 0.6), 1.5) + Nugget(0.1)
    exact = cov(points)
    error = np.linalg.norm(B.to_dense() - exact) / np.linalg.norm(exact)
    said = json.loads(report.read_text(encoding="utf-8"))
    assert error <= 1e-4 and said["error"]["exact"] <= 1e-4 and said["error"]["uncompressed"] <= 1e-4
    assert (said["n"], said["dim"], said["shape"], said["rtol"]) == (500, 2, [500, 500], 1e-4)
    assert h2gpu.covariance.from_parameters(said["covariance"]) == cov
    assert said["parameters"].keys() >= {"leaf_size", "eta", "order", "split", "method", "svd"}
    assert said["device"]["kind"] in ("cpu", "cuda") and {"plan", "weights", "write"} <= said["seconds"].keys()
    assert said["memory"]["after"] == B.memory and said["memory"]["before"]["total"] >= B.nbytes
    assert len(said["ranks"]) == len(B.ranks) and said["peak_memory"]["process"] > said["memory"]["after"]["total"]
    assert {"h2gpu", "numpy", "python"} <= said["versions"].keys()
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert "estimated peak memory" in told and "times smaller than dense" in told and str(out) in told
    assert h2gpu.read_header(out).attributes["covariance"] == said["covariance"]


def test_the_output_stands_beside_the_input(source, capsys):
    assert h2compress.main([str(source), "--quiet", *FAST]) == 0
    assert capsys.readouterr() == ("", "")
    assert h2gpu.load(source.with_name("places-h2.h5")).shape == (500, 500)


def test_columns_groups_integers_and_precisions(source, points, tmp_path, capsys):
    out = tmp_path / "out.h5"

    def compressed(*arguments):
        assert h2compress.main([str(source), "-o", str(out), "--quiet", *FAST, *arguments]) == 0
        return h2gpu.load(out)

    whole = compressed("--points", "points")
    np.testing.assert_array_equal(compressed("--points", "x,y") @ np.ones(500), whole @ np.ones(500))
    single = compressed("--dtype", "float32", "--order", "5")
    assert single.dtype == np.float32
    np.testing.assert_allclose(single @ np.ones(500), whole @ np.ones(500), rtol=1e-2)
    rounded = compressed("--points", "survey/sites", "--length-scale", "1000")
    np.testing.assert_allclose(rounded @ np.ones(500), whole @ np.ones(500), rtol=1e-2)
    assert compressed("--points", "x", "--covariance", "gaussian", "--nugget", "1").shape == (500, 500)
    for options_ in (("--method", "basis"), ("--svd", "randomized"), ("--split", "mean"), ("--device", "cpu")):
        np.testing.assert_allclose(compressed(*options_) @ np.ones(500), whole @ np.ones(500), rtol=1e-2)


def test_a_matrix_file_is_compressed_further(matrix_file, capsys):
    report = matrix_file.with_name("again.json")
    assert h2compress.main([str(matrix_file), "--rtol", "1e-2", "--report", str(report)]) == 0
    A, B = h2gpu.load(matrix_file), h2gpu.load(matrix_file.with_name("matrix-h2.h5"))
    assert B.nbytes < A.nbytes and A.relative_error(B) <= 1e-2
    said = json.loads(report.read_text(encoding="utf-8"))
    assert said["covariance"]["length_scale"] == 0.5 and said["error"]["exact"] is None
    assert said["rtol"] == pytest.approx(1e-3 + 1e-2 * 1.001)  # the two errors add up
    assert h2compress.main([str(matrix_file), "--rtol", "1e-2", "--quiet", "--dtype", "float32"]) == 0
    assert h2gpu.load(matrix_file.with_name("matrix-h2.h5")).dtype == np.float32


def test_what_an_order_misses_is_not_promised(source, capsys):
    first, second = (source.with_name(name) for name in ("first.h5", "second.h5"))
    coarse = ("--order", "1", "--rtol", "1e-4", "--leaf-size", "16", "--eta", "1", "--length-scale", "0.5")
    assert h2compress.main([str(source), "-o", str(first), *coarse]) == 0
    assert "asked 0.0001, which the given order does not reach" in capsys.readouterr().out
    assert h2compress.main([str(first), "-o", str(second), "--rtol", "1e-3"]) == 0
    found = [read_header(path).attributes for path in (first, second)]
    missed = found[0]["error"]["exact"]
    assert found[0]["rtol"] == missed > 1e-3 and found[1]["rtol"] == pytest.approx(missed + 1e-3 * (1 + missed))
    capsys.readouterr()
    assert h2info.main([str(first)]) == 0 and f"promised {missed:.3g}" in capsys.readouterr().out


def test_info_tells_what_a_file_holds(matrix_file, capsys):
    assert h2info.main([str(matrix_file)]) == 0
    told = capsys.readouterr().out
    for words in ("500 × 500, symmetric, float64", "Exponential", "promised 0.001", "ranks", "nearfield", "order"):
        assert words in told
    assert "in order" not in told
    assert h2info.main([str(matrix_file), "--check"]) == 0
    assert "all checksums and the structure are in order" in capsys.readouterr().out


def test_storage_in_one_precision_or_two(source, capsys):
    out = source.with_name("places-h2.h5")
    for storage, version in (("full", 1), ("auto", 2)):
        assert h2compress.main([str(source), "--quiet", *FAST, "--storage", storage]) == 0
        header = h2gpu.read_header(out)
        assert (header.version, header.dtype) == (version, np.float64) and header.memory == h2gpu.load(out).memory
        assert header.in_float32["nearfield"] == version - 1 and header.in_float32["transfer"] == 0
        assert h2info.main([str(out)]) == 0
        told = capsys.readouterr().out
        assert ("in float32    nearfield 1" in told) == (version == 2) and f"h2gpu-h2matrix {version}," in told


def test_info_of_a_file_without_attributes(tmp_path, points, capsys):
    h2gpu.save(h2gpu.build(points, Exponential(), leaf_size=600), tmp_path / "plain.h5", attributes={"note": [1]})
    assert h2info.main([str(tmp_path / "plain.h5")]) == 0
    told = capsys.readouterr().out
    assert "unknown covariance" in told and "note          [1]" in told and "none: all blocks are dense" in told


def test_few_points(tmp_path, capsys):
    for n, dim in ((1, 1), (2, 3), (40, 2)):
        with h5py.File(tmp_path / "few.h5", "w") as file:
            file["points"] = np.zeros((n, dim))
        arguments = [str(tmp_path / "few.h5"), "-o", str(tmp_path / "out.h5"), "--plot", str(tmp_path / "p.png")]
        assert h2compress.main(arguments) == 0
        np.testing.assert_allclose(h2gpu.load(tmp_path / "out.h5").to_dense(), 1)


# What is wrong with the options


BAD_OPTIONS = {
    "no input": ([], "required: INPUT.h5"),
    "unknown option": (["in", "--fast"], "unrecognized arguments: --fast"),
    "abbreviated option": (["in", "--len", "3"], "unrecognized arguments"),
    "covariance": (["in", "--covariance", "spherical"], "invalid choice: 'spherical'"),
    "negative length": (["in", "--length-scale", "-1"], "length-scale: expected"),
    "no length": (["in", "--length-scale", "1,,2"], "length-scale: expected a number, got ''"),
    "length in words": (["in", "--length-scale", "long"], "expected a number, got 'long'"),
    "infinite length": (["in", "--length-scale", "inf"], "expected a finite number above 0"),
    "lengths for 3D": (["in", "--length-scale", "1,2,3"], "expected 1 or 2 numbers for points in 2D, got 3"),
    "no variance": (["in", "--variance", "0"], "variance: expected a finite number above 0"),
    "negative nugget": (["in", "--nugget=-1"], "nugget: expected a finite number, 0 or above"),
    "nugget not a number": (["in", "--nugget", "nan"], "nugget: expected a finite number"),
    "smoothness of another": (["in", "--smoothness", "2"], "--smoothness: is for --covariance matern only"),
    "rtol zero": (["in", "--rtol", "0"], "rtol: expected a finite number above 0"),
    "rtol too small": (["in", "--rtol", "1e-17"], "rtol: expected a number from"),
    "rtol one": (["in", "--rtol", "1"], "rtol: expected a number from"),
    "rtol for float32": (["in", "--rtol", "1e-9", "--dtype", "float32"], "rtol: expected a number from"),
    "leaf size": (["in", "--leaf-size", "0"], "leaf-size: expected an integer above 0"),
    "leaf size half": (["in", "--leaf-size", "8.5"], "leaf-size: expected an integer above 0"),
    "order": (["in", "--order", "none"], "order: expected an integer above 0"),
    "absurd order": (["in", "--order", "1000"], "--order: expected at most 10000 interpolation points"),
    "eta": (["in", "--eta", "-2"], "eta: expected"),
    "method": (["in", "--method", "best"], "invalid choice: 'best'"),
    "svd": (["in", "--svd", "lapack"], "invalid choice: 'lapack'"),
    "split": (["in", "--split", "middle"], "invalid choice: 'middle'"),
    "device": (["in", "--device", "tpu"], "invalid choice: 'tpu'"),
    "dtype": (["in", "--dtype", "float16"], "invalid choice: 'float16'"),
    "memory": (["in", "--max-memory", "plenty"], "expected a size such as 8G"),
    "no memory": (["in", "--max-memory", "0"], "expected a size such as 8G"),
    "no names": (["in", "--points", "x,,y"], "expected names of datasets separated by commas"),
    "output is input": (["in", "-o", "in"], "--output: .* is the input too"),
    "report is output": (["in", "-o", "out.h5", "--report", "out.h5"], "--report: out.h5 is --output too"),
    "output a folder": (["in", "-o", "."], "--output: .* is a folder"),
    "output nowhere": (["in", "-o", "absent/out.h5"], "--output: .* does not exist"),
    "report nowhere": (["in", "--report", "absent/r.json"], "--report: .* does not exist"),
    "picture of a kind": (["in", "--plot", "picture.gif"], "--plot: expected a name that ends in .png"),
}


@pytest.mark.parametrize("name", BAD_OPTIONS)
def test_bad_options(name, source, monkeypatch, capsys):
    arguments, words = BAD_OPTIONS[name]
    monkeypatch.chdir(source.parent)
    compressing_fails([source if a == "in" else a for a in arguments], 2, words, capsys)
    assert os.listdir(source.parent) == [source.name]


def test_options_for_points_do_not_fit_a_matrix(matrix_file, capsys):
    arguments = [matrix_file, "--order", "3", "--covariance", "matern"]
    compressing_fails(arguments, 2, "--covariance, --order: for a file of points only", capsys)


@pytest.mark.parametrize("option", ["--help"])
def test_help_ends_well(option, capsys):
    for main in (h2compress.main, h2info.main):
        with pytest.raises(SystemExit) as caught:
            main([option])
        assert caught.value.code == 0 and "usage" in capsys.readouterr().out


def test_covariances_of_options():
    def covariance(*arguments, dim=2):
        return options.covariance(options.parser().parse_args(["in", *arguments]), dim)

    assert covariance() == Exponential()
    assert covariance("--covariance", "gaussian", "--length-scale", "2", "--variance", "3") == Gaussian(3.0, 2.0)
    assert covariance("--covariance", "matern", "--smoothness", "0.7") == Matern(1.0, 1.0, 0.7)
    assert covariance("--length-scale", "2,3", "--nugget", "0.5") == Exponential(1.0, (2.0, 3.0)) + Nugget(0.5)
    with pytest.raises(InputError, match="expected 1 or 3"):
        covariance("--length-scale", "2,3", dim=3)


# What is wrong with the input


BAD_POINTS = {
    "nan": (np.array([[0.0, 1.0], [np.nan, 2.0]]), "NaN or infinity in 1 rows, first in row 1"),
    "infinite": (np.array([[0.0, 1.0], [np.inf, 2.0]]), "NaN or infinity"),
    "texts": (np.array([b"a", b"b"]), "expected real numbers"),
    "complex": (np.zeros((3, 2), complex), "expected real numbers, got complex128"),
    "logical": (np.zeros((3, 2), bool), "expected real numbers"),
    "compound": (np.zeros(3, [("x", float), ("y", float)]), "expected real numbers"),
    "empty": (np.zeros((0, 2)), "at least one point"),
    "no coordinates": (np.zeros((4, 0)), "at least one point and one coordinate"),
    "scalar": (np.float64(3), r"expected shape \(n, dim\), got \(\)"),
    "cube": (np.zeros((2, 2, 2)), r"expected shape \(n, dim\), got \(2, 2, 2\)"),
    "transposed": (np.zeros((2, 90)), "expected at most 8 coordinates a point"),
    "nothing": (h5py.Empty("f8"), "expected shape"),
}


@pytest.mark.parametrize("name", BAD_POINTS)
def test_bad_points(name, source, capsys):
    data, words = BAD_POINTS[name]
    put(source, "bad", data)
    compressing_fails([source, "--points", "bad"], 2, words, capsys)
    assert os.listdir(source.parent) == [source.name]


def test_points_too_large_for_float32(source, capsys):
    put(source, "bad", np.full((3, 2), 1e300))
    compressing_fails([source, "--points", "bad", "--dtype", "float32"], 2, "finite coordinates within float32", capsys)


def test_datasets_that_are_not_there(source, capsys):
    compressing_fails([source, "--points", "place"], 2, r"'place' not found; the file holds points \(500, 2\)", capsys)
    compressing_fails([source, "--points", "survey"], 2, "'survey' is a group", capsys)
    compressing_fails([source, "--points", "x/y"], 2, "'x/y' not found", capsys)
    compressing_fails([source, "--points", "x,short"], 2, "equal length, got x 500, short 9", capsys)
    compressing_fails([source, "--points", "x,points"], 2, r"points: expected shape \(n,\)", capsys)
    with h5py.File(source.with_name("empty.h5"), "w"):
        pass
    compressing_fails([source.with_name("empty.h5")], 2, "the file holds no datasets", capsys)


def test_points_that_lie_elsewhere(source, capsys):
    with h5py.File(source, "r+") as file:
        file["soft"], file["far"] = h5py.SoftLink("/points"), h5py.ExternalLink("other.h5", "/points")
        file.create_dataset("outside", shape=(2, 2), dtype="f8", external=[("/etc/hostname", 0, 32)])
        layout = h5py.VirtualLayout(shape=(2, 2), dtype="f8")
        file.create_virtual_dataset("virtual", layout)
    for name, words in (("soft", "SoftLink"), ("far", "ExternalLink"), ("outside", "others"), ("virtual", "others")):
        compressing_fails([source, "--points", name], 2, words, capsys)


def test_absurd_sizes_are_not_allocated(source, capsys):
    with h5py.File(source, "r+") as file:
        file.create_dataset("huge", shape=(10**15, 2), dtype="f8")
        file.create_dataset("bomb", shape=(10**15, 2), dtype="f8", chunks=(1000, 2), compression="gzip")
    for name in ("huge", "bomb"):
        compressing_fails([source, "--points", name], 2, "expected points that fit in .*, got 16,000 TB", capsys)


def test_files_that_are_no_files_of_points(tmp_path, capsys):
    compressing_fails([tmp_path / "absent.h5"], 2, "absent.h5: No such file or directory", capsys)
    compressing_fails([tmp_path], 2, "Is a directory", capsys)
    compressing_fails(["/dev/null"], 2, "expected a regular file", capsys)
    os.mkfifo(tmp_path / "pipe.h5")
    compressing_fails([tmp_path / "pipe.h5"], 2, "expected a regular file", capsys)
    compressing_fails([""], 2, "Is a directory; give a file", capsys)
    (tmp_path / "text.h5").write_text("x y\n1 2\n")
    compressing_fails([tmp_path / "text.h5"], 2, "text.h5: expected an HDF5 file in order", capsys)


def test_damaged_matrix_files(matrix_file, capsys):
    data = matrix_file.read_bytes()
    matrix_file.write_bytes(data[:-100])
    compressing_fails([matrix_file], 2, "expected an HDF5 file in order", capsys)
    failed(h2info.main, [matrix_file], 2, "expected an HDF5 file in order", capsys)
    matrix_file.write_bytes(data)
    with h5py.File(matrix_file, "r+") as file:
        file["row_basis/leaf"][7] = 0.5
    assert h2info.main([str(matrix_file)]) == 0
    capsys.readouterr()
    failed(h2info.main, [matrix_file, "--check"], 2, "row_basis/leaf: expected SHA-256", capsys)
    compressing_fails([matrix_file], 2, "row_basis/leaf: expected SHA-256", capsys)
    with h5py.File(matrix_file, "r+") as file:
        file.attrs["version"] = 9
    failed(h2info.main, [matrix_file], 2, "expected format version 1 or 2, got 9; read it with a newer h2gpu", capsys)


def test_info_of_other_files(source, tmp_path, capsys):
    failed(h2info.main, [source], 2, "expected a matrix file of format h2gpu-h2matrix, got another HDF5 file", capsys)
    failed(h2info.main, [tmp_path / "absent.h5"], 2, "No such file", capsys)
    failed(h2info.main, [], 2, "required: FILE.h5", capsys)
    failed(h2info.main, [source, "--verify"], 2, "unrecognized arguments", capsys)


# Other failures


def test_too_little_memory_is_told_before_the_work(source, capsys):
    compressing_fails([source, "--max-memory", "200kB"], 1, "expected a job within --max-memory 200 kB", capsys)
    compressing_fails([source, "--max-memory", "2kB"], 2, "expected points that fit in 2 kB", capsys)
    assert os.listdir(source.parent) == [source.name]


def test_an_accuracy_out_of_reach(tmp_path, capsys):
    with h5py.File(tmp_path / "p.h5", "w") as file:
        file["points"] = np.random.default_rng(0).random((40_000, 3))
    compressing_fails([tmp_path / "p.h5", "--rtol", "1e-14", "--eta", "2"], 2, "rtol: 1e-14 cannot be reached", capsys)


def test_an_accuracy_missed_on_the_way(source, monkeypatch, capsys):
    orders, assemble = [], h2compress.assemble

    def recorded(sites, plan, **rest):
        orders.append(plan.order)
        return assemble(sites, plan, **rest)

    monkeypatch.setattr(h2compress, "assemble", recorded)
    monkeypatch.setattr(h2compress, "error_on_rows", lambda *a, **k: 0.5)
    compressing_fails([source, *FAST], 2, "rtol: 0.001 was not reached, the error is 0.5", capsys)
    assert orders == [orders[0] + i for i in range(len(orders))] and len(orders) > 1
    assert os.listdir(source.parent) == [source.name]
    assert h2compress.main([str(source), *FAST, "--order", "2"]) == 0  # then only the compression's share is promised
    assert "which the given order does not reach" in capsys.readouterr().out


def test_a_missing_library_is_told_before_the_work(source, monkeypatch, capsys):
    monkeypatch.setattr(structure_plot.importlib.util, "find_spec", lambda name: None)
    compressing_fails([source, "--plot", source.with_name("p.png")], 1, r"pip install 'h2gpu\[plots\]'", capsys)


def test_devices(monkeypatch):
    def no_device(self):
        raise FailureError("none")

    monkeypatch.setattr(devices.CudaDevice, "__init__", no_device)
    assert devices.device("auto").kind == devices.device("cpu").kind == "cpu"
    with pytest.raises(FailureError):
        devices.device("cuda")


@pytest.mark.gpu
def test_the_gpu_gives_the_same_matrix(source, matrix_file, capsys):
    out, report = source.with_name("gpu.h5"), source.with_name("gpu.json")
    arguments = ["-o", str(out), "--device", "cuda", "--report", str(report)]
    assert h2compress.main([str(source), "--length-scale", "0.5", *FAST, *arguments]) == 0
    A, B, x = h2gpu.load(matrix_file), h2gpu.load(out), np.ones(500)
    np.testing.assert_allclose(B @ x, A @ x, rtol=3e-3)
    said = json.loads(report.read_text(encoding="utf-8"))
    assert said["device"]["kind"] == "cuda" and said["device"]["name"] and said["peak_memory"]["device"] > 0
    assert h2compress.main([str(matrix_file), "--rtol", "1e-2", *arguments]) == 0
    assert A.relative_error(h2gpu.load(out)) <= 1e-2


def test_cuda_where_there_is_none(source, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "cupy", None)
    compressing_fails([source, "--device", "cuda"], 1, "--device cuda: expected CuPy and a CUDA device", capsys)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "out.h5"), "out.h5: No space left on device"),
        (MemoryError("8 GiB"), "out of memory: 8 GiB"),
        (np.linalg.LinAlgError("SVD did not converge"), "numerical failure: SVD did not converge"),
        (KeyboardInterrupt(), "interrupted"),
        (ZeroDivisionError("a\nb"), "unexpected ZeroDivisionError: a b"),
    ],
)
def test_failures_on_the_way_are_one_line_and_leave_the_old_file(error, words, matrix_file, monkeypatch, capsys):
    def fail(*arguments, **rest):
        raise error

    before, source = matrix_file.read_bytes(), matrix_file.with_name("places.h5")
    monkeypatch.setattr(os, "fsync", fail)
    compressing_fails([source, "-o", matrix_file, "--quiet", *FAST], 1, words, capsys)
    assert matrix_file.read_bytes() == before
    assert sorted(os.listdir(source.parent)) == [matrix_file.name, source.name]


# As processes


def run(*arguments, **rest):
    command = [sys.executable, "-m", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **rest)


def test_the_commands_as_modules(source):
    done = run("h2gpu.apps.h2compress", source, *FAST)
    assert (done.returncode, done.stderr) == (0, "") and "estimated peak memory" in done.stdout
    done = run("h2gpu.apps.h2info", source.with_name("places-h2.h5"), "--check")
    assert (done.returncode, done.stderr) == (0, "") and "in order" in done.stdout
    done = run("h2gpu.apps.h2compress", source, "--order", "-1")
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1


def test_a_terminal_without_our_letters_and_a_name_without_any(source):
    name = os.fsencode(source.parent) + b"/\xff.h5"
    os.rename(source, name)
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    command = [sys.executable, "-m", "h2gpu.apps.h2compress", name, *FAST, "--report", source.with_suffix(".json")]
    done = subprocess.run(command, capture_output=True, timeout=60, env=environment)
    assert (done.returncode, done.stderr) == (0, b"") and b"leaf size" in done.stdout


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_an_interrupt_is_one_line(name, source):
    code = (
        "import os, signal, sys, time\n"
        "from h2gpu.apps import h2compress\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # ignored where tests run in the background
        "h2compress.assemble = lambda *a, **k: (os.kill(os.getpid(), signal.NAME), time.sleep(30))\n"
        "sys.exit(h2compress.main(sys.argv[1:]))"
    ).replace("NAME", name)
    done = subprocess.run([sys.executable, "-c", code, source], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (1, "h2compress: error: interrupted\n")
    assert os.listdir(source.parent) == [source.name]


def test_a_reader_that_leaves(source):
    with subprocess.Popen(
        [sys.executable, "-m", "h2gpu.apps.h2compress", source, *FAST], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.close()
        err = process.stderr.read().decode()
        assert process.wait(60) == 1 and err.count("\n") == 1 and "reader of the output" in err


def test_bars_on_a_terminal_only(source, monkeypatch):
    main, side = pty.openpty()
    termios.tcsetwinsize(side, (24, 100))
    shown = bytearray()

    def read():  # a terminal holds little that nobody reads
        while not shown.endswith(b"\0"):
            shown.extend(os.read(main, 1000))

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    with os.fdopen(side, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        assert progress_bars.observers(quiet=True) == []
        status = h2compress.main([str(source), *FAST])
        terminal.write("\0")
        terminal.flush()
        reader.join(20)
    os.close(main)
    text = shown.decode()
    assert status == 0 and "truncate" in text and "0%" in text and "Traceback" not in text
