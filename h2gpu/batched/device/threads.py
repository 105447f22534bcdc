"""Threads over a batch on the CPU: NumPy releases the interpreter lock inside BLAS, LAPACK and array loops."""

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache

import numpy as np
from threadpoolctl import ThreadpoolController

LARGE = 1 << 14


def thread_count():
    """Cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS and Windows
        return os.cpu_count() or 1


@cache
def _pool():
    return ThreadPoolExecutor(thread_count(), thread_name_prefix="h2gpu")


@cache
def _controller():
    return ThreadpoolController()


@contextmanager
def one_blas_thread():
    """BLAS on one thread while we run threads of our own: small matrices gain nothing from BLAS's."""
    with _controller().limit(limits=1, user_api="blas"):
        yield


def parallel(work, tasks, multiplications=LARGE):
    """[work(task) for task in tasks] in order, on the threads of this process; the first error is raised.

    multiplications   in a call that a task makes, on average: on one thread where they are few, because calls wait for
                      the interpreter (16,000: two threads are as fast as one; 5,000: 19 ms in place of 15)
    """
    tasks = list(tasks)
    with one_blas_thread():
        if len(tasks) <= 1 or thread_count() == 1 or multiplications < LARGE:
            return [work(task) for task in tasks]
        return list(_pool().map(work, tasks))


def pieces(weights, target):
    """Consecutive slices of the batch, each of about `target` total weight; at least one item a slice."""
    before = np.cumsum(weights)
    slices, start, done = [], 0, 0
    while start < len(before):
        stop = min(max(int(np.searchsorted(before, done + target)), start) + 1, len(before))
        slices.append(slice(start, stop))
        start, done = stop, before[stop - 1]
    return slices
