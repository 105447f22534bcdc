"""Shared memory of QR factorizations: see shared_memory.py."""

from itertools import product

import numpy as np
from shared_texts import DTYPES, FIELDS, sizeof, truth

from h2gpu.batched.device import compiler, tuning
from h2gpu.batched.qr import blocked, cholesky, complex_panels, householder, product_triangles, register_columns, tall


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
    for dtype, m, r in product(DTYPES, (1, 32, 100, 256), (1, 7, 64)):
        columns = f"leading_dimension({m}, {r}, false) * {r} * sizeof({compiler.NAMES[dtype]})"
        yield "qr/reflectors.cuh", columns, register_columns.held_bytes(dtype, m, r)
    for dtype, place, (m, n) in product(FIELDS[2:], range(3), ((1, 1), (7, 30), (240, 66))):
        layout = compiler.expression("ComplexQR", dtype, complex_panels.WIDTH)
        host = complex_panels.shared_bytes(dtype, place, m, n)
        yield "qr/complex_qr.cuh", f"{layout}::shared_bytes({place}, {m}, {n})", host
    for row in tuning.rows("qr_tall"):
        yield from (chain(row, n) for n in {1, 7, 20, int(row["max_columns"])} if n <= int(row["max_columns"]))
    shapes = product(DTYPES, (8, 16), ((100, 7), (64, 64), (5, 33), (1000, 1000)), (8, 32, 64), *2 * [(False, True)])
    for dtype, rows, size, threads, inside, want_q in shapes:
        yield householder_qr(dtype, rows, *size, threads, inside, want_q)


def chain(row, n):
    """R alone of tall matrices, by a row of the tuning table."""
    dtype = np.dtype(row["dtype"])
    real = compiler.NAMES[dtype]
    warps, strips, ways = (int(row[key]) for key in ("warps", "strips", "ways"))
    if ways:
        panels, across = f"TilePanels<{strips}, {ways}>", -(-n // tall.TILE)
        rows = f"max({-(-across // ways)}, {warps}) * {ways}"
        entries = f"{warps} * {panels}::SCRATCH + row_start<{panels}>({rows}, {across})"
        host = tall.blocked_entries(n, strips, ways, warps)
    else:
        rows, columns, lanes = (int(row[key]) for key in ("register_rows", "register_columns", "lanes"))
        exchange = f"TriangleChain<{real}, {rows}, {columns}, {lanes}, {warps}>::EXCHANGE"
        entries = f"{2 * warps if warps > 1 else 0} * {exchange} + {n} * ({n} + 1) / 2"
        host = tall.triangle_entries(n, columns, lanes, warps)
    return f"qr/{'blocked' if ways else 'triangle'}_chain.cuh", f"({entries}) * sizeof({real})", host * dtype.itemsize


def householder_qr(dtype, rows, m, n, threads, inside, want_q):
    """A team's memory: what lies before the triangle, and its last row's end where it lies there."""
    real, k = compiler.NAMES[dtype], min(m, n)
    factorization = compiler.expression("HouseholderQR", dtype, rows, -(-n // threads), threads, inside)
    triangle = f"(Triangle<true, {real}>{{nullptr, {n}}}.row({k - 1}) + {n} - static_cast<{real}*>(nullptr))"
    entries = f"{factorization}::before_triangle({k}, {truth(want_q)}) + {triangle if inside else 0}"
    host = householder.shared_entries(dtype, rows, m, n, threads, inside, want_q) * dtype.itemsize
    return "qr/householder_qr.cuh", f"({entries}) * sizeof({real})", host
