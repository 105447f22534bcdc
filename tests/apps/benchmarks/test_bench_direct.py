"""The benchmark of the direct factorization measures errors and times, beside iterations."""

import pytest

from h2gpu.apps.benchmarks import direct
from h2gpu.apps.benchmarks.report import tables
from h2gpu.solvers import skeletonization


def test_errors_fall_with_eta_and_iterations_stand_beside(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(skeletonization, "ROOT", 100)
    path = tmp_path / "direct.csv"
    options = ["--cases", "C", "--log2", "10", "--eta", "0.1,0.001", "--peers", "10", "--fields", "none"]
    assert direct.main([*options, "--output", str(path)]) == 0
    coarse, fine = tables.read(path)[1]
    assert abs(float(fine["log det error"])) < 0.01 * abs(float(coarse["log det error"]))
    assert abs(float(fine["log-likelihood error"])) < 0.1 and fine["against"] == "dense"
    assert abs(float(coarse["iterative log det error"])) < 5 * float(coarse["±"]) + 0.01
    assert 0 < int(coarse["CG iterations"]) < 30 and not fine["CG iterations"]
    assert "log det error" in capsys.readouterr().out


@pytest.mark.gpu
def test_on_a_gpu_seconds_stand_beside_those_of_iterations(tmp_path):
    path = tmp_path / "direct.csv"
    options = ["--cases", "D", "--log2", "12", "--eta", "0.001", "--peers", "12", "--fields", "none"]
    assert direct.main([*options, "--device", "cuda", "--output", str(path)]) == 0
    (row,) = tables.read(path)[1]
    assert abs(float(row["log det error"])) < 0.01 and row["against"] == "dense"
    assert all(float(row[f"{part} s"]) > 0 for part in ("solve", "Vecchia", "matrix", "CG", "Lanczos"))
    assert not any("CPU s" in column for column in row)


def test_more_sites_are_compared_with_a_finer_factor(monkeypatch):
    monkeypatch.setattr(direct, "DENSE", 100)
    points, cov = next((points, cov) for _, points, _, cov in direct.problems(_options("D", "8")))
    (row,) = direct.measured(points, None, cov, [0.01], False)
    assert row["against"] == "eta 1e-05" and abs(row["log det error"]) < 0.01 and row["n"] == 256


def _options(cases, log2):
    return type("Options", (), {"cases": cases, "log2": log2, "fields": "none"})


def test_bad_options_are_told(capsys):
    assert direct.main(["--peers", "many"]) == 2
    assert "argument --peers: invalid int value" in capsys.readouterr().err
