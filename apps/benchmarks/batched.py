"""How fast are the batched routines, against their bounds, their targets and others' routines in the same run?

    python -m h2gpu.apps.benchmarks.batched [targets qr qr_ragged svd rsvd gemm …] [--figures] [--quick] [-o FOLDER]

`ms` is the device's time (timing.py), `call ms` the public function's with what the host adds; inputs are resident and
no cache holds them. `of bound` compares with routines/nominal.py, `of allowed error` with criteria.py for some of the
matrices; peers and KBLAS' times are in peers/peers.py, the cases in cases.py. Writes batched_*.csv, kernels.csv and
batched.md. A table is of one commit: where cases were left out, one that has more of them stays as it is, and the new
rows are written to FOLDER/.unfinished.
"""

import sys
import time
from pathlib import Path

import numpy as np

from h2gpu.apps.autotune import kernel_report
from h2gpu.apps.benchmarks import cases as bench_cases
from h2gpu.apps.benchmarks import timing
from h2gpu.apps.benchmarks.peers import peers
from h2gpu.apps.benchmarks.report import plots as bench_plots
from h2gpu.apps.benchmarks.report import profiles as bench_profiles
from h2gpu.apps.benchmarks.report import tables
from h2gpu.apps.benchmarks.routines.batched import PAPER_BOUND, ROUTINES, Case
from h2gpu.apps.command.command import FailureError, InputError, Parser, run
from h2gpu.batched.device import machine_code
from h2gpu.batched.device.compiler import source_folder
from h2gpu.batched.device.limits import compute_capability
from h2gpu.batched.device.threads import thread_count

ABOUT = {
    "targets": "Targets, and every target's peers",
    "qr": "QR (figure 4)",
    "qr_ragged": "QR of ragged batches, R alone",
    "svd": "SVD, left vectors (figures 5, 8, 10)",
    "rsvd": "Randomized SVD, 64 triplets (figure 12)",
    "gebrd": "Bidiagonal form (figure 5 of Dong et al. 2018), against its bound from GEMV and GEMM",
    "lu": "LU of 500 matrices (figures 8, 9 of Abdelfattah et al. 2019)",
    "cholesky": "Cholesky, and its solutions for one right-hand side",
    "peers": "QR and SVD beside others' (figures 4, 10b), at some of the sizes",
    "truncated": "SVD truncated at 1e-6 of a steep spectrum",
    "products": "Products",
    "sizes": "Products of every size, compiled for it (figures 7–10 of Nath et al. 2010)",
    "blas": "Products with vectors, symmetric products, triangular solves",
    "profiles": "Phases (figures 9, 11): milliseconds between events around each launch",
    "kernels": "Kernels as compiled and launched",
}
WRITTEN_EVERY = 5  # seconds: whatever ends a run leaves what was measured before
# of a row
KEY = "figure", "routine", "method", "dtype", "batch", "shape", "spectrum", "samples", "n", "phase", "kernel"
FILES = {name: f"batched_{name}.csv" if name != "kernels" else "kernels.csv" for name in ABOUT}


def main(argv=None):
    """The command; returns the exit status."""
    return run("benchmarks.batched", _work, argv)


def parser():
    p = Parser(prog="benchmarks.batched", description=__doc__.splitlines()[0], allow_abbrev=False)
    p.add_argument("groups", nargs="*", metavar="GROUP", help=f"default: all of {', '.join(bench_cases.GROUPS)}")
    p.add_argument("--dtypes", default=",".join(bench_cases.DTYPES), metavar="NAME[,NAME]")
    p.add_argument("--quick", action="store_true", help="every third case")
    p.add_argument("--no-peers", action="store_true", help="without PyTorch's routines")
    p.add_argument("--figures", action="store_true", help="draw the tables too (needs matplotlib)")
    p.add_argument("--seconds", type=float, default=float("inf"), help="begin no case after so long, and tell")
    p.add_argument("--compilers", type=int, default=thread_count(), metavar="N", help="processes that compile first")
    p.add_argument("-o", "--output", type=Path, default="benchmarks/batched", metavar="FOLDER", help="of the tables")
    return p


def _work(argv):
    options = parser().parse_args(argv)
    groups, dtypes = options.groups or list(bench_cases.GROUPS), options.dtypes.split(",")
    for what, names, known in (("GROUP", groups, bench_cases.GROUPS), ("--dtypes", dtypes, bench_cases.DTYPES)):
        if not set(names) <= set(known):
            raise InputError(f"{what}: expected some of {', '.join(known)}, got {', '.join(names)}")
    device = timing.gpu_name()
    cases, begin = list(bench_cases.chosen(groups, dtypes, options.quick)), time.perf_counter()
    written, measured = begin, []
    timing.side_by_side(run_once, cases, options.compilers)
    ahead = "some" if machine_code.opened(source_folder(), compute_capability(0)) else "none"
    print(
        f"compiled in {time.perf_counter() - begin:.0f} s by {options.compilers} processes, {ahead} ahead", flush=True
    )
    bench = Bench(with_peers=not options.no_peers)
    try:
        for i, case in enumerate(cases):
            if time.perf_counter() - begin > options.seconds:
                raise FailureError(f"{len(cases) - i} of {len(cases)} cases left out after {options.seconds:g} s")
            bench.add(case)
            measured.append(case)
            if time.perf_counter() - written > WRITTEN_EVERY:
                write(options.output, bench.tables, device, whole(measured))
                written = time.perf_counter()
    finally:
        waiting = write(options.output, bench.tables, device, whole(measured))
        if waiting:
            print(*told_of(waiting), sep="\n")
        if options.figures:
            bench_plots.draw(options.output)
    print(f"{len(cases)} cases in {time.perf_counter() - begin:.0f} s")
    for dtype, sizes in dips(bench.tables["sizes"]).items():
        print(f"{dtype}: products below {bench_cases.OF_EVEN_SIZE} of their neighbours' rate: {sizes or 'none'}")
    if bench.failed:
        raise FailureError(f"{bench.failed} of {len(cases)} cases failed; their rows tell why")


def run_once(case):
    """The case's work and what its facts take, once: compiles what they need."""
    import cupy

    routine = ROUTINES[case.routine]
    (one,) = routine.inputs(case, rotate=False)
    routine.facts(case, routine.work(case)(one))
    cupy.cuda.Device().synchronize()
    del one
    cupy.get_default_memory_pool().free_all_blocks()  # others compile beside this process


class Bench:
    """Measures case by case; `tables` holds the rows."""

    def __init__(self, with_peers):
        self.tables = {name: [] for name in ABOUT}
        self.with_peers, self.peers, self.kernels, self.failed = with_peers, {}, set(), 0

    def add(self, case):
        """Measure a case and keep its rows. Raises FailureError when the device has stopped answering."""
        import cupy

        try:
            row = self.measured(case)
        except Exception as error:
            self.failed += 1
            row = described(case) | {"note": told(error)}
        if row:
            self.tables[case.table].append(row)
            print(
                f"{case.label}: " + "; ".join(filter(None, [row["ms"] and f"{row['ms']:.4g} ms", row.get("note")])),
                flush=True,
            )
        try:
            cupy.cuda.Device().synchronize()
            cupy.get_default_memory_pool().free_all_blocks()
        except Exception as error:
            raise FailureError(f"the device failed after {case.label}: {error}; tables end there") from None

    def measured(self, case):
        """The row of a case; None where the method asked for admits no such size and another one would run."""
        routine = ROUTINES[case.routine]
        inputs = routine.inputs(case)
        work = routine.work(case)
        work(inputs[0])
        launches, when, result = bench_profiles.recorded(work, inputs[0])
        self.tables["kernels"] += kernel_report.rows(launches, case, self.kernels)
        wanted = routine.kernels.get(case.method, ())
        main = [one for one in launches if kernel_report.name(one.function.name) in wanted]
        if case.method in routine.kernels and not main:
            return None
        nominal, error = routine.nominal(case, inputs[0], result), routine.criterion(case, inputs[0], result)
        facts = routine.facts(case, result) | kernel_report.summary(main)
        del result
        ms, call_ms = timing.device_ms(work, inputs), timing.call_ms(routine.call(case), inputs)
        if case.table != "peers":  # whose matrices and ways are not all that the figures show
            self.tables["profiles"] += bench_profiles.rows(case, when, ms)
        row = described(case) | {"ms": ms, "call ms": call_ms} | nominal.of(ms) | facts | {"of allowed error": error}
        if PAPER_BOUND in facts:
            row["of paper's bound"] = row["GFLOP/s"] / facts[PAPER_BOUND]
        try:
            others, note = self.peers_of(case, inputs), peers.note(case.routine) if self.with_peers else ""
        except Exception as error:  # theirs, not ours
            others, note = [], f"peers: {told(error)}"
        return row | compared(case, ms, others) | {"note": note}

    def peers_of(self, case, inputs):
        """The peers' times, measured once for every shape, spectrum and number of samples."""
        key = case.routine, case.dtype, case.batch, case.shape, case.spectrum, case.samples
        if self.with_peers and key not in self.peers:
            self.peers[key] = []  # asked once, also where they fail
            self.peers[key] = peers.times(case.routine, inputs, ROUTINES[case.routine].columns(case))
        return self.peers.get(key, [])


def described(case: Case):
    """The columns that say what was measured."""
    row = {"figure": case.figure, "routine": case.routine, "method": case.method, "dtype": case.dtype}
    return row | {
        "batch": case.batch,
        "shape": ROUTINES[case.routine].shown(case.shape),
        "spectrum": case.spectrum,
        "ms": None,
    }


def compared(case, ms, others):
    """The columns that compare: target, KBLAS elsewhere on an H200, peers in this run."""
    kblas = peers.kblas_ms(case.routine, case.dtype, (case.batch, *case.shape), case.spectrum)
    row = {
        "target ms": case.target_ms,
        "of target": case.target_ms and ms / case.target_ms,
        "KBLAS ms, measured elsewhere on an H200": kblas,
        "KBLAS / ms": kblas and kblas / ms,
    }
    for prefix, peer in zip(("peer", "second peer", "third peer"), others):
        row |= {prefix: peer.name, f"{prefix} ms": peer.ms, f"{prefix} call ms": peer.call_ms}
        row |= {f"{prefix} / ms": peer.ms / ms, f"{prefix} timed": peer.matrices}
    return row


def told(error):
    """An error in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split()):.200}"


def whole(measured):
    """The tables all of whose cases were measured."""
    cases = bench_cases.chosen(bench_cases.GROUPS, bench_cases.DTYPES, False)
    lacks = {case.table for case in set(cases) - set(measured)}
    lacks |= {"profiles"} if lacks & {"qr", "svd", "rsvd"} else set()
    lacks |= {"kernels"} if lacks else set()
    return set(ABOUT) - lacks


def told_of(waiting):
    """A line for each table that was not replaced."""
    return [f"{path}: not published, for want of cases that {count} published rows have" for path, count in waiting]


def write(folder, found, device, complete=frozenset(ABOUT)):
    """The tables that have rows as CSV, and all tables of the folder as one Markdown page.

    complete   tables all of whose cases were measured; others replace none that has rows which they lack

    Returns [(where they are instead, how many rows they lack)] of those that were not published.
    """
    found, waiting = found | {"profiles": bench_profiles.of_qr(found["qr"]) + found["profiles"]}, []
    for name, rows in ((name, with_neighbours(rows)) for name, rows in found.items() if rows):
        path, beside = folder / FILES[name], folder / tables.UNFINISHED / FILES[name]
        if count := 0 if name in complete else tables.lacking(path, rows, KEY):
            waiting.append((beside, count))
        else:
            beside.unlink(missing_ok=True)
        tables.write(beside if count else path, rows, device)
    text = ["# Batched routines", ""]
    for name, title in ABOUT.items():
        if (folder / FILES[name]).is_file():
            about, rows = tables.read(folder / FILES[name])
            text += [f"## {title}", "", *(f"- {line}" for line in about), "", tables.markdown(rows), ""]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "batched.md").write_text("\n".join(text), encoding="utf-8")
    return waiting


def with_neighbours(rows):
    """Products get their rate relative to the next multiple of 32, and to their neighbours in a table of all sizes."""
    rates = {
        (row["routine"], row["dtype"], row["shape"], row.get("method")): row.get("GFLOP/s")
        for row in rows
        if "shape" in row
    }
    for row in rows:
        if row.get("routine") == "gemm" and row.get("GFLOP/s"):
            n = int(row["shape"].rstrip("³"))
            even, below, above = (
                rates.get(("gemm", row["dtype"], f"{size}³", row.get("method")))
                for size in (32 * round(n / 32), n - 1, n + 1)
            )
            if below and above:
                row["of neighbours"] = 2 * row["GFLOP/s"] / (below + above)
            row["of even size"] = row["GFLOP/s"] / even if even and n % 32 and n > 32 // 2 else None
            if row["of even size"] and row.get("figure") == bench_cases.GEMM_TARGET:
                row["target of even size"] = bench_cases.OF_EVEN_SIZE
    return rows


def dips(rows):
    """Of a table of all sizes, by precision, those whose products are slower than they may be."""
    found = {row["dtype"]: [] for row in rows}
    for row in rows:
        if row.get("of neighbours") and row["of neighbours"] < bench_cases.OF_EVEN_SIZE:
            found[row["dtype"]].append(row["shape"])
    return {dtype: ", ".join(sizes) for dtype, sizes in found.items()}


if __name__ == "__main__":
    np.seterr(all="ignore")
    sys.exit(main())
