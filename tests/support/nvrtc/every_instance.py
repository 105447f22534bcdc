"""Every instance of the kernels that is launched, from the tuning tables and the constants of the launching modules."""

import ast
import csv
from itertools import product

import blas_instances
import numpy as np

from h2gpu.apps.autotune import microbench
from h2gpu.apps.benchmarks import cases as bench_cases
from h2gpu.apps.studies import gebrd as study_gebrd
from h2gpu.apps.studies import panels as study_panels
from h2gpu.apps.studies import small as study_small
from h2gpu.batched.bidiagonal import plans as bidiagonal_plans
from h2gpu.batched.device import compiler
from h2gpu.batched.registers.layouts import THREAD, THREAD_EDGE, layout
from h2gpu.covariance import Constant, Exponential, Gaussian, Matern, on_sphere

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
DTYPES = (np.float64, np.float32)
COMPLEX = (np.complex128, np.complex64)
BEYOND = (1, 2, 3)  # edges of the study, apps/studies/edges.py
TUNED = "sm_90"
SHARED_LIMIT = 223 << 10  # bytes of a thread block there
EVERY = 8
WARP = 32
LU_KNOBS = "held", "warps", "resident", "window", "panel"
SMALL_SPILLS = {
    np.float32: (8, 1200),
    np.float64: (8, 15400),
    np.complex64: (8, 15500),
}  # at the edge of "auto"; at 16 × 16
BLOCK_SPILLS = 40
WATCHED_SPILLS = 200  # of bidiagonal reductions that count their cycles
SMALL_BLOCKS = (
    *((dtype, n, n, "2d") for dtype in (np.float32, np.float64, np.complex64) for n in (5, 17, 32, 56, 64)),
    *((np.float32, n, n, kind) for n, kind in ((32, "row"), (32, "column"), (48, "column"))),
    *((np.float32, n, n, "2d") for n in (96, 112, 128)),
    *((np.complex64, m, n, "2d") for m, n in ((80, 16), (240, 66), (192, 96))),
)


def constants(*names):
    """The numbers launching modules are written with, read from their texts: they import CuPy, which may be missing."""
    folder, found = compiler.source_folder().parent / "h2gpu", {}
    texts = [(folder / f"{name}.py").read_text(encoding="utf-8") for name in names]
    for node in (node for text in texts for node in ast.parse(text).body):
        if isinstance(node, ast.Assign):
            names = [n.id for target in node.targets for n in ast.walk(target) if isinstance(n, ast.Name)]
            try:
                values = ast.literal_eval(node.value)
            except ValueError:
                continue
            found.update(zip(names, values) if isinstance(node.targets[0], ast.Tuple) else [(names[0], values)])
    return found


def instances():
    """(header, name expression, spilled bytes it claims) of everything that is launched."""
    basics = constants("batched/copies/cuda") | constants("covariance/pairs/cuda")
    products, panels = (
        constants("batched/products/gemm"),
        constants("blocksparse/panels") | constants("blocksparse/cuda"),
    )
    yield "copies/owners.cuh", compiler.expression("owners", constants("batched/device/launch")["OWNER_WARPS"]), 0
    yield "copies/table.cuh", compiler.expression("table"), 0
    yield "svd/shared_ranks.cuh", compiler.expression("discard_threshold"), 0
    for dtype in DTYPES:
        for name in ("kept_ranks", "discarded_squares"):
            yield "svd/shared_ranks.cuh", compiler.expression(name, dtype), 0
        for of_rounding in (False, True):
            norms = compiler.expression("frobenius_norms", dtype, basics["NORM_WARPS"], of_rounding)
            yield "copies/frobenius_norms.cuh", norms, 0
        yield "copies/all_finite.cuh", compiler.expression("find_not_finite", dtype), 0
        for name in ("gather", "gather_batches"):
            yield "copies/gather.cuh", compiler.expression(name, dtype, basics["TILE"], basics["LINES"]), 0
        yield "copies/pairs.cuh", compiler.expression("pairs", dtype, basics["PAIR_THREADS"], basics["PAIR_RUN"]), 0
        for name in pairwise_instances(dtype, basics["THREADS"], basics["ROWS"]):
            yield "covariance/pairwise.cuh", name, 0
        for edge in products["EDGES"]:
            for a, b in ((False, False), (True, False), (False, True), (True, True)):
                yield "products/gemm.cuh", compiler.expression("gemm", dtype, edge, edge, a, b), 0
                yield "products/redirected_gemm.cuh", compiler.expression("redirected_gemm", dtype, edge, a, b, 0), 0
            for beyond in BEYOND:
                name = compiler.expression("redirected_gemm", dtype, edge, False, False, beyond)
                yield "products/redirected_gemm.cuh", name, 0
        for size, *trans in product(products["PACKED"], (False, True), (False, True)):
            yield "products/packed_gemm.cuh", compiler.expression("packed_gemm", dtype, *size, *trans), 0
        yield from panel_instances(dtype, panels)
        for strips, warps in constants("batched/qr/cholesky")["WARPS"].items():
            for name in ("cholesky_qr", "cholesky_basis")[: 2 if dtype == np.float32 else 1]:
                yield "qr/cholesky_qr.cuh", compiler.expression(name, dtype, strips, warps), 450
        yield from thin_instances(dtype, constants("batched/products/thin"))
        sums = constants("batched/qr/product_triangles")
        name = compiler.expression("product_triangles", dtype, sums["EDGE"])
        yield "qr/product_triangles.cuh", name, sums["SPILL_BYTES"]
        yield from linear_instances(dtype)
        triple = constants("batched/products/triple")
        for edge, inner in product(triple["EDGES"], triple["INNER"]):
            yield "products/triple_product.cuh", compiler.expression("triple_product", dtype, edge, inner), 0
    yield from blas_instances.fixed(rows)
    yield from blas_instances.blas(constants, rows)
    for dtype in COMPLEX:
        yield from linear_instances(dtype)
    for dtype in DTYPES:
        yield from bidiagonal_instances(dtype)
    for row in rows("qr"):
        yield from qr_instances(row)
    for row in rows("qr_blocked"):
        if int(row["warps"]):
            knobs = (int(row[key]) for key in ("warps", "tiles", "resident"))
            arguments = compiler.expression("", row["dtype"], *knobs)
            for name in ("blocked_qr", "blocked_q"):
                yield "qr/blocked_qr.cuh", name + arguments, int(row["spill_bytes"])
    for row in rows("qr_tree"):
        if int(row["warps"]):
            knobs = (int(row[key]) for key in ("warps", "tiles", "resident"))
            name = compiler.expression("tree_qr", row["dtype"], *knobs)
            yield "qr/tree_qr.cuh", name, int(row["spill_bytes"])
    for row in rows("qr_tall"):
        yield tall_instance(row)
    yield from small_instances()
    yield from microbench_instances()
    yield from watched_instances()


def small_instances():
    """Problems in registers: the largest that a layout takes by itself, those of the studies, 16 × 16."""
    warps = constants("batched/registers/cuda")["WARPS"]
    for dtype, (edge_spills, spills) in SMALL_SPILLS.items():
        edges = [max(n for n in range(1, THREAD_EDGE + 1) if layout(dtype, n, n + k) == THREAD) for k in (0, 1)]
        tall = max(m for m in range(1, THREAD_EDGE + 1) if layout(dtype, m, 5) == THREAD)
        for n, k, claim in ((1, 1, 0), *((edges[k], k, edge_spills) for k in (0, 1)), (THREAD_EDGE, 1, spills)):
            systems = ("least_squares", (n, n, 1)), ("solve", (n, 1, False)), ("solve", (n, 1, True))
            for routine, sizes in (("lu", (n,)), ("cholesky", (n,)), ("qr", (n, n)), *systems[: 3 * k]):
                name = compiler.expression(f"thread_{routine}", dtype, *sizes, warps)
                yield "registers/small_thread.cuh", name, claim
        for routine, sizes in (("least_squares", (tall, 4, 1)), ("qr", (4, tall))):
            name = compiler.expression(f"thread_{routine}", dtype, *sizes, warps)
            yield "registers/small_thread.cuh", name, edge_spills
    for dtype, m, n, kind in SMALL_BLOCKS:
        for routine, sizes, width in block_routines(m, n):
            grid = layout(dtype, m, width, kind)
            if grid is not None:
                name = compiler.expression(f"block_{routine}", dtype, *sizes, *grid)
                yield "registers/small_block.cuh", name, BLOCK_SPILLS


def block_routines(m, n):
    """Routine, sizes and columns in all of the kernels for a problem a block."""
    yield "qr", (m, n), n
    yield "least_squares", (m, n, 1), n + 1
    if m == n:
        yield "lu", (n,), n
        yield "solve", (n, 1, False), n + 1
        yield "solve", (n, 1, True), n + 1


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


def microbench_instances():
    """The kernels of h2gpu.apps.autotune.microbench."""
    header = "studies/microbench.cuh"
    for name in ("clock_ticks", "nothing", "copy_rate", "global_latency", "shared_latency", "barrier_latency"):
        yield header, name, 0
    unrolled = microbench.UNROLLED
    yield header, compiler.expression("shared_rate", 4 * microbench.THREADS, unrolled), 0
    for chains in (1, unrolled):
        yield header, compiler.expression("shuffles", chains), 0
        for dtype in DTYPES:
            yield header, compiler.expression("multiply_adds", dtype, chains), 0
    for dtype in DTYPES:
        yield header, compiler.expression("tensor_products", dtype, unrolled), 0
        for root in (False, True):
            yield header, compiler.expression("slow_latency", dtype, root), 0


def thin_instances(dtype, thin):
    """Products with few columns: plain, transposed, turned, with samples."""
    turns = (False, False), (True, False), (False, True)
    for strips in thin["STRIPS"]:
        if dtype == np.float64:
            for flags in turns:
                yield "products/thin_product.cuh", compiler.expression("thin_product", dtype, strips, *flags), 0
            continue
        for flags, parts in (*product(turns, (thin["FINE"], thin["COARSE"])), ((False, False), thin["SHORT"])):
            name = compiler.expression("thin_parts", strips, *flags, parts)
            yield "products/thin_parts.cuh", name, thin["SPILL_BYTES"]


def panel_instances(dtype, knobs):
    """Products of sparse matrices of blocks, which are made forward, backward or both ways, and of nested ones."""
    header = "blocksparse/block_multiply.cuh"
    sums = knobs["SUM_WARPS"], knobs["SUM_ENTRIES"], knobs["SUM_TERMS"]
    yield header, compiler.expression("block_sums", dtype, *sums), 0
    ways = (True, True, False), (True, False, False), (False, True, False), (True, False, True)
    for way, stored in product(ways, DTYPES[DTYPES.index(dtype) :]):
        for tiles in knobs["GROUPS"]:
            name = compiler.expression("panel_products", stored, dtype, *way, tiles, knobs["WARPS"])
            yield header, name, knobs["SPILL_BYTES"][tiles]


def linear_instances(dtype):
    """LU, Cholesky and solutions: the largest of each kind, and one of odd shape."""
    lu, chol, size = (
        constants(
            "batched/systems/lu",
            "batched/systems/lu_registers",
            "batched/systems/lu_shared",
            "batched/systems/lu_warps",
            "batched/systems/lu_panels",
            "batched/systems/rank_update",
        ),
        constants("batched/systems/cholesky", "batched/systems/triangles", "batched/systems/determinant"),
        np.dtype(dtype).itemsize,
    )
    spills = lu["SPILL_BYTES"]
    warps = lu["REGISTER_WARPS"]
    for columns, lanes in ((32, 32), (16, 16), (6, 8)):
        yield "systems/lu_register.cuh", compiler.expression("lu_register", dtype, columns, lanes, warps), spills
    tuned = {4: np.float32, 8: np.float64, 16: np.complex128}[size]
    for row in blas_instances.of(tuned, rows("lu_shared")):
        slots, (held, *shape, window, panel) = -(-int(row["max_rows"]) // WARP), (int(row[knob]) for knob in LU_KNOBS)
        for columns in range(lu["ALIGNED"], slots * WARP + 1, lu["ALIGNED"]) if panel == WARP else ():
            if slots * columns * size <= lu["ROW_BYTES"]:
                name = compiler.expression("lu_warp", dtype, columns, slots, shape[0])
                yield "systems/lu_warp.cuh", name, lu["WARP_SPILL_BYTES"]
        panel = min(panel, lu["MOST_PANEL"][size])
        for columns in sorted({0, window}):
            knobs = panel, held, -(-slots // held), *shape, columns
            claim = lu["WINDOW_SPILL_BYTES" if columns else "SHARED_SPILL_BYTES"]
            yield "systems/lu_shared.cuh", compiler.expression("lu_shared", dtype, *knobs), claim
    for row in blas_instances.of(tuned, rows("lu_panel")):
        width, most = int(row["width"]), -(-int(row["max_rows"]) // (lu["PANEL_WARPS"] * WARP))
        for slots in (1, most):
            name = compiler.expression("lu_panel", dtype, width, slots, lu["PANEL_WARPS"])
            yield "systems/lu_panel.cuh", name, lu["PANEL_SPILL_BYTES"]
        yield "systems/lu_rows.cuh", compiler.expression("lu_rows", dtype, width, lu["ROW_WARPS"]), 0
        yield "systems/lu_update.cuh", compiler.expression("lu_update", dtype, width, False), 0
    yield "systems/lu_rows.cuh", compiler.expression("lu_rows", dtype, lu["TOGETHER"][size], lu["ROW_WARPS"]), 0
    yield "systems/lu_update.cuh", compiler.expression("lu_update", dtype, lu["TOGETHER"][size], False), 0
    width = lu["GLOBAL_PANEL"][size]
    for name in ("lu_column", "lu_unblocked"):
        yield "systems/lu_panel.cuh", compiler.expression(name, dtype, width, lu["GLOBAL_WARPS"]), spills
    yield "systems/finite_copy.cuh", compiler.expression("finite_copy", dtype, lu["COPY_THREADS"]), 0
    name = compiler.expression("lu_determinant", dtype, chol["DETERMINANT_WARPS"])
    yield "systems/lu_determinant.cuh", name, 0
    for symmetric, columns in product((False, True)[: 2 - (dtype in COMPLEX)], (1, chol["SOLVE_COLUMNS"])):
        name = compiler.expression("solve_triangles", dtype, columns, chol["SOLVE_WARPS"], symmetric)
        yield "systems/solve_triangles.cuh", name, 64
    for symmetric, most in product((False, True)[: 2 - (dtype in COMPLEX)], (2, 30, 32)):
        name = compiler.expression("solve_small", dtype, most, chol["SMALL_WARPS"], symmetric)
        yield "systems/solve_small.cuh", name, 0
    if dtype not in COMPLEX:
        yield from cholesky_instances(dtype, chol, spills)
        for row in blas_instances.of(dtype, rows("cholesky_shared")):
            slots, *shape = -(-int(row["max_rows"]) // WARP), int(row["warps"]), int(row["resident"])
            name = compiler.expression("cholesky_shared", dtype, chol["SHARED_PANEL"][size], slots, *shape)
            yield "systems/cholesky_shared.cuh", name, spills


def cholesky_instances(dtype, knobs, spills):
    """Of matrices in registers and by panels."""
    few, width = knobs["CHOLESKY_LANES"], knobs["CHOLESKY_PANEL"]
    for columns, lanes, slots in ((32, 32, 1), (8, 8, 1), (32, few, 4), (30, few, 4), (12, few, 2)):
        name = compiler.expression("cholesky_register", dtype, columns, lanes, slots, knobs["CHOLESKY_WARPS"])
        yield "systems/cholesky_register.cuh", name, 0
    yield (
        "systems/cholesky_panel.cuh",
        compiler.expression("cholesky_panel", dtype, width, knobs["PANEL_WARPS"]),
        spills,
    )
    for inner in (
        width,
        constants("batched/systems/rank_update")["TOGETHER"][np.dtype(dtype).itemsize],
    ):
        yield "systems/lu_update.cuh", compiler.expression("lu_update", dtype, inner, True), 0


def bidiagonal_instances(dtype):
    """Reductions of squares and of tall matrices up to every limit of columns, and what finds their singular values."""
    limits = [8, 16, 24, 32, 40, 48, 64, 80, 96, 128, 160, 192, 256, 512, bidiagonal_plans.LARGEST]
    for n, times in product(limits, (1, 2, 6)):
        plan = bidiagonal_plans.plan(np.dtype(dtype).itemsize, times * n, n, SHARED_LIMIT)
        name = "bidiagonalize_large" if isinstance(plan, bidiagonal_plans.Rows) else "bidiagonalize"
        yield f"bidiagonal/{name}.cuh", compiler.expression(name, dtype, *plan), bidiagonal_plans.SPILL_BYTES
        for each in bidiagonal_plans.CLUSTERS if getattr(plan, "held", 0) and times == 1 else ():
            name = compiler.expression("bidiagonalize_cluster", dtype, *plan, each)
            yield "bidiagonal/bidiagonalize_large.cuh", name, bidiagonal_plans.SPILL_BYTES
    launched = constants("batched/svd/bidiagonal")
    for name, threads in (("bidiagonal_values", "VALUE_THREADS"), ("bidiagonal_svd", "TURN_THREADS")):
        for number in launched[threads]:
            yield f"bidiagonal/{name}.cuh", compiler.expression(name, dtype, number), 0


def pairwise_instances(dtype, *knobs):
    """Every kind of covariance in every dimension, and compositions of them."""
    for dim in (1, 2, 3):
        radial = (
            Exponential(),
            Matern(),
            Matern(smoothness=2.5),
            Gaussian(),
            Matern(smoothness=1.2),
            Matern(smoothness=30),
        )
        stretched = Matern(length_scale=tuple(range(1, dim + 1)), smoothness=4.5)
        for cov in (*radial, stretched, Exponential() * Constant() + Matern(smoothness=3.5)):
            yield pairwise_instance(cov, dim, dtype, *knobs)
    yield pairwise_instance(on_sphere(Exponential()), 3, dtype, *knobs)


def pairwise_instance(cov, dim, dtype, threads, rows):
    function = cov.pair_function.on_device(dim, dtype)
    return f"pairwise<{compiler.NAMES[np.dtype(dtype)]}, {threads}, {rows}, {function.type}>"


def tall_instance(row):
    """The instance of a row for R alone of tall matrices, by panels or by columns."""
    spills = int(row["spill_bytes"])
    if int(row["ways"]):
        tiles = int(row["max_columns"]) // constants("batched/qr/tall")["TILE"]
        knobs = int(row["strips"]), tiles, *(int(row[key]) for key in ("ways", "warps", "resident"))
        return "qr/blocked_chain.cuh", compiler.expression("blocked_chain", *knobs), spills
    knobs = (int(row[key]) for key in ("register_rows", "register_columns", "lanes", "warps", "resident"))
    return "qr/triangle_chain.cuh", compiler.expression("triangle_chain", row["dtype"], *knobs), spills


def rows(routine):
    """The rows of a routine's tables of all devices."""
    for path in sorted(compiler.source_folder().glob(f"tuning/*/{routine}.csv")):
        with path.open(newline="", encoding="utf-8") as file:
            yield from csv.DictReader(file)


def qr_instances(row):
    """The instances of a row with the widest team, with and without Q."""
    columns = int(row["register_columns"])
    threads = 1 << (-(-int(row["max_columns"]) // columns) - 1).bit_length()
    for want_q, shared in ((False, row["shared_r"]), (True, row["shared_q"])):
        knobs = int(row["register_rows"]), columns, threads, int(row["resident"]), shared == "1", want_q
        name = compiler.expression("householder_qr", row["dtype"], *knobs)
        yield "qr/householder_qr.cuh", name, int(row["spill_bytes"])
