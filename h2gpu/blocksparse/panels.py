"""Products with many panels in few launches, planned once: P x and Pᵀ z of every panel, block_multiply.cuh.

A panel is a matrix in a buffer, with the rows of the vectors that it reads and adds to. The lists of panels are made on
the host on first need and stay on the device as long as the matrix that they belong to lives.
"""

from dataclasses import dataclass
from functools import cache

import cupy
import numpy as np

from h2gpu.arrays import moved_together
from h2gpu.batched.device.compiler import kernel
from h2gpu.batched.device.launch import NULL, WARP, launch
from h2gpu.batched.device.plans import planned

WARPS = 2  # of a block, a panel each
SIDES, GROUPS = 8, (0, 1, 2)  # right-hand sides of a tile, tiles that a warp can hold: none for a single side
SIDES_AT_ONCE = SIDES * GROUPS[-1]
STAGES, STAGE_BYTES, VECTOR_ENTRIES, STAGE_ROWS = 2, 8704, 1096, 64  # of the kernel; entries with a single side
SPILL_BYTES = {0: 40, 1: 0, 2: 0}  # of a thread at most, once a panel, by tiles (sm_90: 4)
Z_ENTRIES = {0: STAGE_ROWS, 1: 384, 2: 640}  # room for right-hand sides in a stage, by tiles
PANEL_ENTRIES = 8192  # of a panel's run of rows: a warp's work
STRIP, TILE_ROWS = 64, 16  # columns of a panel that a warp multiplies at a time, rows of a tile
HEADER = "blocksparse/block_multiply.cuh"
NAMES = "x", "z", "forward", "backward", "rows", "width", "pitch", "skip", "unused", "unused_too"
FIELDS = [("entry", np.int64), *((name, np.int32) for name in NAMES)]  # of the kernel's struct Panel


def panel_table(rows, width, **fields):
    """The kernel's struct Panel for each panel, on the host; panels without entries are left out.

    rows, width   (panels,) shapes
    fields        the other members by name; pitch is the width unless given
    """
    some = (rows > 0) & (width > 0)
    some = slice(None) if some.all() else some  # without copies
    table = np.zeros(len(rows[some]), FIELDS)
    for name, values in {"rows": rows, "width": width, "pitch": width, **fields}.items():
        table[name] = values[some]
    return table


@dataclass(frozen=True)
class PanelList:
    """Panels on the device.

    table    bytes of a panel_table
    count    how many
    """

    table: object
    count: int

    @classmethod
    def of(cls, *tables):
        """The panels of each table, in a list."""
        there = moved_together(cupy, *(table.view(np.uint8) for table in tables))
        return [cls(bytes_, len(table)) for bytes_, table in zip(there, tables)]


@dataclass(frozen=True)
class Product:
    """A kind of product.

    forward, backward   whether P x is made, and Pᵀ z
    add                 whether P x is added to what is there; else panels have at most STRIP columns
    """

    forward: bool
    backward: bool
    add: bool = False

    def __call__(self, panels, entries, x, y, z_rows=NULL, start=launch):
        """Rows of y ⟵ products with rows of x: (·, sides) with adjacent columns, at most SIDES_AT_ONCE.

        entries   of x's precision, or float32
        start     `launch_behind` where no kernel before writes entries
        """
        device, sides, precisions = cupy.cuda.Device().id, x.shape[1], (entries.dtype, x.dtype)
        function, room, shared = _kernel(device, self, precisions, 0 if sides == 1 else -(-sides // SIDES))
        pitches = x.strides[0] // x.itemsize, y.strides[0] // y.itemsize
        arguments = panels.table, panels.count, entries, x, pitches[0], z_rows, y, pitches[1], sides, room
        start(function, -(-panels.count // WARPS), WARPS * WARP, arguments, shared)


@cache
def _kernel(device, product, precisions, groups):
    """The instance for so many tiles of right-hand sides, entries of z in a stage, shared memory of a block.

    device       the current one, part of the key only
    precisions   of the entries and of the vectors
    groups       0 for a single side
    """
    stored, real = (dtype.itemsize for dtype in precisions)
    room = Z_ENTRIES[groups] if product.backward else STAGE_ROWS
    entries = STAGE_BYTES if groups else VECTOR_ENTRIES * stored
    shared = WARPS * STAGES * (entries + room * real)
    instance = *precisions, product.forward, product.backward, product.add, groups, WARPS
    return kernel(HEADER, "panel_products", *instance, shared_bytes=shared), room, shared


def planned_here(owner, key, make):
    """make(), remembered for this owner, key and the current device."""
    return planned(owner, (cupy.cuda.Device().id, key), make)


def sides_of(x, y):
    """Slices of the columns of x and y, SIDES_AT_ONCE at a time."""
    for first in range(0, x.shape[1], SIDES_AT_ONCE):
        yield x[:, first : first + SIDES_AT_ONCE], y[:, first : first + SIDES_AT_ONCE]


def cut_rows(rows, width, entries=PANEL_ENTRIES):
    """Even runs of about so many entries, of whole tiles: for each of all runs its panel, first row and rows.

    rows, width   (panels,) their shapes
    """
    runs = -(-rows // np.maximum(1, entries // np.maximum(1, width)))
    tiles = -(-rows // TILE_ROWS)
    step = np.maximum(1, -(-tiles // np.maximum(1, runs))) * TILE_ROWS
    panel, run = numbered(-(-rows // step))
    first = run * step[panel]
    return panel, first, np.minimum(step[panel], rows[panel] - first)


def numbered(counts):
    """(owner, number within its owner) of counts[b] things of each owner b, in order."""
    owner = np.repeat(np.arange(len(counts)), counts)
    return owner, np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
