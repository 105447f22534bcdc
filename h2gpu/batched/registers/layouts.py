"""How a small problem lies in registers: one problem a thread, or dealt out in turns to a grid of threads of a block.

    entry (i, j) belongs to thread (i mod P, j mod Q)        P × Q: "2d", P × 1: "row", 1 × Q: "column"

Anderson, Sheffield & Keutzer (2012), "A predictive model for solving small linear algebra problems in GPU registers",
sections IV and V.A. kernels/registers/small_thread.cuh, small_block.cuh.
"""

from typing import NamedTuple

import numpy as np

from h2gpu.texts import brief

LAYOUTS = ("auto", "thread", "2d", "row", "column")
THREAD_EDGE, THREAD_WORDS = 16, 200  # of a problem in one thread: rows and columns, 32-bit words without spilling
GRIDS = ((8, 4), (8, 8), (16, 8), (16, 16), (32, 16), (32, 32))  # of threads, fewest first
TILE_WORDS = {32: 64, 64: 80, 128: 80, 256: 80, 512: 80, 1024: 24}  # that a thread of so many holds without spilling
LINE_WORDS = 128  # of a thread in the 1D layouts, which are for comparison
ROW_COLUMNS = 44  # at 48 the compiler stops unrolling: the tile lies in local memory, 5 times slower
WORD = 4  # bytes


class Layout(NamedTuple):
    """P × Q threads of a block, or 0 × 0 for a thread by itself."""

    rows: int
    columns: int

    @property
    def threads(self):
        return self.rows * self.columns

    def tile(self, m, width):
        """Rows and columns of a matrix of m × width that one thread holds."""
        return -(-m // self.rows), -(-width // self.columns)


THREAD = Layout(0, 0)


def layout(dtype, m, width, name="auto"):
    """The layout of problems of m × width, right-hand sides counted among the columns; None where none fits.

    name   one of LAYOUTS; "auto" takes a thread where the problem fits, else the smallest grid that holds it

    Raises ValueError for another name.
    """
    if name not in LAYOUTS:
        raise ValueError(f"layout: expected one of {', '.join(LAYOUTS)}, got {brief(name)}")
    words = np.dtype(dtype).itemsize // WORD
    few = max(m, width - 1) <= THREAD_EDGE
    if name == "thread":
        return THREAD if few else None
    if name == "auto" and few and m * width * words <= THREAD_WORDS:
        return THREAD
    for P, Q in GRIDS:
        grid, most = Layout(P, Q), TILE_WORDS[P * Q]
        if name in ("row", "column"):
            grid, most = Layout(*((P * Q, 1) if name == "row" else (1, P * Q))), LINE_WORDS
            if (m if name == "row" else width) > P * Q:  # a line a thread
                continue
            if name == "row" and width > ROW_COLUMNS:
                return None
        height, across = grid.tile(m, width)
        if height * across * words <= most:
            return grid
    return None
