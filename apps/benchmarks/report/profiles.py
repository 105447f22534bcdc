"""Where the time goes: the launches of a call by phase (figures 9 and 11 of Boukaram et al.), and Q's share of QR.

Events stand around every launch, and before and after the call: from the one to the other is `wall ms`, of which every
moment belongs to the phases whose kernels run then, in equal parts where several do, or to the rest where none does:
what the host adds, and kernels of CuPy and the vendor. So phases and rest add up to `wall ms`. Events cost time
themselves: `alone ms` is the call without them. Kernels that fuse phases show as one: the Gram rounds form the Gram
matrix, decompose it and turn the columns in one launch, QR turns panels and what is right of them in one. Q's share is
the time of QR without that of R alone, where another kernel does not give Q and R sooner than that.
"""

from collections import Counter
from itertools import pairwise

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
    """The launches of work(one), when they ran, and its result.

    When: (kernel, begin, end) of each and the end of all, in milliseconds from the beginning of the call.
    """
    import cupy

    from h2gpu.batched.device.launch import recorded_launches

    start, stop = cupy.cuda.Event(), cupy.cuda.Event()
    timing.hold(HOLD_NS)
    start.record()
    with recorded_launches() as launches:
        result = work(one)
    stop.record()
    cupy.cuda.Device().synchronize()
    after = lambda event: cupy.cuda.get_elapsed_time(start, event)  # noqa: E731
    spans = [(kernel_report.name(one.function.name), after(one.start), after(one.stop)) for one in launches]
    return launches, (spans, max([after(stop), *(end for *_, end in spans)])), result


def rows(case, when, alone):
    """A row a phase for the cases that the figures show; none for others.

    when    what `recorded` tells
    alone   milliseconds of the call without events
    """
    figure = FIGURES.get((case.routine, case.figure))
    if figure is None or case.batch != BATCH:
        return []
    spans, wall = when
    row = {"figure": figure, "routine": case.routine, "method": case.method, "dtype": case.dtype, "n": case.shape[0]}
    spent = shared_out([(phase_of(kernel), begin, end) for kernel, begin, end in spans], wall)
    whole = {"wall ms": wall, "alone ms": alone}
    return [row | {"phase": phase, "ms": ms, "share": ms / wall} | whole for phase, ms in spent.items() if ms > 0]


def shared_out(spans, wall):
    """{phase: milliseconds} of (phase, begin, end) in a call of `wall` milliseconds; their sum is `wall`."""
    spent, running = Counter(), Counter()
    turns = [(0.0, 0, ""), (wall, 0, "")]
    turns += [turn for phase, begin, end in spans for turn in ((begin, 1, phase), (end, -1, phase))]
    for (now, step, phase), (then, *_) in pairwise(sorted(turns, key=lambda turn: turn[0])):
        running[phase] += step
        count = running.total()
        for name, number in running.items() if count else [(OUTSIDE, 1)]:
            spent[name] += (then - now) * number / max(count, 1)
    return {phase: ms for phase, ms in spent.items() if phase}


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
        if routine == "qr" and whole and alone and alone <= whole:
            row = {"figure": "QR", "routine": "qr", "method": "", "dtype": dtype, "n": int(shape.split("×")[0])}
            for phase, ms in ((R_ALONE, alone), (Q_FORMED, whole - alone)):
                found.append(row | {"phase": phase, "ms": ms, "share": ms / whole, "wall ms": whole})
    return found
