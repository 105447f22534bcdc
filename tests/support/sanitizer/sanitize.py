"""make sanitize: every kernel's small cases under NVIDIA's compute-sanitizer, on a machine with a device.

    memcheck    accesses outside of an allocation, leaks        racecheck   hazards in shared memory
    synccheck   barriers that some threads do not meet          initcheck   global memory read before it is written

The tests marked gpu of FILES run once under each tool; with --jobs in slices of a few tests, many at once. A report is
let pass only where FALSE names its tool and kernel with the reason; all others are printed, and the exit status is 1.
Reference: the Compute Sanitizer manual, NVIDIA.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[3]
TOOLS = "memcheck", "racecheck", "synccheck", "initcheck"
FILES = (
    "batched/copies", "batched/products", "batched/registers", "batched/qr", "batched/bidiagonal", "batched/svd",
    "batched/systems", "batched/least_squares", "batched/test_batched_gpu.py", "blocksparse", "clustering",
    "covariance", "h2matrix/test_h2matrix_products.py",
)  # fmt: skip
LARGE = "many or large or huge or graph or time"  # tests that take hours under a tool; small sizes reach every kernel
FALSE = (  # (tool, pattern of the kernel, reason): reports that were looked at and are none
    (
        "racecheck",
        "systems::lu_column",
        "of what is left of a loop unrolled by 4, ptxas 13.0 reads v[j] and v[j + 1] at once, the second of which is "
        "another thread's, and goes nowhere: no other access is reported",
    ),
    (
        "racecheck",
        "systems::lu_shared",
        "reports name what one panel writes and the next one reads, with __syncthreads between, and only instances of "
        "which some warps met at a barrier of their own before (systems/block/meet.cuh); support/emulator/races.h "
        "follows barriers of both kinds, and finds no race there",
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
    return [
        report
        for report in reports(output)
        if not any(tool == t and re.fullmatch(pattern, report.kernel) for t, pattern, _ in false)
    ]


def main(argv=None):
    p = argparse.ArgumentParser(description="compute-sanitizer over the small cases of every kernel")
    p.add_argument("--tool", choices=TOOLS, action="append", help="default: all four")
    p.add_argument("--program", default=shutil.which("compute-sanitizer"), help="default: the one in the PATH")
    p.add_argument("--jobs", type=int, default=1, help="slices of tests that run at once; default: all tests in one")
    p.add_argument("--each", type=int, default=12, help="tests of a slice")
    p.add_argument("--devices", default="", help="numbers of GPUs for the slices in turn, separated by commas")
    p.add_argument("files", nargs="*", default=FILES, help="under tests/; default: every room with kernels")
    a = p.parse_args(argv)
    if a.program is None:
        print("sanitize: error: expected compute-sanitizer of the CUDA toolkit in the PATH", file=sys.stderr)
        return 2
    slices = [list(a.files)] if a.jobs == 1 else _slices(a.files, a.each)
    if not slices:
        print(f"sanitize: error: expected tests marked gpu, found none in {' '.join(a.files)}", file=sys.stderr)
        return 2
    work = [(tool, tests) for tool in a.tool or TOOLS for tests in slices]
    devices = a.devices.split(",") if a.devices else [None]
    with ThreadPoolExecutor(a.jobs) as pool:
        runs = {pool.submit(_run, a.program, *job, devices[k % len(devices)]): job for k, job in enumerate(work)}
        bad = [_told(*runs[run], *run.result()) for run in as_completed(runs)]
    print(f"{bad.count(False)} of {len(work)} runs without reports")
    return int(any(bad))


def _told(tool, tests, output, returned):
    """Print what a run found; whether that is bad."""
    left, passed = unexplained(tool, output), re.search(r"\d+ passed", output)
    bad = bool(left or not passed or returned)
    found = f"{len(reports(output))} reports, {len(left)} unexplained, tests: {passed[0] if passed else 'none passed'}"
    print(f"{tool}: {found}, {tests[0]} …" if len(tests) > 1 else f"{tool}: {found}, {tests[0]}", flush=True)
    for (what, kernel, details), times in Counter(left).items():
        print(f"  {kernel or '?'}: {what}" + f" ({times} times)" * (times > 1), *details, sep="\n    ")
    if bad and not left:
        print(*output.splitlines()[-8:], sep="\n")
    return bad


def _slices(files, each):
    """Names of the tests of the files, so many together."""
    listed = subprocess.run(_pytest(files, "--collect-only"), cwd=ROOT, capture_output=True, text=True, check=False)
    names = [line.removeprefix("tests/") for line in listed.stdout.splitlines() if "::" in line]
    return [names[i : i + each] for i in range(0, len(names), each)]


def _pytest(files, *more):
    tests = [str(ROOT / "tests" / file) for file in files]
    options = ["-q", "-m", "gpu", "-k", f"not ({LARGE})", "-p", "no:cacheprovider"]
    return [sys.executable, "-m", "pytest", *options, *more, *tests]


def _run(program, tool, files, device):
    command = [program, "--tool", tool, "--target-processes", "all", "--print-limit", "0", *_pytest(files)]
    place = {} if device is None else {"CUDA_VISIBLE_DEVICES": device}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, errors="replace", env=os.environ | place)
    return done.stdout + done.stderr, done.returncode


if __name__ == "__main__":
    sys.exit(main())
