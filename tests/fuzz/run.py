"""python tests/fuzz/run.py [--seconds S] [--seed N] [--battery NAME …] [--copies N] [--case K]: batteries, a table.

--device cuda: the batteries of numerics on the GPU, and those of its faults ("device: …"), which other runs leave out.

    make fuzz-short   some seconds a battery          make fuzz TIME=3600   as long as you like

Each battery runs in a process of its own, so that a crash or a hang is a finding and the next case goes on. The seed is
printed; `--seed N --battery NAME --case K` runs one case again, with its traceback.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import cases_batched
import cases_cache
import cases_commands
import cases_device
import cases_environment
import cases_expressions
import cases_faults
import cases_files
import cases_kriging
import cases_matrices
import cases_structure
from battery import BATTERIES, VARIABLE, frames, work

from h2gpu.texts import plain

MODULES = (
    cases_batched, cases_cache, cases_commands, cases_device, cases_environment, cases_expressions, cases_faults,
    cases_files, cases_kriging, cases_matrices, cases_structure,
)  # fmt: skip
ON_DEVICE = "numerics: ", "device: "  # batteries that `--device cuda` runs
MOST_FINDINGS, SHOWN = 1000, 3  # of a battery, then it ends; of which these are shown


@dataclass
class Result:
    """What came of one battery with one seed, or of several together."""

    name: str
    seed: int = 0
    words: Counter = field(default_factory=Counter)
    findings: list = field(default_factory=list)
    seconds: float = 0.0

    @property
    def cases(self):
        return self.words.total() + len(self.findings)


def main(argv=None):
    p = argparse.ArgumentParser(description="Random cases against oracles.")
    p.add_argument("--seconds", type=float, default=10.0, help="for each battery (default 10)")
    p.add_argument("--cases", type=int, default=10**9, help="of each battery at most")
    p.add_argument("--seed", type=int, help="default: drawn, and printed")
    p.add_argument(
        "--copies", type=int, default=1, help="each battery so often, with the seeds that follow (default 1)"
    )
    p.add_argument("--battery", action="append", choices=sorted(BATTERIES), help="default: all; may be repeated")
    p.add_argument("--case", type=int, help="run this one case in this process, with its traceback")
    p.add_argument("--device", choices=("cpu", "cuda"), default=os.environ.get(VARIABLE, "cpu"))
    p.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="batteries at a time")
    p.add_argument("--worker", type=int, help=argparse.SUPPRESS)  # its first case
    a = p.parse_args(argv)
    seed = int.from_bytes(os.urandom(4)) if a.seed is None else a.seed
    os.environ[VARIABLE] = a.device
    names = a.battery or _usual(a.device)
    if a.worker is not None:
        work(names[0], seed, a.worker, a.cases, a.seconds)
        return 0
    if a.case is not None:
        with tempfile.TemporaryDirectory() as folder:
            print(*(f"{name}: {BATTERIES[name].run(seed, a.case, folder)}" for name in names), sep="\n")
        return 0
    print(f"seed {seed}", flush=True)
    with ThreadPoolExecutor(a.jobs) as pool:
        runs = [pool.submit(supervised, name, seed + k, a.seconds, a.cases) for k in range(a.copies) for name in names]
        results = [run.result() for run in runs]
    print(table(together(results)))
    for result in results:
        for number, what in result.findings[:SHOWN]:
            print(f"FOUND {result.name} --seed {result.seed} --case {number}: {what}")
    return int(any(result.findings for result in results))


def together(results):
    """Results of the same battery with several seeds, added."""
    sums = {}
    for result in results:
        to = sums.setdefault(result.name, Result(result.name))
        to.words += result.words
        to.findings += result.findings
        to.seconds += result.seconds
    return list(sums.values())


def _usual(device):
    """Names of the batteries that run where none is named."""
    there = [name for name in sorted(BATTERIES) if name.startswith(ON_DEVICE)]
    return there if device == "cuda" else [name for name in sorted(BATTERIES) if not name.startswith("device: ")]


def supervised(name, seed, seconds, cases=10**9, command=(sys.executable, __file__)):
    """The Result of a battery; a worker that dies at a case is started again at the next one."""
    result, begun, first = Result(name, seed), time.monotonic(), 0
    while first < cases and len(result.findings) < MOST_FINDINGS:
        left = seconds - (time.monotonic() - begun)
        if left <= 0:
            break
        options = "--battery", name, "--seed", seed, "--worker", first, "--seconds", left, "--cases", cases - first
        ended, last = _followed([*command, *map(str, options)], result)
        if ended:
            break
        first = last + 1
    result.seconds = time.monotonic() - begun
    return result


def _followed(command, result):
    """Whether the worker ended by itself, and its last case."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    with (
        tempfile.TemporaryFile() as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment) as worker,
    ):
        last, busy = -1, False
        for line in worker.stdout:
            said = json.loads(line)
            last, busy = said.get("begin", last), "begin" in said
            if "word" in said:
                result.words[said["word"]] += 1
            elif "finding" in said:
                result.findings.append((last, said["finding"]))
        status = worker.wait()
        if status and not busy and last < 0:
            log.seek(0)
            raise RuntimeError(f"{result.name}: the worker does not start: {log.read().decode()[-2000:]}")
        if status:
            how = "hangs" if status == 1 else f"crashes, status {status}"
            result.findings.append((last, f"{how}: {last_words(log)}"))
    return status == 0, last


def last_words(log):
    """Where a worker was when it ended, by the end of its standard error: "Aborted: hdf5.py:9 in read < …"."""
    log.seek(max(0, log.seek(0, os.SEEK_END) - 50_000))
    text = log.read().decode(errors="replace")
    why = re.findall(r"Fatal Python error: .*|Timeout \(.*", text)
    last = text[text.rindex(why[-1]) :] if why else text
    where = frames(last)
    return plain(f"{why[-1]}: {where}" if why and where else " ".join(text[-300:].split()), 600)


def table(results):
    """Markdown: a row a battery."""
    lines = ["| battery | cases | what came of them | found | seconds |", "|---|---|---|---|---|"]
    for r in results:
        words = ", ".join(f"{count:,} {word}" for word, count in sorted(r.words.items()))
        lines.append(f"| {r.name} | {r.cases:,} | {words} | {len(r.findings)} | {r.seconds:.0f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
