"""Counts of the kernels of h2gpu.batched.small: one problem a thread, one problem a block.

Of a block, every step of a factorization has one barrier, as in kernels/block/cyclic_factor.cuh; the tile of a thread
shrinks panel by panel. Anderson, Sheffield & Keutzer (2012), sections IV and V.D.
"""

from math import ceil, log2

import numpy as np

from h2gpu.batched.counts import SCALARS, WARP, WORKING_WORDS, Counts, Field, added
from h2gpu.batched.layouts import THREAD

PIECE = 32  # entries of a matrix that kernels/warp/small_exchange.cuh takes at a time
INT = 4  # bytes of info


def small(routine, dtype, m, n, k, grid):
    """lu, cholesky, solve, gauss-jordan, qr (LAPACK's form) or lstsq of m × n with k right-hand sides, in a layout."""
    field = Field.of(dtype)
    out = {"lu": n * n, "cholesky": n * n, "qr": m * n + min(m, n)}.get(routine, n * k)
    entries = m * n + (m * k if routine in ("solve", "gauss-jordan", "lstsq") else 0) + out
    width = n + k
    if grid == THREAD:
        return _in_thread(routine, field, m, n, k, entries)
    height, across = grid.tile(m, width)
    moved = Counts(
        nbytes=entries * field.size + INT,
        global_trips=1,
        threads=grid.threads,
        words=height * across * field.words + (height + across) * field.words + WORKING_WORDS,
    )
    steps = [_block_step(routine, field, grid, s, m, width) for s in range(min(m, n))]
    if routine in ("solve", "lstsq"):
        steps += [_substitution_step(field, grid, s, m, n, k) for s in range(n)]
    return added(moved, *steps)


def thread_products(routine, m, n, k):
    """Multiply-adds and quotients of a whole problem: of the elimination, and of the substitution if there is one."""
    s = np.arange(min(m, n))
    below, right = m - 1 - s, n + k - 1 - s
    if routine == "cholesky":
        products = below + below * (below + 1) / 2
    elif routine == "gauss-jordan":
        products = right + (n - 1) * right + below
    elif routine in ("qr", "lstsq"):
        products = 2 * below + right * (2 * below + 1)
    else:
        products = below + below * right
    extra = k * n * (n + 1) / 2 if routine in ("solve", "lstsq") else 0
    if routine == "lstsq":
        extra += 2 * n * (n + 1) / 2  # the bound on the condition
    return float(np.sum(products)) + extra


def _in_thread(routine, field, m, n, k, entries):
    steps, products = min(m, n), field.products * thread_products(routine, m, n, k)
    solved = n if routine in ("solve", "lstsq") else 0
    below = sum(m - 1 - s for s in range(steps))
    dependent = 2 * below + SCALARS * steps if routine in ("qr", "lstsq") else 2 * steps
    return Counts(
        flops=2 * products,
        nbytes=entries * field.size + INT,
        shared_bytes=2 * entries * field.size,
        fmas=products,
        dependent=dependent + 2 * solved,
        roots=steps if routine in ("cholesky", "qr", "lstsq") else 0,
        divisions=steps + solved,
        shared_trips=ceil(entries / PIECE),
        global_trips=ceil(m * (n + k) / PIECE),
        threads=1,
        words=m * (n + k) * field.words + WORKING_WORDS,
    )


def _block_step(routine, field, grid, s, m, width):
    """One step of LU, Gauss-Jordan or QR: publish a column and a row, then update."""
    panel = s // grid.columns
    height, across = grid.tile(m, width)
    height -= 0 if routine == "gauss-jordan" else panel * grid.columns // grid.rows
    across -= panel
    reads = (height + across + 1) * field.size
    mirrored = routine in ("qr", "lstsq")
    products = field.products * (height * across * (2 if mirrored else 1) + 2 * height)
    trips = log2(min(grid.rows, WARP)) if mirrored else 0
    wide = mirrored and grid.rows > WARP
    return Counts(
        flops=2 * products * grid.threads,
        shared_bytes=grid.threads * reads,
        shuffles=trips * (across + 1) * field.words * grid.threads / WARP,
        fmas=products,
        dependent=height + SCALARS if mirrored else 2,
        barriers=2 if wide else 1,
        roots=1 if mirrored else 0,
        divisions=1,
        shared_trips=2 if wide else 1,
        shuffle_trips=trips,
    )


def _substitution_step(field, grid, s, m, n, k):
    height, across = -(-m // grid.rows), -(-(n + k) // grid.columns) - n // grid.columns
    products = field.products * height * (across + 2)
    return Counts(
        flops=2 * products * grid.threads,
        shared_bytes=grid.threads * (height + across + 2) * field.size,
        fmas=products,
        dependent=2,
        barriers=1,
        divisions=2,
        shared_trips=1,
    )
