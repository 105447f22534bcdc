"""The benchmark of many processes counts and measures."""

import numpy as np
import pytest
from threads import all_of

from h2gpu import distributed as distribution
from h2gpu.apps.benchmarks import distributed, problems
from h2gpu.apps.benchmarks.processes import counting, parts, plots
from h2gpu.apps.benchmarks.processes.model import Machine
from h2gpu.apps.benchmarks.report import tables
from h2gpu.clustering import Admissibility
from h2gpu.distributed import Alone
from h2gpu.distributed.assembly import blocks_of, own_part


def test_what_is_counted_from_trees_is_what_products_receive(tmp_path, capsys):
    path = tmp_path / "counted.csv"
    assert distributed.main(["--count", "--log2", "10", "--output", str(path)]) == 0
    rows = {row["ranks"]: row for row in tables.read(path)[1]}
    row = all_of(4, lambda comm: distributed.measured(comm, 2**10, True))[0]
    assert row["messages a product"] == int(float(rows["4"]["messages"])) == 3
    points = 8 * float(rows["4"]["near points"]) / 1e3
    assert points < row["kB received"] < points + 8 * 64 * float(rows["4"]["far clusters"]) / 1e3
    assert row["iterations"] < 30 and 0 < row["off-diagonal %"] < 60
    assert 3 < row["sums to compress"] < 20 and row["messages to compress"] >= 3 * 3 and row["MB to compress"] > 0
    assert "NVLink speed-up" in capsys.readouterr().out


def test_the_exchange_is_timed_and_what_of_it_is_hidden():
    def work(comm):
        row = distributed.measured(comm, 2**10, False)
        found = parts.exchange_of(matrix(comm), np.ones(2**8), 1.0)["hidden %"]
        return row, found

    for row, slow in all_of(4, work):
        assert row["exchange ms"] > 0 and row["without exchange ms"] > 0 and 0 <= row["hidden %"] <= 100
        assert row["latency us"] > 0 and row["GB/s"] > 0 and slow == 0  # a product of a second hides nothing
    assert not {"exchange ms", "hidden %"} & set(distributed.measured(Alone(), 2**9, False))


def test_a_silent_matrix_exchanges_nothing():
    """It waits for nobody, too: one rank alone multiplies."""

    def work(comm):
        A, received = matrix(comm), comm.traffic.exchanges.copy()
        with np.errstate(all="ignore"):
            y = parts.silent(A) @ np.ones(2**8) if comm.rank == 1 else np.ones(2**8)
        return y.shape == (2**8,) and comm.traffic.exchanges == received

    assert all(all_of(4, work))


def matrix(comm):
    share = problems.perturbed_grid(2**10, share=(comm.rank, comm.size))
    return distribution.covariance_matrix(share, problems.paper_covariance(), 1e-5, comm=comm)


def test_shares_of_a_grid_are_the_grid():
    for n in (2**9, 2**10, 1000):
        whole = problems.perturbed_grid(n, 3)
        assert np.array_equal(whole, np.concatenate([problems.perturbed_grid(n, 3, (k, 3)) for k in range(3)]))
        assert abs(np.sort(whole[:, 0]) - (np.arange(len(whole)) + 0.5) / len(whole)).max() < 0.1


def test_memory_of_points_trees_and_blocks_falls_with_the_ranks():
    held = [all_of(ranks, lambda comm: shares_of(comm, 2**13)) for ranks in (1, 4)]
    assert all(part < 0.4 * held[0][0] for part in held[1])


def shares_of(comm, n):
    """Bytes of all arrays of a rank's trees and lists of blocks, and its points."""
    points = own_part(comm, problems.perturbed_grid(n))
    blocks, own = blocks_of(comm, [points], 64, Admissibility(1.5), "median", 16)
    arrays = [a for a in vars(blocks.row_tree).values() if isinstance(a, np.ndarray)]
    boxes = blocks.row_tree.boxes
    return sum(a.nbytes for a in [*arrays, *own, blocks.far, blocks.near, boxes.lower, boxes.upper])


def test_the_model_scales_until_latency_binds():
    speedups = [counting.modelled(Machine(), 2**30, p, 8, 1e6)["NVLink speed-up"] for p in (1, 8, 64, 4096)]
    assert np.all(np.diff(speedups) > 0) and 7 < speedups[1] < 8 and speedups[-1] < 0.8 * 4096


ROWS = [
    {"n": 2**20, "ranks": 1, "A x ms": 1.0, "compressed s": 0.4, "CG s": 0.2, "iterations": 20},
    {"n": 2**22, "ranks": 1, "A x ms": 3.0, "compressed s": 1.6, "CG s": 0.8, "iterations": 40},
    {"n": 2**22, "ranks": 2, "A x ms": 1.6, "compressed s": 0.9, "CG s": 0.4, "iterations": 40, "latency us": 14.0},
    {"n": 2**22, "ranks": 4, "A x ms": 1.2, "compressed s": 0.5, "CG s": 0.3, "iterations": 40, "latency us": 22.0},
    {"n": 2**22, "ranks": 4, "A x ms": 1.0, "compressed s": 0.6, "CG s": 0.3, "iterations": 40, "latency us": 22.0},
]
for row in ROWS[2:]:
    row |= {"GB/s": 100.0 * row["ranks"], "exchange ms": 0.03, "without exchange ms": 0.98}


def test_the_model_takes_what_a_table_has_measured(tmp_path):
    path = tmp_path / "measured.csv"
    tables.write(path, ROWS, "a GPU")
    machine = Machine.of(path)
    assert machine.a_site == pytest.approx(3e-3 / 2**22) and machine.floor == Machine().floor
    assert (machine.wait, machine.latency) == pytest.approx((10e-6, 4e-6))  # 14 = 10 + 4, 22 = 10 + 3 · 4
    assert machine.links["NVLink"] == 200e9 and machine.links["InfiniBand"] == Machine().links["InfiniBand"]
    expected = 2**24 / 4 * machine.a_site + 10e-6 + (3 + 2 * 2) * 4e-6 + (1e6 + 2 * 8 * 23 * 5) / 200e9
    assert machine.product(2**24, 4, 3, 1e6, "NVLink", summed=5) == pytest.approx(expected)
    tables.write(path, ROWS[:3], "a GPU")
    assert (Machine.of(path).wait, Machine.of(path).latency) == pytest.approx((0, 14e-6))
    tables.write(path, ROWS[:2], "a GPU")
    assert Machine.of(path).latency == Machine().latency and Machine.of(None) == Machine()


def test_a_picture_of_what_was_measured(tmp_path):
    rows = [{name: str(value) for name, value in row.items()} for row in ROWS]
    strong, weak = plots.curves(rows, weak=False), plots.curves(rows, weak=True)
    assert strong[22, "A x ms"] == pytest.approx({1: 1, 2: 3 / 1.6, 4: 3 / 1.1})  # the mean of two rows
    assert strong[22, "CG s"] == pytest.approx({1: 1, 2: 2, 4: 8 / 3}) and (20, "A x ms") not in strong
    assert weak[20, "A x ms"] == pytest.approx({1: 1, 4: 1 / 1.1}) and weak[20, "CG s"][4] == pytest.approx(1 / 0.75)
    plots.draw(rows, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 10_000


def test_a_row_is_added_to_a_table(tmp_path, capsys):
    path = tmp_path / "measured.csv"
    for options in (["--weak", "9", "--solve", "8"], ["--log2", "8,9", "--solve", "8"]):
        assert distributed.main([*options, "--output", str(path)]) == 0
    rows = tables.read(path)[1]
    assert [(row["scaling"], row["n"]) for row in rows] == [("weak", "512"), ("strong", "256"), ("strong", "512")]
    assert [bool(row["iterations"]) for row in rows] == [False, True, False]


def test_what_was_measured_before_a_failure_stays(tmp_path, capsys, monkeypatch):
    path, measured = tmp_path / "measured.csv", distributed.measured

    def failing(comm, n, solves):
        return measured(comm, n, solves) if n < 300 else 1 / 0

    monkeypatch.setattr(distributed, "measured", failing)
    assert distributed.main(["--log2", "8,9", "--solve", "0", "--output", str(path)]) == 1
    assert [row["n"] for row in tables.read(path)[1]] == ["256"]


def test_memory_of_one_process_is_traced(tmp_path, capsys):
    path = tmp_path / "memory.csv"
    assert distributed.main(["--log2", "10", "--memory", "--output", str(path)]) == 0
    (row,) = tables.read(path)[1]
    assert 24 < float(row["bytes a site"]) < float(row["at most"]) and float(row["plan at most"]) > 24
