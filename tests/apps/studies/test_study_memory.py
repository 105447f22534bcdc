"""Figure 14a: what each way removes stands in a row of its own, of both precisions and splits."""

import numpy as np
import pytest

from h2gpu.apps.benchmarks.report import tables
from h2gpu.apps.command.devices import Device
from h2gpu.apps.studies import memory

PARTS = "nearfield", "leaf_basis", "transfer", "coupling"


@pytest.mark.parametrize("dtype, split", [("float64", "median"), ("float32", "mean")])
def test_rounding_has_a_row_of_its_own(dtype, split):
    rows = {row["matrix"]: row for row in memory.measure(1024, dtype, split, Device())}
    assert list(rows) == ["before", *(name for name in memory.WAYS if dtype == "float64" or "rounded" not in name)]
    assert all(row["total"] == pytest.approx(sum(row[part] for part in PARTS)) for row in rows.values())
    assert all(row["error"] <= memory.RTOL[dtype] for row in rows.values())
    for name in ("basis", "weighted"):
        assert rows[name]["nearfield"] == rows["before"]["nearfield"]  # nothing is rounded
    assert rows["weighted"]["low rank"] < rows["before"]["low rank"]
    if dtype == "float64":
        assert rows["weighted, rounded"]["total"] < rows["weighted"]["total"]


def test_the_table_the_picture_and_a_sentence_each(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(memory, "SMALLEST", 9)
    assert memory.main(["--largest", "10", "-o", str(tmp_path)]) == 0
    _, rows = tables.read(tmp_path / "study_memory-cpu.csv")
    assert len(rows) == 2 * 2 * (4 + 3) and (tmp_path / "study_memory-cpu.png").stat().st_size > 10_000
    said = capsys.readouterr().out.splitlines()[-4:]
    assert said[0].startswith("float64, median, n = 1024: left of the low-rank memory by basis ")
    basis = float(said[0].split("basis ")[1].split("%")[0]) / 100
    low = {row["matrix"]: float(row["low rank"]) for row in rows if row["n"] == "1024" and row["dtype"] == "float64"}
    assert np.isfinite(basis) and low["basis"] <= low["before"]
