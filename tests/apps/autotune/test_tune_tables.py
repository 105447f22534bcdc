"""The tables that tuning writes, and the rows that are read from them."""

import csv
import os
import sys
import types

import numpy as np
import pytest
from stopwatch import Stopwatch

from h2gpu.apps.autotune import tune, tune_fixed, tune_limits
from h2gpu.apps.autotune.tune_limits import Hardware
from h2gpu.batched.device import tuning
from h2gpu.batched.products import choice, fixed_plans


def test_a_tuned_table_is_read_back(tmp_path, monkeypatch):
    rows = tuning.rows("svd")
    chosen = [row for row in rows if row["dtype"] == "float64"]
    trials = Stopwatch(lambda knobs, case: {"block-direct": 1.0}.get(knobs["method"], 2.0) + int(knobs["columns"]) / 10)
    new = tune.tuned("svd", rows, chosen, Hardware(), trials, "Some GPU")
    assert [row for row in new if row["dtype"] == "float32"] == [row for row in rows if row["dtype"] == "float32"]
    assert [tune_limits.limits(row) for row in new] == [tune_limits.limits(row) for row in rows]
    tune.write(tmp_path / "tuning" / "some-gpu" / "svd.csv", new)
    monkeypatch.setattr(tuning, "source_folder", lambda: tmp_path)
    monkeypatch.setattr(tuning, "_device_folder", lambda routine: "some-gpu")
    tuning.first_row.cache_clear()
    try:
        read = tuning.row("svd", np.float64, rank=100)
        assert (read["method"], read["columns"], read["max_rank"], read["device"]) == (
            "block-direct",
            1,
            128,
            "Some GPU",
        )
    finally:
        tuning.first_row.cache_clear()


def test_tables_are_written_whole(tmp_path, monkeypatch):
    path, rows = tmp_path / "gemm.csv", tuning.rows("gemm")
    tune.write(path, rows)
    with path.open(newline="", encoding="utf-8") as file:
        assert list(csv.DictReader(file)) == rows
    before = path.read_bytes()
    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tune.write(path, rows[:1])
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


def interrupted(*arguments):
    raise KeyboardInterrupt


def test_an_interrupt_leaves_the_old_table(tmp_path, monkeypatch, capsys):
    path = tmp_path / "svd.csv"
    path.write_text("old\n", encoding="utf-8")

    class Interrupted(Stopwatch):
        def __init__(self, compilers):
            super().__init__(interrupted)

    monkeypatch.setattr(tune, "Trials", Interrupted)
    monkeypatch.setattr(tune.timing, "gpu_name", lambda: "NVIDIA H200")
    monkeypatch.setattr(tune_limits.Hardware, "here", Hardware)
    assert tune.main(["svd", "-o", str(tmp_path)]) == 1
    assert capsys.readouterr().err == "tune: error: interrupted\n"
    assert path.read_text(encoding="utf-8") == "old\n" and list(tmp_path.iterdir()) == [path]


def test_a_part_of_a_table(tmp_path, monkeypatch, capsys):
    class Quick(Stopwatch):
        def __init__(self, compilers):
            super().__init__(lambda knobs, case: 1.0)

    monkeypatch.setattr(tune, "Trials", Quick)
    monkeypatch.setattr(tune.timing, "gpu_name", lambda: "Another GPU")
    monkeypatch.setattr(tune_limits.Hardware, "here", Hardware)
    assert tune.main(["svd", "--dtypes", "float32", "--where", "max_rank=96", "-o", str(tmp_path)]) == 0
    with (tmp_path / "svd.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    changed = [row for row, old in zip(rows, tuning.rows("svd")) if row != old]
    assert [(row["dtype"], row["max_rank"], row["device"]) for row in changed] == [("float32", "96", "Another GPU")]
    assert "svd float32 rank≤96: " in capsys.readouterr().out


def test_sizes_without_a_row_come_first_and_only_measured_rows_are_written(tmp_path, monkeypatch):
    class Slow(Stopwatch):
        def __init__(self, compilers):
            super().__init__(lambda knobs, case: seconds.append(seconds.pop() + 1.0) or 1.0)

    seconds, path = [0.0], tmp_path / "tuning" / "nvidia-h200" / "fixed_gemm.csv"
    path.parent.mkdir(parents=True)
    monkeypatch.setattr(tune, "Trials", Slow)
    monkeypatch.setattr(tune, "TOGETHER", 1)
    monkeypatch.setattr(tune.time, "perf_counter", lambda: seconds[0])
    monkeypatch.setattr(tune.timing, "gpu_name", lambda: "NVIDIA H200")
    monkeypatch.setattr(tune_limits.Hardware, "here", Hardware)
    for module in (tune_fixed, tuning, tune):
        monkeypatch.setattr(module, "source_folder", lambda: tmp_path)
    wanted = "fixed_gemm", "--dtypes", "float32", "--where", "size=5,6,7", "--best", "1"
    sizes = []
    for limit in (1, 1, 100):
        assert tune.main([*wanted, "--seconds", str(limit)]) == 0
        with path.open(newline="", encoding="utf-8") as file:
            sizes.append([row["size"] for row in csv.DictReader(file)])
    assert sizes == [["5"], ["5", "6"], ["5", "6", "7"]]
    tuning._by_size.cache_clear()
    monkeypatch.setattr(tuning, "_name", lambda device: "NVIDIA H200")
    monkeypatch.setattr(tuning, "_device", lambda: 0)
    row = tuning.measured("fixed_gemm", np.float32, 6)
    assert fixed_plans.Plan.of(row, np.float32, 6) in fixed_plans.candidates(
        np.dtype(np.float32), 6, 6, 6, False, False
    )
    assert tuning.measured("fixed_gemm", np.float32, 8) is None and tuning.measured("fixed_gemm", np.float64, 6) is None
    with tuning.trial("fixed_gemm", band=3):
        assert tuning.measured("fixed_gemm", np.float32, 8) == {"band": 3}
    tuning._by_size.cache_clear()


def test_a_trial_replaces_the_rows_while_it_lasts(monkeypatch):
    monkeypatch.setattr(tuning, "_device_folder", lambda routine: tuning.FALLBACK)
    before = tuning.row("gemm", np.float64, **choice.limits(64, 64, False))
    with tuning.trial("gemm", method=7):
        assert tuning.row("gemm", np.float64, **choice.limits(64, 64, False)) == before | {"method": 7}
        with tuning.trial("gemm", method=8):
            assert tuning.row("gemm", np.float32, **choice.limits(64, 64, False))["method"] == 8
        assert tuning.row("gemm", np.float64, **choice.limits(8, 8, False))["method"] == 7
        assert tuning.row("svd", np.float64, rank=5)["method"] == "register"
    assert tuning.row("gemm", np.float64, **choice.limits(64, 64, False)) == before


def test_devices_without_a_table_use_the_fallback_and_say_so(tmp_path, monkeypatch, caplog):
    runtime = types.SimpleNamespace(getDeviceProperties=lambda device: {"name": b"Some GPU"})
    monkeypatch.setitem(sys.modules, "cupy", types.SimpleNamespace(cuda=types.SimpleNamespace(runtime=runtime)))
    folder = tmp_path / "tuning" / "some-gpu"
    folder.mkdir(parents=True)
    (folder / "gemm.csv").write_text("dtype\n", encoding="utf-8")
    monkeypatch.setattr(tuning, "source_folder", lambda: tmp_path)
    tuning._folder_of.cache_clear()
    with caplog.at_level("DEBUG", "h2gpu.batched.device.tuning"):
        assert tuning._folder_of(0, "gemm") == "some-gpu" and not caplog.records
        assert tuning._folder_of(0, "svd") == tuning.FALLBACK
    assert "no tuning table of svd for Some GPU" in caplog.text
    tuning._folder_of.cache_clear()
