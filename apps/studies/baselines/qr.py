"""What do products that lose nothing at odd sizes do for the QR factorization of one large matrix?

    A = Q R,   A n × n,   Hᵀ A₂ = A₂ − Y (M (Yᵀ A₂)) behind each panel

Table 1 of Nath, Tomov & Dongarra (2010): QR by their products and by cuBLAS. Panels of 64 or 128 columns are our
batched QR of one tall matrix, P = Q₁ R₁. H, orthogonal with first columns Q₁, is I − Y Mᵀ Yᵀ, Y = Q₁ − [I; 0],
M = (I − Q₁₁)⁻¹; columns of Q₁ have signs with which the diagonal of I − Q₁₁ is at least 1. Products:

    tiles     our kernel of sizes known at run time
    vendor    cuBLAS

The last four panels are one call of our QR. Beside the whole the products alone, cuSOLVER's GEQRF, and LAPACK's on the
CPU, by SciPy, with one thread or all, whichever is sooner done. Ours wait for Python between launches.

    python -m h2gpu.apps.studies.baselines.qr [--device cpu|cuda] [--output FOLDER]
"""

import sys
from contextlib import suppress
from functools import partial

import numpy as np
import scipy.linalg

from h2gpu import batched
from h2gpu.apps.benchmarks.peers.linear import LETTERS
from h2gpu.apps.command.command import run
from h2gpu.apps.studies.baselines import study, timed
from h2gpu.apps.studies.baselines.lu import described, gains, problems
from h2gpu.arrays import array_module, to_host

SIZES = {"cpu": (300, 500, 501), "cuda": (1000, 1001, 2001, 3001, 4001)}
PANELS, METHODS = {"cpu": (64,), "cuda": (64, 128)}, {"cpu": ("tiles",), "cuda": ("tiles", "vendor")}
LAST = 4  # panels that are factored at once
OFTEN = 1000  # sizes up to which LAPACK is asked several times
TOLERANCE = 10  # of AᵀA x, in units in the last place times n
LAPACK, CUSOLVER = "LAPACK geqrf, CPU", "cuSOLVER geqrf"


def main(argv=None):
    """The command; returns the exit status."""
    return run("studies.baselines.qr", _work, argv)


def _work(argv):
    found = study.measured(
        "qr",
        __doc__.splitlines()[0],
        argv,
        SIZES,
        lambda dtype, n, where, xp: rows(problems((1, n, n), dtype, xp), where),
        compiled,
    )
    steps = [(f"{kind}vendor, {width}", f"{kind}tiles, {width}") for kind in ("", "products, ") for width in (64, 128)]
    print("\n".join(gains(found, [*steps, ("tiles, 128", CUSOLVER), (LAPACK, "tiles, 128")])))


def compiled(case):
    """A panel of each width, what follows it and a last block: their kernels are on disk then."""
    import cupy

    dtype, n = case
    A = problems((1, n, n), dtype, cupy)
    for width in PANELS["cuda"]:
        Y, _, M = panel(cupy.ascontiguousarray(A[:, :, :width]))
        for method in METHODS["cuda"]:
            update(A[:, :, width:], Y, M, method)
        batched.qr(cupy.ascontiguousarray(A[:, : LAST * width, : LAST * width]), "r")


def triangle(A, width, method):
    """R of one matrix (1, n, n)."""
    xp, W, n, first = array_module(A), A.copy(), A.shape[-1], 0
    while n - first > LAST * width:
        here = slice(first, first + width)
        Y, R, M = panel(xp.ascontiguousarray(W[:, first:, here]))
        W[:, first:, here] = 0
        W[:, here, here] = R
        update(W[:, first:, first + width :], Y, M, method)
        first += width
    W[:, first:, first:] = batched.qr(xp.ascontiguousarray(W[:, first:, first:]), "r")
    return W


def panel(P):
    """Y, R and M of a panel (1, m, width): Hᵀ P = [R; 0]."""
    xp, width = array_module(P), P.shape[2]
    Q, R = batched.qr(P)
    signs = -xp.copysign(1, xp.diagonal(Q, axis1=1, axis2=2)).astype(P.dtype)
    Y, one = Q * signs[:, None], xp.asarray(np.eye(width), P.dtype)
    M = batched.inv(one - Y[:, :width])
    Y[:, :width] -= one
    return Y, R * signs[..., None], M


def update(A, Y, M, method):
    """A ← Hᵀ A of what is right of a panel."""
    whole = array_module(A).ascontiguousarray
    inner = batched.gemm(whole(Y.swapaxes(1, 2)), whole(A), method=method)
    A -= batched.gemm(Y, batched.gemm(M, inner, method=method), method=method)


def products(A, width, method):
    """A function that makes the products of all panels, of the right sizes, and writes into a copy of A."""
    xp, n, W = array_module(A), A.shape[-1], A.copy()
    M = xp.ascontiguousarray(A[:, :width, :width]) / n
    steps = [
        (W[:, first:, first + width :], xp.ascontiguousarray(A[:, first:, :width]) / n)
        for first in range(0, n - LAST * width, width)
    ]

    def work(_):
        for part, Y in steps:
            update(part, Y, M, method)

    return work


def rows(A, where):
    """A line a way, all with the AᵀA of A, and one for its products. Raises ArithmeticError where one has another."""
    xp, n = array_module(A), A.shape[-1]
    for method, width in [(method, width) for method in METHODS[where] for width in PANELS[where]]:
        name = f"{method}, {width}"
        error = departure(A[0], triangle(A, width, method)[0])
        if not error < 1:
            raise ArithmeticError(f"{name}, n = {n}: {error:.3g} of the allowed error")
        for word, work in (
            ("", partial(triangle, width=width, method=method)),
            ("products, ", products(A, width, method)),
        ):
            ms = timed.milliseconds(work, [A], xp)
            line = described(A, "table 1", word + name) | {"ms": ms}
            yield line if word else line | {"GFLOP/s": rate(n, ms), "of allowed error": error}
    for name, ms in others(A):
        yield described(A, "table 1", name) | {"ms": ms, "GFLOP/s": rate(n, ms)}


def rate(n, ms):
    """Nominal GFLOP/s, 4/3 n³ flops: R and reflectors."""
    return 4 / 3 * n**3 / ms * 1e-6


def departure(A, R):
    """‖AᵀA x − RᵀR x‖ of a vector of ones, as a fraction of what rounding may make of it."""
    xp, allowed = array_module(A), TOLERANCE * len(A) * np.finfo(A.dtype).eps
    A, R = A.astype(float), xp.triu(R).astype(float)
    exact, found = (M.T @ M.sum(axis=1) for M in (A, R))
    return float(xp.linalg.norm(found - exact) / (xp.linalg.norm(A) ** 2 * allowed))


def others(A):
    """(name, milliseconds) of cuSOLVER's, where it is there, and LAPACK's."""
    xp = array_module(A)
    if xp is not np:
        with suppress(ImportError):
            yield CUSOLVER, timed.milliseconds(cusolver(A), [A], xp)
    host = np.asfortranarray(to_host(A)[0])
    geqrf = scipy.linalg.get_lapack_funcs("geqrf", [host])
    length = int(geqrf(host, lwork=-1)[2][0].real)
    yield LAPACK, timed.lapack_ms(lambda A: geqrf(A, lwork=length), host, OFTEN)


def cusolver(A):
    """A function of (1, n, n) to nothing: GEQRF of a copy of the transpose."""
    import cupy
    from cupy_backends.cuda.libs import cusolver as library

    n, letter, handle = A.shape[-1], LETTERS[A.dtype.name], cupy.cuda.device.get_cusolver_handle()
    geqrf, size = (getattr(library, f"{letter}geqrf{end}") for end in ("", "_bufferSize"))
    room, tau, info = A.copy(), cupy.empty(n, A.dtype), cupy.empty(1, np.int32)
    length = size(handle, n, n, room.data.ptr, n)
    workspace = cupy.empty(length, A.dtype)

    def work(A):
        room[...] = A
        geqrf(handle, n, n, room.data.ptr, n, tau.data.ptr, workspace.data.ptr, length, info.data.ptr)

    return work


if __name__ == "__main__":
    sys.exit(main())
