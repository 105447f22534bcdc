"""Threads over the matrices of a batch."""

import os
import platform
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_info

from h2gpu import batched
from h2gpu.arrays import to_host
from h2gpu.batched.device import threads
from h2gpu.batched.device.threads import one_blas_thread, parallel, pieces, tapered

FORKED = """
import os, signal, threading
import numpy as np
import scipy.linalg
from threadpoolctl import threadpool_info
from h2gpu.batched.device import threads

threads.thread_count = lambda: 2
count = lambda: [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
before = count()
assert threads.parallel(abs, range(9)) == list(range(9))
inside, leave = threading.Event(), threading.Event()

def another():
    with threads.one_blas_thread():
        inside.set()
        leave.wait()

thread = threading.Thread(target=another)
thread.start()
inside.wait()  # the child is born while another thread has BLAS limited
child = os.fork()
if child == 0:
    signal.alarm(20)  # a child that waits for its parent's threads is killed
    assert count() == before, count()
    assert threads.parallel(abs, range(9)) == list(range(9))
    assert count() == before, count()
    os._exit(0)
leave.set()
thread.join()
assert os.waitpid(child, 0)[1] == 0
"""

KEPT = """
import resource
import numpy as np
from h2gpu.batched.device import threads

threads.thread_count = lambda: 2

def work(_):
    [np.ones(12_000) for _ in range(300)]  # 29 MB, in arrays that glibc takes from its heaps from the start

def new_pages(tasks):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    threads.parallel(work, range(tasks))
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

new_pages(64)
print(new_pages(64))
"""

LATER = """
import sys
from threadpoolctl import threadpool_info
from h2gpu.batched.device import threads

assert "scipy.linalg" not in sys.modules
with threads.one_blas_thread():
    import scipy.linalg
    assert {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"} == {1}
"""

LOCKED = """
import os, signal, threading, time
import numpy as np
import h2gpu
from h2gpu import batched
from h2gpu.batched.device import threads

threads.PATIENCE = 0.2
A = np.ones((3, 2, 2))
inside, leave = threading.Event(), threading.Event()

def another():
    with threads.one_blas_thread():
        inside.set()
        leave.wait()

def told():
    try:
        batched.qr(A, mode="r")
    except RuntimeError as error:
        return str(error) == threads.FORKED
    return False

thread = threading.Thread(target=another)
thread.start()
inside.wait()
for library in threads._libraries():
    library.set_num_threads = lambda number: time.sleep(1000)  # as where the lock of BLAS is held for ever
child = os.fork()
if child == 0:
    signal.alarm(20)
    os._exit(0 if told() and told() else 1)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
assert not told()
os._exit(status)
"""


@given(st.lists(st.integers(0, 50)), st.integers(0, 100))
def test_pieces_are_consecutive_and_no_heavier_than_one_item_beyond_the_target(weights, target):
    slices = pieces(weights, target)
    assert [i for piece in slices for i in range(piece.start, piece.stop)] == list(range(len(weights)))
    for piece in slices:
        own = weights[piece]
        assert own and (len(own) == 1 or sum(own[:-1]) < target)


@given(st.lists(st.integers(0, 50)), st.integers(1, 9))
def test_tapered_slices_follow_each_other_and_leave_more_than_they_take(weights, threads):
    slices, total = tapered(weights, threads), sum(weights)
    assert [i for part in slices for i in range(part.start, part.stop)] == list(range(len(weights)))
    for part in slices:
        own, left = weights[part], sum(weights[part.start :])
        assert own and (len(own) == 1 or sum(own[:-1]) <= max(left / (2 * threads), total / (16 * threads)))


def test_parallel_keeps_the_order_and_raises_the_first_error():
    assert parallel(lambda i: i * i, range(100)) == [i * i for i in range(100)]
    assert parallel(abs, []) == []

    def fail(i):
        if i % 10 == 7:
            raise KeyError(i)

    with pytest.raises(KeyError, match="7"):
        parallel(fail, range(50))


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_blas_runs_on_one_thread_inside_and_as_before_outside():
    before = blas_threads()
    with one_blas_thread():
        assert set(blas_threads()) == {1}
    assert blas_threads() == before


def test_blas_of_scipy_is_limited_too_though_it_is_loaded_on_first_use():
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "2"}
    subprocess.run([sys.executable, "-c", LATER], check=True, timeout=60, env=environment)


def test_blas_is_as_before_when_threads_left_in_the_order_in_which_they_came():
    before, entered, left = blas_threads(), threading.Event(), threading.Event()

    def second():
        with one_blas_thread():
            entered.set()
            left.wait(20)

    thread = threading.Thread(target=second)
    with one_blas_thread():
        thread.start()
        entered.wait(20)
    assert set(blas_threads()) == {1}  # the second one still wants it
    left.set()
    thread.join()
    assert blas_threads() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_has_a_pool_of_its_own():
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", FORKED], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_process_forked_while_another_thread_held_blas_is_told_so_and_does_not_wait_for_ever():
    command = [sys.executable, "-W", "ignore", "-c", LOCKED]
    assert subprocess.run(command, timeout=60).returncode == 0


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="others have no such limits")
def test_what_a_task_freed_serves_the_next_one():
    """Few new pages, where 64 tasks would take 7,000 each."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    command = [sys.executable, "-c", KEPT]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, env=environment)
    assert int(done.stdout) < 3000


def test_work_in_a_cache_is_that_of_all_in_order(monkeypatch, xp):
    A = batched.MatrixBatch.from_stack(xp.asarray(np.random.default_rng(0).random((7, 3, 2))))
    B = batched.MatrixBatch.from_stack(xp.asarray(np.random.default_rng(1).random((7, 3, 2))))

    def work(A, B):
        return batched.frobenius_norms(batched.axpy(A, B, 2.0))

    whole = work(A, B)
    for most, parts in ((1, 7), (12, 4), (1 << 18, 1)):
        monkeypatch.setattr(threads, "CACHED", most)
        found = threads.in_cache(work, A, B)
        assert len(found) == (parts if xp is np else 1)
        np.testing.assert_array_equal(to_host(xp.concatenate(found)), to_host(whole))


def test_work_inside_of_work_ends(monkeypatch):
    """Each task asks for batched work that is itself large enough for the pool, with all threads of it at work."""
    monkeypatch.setattr(threads, "thread_count", lambda: 2)
    A = np.random.default_rng(0).standard_normal((6, 40, 30))
    found, done = [], threading.Event()

    def work():
        found.extend(parallel(lambda _: (batched.qr(A, mode="r"), parallel(abs, range(-4, 0)))[1], range(8)))
        done.set()

    threading.Thread(target=work, daemon=True).start()  # at worst it waits for ever
    assert done.wait(20)
    assert found == [[4, 3, 2, 1]] * 8


LITTLE = """
import resource, sys
from pathlib import Path
import numpy as np
from h2gpu.batched.device import threads
from h2gpu.batched.qr import lapack

threads.thread_count = lambda: 3
threads._libraries()
held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
limit = held + int(sys.argv[1]) * 10**6
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
T = np.ones((8, 200))
try:
    done = threads.parallel(lambda k: lapack.factor(T.copy()), range(4))
    print(len(done), "alone" if threads._pool() is None else "together")
except MemoryError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc, limits the address space")
@pytest.mark.parametrize(
    ("more", "expected"), [(30, "expected 70 MB more of address space, for the buffers of BLAS"), (150, "4 alone")]
)
def test_blas_is_asked_for_nothing_where_its_buffers_have_no_room(more, expected):
    """It would wait for ever; and where there is room for one thread, the caller works alone."""
    command = [sys.executable, "-c", LITTLE, str(more)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == expected, done.stderr


@pytest.mark.parametrize("started", [0, 1, 2])
def test_where_no_thread_can_be_started_the_caller_works(started, monkeypatch):
    """As in too little address space; none that was started stays behind."""
    start, left, before = threading.Thread.start, [started], threading.active_count()

    def refusing(self):
        if not left[0]:
            raise RuntimeError("can't start new thread")
        left[0] -= 1
        start(self)

    threads._pool.cache_clear()
    monkeypatch.setattr(threads, "thread_count", lambda: 3)
    monkeypatch.setattr(threading.Thread, "start", refusing)
    done = []
    try:
        assert parallel(lambda k: done.append(k) or k * k, range(20)) == [k * k for k in range(20)]
        assert sorted(done) == list(range(20)) and threads._pool() is None
        assert threading.active_count() <= before
    finally:
        threads._pool.cache_clear()


def test_work_beside_other_work_has_a_thread_of_its_own(monkeypatch):
    """Each waits for the other: one after the other they would wait for ever. Inside such work there is no more."""
    monkeypatch.setattr(threads, "thread_count", lambda: 2)
    met = threading.Barrier(2, timeout=10)

    def work():
        met.wait()
        names = threads.beside(threading.current_thread, threading.current_thread)
        return parallel(lambda k: k * k, range(20)), set(names) == {threading.current_thread()}

    squares, own = [k * k for k in range(20)], threading.current_thread()
    assert threads.beside(work, lambda: met.wait() * 0 or threading.current_thread()) == ((squares, True), own)
    here = threading.current_thread
    assert all(parallel(lambda k: set(threads.beside(here, here)) == {here()}, range(9)))


@pytest.mark.parametrize("count", [2, 3, 5])
def test_as_many_threads_as_cores_share_the_tasks_of_work_beside(count, monkeypatch):
    """One of them once the other work is done: tasks that wait for each other would wait for ever."""
    monkeypatch.setattr(threads, "thread_count", lambda: count)
    threads._pool.cache_clear()
    alone, together = threading.Event(), threading.Barrier(count, timeout=10)

    def task(k):
        if k == 0:
            alone.wait(10)
        else:
            together.wait()
        return threading.current_thread(), parallel(lambda i: threading.current_thread(), range(3)), k

    try:
        for _ in range(3):
            found, _ = threads.beside(lambda: parallel(task, range(1 + 3 * count)), alone.set)
            who, inside, numbers = zip(*found)
            assert list(numbers) == list(range(1 + 3 * count))
            assert len(set(who)) == count and threading.current_thread() not in who
            assert all(set(others) == {own} for own, others in zip(who, inside))
    finally:
        threads._pool.cache_clear()


@pytest.mark.parametrize("stops", ["h2gpu-beside_", "h2gpu_"])
def test_a_task_beside_that_fails_ends_all_wherever_it_ran(stops, monkeypatch):
    monkeypatch.setattr(threads, "thread_count", lambda: 2)
    threads._pool.cache_clear()
    done, met = [], threading.Barrier(2, timeout=10)

    def task(k):
        if k < 2 and met.wait() < 2 and threading.current_thread().name.startswith(stops):
            raise KeyError(stops)
        done.append(k)

    with pytest.raises(KeyError, match=stops):
        threads.beside(lambda: parallel(task, range(9)), lambda: None)
    assert len(done) == 8
    assert threads.beside(lambda: parallel(abs, range(9)), lambda: 5) == (list(range(9)), 5)
    assert not threads._side().submit(lambda: hasattr(threads._here, "offers")).result()


@pytest.mark.parametrize("count", [1, 2])
def test_errors_of_either_side_are_raised_when_both_have_ended(count, monkeypatch):
    monkeypatch.setattr(threads, "thread_count", lambda: count)
    done = []

    def fail():
        raise KeyError("here")

    with pytest.raises(KeyError, match="here"):
        threads.beside(fail, lambda: done.append("other"))
    with pytest.raises(KeyError, match="here"):
        threads.beside(lambda: time.sleep(0.05) or done.append("work"), fail)
    assert done == ["other", "work"][:count]


@pytest.mark.parametrize(
    ("mine", "ranks", "all_cores", "share"),
    [(8, 1, 8, 8), (8, 4, 8, 2), (6, 4, 8, 1), (2, 4, 2, 1), (2, 4, 8, 2), (4, 2, 8, 4)],  # the last two: bound
)
@pytest.mark.parametrize("name", threads.RANKS_HERE)
def test_ranks_of_one_host_share_its_cores(name, mine, ranks, all_cores, share, monkeypatch):
    """Without the launcher's binding each would start as many threads as there are cores."""
    for other in threads.RANKS_HERE:
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setattr(threads, "cores", lambda: set(range(mine)))
    monkeypatch.setattr(os, "cpu_count", lambda: all_cores)
    monkeypatch.setenv(name, str(ranks))
    threads.ranks_here.cache_clear()  # asked once a process
    try:
        assert threads.thread_count() == share
    finally:
        threads.ranks_here.cache_clear()


@pytest.mark.parametrize("siblings", [1, 2])
@pytest.mark.parametrize(("mine", "ranks", "shares"), [(8, 1, False), (8, 4, True), (8, 3, True), (2, 4, False)])
def test_ranks_of_one_host_keep_to_cores_that_no_other_has(mine, ranks, shares, siblings, monkeypatch):
    """Of hyperthreads of one core, numbered half of all apart, both are one rank's where shares are even."""
    kept = []
    monkeypatch.setattr(threads, "cores", lambda: set(range(mine)))
    monkeypatch.setattr(threads, "ranks_here", lambda: ranks)
    monkeypatch.setattr(threads, "first_sibling", lambda core: core % (mine // siblings))
    monkeypatch.setattr(os, "cpu_count", lambda: mine)
    monkeypatch.setattr(os, "sched_setaffinity", lambda process, cores: kept.append(list(cores)))
    for rank in range(ranks):
        threads.share_cores(rank)
    assert len(kept) == (ranks if shares else 0)
    assert all(len(share) == mine // ranks for share in kept)
    assert len(set().union(*kept)) == sum(map(len, kept))
    if mine // ranks % siblings == 0:
        assert all(len({threads.first_sibling(core) for core in share}) == len(share) // siblings for share in kept)


SHARED = """
import os
import numpy as np
import scipy.linalg
from threadpoolctl import threadpool_info
from h2gpu.batched.device import threads

count = lambda: {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}
(before,) = count()
os.cpu_count, threads.cores = lambda: before, lambda: set(range(before))
threads.share_blas()
assert count() == {max(1, before // 2)}, (before, count())
with threads.one_blas_thread():
    assert count() == {1}
assert count() == {max(1, before // 2)}
"""


def test_ranks_of_one_host_share_its_cores_for_blas_too():
    environment = os.environ | {"MPI_LOCALNRANKS": "2", "OPENBLAS_NUM_THREADS": "2"}
    done = subprocess.run([sys.executable, "-c", SHARED], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
