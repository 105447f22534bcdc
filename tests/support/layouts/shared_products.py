"""Shared memory of products: see shared_memory.py."""

from itertools import product

from shared_texts import DTYPES, F64, FIELDS, sizeof, truth

from h2gpu.batched.device import compiler
from h2gpu.batched.products import fixed_layout, fixed_plans, thin, vectors
from h2gpu.batched.products.gemm import EDGES, PACKED, edge_bytes, packed_bytes
from h2gpu.batched.products.gemm import shared_bytes as gemm_bytes
from h2gpu.batched.products.triple import INNER
from h2gpu.batched.products.triple import shared_bytes as triple_bytes

TRANS = ((False, False), (True, False), (False, True), (True, True))


def products():
    for dtype, edges in product(DTYPES, product((16, 32, 64), repeat=2)):
        host = gemm_bytes(dtype, edges)
        real = compiler.NAMES[dtype]
        for name in ("gemm", "syrk") if edges[0] == edges[1] else ("gemm",):
            yield f"products/{name}.cuh", f"STAGES * ({edges[0]} + {edges[1]}) * PITCH * sizeof({real})", host
    for dtype in DTYPES:
        yield from edged(dtype)
    for strips, (transa, turned) in product(range(1, 9), ((False, False), (True, False), (False, True))):
        stage = sizeof("ThinStage", F64, strips, transa, turned)
        yield "products/thin_product.cuh", f"STAGES * {stage}", thin.shared_bytes(strips, transa, turned)
        for parts in (thin.FINE, thin.COARSE, thin.SHORT)[: 2 if transa or turned else 3]:
            stage = f"sizeof(PartsStage<{strips}, {truth(transa)}, {parts}>)"
            right = f"2 * {compiler.expression('RightSlab', strips, transa, turned, parts)}::BYTES"
            memory = f"STAGES<{parts}> * {stage} + {0 if parts == thin.SHORT else right}"
            yield "products/thin_parts.cuh", memory, thin.parts_bytes(strips, parts)
    for sizes, trans, group in product(((8, 8, 8), (33, 33, 33), (20, 50, 40)), TRANS, (1, 3)):
        for dtype, method in product(DTYPES, (fixed_layout.BY_ROWS, fixed_layout.BY_LANES, fixed_layout.BY_TENSOR)):
            yield fixed(dtype, sizes, trans, method, group)
    for dtype, (n, k), trans in product(DTYPES, ((8, 8), (33, 33), (64, 64), (21, 50)), (False, True)):
        yield fixed(dtype, (n, n, k), (trans, not trans), fixed_layout.BY_TENSOR, 2, True)
    for dtype, size, trans in product(FIELDS, (65, 96, 129), TRANS):
        plans = [plan for plan in fixed_plans.candidates(dtype, size, size, size, *trans) if plan.streams]
        yield from (streamed(dtype, size, trans, plan) for plan in plans[:: 1 + len(plans) // 3])


def edged(dtype):
    """Kernels of matrices up to an edge, or a bound of their vectors."""
    real = compiler.NAMES[dtype]
    for edge in EDGES:
        factors = f"2 * {edge} * edge_pitch({edge}) * sizeof({real})"
        yield "products/redirected_gemm.cuh", factors, edge_bytes(dtype, edge)
    for edge, whole in PACKED:
        factors = f"{whole} * 2 * {edge} * edge_pitch({edge}) * sizeof({real}) + PACKED_WARPS * sizeof(int)"
        yield "products/packed_gemm.cuh", factors, packed_bytes(dtype, edge, whole)
    for inner, breadth in product(INNER, (8, 40, 64)):
        row = f"{inner} * sizeof({real})"
        rows = f"{inner} * ({row} + B_PADDING) + {breadth} * ({row} + C_PADDING)"
        yield "products/triple_product.cuh", rows, triple_bytes(dtype, breadth, inner)
    for n, warps in product((1, 31, 1000), (1, 4, 16)):
        memory = f"(SYMV_SHARED + {warps}) * {n} * sizeof({real})"
        yield "products/symv.cuh", memory, vectors.symv_bytes(dtype, n, warps)
    for entries, terms in product((1, 7, 1089), (1, 33)):
        yield (
            "products/gemv_run.cuh",
            f"run_bytes<{real}>({entries}, {terms})",
            vectors.run_bytes(dtype, entries, terms),
        )


def streamed(dtype, size, trans, plan):
    """Slabs in a ring: as many stages as the kernel finds room for."""
    sizes, grid = 3 * (size,), (plan.warp_rows, plan.warp_columns)
    layout = plan.method, 1, True, plan.band, plan.slab, *grid, plan.fringe
    stage = f"{compiler.expression('FixedProduct', dtype, *sizes, *trans, *layout)}::Layout::STAGE"
    host = fixed_layout.stage_bytes(dtype, sizes, trans, *layout[:1], *layout[3:5], grid, fringe=plan.fringe)
    ring = f"{plan.shared // host} * {stage} * sizeof({compiler.NAMES[dtype]})"
    return "products/streamed_gemm.cuh", ring, plan.shared


def fixed(dtype, sizes, trans, method, group, same=False):
    """Whole matrices, their last tiles whole."""
    (m, n, k), tile = sizes, fixed_layout.TENSOR_TILE if method == fixed_layout.BY_TENSOR else fixed_layout.STRIP
    tall, wide = m, n
    if method != fixed_layout.BY_ROWS:
        tall, wide = fixed_layout.pitch_of(m, tile, 0), fixed_layout.pitch_of(n, fixed_layout.STRIP, 0)
    knobs = method, group, False, m, k, 128, tall, wide, *([True] if same else [])
    layout = compiler.expression("FixedLayout", dtype, m, n, k, *trans, *knobs)
    host = fixed_layout.stage_bytes(dtype, sizes, trans, method, m, k, None, group, same=same)
    return "products/fixed_gemm.cuh", f"{layout}::STAGE * sizeof({compiler.NAMES[dtype]})", host
