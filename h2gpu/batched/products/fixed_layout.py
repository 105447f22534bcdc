"""Shared memory of products of one shape, as kernels/products/block/fixed_layout.cuh lays their factors out."""

import numpy as np

BY_ROWS, BY_LANES, BY_TENSOR = 0, 1, 2  # methods of the kernels
WHOLE_PRODUCT, LOWER, UPPER = range(3)  # ProductPart of products/thread/part.cuh
WARP, STRIP, TENSOR_TILE, WIDEST = 32, 8, 16, 16  # of the kernels; bytes of a copy
SECTOR = 32  # bytes that memory writes at once
WIDEST_FRINGE = 2  # rows and columns behind whole tiles that the vector pipe may take


def fringe_of(m, n):
    """Rows and columns of m × n behind the tensor cores' last whole tiles, each 0 where they are too many."""
    rows, columns = m % TENSOR_TILE, n % STRIP
    return rows * (rows <= WIDEST_FRINGE), columns * (columns <= WIDEST_FRINGE)


def whole_bytes(dtype, sizes, trans, method, group, fringe=False, same=False):
    """Shared memory of whole matrices: the factors with what reads of whole tiles reach, or the results."""
    size = np.dtype(dtype).itemsize
    stage = stage_bytes(dtype, sizes, trans, method, sizes[0], sizes[2], None, group, fringe, same)
    return max(stage, size * (group * sizes[0] * sizes[1]) + WIDEST)


def stage_bytes(dtype, sizes, trans, method, band, slab, grid, group=1, fringe=False, same=False):
    """Shared memory of a stage as FixedLayout counts, with what reads of whole tiles reach behind it.

    grid     of warps that take as many tiles, where slabs stream; None for whole matrices
    fringe   whether the last rows and columns are not parts of tiles
    same     whether the second factor is the first one transposed, and there once
    """
    (m, n, k), (transa, transb), size = sizes, trans, np.dtype(dtype).itemsize
    chunk, tensor = WIDEST // size, method == BY_TENSOR
    rows_a, length_a = (slab, band) if tensor and transa else (band, slab)
    rows_b, length_b = (n, slab) if tensor and transb else (slab, n)
    lead_a, lead_b = m if transa else k, k if transb else n
    if grid is None and is_run(method, lead_a, lead_b):
        pitch_a, pitch_b = lead_a, lead_b
    elif tensor:
        along, across = (8, 4), (16, 8) if size == 4 else (8, 4)
        pitch_a = pitch_of(length_a, *(across if transa else along))
        pitch_b = pitch_of(length_b, *(along if transb else across))
    elif method == BY_LANES:
        pitch_a, pitch_b = pitch_of(length_a, 2 * chunk, chunk), pitch_of(length_b, max(chunk, 2), 0)
    else:
        pitch_a, pitch_b = length_a | 1, length_b | 1
    entries_a, entries_b = (
        pitch_of(group * rows * pitch + chunk, chunk, 0) for rows, pitch in ((rows_a, pitch_a), (rows_b, pitch_b))
    )
    entries_b = 0 if same else entries_b
    more_rows = more_columns = 0
    if method != BY_ROWS:
        unit = TENSOR_TILE if tensor else STRIP
        tall, wide = (unit * grid[0], STRIP * grid[1]) if grid else (unit, STRIP)
        rows, columns = fringe_of(band, n) if fringe else (0, 0)
        more_rows = max(0, pitch_of(band - rows, tall, 0) - band)
        more_columns = max(0, pitch_of(n - columns, wide, 0) - n)
    beyond_a = more_rows * (1 if tensor and transa else pitch_a) - entries_b
    beyond_b = more_columns * (pitch_b if tensor and transb else 1)
    return size * (entries_a + entries_b + pitch_of(max(beyond_a, beyond_b, 0), chunk, 0))


def is_run(method, lead_a, lead_b):
    """Whether whole matrices are copied as one run, by pieces of 16 bytes whatever their rows (FixedLayout::RUN)."""
    return method == BY_TENSOR and lead_a % 2 == lead_b % 2 == 1


def run_bytes(dtype, method, n, warps, columns):
    """Shared memory of a warp, of so many along rows, whose sums leave in runs: of a stage (TensorProduct::SCRATCH).

    columns   of the n that are parts of tiles
    """
    size, strips = np.dtype(dtype).itemsize, -(-columns // (STRIP * warps))
    if method != BY_TENSOR or n * size % SECTOR == 0:
        return 0
    runs = -(-strips * size // SECTOR)
    return size * STRIP * pitch_of(-(-strips // runs) * STRIP, 2 * STRIP, STRIP)


def pitch_of(length, unit, rest):
    """The least number of at least `length` that leaves `rest` when divided by `unit`."""
    return -(-(length - rest) // unit) * unit + rest
