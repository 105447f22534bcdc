"""What tuning tries for each row, and in which order."""

from pathlib import Path

import pytest
from stopwatch import ROUTINES, first

from h2gpu.apps.autotune import tune, tune_limits, tune_linear, tune_rank, tune_space
from h2gpu.apps.autotune.tune_limits import Hardware
from h2gpu.batched import model
from h2gpu.batched.device import tuning


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
    found = tune_space.candidates("trsm", first("trsm", rows=128, columns=4), Hardware())
    tiles = [knobs for knobs in found if knobs["method"] == "tiles"]
    assert tiles
    for knobs in tiles:
        assert knobs["columns"] == "4" and 32 * int(knobs["warps"]) <= 128


def test_a_table_without_the_columns_is_refused():
    with pytest.raises(ValueError, match=r"qr\.csv has no column resident"):
        tune_space.candidates("qr", {k: v for k, v in tuning.rows("qr")[0].items() if k != "resident"}, Hardware())


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
