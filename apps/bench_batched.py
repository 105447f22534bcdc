"""How fast are the batched routines, against their bounds and against PyTorch in the same run?

    python -m h2gpu.apps.bench_batched [--routines qr,qr_r,qr_ragged,gemm,block_multiply] [--name batched]

Medians by CUDA events over rotating inputs larger than the L2 cache. The bound is the larger of the memory time (each
input read and each output written once) and the arithmetic time at the rates below; flops are the routine's nominal
count. Writes one CSV and one Markdown table with device, versions, commit and command.
"""

import argparse
import csv
from pathlib import Path

import numpy as np

from h2gpu import batched
from h2gpu.apps import tables
from h2gpu.batched import BlockSparse, MatrixBatch
from h2gpu.batched.ragged import offsets_of

MEMORY_RATE = 4.26e12  # bytes/s read and written, measured copy on an H200
VECTOR_RATE = {"float64": 34e12, "float32": 67e12}  # flop/s, datasheet
PRODUCT_RATE = {"float64": 55.6e12, "float32": 50.8e12}  # flop/s, measured large matrix products
CACHE_BYTES = 256 << 20  # inputs in rotation hold at least so much
REPEATS, CALLS, SLOW_MS = 7, 10, 20

QR_SHAPES = [(1000, 32, 32), (1000, 64, 64), (1000, 128, 128), (200, 256, 256), (200, 512, 512), (1000, 256, 32)]
QR_SHAPES += [(1000, 1024, 32), (1000, 1280, 64), (20000, 16, 16), (100000, 8, 8)]
RAGGED = [(20000, 200, 1800, 64), (30000, 200, 1000, 20), (5000, 256, 3000, 121), (20000, 200, 1000, 16)]
RAGGED += [(100, 200, 1800, 64), (500, 400, 3000, 343)]
GEMM_ORDERS = [(80000, 16), (80000, 32), (80000, 33), (20000, 63), (20000, 64), (20000, 65), (3000, 127), (3000, 128)]
COLUMNS = ["routine", "dtype", "batch", "shape", "ms", "GFLOP/s", "GB/s", "of bound", "peer", "peer ms", "times faster"]


def milliseconds(work, inputs):
    """The median time of work(input) in ms, inputs taken in turn."""
    import cupy

    def span(calls):
        start, stop = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        for i in range(calls):
            work(inputs[i % len(inputs)])
        stop.record()
        stop.synchronize()
        return cupy.cuda.get_elapsed_time(start, stop) / calls

    span(1)  # compiles
    once = span(1)
    if once > SLOW_MS**2:
        return once
    return float(np.median([span(1 if once > SLOW_MS else CALLS) for _ in range(REPEATS)]))


def rotation(make, nbytes):
    """As many inputs as exceed the cache together."""
    return [make() for _ in range(max(1, min(16, -(-CACHE_BYTES // max(1, nbytes)))))]


def qr_flops(m, n):
    """Nominal flops of R by Householder; Q costs the same again."""
    m, n = np.maximum(m, n).astype(float), np.minimum(m, n).astype(float)
    return float(np.sum(2 * m * n**2 - 2 / 3 * n**3))


def row(routine, dtype, batch, shape, ms, flops, nbytes, rate, peer=("", None)):
    """One line of the table."""
    bound = 1e3 * max(nbytes / MEMORY_RATE, flops / rate)
    name, peer_ms = peer
    result = [routine, np.dtype(dtype).name, batch, shape, f"{ms:.4f}", f"{flops / ms * 1e-6:.0f}"]
    result += [f"{nbytes / ms * 1e-6:.0f}", f"{bound / ms:.2f}", name if peer_ms else ""]
    return result + ([f"{peer_ms:.4f}", f"{peer_ms / ms:.1f}"] if peer_ms else ["", ""])


def peer_time(name, arrays):
    """(name, ms) of a PyTorch routine on the same arrays, where PyTorch is installed."""
    try:
        import torch
    except ImportError:
        return name, None
    work = {"torch.linalg.qr": torch.linalg.qr, "torch.geqrf": torch.geqrf, "torch.bmm": lambda M: torch.bmm(*M)}[name]
    tensors = [tuple(map(torch.from_dlpack, a)) if isinstance(a, tuple) else torch.from_dlpack(a) for a in arrays]
    return name, milliseconds(work, tensors)


def bench_qr(dtype, mode="reduced"):
    import cupy

    for batch, m, n in QR_SHAPES:
        size = batch * m * n * np.dtype(dtype).itemsize
        arrays = rotation(lambda b=batch, m=m, n=n: cupy.random.standard_normal((b, m, n), dtype=dtype), size)
        ms = milliseconds(lambda A: batched.qr(A, mode), arrays)
        peer = peer_time("torch.linalg.qr" if mode == "reduced" else "torch.geqrf", arrays)
        times, triangle = (2, n * n / (m * n)) if mode == "reduced" else (1, n * n / (m * n))
        flops = times * batch * qr_flops(np.array(m), np.array(n))
        name = "QR with Q" if mode == "reduced" else "QR, R alone"
        yield row(
            name,
            dtype,
            batch,
            f"{m}×{n}",
            ms,
            flops,
            size * (times + triangle),
            VECTOR_RATE[np.dtype(dtype).name],
            peer,
        )


def bench_qr_r(dtype):
    yield from bench_qr(dtype, "r")


def bench_qr_ragged(dtype):
    import cupy

    for batch, low, high, n in RAGGED:
        m = np.random.default_rng(0).integers(low, high, batch)
        A = MatrixBatch.empty(m, np.full(batch, n), dtype, cupy)
        A.buffer[:] = cupy.random.standard_normal(A.buffer.size, dtype=dtype)
        ms = milliseconds(lambda A: batched.qr(A, "r"), [A])
        nbytes = A.nbytes + batch * n * n * A.dtype.itemsize
        flops = qr_flops(m, np.full(batch, n))
        yield row("QR ragged, R alone", dtype, batch, f"{low}…{high}×{n}", ms, flops, nbytes, VECTOR_RATE[A.dtype.name])


def bench_gemm(dtype):
    import cupy

    rate = PRODUCT_RATE[np.dtype(dtype).name]
    for batch, n in GEMM_ORDERS:
        size = batch * n * n * np.dtype(dtype).itemsize
        pairs = rotation(lambda b=batch, n=n: tuple(cupy.random.standard_normal((2, b, n, n), dtype=dtype)), 2 * size)
        ms = milliseconds(lambda M: batched.gemm(*M), pairs)
        yield row("GEMM", dtype, batch, f"{n}³", ms, 2.0 * batch * n**3, 3 * size, rate, peer_time("torch.bmm", pairs))
        ragged = [tuple(map(MatrixBatch.from_stack, pair)) for pair in pairs]
        ms = milliseconds(lambda M: batched.gemm(*M), ragged)
        yield row("GEMM as ragged", dtype, batch, f"{n}³", ms, 2.0 * batch * n**3, 3 * size, rate)


def bench_block_multiply(dtype):
    """A symmetric band of blocks like a nearfield, and one of small blocks like compressed couplings."""
    import cupy

    for clusters, low, high, band in ((16384, 40, 65, 8), (65536, 12, 30, 12), (2000, 100, 140, 10)):
        sizes = np.random.default_rng(0).integers(low, high, clusters)
        columns = np.repeat(np.arange(clusters), band)
        rows = columns + np.tile(np.arange(band), clusters)
        columns, rows = columns[rows < clusters], rows[rows < clusters]
        blocks = MatrixBatch.empty(sizes[rows], sizes[columns], dtype, cupy)
        blocks.buffer[:] = cupy.random.standard_normal(blocks.buffer.size, dtype=dtype)
        starts = offsets_of(sizes)
        A = BlockSparse(blocks, rows, columns, starts[:-1], starts[:-1], True)
        for sides in (1, 16):
            x = cupy.random.standard_normal((int(starts[-1]), sides), dtype=dtype)
            ms = milliseconds(lambda x, A=A: batched.block_multiply(A, x, len(x)), [x])
            nbytes, flops = A.nbytes + 2 * x.nbytes, 4.0 * blocks.buffer.size * sides
            shape = f"{len(A)} blocks {low}…{high - 1}, {sides} right"
            yield row("block multiply", dtype, clusters, shape, ms, flops, nbytes, PRODUCT_RATE[blocks.dtype.name])


BENCHES = {
    "qr": bench_qr,
    "qr_r": bench_qr_r,
    "qr_ragged": bench_qr_ragged,
    "gemm": bench_gemm,
    "block_multiply": bench_block_multiply,
}


def main(arguments=None):
    """Run the benchmarks asked for, print their table, write it as CSV and Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--routines", default=",".join(BENCHES), help="comma-separated: " + ", ".join(BENCHES))
    parser.add_argument("--dtypes", default="float64,float32")
    parser.add_argument("--output", type=Path, default=Path("benchmarks"), help="folder of the tables")
    parser.add_argument("--name", default="batched", help="name of the tables, without ending")
    options = parser.parse_args(arguments)
    rows = []
    for routine in options.routines.split(","):
        for dtype in options.dtypes.split(","):
            for line in BENCHES[routine](np.dtype(dtype)):
                rows.append(line)
                print(" | ".join(map(str, line)), flush=True)
    about = tables.circumstances(tables.device_name("cuda"))
    options.output.mkdir(parents=True, exist_ok=True)
    with (options.output / f"{options.name}.csv").open("w", newline="", encoding="utf-8") as file:
        file.writelines(f"# {line}\n" for line in about)
        csv.writer(file).writerows([COLUMNS, *rows])
    table = ["| " + " | ".join(map(str, line)) + " |" for line in (COLUMNS, ["---"] * len(COLUMNS), *rows)]
    text = "\n".join(["# Batched routines", "", *(f"- {line}" for line in about), "", *table, ""])
    (options.output / f"{options.name}.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
