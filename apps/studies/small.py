"""How fast do small problems in registers run, and does the model say so beforehand?

Figures 4, 7, 8, 9, 11 and 12 and table VII of Anderson, Sheffield & Keutzer (2012), on the GPU at hand: one problem a
thread, layouts of one problem a block, cycles by panel (panels), sizes, others' libraries (small_peers), complex
problems of radar (STAP); and the kernels of h2gpu.batched that the model counts. Every row has its measured time, and
its predicted one where the device's constants are known (apps/autotune/microbench.py). Whoever ends it early, by
--seconds, a
signal or control-C, gets the tables and the summary of what has been measured.

    python -m h2gpu.apps.studies.small [--figures 9,12,VII,7,4,library,11,12b,8] [--seconds N] [--output FOLDER]
"""

import statistics
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from h2gpu import batched
from h2gpu.apps.benchmarks import timing
from h2gpu.apps.benchmarks.peers import small as small_peers
from h2gpu.apps.benchmarks.report import tables
from h2gpu.apps.benchmarks.routines import nominal
from h2gpu.apps.command.command import Parser, run
from h2gpu.apps.studies import panels as study_panels
from h2gpu.apps.studies import small_plots
from h2gpu.batched import model, registers
from h2gpu.batched.device.threads import thread_count
from h2gpu.batched.model import registers as register_counts
from h2gpu.batched.registers.layouts import layout

THREAD_BATCH, LAYOUT_BATCH, BLOCK_BATCH, LIBRARY_BATCH = 64_000, 10_000, 8_000, 1_000  # the paper's, and ours
DTYPES = ("float32", "float64", "complex64")
RADAR = ((384, 80, 16), (128, 240, 66), (128, 192, 96))  # problems, rows, columns
TOLERANCES = (0.25, 2.0)  # of the median, and the factor of all, that the model is to keep
FIGURES, PEERED = "9,12,VII,7,4,library,11,12b,8", ("11", "12b")  # 12b: the peers of figure 12
THREAD_SIZES = (2, 3, 4, 6, 8, 9, 11, 12, 14, 16)  # those that divide a sector's 8 words, and some that do not
MATRICES = 64  # that differ; the batch repeats them
REPEATS = 5
READ_BACK = ("pivoted_qr",)  # the host waits for its ranks: its launches run again, without the host between them


class Case(NamedTuple):
    """A routine of h2gpu.batched.registers, or of h2gpu.batched where the layout is ""."""

    figure: str
    routine: str
    layout: str
    dtype: str
    batch: int
    m: int
    n: int


def main(argv=None):
    """The command; returns the exit status."""
    return run("studies.small", _work, argv)


def _work(argv):
    parser = Parser(prog="studies.small", description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--figures", default=FIGURES, help="in this order")
    parser.add_argument("--seconds", type=float, default=np.inf, help="that measuring may take, compilation included")
    parser.add_argument("-o", "--output", default="benchmarks/batched", help="folder for the tables")
    parser.add_argument("--draw", action="store_true", help="the pictures too (needs matplotlib)")
    parser.add_argument("--compilers", type=int, default=thread_count(), help="processes that compile beforehand")
    options = parser.parse_args(argv)
    end, device, rows = time.monotonic() + options.seconds, timing.gpu_name(), []
    panels = []
    chosen = [case for figure in options.figures.split(",") for case in cases() if case.figure == figure]
    try:
        timing.side_by_side(compiled, sorted(chosen, key=straight_code, reverse=True), options.compilers)
        for case in chosen:
            if time.monotonic() > end:
                break
            if case.figure == "8":
                panels += study_panels.rows(case.routine, problems(case)[0], device)
                continue
            rows.append(row(case, measured(case), predicted(case, device)))
            if case.figure in PEERED:
                inputs = timing.rotation(problems(case)[0])
                rows[-1] |= small_peers.columns(case.routine, inputs, 1e-6 * flops(case))
            print(tables.text(rows[-1:]), flush=True)
    finally:
        write(Path(options.output), rows, panels, device)
    if options.draw:
        small_plots.draw(Path(options.output))


def write(folder, rows, panels, device):
    """A table for figure 8, one for others' libraries, one for the other figures: those that have rows."""
    found = {"study_small": [r for r in rows if r["figure"] not in PEERED]}
    found |= {"study_small_peers": [r for r in rows if r["figure"] in PEERED], "study_panels": panels}
    for name, these in found.items():
        if these:
            tables.write(folder / f"{name}.csv", these, device)
    if panels:
        print(tables.text(panels), flush=True)
    if rows or not panels:
        print(summary(rows), flush=True)


def cases():
    """Every row of the study."""
    for dtype in DTYPES:
        for n in THREAD_SIZES:
            for routine in ("lu", "qr", "cholesky", "solve", "gauss-jordan", "lstsq"):
                yield Case("4", routine, "thread", dtype, THREAD_BATCH, n, n)
    for routine in ("lu", "qr"):
        yield Case("8", routine, "2d", "float32", BLOCK_BATCH, 56, 56)
    for kind in ("2d", "row", "column"):
        for n in range(8, 49, 8):
            yield Case("7", "lstsq", kind, "float32", LAYOUT_BATCH, n, n)
    for dtype in DTYPES:
        for n in (16, 32, 48, 56, 64, 80, 96, 112, 128):
            for routine in ("lu", "qr"):
                yield Case("9", routine, "2d", dtype, BLOCK_BATCH, n, n)
                if dtype == "float32":
                    yield Case("11", routine, "2d", dtype, BLOCK_BATCH, n, n)
            for routine in ("gauss-jordan", "lstsq"):
                yield Case("12", routine, "2d", dtype, BLOCK_BATCH, n, n)
                if dtype == "float32":
                    yield Case("12b", routine, "2d", dtype, BLOCK_BATCH, n, n)
    for batch, m, n in RADAR:
        yield Case("VII", "qr", "2d", "complex64", batch, m, n)
    for dtype in DTYPES[:2]:
        for n in (8, 16, 32, 64, 128):
            yield Case("library", "qr", "", dtype, LIBRARY_BATCH, n, n)
            yield Case("library", "gemm", "", dtype, LIBRARY_BATCH, n, n)
            yield Case("library", "pivoted_qr", "", dtype, LIBRARY_BATCH, n, n)
        for n in (8, 16, 32):
            yield Case("library", "svd", "", dtype, LIBRARY_BATCH, n, n)


def columns_of(case):
    """Right-hand sides."""
    return 1 if case.routine in ("solve", "gauss-jordan", "lstsq") else 0


def grid_of(case):
    """The layout that holds the problem, None where none does."""
    return layout(case.dtype, case.m, case.n + columns_of(case), case.layout or "auto")


def straight_code(case):
    """How much the compiler has to unroll, in some unit: the longest jobs go first."""
    return (case.layout == "thread") * case.m * case.n * np.dtype(case.dtype).itemsize


def measured(case):
    """Milliseconds on the device; None where the problem does not fit."""
    if case.layout and grid_of(case) is None:
        return None
    A, b = problems(case)
    work, inputs = calls(case, b), timing.rotation(A)
    if case.routine in READ_BACK:
        work, inputs = relaunched, [launches_of(work, A) for A in inputs]
    return timing.device_ms(work, inputs, REPEATS)


def launches_of(work, one):
    """The launches of work(one), which can run again on the same arrays."""
    from h2gpu.batched.device.launch import recorded_launches

    with recorded_launches(keep=True) as launches:
        work(one)
    return launches


def relaunched(launches):
    """All of them, one after another."""
    for launch in launches:
        launch.again()


def compiled(case):
    """One small call, after which the kernel is on disk."""
    if not case.layout or grid_of(case) is not None:
        A, b = problems(case._replace(batch=2))
        calls(case, b)(A)
        if case.figure == "8":
            study_panels.launched(case.routine, A)


def problems(case):
    """Matrices and right-hand sides on the device."""
    import cupy

    few = min(case.batch, MATRICES)
    A = np.random.default_rng(0).standard_normal((few, case.m, case.n))
    if case.layout:
        A[:, range(min(case.m, case.n)), range(min(case.m, case.n))] += 2 * case.n  # needs no pivoting
    A = cupy.tile(cupy.asarray(A.astype(case.dtype)), (-(-case.batch // few), 1, 1))[: case.batch]
    if case.routine == "cholesky":
        A = A @ A.conj().swapaxes(1, 2)
    return A, cupy.ones((case.batch, case.m), case.dtype)


def calls(case, b):
    """The routine as a function of A."""
    kind = case.layout
    if not kind:
        return {
            "qr": batched.qr,
            "gemm": lambda A: batched.gemm(A, A),
            "pivoted_qr": batched.pivoted_qr,
            "svd": lambda A: batched.svd(A, "left", return_info=True),
        }[case.routine]
    return {
        "lu": lambda A: registers.lu(A, kind, return_info=True),
        "cholesky": lambda A: registers.cholesky(A, kind, return_info=True),
        "qr": lambda A: registers.qr(A, kind, return_info=True),
        "solve": lambda A: registers.solve(A, b, "lu", kind, return_info=True),
        "gauss-jordan": lambda A: registers.solve(A, b, "gauss-jordan", kind, return_info=True),
        "lstsq": lambda A: registers.least_squares(A, b, kind),
    }[case.routine]


def predicted(case, device):
    """Milliseconds by the model; None where the problem does not fit or the device's constants are not known."""
    try:
        if not case.layout:
            return 1e3 * batched.predict_time(case.routine, case.batch, case.m, case.n, case.dtype, device)
        if grid_of(case) is None:
            return None
        work = register_counts.small(case.routine, case.dtype, case.m, case.n, columns_of(case), grid_of(case))
        return 1e3 * model.seconds(work, case.batch, case.dtype, model.Constants.of(device))
    except (ValueError, LookupError):
        return None


def flops(case):
    """The paper's nominal count, four times as many for complex numbers."""
    m, n = case.m, case.n
    lu, qr = 2 / 3 * n**3, 2 * m * n**2 - 2 / 3 * n**3
    counts = {"lu": lu, "solve": lu + 2 * n**2, "cholesky": lu / 2, "gauss-jordan": n**3, "gemm": 2 * m * n * n}
    factor = 4 if case.dtype.startswith("complex") else 1
    return factor * case.batch * counts.get(case.routine, qr + (n**2 if case.routine == "lstsq" else 0))


def row(case, ms, model_ms):
    """One line of the table."""
    entries = 2 * case.batch * case.m * case.n * np.dtype(case.dtype).itemsize
    shown = {"figure": case.figure, "routine": case.routine, "layout": case.layout, "dtype": case.dtype}
    return shown | {
        "batch": case.batch,
        "shape": f"{case.m}×{case.n}",
        "ms": ms,
        "GFLOP/s": ms and flops(case) / ms * 1e-6,
        "of memory bound": ms and 1e3 * entries / nominal.MEMORY_RATE / ms,
        "predicted ms": model_ms,
        "predicted / measured": ms and model_ms and model_ms / ms,
    }


def summary(rows):
    """How near the predictions are, figure by figure: the median deviation and the worst factor."""
    lines = []
    for figure in [*dict.fromkeys(r["figure"] for r in rows), ""]:
        ratios = [r["predicted / measured"] for r in rows if r["predicted / measured"] and figure in ("", r["figure"])]
        if ratios:
            deviation = statistics.median(abs(ratio - 1) for ratio in ratios)
            worst = max(max(ratio, 1 / ratio) for ratio in ratios)
            lines.append(
                f"{figure or 'all'}: {len(ratios)} predictions, median deviation {deviation:.0%} (aim "
                f"{TOLERANCES[0]:.0%}), worst factor {worst:.2f} (aim {TOLERANCES[1]})"
            )
    return "\n".join(lines) or "no predictions"


if __name__ == "__main__":
    sys.exit(main())
