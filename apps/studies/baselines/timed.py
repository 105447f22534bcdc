"""Times of work that is many small launches: as one CUDA graph on a GPU, CPU time of all threads on a CPU.

Python takes longer to ask for a launch than a small kernel for its work; a graph is asked for once.
"""

import statistics
import time

import numpy as np
from threadpoolctl import threadpool_limits

from h2gpu.apps.benchmarks import timing
from h2gpu.apps.benchmarks.report import tables
from h2gpu.arrays import array_module
from h2gpu.batched.device.threads import thread_count

CPU_REPEATS = 3


def kept(cases, rows_of, path, device):
    """Rows of all cases, printed and written also where something ends the study before the last."""
    found = []
    try:
        for case in cases:
            found.extend(rows_of(*case))
    finally:
        if found:
            print(tables.text(found), flush=True)
            tables.write(path, found, device)
    return found


def on_copy(of, work):
    """work() on the array `of`, as a function of what is copied there first; on a GPU as a graph.

    work   reads and writes the same arrays each time, waits for nothing and asks for no memory once it has run
    """
    again = work if array_module(of) is np else recorded(work)

    def whole(A):
        of[...] = A
        again()
        return of

    return whole


def in_turn(array):
    """Copies that no cache of a GPU holds together; on a CPU the array alone."""
    return [array] if array_module(array) is np else timing.rotation(array)


def milliseconds(work, inputs, xp):
    """Median of work(input), inputs taken in turn: the device's on a GPU, those of all threads on a CPU."""
    if xp is not np:
        return timing.device_ms(work, inputs)
    return statistics.median(cpu_ms(work, inputs[0]) for _ in range(CPU_REPEATS))


def rates(work, ms, xp):
    """What nominal.Work says of a time; of a GPU's bound on a GPU alone."""
    return {name: value for name, value in work.of(ms).items() if xp is not np or name != "of bound"}


def cpu_ms(work, one):
    """Milliseconds of work(one), of all threads."""
    begin = time.process_time()
    work(one)
    return 1e3 * (time.process_time() - begin)


def lapack_ms(work, A, often):
    """Least milliseconds of work(A) by the clock, with one thread of BLAS and with all: for small matrices threads cost
    more than they gain, up to a hundredfold where the system is slow to wake them.

    often   size up to which it is done CPU_REPEATS times
    """
    least = np.inf
    for threads in {1, thread_count()}:
        with threadpool_limits(threads):
            for _ in range(CPU_REPEATS if len(A) <= often else 1):
                begin = time.perf_counter()
                work(A)
                least = min(least, time.perf_counter() - begin)
    return 1e3 * float(least)


def recorded(work):
    """A function that launches again, on a GPU, what work() launched."""
    import cupy

    work()  # compiles, and asks for memory
    stream = cupy.cuda.Stream(non_blocking=True)
    stream.wait_event(cupy.cuda.get_current_stream().record())
    with stream:
        stream.begin_capture()
        try:
            work()
        finally:
            graph = stream.end_capture()
    stream.synchronize()

    def again(held=work):  # whose arrays the graph writes
        graph.launch(cupy.cuda.get_current_stream())

    return again
