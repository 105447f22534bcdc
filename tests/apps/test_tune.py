"""Tuning without a GPU: what is tried, what wins, what is written, and what is said when it cannot run."""

import csv
import os
import re
import sys
import types
from pathlib import Path

import numpy as np
import pytest

from h2gpu.apps.autotune import tune, tune_fixed, tune_limits, tune_linear, tune_rank, tune_space
from h2gpu.apps.autotune.tune_limits import Hardware
from h2gpu.apps.benchmarks import batched as bench_batched
from h2gpu.apps.benchmarks.routines.batched import Case
from h2gpu.batched import model
from h2gpu.batched.device import tuning
from h2gpu.batched.products import choice, fixed_plans

ROUTINES = tuple(tune_space.KNOBS)


def first(routine, **limits):
    """The first row of the fallback's table with these columns."""
    found = {f"max_{name}": str(value) for name, value in limits.items()}
    return next(row for row in tuning.rows(routine) if found.items() <= row.items())


@pytest.fixture(autouse=True)
def few_sizes(monkeypatch):
    """A table of all sizes takes as many plans."""
    monkeypatch.setattr(fixed_plans, "LARGEST", 9)


class Stopwatch:
    """Trials whose times are computed from the knobs: time(knobs, case), or a reason to reject."""

    def __init__(self, time):
        self.time, self.compiled, self.measured, self.calls = time, [], [], []

    def compile(self, jobs):
        self.calls.append(len(jobs))
        self.compiled += jobs

    def measure(self, routine, knobs, case, is_own):
        self.measured.append((knobs, case))
        ms = self.time(knobs, case)
        if isinstance(ms, str):
            raise tune.RejectedError(ms)
        return ms


@pytest.mark.parametrize("routine", ROUTINES)
def test_every_row_has_problems_that_it_decides_and_candidates(routine):
    rows, others = tune.table(routine, tuning.FALLBACK), 0
    for i, row in enumerate(rows):
        cases = tune_space.problems(routine, row, rows[:i])
        found, limits = tune_space.candidates(routine, row, Hardware()), tune_limits.limits(row)
        elsewhere = row.get("warps") == "0"  # a row that sends its matrices to another kernel
        assert cases and not (elsewhere and len(found) > 1)
        others += len(found) > 1
        assert found[0] == {knob: row[knob] for knob in tune_space.KNOBS[routine]}
        assert len({tuple(knobs.values()) for knobs in found}) == len(found)
        for case in cases:
            assert case.dtype == row["dtype"] and ("pieces" in limits or case.shape[-1] <= max(limits.values()))
    assert others > len(rows) / 2


def test_rows_above_take_their_sizes():
    rows = [row for row in tuning.rows("gemm") if row["dtype"] == "float64"]
    last = tune_space.problems("gemm", rows[-1], rows[:-1])
    assert all(
        case.shape[0] > 32 and (case.shape[0] > 96 or case.shape[0] % 32 in (0, *range(17, 32))) for case in last
    )
    with pytest.raises(ValueError, match="take all"):
        tune_space.problems("qr", rows_of_nothing := first("qr", columns=8), [rows_of_nothing])


def test_registers_prune():
    row = first("qr", columns=32, rows=10**9, matrices=2000)
    wide, narrow = Hardware(), Hardware(lane_registers=96, registers=1 << 14)
    for hardware, most in ((wide, 255), (narrow, 96)):
        for knobs in tune_space.candidates("qr", row, hardware)[1:]:
            rows, columns, resident = (int(knobs[k]) for k in ("register_rows", "register_columns", "resident"))
            words = 2 * (rows * columns + rows) + tune_limits.OTHER_WORDS
            assert words <= tune_limits.SLACK * most
            assert resident * 32 * min(words, most) <= tune_limits.SLACK * hardware.registers
    assert len(tune_space.candidates("qr", row, narrow)) < len(tune_space.candidates("qr", row, wide))


def test_shared_memory_prunes():
    row = first("qr", columns=512)
    assert {knobs["shared_r"] for knobs in tune_space.candidates("qr", row, Hardware())} == {"0"}
    roomy = Hardware(shared_bytes=1 << 22)
    assert {knobs["shared_r"] for knobs in tune_space.candidates("qr", row, roomy)} == {"0", "1"}
    methods = [knobs["method"] for knobs in tune_space.candidates("svd", first("svd", rank=128), Hardware())]
    assert "shared" in methods and "register" not in methods
    cramped = Hardware(shared_bytes=48 << 10)
    tried = tune_space.candidates("svd", first("svd", rank=128), cramped)[1:]
    assert {knobs["method"] for knobs in tried} == {"block-gram", "block-direct"}


def test_threads_prune():
    row = next(row for row in tuning.rows("qr") if (row["dtype"], row["max_columns"]) == ("float32", "1024"))
    assert "1" in {knobs["register_columns"] for knobs in tune_space.candidates("qr", row, Hardware())}
    few = tune_space.candidates("qr", row, Hardware(threads=512))[1:]
    assert "1" not in {knobs["register_columns"] for knobs in few}


def test_lanes_hold_all_columns():
    for row in tuning.rows("qr_tall"):
        for knobs in tune_space.candidates("qr_tall", row, Hardware()):
            blocked, held = int(knobs["ways"]) > 0, int(knobs["lanes"]) * int(knobs["register_columns"])
            assert blocked != (held >= int(row["max_columns"]))
            assert int(knobs["warps"]) <= int(knobs["resident"])


def test_thread_blocks_hold_all_rows_of_a_strip():
    for row in tuning.rows("qr_tree"):
        for knobs in tune_space.candidates("qr_tree", row, Hardware()):
            held = 8 * int(knobs["warps"]) * int(knobs["tiles"])
            assert not int(row["warps"]) or held >= 2 * int(row["max_columns"])
    for row in tuning.rows("qr_blocked"):
        for knobs in tune_space.candidates("qr_blocked", row, Hardware()):
            held = 8 * int(knobs["warps"]) * int(knobs["tiles"])
            assert not int(row["warps"]) or held == int(row["max_rows"])


def test_a_warp_a_matrix_is_tried_where_lanes_hold_its_rows():
    for row in tuning.rows("lu_shared"):
        panels = {knobs["panel"] for knobs in tune_linear.SPACES["lu_shared"](row, Hardware())}
        held = int(row["max_rows"]) ** 2 * tune_limits.itemsize(row) // 32
        assert (32 in panels) == (held <= tune_linear.LANE_BYTES)
    source = Path(tuning.__file__).parents[1].joinpath("systems", "lu_warps.py").read_text(encoding="utf-8")
    assert f"ROW_BYTES = {tune_linear.LANE_BYTES} " in source


def test_panels_leave_warps_that_update():
    for row in tuning.rows("lu_shared"):
        slots = int(row["max_rows"]) // 32
        for knobs in tune_space.candidates("lu_shared", row, Hardware()):
            warps, resident, held = (int(knobs[name]) for name in ("warps", "resident", "held"))
            assert (
                slots <= held * (warps - 1)
                and 32 * warps * resident * tune_linear.LEAST_REGISTERS <= Hardware().registers
            )
            assert knobs["window"] in ("0", str(int(row["max_rows"]) // 2))
            assert int(knobs["window"]) <= int(row["max_rows"]) - 32, "else rows end within the window"
    row = first("cholesky_shared", rows=64)
    few = tune_space.candidates("cholesky_shared", row, Hardware(shared_bytes=64 << 10))[1:]
    assert {knobs["resident"] for knobs in few} < {
        knobs["resident"] for knobs in tune_space.candidates("cholesky_shared", row, Hardware())
    }


def test_registers_hold_the_columns_of_a_panel():
    widths = [
        {knobs["width"] for knobs in tune_space.candidates("lu_panel", first("lu_panel", rows=rows), Hardware())}
        for rows in (512, 1024, 2048)
    ]
    assert widths == [{"32", "16", "8"}, {"16", "8"}, {"8"}]
    assert {case.method for row in tuning.rows("lu_panel") for case in tune_space.problems("lu_panel", row, [])} == {
        "panel"
    }


def test_few_right_hand_sides_stay_in_small_blocks():
    """The row of few is what solves that do not fit otherwise fall back to."""
    for knobs in tune_space.candidates("trsm", first("trsm", columns=4), Hardware()):
        assert knobs["columns"] == "4" and 32 * int(knobs["warps"]) <= 128


def test_a_table_without_the_columns_is_refused():
    with pytest.raises(ValueError, match=r"qr\.csv has no column resident"):
        tune_space.candidates("qr", {k: v for k, v in tuning.rows("qr")[0].items() if k != "resident"}, Hardware())


def test_the_fastest_wins_and_tells_its_rate():
    row, case = first("svd", rank=32), Case("svd", "float64", 1000, (32, 32), method="auto")
    found = [{"method": "register", "columns": "4"}, {"method": "shared", "columns": "2"}]
    trials = Stopwatch(lambda knobs, case: 0.5 if knobs["method"] == "shared" else 1.0)
    new = tune.best("svd", row, found, [case], trials, "Some GPU")
    assert (new["method"], new["columns"], new["rate"]) == ("shared", "2", "0.5")
    assert (new["unit"], new["device"], new["max_rank"]) == ("ms for 1000 of 32x32", "Some GPU", row["max_rank"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", new["date"]) and new.keys() == row.keys()


def test_noise_changes_nothing():
    own, other = {"method": "vendor"}, {"method": "tiles"}
    assert tune.winner([([1.0], own), ([0.99], other)], own)[1] == own
    assert tune.winner([([1.0], own), ([0.95], other)], own)[1] == other
    assert tune.winner([([1.0, 4.0], own), ([2.0, 1.0], other)], own)[1] == other  # geometric mean


def test_candidates_that_fail_are_told_and_left_out(capsys):
    case = Case("gemm", "float64", 10, (64, 64))
    trials = Stopwatch(lambda knobs, case: "wrong: 3 of the allowed error" if knobs["method"] == "tiles" else 1.0)
    new = tune.best("gemm", first("gemm", size=16), [{"method": "tiles"}, {"method": "vendor"}], [case], trials, "GPU")
    assert new["method"] == "vendor" and "method tiles: wrong: 3 of the allowed error" in capsys.readouterr().out
    with pytest.raises(tune.FailureError, match="no candidate works"):
        tune.best("gemm", first("gemm", size=16), [{"method": "tiles"}], [case], trials, "GPU")


def test_a_case_is_timed_once_for_all_candidates_that_agree_in_what_it_depends_on():
    row = first("qr", columns=32, rows=32)
    cases = tune_space.problems("qr", row, [])
    assert {case.routine for case in cases} == {"qr", "qr_r"}
    trials = Stopwatch(lambda knobs, case: 1.0)
    found = [dict(zip(tune_space.KNOBS["qr"], ("32", "1", "10", r, q))) for r in "01" for q in "01"]
    tune.best("qr", row, found, cases, trials, "GPU")
    assert len(trials.measured) == 2 * len(cases)


def test_everything_is_compiled_at_once():
    rows, trials = tuning.rows("qr"), Stopwatch(lambda knobs, case: float(len(trials.calls)))
    chosen = [row for row in rows if row["dtype"] == "float64"][:2]
    tune.tuned("qr", rows, chosen, Hardware(), trials, "GPU", 2)
    assert trials.calls == [len(trials.compiled)] and len({str(job) for job in trials.compiled}) == len(trials.compiled)
    assert len(trials.measured) == len(trials.compiled)


def test_rows_are_left_where_time_is_over(monkeypatch, capsys):
    rows, clock = tuning.rows("svd"), [0.0]
    trials = Stopwatch(lambda knobs, case: 1.0)
    monkeypatch.setattr(tune.time, "perf_counter", lambda: clock[0])
    assert tune.tuned("svd", rows, rows, Hardware(), trials, "GPU", until=0.0) == rows and not trials.measured
    monkeypatch.setattr(trials, "compile", lambda jobs: clock.append(clock.pop() + 2.0))
    assert tune.tuned("svd", rows, rows[:1], Hardware(), trials, "GPU", until=1.0) == rows
    assert "see --seconds" in capsys.readouterr().out


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


def test_a_dry_run_needs_no_gpu(capsys):
    assert tune.main(["--dry-run"]) == 0
    out = capsys.readouterr().out
    for routine in ROUTINES:
        assert f"{routine} float64" in out and f"{routine} float32" in out
    assert "register_rows: " in out and "candidates on " in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["lu"], "ROUTINE: expected some of qr"),
        (["--dtypes", "half"], "--dtypes: expected"),
        (["svd", "--dry-run", "--where", "max_size=3"], r"expected a column of svd\.csv"),
        (["--bogus"], "see tune --help"),
    ],
)
def test_wrong_arguments_are_one_line(arguments, words, capsys):
    assert tune.main(arguments) == 2
    err = capsys.readouterr().err
    assert re.search(words, err) and err.startswith("tune: error: ") and err.count("\n") == 1


@pytest.mark.parametrize("command", [tune.main, bench_batched.main])
def test_without_a_gpu_there_is_one_line(command, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert command([]) == 1
    out, err = capsys.readouterr()
    assert out == "" and re.fullmatch(r"[\w.]+: error: expected CuPy and a CUDA device, got .*measures a GPU\n", err)


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


@pytest.mark.parametrize("routine", ["qr", "qr_blocked"])
def test_the_model_orders_what_it_counts(routine):
    rows = [row for row in tuning.rows(routine) if row["dtype"] == "float64" and row.get("warps") != "0"]
    row = max(rows, key=lambda row: len(tune_space.candidates(routine, row, Hardware())))
    cases = tune_space.problems(routine, row, tuning.rows(routine)[: tuning.rows(routine).index(row)])
    found = tune_space.candidates(routine, row, Hardware())
    order = tune_rank.ranked(routine, found, cases, tuning.FALLBACK)
    assert order[0] == found[0] and sorted(map(str, order)) == sorted(map(str, found))
    constants = model.Constants.of(tuning.FALLBACK)
    times = [tune_rank.predicted(routine, knobs, cases, constants) for knobs in order[1:]]
    assert times == sorted(times) and times[0] < times[-1]
    assert tune_rank.ranked(routine, found, cases, tuning.FALLBACK, 3) == order[:4]


def test_of_what_the_model_does_not_count_the_nearest_come_first():
    row = first("gemv", pieces=16)
    found = tune_space.candidates("gemv", row, Hardware())
    assert found[0] == {"lanes": "8", "rows": "4", "threads": "128"}
    order = tune_rank.ranked("gemv", found, [], tuning.FALLBACK)
    assert order[0] == found[0] and sorted(map(str, order)) == sorted(map(str, found))
    for knobs in order[1:7]:  # two neighbours a knob
        assert sum(knobs[knob] != found[0][knob] for knob in knobs) == 1
    assert tune_rank.ranked("qr", found, [], "abacus", 1) == order[:2]


def test_fewer_candidates_are_measured():
    row = first("qr", columns=32)
    stopwatch = Stopwatch(lambda knobs, case: 1.0)
    tune.tuned("qr", tuning.rows("qr"), [row], Hardware(), stopwatch, tuning.FALLBACK, 2)
    assert len({str(knobs) for knobs, _ in stopwatch.measured}) <= 3
