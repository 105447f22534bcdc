"""Threads over a batch on the CPU: NumPy releases the interpreter lock inside BLAS, LAPACK and array loops.

Work inside work runs where it is called: a thread of the pool that waited for others of the pool could wait for ever.
A process that was forked has none of its parent's threads, and makes a pool of its own. OpenBLAS (seen in 0.3.31) takes
a lock for some instructions of each call; in a process that was forked in that moment nobody is left to release it.
Where the address space is limited, and has no room for its buffers, it waits for ever: we ask first.
"""

import mmap
import os
import re
import threading
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from queue import SimpleQueue

import numpy as np
from threadpoolctl import ThreadpoolController

from h2gpu import arrays

LARGE = 1 << 14
CACHED = 1 << 18  # entries worked out at a time by a thread: for 4 MB and more the system gives new pages each time
FREED = (1 << 25) - (1 << 16)  # bytes: the most by which glibc (2.36) lets freed memory raise its limits
RANKS_HERE = "MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE"  # set by MPICH's launcher and Open MPI's
PATIENCE = 5.0  # seconds, after which BLAS is taken for locked for ever; it answers in less than a millisecond
BUFFERS = 70_000_000  # bytes of address space for a thread inside NumPy's and SciPy's BLAS (measured: 34 MB in each)
FORKED = (
    "this process was forked while another thread of its parent was inside BLAS, whose lock nobody can release here: "
    'start processes before threads compute, or by multiprocessing.get_context("spawn")'
)


def cores():
    """Numbers of the cores this process may use."""
    try:
        return os.sched_getaffinity(0)
    except AttributeError:  # macOS and Windows
        return set(range(os.cpu_count() or 1))


def thread_count():
    """How many cores this process may use; where MPI started several here that all may use the same, its share."""
    mine, ranks = len(cores()), ranks_here()
    if ranks == 1 or mine * ranks <= (os.cpu_count() or mine):  # bound by the launcher, to cores of its own
        return mine
    return max(1, mine // ranks)


@cache
def ranks_here():
    """How many processes an MPI launcher says it started on this host; 1 without one."""
    return largest_told(RANKS_HERE, 1)


def largest_told(names, least):
    """The largest whole number that environment variables of these names tell, at least `least`."""
    return max([least, *(int(os.environ[name]) for name in names if os.environ.get(name, "").isdigit())])


def threads_for(tasks, least):
    """Threads worth starting for so many small tasks, of which each shall have `least`."""
    return max(1, min(thread_count(), tasks // least))


@cache
def _pool():
    """A pool whose threads all run already; None where the system gives no more, as in too little address space."""
    _keep_freed()
    count = thread_count()
    if not _has_room(count + 2):  # who asks, and who works beside
        return None
    pool, all_here = ThreadPoolExecutor(count, "h2gpu", _of_the_pool), threading.Barrier(count)
    try:
        for _ in range(count):
            pool.submit(all_here.wait)
    except RuntimeError:
        all_here.abort()
        pool.shutdown(cancel_futures=True)
        return None
    return pool


def _keep_freed():
    """What threads free stays with them for their next task, up to twice FREED each.

    glibc keeps twice as much as the largest array that was given back so far. What is beyond goes to the system, and
    the next task takes new pages: 78,000 in the plan of a first `covariance_matrix` of 2^17 sites, now 14,000.
    No page of the array is touched. Where there is another library nothing happens.
    """
    np.empty(FREED, np.uint8)


@cache
def _side():
    """The thread for work beside that of the thread that asks, running already; None where the system gives no more."""
    side = ThreadPoolExecutor(1, "h2gpu-beside", _of_the_side)
    try:
        side.submit(int).result()
    except RuntimeError:
        side.shutdown(cancel_futures=True)
        return None
    return side


def _of_the_side():
    _here.beside = True


def _has_room(count):
    """Whether so many threads may be inside BLAS at once: always true where nothing limits the address space."""
    try:
        import resource
    except ImportError:  # Windows
        return True
    if resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY:
        return True
    try:
        mmap.mmap(-1, count * BUFFERS, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ).close()
    except (OSError, MemoryError):
        return False
    return True


@cache
def _room():
    """MemoryError where a first call of BLAS would wait for ever; asked once a process."""
    if not _has_room(1):
        raise MemoryError(f"expected {BUFFERS // 10**6} MB more of address space, for the buffers of BLAS")


def _of_the_pool():
    _here.pooled = True


@cache
def _libraries():
    """threadpoolctl's controllers of NumPy's BLAS and SciPy's, which has to be loaded to be seen."""
    import_module("scipy.linalg")
    return ThreadpoolController().select(user_api="blas").lib_controllers


def by_core(numbers):
    """Numbers of cores, ascending, those that are hyperthreads of one core one after the other."""
    return sorted(numbers, key=lambda number: (first_sibling(number), number))


def first_sibling(number):
    """The first hyperthread of the same core."""
    try:
        path = Path(f"/sys/devices/system/cpu/cpu{number}/topology/thread_siblings_list")
        return int(re.match(r"\d+", path.read_text(encoding="ascii"))[0])
    except (OSError, TypeError):
        return number


def share_cores(rank):
    """This process keeps to its share of the cores, where ranks of this host may all use the same ones.

    rank   its number among those of the host

    Else two ranks may meet on two hyperthreads of one core, each half as fast, and the others wait for them.
    """
    mine, share = by_core(cores()), thread_count()
    if share < len(mine) and ranks_here() * share <= len(mine) and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, mine[rank * share : (rank + 1) * share])


def share_blas():
    """BLAS has no more threads than `thread_count` from now on: ranks of one host would wait for each other's."""
    most = thread_count()
    for library in _libraries():
        if library.num_threads > most:
            library.set_num_threads(most)


class _Limit:
    """BLAS's limit of one thread, which the whole process shares: the first to want it sets it, the last lifts it.

    Libraries are asked for their number of threads alone: threadpoolctl's own limiter asks for all that it knows (a
    small `trsm` 39 in place of 29 µs).
    """

    def __init__(self):
        self._lock, self._wanted, self._before = threading.Lock(), 0, []

    def set(self):
        """Limit BLAS until `lift` was called as often."""
        with self._lock:
            self._wanted += 1  # first: whoever forks sees that BLAS may be at work
            if self._wanted == 1:
                self._before = [(library, library.num_threads) for library in _libraries()]
                self._give([1] * len(self._before))
            _here.limits = _limits_here() + 1

    def lift(self):
        """BLAS as before, unless others still want the limit."""
        with self._lock:
            if self._wanted == 1:
                self._give([count for _, count in self._before])
            self._wanted -= 1
            _here.limits = _limits_here() - 1

    def forked(self):
        """In a new process: of all threads only this one is left, and what the others wanted is void."""
        self._lock, others, self._wanted = threading.Lock(), self._wanted > _limits_here(), _limits_here()
        if others:
            asked = threading.Thread(target=self._restore, daemon=True)
            asked.start()
            asked.join(PATIENCE)
            if asked.is_alive():
                arrays.refuse(np, FORKED)

    def _restore(self):
        self._give([1 if self._wanted else count for _, count in self._before])

    def _give(self, counts):
        """Give the libraries so many threads, and let other threads do so too: threadpoolctl (seen in 3.8.0) lets only
        the thread that set a limit lift it."""
        for (library, _), count in zip(self._before, counts):
            library.set_num_threads(count)
            if hasattr(library, "clear_controlling_thread"):
                library.clear_controlling_thread()


# .pooled: a thread that does tasks of a pool; .beside: the one beside, and .offers: the queue of what
# one more thread can help with; .limits: how often this thread wants BLAS limited
_here = threading.local()
_limit = _Limit()


def _limits_here():
    return getattr(_here, "limits", 0)


def _forked():
    _pool.cache_clear()
    _side.cache_clear()
    _room.cache_clear()
    _here.pooled = _here.beside = False
    _limit.forked()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_forked)


@contextmanager
def one_blas_thread():
    """BLAS on one thread while we run threads of our own: small matrices gain nothing from BLAS's.

    Any number of threads may be inside at once; when the last one leaves, BLAS has as many threads as before the first.
    Raises MemoryError where BLAS would wait for ever, as it finds no room.
    """
    _room()
    _limit.set()
    try:
        yield
    finally:
        _limit.lift()


def parallel(work, tasks, multiplications=LARGE):
    """[work(task) for task in tasks] in order, on the threads of this process; the first error is raised.

    A task that calls `parallel` itself does that work alone: nobody waits for a thread that waits for others.

    multiplications   in a call that a task makes, on average: on one thread where they are few, because calls wait for
                      the interpreter (16,000: two threads are as fast as one; 5,000: 19 ms in place of 15)
    """
    tasks = list(tasks)
    if multiplications >= LARGE:
        return list(in_order(work, tasks))
    with one_blas_thread():
        return [work(task) for task in tasks]


def beside(work, other):
    """(work(), other()), the first by a thread of its own: while `other` has few tasks or small ones, those of `work`
    keep the threads of this process busy, one more of them once `other` is done. One after the other where there are
    none, or in work that is beside already.
    """
    pooled, already = (getattr(_here, name, False) for name in ("pooled", "beside"))
    if pooled or already or thread_count() == 1 or _pool() is None or _side() is None:
        found = other()
        return work(), found
    offers = SimpleQueue()
    future = _side().submit(_offering, offers, work)
    future.add_done_callback(lambda _: offers.put(None))
    try:
        found = other()
        for drain in iter(offers.get, None):
            _pool().submit(drain)  # not by this thread: a Ctrl-C between two tasks would lose one
    finally:
        wait([future])
    return future.result(), found


def _offering(offers, work):
    """work(), which puts among the offers what one more thread can help with."""
    _here.offers = offers
    try:
        return work()
    finally:
        del _here.offers


def _shared(work, tasks):
    """`in_order` for the thread beside: by itself and by threads of the pool, of which one waits until the thread that
    asked for all this has done its own work.

    No more threads than cores: one that the system stops while it holds the interpreter stops the others too.
    """
    futures = [Future() for _ in tasks]
    left = deque(zip(futures, tasks))

    def drain():
        before, _here.pooled = getattr(_here, "pooled", False), True
        while left:
            _next(work, left)
        _here.pooled = before

    for _ in range(min(thread_count(), len(tasks)) - 2):
        _pool().submit(drain)
    _here.offers.put(drain)
    drain()
    return (future.result() for future in futures)


def _next(work, left):
    """The next of the (future, task) that are left, unless another thread took it meanwhile."""
    try:
        future, task = left.popleft()
    except IndexError:
        return
    try:
        future.set_result(work(task))
    except BaseException as error:  # raised where all are waited for
        future.set_exception(error)


def in_order(work, tasks, xp=np):
    """work(task) of each task of a list, one by one as they are done; by the thread that asks where xp is no NumPy."""
    if xp is not np:  # a GPU has one queue
        yield from map(work, tasks)
        return
    with one_blas_thread():
        alone = len(tasks) <= 1 or getattr(_here, "pooled", False) or thread_count() == 1
        pool = None if alone else _pool()
        if pool and hasattr(_here, "offers"):
            yield from _shared(work, tasks)
        else:
            yield from (pool.map if pool else map)(work, tasks)


def in_cache(work, A, *others):
    """[work(A, others…)] of MatrixBatches; on the CPU [work of the first few, …], CACHED entries of A each, by threads.

    What these make stays in a core's cache, where that of all would be new pages.
    """
    if A.xp is not np:
        return [work(A, *others)]
    parts = pieces(A.sizes, CACHED)
    return list(in_order(lambda part: work(*(operand[part] for operand in (A, *others))), parts))


def pieces(weights, target):
    """Consecutive slices of the batch, each of about `target` total weight; at least one item a slice."""
    before = np.cumsum(weights)
    slices, start, done = [], 0, 0
    while start < len(before):
        stop = min(max(int(np.searchsorted(before, done + target)), start) + 1, len(before))
        slices.append(slice(start, stop))
        start, done = stop, before[stop - 1]
    return slices


def tapered(weights, threads):
    """Consecutive slices of the batch for so many threads: each half a thread's share of what is left, and no less than
    a sixteenth of a thread's share of all, so that threads that begin at different times end at the same.
    """
    before = np.cumsum(weights)
    total = float(before[-1]) if len(before) else 0.0
    slices, start, done = [], 0, 0.0
    while start < len(before):
        target = max((total - done) / (2 * threads), total / (16 * threads))
        stop = min(max(int(np.searchsorted(before, done + target)), start) + 1, len(before))
        slices.append(slice(start, stop))
        start, done = stop, float(before[stop - 1])
    return slices
