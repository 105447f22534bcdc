"""What a file or its name says reaches neither the terminal raw nor the picture as a formula; closed streams."""

import os
import subprocess
import sys

import h5py
import numpy as np
import pytest
from commands import FAST

import h2gpu
from h2gpu.apps import h2compress, h2info, h2krige
from h2gpu.storage import header, read_header

FORGED = "\x1b[31mred\nmemory        forged \u202e" + 1000 * "long"


@pytest.fixture
def forged_file(tmp_path, monkeypatch):
    path, points = tmp_path / "matrix.h5", np.random.default_rng(0).random((200, 2))
    A = h2gpu.covariance_matrix(points, h2gpu.covariance.Exponential(), 1e-2)
    monkeypatch.setattr(header, "software", lambda: FORGED.encode("ascii", "ignore").decode())
    h2gpu.save(A, path, attributes={"source": FORGED, "covariance": FORGED, FORGED[:900]: FORGED})
    return path


def test_h2info_prints_no_control_characters_and_no_forged_lines(forged_file, capsys):
    assert "\x1b" in read_header(forged_file).software
    assert h2info.main([str(forged_file)]) == 0
    out = capsys.readouterr().out
    assert all(line.isprintable() and len(line) <= 2000 for line in out.splitlines())
    assert "\\x1b[31mred\\nmemory" in out and not any(
        line.startswith("memory        forged") for line in out.splitlines()
    )


def test_errors_about_a_file_are_one_printable_line(tmp_path, capsys):
    path = tmp_path / "points.h5"
    with h5py.File(path, "w") as file:
        file[FORGED.replace("/", "")] = np.zeros(3)
    assert h2compress.main([str(path), "-o", str(tmp_path / "out.h5")]) == 2
    err = capsys.readouterr().err
    assert len(err) < 2100 and err[:-1].isprintable() and err.endswith("\n")


@pytest.mark.skipif(sys.platform != "linux", reason="names of any bytes")
def test_names_with_dollars_and_of_other_encodings_are_kriged_and_drawn(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    rng = np.random.default_rng(0)
    path = os.path.join(str(tmp_path), os.fsdecode(b"rain $x_{$ \xff.h5"))
    with open(path, "wb") as raw, h5py.File(raw, "w") as file:
        file["points"], file["values"] = rng.random((30, 2)), rng.random(30)
    out, picture = str(tmp_path / "out.h5"), str(tmp_path / "out.png")
    arguments = [path, "--targets", path, "-o", out, "--length-scale", "0.3", "--variance", "1", "--nugget", "0.1"]
    assert h2krige.main([*arguments, "--plot", picture]) == 0, capsys.readouterr().err
    with h5py.File(out) as file:
        assert file.attrs["source"].endswith("rain $x_{$ \\udcff.h5")
    assert h2compress.main([path, "-o", out, "--plot", picture, *FAST]) == 0, capsys.readouterr().err


@pytest.mark.skipif(os.name != "posix", reason="closes streams as a shell does")
@pytest.mark.parametrize(
    ("closing", "name", "status"), [(">&-", "matrix", 0), ("2>&-", "matrix", 0), ("2>&-", "none", 2)]
)
def test_closed_streams_change_no_exit_status(tmp_path, closing, name, status):
    A = h2gpu.covariance_matrix(np.random.default_rng(0).random((100, 2)), h2gpu.covariance.Exponential(), 1e-2)
    h2gpu.save(A, tmp_path / "matrix.h5")
    command = f"{sys.executable} -m h2gpu.apps.h2info {tmp_path / name}.h5 {closing}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    assert "error" not in done.stdout + done.stderr
