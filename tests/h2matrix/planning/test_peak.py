"""The peak of memory that a plan foretells is near the one that was measured, on a CPU here, on a GPU in a table."""

import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

import h2gpu
from h2gpu.apps.benchmarks.report import tables
from h2gpu.apps.benchmarks.scale import PROBLEMS
from h2gpu.covariance import Exponential
from h2gpu.covariance.sites import Sites
from h2gpu.h2matrix.planning.costs import PACES
from h2gpu.h2matrix.planning.peak import (
    EDGE,
    PANEL_ENTRIES,
    POINTS,
    ROOMS,
    SIDES,
    STRIP,
    DeviceMemory,
    Held,
    partial_sums,
)
from h2gpu.h2matrix.planning.planner import FIRST_ETAS, Planner
from h2gpu.memory import PIECE_PART

TABLES = Path(__file__).resolve().parents[3] / "benchmarks" / "compression"
H200 = 140 << 30  # bytes
SMALL, LARGE = 1 << 15, 1 << 21  # points: of fast tests, of all
MEASURED = """
import sys
import numpy as np
import h2gpu

def resident():
    with open("/proc/self/status") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith(sys.argv[1]))

points, cov = np.random.default_rng(1).random((40_000, 2)), h2gpu.covariance.Matern(1.0, 0.1, 0.5)
h2gpu.covariance_matrix(points[:500], cov, 1e-3)
before, plan = resident(), h2gpu.plan(points, cov, 1e-6)  # the job makes one too
sys.argv[1] = "VmHWM"
h2gpu.covariance_matrix(points, cov, 1e-6)
print(plan.bytes_peak / (resident() - before))
"""


class Unchecked(DeviceMemory):
    """Of a job whose result is not checked."""

    def phases(self, held, piece):
        return {name: size for name, size in super().phases(held, piece).items() if name != "check"}


def jobs():
    """(problem, points, bytes at the peak) of the rows of a table, those of many points as slow tests."""
    _, rows = tables.read(TABLES / "scale-cuda.csv")
    for row in rows:
        name, n = row["problem"], int(row["n"])
        if n <= LARGE:
            marks = [] if n <= SMALL else [pytest.mark.slow]
            yield pytest.param(name, n, 1e6 * float(row["peak MB"]), id=f"{name}-{n}", marks=marks)


@pytest.mark.parametrize(("name", "n", "measured"), list(jobs()))
def test_the_peak_on_a_gpu_is_within_a_third_of_what_a_table_says(name, n, measured):
    """Small jobs of a process may have less beside them than is foretold, and none has much more."""
    problem = PROBLEMS[name]
    given = dict(problem.parameters)
    order = given.pop("order", None)
    planner = Planner(Sites.of(problem.points(n), problem.covariance), problem.rtol, memory=H200, **given)
    planner.room, planner.pace, planner.first_eta = Unchecked(**vars(ROOMS["cupy"])), PACES["cupy"], FIRST_ETAS["cupy"]
    planner.stack_entries = H200 // PIECE_PART // 8
    foretold = planner.plan(order).bytes_peak
    assert 1 / 1.15 < foretold / measured < 1.3


HELD = {
    "weights": ("points", "leaves", "transfers", "triangles", "weights"),
    "truncate": ("points", "leaves", "transfers"),
    "project": ("points", "changes", "projected"),
    "store": ("points", "result"),
    "check": ("points", "result", "vectors"),
}
TIMES = {"points": POINTS, "vectors": 6}


@pytest.mark.parametrize("phase", HELD)
def test_a_phase_grows_by_what_is_held_in_it(phase):
    some = dict.fromkeys((field.name for field in fields(Held)), 1e6) | {"levels": [], "together": 1, "side": 64}
    room, held = ROOMS["cupy"], Held(**some)
    for name in HELD[phase]:
        more = room.phases(replace(held, **{name: 2e6}), 1e9)[phase] - room.phases(held, 1e9)[phase]
        assert more == pytest.approx(1e6 * TIMES.get(name, 1))


@pytest.mark.parametrize("most", [5, 20])
def test_what_compression_holds_is_counted_of_all_clusters_where_all_points_are_sampled(most):
    planner = Planner(Sites.of(np.random.default_rng(0).random((64, 2)), Exponential(1.0, 0.1)), 1e-3)
    (cut,), tree = planner.cuts(16), planner.trees[0].cut(16)
    k, kept = np.minimum(most, tree.sizes), np.minimum(3, tree.sizes)
    at_leaves, sizes = k[tree.leaves], tree.sizes[tree.leaves]
    own = at_leaves == sizes
    assert own.all() == (most == 20)
    assert cut.held_entries(*(np.full(tree.levels, rank) for rank in (most, 3))) == pytest.approx(
        {
            "leaves": sizes[~own] @ at_leaves[~own],
            "triangles": k @ k - at_leaves[own] @ at_leaves[own],
            "weights": k @ k,
            "level": at_leaves @ at_leaves,
            "changes": k @ kept,
        }
    )


@pytest.mark.gpu
def test_what_the_peak_counts_is_what_kernels_take():
    from h2gpu.batched.qr import product_triangles
    from h2gpu.blocksparse import panels

    assert product_triangles.EDGE == EDGE
    assert (panels.SIDES_AT_ONCE, panels.STRIP, panels.PANEL_ENTRIES) == (SIDES, STRIP, PANEL_ENTRIES)


@pytest.mark.gpu
@pytest.mark.parametrize(("leaf_size", "side"), [(16, 16), (64, 64), (128, 128)])
def test_partial_sums_of_the_check_are_those_of_products_with_the_nearfield(leaf_size, side):
    import cupy

    from h2gpu.blocksparse.cuda import make_plan

    points = cupy.asarray(np.random.default_rng(0).random((8192, 2)))
    D = h2gpu.build(points, Exponential(1.0, 0.1), leaf_size=leaf_size, eta=1.5, order=2).nearfield
    foretold = partial_sums(float(D.nbytes), side, together=1)
    assert 1 / 1.2 < foretold / (make_plan(D, 8192, False).parts * 8) < 1.2
    assert partial_sums(1.0, side, together=64) == 2 * partial_sums(1.0, side, together=16)


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_the_peak_is_within_a_third_of_what_is_measured():
    answer = subprocess.run([sys.executable, "-c", MEASURED, "VmRSS"], capture_output=True, text=True, check=True)
    assert 1 / 1.3 < float(answer.stdout) < 1.3
