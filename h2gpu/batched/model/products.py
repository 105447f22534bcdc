"""Counts of products of one shape: of tiles that a block multiplies, kernels/products/gemm.cuh, or of any kernel.

Small tiles are over before their waits are: a block asks for its first slabs, waits for memory once, and multiplies.
Instructions and cycles are those of the machine code for sm_90, as in pivoted.py; larger products, compiled ones and
the vendor's, run at the rate of large ones or of memory.
"""

from functools import partial
from math import ceil

import numpy as np

from h2gpu.batched.device import tuning
from h2gpu.batched.model.counts import WARP, Counts, Field
from h2gpu.batched.products.choice import TILE, chosen

EDGE, SLAB, THREADS = 16, 16, 128  # of the kernel: tiles are multiples of the edge; inner indices of a slab
DEPTH = 4  # inner indices of an instruction
WORDS = 96  # registers of a thread
# waits and instructions of a warp: of a block, of a slab that comes, of each DEPTH, of the end; and for a tile of e
# edges e times or, of products, e² times as much
BEGUN, COMES, COMES_EACH, READY, END = (472, 206), (211, 16), (74, 88), (140, 44), (91, 0)
END_EACH, PRODUCTS = (41, 38), {"float32": ((30, 8), (41, 12)), "float64": ((62, 4), (0, 4))}


def gemm(dtype, batch, m, n, inner, folder):
    """Counts of a product m × inner × n of a batch, by the kernel that the tables of a device's folder choose."""
    field, largest = Field.of(dtype), max(m, n, inner)
    moved = (m * inner + inner * n + m * n) * field.size
    row = partial(tuning.first_row, folder)
    if largest > TILE or chosen(np.dtype(dtype), batch, (m, n, inner), False, row) != "tiles":
        return Counts(product_flops=2 * m * n * inner, nbytes=moved, global_trips=1)
    return _tile(np.dtype(dtype).name, field, ceil(max(m, n) / EDGE), inner, moved)


def _tile(name, field, edges, inner, moved):
    """One block: e × e edges, all of the matrix."""
    slabs, depths, warps = ceil(inner / SLAB), ceil(inner / DEPTH), THREADS // WARP
    stalls, issued = (
        BEGUN[i]
        + slabs * (COMES[i] + COMES_EACH[i] * edges + READY[i])
        + depths * (PRODUCTS[name][0][i] + PRODUCTS[name][1][i] * (edges if i == 0 else edges**2))
        + END[i]
        + END_EACH[i] * edges
        for i in (0, 1)
    )
    products = {"flops" if name == "float32" else "tensor_flops": 2 * (edges * EDGE) ** 2 * inner}
    return Counts(
        **products, nbytes=moved, issued=warps * issued, global_trips=1, stalls=stalls, threads=THREADS, words=WORDS
    )
