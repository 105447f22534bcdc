"""What the benchmark of the batched routines measures: the figures of Boukaram et al., and the targets.

| figure | of the paper | here |
|---|---|---|
| 4 | QR of 1000 matrices, square and m × 32 | also 200, and R alone |
| 5, 8 | SVD of 1000 small matrices, register and shared kernel | every method that a size admits |
| 10 | SVD of 200 matrices by block Jacobi, by Gram matrices and directly | and in shared memory where it fits |
| 5 of Dong et al. | GEBRD | against the bound from GEMV and GEMM |
| 12 | 64 leading triplets of 200 matrices, randomized | against the methods of figure 10 |
"""

from h2gpu.apps.batched_routines import Case
from h2gpu.apps.spectra import RANK

DTYPES = ("float64", "float32")
SQUARES = (8, 16, 32, 48, 64, 96, 128, 192, 256, 384, 512)
HEIGHTS, WIDTHS = (64, 128, 256, 512, 1024), (32, 64)
BATCHES = (1000, 200)
SMALL = (4, 8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128)
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
RANKS = ((32, 16), (33, 33), (64, 64), (65, 65), (128, 64), (256, 64))
TRIANGLES = ((16, 16), (32, 32), (33, 33), (64, 64), (65, 65), (128, 128), (256, 64), (64, 1), (512, 16))
BANDS = ((16384, 40, 65, 8), (65536, 12, 30, 12), (2000, 100, 140, 10))
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
        yield Case("syrk", dtype, BLAS_ENTRIES // (n * n), (n, k), "blas")
    for n, k in TRIANGLES:
        yield Case("trsm", dtype, BLAS_ENTRIES // (n * max(n, k)), (n, n, k), "blas")


def block_multiply(dtype):
    """One and sixteen right-hand sides."""
    for batch, *shape in BANDS:
        for sides in (1, 16):
            yield Case("block_multiply", dtype, batch, (*shape, sides), "products")


def targets(dtype):
    """Every target for QR, SVD and randomized SVD; the SVD also on flat spectra."""
    scale = 1 if dtype == "float64" else 0.5
    for (batch, *shape), ms in QR_TARGETS.items():
        yield Case("qr", dtype, batch, tuple(shape), "targets", "", "", "", scale * ms)
    for (batch, *shape), ms in SVD_TARGETS.items():
        yield Case("svd", dtype, batch, tuple(shape), "targets", "", "auto", "decaying", scale * ms)
        yield Case("svd", dtype, batch, tuple(shape), "targets", "", "auto", "flat")
    for (batch, *shape), ms in RSVD_TARGETS.items():
        yield Case("rsvd", dtype, batch, tuple(shape), "targets", "", "", f"rank {RANK}", scale * ms)


GROUPS = {
    "targets": targets,
    "qr": qr,
    "qr_ragged": qr_ragged,
    "svd": svd,
    "rsvd": rsvd,
    "gebrd": gebrd,
    "gemm": gemm,
    "gemm_sizes": gemm_sizes,
    "blas": blas,
    "block_multiply": block_multiply,
    "truncated": truncated,
}


def chosen(groups, dtypes, quick):
    """The cases of some groups, in order; quick: a part of each, the smallest first."""
    for group in groups:
        for dtype in dtypes:
            cases = list(GROUPS[group](dtype))
            yield from cases[::QUICK] if quick else cases
