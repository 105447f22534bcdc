"""The benchmark of defaults: a row a draw, how often each job was tried, and the phases of the last."""

import pytest

from h2gpu.apps.benchmarks.defaults import __main__ as defaults
from h2gpu.h2matrix.planning import candidates


@pytest.fixture(autouse=True)
def small_yardstick(monkeypatch):
    monkeypatch.setattr(defaults, "YARDSTICK", (20, 16))


def test_rows_say_what_a_draw_took_and_whether_it_was_accurate():
    *draws, phases = defaults.measure(600, 2, 1e-4, "cpu")
    assert [row["draw"] for row in draws] == [0, 1]
    assert all(row["tries"] == 1 and 0 < row["error / rtol"] <= 1 for row in draws)
    measured = "CPU s", "yardsticks", "CPU yardsticks", "A x ms", "A x CPU ms"
    assert all(row[name] > 0 for row in draws for name in measured)
    assert 0 < sum(phases[f"{name} s"] for name in defaults.PHASES) <= phases["total s"]


def test_a_yardstick_by_the_clock_measures_the_clock_and_one_of_the_cpu_the_cpu(monkeypatch):
    monkeypatch.setattr(defaults, "clock_and_cpu", lambda work: (2.0, 4.0))
    (row, _) = defaults.measure(600, 1, 1e-4, "cpu")
    assert row["yardsticks"] == row["total s"] / 2 and row["CPU yardsticks"] == row["CPU s"] / 4


def test_a_miss_is_counted(monkeypatch):
    estimated = candidates.Family.squared_errors
    monkeypatch.setattr(candidates.Family, "squared_errors", lambda self, order: estimated(self, order) / 20**2)
    draw, _ = defaults.measure(1500, 1, 1e-6, "cpu")
    assert draw["tries"] == 2


def test_the_command_writes_a_table(tmp_path, capsys):
    table = tmp_path / "defaults.csv"
    assert defaults.main(["--log2", "9", "--draws", "1", "--rtol", "1e-3", "-o", str(table)]) == 0
    assert "weights s" in table.read_text() and "tries" in capsys.readouterr().out
