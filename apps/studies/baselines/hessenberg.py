"""What does a product with a vector that reads whole segments of memory do for the Hessenberg reduction?

    A = Q H Qᵀ,   H upper Hessenberg, of one large matrix

Figure 11 of Nath, Tomov & Dongarra (2010), the application of their GEMV. LAPACK's GEHD2, two products with vectors and
two rank-one updates a column, a launch each (kernels/studies/gebrd_stages.cuh):

    a block     one thread block for each product
    tiles       many thread blocks
    padded      the same, reads from where a segment of 128 bytes begins

Beside it LAPACK's GEHRD on the CPU, by SciPy, in seconds of all its threads. Launches are CUDA graphs.

    python -m h2gpu.apps.studies.baselines.hessenberg [--device cpu|cuda] [--output FOLDER]
"""

import statistics
import sys

import numpy as np
import scipy.linalg

from h2gpu.apps.command.command import run
from h2gpu.apps.studies.baselines import gebrd_stages, study, timed
from h2gpu.apps.studies.baselines.gebrd_stages import Block, Variant, Vector
from h2gpu.apps.studies.baselines.lu import described, gains, problems
from h2gpu.arrays import array_module, to_host

SIZES = {"cpu": (64, 100, 200), "cuda": (256, 512, 1000, 1001, 2000, 2001)}
LARGEST_OF_A_BLOCK, OFTEN = 1024, 500  # sizes up to which one thread block is asked, and LAPACK several times
VARIANTS = {"a block": Variant(0), "tiles": Variant(0, True), "padded": Variant(0, True, True)}
TOLERANCE = 30  # of ‖A‖, and of traces of A², in units in the last place times n
LAPACK = "LAPACK gehrd, CPU"


def main(argv=None):
    """The command; returns the exit status."""
    return run("studies.baselines.hessenberg", _work, argv)


def _work(argv):
    found = study.measured(
        "hessenberg",
        __doc__.splitlines()[0],
        argv,
        SIZES,
        lambda dtype, n, where, xp: rows(problems((1, n, n), dtype, xp)),
    )
    print("\n".join(gains(found, (("a block", "tiles"), ("tiles", "padded"), (LAPACK, "padded")))))


def reduce(s):
    """H on and above the diagonal of W, s.e below it; the vectors of Q stay under them."""
    n = s.n
    for k in range(n - 2):
        r = n - k - 1
        v, w, z = Vector(k + 1, k, r, True), Vector(n, 0, n), Vector(n + 1, 0, r)
        s.reflect(v, s.e, k)
        right, below = Block(0, k + 1, n, r), Block(k + 1, k + 1, r, r)
        s.rows(right, v, w)
        s.scale(w, k)
        s.rank_one(right, w, v)
        s.columns(below, v, z)
        s.scale(z, k)
        s.rank_one(below, v, z)


def hessenberg(s):
    """H of the matrices, on the host."""
    H, e, k = np.triu(to_host(s.W)[:, : s.n, : s.n]), to_host(s.e), np.arange(s.n - 1)
    H[:, k + 1, k] = e[:, : s.n - 1]
    if s.n > 1:
        H[:, -1, -2] = to_host(s.W)[:, s.n - 1, s.n - 2]  # met no reflection
    return H


def rows(A):
    """A line a variant, all with the norm and traces of A. Raises ArithmeticError where one has others."""
    xp, (_, n, _) = array_module(A), A.shape
    names = ["a block"] if xp is np else [name for name in VARIANTS if n <= LARGEST_OF_A_BLOCK or name != "a block"]
    for name in names:
        s = gebrd_stages.stages(A, VARIANTS[name])
        work = timed.on_copy(s.W[:, :n, :n], lambda s=s: reduce(s))
        work(A)
        error = departure(to_host(A)[0], hessenberg(s)[0])
        if not error < 1:
            raise ArithmeticError(f"{name}, n = {n}: {error:.3g} of the allowed error")
        ms = timed.milliseconds(work, [A], xp)
        yield described(A, "11", name) | {"ms": ms, "GFLOP/s": rate(n, ms), "of allowed error": error}
    ms = lapack_ms(to_host(A)[0])
    yield described(A, "11", LAPACK) | {"ms": ms, "GFLOP/s": rate(n, ms)}


def rate(n, ms):
    """Nominal GFLOP/s, 10/3 n³ flops."""
    return 10 / 3 * n**3 / ms * 1e-6


def departure(A, H):
    """How far ‖H‖_F, tr H and tr H² are from A's, as a fraction of what rounding may make of it."""
    A, H, allowed = A.astype(float), H.astype(float), TOLERANCE * len(A) * np.finfo(A.dtype).eps
    size = np.linalg.norm(A)
    of_size = abs(np.linalg.norm(H) - size) / size
    of_traces = abs(np.trace(H) - np.trace(A)) / size, abs(np.vdot(H.T, H) - np.vdot(A.T, A)) / size**2
    return max(of_size, *of_traces) / allowed


def lapack_ms(A):
    """Median CPU milliseconds of scipy.linalg.hessenberg."""
    repeats = timed.CPU_REPEATS if len(A) <= OFTEN else 1
    return statistics.median(timed.cpu_ms(scipy.linalg.hessenberg, A) for _ in range(repeats))


if __name__ == "__main__":
    sys.exit(main())
