"""What does each step from a kernel a stage to one launch gain for batched bidiagonal reduction?

Figure 5 of Dong, Haidar, Tomov & Dongarra (2018), and the products that it stands on (figures 2, 3, 4, 7 and 8):

    unblocked     GEBD2: two products and two rank-one updates a column, a launch each
    panels of k   LABRD and GEMM: updates put off by k columns; a thread block a matrix for each product with a vector
    tiles         panels of 16, many thread blocks a matrix for products with what remains of A
    padded        the same, their reads from where a segment of 128 bytes begins, columns before the first for nothing
    auto          `bidiagonalize`, what we do today: one launch

Theirs merged the stages of a panel into one kernel at "version 2"; ours merges all. Products: GEMM with K = 16 and 32
inner indices; GEMV with 16 × n matrices, and with n × n transposed: at aligned places, a row and column off, padded.
Launches are CUDA graphs: times are the device's.

    python -m h2gpu.apps.studies.baselines.gebrd [--device cpu|cuda] [--output FOLDER]
"""

import sys

import numpy as np

from h2gpu import batched
from h2gpu.apps.benchmarks.routines import nominal
from h2gpu.apps.command.command import run
from h2gpu.apps.studies.baselines import gebrd_stages, study, timed
from h2gpu.apps.studies.baselines.gebrd_stages import Block, Variant, Vector
from h2gpu.apps.studies.baselines.lu import PRODUCTS, described, gains, problems
from h2gpu.arrays import array_module, to_host

BATCH = {"cpu": 10, "cuda": 200}
SIZES = {"cpu": (16, 32, 64), "cuda": (32, 64, 96, 128, 160, 192, 256, 384, 512)}
VERSIONS = {
    "unblocked": Variant(0),
    "panels of 8": Variant(8),
    "panels of 16": Variant(16),
    "panels of 32": Variant(32),
    "tiles": Variant(16, True),
    "padded": Variant(16, True, True),
}
ON_CPU = 4  # versions that differ there
OURS = "auto"
INNER, ALIGNED = (16, 32), 32  # columns beside A with which rows of n, a multiple of 32, begin at segments of memory
WIDE, SQUARE = "GEMV, 16 × n", "GEMV, n × n, transposed"
TOLERANCE = 50  # of singular values, in units in the last place of the largest, times n


def main(argv=None):
    """The command; returns the exit status."""
    return run("studies.baselines.gebrd", _work, argv)


def _work(argv):
    found = study.measured(
        "gebrd_versions",
        __doc__.splitlines()[0],
        argv,
        SIZES,
        lambda dtype, n, where, xp: rows(problems((BATCH[where], n, n), dtype, xp)),
        compiled,
    )
    print("\n".join(conclusion(found)))


def compiled(case):
    """Everything once on a few matrices, after which kernels are on disk."""
    import cupy

    dtype, n = case
    A = problems((2, n, n), dtype, cupy)
    for work in ways(A).values():
        work(A)
    for work, inputs in (*gemms(A).values(), *gemvs(A).values()):
        work(inputs[0])


def rows(A):
    """The lines of the table for some matrices: versions, GEMM, GEMV."""
    yield from versions(A)
    yield from products(A)
    yield from vector_products(A)


def ways(A):
    """{version: function of such matrices to (d, e)}."""
    xp = array_module(A)
    some = list(VERSIONS.items())[: ON_CPU if xp is np else None]
    return {name: staged(A, variant) for name, variant in some} | {OURS: lambda A: batched.bidiagonalize(A, "none")}


def staged(A, variant):
    """A function of matrices like A, to d and e."""
    s = gebrd_stages.stages(A, variant)
    work = timed.on_copy(s.W[:, : s.n, : s.n], lambda: gebrd_stages.reduce(s))

    def reduced(A):
        work(A)
        return s.d, s.e[:, : s.n - 1]

    return reduced


def versions(A):
    """A line a version, all with A's singular values. Raises ArithmeticError where one has others."""
    xp, (batch, n, _) = array_module(A), A.shape
    work = nominal.gebrd(batch, n, n, A.dtype.name)
    for name, reduce in ways(A).items():
        error = departure(to_host(A[0]), *(to_host(x[0]) for x in reduce(A)))
        if not error < 1:
            raise ArithmeticError(f"{name}, n = {n}: {error:.3g} of the allowed error")
        ms = timed.milliseconds(reduce, timed.in_turn(A), xp)
        yield described(A, "5", name) | {"ms": ms} | timed.rates(work, ms, xp) | {"of allowed error": error}


def departure(A, d, e):
    """How far the singular values of B are from those of A, as a fraction of what rounding may make of it."""
    ours, theirs = (np.linalg.svd(M.astype(float), compute_uv=False) for M in (np.diag(d) + np.diag(e, 1), A))
    return float(abs(ours - theirs).max() / (TOLERANCE * len(A) * np.finfo(A.dtype).eps * theirs[0]))


def gemms(A):
    """{(K, way): (work, inputs in turn)} of n × K × n products."""
    xp, (batch, n, _), found = array_module(A), A.shape, {}
    for inner in INNER:
        factors = (problems((batch, *size), A.dtype, xp) for size in ((n, inner), (inner, n)))
        pairs = list(zip(*map(timed.in_turn, factors)))
        for way in PRODUCTS if xp is not np else ("auto",):
            found[inner, way] = (lambda pair, way=way: batched.gemm(*pair, method=way)), pairs
    return found


def products(A):
    """A line for every GEMM."""
    xp, (batch, n, _) = array_module(A), A.shape
    for (inner, way), (work, inputs) in gemms(A).items():
        ms = timed.milliseconds(work, inputs, xp)
        counted = nominal.gemm(batch, n, n, inner, A.dtype.name)
        yield described(A, "2, 7, 8", way) | {"stage": f"GEMM, K = {inner}", "ms": ms} | timed.rates(counted, ms, xp)


def gemvs(A):
    """{(stage, way): (work, inputs in turn)}: the stages' kernels and our gemv.

    Of 16 × n matrices the stages' kernel reads 16 rows of as many W as `batched.gemv` reads matrices: fewer would stay
    in the cache.
    """
    xp, (batch, n, _), found = array_module(A), A.shape, {}
    wide, x = timed.in_turn(problems((batch, min(16, n), n), A.dtype, xp)), A[:, 0].copy()
    found[WIDE, "gemv"] = (lambda M: batched.gemv(M, x)), wide
    found[SQUARE, "gemv"] = (lambda M: batched.gemv(M, x, trans=True)), timed.in_turn(A)
    if xp is np:
        return found
    wider = [gebrd_stages.stages(A, Variant(ALIGNED, True)) for _ in wide]
    places = {"aligned": (0, False), "misaligned": (1, False), "padded": (1, True)}
    for place, (off, padded) in places.items():
        inputs = [gebrd_stages.stages(A, Variant(ALIGNED, True, True)) for _ in timed.in_turn(A)] if padded else wider
        found[SQUARE, place] = (lambda s, off=off: _columns(s, off)), inputs
        if not padded:
            found[WIDE, place] = (lambda s, off=off: _wide(s, off)), inputs
    return found


def _columns(s, off):
    """Yᵀ's first row ← Aᵀ x, x the first column of X."""
    s.columns(Block(off, off, s.n - off, s.n - off), Vector(0, s.n, s.n - off, True), Vector(s.n, 0, s.n - off))


def _wide(s, off):
    """A column of X ← 16 rows of A times Yᵀ's first row."""
    rows = min(16, s.n - off)
    s.rows(Block(off, off, rows, s.n - off), Vector(s.n, 0, s.n - off), Vector(0, s.n, rows, True))


def vector_products(A):
    """A line for every GEMV."""
    xp, (batch, n, _) = array_module(A), A.shape
    for (stage, way), (work, inputs) in gemvs(A).items():
        ms = timed.milliseconds(work, inputs, xp)
        counted = nominal.gemm(batch, n if stage == SQUARE else min(16, n), 1, n, A.dtype.name)
        yield (
            described(A, "4" if stage == SQUARE else "3", way)
            | {"stage": stage, "ms": ms}
            | timed.rates(counted, ms, xp)
        )


def conclusion(rows):
    """A sentence a precision and step: the least and the largest gain over the sizes."""
    steps = ("unblocked", "panels of 16"), ("panels of 16", "tiles"), ("tiles", "padded"), ("padded", OURS)
    return gains([r for r in rows if r["figure"] == "5"], steps)


if __name__ == "__main__":
    sys.exit(main())
