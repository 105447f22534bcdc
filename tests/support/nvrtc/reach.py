"""Which sizes reach which kernel: host code of the GPU on a stand-in for CuPy, kernels that do nothing.

Batches by default methods. Run as a program, it writes the table of docs/kernels/reach.md:

    python tests/support/nvrtc/reach.py
"""

from collections import defaultdict
from dataclasses import dataclass
from functools import partial

from instances import DTYPES, batch, install, untouched

SIZES = [*range(1, 33), *range(40, 257, 8)]
COUNT = 100  # matrices of a batch
TALL = 16  # times as many rows as columns
HELPERS = {"copies/signs: signs"}  # every routine that can fail


@dataclass(frozen=True)
class Kernel:
    """A kernel that does nothing but say that it was launched.

    name       room/header: kernel
    launched   receives its name
    """

    name: str
    launched: set

    max_dynamic_shared_size_bytes = local_size_bytes = 0

    def __call__(self, *_, **__):
        self.launched.add(self.name)


def install_recorders(launched):
    """Take the places of the compiler and the launches; `launched` receives the names of kernels."""
    install(set())
    from h2gpu.batched.device import compiler, launch

    def kernel(header, name, *_, **__):
        return Kernel(f"{header.removesuffix('.cuh')}: {name}", launched)

    compiler.kernel = launch.kernel = kernel
    launch.launch = lambda function, *_: function()


def ragged(n, dtype, columns=None, rows=None):
    """COUNT matrices (rows or n) × (columns or n) as a MatrixBatch, whose entries nobody reads."""
    return batch(COUNT, rows or n, columns or n, dtype)


def stack(n, dtype, columns=None):
    """The same as an array."""
    return untouched((COUNT, n, columns or n), dtype)


def routines():
    """{name: function of a size and a precision}"""
    from h2gpu import batched

    return {
        "`gemm`, an array": lambda n, dtype: batched.gemm(stack(n, dtype), stack(n, dtype)),
        "`gemm`, a MatrixBatch": lambda n, dtype: batched.gemm(ragged(n, dtype), ragged(n, dtype)),
        "`gemv`, an array": lambda n, dtype: batched.gemv(stack(n, dtype), untouched((COUNT, n), dtype)),
        "`gemv`, a MatrixBatch": lambda n, dtype: batched.gemv(ragged(n, dtype), ragged(n, dtype, 1)),
        "`symv`, an array": lambda n, dtype: batched.symv(stack(n, dtype), untouched((COUNT, n), dtype)),
        "`syrk`, an array": lambda n, dtype: batched.syrk(stack(n, dtype)),
        "`qr`": lambda n, dtype: batched.qr(ragged(n, dtype)),
        "`qr`, R alone": lambda n, dtype: batched.qr(ragged(n, dtype), "r"),
        f"`qr`, {TALL} n × n": lambda n, dtype: batched.qr(ragged(n, dtype, n, TALL * n)),
        f"`qr`, {TALL} n × n, R alone": lambda n, dtype: batched.qr(ragged(n, dtype, n, TALL * n), "r"),
        "`bidiagonalize`": lambda n, dtype: batched.bidiagonalize(ragged(n, dtype)),
        "`svd`": lambda n, dtype: batched.svd(ragged(n, dtype)),
        "`lu_factor`": lambda n, dtype: batched.lu_factor(ragged(n, dtype)),
        "`solve`, one right-hand side": lambda n, dtype: batched.solve(ragged(n, dtype), ragged(n, dtype, 1)),
        "`inv`": lambda n, dtype: batched.inv(ragged(n, dtype)),
        "`cholesky`": lambda n, dtype: batched.cholesky(ragged(n, dtype)),
    }


def reached():
    """{(routine, kernel): {precision: sizes}}"""
    launched, found = set(), defaultdict(partial(defaultdict, list))
    install_recorders(launched)
    for name, call in routines().items():
        for dtype in DTYPES:
            for n in SIZES:
                launched.clear()
                call(n, dtype)
                for kernel in sorted(launched - HELPERS):
                    found[name, kernel][dtype].append(n)
    return found


def spans(sizes):
    """Sizes as "1–16, 40–64": runs of neighbours among SIZES."""
    runs = []
    for k in map(SIZES.index, sizes):
        if runs and runs[-1][1] == k - 1:
            runs[-1][1] = k
        else:
            runs.append([k, k])
    return ", ".join(str(SIZES[a]) if a == b else f"{SIZES[a]}–{SIZES[b]}" for a, b in runs)


def table():
    """Markdown: a line a routine and kernel."""
    lines = ["| routine | kernel | float64 | float32 |", "|---|---|---|---|"]
    for (routine, kernel), sizes in reached().items():
        lines.append(f"| {routine} | `{kernel}` | {' | '.join(spans(sizes[dtype]) or '–' for dtype in DTYPES)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
