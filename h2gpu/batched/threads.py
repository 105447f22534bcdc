"""Threads over a batch on the CPU: NumPy releases the interpreter lock inside BLAS, LAPACK and array loops."""

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache

import numpy as np
from threadpoolctl import ThreadpoolController


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


def parallel(work, tasks):
    """[work(task) for task in tasks] in order, on the threads of this process; the first error is raised."""
    tasks = list(tasks)
    with one_blas_thread():
        if len(tasks) <= 1 or thread_count() == 1:
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
