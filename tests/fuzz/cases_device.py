"""Faults of a GPU: memory that ends at any allocation, streams and threads, forks, interrupts in the midst of kernels.

After each the device is usable, and the same work gives the same numbers, bit for bit. Only with `--device cuda`.
"""

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from battery import battery, ended, expect, in_child, one_line

import h2gpu
from h2gpu import batched, solvers
from h2gpu.arrays import to_host
from h2gpu.covariance import Exponential, Matern, Nugget
from h2gpu.statistics import Kriging

ROUGH, SMOOTH = Exponential(length_scale=0.2), Matern(length_scale=0.1, smoothness=1.5) + Nugget(0.01)


def works(rng):
    """A random piece of work → a function of the module cupy that gives arrays of the host, always the same."""
    n, seed = int(rng.integers(200, 6000)), int(rng.integers(1 << 30))

    def matrix(cp):
        points = cp.asarray(np.random.default_rng(seed).random((n, 2)))
        A = h2gpu.covariance_matrix(points, ROUGH, 1e-5)
        return A @ points, A.to_dense()[:50]

    def factorizations(cp):
        A = cp.asarray(np.random.default_rng(seed).standard_normal((1 + n // 100, 1 + n % 70, 1 + n % 70)))
        x = batched.solve(A, A[..., :1])
        return (*batched.qr(A), *batched.svd(A), x)

    def direct(cp):
        G = solvers.skeletonize(cp.asarray(np.random.default_rng(seed).random((n, 2))), SMOOTH, 0.01)
        return G.solve(cp.ones((n, 1))), np.array(G.log_determinant())

    def kriging(cp):
        points = cp.asarray(np.random.default_rng(seed).random((n, 2)))
        model = Kriging(SMOOTH, nugget=0.1, solver="iterative").fit(points, points[:, 0])
        return model.predict(points[:100] + 0.001, return_std=True)

    work = (matrix, factorizations, direct, kriging)[rng.integers(4)]

    def run():
        import cupy

        return [to_host(a) for a in work(cupy)]

    return work.__name__, run


def same(first, second):
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(first, second, strict=True))


class Failing:
    """An allocator that refuses its k-th request, and counts them."""

    def __init__(self, cupy, k):
        self.cupy, self.k, self.count = cupy, k, 0

    def __call__(self, size):
        self.count += 1
        if self.count == self.k:
            raise self.cupy.cuda.memory.OutOfMemoryError(size, 0, 0)
        return self.cupy.get_default_memory_pool().malloc(size)


@battery("device: failing allocation")
def allocation(rng, folder):
    """The k-th allocation fails: one error of memory, nothing else; then the same work is right."""
    import cupy

    name, run = works(rng)
    truth = run()
    counter = Failing(cupy, 0)
    with cupy.cuda.using_allocator(counter):
        run()
    failing = Failing(cupy, int(rng.integers(1, counter.count + 1)))
    try:
        with cupy.cuda.using_allocator(failing):
            run()
    except MemoryError as error:
        one_line(error)
    else:
        expect(failing.count < failing.k, f"{name}: allocation {failing.k} failed and nobody said so")
        return f"{name}, not reached"  # what was remembered from the runs before needs fewer
    del failing
    expect(same(run(), truth), f"{name}: other numbers after a failed allocation")
    return name


@battery("device: streams and threads")
def streams(rng, folder):
    """Work on streams of the caller's own, from several threads at once: the numbers are those of one thread."""
    import cupy

    pieces = [works(rng) for _ in range(4)]
    truths = [run() for _, run in pieces]

    def task(k):
        with cupy.cuda.Stream(non_blocking=bool(k % 3)) as stream:
            found = pieces[k % 4][1]()
            stream.synchronize()
        return same(found, truths[k % 4])

    with ThreadPoolExecutor(int(rng.integers(2, 7))) as pool:
        right = list(pool.map(task, range(8)))
    wrong = sorted({pieces[k % 4][0] for k, fine in enumerate(right) if not fine})
    expect(not wrong, f"a thread with a stream of its own has other numbers: {wrong}")
    return "right"


@battery("device: fork after use")
def fork(rng, folder):
    """A forked child is told that the GPU is its parent's; the parent works on."""
    import cupy

    name, run = works(rng)
    truth = run()
    held = cupy.asarray(rng.random((300, 2)))

    def child():
        try:
            h2gpu.covariance_matrix(held, ROUGH, 1e-3)
        except RuntimeError as error:
            one_line(error)
            return 7 if "fork" in str(error) else 8
        return 9

    status = ended(in_child(child))
    expect(status == 7, f"status {status} of the child")
    on_host = ended(in_child(lambda: int(h2gpu.covariance_matrix(np.eye(300)[:, :2], ROUGH, 1e-3).shape != (300, 300))))
    expect(on_host == 0, "a forked child does not work on its CPU")
    expect(same(run(), truth), f"{name}: other numbers after a fork")
    return name


@battery("device: interrupts")
def interrupts(rng, folder):
    """Ctrl-C at a random moment: KeyboardInterrupt and no other error; then the same work is right."""
    name, run = works(rng)
    truth = run()
    wait = float(rng.uniform(0, 0.3))
    timer = threading.Timer(wait, os.kill, (os.getpid(), signal.SIGINT))
    met = False
    try:
        try:
            timer.start()
            while timer.is_alive():
                run()
        finally:
            timer.join()
            time.sleep(0.01)  # an interrupt that has come meets this line at the latest
    except KeyboardInterrupt:
        met = True
    expect(same(run(), truth), f"{name}: other numbers after an interrupt")
    return f"{name} ended" if met else f"{name} before the signal"
