"""make sanitize: every kernel's small cases under NVIDIA's compute-sanitizer, on a machine with a device.

    memcheck    accesses outside of an allocation, leaks        racecheck   hazards in shared memory
    synccheck   barriers that some threads do not meet          initcheck   global memory read before it is written

The tests marked gpu of FILES run once under each tool; with --jobs in slices of a few tests, many at once. With
--reached, the folder that `reached` has written, those alone that reach every kernel, then every instance: the cheapest
first, so that a limit cuts off what adds least, and the kernels and instances that ran under each tool are counted. A
report is let pass only where FALSE names its tool and kernel with the reason; all others are printed, and the exit
status is 1.
Reference: the Compute Sanitizer manual, NVIDIA.
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent))
from reached import in_order, kernel, read

ROOT = Path(__file__).parents[3]
TOOLS = "memcheck", "racecheck", "synccheck", "initcheck"
FILES = (
    "batched/copies", "batched/products", "batched/registers", "batched/qr", "batched/bidiagonal", "batched/svd",
    "batched/systems", "batched/least_squares", "batched/test_batched_gpu.py", "blocksparse", "clustering",
    "covariance", "h2matrix/test_h2matrix_products.py", "h2matrix/test_chebyshev.py", "h2matrix/skeletons",
    "h2matrix/test_construction.py", "h2matrix/test_compression.py", "solvers", "apps/studies",
    "apps/benchmarks/test_timing.py",
)  # fmt: skip
LARGE = "many or large or huge or graph or time or cublas"  # hours under a tool, where small sizes reach every kernel
UNINITIALIZED = "Uninitialized __global__ memory read of size 16 bytes"  # not of an entry, unless it is of 16 bytes
FALSE = (  # (tool, pattern of what is said, pattern of the kernel, reason): reports that were looked at and are none
    (
        "racecheck",
        ".*",
        "systems::lu_column",
        "of what is left of a loop unrolled by 4, ptxas 13.0 reads v[j] and v[j + 1] at once, the second of which is "
        "another thread's, and goes nowhere: no other access is reported",
    ),
    (
        "racecheck",
        ".*",
        "systems::lu_shared",
        "reports name what one panel writes and the next one reads, with __syncthreads between, and only instances of "
        "which some warps met at a barrier of their own before (systems/block/meet.cuh); support/emulator/races.h "
        "follows barriers of both kinds, and finds no race there",
    ),
    (
        "initcheck",
        UNINITIALIZED,
        "blocksparse::panel_products",
        "panels travel in pieces of 16 bytes, wherever rows begin: the last one brings along what lies behind the last "
        "entry, within the allocation, and zeros take its place (cut_off in blocksparse/warp/panel_stage.cuh); "
        "test_what_lies_beside_the_entries_of_panels_is_not_used puts NaN there",
    ),
    (
        "initcheck",
        UNINITIALIZED,
        "products::gemv_run",
        "the same of a run of matrices: nothing reads what the last piece brings along; "
        "test_what_lies_beside_a_run_of_matrices_is_not_used puts NaN there",
    ),
)
REPORT = re.compile(r"^=+ (?P<what>(?:Invalid|Error|Race|Barrier|Uninitialized|Leaked|Program hit).*)$")
KERNEL = r"(?:at|by) .*?(?P<kernel>\w+(?:::\w+)*)(?:<.*)?\("
PLACE = re.compile(rf"^=+ +{KERNEL}.*$")
RACE = re.compile(rf"^Error: Race reported between \w+ access {KERNEL}.*$")
DETAIL = re.compile(r"^=+ +(?P<detail>(?:and|at|by) .*)$")
DETAILS = 3  # lines below a report that are kept: the other access, or place and thread


class Report(NamedTuple):
    """What is wrong, in which kernel ("" if none is named), and the lines below that say where or beside what."""

    what: str
    kernel: str
    details: tuple


def reports(output):
    """Every Report in the tool's output."""
    found, open_ = [], False
    for line in output.splitlines():
        if match := REPORT.match(line):
            race = RACE.match(match["what"])
            found.append(Report(match["what"], race["kernel"] if race else "", ()))
            open_ = True
        elif open_ and (match := DETAIL.match(line)):
            what, kernel, details = found[-1]
            place = PLACE.match(line)
            found[-1] = Report(
                what, kernel or (place["kernel"] if place else ""), (*details, match["detail"])[:DETAILS]
            )
        else:
            open_ = False
    return found


def unexplained(tool, output, false=FALSE):
    """The reports that no entry of FALSE explains."""

    def explained(report):
        said = report.what, report.kernel
        return any(tool == t and all(map(re.fullmatch, patterns, said)) for t, *patterns, _ in false)

    return [report for report in reports(output) if not explained(report)]


def main(argv=None):
    a = _options(argv)
    if a.program is None:
        print("sanitize: error: expected compute-sanitizer of the CUDA toolkit in the PATH", file=sys.stderr)
        return 2
    known = read(a.reached) if a.reached else {}
    if a.reached and not known:
        print(f"sanitize: error: expected what `reached` has written, found nothing in {a.reached}", file=sys.stderr)
        return 2
    slices = [list(a.files)] if a.jobs == 1 and not known else _slices(a.files, a.each, known)
    if not slices:
        print(f"sanitize: error: expected tests marked gpu, found none in {' '.join(a.files)}", file=sys.stderr)
        return 2
    work = [(tool, tests) for tests in slices for tool in a.tool or TOOLS]
    devices, until = a.devices.split(",") if a.devices else [None], time.monotonic() + a.limit
    done, bad = Counter(), []
    with ThreadPoolExecutor(a.jobs) as pool:
        runs = {pool.submit(_run, a.program, *job, devices[k % len(devices)], until): job for k, job in enumerate(work)}
        for run in as_completed(runs):
            (tool, tests), (output, returned) = runs[run], run.result()
            bad.append(_told(tool, tests, output, returned))
            done.update((tool, test) for test in tests if not bad[-1])
    if known:
        _tell_reach(a.tool or TOOLS, done, known)
    print(f"{bad.count(False)} of {len(work)} runs without reports")
    return int(any(bad))


def _options(argv):
    p = argparse.ArgumentParser(description="compute-sanitizer over the small cases of every kernel")
    p.add_argument("--tool", choices=TOOLS, action="append", help="default: all four")
    p.add_argument("--program", default=shutil.which("compute-sanitizer"), help="default: the one in the PATH")
    p.add_argument("--jobs", type=int, default=1, help="slices of tests that run at once; default: all tests in one")
    p.add_argument("--each", type=int, default=12, help="tests of a slice")
    p.add_argument("--devices", default="", help="numbers of GPUs for the slices in turn, separated by commas")
    p.add_argument("--reached", type=Path, help="folder of what the tests launch: the fewest that launch all of it")
    p.add_argument("--limit", type=float, default=86_400, help="seconds; what has not ended by then is told")
    p.add_argument("files", nargs="*", default=FILES, help="under tests/; default: every room with kernels")
    return p.parse_args(argv)


def _told(tool, tests, output, returned):
    """Print what a run found; whether that is bad."""
    left, passed = unexplained(tool, output), re.search(r"\d+ passed", output)
    bad = bool(left or not passed or returned)
    found = f"{len(reports(output))} reports, {len(left)} unexplained, tests: {passed[0] if passed else 'none passed'}"
    print(f"{tool}: {found}, {tests[0]} …" if len(tests) > 1 else f"{tool}: {found}, {tests[0]}", flush=True)
    for (what, name, details), times in Counter(left).items():
        print(f"  {name or '?'}: {what}" + f" ({times} times)" * (times > 1), *details, sep="\n    ")
    if bad and not left:
        print(*output.splitlines()[-8:], sep="\n")
    return bad


def _tell_reach(tools, done, known):
    """How many kernels and instances of all that are known ran under each tool, and the kernels that did not."""
    every = frozenset().union(*(reached.instances for reached in known.values()))
    for tool in tools:
        ran = frozenset().union(*(reached.instances for test, reached in known.items() if done[tool, test]))
        kernels, all_kernels = set(map(kernel, ran)), set(map(kernel, every))
        print(f"{tool}: {len(kernels)} of {len(all_kernels)} kernels, {len(ran)} of {len(every)} instances")
        for header, name in sorted(all_kernels - kernels):
            print(f"  not reached: {header} {name}")


def _slices(files, each, known=()):
    """Names of the tests of the files, so many together; of what is known to reach kernels the fewest, in order."""
    listed = subprocess.run(_pytest(files, "--collect-only"), cwd=ROOT, capture_output=True, text=True, check=False)
    names = [line.removeprefix("tests/") for line in listed.stdout.splitlines() if "::" in line]
    if known:
        names = in_order(names, known)
    return [names[i : i + each] for i in range(0, len(names), each)]


def _pytest(files, *more):
    tests = [str(ROOT / "tests" / file) for file in files]
    options = ["-q", "-m", "gpu", "-k", f"not ({LARGE})", "-p", "no:cacheprovider"]
    return [sys.executable, "-m", "pytest", *options, *more, *tests]


def _run(program, tool, files, device, until):
    """Output and status of a run; of one that did not end in time what it said, and that."""
    command = [program, "--tool", tool, "--target-processes", "all", "--print-limit", "0", *_pytest(files)]
    place = {"SANITIZED": tool} | ({} if device is None else {"CUDA_VISIBLE_DEVICES": device})
    left = until - time.monotonic()
    if left <= 0:
        return "not begun: the limit", 1
    options = {"cwd": ROOT, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "env": os.environ | place}
    with subprocess.Popen(command, start_new_session=True, **options) as process:
        try:
            said, _ = process.communicate(timeout=left)
            return said.decode(errors="replace"), process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            said, _ = process.communicate()
            return said.decode(errors="replace") + "\nnot ended: the limit", 1


if __name__ == "__main__":
    sys.exit(main())
