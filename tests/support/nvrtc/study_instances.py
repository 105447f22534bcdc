"""Instances that the studies and the microbenchmarks launch."""

from itertools import product

import numpy as np
from instance_sources import DTYPES, SHARED_LIMIT, constants
from register_instances import BLOCK_SPILLS

from h2gpu.apps.autotune import microbench
from h2gpu.apps.benchmarks import cases as bench_cases
from h2gpu.apps.studies import edges as study_edges
from h2gpu.apps.studies import gebrd as study_gebrd
from h2gpu.apps.studies import panels as study_panels
from h2gpu.apps.studies import small as study_small
from h2gpu.apps.studies.baselines import gebrd_stages, lu_stages
from h2gpu.batched.bidiagonal import plans as bidiagonal_plans
from h2gpu.batched.device import compiler

EDGE_SPILLS = 24  # of products of tiles that end beyond the matrix
WATCHED_SPILLS = 200  # of bidiagonal reductions that count their cycles


def watched_instances():
    """The kernels that read the clock: h2gpu.apps.studies.panels and study_gebrd."""
    for case in (case for case in study_small.cases() if case.figure == "8"):
        sizes = (case.n,) if case.routine == "lu" else (case.m, case.n)
        name = compiler.expression(f"block_{case.routine}_cycles", case.dtype, *sizes, *study_small.grid_of(case))
        yield study_panels.HEADER, name, BLOCK_SPILLS
    for dtype, (_, n) in product(DTYPES, bench_cases.GEBRD_ORDERS):
        plan = bidiagonal_plans.plan(np.dtype(dtype).itemsize, n, n, SHARED_LIMIT)
        large = "_large" if isinstance(plan, bidiagonal_plans.Rows) else ""
        name = compiler.expression(f"bidiagonalize{large}_cycles", dtype, *plan)
        yield study_gebrd.HEADER, name, WATCHED_SPILLS


def lu_stage_instances():
    """The kernels of h2gpu.apps.studies.baselines.lu."""
    linear = constants("batched/systems/lu_panels")
    for dtype in DTYPES:
        for name in ("find_pivot", "swap_rows", "scale_column"):
            yield lu_stages.HEADER, compiler.expression(name, dtype), 0
        yield lu_stages.HEADER, compiler.expression("solve_rows", dtype, lu_stages.SOLVED), 0
        for width in lu_stages.PANEL_WIDTHS:
            yield lu_stages.HEADER, compiler.expression("rank_one", dtype, width), 0
        for inner in lu_stages.INNER:
            yield lu_stages.HEADER, compiler.expression("subtract_product", dtype, inner), 0
        few = lu_stages.PANEL_WIDTHS[0]
        for name, *sizes in (
            ("lu_panel", few, 1, linear["PANEL_WARPS"]),
            ("lu_column", few, linear["GLOBAL_WARPS"]),
            ("lu_unblocked", few, linear["GLOBAL_WARPS"]),
        ):
            yield "systems/lu_panel.cuh", compiler.expression(name, dtype, *sizes), linear["PANEL_SPILL_BYTES"]


def gebrd_stage_instances():
    """The kernels of h2gpu.apps.studies.baselines.gebrd."""
    for dtype in DTYPES:
        for name in ("stage_reflection", "stage_scaling", "rank_one_update"):
            yield gebrd_stages.HEADER, compiler.expression(name, dtype), 0
        for name, padded in product(("stage_rows_product", "stage_columns_product"), (False, True)):
            yield gebrd_stages.HEADER, compiler.expression(name, dtype, padded), 0
        for panel in gebrd_stages.PANELS:
            yield gebrd_stages.HEADER, compiler.expression("subtract_panels", dtype, panel), 0


def edge_instances():
    """The products of tiles that hang over: h2gpu.apps.studies.edges."""
    for dtype, beyond in product(DTYPES, study_edges.BEYOND.values()):
        yield study_edges.HEADER, compiler.expression("edge_gemm", dtype, study_edges.EDGE, beyond), EDGE_SPILLS


def microbench_instances():
    """The kernels of h2gpu.apps.autotune.microbench."""
    header = "studies/microbench.cuh"
    for name in ("clock_ticks", "nothing", "copy_rate", "global_latency", "shared_latency", "barrier_latency"):
        yield header, name, 0
    for near in (False, True):
        yield header, compiler.expression("chase_latency", near), 0
    unrolled = microbench.UNROLLED
    yield header, compiler.expression("shared_rate", 4 * microbench.THREADS, unrolled), 0
    for chains in (1, unrolled):
        yield header, compiler.expression("shuffles", chains), 0
        for dtype in DTYPES:
            yield header, compiler.expression("multiply_adds", dtype, chains), 0
    for dtype in DTYPES:
        yield header, compiler.expression("tensor_core_products", dtype, unrolled), 0
        for root in (False, True):
            yield header, compiler.expression("slow_latency", dtype, root), 0
