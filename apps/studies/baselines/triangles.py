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

import numpy as np

from h2gpu import batched
from h2gpu.apps.benchmarks.routines import nominal, spot_checks
from h2gpu.apps.command.command import run
from h2gpu.apps.studies.baselines import study, timed
from h2gpu.apps.studies.baselines.lu import described, gains, problems
from h2gpu.arrays import array_module, to_host

BATCH = {"cpu": 10, "cuda": 200}
SIZES = {"cpu": (32, 64, 100), "cuda": (32, 64, 100, 128, 256, 500, 512)}
BLOCK, SIDES = 32, 64


def main(argv=None):
    """The command; returns the exit status."""
    return run("studies.baselines.triangles", _work, argv)


def _work(argv):
    found = study.measured(
        "triangles",
        __doc__.splitlines()[0],
        argv,
        SIZES,
        lambda dtype, n, where, xp: rows(*systems(BATCH[where], n, dtype, xp)),
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
