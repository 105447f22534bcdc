"""The benchmark of calls: others' work is the same work, its table has a row a case, and wrong options are one line."""

import numpy as np
import pytest

from h2gpu.apps.benchmarks import as_called
from h2gpu.apps.benchmarks.report import tables
from h2gpu.apps.benchmarks.routines.calls import ROUTINES, arguments, entries
from h2gpu.arrays import to_host

UP_TO_SIGNS = "qr", "qr, R alone", "svd"


def matrices(result):
    return [to_host(part) for part in (result if isinstance(result, tuple) else (result,))]


def assert_same(name, ours, others):
    for mine, theirs in zip(matrices(ours), matrices(others), strict=True):
        if name in UP_TO_SIGNS:
            mine, theirs = abs(mine), abs(theirs)
        np.testing.assert_allclose(
            np.tril(mine) if name == "syrk" else mine, np.tril(theirs) if name == "syrk" else theirs
        )


@pytest.mark.parametrize("name", [name for name, routine in ROUTINES.items() if routine.array])
def test_arrays_do_the_same_work(name, xp):
    routine = ROUTINES[name]
    arrays = arguments(routine.letters, 3, 6, "float64", xp)
    assert_same(name, routine.ours(*arrays), routine.array(xp, *arrays))


@pytest.mark.parametrize("name", [n for n, r in ROUTINES.items() if r.torch and n not in ("rsvd", "cholesky_qr")])
def test_tensors_do_the_same_work(name):
    torch = pytest.importorskip("torch")
    routine = ROUTINES[name]
    arrays = arguments(routine.letters, 3, 6, "float64", np)
    found = routine.torch(torch, *map(torch.from_dlpack, arrays))
    if name == "lu_factor":
        found = found[0], found[1].numpy() - 1
    assert_same(name, routine.ours(*arrays), tuple(found) if isinstance(found, tuple) else found)


@pytest.mark.parametrize("name", ROUTINES)
def test_the_largest_argument_is_known(name):
    letters = ROUTINES[name].letters
    assert max(array[0].size for array in arguments(letters, 2, 5, "float32", np)) == entries(letters, 5)


def test_the_table_has_a_row_a_case(tmp_path, monkeypatch):
    monkeypatch.setattr(as_called, "PATIENCE", 1e-4)
    table, picture = tmp_path / "called.csv", tmp_path / "called.png"
    options = ["gemm", "trsm", "--sizes", "2,3", "--batches", "1,90", "--dtypes", "float32"]
    assert as_called.main([*options, "-o", str(table), "--plot", str(picture)]) == 0
    _, rows = tables.read(table)
    cases = [(row["routine"], int(row["batch"]), int(row["n"])) for row in rows]
    assert cases == [(name, batch, n) for name in ("gemm", "trsm") for batch in (1, 90) for n in (2, 3)]
    assert all(float(row["µs"]) > 0 for row in rows) and picture.stat().st_size > 1000
    for row in rows[:4]:
        peers = [float(row[column]) for column in row if column in ("NumPy µs", "torch µs") and row[column]]
        assert float(row["of peer"]) == pytest.approx(float(row["µs"]) / min(peers), rel=2e-3)


def test_what_takes_long_is_scaled(monkeypatch):
    """Of a tenth of a second a matrix four are timed, and 100 are foretold."""
    clock = iter(np.cumsum([0.0] + [0.4, 0.0] * 9).tolist())
    monkeypatch.setattr(as_called.time, "perf_counter", lambda: next(clock))
    asked = []
    seconds, count = as_called.grown(lambda A: asked.append(len(A)), lambda count: (np.zeros(count),), 100, lambda: 0)
    assert (seconds, count, set(asked)) == (pytest.approx(10.0), 4, {4})


def test_on_the_cpu_ours_is_scaled_too_and_the_table_says_so(monkeypatch):
    monkeypatch.setattr(as_called, "PATIENCE", 0)
    monkeypatch.setattr(as_called, "LONGEST", 0)
    row = as_called.measured(as_called.Case("gemm", "float64", 500, 4), as_called.Device())
    assert row["scaled"].split(", ")[:2] == ["h2gpu", "NumPy"] and row["µs"] > 0


def test_a_table_is_resumed_case_by_case(tmp_path, monkeypatch, capsys):
    """Where time is over cases are left out and told; the next run measures these alone, in the end all are there."""
    table = str(tmp_path / "called.csv")
    options = ["gemm", "axpy", "--sizes", "2,3", "--batches", "7", "-o", table]
    assert as_called.main([*options, "--dtypes", "float32", "--seconds", "9"]) == 0
    before = tables.read(table)[1]
    assert as_called.main([*options, "--resume", "--seconds", "0"]) == 1
    assert "4 of 8 cases left out" in capsys.readouterr().err
    assert tables.read(table)[1] == before
    measured = []
    own = as_called.measured
    monkeypatch.setattr(as_called, "measured", lambda case, device: measured.append(case) or own(case, device))
    assert as_called.main([*options, "--resume"]) == 0
    after = tables.read(table)[1]
    assert {case.dtype for case in measured} == {"float64"} and len(measured) == 4
    assert [row for row in after if row["dtype"] == "float32"] == before
    assert [(row["routine"], row["dtype"], row["n"]) for row in after] == [
        (name, dtype, n) for name in ("gemm", "axpy") for dtype in as_called.DTYPES for n in "23"
    ]


def test_a_table_of_another_commit_is_not_resumed(tmp_path, monkeypatch, capsys):
    options = ["gemm", "--sizes", "2", "--batches", "7", "-o", str(tmp_path / "called.csv")]
    assert as_called.main([*options, "--resume"]) == 2
    assert as_called.main(options) == 0
    monkeypatch.setenv("H2GPU_COMMIT", "0123456")
    assert as_called.main([*options, "--resume"]) == 2
    assert "without “commit: 0123456”" in capsys.readouterr().err


def test_a_case_that_fails_leaves_the_others(tmp_path, monkeypatch, capsys):
    own = as_called.measured

    def failing(case, device):
        if case.n == 2:
            raise MemoryError("too much")
        return own(case, device)

    monkeypatch.setattr(as_called, "measured", failing)
    table = tmp_path / "called.csv"
    assert as_called.main(["gemm", "--sizes", "2,3", "--batches", "7", "--dtypes", "float32", "-o", str(table)]) == 1
    assert "gemm float32 7 × 2²: MemoryError: too much" in capsys.readouterr().out
    assert [row["n"] for row in tables.read(table)[1]] == ["3"]


def test_the_published_batch_and_small_orders_come_first(tmp_path):
    cases = list(as_called.chosen(["svd", "gemv"], as_called.DTYPES, (1, 500), (8, 64, 128)))
    found = as_called.Table(None, "", False, cases).missing
    assert [case.batch for case in found] == [500] * 12 + [1] * 12
    assert [case.n for case in found[:12]] == [8, 64] * 4 + [128] * 4 and found[0].dtype == "float64"


def test_large_arguments_are_left_out():
    cases = list(as_called.chosen(["svd", "gemv"], ["float64"], [100_000], [8, 512]))
    assert [(case.routine, case.n) for case in cases] == [("svd", 8), ("gemv", 8)]


@pytest.mark.parametrize("options, words", [
    (["nothing"], "ROUTINE: expected some of axpy; gemv"),
    (["--dtypes", "int8"], "--dtypes: expected some of float64; float32, got int8"),
    (["--sizes", "0"], "--sizes: expected numbers > 0, got 0"),
    (["--batches", "x"], "--batches"),
])  # fmt: skip
def test_wrong_options_are_one_line(options, words, capsys):
    assert as_called.main(options) == 2
    assert words in capsys.readouterr().err
