"""Where the time goes: the launches of one call by phase, as in figures 9 and 11 of Boukaram et al.

Events stand around every launch. Launches on two streams overlap, so that times of phases may add up to more than the
whole; shares are of their sum. What the host adds, and kernels of CuPy itself, are the rest where there is one. Kernels
that fuse phases show as one: the Gram rounds form the Gram matrix, decompose it and turn the columns in one launch.
"""

from collections import Counter

from h2gpu.apps import kernel_report, timing

PHASES = {
    "QR": ("householder_qr", "triangle_chain"),
    "rounds: Gram matrix, its Jacobi, update": ("svd_gram",),
    "rounds: direct Jacobi": ("svd_round",),
    "SVD of small matrices": ("svd_register", "svd_shared"),
    "products": ("gemm",),
}
REST = "scaling, sorting, copies"
OUTSIDE = "samples, host, gaps"
FIGURES = {("svd", "10"): "9", ("rsvd", "12"): "11", ("qr", "4a"): "QR"}
BATCH = 200
HOLD_NS = 5_000_000  # the host is ahead by so much when the first launch begins


def recorded(work, one):
    """The launches of work(one), its milliseconds from begin to end, and its result."""
    import cupy

    from h2gpu.batched.launch import recorded_launches

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
