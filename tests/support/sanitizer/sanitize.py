"""make sanitize: every kernel's small cases under NVIDIA's compute-sanitizer, on a machine with a device.

    memcheck    accesses outside of an allocation, leaks        racecheck   hazards in shared memory
    synccheck   barriers that some threads do not meet          initcheck   global memory read before it is written

The tests marked gpu of FILES run once under each tool. A report is let pass only where FALSE names its tool and kernel
with the reason; all others are printed, and the exit status is 1. Reference: the Compute Sanitizer manual, NVIDIA.
"""

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
TOOLS = "memcheck", "racecheck", "synccheck", "initcheck"
FILES = (
    "batched/copies", "batched/products", "batched/registers", "batched/qr", "batched/bidiagonal", "batched/svd",
    "batched/systems", "batched/least_squares", "batched/test_batched_gpu.py", "blocksparse", "clustering",
    "covariance", "h2matrix/test_h2matrix_products.py",
)  # fmt: skip
LARGE = "many or large or huge or graph or time"  # tests that take hours under a tool; small sizes reach every kernel
FALSE = ()  # (tool, pattern of the kernel, reason): reports that were looked at and are none; none is known yet
REPORT = re.compile(r"^=+ (?P<what>(?:Invalid|Error|Race|Barrier|Uninitialized|Leaked|Program hit).*)$")
PLACE = re.compile(r"^=+ +(?:at|by) .*?(?P<kernel>\w+(?:::\w+)*)(?:<.*)?\(.*$")


def reports(output):
    """(what, kernel) of every report in the tool's output."""
    found = []
    for line in output.splitlines():
        if match := REPORT.match(line):
            found.append([match["what"], ""])
        elif found and not found[-1][1] and (match := PLACE.match(line)):
            found[-1][1] = match["kernel"]
    return [tuple(report) for report in found]


def unexplained(tool, output, false=FALSE):
    """The reports that no entry of FALSE explains."""
    return [
        (what, kernel)
        for what, kernel in reports(output)
        if not any(tool == t and re.fullmatch(pattern, kernel) for t, pattern, _ in false)
    ]


def main(argv=None):
    p = argparse.ArgumentParser(description="compute-sanitizer over the small cases of every kernel")
    p.add_argument("--tool", choices=TOOLS, action="append", help="default: all four")
    p.add_argument("--program", default=shutil.which("compute-sanitizer"), help="default: the one in the PATH")
    p.add_argument("files", nargs="*", default=FILES, help="under tests/; default: every room with kernels")
    a = p.parse_args(argv)
    if a.program is None:
        print("sanitize: error: expected compute-sanitizer of the CUDA toolkit in the PATH", file=sys.stderr)
        return 2
    status = 0
    for tool in a.tool or TOOLS:
        output, returned = _run(a.program, tool, a.files)
        left = unexplained(tool, output)
        passed = re.search(r"\d+ passed", output)
        tests = passed[0] if passed else "none passed"
        print(f"{tool}: {len(reports(output))} reports, {len(left)} unexplained, tests: {tests}")
        print(*(f"  {kernel or '?'}: {what}" for what, kernel in left), sep="\n")
        if left or not passed or returned:
            status = 1
    return status


def _run(program, tool, files):
    tests = [str(ROOT / "tests" / file) for file in files]
    options = ["-q", "-m", "gpu", "-k", f"not ({LARGE})", "-p", "no:cacheprovider"]
    command = [program, "--tool", tool, "--target-processes", "all", "--print-limit", "0"]
    command += [sys.executable, "-m", "pytest", *options, *tests]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, errors="replace")
    return done.stdout + done.stderr, done.returncode


if __name__ == "__main__":
    sys.exit(main())
