"""The benchmark of a first use: every step is timed twice, and the last row adds them up."""

import json

import pytest

from h2gpu.apps.benchmarks import first_use

STEPS = ["device", "covariance_matrix", "A @ x", "Kriging.fit", "predict", "predict with std"]


def test_steps_are_timed_twice_and_added_up(monkeypatch):
    monkeypatch.setattr(first_use, "TARGETS", 20)
    *rows, total = first_use.measure(600, "cpu", False)
    assert [row["step"] for row in rows] == STEPS and total["step"] == "all"
    for key in ("first s", "again s"):
        assert all(row[key] >= 0 for row in rows)
        assert total[key] == pytest.approx(sum(row[key] for row in rows))


@pytest.mark.slow
def test_a_process_of_its_own_measures_and_its_error_is_told(capsys, monkeypatch, tmp_path):
    path = tmp_path / "first.csv"
    assert first_use.main(["--n", "300", "-o", str(path)]) == 0
    assert "python, import h2gpu" in capsys.readouterr().out and "Kriging.fit" in path.read_text()
    assert first_use.main(["--n", "300", "--device", "cuda", "--n", "none"]) == 2
    assert first_use.main(["--n", "300", "--row"]) == 0
    assert [row["step"] for row in json.loads(capsys.readouterr().out)] == [*STEPS, "all"]
