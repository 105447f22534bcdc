"""Wrong input of h2compress and h2info: one line for each kind of file and points."""

import os

import h5py
import numpy as np
import pytest
from commands import compressing_fails, failed, put

from h2gpu.apps import h2info

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
        layout[:] = h5py.VirtualSource("other.h5", "points", shape=(2, 2))  # none: h5py 3.11 makes a plain one
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
