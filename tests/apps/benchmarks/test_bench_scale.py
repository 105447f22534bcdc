"""The benchmarks of growth and of kriging: rows that hold what they say, slopes that are those of the rows."""

import pytest

import h2gpu
from h2gpu.apps.benchmarks import compress as bench_compress
from h2gpu.apps.benchmarks import compress_row, problems
from h2gpu.apps.benchmarks import kriging as bench_kriging
from h2gpu.apps.benchmarks import scale as bench_scale
from h2gpu.apps.benchmarks.report import tables
from h2gpu.apps.studies import memory as study_memory
from h2gpu.apps.studies import time as study_time


@pytest.mark.parametrize("name", ["clusters", "grid-chosen"])
def test_a_row_keeps_the_accuracy_and_tells_the_peak(name):
    row = bench_scale._row(name, 1024, "cpu")
    assert (row["problem"], row["n"]) == (name, 1024)
    assert row["error of compression"] <= row["rtol"] and row["error against exact"] <= row["rtol"]
    assert row["peak / result"] == pytest.approx(row["peak MB"] / row["total after MB"]) and row["A x ms"] > 0


def test_slopes_are_exponents_of_the_larger_half():
    rows = [{"problem": "p", "n": 2**k, "total s": 3.0 * 2**k, "total after MB": 4.0**k} for k in range(14, 20)]
    rows = [row | {"A x ms": float(row["n"]) if row["n"] > 2**15 else 1.0} for row in rows]
    (line,) = bench_scale.slopes(rows)
    assert line == "p, from 131,072 points: total s n^1.00, total after MB n^2.00, A x ms n^1.00"
    assert not list(bench_scale.slopes(rows[:1]))


def test_the_table_and_the_picture_are_written(tmp_path, monkeypatch, capsys):
    found = bench_scale._row("grid", 1024, "cpu")
    monkeypatch.setattr(bench_scale, "_measured", lambda name, n, device: found | {"n": n})
    monkeypatch.setattr(bench_scale, "_copy_rate", lambda device: 1e4)
    bench_scale.main(["--problems", "grid-peer", "--largest", "15", "--name", "peer", "--output", str(tmp_path)])
    _, rows = tables.read(tmp_path / "peer-cpu.csv")
    assert [row["n"] for row in rows] == ["16384", "32768"] and float(rows[0]["A x / copy"]) > 0
    assert (tmp_path / "peer-cpu.png").stat().st_size > 10_000 and "total s n^0.00" in capsys.readouterr().out


def test_what_cannot_be_measured_is_told_in_a_line(tmp_path, capsys):
    table = tmp_path / "study_memory.csv"
    table.write_text("what was measured before")
    for benchmark, arguments, words in (
        (bench_scale, ["--problems", "grid,nonsense"], "--problems: expected some of grid, "),
        (bench_compress, ["--largest", "3"], "expected an integer from 14 on, got '3'"),
        (bench_compress, ["--rtol", "nan"], "expected a finite number above 0, got 'nan'"),
        (bench_kriging, ["--sizes", "90,abc"], "expected an integer above 0, got 'abc'"),
        (study_memory, ["--largest", "10", "-o", str(tmp_path)], "expected an integer from 11 on, got '10'"),
        (study_time, ["--largest", "1", "-o", str(tmp_path)], "expected an integer from 13 on, got '1'"),
    ):
        assert benchmark.main(arguments) == 2
        error = capsys.readouterr().err
        assert words in error and error.count("\n") == 1
    assert table.read_text() == "what was measured before" and list(tmp_path.iterdir()) == [table]
    with pytest.raises(ValueError, match="nothing was measured"):
        tables.write(table, [], "a device")
    assert table.read_text() == "what was measured before"


def test_the_reason_of_a_row_s_process_is_told(capsys):
    assert bench_scale.main(["--problems", "grid", "--largest", "14", "--device", "cuda"]) in (0, 1)
    error = capsys.readouterr().err
    assert not error or (error.count("\n") == 1 and "--device cuda: expected CuPy and a CUDA device" in error)


def test_kriging_is_timed_on_a_field_that_it_predicts():
    row = bench_kriging.measure(400, "cpu")
    assert row["rmse"] < 2 * row["mean std"] and row["within 2 std"] > 0.9
    assert row["fit and predict with std s"] == row["fit s"] + row["predict with std s"]


def test_compression_alone_of_stored_couplings(tmp_path, monkeypatch):
    monkeypatch.setattr(bench_compress, "SMALLEST", 11)
    bench_compress.main(["--stored", "--largest", "11", "--output", str(tmp_path / "stored.csv")])
    _, rows = tables.read(tmp_path / "stored.csv")
    assert [row["dtype"] for row in rows] == ["float64", "float32"]
    phases = ("orthogonalize ms", "weights ms", "truncate ms", "project ms")
    assert all(float(row[name]) > 0 for row in rows for name in (*phases, "compress ms", "compress by tiles alone ms"))


def test_what_is_compared_with_a_chosen_plan_has_its_orders_by_level():
    """With the largest order on all levels the leaves of 2^25 sites took 22 GB more than the job itself ever had."""
    points, cov = problems.perturbed_grid(2**12), problems.paper_covariance()
    row = compress_row.measure(points, cov, {}, 1e-6, "cpu", None)
    chosen = h2gpu.plan(points, cov, 1e-6)
    assert min(chosen.orders) < chosen.order
    A = h2gpu.build(points, cov, leaf_size=chosen.leaf_size, eta=chosen.eta, order=chosen.orders)
    for part in ("leaf_basis", "transfer", "coupling"):
        assert row[f"{part} before MB"] == pytest.approx(A.memory[part] / 1e6, rel=1e-9)
