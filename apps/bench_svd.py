"""How fast are the batched Jacobi kernels, and how far from their bounds?

    python -m h2gpu.apps.bench_svd [--sizes 16,32,64] [--dtype float64] [--methods auto] [--peers] [--output CSV]

One line a size: milliseconds of the left vectors of a decaying spectrum (geometric to 1e-7) and of a flat one (random
matrices), sweeps, the fraction of the bound, the peer in the same run. Times are medians of CUDA events, inputs
resident; up to 128 the launches are replayed as a graph of INNER calls, which leaves the interpreter's time out.
"""

import argparse
import statistics

import numpy as np

from h2gpu.apps import tables

COUNTS = ((64, 1000), (512, 200))  # matrices a batch, up to each size
FP64_PIPE = 34e12  # flop/s; float32: twice
SWEEPS_OF_BOUND = 6
REPEATS, INNER = 9, 10
REPLAYED = 128  # largest size that is timed by a graph
LARGEST_OF_PEER = 128  # gesvdj takes seconds beyond


def count_of(n):
    return next(count for largest, count in COUNTS if n <= largest)


def decaying(count, n, dtype, cp, seed=1):
    """(count, n, n): orthogonal · geometric from 1 to 1e-7 · orthogonal."""
    rng = cp.random.default_rng(seed)
    Q = [cp.linalg.qr(rng.standard_normal((n, n)))[0] for _ in range(2)]
    spin = cp.exp(-np.log(1e7) * cp.arange(n) / max(n - 1, 1))
    mix = cp.linalg.qr(rng.standard_normal((n, n)))[0]
    A = cp.empty((count, n, n), dtype)
    for b in range(count):  # cheap: rolled copies of a few factors
        A[b] = ((Q[b % 2][cp.roll(cp.arange(n), b)] * spin) @ (mix[:, cp.roll(cp.arange(n), 3 * b)])).astype(dtype)
    return A


def flat(count, n, dtype, cp, seed=2):
    """(count, n, n) of independent normal entries."""
    return cp.random.default_rng(seed).standard_normal((count, n, n)).astype(dtype)


def median_ms(work, cp, repeats=REPEATS):
    """Median time of work() between events, after one warm-up."""
    work()
    times = []
    for _ in range(repeats):
        start, stop = cp.cuda.Event(), cp.cuda.Event()
        start.record()
        work()
        stop.record()
        stop.synchronize()
        times.append(cp.cuda.get_elapsed_time(start, stop))
    return statistics.median(times)


def replayed_ms(work, cp):
    """Median time of work() within a graph of INNER calls; for work that copies nothing from the host."""
    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        work()
        stream.synchronize()
        stream.begin_capture()
        for _ in range(INNER):
            work()
        graph = stream.end_capture()
        return median_ms(lambda: graph.launch(stream), cp) / INNER


def bound_ms(count, n, dtype):
    """SWEEPS_OF_BOUND sweeps of n(n−1)/2 rotations, 8n flops each, on the vector pipe."""
    rate = FP64_PIPE * (1 if np.dtype(dtype) == np.float64 else 2)
    return 1e3 * count * SWEEPS_OF_BOUND * n * (n - 1) / 2 * 8 * n / rate


def peer_ms(A, cp):
    """cuSOLVER's Jacobi through torch, None where torch is not installed."""
    try:
        import torch
    except ImportError:
        return None
    T = torch.as_tensor(A, device="cuda")
    slow = A.shape[1] > 32
    return median_ms(lambda: torch.linalg.svd(T, full_matrices=False, driver="gesvdj"), cp, 1 if slow else REPEATS)


def measure(n, dtype, methods, peers, cp):
    """Rows of the table for one size: every method on a decaying and on a flat spectrum, the peer beside them."""
    from h2gpu.batched.cuda_svd import decompose

    count, rows = count_of(n), []
    inputs = {"decaying": decaying(count, n, dtype, cp), "flat": flat(count, n, dtype, cp)}
    for spectrum, A in inputs.items():
        peer = peer_ms(A, cp) if peers and n <= LARGEST_OF_PEER else None
        for method in methods:
            sweeps = cp.asnumpy(decompose(A, "left", method)[1][:-1])
            time = replayed_ms if n <= REPLAYED else median_ms
            ms = time(lambda A=A, method=method: decompose(A, "left", method), cp)
            row = {
                "dtype": np.dtype(dtype).name,
                "batch": count,
                "n": n,
                "spectrum": spectrum,
                "method": method,
                "ms": ms,
            }
            row |= {
                "sweeps": float(sweeps.mean()),
                "most sweeps": int(sweeps.max()),
                "of bound": bound_ms(count, n, dtype) / ms,
            }
            row |= {"gesvdj ms": peer or "", "times faster": peer / ms if peer else ""}
            rows.append(row)
            print(tables.text(rows[-1:]), flush=True)
    return rows


def main():
    import cupy as cp

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="16,32,64,128,256,512")
    parser.add_argument("--dtype", default="float64,float32")
    parser.add_argument("--methods", default="auto")
    parser.add_argument("--peers", action="store_true", help=f"time gesvdj too, up to {LARGEST_OF_PEER}")
    parser.add_argument("--output", help="CSV file to write")
    arguments = parser.parse_args()
    rows = []
    for dtype in arguments.dtype.split(","):
        for n in map(int, arguments.sizes.split(",")):
            rows += measure(n, dtype, arguments.methods.split(","), arguments.peers, cp)
    print(tables.text(rows))
    if arguments.output:
        tables.write(arguments.output, rows, tables.device_name("cuda"))


if __name__ == "__main__":
    main()
