"""Faults: kills, signals, failing writes, too little memory, racing writers. An output is the old, the new, or none.

The work is done in forked children, so that a fault comes at any moment of it and not of the start of Python.
"""

import contextlib
import errno
import io
import os
import resource
import signal
import time
from functools import cache
from pathlib import Path

import numpy as np
from battery import battery, ended, expect, in_child
from cases_commands import called
from cases_files import same
from stored import matrix, same_bits

import h2gpu
from h2gpu.apps import h2compress
from h2gpu.storage import writing
from h2gpu.storage.whole_file import whole_file

OLD, NEW = "2D", "3D"
OPTIONS = "--rtol", "1e-3", "--leaf-size", "16", "--covariance", "exponential", "--length-scale", "0.3"


def leftovers(folder):
    return [p for p in folder.iterdir() if p.name.endswith(".tmp")]


def whole(path):
    """Which of the two matrices a file is: bit for bit."""
    B = h2gpu.load(path)
    for name in (OLD, NEW):
        if same_bits(matrix(name), B):
            return name
    raise AssertionError("a file that is neither the old nor the new matrix")


def points_file(folder):
    import h5py

    path = folder / "points.h5"
    with h5py.File(path, "w") as file:
        file["points"] = np.random.default_rng(0).random((1500, 2))
    return path


def compress(path, out):
    status, _ = called(h2compress.main, path, "-o", out, *OPTIONS)
    return status


@cache
def seconds_of_saving():
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        for _ in range(5):
            h2gpu.save(matrix(NEW), Path(folder) / "a.h5")
        return (time.perf_counter() - begun) / 5


@battery("faults: save killed")
def save_killed(rng, folder):
    path = folder / "out.h5"
    h2gpu.save(matrix(OLD), path)
    wait = rng.uniform(0, 1.5) * seconds_of_saving()
    child = in_child(lambda: h2gpu.save(matrix(NEW), path))
    time.sleep(wait)
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    status = ended(child)
    expect(status in (0, -9), f"status {status}")
    kind = whole(path)
    expect(status != 0 or kind == NEW, "ended well, but the old file is there")
    expect(all(p.name == "out.h5" or p in leftovers(folder) for p in folder.iterdir()), "strange files")
    h2gpu.save(matrix(OLD), path)
    return f"{'old' if kind == OLD else 'new'} file"


@battery("faults: commands ended by signals")
def command_ended(rng, folder):
    """SIGKILL, SIGTERM and SIGINT at a random moment of a whole command."""
    path, out = points_file(folder), folder / "out.h5"
    number = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)[rng.integers(3)]
    log = folder / "stderr"

    def work():
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.dup2(os.open(log, os.O_CREAT | os.O_WRONLY), 2)
        begun.close()
        os.write(writes, b"x")
        import sys

        with contextlib.redirect_stdout(io.StringIO()):
            sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
            return h2compress.main([str(path), "-o", str(out), *OPTIONS])

    reads, writes = os.pipe()
    begun = os.fdopen(reads)
    child = in_child(work)
    os.read(reads, 1)
    time.sleep(rng.uniform(0.02, 0.8))
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, number)
    status = ended(child)
    os.close(writes)
    begun.close()
    said = log.read_text() if log.exists() else ""
    expect("Traceback" not in said or number == signal.SIGKILL, f"{said:.300}")
    expect(
        status in ((0, -9) if number == signal.SIGKILL else (0, 1, -15)), f"{number!r}: status {status}, {said:.200}"
    )
    if number != signal.SIGKILL:
        expect(not leftovers(folder), "temporary files stay")
        expect(status != 1 or said == "h2compress: error: interrupted\n", f"{said!r:.300}")
    expect(status != 0 or out.exists(), "ended well without output")
    if out.exists():
        h2gpu.load(out)
    return f"{number.name} {'too late' if status == 0 else 'in time'}"


class FailingWrites(io.RawIOBase):
    """Writes go to a file until the k-th, which the disk refuses."""

    def __init__(self, raw, k, number):
        self._raw, self._left, self._number = raw, k, number

    def write(self, data):
        if self._left == 0:
            raise OSError(self._number, os.strerror(self._number))
        self._left -= 1
        return self._raw.write(data)

    def __getattr__(self, name):
        return getattr(self._raw, name)

    readinto = property(lambda self: self._raw.readinto)
    seek = property(lambda self: self._raw.seek)
    tell = property(lambda self: self._raw.tell)
    truncate = property(lambda self: self._raw.truncate)


@cache
def writes_of_saving():
    """How many writes a save takes."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        for k in range(10**6):
            try:
                _saved_with(Path(folder) / "a.h5", k, errno.ENOSPC)
            except OSError:
                continue
            return k


def _saved_with(path, k, number):
    kept = writing.PatientFile
    writing.PatientFile = lambda raw: kept(FailingWrites(raw, k, number))
    try:
        h2gpu.save(matrix(NEW), path)
    finally:
        writing.PatientFile = kept


@battery("faults: k-th write fails")
def write_fails(rng, folder):
    path, k = folder / "out.h5", int(rng.integers(writes_of_saving() + 2))
    h2gpu.save(matrix(OLD), path)
    number = (errno.ENOSPC, errno.EIO, errno.EDQUOT)[rng.integers(3)]
    try:
        _saved_with(path, k, number)
        expect(k >= writes_of_saving() and whole(path) == NEW, f"write {k} failed, but save did not")
        return "new file"
    except OSError as error:
        expect(str(path) in str(error) and error.errno == number, f"{error}")
    expect(whole(path) == OLD and not leftovers(folder), "the old file is lost, or a temporary one stays")
    return "old file"


@battery("faults: largest file size")
def file_size(rng, folder):
    """RLIMIT_FSIZE for a whole command: the system refuses the write that passes it."""
    path, out = points_file(folder), folder / "out.h5"

    def work():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        return compress(path, out)

    limit = int(2.0 ** rng.uniform(0, 24))
    status = ended(in_child(work))
    expect(status in (0, 1), f"status {status} at {limit} bytes")
    expect(out.exists() == (status == 0) and not leftovers(folder), f"status {status}, files {list(folder.iterdir())}")
    if status == 0:
        h2gpu.load(out)
    return "written" if status == 0 else "refused"


@battery("faults: little address space")
def address_space(rng, folder):
    path, out = points_file(folder), folder / "out.h5"

    def work():
        held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        limit = held + int(2.0 ** rng.uniform(18, 29))
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        return compress(path, out)

    status = ended(in_child(work))
    expect(status in (0, 1, 2), f"status {status}")
    expect(out.exists() == (status == 0) and not leftovers(folder), f"status {status}, files {list(folder.iterdir())}")
    return "enough" if status == 0 else "refused"


@battery("faults: racing writers")
def racing(rng, folder):
    """Several processes save to one path while this one reads: each time a whole matrix."""
    path = folder / "out.h5"
    h2gpu.save(matrix(OLD), path)

    def save(name):
        for _ in range(4):
            h2gpu.save(matrix(name), path)

    children = [in_child(lambda name=name: save(name)) for name in (OLD, NEW, OLD, NEW)]
    kinds = {whole(path) for _ in range(6)}
    statuses = [ended(child) for child in children]
    expect(statuses == [0] * 4, f"{statuses}")
    whole(path)
    expect(not leftovers(folder), "temporary files stay")
    return "both seen" if len(kinds) == 2 else "one seen"


@battery("faults: threads")
def threads(rng, folder):
    """Saves, loads, products and `batched` from several threads at once, and a fork in their midst.

    Where a thread is inside BLAS at that moment, the child is told so.
    """
    from concurrent.futures import ThreadPoolExecutor

    from h2gpu.batched.device.threads import FORKED

    A = matrix(NEW)
    x = rng.standard_normal(A.shape[1])
    y, S = A @ x, rng.standard_normal((200, 12, 12))
    R = h2gpu.batched.qr(S, mode="r")

    def task(k):
        if k % 3 == 0:
            return np.array_equal(A @ x, y)
        if k % 3 == 1:
            return np.array_equal(h2gpu.batched.qr(S, mode="r"), R)
        with whole_file(folder / f"{k}.h5") as temporary:
            h2gpu.save(A, temporary)
        return same(A, h2gpu.load(folder / f"{k}.h5"), NEW)

    def alone():
        try:
            return int(not task(1))
        except RuntimeError as error:
            return 2 if str(error) == FORKED else 1

    with ThreadPoolExecutor(6) as pool:
        results = pool.map(task, range(18))
        child = in_child(alone) if rng.random() < 0.5 else None
        expect(all(results), "a thread has other numbers")
    status = ended(child) if child else None
    expect(status in (None, 0, 2), f"a forked child has other numbers, or none: {status}")
    return {None: "right", 0: "with a fork", 2: "told that BLAS is locked"}[status]
