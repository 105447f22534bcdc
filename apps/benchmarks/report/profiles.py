"""Where the time goes: the launches of a call by phase (figures 9 and 11 of Boukaram et al.), and Q's share of QR.

Events stand around every launch. Launches on two streams overlap, so that times of phases may add up to more than the
whole; shares are of their sum. What the host adds, and kernels of CuPy and the vendor, are the rest where there is one.
Kernels that fuse phases show as one: the Gram rounds form the Gram matrix, decompose it and turn the columns in one
launch, QR turns panels and what is right of them in one. Q's share is the time of QR without that of R alone.
"""

from collections import Counter

from h2gpu.apps.autotune import kernel_report
from h2gpu.apps.benchmarks import timing

PHASES = {
    "QR": (
        "householder_qr",
        "triangle_chain",
        "blocked_qr",
        "blocked_q",
        "blocked_chain",
        "cholesky_qr",
        "cholesky_basis",
    ),
    "rounds: Gram matrix, its Jacobi, update": ("svd_gram",),
    "rounds: direct Jacobi": ("svd_round",),
    "SVD of small matrices": ("svd_register", "svd_shared", "svd_triangle"),
    "products": ("gemm", "thin_product", "thin_parts"),
    "samples": ("gaussian",),
}
REST = "scaling, sorting, copies"
OUTSIDE = "vendor's products, host, gaps"
R_ALONE, Q_FORMED = "R", "Q"
OTHERS = (REST, OUTSIDE, R_ALONE, Q_FORMED)
FIGURES = {("svd", "10"): "9", ("rsvd", "12"): "11"}
BATCH = 200
HOLD_NS = 5_000_000  # the host is ahead by so much when the first launch begins


def recorded(work, one):
    """The launches of work(one), its milliseconds from begin to end, and its result."""
    import cupy

    from h2gpu.batched.device.launch import recorded_launches

    start, stop = cupy.cuda.Event(), cupy.cuda.Event()
    timing.hold(HOLD_NS)
    start.record()
    with recorded_launches() as launches:
        result = work(one)
    stop.record()
    stop.synchronize()
    return launches, cupy.cuda.get_elapsed_time(start, stop), result


def rows(case, launches, total):
    """A row a phase for the cases that the figures show; none for others."""
    figure = FIGURES.get((case.routine, case.figure))
    if figure is None or case.batch != BATCH:
        return []
    spent = Counter()
    for launch in launches:
        spent[phase_of(kernel_report.name(launch.function.name))] += launch.milliseconds
    spent[OUTSIDE] = max(0.0, total - sum(spent.values()))
    row = {"figure": figure, "routine": case.routine, "method": case.method, "dtype": case.dtype, "n": case.shape[0]}
    whole = sum(spent.values())
    return [row | {"phase": phase, "ms": ms, "share": ms / whole} for phase, ms in spent.items() if ms > 0]


def phase_of(kernel):
    """The phase that a kernel belongs to."""
    return next((phase for phase, kernels in PHASES.items() if kernel in kernels), REST)


def of_qr(rows):
    """Rows for R and Q from the table of QR: square matrices of which both times are known."""
    square = {
        (r["routine"], r["dtype"], r["shape"]): r["ms"] for r in rows if (r["figure"], r["batch"]) == ("4a", BATCH)
    }
    found = []
    for (routine, dtype, shape), whole in square.items():
        alone = square.get(("qr_r", dtype, shape))
        if routine == "qr" and whole and alone:
            row = {"figure": "QR", "routine": "qr", "method": "", "dtype": dtype, "n": int(shape.split("×")[0])}
            for phase, ms in ((R_ALONE, alone), (Q_FORMED, max(0.0, whole - alone))):
                found.append(row | {"phase": phase, "ms": ms, "share": ms / max(whole, alone)})
    return found
