"""Is it worth inverting the diagonal blocks of a triangle, and where?

    L X = B,   L lower triangular n × n, B n × 64, by blocks of 32

The kernels of TRSM of Nath, Tomov & Dongarra (2010), section 4, from our products:

    trsm              what we do today: one launch
    recursive         halves down to 32: solve, B₂ − L₂₁ X₁, solve
    inverted, GPU     inverses of the diagonal blocks by trsm, then products alone
    inverted, CPU     the same, inverses by LAPACK: blocks go to the host and come back

    python -m h2gpu.apps.studies.baselines.triangles [--device cpu|cuda] [--output FOLDER]
"""

import sys
from itertools import product
from pathlib import Path

import numpy as np

from h2gpu import batched
from h2gpu.apps.benchmarks import timing
from h2gpu.apps.benchmarks.report import tables
from h2gpu.apps.benchmarks.routines import nominal, spot_checks
from h2gpu.apps.command.command import Parser, run
from h2gpu.apps.command.devices import device
from h2gpu.apps.command.options import counts
from h2gpu.apps.studies.baselines import timed
from h2gpu.apps.studies.baselines.lu import described, gains, problems
from h2gpu.arrays import array_module, to_host

BATCH = {"cpu": 10, "cuda": 200}
SIZES = {"cpu": (32, 64, 100), "cuda": (32, 64, 100, 128, 256, 500, 512)}
DTYPES = "float64", "float32"
BLOCK, SIDES = 32, 64


def main(argv=None):
    """The command; returns the exit status."""
    return run("studies.baselines.triangles", _work, argv)


def _work(argv):
    parser = Parser(prog="studies.baselines.triangles", description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--sizes", type=counts, help="orders of the triangles")
    parser.add_argument("--dtypes", default=",".join(DTYPES), metavar="NAME[,NAME]")
    parser.add_argument(
        "-o", "--output", type=Path, default="benchmarks/batched", help="folder for study_triangles-*.csv"
    )
    options = parser.parse_args(argv)
    where = options.device
    name = timing.gpu_name() if where == "cuda" else tables.device_name(where)
    xp = device(where).arrays
    path = options.output / f"study_triangles-{where}.csv"
    found = timed.kept(
        product(options.dtypes.split(","), options.sizes or SIZES[where]),
        lambda dtype, n: rows(*systems(BATCH[where], n, dtype, xp)),
        path,
        name,
    )
    print("\n".join(conclusion(found)))


def systems(batch, n, dtype, xp):
    """Lower triangles, well conditioned, and right-hand sides."""
    L = xp.tril(problems((batch, n, n), dtype, xp) / n) + xp.asarray(2 * np.eye(n), dtype=dtype)
    return L, problems((batch, n, SIDES), dtype, xp)


def rows(L, B):
    """A line a way, all of whose results are right. Raises ArithmeticError where one is not."""
    xp, (batch, n, sides) = array_module(L), B.shape
    work = nominal.trsm(batch, n, sides, L.dtype.name)
    for name, solve in WAYS.items():
        error = spot_checks.gemm(L, solve((L, B)), B)
        if not error < 1:
            raise ArithmeticError(f"{name}, n = {n}: {error:.3g} of the allowed error")
        ms = timed.milliseconds(solve, list(zip(timed.in_turn(L), timed.in_turn(B))), xp)
        line = described(L, "section 4", name) | {"sides": sides, "ms": ms}
        yield line | timed.rates(work, ms, xp) | {"of allowed error": error}


def recursive(pair):
    """X by halves."""
    L, B = pair
    n, xp = B.shape[1], array_module(B)
    if n <= BLOCK:
        return batched.trsm(L, B)
    half = BLOCK
    while 2 * half < n:
        half *= 2
    whole = xp.ascontiguousarray
    first = recursive((whole(L[:, :half, :half]), whole(B[:, :half])))
    rest = batched.gemm(whole(L[:, half:, :half]), first, whole(B[:, half:]), alpha=-1, beta=1)
    return xp.concatenate((first, recursive((whole(L[:, half:, half:]), rest))), axis=1)


def by_inverses(inverse):
    """A function of (L, B) to X, by products with `inverse` of the diagonal blocks."""

    def solve(pair):
        L, B = pair
        xp, n = array_module(B), B.shape[1]
        whole, X = xp.ascontiguousarray, xp.empty_like(B)
        places = [slice(first, min(first + BLOCK, n)) for first in range(0, n, BLOCK)]
        inverses = [inverse(whole(L[:, here, here])) for here in places]
        for here, inverted in zip(places, inverses):
            known, rest = slice(0, here.start), whole(B[:, here])
            if here.start:
                rest = batched.gemm(whole(L[:, here, known]), whole(X[:, known]), rest, alpha=-1, beta=1)
            X[:, here] = batched.gemm(inverted, rest)
        return X

    return solve


def on_device(D):
    """The inverses of lower triangles by trsm."""
    xp, (batch, n, _) = array_module(D), D.shape
    return batched.trsm(D, xp.ascontiguousarray(xp.broadcast_to(xp.asarray(np.eye(n), dtype=D.dtype), (batch, n, n))))


def on_host(D):
    """The same by LAPACK on the host."""
    return array_module(D).asarray(np.linalg.inv(to_host(D)))


def conclusion(rows):
    """A sentence a precision and way: the least and the largest ratio to trsm over the sizes."""
    return gains(rows, [(name, "trsm") for name in WAYS if name != "trsm"])


WAYS = {
    "trsm": lambda pair: batched.trsm(*pair),
    "recursive": recursive,
    "inverted, GPU": by_inverses(on_device),
    "inverted, CPU": by_inverses(on_host),
}


if __name__ == "__main__":
    sys.exit(main())
