"""How long does a new user wait? Each step for the first time in a fresh process with an empty cache, and again.

    python -m h2gpu.apps.benchmarks.first_use [--device cpu|cuda] [--n 100000] [--compile] [--output FILE.csv]

On a GPU a step's row counts the kernels that it loaded: compiled ahead ("ready"), compiled now, and CuPy's own;
--compile leaves aside what was compiled ahead.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import h2gpu
from h2gpu.apps.benchmarks.compress_row import of_own_process
from h2gpu.apps.benchmarks.report import tables
from h2gpu.apps.command.command import Parser, run
from h2gpu.apps.command.inputs.words import count
from h2gpu.batched.device import compiler, machine_code
from h2gpu.covariance import Exponential
from h2gpu.statistics import Kriging

MODULE = "h2gpu.apps.benchmarks.first_use"
TARGETS = 10_000
RTOL, LENGTH, NUGGET = 1e-6, 0.1, 0.01


def main(argv=None):
    """The command; returns the exit status."""
    return run("benchmarks.first_use", _work, argv)


def _work(argv):
    parser = Parser(prog="benchmarks.first_use", description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--n", type=count, default=100_000, help="number of sites (default: 100000)")
    parser.add_argument("--compile", action="store_true", help="ignore kernels that were compiled ahead")
    parser.add_argument("--row", action="store_true", help="measure in this process, print the rows as JSON")
    parser.add_argument("-o", "--output", help="CSV file to write")
    options = parser.parse_args(argv)
    if options.row:
        print(json.dumps(measure(options.n, options.device, options.compile)))
        return
    rows = in_fresh_process(options)
    print(tables.text(rows))
    if options.output:
        tables.write(options.output, rows, tables.device_name(options.device))


def in_fresh_process(options):
    """The rows of a process of its own, with an empty cache of kernels; importing is timed by itself."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import h2gpu.statistics"], check=True)
    imported = time.perf_counter() - start
    words = ["--n", options.n, *["--compile"] * options.compile]
    with tempfile.TemporaryDirectory(prefix="h2gpu-") as cache:
        rows = of_own_process(MODULE, options.device, *words, environment={"CUPY_CACHE_DIR": cache})
    return [{"n": rows[0]["n"], "step": "python, import h2gpu", "first s": imported}, *rows]


def measure(n, device, compile_all):
    """Rows: step, seconds the first time and the second, kernels by where they came from."""
    rows = []
    if compile_all:
        machine_code.usable = lambda capability, present: []
    for name, step in _steps(n, device):
        before = _kernels(device)
        row = {"n": n, "step": name, "first s": _seconds(step, device)}
        loaded = {key: number - before[key] for key, number in _kernels(device).items()}
        rows.append(row | {"again s": _seconds(step, device)} | loaded)
    sums = {key: sum(row[key] for row in rows) for key in rows[0] if key not in ("n", "step")}
    return [*rows, {"n": n, "step": "all"} | sums]


def _steps(n, device):
    """(name, function) in the order in which a user comes to them; what one leaves, the next takes."""
    state, cov = {}, Exponential(length_scale=LENGTH)

    def arrays():
        if device == "cuda":
            import cupy as xp
        else:
            xp = np
        rng = np.random.default_rng(0)
        state["sites"], state["targets"] = xp.asarray(rng.random((n, 2))), xp.asarray(rng.random((TARGETS, 2)))
        state["values"] = xp.asarray(rng.standard_normal(n))

    def matrix():
        state["C"] = h2gpu.covariance_matrix(state["sites"], cov, RTOL)

    def product():
        state["y"] = state["C"] @ state["values"]

    def fit():
        state["model"] = Kriging(cov, NUGGET, rtol=RTOL).fit(state["sites"], state["values"])

    return (
        ("device", arrays),
        ("covariance_matrix", matrix),
        ("A @ x", product),
        ("Kriging.fit", fit),
        ("predict", lambda: state["model"].predict(state["targets"])),
        ("predict with std", lambda: state["model"].predict(state["targets"], return_std=True)),
    )


def _seconds(step, device):
    """Seconds of a step, the device's work included."""
    start = time.perf_counter()
    step()
    if device == "cuda":
        import cupy

        cupy.cuda.Device().synchronize()
    return time.perf_counter() - start


def _kernels(device):
    """How many kernels this process has by now, by where they are from; CuPy's: others that it wrote to its cache."""
    if device != "cuda":
        return {}
    compiled = len(compiler.loaded()) - machine_code.taken()
    written = len(list(Path(os.environ["CUPY_CACHE_DIR"]).glob("*.cubin")))
    return {"ready": machine_code.taken(), "compiled": compiled, "of CuPy": written - compiled}


if __name__ == "__main__":
    sys.exit(main())
