"""The best values of the kernels' knobs on this device: measured, and written to kernels/tuning/<device>/<routine>.csv.

    python -m h2gpu.apps.autotune.tune [qr svd gemm lu_shared gemv …] [--dtypes float64] [--where max_columns=32]
                                        [--best N] [--seconds N] [--dry-run] [-o FOLDER]

For every row of a table the present values and the most promising candidates of tune_space.py are compiled side by
side, checked against the CPU's result, and timed on the row's problems; what spills more than with the present values
is ruled out where matrices are held in registers. The fastest takes the row if it gains more than noise. A table is
replaced when TOGETHER of its rows are done, whole or not at all; rows never measured come first, so that a run that was
short of time is gone on with by another. All tables take some minutes; with every candidate (--best 0), hours.
"""

import csv
import io
import math
import statistics
import sys
import time
from dataclasses import replace
from datetime import date
from itertools import product
from pathlib import Path

from h2gpu.apps.autotune import tune_fixed, tune_limits, tune_rank, tune_space
from h2gpu.apps.benchmarks import timing
from h2gpu.apps.benchmarks.cases import DTYPES
from h2gpu.apps.benchmarks.report import profiles as bench_profiles
from h2gpu.apps.benchmarks.routines.batched import ROUTINES
from h2gpu.apps.command.command import FailureError, InputError, Parser, run
from h2gpu.batched.device import tuning
from h2gpu.batched.device.compiler import source_folder
from h2gpu.batched.device.threads import thread_count
from h2gpu.storage.whole_file import whole_file

GAIN = 0.02  # of the time that a candidate must save
TOGETHER = 64  # rows whose candidates are compiled side by side
CHECKED = 5  # matrices of the check
BEST, SECONDS = 4, 600  # candidates of a row, and seconds after which no row is begun, unless said otherwise
IN_REGISTERS = "qr", "qr_tall", "lu_panel", "gebrd"  # whose kernels may use no more local memory than with their own


class RejectedError(Exception):
    """Why a candidate is no candidate."""


def main(argv=None):
    """The command; returns the exit status."""
    return run("tune", _work, argv)


def parser():
    p = Parser(prog="tune", description=__doc__.splitlines()[0], allow_abbrev=False)
    p.add_argument("routines", nargs="*", metavar="ROUTINE", help=f"default: all of {', '.join(tune_space.KNOBS)}")
    p.add_argument("--dtypes", default=",".join(DTYPES), metavar="NAME[,NAME]")
    p.add_argument("--where", default="", metavar="COLUMN=VALUE[,VALUE]", help="only such rows, as max_columns=32")
    p.add_argument("--best", type=int, default=BEST, metavar="N", help=f"candidates of a row; default {BEST}, 0: all")
    p.add_argument("--seconds", type=float, default=SECONDS, metavar="N", help=f"begin no row after so long: {SECONDS}")
    p.add_argument("--dry-run", action="store_true", help="say what would be tried; needs no GPU")
    p.add_argument("--compilers", type=int, default=thread_count(), metavar="N", help="processes that compile")
    p.add_argument("-o", "--output", type=Path, metavar="FOLDER", help="of the tables; default: the installed ones'")
    return p


def _work(argv):
    options = parser().parse_args(argv)
    routines, dtypes = options.routines or list(tune_space.KNOBS), options.dtypes.split(",")
    for what, names, known in (("ROUTINE", routines, tune_space.KNOBS), ("--dtypes", dtypes, DTYPES)):
        if not set(names) <= set(known):
            raise InputError(f"{what}: expected some of {', '.join(known)}, got {', '.join(names)}")
    column, _, values = options.where.partition("=")
    device = tuning.FALLBACK if options.dry_run else timing.gpu_name()
    hardware = tune_limits.Hardware() if options.dry_run else tune_limits.Hardware.here()
    own = tuning.folder_name(device)
    folder = options.output or source_folder() / "tuning" / own
    most, until = options.best or None, time.perf_counter() + options.seconds
    for routine in routines:
        rows = table(routine, own)
        if column and column not in rows[0]:
            raise InputError(f"--where: expected a column of {routine}.csv, got {column!r}")
        chosen = [r for r in rows if r["dtype"] in dtypes and (not column or r[column] in values.split(","))]
        if options.dry_run:
            for row in chosen:
                print("\n".join(plan(routine, row, rows, hardware, most)))
            continue
        chosen.sort(key=lambda row: row["rate"] != "0")
        for part in (chosen[i : i + TOGETHER] for i in range(0, len(chosen), TOGETHER)):
            trials = Trials(options.compilers)
            rows = tuned(routine, rows, part, hardware, trials, device, most, until)
            write(folder / f"{routine}.csv", tune_fixed.measured(rows) if routine == tune_fixed.ROUTINE else rows)
            print(f"written: {folder / f'{routine}.csv'}", flush=True)


def table(routine, own):
    """The device's table of a routine, or the fallback's; of sizes without a row, what is taken in its place."""
    if routine == tune_fixed.ROUTINE:
        return tune_fixed.rows(own)
    found = (source_folder() / "tuning" / own / f"{routine}.csv").is_file()
    return tuning.rows(routine, own if found else tuning.FALLBACK)


def plan(routine, row, rows, hardware, most=None):
    """What would be tried for a row, in words."""
    cases = tune_space.problems(routine, row, rows[: rows.index(row)])
    found = tune_rank.ranked(routine, tune_space.candidates(routine, row, hardware), cases, tuning.FALLBACK, most)
    yield f"{described(routine, row)}: {len(found)} candidates on " + "; ".join(case.label for case in cases)
    for knob in tune_space.KNOBS[routine]:
        values = sorted({knobs[knob] for knobs in found}, key=lambda text: (len(text), text))
        yield f"    {knob}: {', '.join(values)}"


def tuned(routine, rows, chosen, hardware, trials, device, most=None, until=math.inf):
    """The table with the chosen rows measured again.

    most     candidates of a row beside its own values, the most promising; default: all
    trials   has compile(jobs) and measure(routine, knobs, case, is_own) → milliseconds, or RejectedError
    until    time.perf_counter() from which on rows stay as they are
    """
    result, spaces = list(rows), {}
    for i, row in enumerate(rows):
        if row in chosen and time.perf_counter() < until:
            cases = tune_space.problems(routine, row, rows[:i])
            found = tune_rank.ranked(routine, tune_space.candidates(routine, row, hardware), cases, device, most)
            spaces[i] = found, cases
    jobs = {job(routine, *pair): (routine, *pair) for space in spaces.values() for pair in product(*space)}
    trials.compile(list(jobs.values()))
    for i, (found, cases) in spaces.items():
        print(f"{described(routine, rows[i])}: {len(found)} candidates", flush=True)
        if time.perf_counter() < until:
            result[i] = best(routine, rows[i], found, cases, trials, device)
        else:
            print("    left as it is: no time is left; see --seconds", flush=True)
    return result


def job(routine, knobs, case):
    """What a candidate's time of a case depends on."""
    return case, tune_space.relevant(routine, case, knobs)


def best(routine, row, found, cases, trials, device):
    """The row with the fastest of the candidates; its own values are the first of them."""
    known, times = {}, []
    for knobs in found:
        shown = " ".join(f"{knob} {value}" for knob, value in knobs.items())
        try:
            for case in cases:
                if job(routine, knobs, case) not in known:
                    ms = trials.measure(routine, knobs, case, is_own=knobs is found[0])
                    known[job(routine, knobs, case)] = ms
        except RejectedError as reason:
            print(f"    {shown}: {reason}", flush=True)
            continue
        times.append(([known[job(routine, knobs, case)] for case in cases], knobs))
        print(f"    {shown}: {', '.join(f'{ms:.4g} ms' for ms in times[-1][0])}", flush=True)
    if not times:
        raise FailureError(f"{described(routine, row)}: no candidate works, not even the table's own values")
    ms, knobs = winner(times, found[0])
    return row | knobs | rate(routine, cases[0], ms[0], device)


def winner(times, own):
    """The (times, knobs) of the smallest geometric mean; those of `own` unless GAIN is saved."""
    return min(times, key=lambda pair: statistics.geometric_mean(pair[0]) * (1 - GAIN * (pair[1] == own)))


def rate(routine, case, ms, device):
    """The columns that say what was measured with a row."""
    if routine == "svd":
        value, unit = f"{ms:.3g}", f"ms for {case.batch} of {case.shape[0]}x{case.shape[1]}"
    else:
        gigaflops = ROUTINES[case.routine].nominal(case, None, None).flops / ms * 1e-6
        value, unit = (f"{gigaflops / 1e3:.1f}", "TFLOP/s") if routine == "gemm" else (f"{gigaflops:.0f}", "GFLOP/s")
    return {"rate": value, "unit": unit, "device": device, "date": str(date.today())}


def described(routine, row):
    """A row by its limits."""
    return f"{routine} {row['dtype']} " + " ".join(
        f"{k}{'=' if k in row else '≤'}{v}" for k, v in tune_limits.limits(row).items()
    )


def write(path, rows):
    """The table as CSV, whole or not at all; its folder is made where missing."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as temporary:
        temporary.write_text(buffer.getvalue(), encoding="utf-8")


class Trials:
    """Candidates on the current device."""

    def __init__(self, compilers):
        self.compilers, self.local_bytes, self.inputs = compilers, {}, {}

    def compile(self, jobs):
        """Everything that the jobs launch, on disk for measure."""
        timing.side_by_side(compile_one, jobs, self.compilers)

    def measure(self, routine, knobs, case, is_own):
        """Milliseconds of a case with these values, after a check. Raises RejectedError."""
        with tuning.trial(routine, **_numbers(knobs)):
            try:
                launches = self._checked(case)
            except RejectedError:
                raise
            except Exception as error:  # does not compile, does not fit, does not launch
                raise RejectedError(f"{type(error).__name__}: {' '.join(str(error).split()):.120}") from None
            spilled = max((launch.function.local_size_bytes for launch in launches), default=0)
            if is_own:
                self.local_bytes[case] = spilled
            elif routine in IN_REGISTERS and spilled > self.local_bytes.get(case, 0):
                raise RejectedError(f"{spilled} bytes of local memory")
            work = ROUTINES[case.routine].work(case)
            return timing.device_ms(work, self._inputs(case))

    def _checked(self, case):
        """The launches of a small batch whose result the CPU finds right."""
        routine, small = ROUTINES[case.routine], replace(case, batch=CHECKED)
        (one,) = routine.inputs(small, rotate=False)
        launches, _, result = bench_profiles.recorded(routine.work(small), one)
        error = routine.criterion(small, one, result)
        if not error < 1:
            raise RejectedError(f"wrong: {error:.3g} of the allowed error")
        return launches

    def _inputs(self, case):
        """Inputs of the case, kept until another one is asked for."""
        if case not in self.inputs:
            self.inputs = {case: ROUTINES[case.routine].inputs(case)}
        return self.inputs[case]


def compile_one(job):
    """The launches of a job on a small batch, once."""
    routine, knobs, case = job
    with tuning.trial(routine, **_numbers(knobs)):
        Trials(1)._checked(replace(case, batch=CHECKED))


def _numbers(knobs):
    return {knob: int(value) if value.isdigit() else value for knob, value in knobs.items()}


if __name__ == "__main__":
    sys.exit(main())
