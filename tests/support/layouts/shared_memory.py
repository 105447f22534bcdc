"""What the host asks for as shared memory of a block, beside the C++ expression of what the kernel lays out there.

Run as a program on the stand-in for CuPy, so that nothing of it stays behind in the process of the tests:

    python tests/support/layouts/shared_memory.py   →   lines of header, expression, bytes
"""

from itertools import product

from shared_products import products
from shared_qr import qr
from shared_systems import systems
from shared_texts import DTYPES, FIELDS, asked, truth

from h2gpu.batched.bidiagonal import plans as bidiagonal_plans
from h2gpu.batched.device import compiler
from h2gpu.batched.device.launch import WARP
from h2gpu.batched.device.limits import most_shared
from h2gpu.batched.svd import bidiagonal as bidiagonal_svd
from h2gpu.batched.svd import blocks, choice, complex_jacobi, jacobi
from h2gpu.blocksparse import panels

RANKS = (1, 2, 7, 16, 17, 31, 32, 33, 64, 100, 128, 150, 250, 1000)


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
    for dtype, k, both, width in product(DTYPES, (257, 500, 1000), (False, True), (8, 24)):
        panels = f"2 * {width} * (round_pitch({k}, {truth(both)}) + 1) * sizeof({compiler.NAMES[dtype]})"
        yield "svd/svd_rounds.cuh", panels, blocks.direct_bytes(dtype, k, both, width)
    for dtype, rows, lanes, both in product(DTYPES, (8, 16, 32), (4, 8, 16, 32), (False, True)):
        if lanes <= rows:
            matrices = jacobi.REGISTER_WARPS * WARP // lanes
            memory = f"LaneMemory<{rows}, {lanes}, {truth(both)}>::REALS * sizeof({compiler.NAMES[dtype]})"
            yield "svd/svd_register.cuh", f"{matrices} * {memory}", jacobi.register_bytes(dtype, rows, lanes)


def complex_svd():
    for dtype, k, both in product(FIELDS[2:], (1, 7, 32, 100), (False, True)):
        layout = compiler.expression("ComplexSVD", dtype)
        for longer in (k, k + 1, 3 * k):
            columns = f"{layout}::entries({longer}, {k}, {truth(both)}) * sizeof({compiler.NAMES[dtype]})"
            host = complex_jacobi.shared_bytes(dtype, longer, k, both)
            yield "svd/complex_svd.cuh", f"{layout}::beside({longer}, {k}) + {columns}", host


def bidiagonal():
    for dtype, n, times in product(DTYPES, (130, 192, 256, 500, 1000), (1, 3)):
        plan = bidiagonal_plans.plan(dtype.itemsize, times * n, n, most_shared(0))
        if isinstance(plan, bidiagonal_plans.Rows):
            knobs = f"{plan.across}, {plan.vectors}, {plan.warps}, {plan.held}, 1"
            rows = f"BidiagonalRows<{compiler.NAMES[dtype]}, {knobs}, NoWatch>"
            layout = plan.across, plan.vectors, plan.warps, plan.held
            host = bidiagonal_plans.shared_bytes(dtype.itemsize, times * n, n, *layout)
            yield "bidiagonal/bidiagonalize_large.cuh", f"{rows}::bytes({times * n}, {n})", host
    for dtype, n, inside in product(DTYPES, (1, 31, 64, 100, 300), (False, True)):
        real = compiler.NAMES[dtype]
        workspace = "nullptr" if inside else f"reinterpret_cast<{real}*>(16)"
        end = f"BidiagonalSvd<{real}>({n}, nullptr, {workspace}).places + {n}"
        host = bidiagonal_svd.turn_bytes(dtype.itemsize, n, inside)
        yield "bidiagonal/bidiagonal_svd.cuh", f"reinterpret_cast<long long>({end})", host


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


def main():
    for room in (svd, complex_svd, qr, systems, products, bidiagonal, blocksparse):
        for header, expression, host in room():
            print(header, expression, int(host), sep="\t")


if __name__ == "__main__":
    main()
