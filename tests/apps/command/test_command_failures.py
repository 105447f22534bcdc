"""Failures of h2compress on the way: memory, accuracy, devices, the disk."""

import errno
import os
import sys

import h5py
import numpy as np
import pytest
from commands import FAST, compressing_fails

from h2gpu.apps import h2compress
from h2gpu.apps.command import devices, structure_plot
from h2gpu.apps.command.command import FailureError
from h2gpu.h2matrix.assembly import MORE_POINTS


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
    assert np.diff(orders).tolist() == list(MORE_POINTS)
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


def test_cuda_where_there_is_none(source, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "cupy", None)
    compressing_fails([source, "--device", "cuda"], 1, "--device cuda: expected CuPy and a CUDA device", capsys)


@pytest.mark.parametrize("usable", [True, False])
def test_kernels_are_kept_for_this_process_where_their_folder_cannot_be_written(usable, tmp_path, monkeypatch, caplog):
    folder = tmp_path / "kept"
    (tmp_path / "file").write_text("no folder")
    chosen = folder if usable else tmp_path / "file" / "kept"
    monkeypatch.setenv("CUPY_CACHE_DIR", str(chosen))
    monkeypatch.setattr(devices, "find_spec", lambda name: name)
    monkeypatch.setattr(devices.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(devices.atexit, "register", lambda function, *a, **k: at_end.append((function, a, k)))
    at_end = []
    devices._usable_cache()
    if usable:
        assert os.environ["CUPY_CACHE_DIR"] == str(folder) and not list(folder.iterdir()) and not caplog.text
        return
    place = os.environ["CUPY_CACHE_DIR"]
    assert os.path.dirname(place) == str(tmp_path) and f"{chosen}: Not a directory; set CUPY_CACHE_DIR" in caplog.text
    ((function, a, k),) = at_end
    function(*a, **k)
    assert not os.path.exists(place)


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
