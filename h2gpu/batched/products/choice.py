"""Which kernel multiplies matrices of one shape: rows of kernels/tuning/…/gemm.csv, so far as a compilation pays.

And when triangular systems are products between triangles on the diagonal.
"""

from math import gcd

from h2gpu.batched.device import tuning

EXCESS = 32  # the vendor's routines lose speed just above multiples of it
PIECE = 4  # entries: rows that divide by it come in whole ones
WORTH = 1 << 29  # batch · m n k from which kernels are compiled for a size, about 0.1 ms
ASKED, TILE = 1 << 25, 48  # batch · m n k and sizes up to which asking cuBLAS, 5 µs of host, is longer than the product
STORED = 8  # inner indices of a symmetric product that take as long as its results take to be stored
CUBIC = 2  # how many times the least of m, n and k may be in the largest: rates were measured for cubes

MUCH = 1 << 29  # batch · n² · sides of triangular systems from which the launches of triangles on the diagonal pay
BLOCKED, SIDES = 128, 16  # order and right-hand sides from which they do whatever the row of trsm.csv says
LARGE = 1024  # order from which the vendor's triangle, one matrix after the other, is ahead: ours has a block a matrix


def chosen(dtype, batch, sizes, transposed, row=tuning.row):
    """The method for products of m × k by k × n.

    sizes   (m, n, k)     row   of the current device's tables, or of others'

    Of transposed matrices CuPy makes copies first: not the vendor's, nor products that end while the host asks
    cuBLAS. No size is compiled for them unasked, for small batches or for flat shapes: `cheap` in the table's limits.
    """
    if dtype.kind == "c":
        return "fixed"
    (m, n, k), largest = sizes, max(sizes)
    cheap = transposed or batch * m * n * k < WORTH or CUBIC * min(sizes) < largest
    method = row("gemm", dtype, **limits(largest, gcd(n, k), cheap))["method"]
    small = largest <= TILE and batch * m * n * k < ASKED
    return "tiles" if method == "vendor" and (transposed or small) else method


def symmetric_limits(batch, n, k, alone):
    """What the limits of syrk.csv are held against, for A Aᵀ of n × k.   alone: without C"""
    cheap = not alone or k > CUBIC * n or batch * n * n * max(k, STORED) < WORTH
    return {"rows": n, "inner": k, "cheap": int(cheap)}


def limits(size, row, cheap):
    """What the table's limits are held against.   row: a number that rows' lengths divide by"""
    return {"size": size, "excess": (size - 1) % EXCESS + 1, "pieces": PIECE // gcd(row, PIECE), "cheap": int(cheap)}


def by_blocks(batch, n, sides):
    """Whether systems of order n go by blocks, whatever the row of trsm.csv says."""
    return n >= BLOCKED and sides >= SIDES and is_much(batch, n, sides)


def is_much(batch, n, sides):
    """Whether launches of triangles on the diagonal pay."""
    return n <= LARGE and batch * n * n * sides >= MUCH
