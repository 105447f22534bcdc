"""What does a product with a vector that reads whole segments of memory do for the Hessenberg reduction?

    A = Q H Qᵀ,   H upper Hessenberg, of one large matrix

Figure 11 of Nath, Tomov & Dongarra (2010), the application of their GEMV. LAPACK's GEHD2, two products with vectors and
two rank-one updates a column, a launch each (kernels/studies/gebrd_stages.cuh):

    a block     one thread block for each product
    tiles       many thread blocks
    padded      the same, reads from where a segment of 128 bytes begins

Of symmetric matrices the same stages give the tridiagonal form, where Dong et al. (2018) look at the end: the columns
and rows that are left alone, 8/3 n³ flops, twice those of SYTRD, whose rank-two update is not among the stages.
Beside them LAPACK's GEHRD and SYTRD on the CPU, by SciPy, with one thread or all, whichever is sooner done. Launches
are CUDA graphs.

    python -m h2gpu.apps.studies.baselines.hessenberg [--device cpu|cuda] [--output FOLDER]
"""

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
LAPACK, SYMMETRIC, OF_SYMMETRIC = "LAPACK gehrd, CPU", "LAPACK sytrd, CPU", "tridiagonal, "


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
    print(
        "\n".join(
            gains(found, ((OF_SYMMETRIC + "a block", OF_SYMMETRIC + "tiles"), (SYMMETRIC, OF_SYMMETRIC + "tiles")))
        )
    )


def reduce(s, symmetric=False):
    """H on and above the diagonal of W, s.e below it; the vectors of Q stay under them. symmetric: no rows above."""
    n = s.n
    for k in range(n - 2):
        r = n - k - 1
        first = k + 1 if symmetric else 0
        v, w, z = Vector(k + 1, k, r, True), Vector(n, 0, n - first), Vector(n + 1, 0, r)
        s.reflect(v, s.e, k)
        right, below = Block(first, k + 1, n - first, r), Block(k + 1, k + 1, r, r)
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


def tridiagonal(s):
    """T of symmetric matrices, on the host: its lower triangle is H's."""
    H, k = hessenberg(s), np.arange(s.n - 1)
    T = np.zeros_like(H)
    T[:, k, k + 1] = T[:, k + 1, k] = H[:, k + 1, k]
    T[:, np.arange(s.n), np.arange(s.n)] = np.diagonal(H, axis1=1, axis2=2)
    return T


def rows(A):
    """A line a variant, all with the norm and traces of A. Raises ArithmeticError where one has others."""
    B = A + A.swapaxes(1, 2)
    yield from _variants(A, hessenberg, 10 / 3, "", LAPACK, scipy.linalg.hessenberg)
    yield from _variants(B, tridiagonal, 4 / 3, OF_SYMMETRIC, SYMMETRIC, lapack_sytrd)


def _variants(A, form, cubes, prefix, peer, theirs):
    """Those of H, or of T of symmetric A, and LAPACK's; nominal work: cubes · n³ flops."""
    xp, (_, n, _), symmetric = array_module(A), A.shape, form is tridiagonal
    names = ["a block"] if xp is np else [name for name in VARIANTS if n <= LARGEST_OF_A_BLOCK or name != "a block"]
    for name in names:
        s = gebrd_stages.stages(A, VARIANTS[name])
        work = timed.on_copy(s.W[:, :n, :n], lambda s=s: reduce(s, symmetric))
        work(A)
        error = departure(to_host(A)[0], form(s)[0])
        if not error < 1:
            raise ArithmeticError(f"{prefix}{name}, n = {n}: {error:.3g} of the allowed error")
        ms = timed.milliseconds(work, [A], xp)
        yield described(A, "11", prefix + name) | {"ms": ms, "GFLOP/s": rate(cubes, n, ms), "of allowed error": error}
    ms = timed.lapack_ms(theirs, to_host(A)[0], OFTEN)
    yield described(A, "11", peer) | {"ms": ms, "GFLOP/s": rate(cubes, n, ms)}


def rate(cubes, n, ms):
    """Nominal GFLOP/s."""
    return cubes * n**3 / ms * 1e-6


def departure(A, H):
    """How far ‖H‖_F, tr H and tr H² are from A's, as a fraction of what rounding may make of it."""
    A, H, allowed = A.astype(float), H.astype(float), TOLERANCE * len(A) * np.finfo(A.dtype).eps
    size = np.linalg.norm(A)
    of_size = abs(np.linalg.norm(H) - size) / size
    of_traces = abs(np.trace(H) - np.trace(A)) / size, abs(np.vdot(H.T, H) - np.vdot(A.T, A)) / size**2
    return max(of_size, *of_traces) / allowed


def lapack_sytrd(A):
    """d, e of LAPACK's tridiagonal form, by blocks."""
    sytrd, size = scipy.linalg.lapack.get_lapack_funcs(("sytrd", "sytrd_lwork"), (A,))
    return sytrd(A, lwork=int(size(len(A))[0]))[1:3]


if __name__ == "__main__":
    sys.exit(main())
