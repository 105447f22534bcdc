"""What the host asks for as shared memory of a block, beside the C++ expression of what the kernel lays out there.

Run as a program on the stand-in for CuPy, so that nothing of it stays behind in the process of the tests:

    python tests/support/nvrtc/shared_memory.py   →   lines of header, expression, bytes
"""

import sys
from itertools import product
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "standin"))
from h2gpu.batched.bidiagonal import plans as bidiagonal_plans
from h2gpu.batched.device import compiler
from h2gpu.batched.device.launch import WARP
from h2gpu.batched.device.limits import most_shared
from h2gpu.batched.products import fixed_layout, thin
from h2gpu.batched.products.gemm import shared_bytes as gemm_bytes
from h2gpu.batched.qr import blocked, cholesky, product_triangles
from h2gpu.batched.svd import blocks, choice
from h2gpu.batched.systems import lu_shared, lu_warps
from h2gpu.batched.systems.trsm import trsm_bytes
from h2gpu.blocksparse import panels

F64, F32 = np.dtype(np.float64), np.dtype(np.float32)
DTYPES = F64, F32
RANKS = (1, 2, 7, 16, 17, 31, 32, 33, 64, 100, 128, 150, 250, 1000)


def sizeof(name, *arguments):
    return f"sizeof({compiler.expression(name, *arguments)})"


def truth(value):
    return "true" if value else "false"


def svd():
    for dtype, k, both in product(DTYPES, RANKS, (False, True)):
        real, size = compiler.NAMES[dtype], dtype.itemsize
        for longer in (k, k + 1, 3 * k):
            host = choice.workspace_bytes(dtype, longer, k, both)
            yield "svd/svd_shared.cuh", f"workspace_bytes({size}, {longer}, {k}, {truth(both)})", host
        triangle = choice.triangle_bytes(dtype, k, both)
        yield "svd/svd_triangle.cuh", f"triangle_bytes<{real}>({k}, {truth(both)})", triangle
        between = blocks.panel_bytes(dtype, k, both)
        yield "svd/svd_blocks.cuh", f"panel_bytes({size}, {k}, {truth(both)})", between
    for dtype in DTYPES:
        rounds = asked(blocks, lambda dtype=dtype: blocks.gram_rounds(dtype, 500, True))
        memory = compiler.expression("PairMemory", dtype, blocks.GRAM_WIDTH)
        yield "svd/svd_gram.cuh", f"{memory}::REALS * sizeof({compiler.NAMES[dtype]})", rounds


def qr():
    for dtype, warps, tiles in product(DTYPES, (1, 2, 4, 8, 16), (1, 2, 4, 8)):
        host = blocked.shared_bytes(dtype, warps, tiles)
        for header in ("qr/blocked_qr.cuh", "qr/tree_qr.cuh"):
            yield header, sizeof("StripMemory", dtype, warps, tiles), host
    for strips, warps in cholesky.WARPS.items():
        yield "qr/cholesky_qr.cuh", sizeof("QRMemory", strips, warps), cholesky.shared_bytes(strips)
    for dtype in DTYPES:
        edge, real = product_triangles.EDGE, compiler.NAMES[dtype]
        memory = compiler.expression("ProductMemory", edge)[:-1] + f", {real}>"
        parts = f"sizeof({memory}) + sizeof(LinkQueue<{real}, {memory}::THREADS>)"
        yield "qr/product_triangles.cuh", parts, product_triangles.shared_bytes(edge, dtype)


def systems():
    for dtype, n, columns in product(DTYPES, (1, 31, 32, 200), (8, 16, 32)):
        host = trsm_bytes(dtype, n, columns)
        yield "systems/trsm.cuh", f"trsm_bytes<{compiler.NAMES[dtype]}, {columns}>({n})", host
    for dtype in map(np.dtype, (np.float32, np.float64, np.complex64, np.complex128)):
        for m in (1, 8, 32, 33, 64, 100, 128, 150, 190):
            if m <= lu_shared.SHARED_SLOTS[dtype.itemsize] * WARP:
                yield from lu(dtype, m)


def lu(dtype, m):
    shape = lu_shared.shape_of(dtype.itemsize, m)
    panel, slots = min(shape["panel"], lu_shared.MOST_PANEL[dtype.itemsize]), -(-m // WARP)
    team = -(-slots // shape["held"])
    for n in (m, m + shape["window"] // 2 if shape["window"] else m + 5):
        window = int(lu_shared.window_of(dtype, np.array(m), np.array(n)))
        if team < shape["warps"] and (not window or m > window):
            host, pitch = (int(x) for x in lu_shared.memory(dtype, np.array(m), np.array(n), window))
            knobs = panel, shape["held"], team, shape["warps"], shape["resident"], window
            pitch = window + lu_shared.SPREAD if window else pitch
            yield (
                "systems/lu_shared.cuh",
                f"{compiler.expression('SharedLU', dtype, *knobs)}::bytes({m}, {pitch})",
                host,
            )
    for columns in (16, 32, 48, 64):
        slots, held, host = lu_warps._warp_shape(dtype, m, columns)
        if slots <= 2 and held <= slots * WARP:
            yield "systems/lu_warp.cuh", sizeof("LUStage", dtype, int(held), int(slots)), int(host)


def products():
    for dtype, edges in product(DTYPES, product((16, 32, 64), repeat=2)):
        host = gemm_bytes(dtype, edges)
        real = compiler.NAMES[dtype]
        yield "products/gemm.cuh", f"STAGES * ({edges[0]} + {edges[1]}) * PITCH * sizeof({real})", host
    for strips, (transa, turned) in product(range(1, 9), ((False, False), (True, False), (False, True))):
        stage = sizeof("ThinStage", F64, strips, transa, turned)
        yield "products/thin_product.cuh", f"STAGES * {stage}", thin.shared_bytes(strips, transa, turned)
    for sizes, trans, group in product(((8, 8, 8), (33, 33, 33), (20, 50, 40)), TRANS, (1, 3)):
        for dtype, method in product(DTYPES, (fixed_layout.BY_ROWS, fixed_layout.BY_LANES, fixed_layout.BY_TENSOR)):
            yield fixed(dtype, sizes, trans, method, group)


TRANS = ((False, False), (True, False), (False, True), (True, True))


def fixed(dtype, sizes, trans, method, group):
    """Whole matrices, their last tiles whole."""
    (m, n, k), tile = sizes, fixed_layout.TENSOR_TILE if method == fixed_layout.BY_TENSOR else fixed_layout.STRIP
    tall, wide = m, n
    if method != fixed_layout.BY_ROWS:
        tall, wide = fixed_layout.pitch_of(m, tile, 0), fixed_layout.pitch_of(n, fixed_layout.STRIP, 0)
    layout = compiler.expression("FixedLayout", dtype, m, n, k, *trans, method, group, False, m, k, 128, tall, wide)
    host = fixed_layout.stage_bytes(dtype, sizes, trans, method, m, k, None, group)
    return "products/fixed_gemm.cuh", f"{layout}::STAGE * sizeof({compiler.NAMES[dtype]})", host


def bidiagonal():
    for dtype, n, times in product(DTYPES, (130, 192, 256, 500, 1000), (1, 3)):
        plan = bidiagonal_plans.plan(dtype.itemsize, times * n, n, most_shared(0))
        if isinstance(plan, bidiagonal_plans.Rows):
            knobs = f"{plan.across}, {plan.vectors}, {plan.warps}, {plan.held}, 1"
            rows = f"BidiagonalRows<{compiler.NAMES[dtype]}, {knobs}, NoWatch>"
            layout = plan.across, plan.vectors, plan.warps, plan.held
            host = bidiagonal_plans.shared_bytes(dtype.itemsize, times * n, n, *layout)
            yield "bidiagonal/bidiagonalize_large.cuh", f"{rows}::bytes({times * n}, {n})", host


def blocksparse():
    for stored, real, groups in product(DTYPES, DTYPES, panels.GROUPS):
        if stored.itemsize > real.itemsize:
            continue
        room = panels.Z_ENTRIES[groups]
        host = asked(panels, lambda s=stored, r=real, g=groups: panels._kernel(0, BACKWARD, (s, r), g))
        memory = f"PanelMemory<{compiler.NAMES[stored]}, {compiler.NAMES[real]}, {groups}>"
        yield "blocksparse/block_multiply.cuh", f"{panels.WARPS} * {memory}::bytes({room})", host


class BACKWARD:
    forward, backward, add = False, True, False


def asked(module, call):
    """The bytes that a module's function announces for its kernel."""
    sizes = []

    def kernel(*_, shared_bytes=0):
        sizes.append(shared_bytes)

    before, module.kernel = module.kernel, kernel
    call()
    module.kernel = before
    return sizes[0]


def main():
    for room in (svd, qr, systems, products, bidiagonal, blocksparse):
        for header, expression, host in room():
            print(header, expression, int(host), sep="\t")


if __name__ == "__main__":
    main()
