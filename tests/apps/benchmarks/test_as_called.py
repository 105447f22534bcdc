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


def test_others_that_take_long_are_scaled(monkeypatch):
    """Of a tenth of a second a matrix four are timed, and 100 are foretold."""
    clock = iter(np.cumsum([0.0] + [0.4, 0.0] * 9).tolist())
    monkeypatch.setattr(as_called.time, "perf_counter", lambda: next(clock))
    seconds, count = as_called.grown(lambda A: None, (np.zeros((100, 2, 2)),), lambda: None)
    assert (seconds, count) == (pytest.approx(10.0), 4)


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
