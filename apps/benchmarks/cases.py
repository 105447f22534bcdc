"""What the benchmark of the batched routines measures: the figures of Boukaram et al., and the targets.

| figure | of the paper | here |
|---|---|---|
| 4 | QR of 1000 matrices, square and m × 32 | also 200, and R alone |
| 5, 8 | SVD of 1000 small matrices, register and shared kernel | every method that a size admits |
| 10 | SVD of 200 matrices by block Jacobi, by Gram matrices and directly | and in shared memory where it fits |
| 5 of Dong et al. | GEBRD | against the bound from GEMV and GEMM |
| 12 | 64 leading triplets of 200 matrices, randomized | against the methods of figure 10 |
| 8, 9 of Abdelfattah et al. | LU of 500 matrices: no, column, panel, matrix blocking | and in shared memory |
"""

from dataclasses import replace

from h2gpu.apps.benchmarks.routines.batched import OVERSAMPLE, Case
from h2gpu.apps.benchmarks.routines.spectra import RANK

DTYPES = ("float64", "float32")
SQUARES = (8, 16, 32, 48, 64, 96, 128, 192, 256, 384, 512)
HEIGHTS, WIDTHS = (64, 128, 256, 512, 1024), (32, 64)
BATCHES = (1000, 200)
SMALL = (4, 8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128)
PEERS = (32, 64, 128, 256, 512)  # orders at which the vendor is asked matrix by matrix
LARGE = (64, 128, 192, 256, 384, 512)
METHODS = ("register", "shared", "block-gram", "block-direct")
LARGEST_OF_REGISTERS = 32
SMALL_BLOCKED = (64, 128)  # where the small table shows block Jacobi too: it has a figure of its own

# milliseconds, float64; float32: half
QR_TARGETS = {
    (1000, 32, 32): 0.06,
    (1000, 64, 64): 0.25,
    (1000, 128, 128): 1.2,
    (1000, 512, 512): 40,
    (1000, 256, 32): 0.25,
    (1000, 1024, 32): 1.0,
}
SVD_TARGETS = {
    (1000, 16, 16): 0.08,
    (1000, 32, 32): 0.3,
    (1000, 64, 64): 2.0,
    (200, 128, 128): 3,
    (200, 256, 256): 20,
    (200, 512, 512): 150,
}
RSVD_TARGETS = {(200, 512, 512): 1.2}
LU_TARGETS = {32: 0.015, 64: 0.04, 128: 0.15, 256: 1.2, 512: 8}  # of LU_MATRICES
GEMM_TARGETS = ((20000, 32), (20000, 33), (20000, 64), (20000, 65), (3000, 127), (3000, 128))
GEMM_TARGET = "odd sizes"  # in place of a figure: OF_EVEN_SIZE is asked for
OF_EVEN_SIZE = 0.85  # least rate of products relative to those of even sizes and to their neighbours
LU_MATRICES, LU_SIZES = 500, (8, 16, 24, 32, 48, 64, 96, 128, 160, 192, 224, 256, 384, 512, 768, 1024)
LU_METHODS = ("unblocked", "column", "panel", "matrix", "shared", "auto")
LU_LARGEST = {"matrix": {"float64": 32, "float32": 32}, "shared": {"float64": 160, "float32": 224}}  # of LU_SIZES
CHOLESKY_MANY, CHOLESKY_ORDERS = (10**6, 30), (32, 64, 128, 256, 512)  # matrices and their order; orders of 500
GEBRD_ORDERS = tuple((1000, n) for n in (16, 32, 48, 64, 96)) + tuple((200, n) for n in (128, 160, 192, 256, 384, 512))
GEMM_ORDERS = ((80000, 16), (80000, 32), (80000, 33), (20000, 63), (20000, 64), (20000, 65), (3000, 127), (3000, 128))
RAGGED = ((20000, 200, 1800, 64), (30000, 200, 1000, 20), (5000, 256, 3000, 121), (20000, 200, 1000, 16))
RAGGED += ((100, 200, 1800, 64), (500, 400, 3000, 343), (60, 2000, 14000, 216))
GEMM_ENTRIES, LARGEST_FIXED = 1 << 24, 160  # of each factor of a batch; every size up to there
BLAS_ENTRIES = 1 << 26  # of the matrices of a batch
VECTORS = (
    (8, 8),
    (16, 16),
    (32, 32),
    (33, 33),
    (64, 64),
    (65, 65),
    (100, 30),
    (30, 100),
    (128, 128),
    (256, 256),
    (512, 512),
)
RANKS = ((32, 1), (64, 1), (65, 1), (256, 1), (32, 16), (33, 33), (64, 64), (65, 65), (128, 64), (256, 64))
SUMS = ((16, 16), (33, 33), (64, 64), (65, 65), (256, 256))
TRIANGLES = ((16, 16), (32, 32), (33, 33), (64, 64), (65, 65), (128, 128), (256, 64), (64, 1), (512, 16))
BANDS = ((16384, 40, 65, 8), (65536, 12, 30, 12), (2000, 100, 140, 10))
FIGURE_OF_LU = {"float32": "8 of Abdelfattah et al.", "float64": "9 of Abdelfattah et al."}
QUICK = 3  # every so many cases


def qr(dtype):
    """Figure 4."""
    for routine in ("qr", "qr_r"):
        for batch in BATCHES:
            for n in SQUARES:
                yield Case(routine, dtype, batch, (n, n), "qr", "4a")
            for n in WIDTHS if batch == BATCHES[0] else WIDTHS[:1]:
                for m in HEIGHTS:
                    if m > n:
                        yield Case(routine, dtype, batch, (m, n), "qr", "4b")
    for batch, n in ((20000, 16), (100000, 8)):
        yield Case("qr", dtype, batch, (n, n), "qr", "many")


def qr_ragged(dtype):
    """What the compressor's weights need."""
    for batch, *shape in RAGGED:
        yield Case("qr_ragged", dtype, batch, tuple(shape), "qr_ragged")


def svd(dtype):
    """Figures 5, 8 and 10."""
    for n in SMALL:
        for method in METHODS:
            if n <= LARGEST_OF_REGISTERS or method != "register":
                if method.startswith("block") and n not in SMALL_BLOCKED:
                    continue
                yield Case("svd", dtype, 1000, (n, n), "svd", "5, 8", method, "decaying")
    for n in LARGE:
        for method in METHODS[1:]:
            yield Case("svd", dtype, 200, (n, n), "svd", "10", method, "decaying")


def others(dtype):
    """Figures 4 and 10 at some sizes: what the vendor's routines are compared at, matrix by matrix.

    Ours by one way each, which keeps what is to be compiled few: `qr` and `svd` have all ways.
    """
    kept = {(n, n) for n in PEERS} | {(m, WIDTHS[0]) for m in PEERS}
    for case in qr(dtype):
        if case.figure in ("4a", "4b") and case.shape in kept and case.batch == BATCHES[0]:
            yield replace(case, table="peers")
    for n in PEERS[1:]:
        yield Case("svd", dtype, BATCHES[1], (n, n), "peers", "10", "auto", "decaying")


def gebrd(dtype):
    """Figure 5 of Dong et al. (2018)."""
    for batch, n in GEBRD_ORDERS:
        yield Case("gebrd", dtype, batch, (n, n), "gebrd", "5 of Dong et al.")


def rsvd(dtype):
    """Figure 12."""
    for n in LARGE:
        yield Case("rsvd", dtype, 200, (n, n), "rsvd", "12", "", f"rank {RANK}")


def truncated(dtype):
    """What the compressor asks for, and the whole SVD of the same matrices."""
    for batch, sizes in ((1000, (16, 32, 64, 121)), (200, (128, 256, 512))):
        for n in sizes:
            for routine, method in (("truncated_svd", ""), ("svd", "auto")):
                yield Case(routine, dtype, batch, (n, n), "truncated", "", method, "steep")


def lu(dtype):
    """Figures 8 (float32) and 9 of Abdelfattah, Tomov & Dongarra (2019): every method that a size admits."""
    for n in LU_SIZES:
        for method in LU_METHODS:
            if n <= LU_LARGEST.get(method, {}).get(dtype, n):
                target = _target(dtype, LU_TARGETS.get(n)) if method == "auto" else None
                yield Case("lu", dtype, LU_MATRICES, (n, n), "lu", FIGURE_OF_LU[dtype], method, "", target)


def cholesky(dtype):
    """What Vecchia's preconditioner needs, and some larger ones."""
    batch, n = CHOLESKY_MANY
    for routine in ("cholesky", "cholesky_solve"):
        yield Case(routine, dtype, batch, (n, n), "cholesky")
        for n_of_few in CHOLESKY_ORDERS:
            yield Case(routine, dtype, LU_MATRICES, (n_of_few, n_of_few), "cholesky")


def gemm(dtype):
    """Sizes at which the vendor's products lose speed, and their neighbours."""
    for batch, n in GEMM_ORDERS:
        for routine in ("gemm", "gemm_ragged"):
            yield Case(routine, dtype, batch, (n, n), "products")


def gemm_sizes(dtype):
    """Figures 7–10 of Nath, Tomov & Dongarra (2010): every size, compiled for it."""
    for n in range(1, LARGEST_FIXED + 1):
        even = max(200, GEMM_ENTRIES // n**2) // 2 * 2  # both factors then begin at a multiple of 16 bytes
        yield Case("gemm", dtype, even, (n, n), "sizes", "", "fixed")


def blas(dtype):
    """Beside the vendor's."""
    for m, n in VECTORS:
        for routine in ("gemv", "gemv_t", *(["symv"] if m == n else [])):
            yield Case(routine, dtype, BLAS_ENTRIES // (m * n), (m, n), "blas")
    for n, k in RANKS:
        yield Case("syrk", dtype, BLAS_ENTRIES // (n * n), (n, k), "blas")  # k = 1: SYR
    for m, n in SUMS:
        yield Case("axpy", dtype, BLAS_ENTRIES // (m * n), (m, n), "blas")
    for n, k in TRIANGLES:
        yield Case("trsm", dtype, BLAS_ENTRIES // (n * max(n, k)), (n, n, k), "blas")


def block_multiply(dtype):
    """One and sixteen right-hand sides."""
    for batch, *shape in BANDS:
        for sides in (1, 16):
            yield Case("block_multiply", dtype, batch, (*shape, sides), "products")


def targets(dtype):
    """Every target for QR, SVD, randomized SVD, LU and products; the SVD also on flat spectra.

    KBLAS draws as many samples as triplets: its work, and ours with OVERSAMPLE more, have one target.
    """
    for (batch, *shape), ms in QR_TARGETS.items():
        yield Case("qr", dtype, batch, tuple(shape), "targets", "", "", "", _target(dtype, ms))
    for (batch, *shape), ms in SVD_TARGETS.items():
        yield Case("svd", dtype, batch, tuple(shape), "targets", "", "auto", "decaying", _target(dtype, ms))
        yield Case("svd", dtype, batch, tuple(shape), "targets", "", "auto", "flat")
    for (batch, *shape), ms in RSVD_TARGETS.items():
        place = "targets", "", "", f"rank {RANK}", _target(dtype, ms)
        for samples in (RANK, RANK + OVERSAMPLE):
            yield Case("rsvd", dtype, batch, tuple(shape), *place, samples)
    for n, ms in LU_TARGETS.items():
        yield Case("lu", dtype, LU_MATRICES, (n, n), "targets", "", "auto", "", _target(dtype, ms))
    for method in ("auto", "fixed"):
        for batch, n in GEMM_TARGETS:
            yield Case("gemm", dtype, batch, (n, n), "targets", GEMM_TARGET, method)


def _target(dtype, ms):
    """Milliseconds in float64, half in float32."""
    return ms and ms * (1 if dtype == "float64" else 0.5)


GROUPS = {
    "targets": targets,
    "qr": qr,
    "qr_ragged": qr_ragged,
    "svd": svd,
    "rsvd": rsvd,
    "gebrd": gebrd,
    "lu": lu,
    "cholesky": cholesky,
    "gemm": gemm,
    "gemm_sizes": gemm_sizes,
    "blas": blas,
    "block_multiply": block_multiply,
    "truncated": truncated,
    "peers": others,
}


def chosen(groups, dtypes, quick):
    """The cases of some groups, in order; quick: a part of each, the smallest first."""
    for group in groups:
        for dtype in dtypes:
            cases = list(GROUPS[group](dtype))
            yield from cases[::QUICK] if quick else cases
