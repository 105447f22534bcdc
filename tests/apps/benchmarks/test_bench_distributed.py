"""The benchmark of many processes counts and measures."""

import numpy as np
from threads import all_of

from h2gpu.apps.benchmarks import distributed, problems
from h2gpu.apps.benchmarks.report import tables
from h2gpu.clustering import Admissibility
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
    assert "NVLink speed-up" in capsys.readouterr().out


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
    speedups = [distributed.modelled(2**30, p, 8, 1e6)["NVLink speed-up"] for p in (1, 8, 64, 4096)]
    assert np.all(np.diff(speedups) > 0) and 7 < speedups[1] < 8 and speedups[-1] < 0.8 * 4096


def test_a_row_is_added_to_a_table(tmp_path, capsys):
    path = tmp_path / "measured.csv"
    for options in (["--weak"], []):
        assert distributed.main(["--log2", "9", *options, "--output", str(path)]) == 0
    assert [row["scaling"] for row in tables.read(path)[1]] == ["weak", "strong"]


def test_memory_of_one_process_is_traced(tmp_path, capsys):
    path = tmp_path / "memory.csv"
    assert distributed.main(["--log2", "10", "--memory", "--output", str(path)]) == 0
    (row,) = tables.read(path)[1]
    assert 24 < float(row["bytes a site"]) < float(row["at most"]) and float(row["plan at most"]) > 24
