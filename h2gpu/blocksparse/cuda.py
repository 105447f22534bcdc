"""y = A x for sparse matrices of dense blocks on the GPU, every stored entry read once.

The panels are cut into runs of rows. One kernel makes the products of all runs, P x_j and Pᵀ x_i, the parts; a second
adds up the parts of every block row of y in a fixed order. The plan of both is made once for a matrix.
"""

from dataclasses import dataclass

import cupy
import numpy as np

from h2gpu.arrays import moved_together
from h2gpu.batched.core.offsets import offsets_of, runs_of, stable_order
from h2gpu.batched.device.chains import launch_behind
from h2gpu.batched.device.compiler import kernel
from h2gpu.batched.device.launch import WARP, launch
from h2gpu.blocksparse.panels import (
    HEADER,
    STRIP,
    PanelList,
    Product,
    cut_rows,
    numbered,
    panel_table,
    planned_here,
    sides_of,
)

SUM_WARPS, SUM_ENTRIES, SUM_TERMS = 4, 2, 8  # of a block; a lane's entries of y; terms of a sum on their way


@dataclass(frozen=True)
class Plan:
    """What the two kernels read: see blocksparse/block_multiply.cuh.

    product            which products are made: blocks as they are, transposed, or both
    panels, x_rows     lists of panels, and for every row of every panel the row of x that it meets transposed
    parts              how many, of one right-hand side
    block_rows         rows of blocks in y that receive something, and runs of rows between them, which are set to zero
    tallest            rows of the tallest of them
    row_table, lists   where they are in y, and the first part of each of their terms
    """

    product: Product
    panels: PanelList
    x_rows: object
    parts: int
    block_rows: int
    tallest: int
    row_table: object
    lists: object


def block_multiply(A, x, size, transpose, out):
    """See h2gpu.blocksparse.block_multiply."""
    add, shape = out is not None, (size, x.shape[1])
    if not len(A):
        return out if add else cupy.zeros(shape, x.dtype)
    y = out if add else cupy.empty(shape, x.dtype)
    transpose = bool(transpose and not A.symmetric)
    plan = planned_here(A, (transpose, size), lambda: make_plan(A, size, transpose))
    for x_part, y_part in sides_of(x, y):
        sides = x_part.shape[1]
        parts = cupy.empty((plan.parts, sides), x.dtype)
        start = launch_behind if A.constant else launch
        plan.product(plan.panels, A.blocks.buffer, x_part, parts, plan.x_rows, start)
        pieces = max(1, -(-plan.tallest * sides // (WARP * SUM_ENTRIES)))
        arguments = y_part, parts, plan.row_table, plan.lists, plan.block_rows, pieces, sides, x.shape[1], np.bool_(add)
        function = kernel(HEADER, "block_sums", x.dtype, SUM_WARPS, SUM_ENTRIES, SUM_TERMS)
        launch_behind(function, -(-plan.block_rows * pieces // SUM_WARPS), SUM_WARPS * WARP, arguments)
    return y


def make_plan(A, size, transpose):
    """Strips and runs of rows of the panels, and for every block row of y the list of its parts."""
    forward, backward = A.symmetric or not transpose, A.symmetric or transpose
    m, n, first_row = A.blocks.rows, A.blocks.columns, offsets_of(A.blocks.rows)
    lead = runs_of(A.columns)[:-1]  # first block of each panel
    height, width, strips = np.add.reduceat(m, lead), n[lead], -(-n[lead] // STRIP)
    forward_first = offsets_of(height * strips * forward)  # parts: one a row of every strip of a panel,
    panel, first, rows = cut_rows(height, np.minimum(width, STRIP))
    backward_first = forward_first[-1] + offsets_of(width[panel] * backward)  # then one a column of every run of rows
    run, strip = numbered(strips[panel])
    panel, first, rows = panel[run], first[run], rows[run]
    column, own = strip * STRIP, A.symmetric & (A.rows[lead] == A.columns[lead])
    table = panel_table(
        rows,
        np.minimum(STRIP, width[panel] - column),
        pitch=width[panel],
        entry=A.blocks.offsets[lead[panel]] + first * width[panel] + column,
        x=A.col_starts[A.columns[lead[panel]]] + column,
        z=first_row[lead[panel]] + first,
        forward=forward_first[panel] + strip * height[panel] + first,
        backward=backward_first[run] + column,
        skip=np.clip(np.where(own, m[lead], 0)[panel] - first, 0, rows),
    )
    terms = []  # (block row of y, its rows, first part)
    if forward:
        if (strips == 1).all():  # then they are the rows of the blocks one after another
            terms.append((A.rows, m, first_row[:-1]))
        else:
            owner = np.repeat(np.arange(len(lead)), np.diff(np.append(lead, len(A))))
            block, strip = numbered(strips[owner])
            part = forward_first[owner] + first_row[:-1] - first_row[lead[owner]]
            terms.append((A.rows[block], m[block], part[block] + strip * height[owner[block]]))
    if backward:
        first_of = np.flatnonzero(column == 0)
        columns, run = A.columns[lead[panel[first_of]]], run[first_of]
        terms.append((columns, width[panel[first_of]], backward_first[run]))
    starts = A.row_starts if forward else A.col_starts
    each = (np.concatenate(parts) if len(terms) > 1 else parts[0] for parts in zip(*terms))
    tallest, *lists = _sums(size, starts, *each)
    lists += _jumps(A.row_starts[A.rows], m, first_row)
    panels, row_table, parts, *met = moved_together(cupy, table.view(np.uint8), *lists)
    counts = int(backward_first[-1]), row_table.shape[1], tallest
    panels = PanelList(panels, len(table))
    return Plan(Product(forward, backward), panels, _rows_met(*met, int(first_row[-1])), *counts, row_table, parts)


def _sums(size, starts, row, height, part):
    """Terms in the order of block rows: the rows of the tallest, their table, the lists of parts."""
    order, counts = stable_order(row), np.bincount(row)
    some = np.flatnonzero(counts)
    stop = np.cumsum(counts[some])
    leader = stop - counts[some]
    first, rows, tallest = starts[some], height[order[leader]], int(height.max(initial=0)) or STRIP
    gaps = _gaps(first, rows, size, tallest)
    none = np.zeros(len(gaps[0]), np.int64)
    pairs = (first, gaps[0]), (rows, gaps[1]), (leader, none), (stop, none)
    return tallest, np.stack([np.concatenate(pair) for pair in pairs], dtype=np.int64), part.astype(np.int32)[order]


def _gaps(first, rows, size, most):
    """(first, rows) of what of `size` rows the given runs leave out, in pieces of at most so many rows."""
    order = np.argsort(first[rows > 0])
    first, rows = first[rows > 0][order], rows[rows > 0][order]
    begin, end = np.append(0, first + rows), np.append(first, size)
    gap, piece = numbered(-(-(end - begin) // most))
    start = begin[gap] + piece * most
    return start, np.minimum(most, end[gap] - start)


def _jumps(starts, counts, first):
    """Where the runs of `ranges` begin, and by how much they go on from the one before; first: offsets_of(counts)."""
    if not counts.all():
        some = np.flatnonzero(counts)
        starts, counts, first = starts[some], counts[some], np.append(first[some], first[-1])
    jumps = starts.astype(np.int32)
    jumps[1:] -= (starts[:-1] + counts[:-1] - 1).astype(np.int32)
    return first[:-1], jumps


def _rows_met(first, jumps, count):
    """`ranges` of so many rows on the device, as int32: differences from row to row, summed up."""
    steps = cupy.ones(count, np.int32)
    steps[first] = jumps
    return cupy.cumsum(steps, dtype=np.int32)
