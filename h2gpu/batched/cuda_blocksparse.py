"""y = A x for sparse matrices of dense blocks on the GPU, every stored entry read once.

The panels are cut into items of about ITEM_ENTRIES entries. One kernel writes the products of all items, P x_j and
Pᵀ x_i, to memory; a second adds up the parts of every block row of y in a fixed order. The plan of both is made once
for a matrix and stays on the device as long as the matrix lives.
"""

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import cupy
import numpy as np

from h2gpu.batched.launch import launch, upload
from h2gpu.batched.modules import kernel
from h2gpu.batched.ragged import offsets_of, ranges

ITEM_ENTRIES = 8192
MAX_WIDTH = 128  # columns of an item, as in the kernel
THREADS, SUM_WARPS = 128, 4
SIDES = (1, 4)  # right-hand sides that the kernel holds in registers

_plans = WeakKeyDictionary()


@dataclass(frozen=True)
class Plan:
    """What the two kernels read: see batched/block_multiply.cuh.

    forward, backward  whether blocks act as they are, and transposed
    items, parts       how many
    item_table, x_rows, row_table, lists   on the device
    block_rows         rows of y's that receive something
    """

    forward: bool
    backward: bool
    items: int
    parts: int
    item_table: object
    x_rows: object
    block_rows: int
    row_table: object
    lists: object


def block_multiply(A, x, size, transpose):
    """See h2gpu.batched.block_multiply."""
    sides = x.shape[1]
    y = cupy.zeros((size, sides), x.dtype)
    if not len(A) or not sides:
        return y
    plan = _plan(A, transpose and not A.symmetric)
    group = next((s for s in SIDES if sides <= s), SIDES[-1])
    parts = cupy.empty((plan.parts, sides), x.dtype)
    products = kernel("batched/block_multiply.cuh", "block_products", x.dtype, plan.forward, plan.backward, group)
    arguments = A.blocks.buffer, x, parts, plan.x_rows, plan.item_table, np.int64(plan.items), sides
    launch(products, plan.items, THREADS, arguments)
    sums = kernel("batched/block_multiply.cuh", "block_sums", x.dtype)
    arguments = y, parts, plan.row_table, plan.lists, np.int64(plan.block_rows), sides
    launch(sums, -(-plan.block_rows // SUM_WARPS), THREADS, arguments)
    return y


def _plan(A, transpose):
    """The plan of A on the current device, made on first need."""
    plans = _plans.setdefault(A, {})
    key = cupy.cuda.Device().id, transpose
    if key not in plans:
        plans[key] = make_plan(A, transpose)
    return plans[key]


def make_plan(A, transpose):
    """Items of the panels, and for every block row of y the list of its parts."""
    forward, backward = A.symmetric or not transpose, A.symmetric or transpose
    blocks, m, n = A.blocks, A.blocks.rows, A.blocks.columns
    first_row = offsets_of(m)  # of each block among the rows of all panels
    chunks = _chunks(A)  # first block of every chunk
    ends = np.append(chunks[1:], len(A))
    strips = np.maximum(1, -(-n[chunks] // MAX_WIDTH))

    # parts: for every strip of every chunk one number a row, then for every chunk one number a column
    chunk_rows = first_row[ends] - first_row[chunks]
    forward_first = offsets_of(chunk_rows * strips * forward)
    backward_first = forward_first[-1] + offsets_of(n[chunks] * backward)

    item_chunk = np.repeat(np.arange(len(chunks)), strips)
    strip = ranges(np.zeros(len(chunks), np.int64), strips)
    lead, column = chunks[item_chunk], strip * MAX_WIDTH
    diagonal = np.where(A.symmetric & (A.rows[lead] == A.columns[lead]), m[lead], 0)
    table = (
        blocks.offsets[lead] + column,
        chunk_rows[item_chunk],
        np.minimum(MAX_WIDTH, n[lead] - column),
        n[lead],
        A.col_starts[A.columns[lead]] + column,
        first_row[lead],
        forward_first[item_chunk] + strip * chunk_rows[item_chunk],
        backward_first[item_chunk] + column,
        diagonal,
    )
    terms = []  # (kind, block row, rows, first row of y, first part)
    if forward:
        block_chunk = np.repeat(np.arange(len(chunks)), ends - chunks)
        block = np.repeat(np.arange(len(A)), strips[block_chunk])
        block_strip = ranges(np.zeros(len(A), np.int64), strips[block_chunk])
        chunk = block_chunk[block]
        part = forward_first[chunk] + block_strip * chunk_rows[chunk] + first_row[block] - first_row[chunks[chunk]]
        terms.append((A.rows[block], m[block], A.row_starts[A.rows[block]], part))
    if backward:
        terms.append((A.columns[chunks], n[chunks], A.col_starts[A.columns[chunks]], backward_first[:-1]))
    row, height, start, part = (np.concatenate(parts) for parts in zip(*terms))
    order = np.argsort(row, kind="stable")
    row, height, start, part = row[order], height[order], start[order], part[order]
    leader = np.flatnonzero(np.diff(row, prepend=-1))
    bounds = np.append(leader, len(row))
    rows_table = start[leader], height[leader], bounds[:-1], bounds[1:]
    packed = upload(*table, *rows_table, part)  # both tables are read whole from the address of their first line
    item_table, row_table, lists = packed[0], packed[len(table)], packed[-1]
    x_rows = cupy.asarray(ranges(A.row_starts[A.rows], m).astype(np.int32))
    items, parts = len(item_chunk), int(backward_first[-1])
    return Plan(forward, backward, items, parts, item_table, x_rows, len(leader), row_table, lists)


def _chunks(A):
    """First block of every chunk: consecutive blocks of one column, each chunk about ITEM_ENTRIES entries."""
    new_column = np.diff(A.columns, prepend=-1) != 0
    before = offsets_of(A.blocks.sizes)[:-1]
    column_first = np.maximum.accumulate(np.where(new_column, before, 0))
    chunk = (before - column_first) // ITEM_ENTRIES
    return np.flatnonzero(new_column | (np.diff(chunk, prepend=-1) != 0))
