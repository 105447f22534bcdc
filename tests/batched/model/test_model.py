"""The model of running times: counts by hand, growth, units that cancel, constants that must be measured."""

import os
import signal
import time
from dataclasses import fields, replace

import numpy as np
import pytest

from h2gpu import batched
from h2gpu.apps.autotune import microbench
from h2gpu.apps.benchmarks.report import tables
from h2gpu.apps.studies import small as study_small
from h2gpu.batched import model
from h2gpu.batched.device import tuning
from h2gpu.batched.model import counts
from h2gpu.batched.model import registers as register_counts
from h2gpu.batched.model.counts import Counts
from h2gpu.batched.registers.layouts import THREAD, Layout

RATES = {"copy_rate": 4e12, "cache_rate": 5e12, "clock": 2e9, "shared_rate": 3e13, "shuffle_rate": 2e11}
LATENCIES = {"global_latency": 5e-7, "shared_latency": 2e-8, "shuffle_latency": 1e-8, "launch": 2e-6}
FLOPS = {"fma_rate": 3e13, "mma_rate": 6e13, "product_rate": 5e13}
SLOW = {"fma_latency": 3e-9, "root_latency": 2e-8, "division_latency": 3e-8}
CASES = [
    ("qr", 64, 64, np.float64),
    ("qr", 20, 8, np.float32),
    ("svd", 20, 16, np.float64),
    ("pivoted_qr", 64, 64, np.float64),
    ("gemm", 40, 40, np.float32),
    ("lu", 6, 6, np.float64),
    ("lu", 40, 40, np.complex64),
    ("cholesky", 7, 7, np.float32),
    ("gauss-jordan", 30, 30, np.float64),
    ("lstsq", 40, 20, np.float32),
]


def imagined(second=1.0):
    """Constants of no device, with seconds of another length."""
    values = {(name, ""): rate / second for name, rate in RATES.items()}
    values |= {(name, ""): latency * second for name, latency in LATENCIES.items()}
    for dtype in ("float32", "float64"):
        values |= {(name, dtype): rate / second for name, rate in FLOPS.items()}
        values |= {(name, dtype): latency * second for name, latency in SLOW.items()}
    barriers = {(f"barrier_{threads}", ""): threads * 1e-10 * second for threads in microbench.BARRIERS}
    return values | barriers | {("multiprocessors", ""): 132.0}


@pytest.fixture
def known(monkeypatch):
    """A device whose constants are all known."""
    monkeypatch.setattr(model, "_table", lambda folder: imagined())


@pytest.mark.parametrize(("routine", "m", "n", "dtype"), CASES)
def test_predictions_grow_with_the_batch_and_end_proportional(routine, m, n, dtype, known):
    times = [batched.predict_time(routine, batch, m, n, dtype) for batch in (1, 10, 1000, 30_000, 10**7, 10**8)]
    assert times == sorted(times) and times[0] > 0
    assert times[-1] / times[-2] == pytest.approx(10, rel=0.05)
    assert batched.predict_time(routine, 0, m, n, dtype) == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
@pytest.mark.parametrize("routine", ["lu", "gauss-jordan", "lstsq", "solve"])
@pytest.mark.parametrize("grid", [THREAD, Layout(8, 8)])
def test_predictions_grow_with_the_size(grid, routine, dtype):
    constants = model.Constants("imagined", imagined())
    sizes = range(2, 17 if grid == THREAD else 49, 2)
    for batch in (1, 100_000):
        works = [register_counts.small(routine, dtype, n, n, 1, grid) for n in sizes]
        times = [model.seconds(work, batch, dtype, constants) for work in works]
        assert times == sorted(times)


def test_lu_of_two_by_two_in_a_thread_by_hand():
    """One quotient, one multiply-add; four numbers in, four and info out."""
    work = register_counts.small("lu", np.float64, 2, 2, 0, THREAD)
    assert (work.flops, work.spilled, work.divisions, work.roots) == (4, 0, 2, 0)
    assert work.issued * 32 == 2 + 8 * 8 + 2 * 30  # products, entries, pivots
    assert (work.nbytes, work.barriers, work.threads) == (8 * 8 + 4, 0, 1)
    assert register_counts.small("lu", np.complex64, 2, 2, 0, THREAD).flops == 4 * 4


def test_what_registers_do_not_hold_is_moved_with_every_step():
    """12 × 12 of float64 are 288 words, 53 more than there is room for, in 2/3 · 12 visits of 4 bytes."""
    work = register_counts.small("lu", np.float64, 12, 12, 0, THREAD)
    assert work.spilled == pytest.approx(53 * 4 * 8)
    assert register_counts.small("lu", np.float64, 10, 10, 0, THREAD).spilled == 0


def test_sectors_are_torn_where_pieces_begin_within_them():
    """11 × 11 of float32 begin at any word: four pieces of seven matrices in eight. 8 × 8: none; 5 × 5: one run."""
    assert register_counts.torn_sectors(121, 4) == pytest.approx(4 * 7 / 8)
    assert register_counts.torn_sectors(64, 4) == register_counts.torn_sectors(25, 4) == 0


def test_gauss_jordan_and_cholesky_by_hand():
    """[A | b] of two rows: 3 quotients, 3 multiply-adds, 1 multiplier looked at. L: 1 quotient, 1 multiply-add."""
    assert register_counts.thread_products("gauss-jordan", 2, 2, 1) == 7
    assert register_counts.thread_products("cholesky", 2, 2, 0) == 2


def test_lu_in_a_block_by_hand():
    """8 × 8 on 8 × 4 threads: a step is one barrier; a tile of 1 × 2, of 1 × 1 in the second panel; info has two."""
    work = register_counts.small("lu", np.float32, 8, 8, 0, Layout(8, 4))
    assert work.barriers == work.shared_trips == work.divisions + 2 == 8 + 2
    assert work.issued == 4 * (2 + 6 + 2 * 3 + 55) + 4 * (1 + 6 + 3 + 55) + 60 + 2 * 6
    assert work.shuffles == work.roots == 0
    assert work.nbytes == 2 * 64 * 4 + 4


def test_large_batches_in_threads_run_at_the_rate_of_memory():
    """The paper's section IV: nothing but traffic counts for 7 × 7 QR."""
    constants = model.Constants("imagined", imagined())
    work, batch = register_counts.small("qr", np.float32, 7, 7, 0, THREAD), 10**8
    time = model.seconds(
        replace(work, dependent=0, roots=0, divisions=0, shared_trips=0, global_trips=0), batch, np.float32, constants
    )
    assert time == pytest.approx(batch * work.nbytes / RATES["copy_rate"], rel=0.1)


@pytest.mark.parametrize(("routine", "m", "n", "dtype"), CASES)
def test_units_cancel(routine, m, n, dtype, monkeypatch):
    """In seconds of another length every time is another number of the same length."""
    times = []
    for second in (1.0, 1000.0):
        monkeypatch.setattr(model, "_table", lambda folder, second=second: imagined(second))
        times.append(batched.predict_time(routine, 500, m, n, dtype))
    assert times[1] == pytest.approx(1000 * times[0])


def test_parts_add_up():
    one, two = counts.Counts(flops=1, barriers=2, threads=32, words=50), counts.Counts(flops=3, threads=64)
    both = counts.added(one, two)
    assert (both.flops, both.barriers, both.threads, both.words) == (4, 2, 64, 50)
    assert {f.name for f in fields(counts.Counts)} >= {"shared_bytes", "shuffles", "global_trips"}


def test_products_of_the_h200_need_no_further_constant():
    """20,000 of 64³ are bound by memory, 0.459 ms measured."""
    assert batched.predict_time("gemm", 20_000, 64, 64, np.float64, "NVIDIA H200") == pytest.approx(0.459e-3, rel=0.1)


def test_what_is_not_measured_is_named(monkeypatch):
    monkeypatch.setattr(model, "_table", lambda folder: {("copy_rate", ""): 1e12})
    with pytest.raises(LookupError, match="microbench"):
        batched.predict_time("lu", 100, 8, 8, np.float64)


@pytest.mark.parametrize(
    "arguments",
    [
        ("eig", 1, 4, 4, np.float64),
        ("lu", 1, 4, 4, np.int32),
        ("lu", -1, 4, 4, np.float64),
        ("lu", 1, 4, 4, np.float64, "abacus"),
        ("lu", 1, 4, 5, np.float64),
        ("lu", 1, 4, 4, "flo"),
        ("svd", 1, 400, 300, np.float64),
        ("lu", 1, 1000, 1000, np.float64),
        ("qr", 1, 8, 8, np.complex64),
    ],
)
def test_doors(arguments):
    with pytest.raises(ValueError, match="predict_time"):
        batched.predict_time(*arguments)
    for more in ({"columns": -3}, {"inner": -1}):
        with pytest.raises(ValueError, match=r"predict_time: expected an integer (columns|inner) ≥ 0"):
            batched.predict_time("gemm", 1, 4, 4, np.float64, **more)


def test_the_table_of_a_device_is_what_the_microbenchmarks_write():
    rows = [("copy_rate", "", 4.26e12, "B/s"), ("fma_rate", "float64", 3.1e13, "flop/s")]
    lines = microbench.table(rows, "NVIDIA H200", "2026-11-21").splitlines()
    assert lines[0].split(",") == list(tuning.rows("model")[0])
    assert lines[2] == "fma_rate,float64,3.1e+13,flop/s,NVIDIA H200,2026-11-21"


def test_the_microbenchmarks_measure_all_that_the_model_asks_for():
    class Bench:
        """Every measurement is one."""

        multiprocessors = clock = cache_bytes = 1

        def __getattr__(self, name):
            return lambda *_: (1.0, 1) if name == "rate" else 1.0

    assert {(constant, dtype) for constant, dtype, *_ in microbench.measured(Bench())} >= set(imagined())


def test_a_pass_costs_what_the_cache_no_longer_holds(monkeypatch):
    constants = model.Constants("imagined", imagined() | {("cache_bytes", ""): 1e6})
    few, many = (model.wave([Counts(passed=n, threads=128, words=10)], np.float32, constants, 1)[0] for n in (1e6, 3e6))
    assert few == pytest.approx(1e6 / RATES["cache_rate"])
    assert many == pytest.approx(1e6 / RATES["cache_rate"] + 2e6 / RATES["copy_rate"])
    busy = Counts(passed=1e6, threads=128, words=10, dependent=10**6)
    alone = model.wave([replace(busy, passed=0)], np.float32, constants, 1)
    assert model.wave([busy], np.float32, constants, 1) == alone and alone[0] > few  # bytes come meanwhile


def parts_of_a_block(words=60):
    """A read that is waited for, work that takes longer than all bytes, a write; registers of a thread."""
    read = Counts(nbytes=1e4, global_trips=1, threads=128, words=words)
    return read, Counts(issued=1e6, threads=128, words=words), Counts(nbytes=1e4, threads=128, words=words)


def test_only_reads_of_the_first_wave_wait_for_the_bytes_of_all_resident_blocks():
    constants = model.Constants("imagined", imagined())
    wait = LATENCIES["global_latency"]
    for words in (30, 60, 120):  # fewer blocks are resident, the more registers
        parts = parts_of_a_block(words)
        first = int(model.resident(counts.added(*parts)) * 132)
        times = [model.wave(parts, np.float32, constants, k * first, apart=True) for k in (1, 2, 10, 10**6)]
        reads, works, writes = zip(*times)
        turn = 132 * 1e4 / RATES["copy_rate"]  # one block of each multiprocessor at a time
        assert reads[0] == pytest.approx(wait + first * 1e4 / RATES["copy_rate"])
        assert reads[1] == pytest.approx((reads[0] + wait + turn) / 2)
        assert sorted(reads, reverse=True) == list(reads) and reads[-1] == pytest.approx(wait + turn, rel=1e-4)
        assert writes == pytest.approx([turn] * 4) and works == pytest.approx([works[0]] * 4)
        assert model.wave(parts, np.float32, constants, first)[0] == pytest.approx(reads[0])


def test_the_bytes_of_a_block_by_itself_have_the_whole_rate():
    constants, alone = model.Constants("imagined", imagined()), 1e4 / RATES["copy_rate"]
    for batch in (1, 100, 300):  # of one wave, and at most a block of each multiprocessor writes
        read, _, write = model.wave(parts_of_a_block(), np.float32, constants, batch, apart=True)
        assert read == pytest.approx(LATENCIES["global_latency"] + batch * alone)
        assert write == pytest.approx(min(batch, 132) * alone)


def test_where_bytes_take_longer_than_work_they_are_waited_for_in_every_wave():
    constants = model.Constants("imagined", imagined())
    read, work, write = parts_of_a_block()
    parts = read, replace(work, issued=1.0), write
    apart, together = (model.wave(parts, np.float32, constants, 10**6, apart) for apart in (True, False))
    assert apart == together


def test_decisions_are_waited_for_one_after_another():
    """18 cycles for each of 7 × 7 entries of a thread's tile; least squares looks at none. b comes after A."""
    constants = model.Constants("imagined", imagined())
    assert model.chain(Counts(stalls=1000), "float32", constants) == pytest.approx(1000 / RATES["clock"])
    for routine, k, stalls, trips in (("lu", 0, 882, 1), ("qr", 0, 882, 1), ("solve", 1, 560, 2), ("lstsq", 1, 0, 1)):
        work = register_counts.small(routine, np.float32, 56, 56, k, Layout(8, 8))
        assert (work.stalls, work.global_trips) == (stalls, trips), routine
    assert register_counts.small("lu", np.complex64, 32, 32, 0, Layout(8, 8)).stalls == 43 * 16


def test_the_study_predicts_what_fits(known):
    cases = list(study_small.cases())
    found = [(case, study_small.predicted(case, "imagined")) for case in cases]
    missing = [case for case, ms in found if ms is None]
    assert all(case.n > {"row": 40, "2d": 64}[case.layout] for case in missing)
    assert all(ms > 0 for _, ms in found if ms is not None)
    rows = [study_small.row(case, 2 * ms, ms) for case, ms in found if ms]
    assert "median deviation 50%" in study_small.summary(rows) and "worst factor 2.00" in study_small.summary(rows)


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_study_that_is_ended_early_keeps_what_it_has(name, known, monkeypatch, tmp_path, capsys):
    times = iter([1.0, 2.0, 3.0])

    def measured(case):
        try:
            return next(times)
        except StopIteration:
            os.kill(os.getpid(), getattr(signal, name))
            time.sleep(30)

    monkeypatch.setattr(study_small.timing, "gpu_name", lambda: "imagined")
    monkeypatch.setattr(study_small.timing, "side_by_side", lambda *_: None)
    monkeypatch.setattr(study_small, "measured", measured)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where tests run in the background
    try:
        assert study_small.main(["--output", str(tmp_path)]) == 1
    finally:
        signal.signal(signal.SIGINT, before)
    _, rows = tables.read(tmp_path / "study_small.csv")
    told = capsys.readouterr()
    assert [row["ms"] for row in rows] == ["1", "2", "3"] and "all: 3 predictions" in told.out
    assert told.err == "studies.small: error: interrupted\n"


def test_a_study_keeps_to_its_seconds(known, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(study_small.timing, "gpu_name", lambda: "imagined")
    monkeypatch.setattr(study_small.timing, "side_by_side", lambda *_: None)
    study_small.main(["--seconds", "0", "--output", str(tmp_path)])
    assert "no predictions" in capsys.readouterr().out
