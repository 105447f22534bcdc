"""QR and SVD by the vendor, as Boukaram et al. (2018) compare with them: figures 4 and 10b.

    QR     cuBLAS geqrfBatched; Q, which it does not form, by cuSOLVER's orgqr, looped over streams
    SVD    cuSOLVER's gesvd, looped over 20 streams: left vectors and values

Both want matrices by columns, as MAGMA does, whose R is timed where there is a library (magma.py). Their transposes are
laid out beforehand, which nobody's time contains.
"""

import ctypes

from h2gpu.apps.benchmarks.peers import blas, magma
from h2gpu.apps.benchmarks.peers.linear import LETTERS, in_place, places_of
from h2gpu.apps.benchmarks.peers.peers import grown
from h2gpu.apps.benchmarks.peers.streams import Streams

STREAMS = 20  # the paper's


def times(routine, arrays):
    """Peers of "qr", "qr_r" or "svd" of (batch, m, n) CuPy arrays in rotation, m ≥ n; none of wide ones."""
    import cupy

    if arrays[0].shape[1] < arrays[0].shape[2]:
        return []
    by_columns = [cupy.ascontiguousarray(A.swapaxes(1, 2)) for A in arrays]
    if routine == "svd":
        return [gesvd(by_columns)]
    vendors = qr(by_columns, routine == "qr")  # loads cuBLAS, which MAGMA's library needs
    return [vendors, *(magma.times(arrays[0], by_columns) if routine == "qr_r" else [])]


def qr(arrays, with_q):
    """The Peer of matrices by columns, (batch, n, m): R and reflectors, and Q in their place."""
    import cupy

    room = cupy.empty_like(arrays[0])
    places, taus = places_of(room), places_of(tau := cupy.empty(room.shape[:2], room.dtype))
    if not with_q:
        factor = lambda *_: geqrf(room, places, taus)  # noqa: E731
        return in_place("cuBLAS geqrfBatched", arrays, factor, 0, room=room)
    former = QFormer(room.shape, room.dtype)

    def work(A):
        some = room[: len(A)]
        some[...] = A  # which takes as good as nothing beside the loop
        geqrf(some, places, taus)
        former.form(some, tau)

    try:
        name = f"cuBLAS geqrfBatched, cuSOLVER orgqr on {STREAMS} streams"
        return grown(name, work, [(A,) for A in arrays], few=STREAMS)
    finally:
        former.streams.close()


def geqrf(A, places, taus):
    """Reflectors and R of matrices by columns, in place.

    places, taus   addresses of the matrices, and of n numbers for each, on the device
    """
    library, handle = blas.cublas()
    (batch, n, m), wrong = A.shape, ctypes.c_int()
    name = f"cublas{LETTERS[A.dtype.name].upper()}geqrfBatched"
    first, second = (ctypes.c_void_p(array.data.ptr) for array in (places, taus))
    status = getattr(library, name)(handle, m, n, first, m, second, ctypes.byref(wrong), batch)
    if status or wrong.value:
        raise RuntimeError(f"{name}: status {status}, argument {-wrong.value}")


class QFormer:
    """orgqr of matrices by columns (batch, n, m), a stream after another."""

    def __init__(self, shape, dtype):
        import cupy

        self.streams, (_, self.n, self.m), letter = Streams(STREAMS), shape, LETTERS[dtype.name]
        self.orgqr, size = (getattr(self.streams.library, f"{letter}orgqr{end}") for end in ("", "_bufferSize"))
        some = cupy.empty(shape[1:], dtype).data.ptr
        self.length = size(self.streams.handles[0], self.m, self.n, self.n, some, self.m, some)
        self.room, self.info = cupy.empty((STREAMS, self.length), dtype), cupy.empty(STREAMS, "int32")

    def form(self, A, tau):
        """Q in place of the reflectors."""
        first, step, taus, length = A.data.ptr, A[0].nbytes, tau.data.ptr, tau[0].nbytes
        room, size, info = self.room.data.ptr, self.room[0].nbytes, self.info.data.ptr

        def one(handle, s, b):
            places = first + b * step, self.m, taus + b * length, room + s * size, self.length, info + 4 * s
            self.orgqr(handle, self.m, self.n, self.n, *places)

        self.streams.each(one, len(A))


def gesvd(arrays):
    """The Peer of matrices by columns; few of them where all would take long."""
    solver = LoopedSVD(arrays[0].shape, arrays[0].dtype)
    try:
        return grown(f"cuSOLVER gesvd, {STREAMS} streams", solver, [(A,) for A in arrays], few=STREAMS)
    finally:
        solver.streams.close()


class LoopedSVD:
    """gesvd of matrices by columns (batch, n, m): `U`, left vectors by columns, and values `s` (batch, n)."""

    def __init__(self, shape, dtype):
        import cupy

        (batch, n, m), letter, self.streams = shape, LETTERS[dtype.name], Streams(STREAMS)
        self.routine = getattr(self.streams.library, letter + "gesvd")
        self.length = getattr(self.streams.library, letter + "gesvd_bufferSize")(self.streams.handles[0], m, n)
        self.A, self.U = (cupy.empty(shape, dtype) for _ in range(2))
        self.s, self.room = cupy.empty((batch, n), dtype), cupy.empty((STREAMS, self.length + n), dtype)
        self.info = cupy.zeros(batch, "int32")

    def __call__(self, A):
        """The first matrices, as many as A has; A stays as it is."""
        count, n, m = A.shape
        self.A[:count] = A
        left, none, size = ord("S"), ord("N"), A.dtype.itemsize
        of_A, of_U, of_s, room, info = (x.data.ptr for x in (self.A, self.U, self.s, self.room, self.info))
        step, line = n * m * size, self.room[0].nbytes

        def one(handle, s, b):
            work = room + s * line
            to = of_s + b * n * size, of_U + b * step, m, of_U + b * step, m  # right vectors: not asked for
            rest = work, self.length, work + self.length * size, info + 4 * b
            self.routine(handle, left, none, m, n, of_A + b * step, m, *to, *rest)

        self.streams.each(one, count)
