"""QR and SVD by the vendor's routines: what their arguments mean; without a GPU LAPACK stands in for the vendor."""

import ctypes
import importlib.util
import sys
import types

import numpy as np
import pytest
import scipy.linalg.lapack

from h2gpu.apps.benchmarks import timing
from h2gpu.apps.benchmarks.peers import blas, decompositions, magma
from h2gpu.apps.benchmarks.routines import criteria
from h2gpu.arrays import to_host

pytestmark = pytest.mark.gpu
SHAPE = 23, 9, 6  # more matrices than streams


@pytest.fixture
def vendor(monkeypatch):
    """cuSOLVER and cuBLAS, or LAPACK with their arguments; whether they are the vendor's own."""
    if importlib.util.find_spec("cupy_backends"):
        return True
    libs = types.ModuleType("cupy_backends.cuda.libs")
    libs.cusolver = types.SimpleNamespace(create=lambda: 1, destroy=lambda handle: None)
    for letter, dtype in (("s", np.float32), ("d", np.float64)):
        for name, function in lapack(dtype).items():
            setattr(libs.cusolver, letter + name, function)
    for name, module in (("cupy_backends", None), ("cupy_backends.cuda", None), ("cupy_backends.cuda.libs", libs)):
        monkeypatch.setitem(sys.modules, name, module or types.ModuleType(name))
    functions = {f"cublas{letter}geqrfBatched": batched_geqrf(dtype) for letter, dtype in (("S", "f4"), ("D", "f8"))}
    monkeypatch.setattr(blas, "cublas", lambda: (types.SimpleNamespace(**functions), 1))
    return False


def memory(address, shape, dtype):
    """NumPy's array of what lies at an address."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return np.frombuffer((ctypes.c_char * size).from_address(address), dtype).reshape(shape)


def lapack(dtype):
    """gesvd and orgqr with cuSOLVER's arguments; workspace is spoiled."""

    def gesvd(_, jobu, jobvt, m, n, A, lda, s, U, ldu, Vt, ldvt, work, length, rwork, info):
        assert (chr(jobu), chr(jobvt)) == ("S", "N") and m >= n and min(lda, ldu) >= m
        left, values, _ = np.linalg.svd(memory(A, (n, lda), dtype)[:, :m].T, full_matrices=False)
        memory(A, (n, lda), dtype)[...] = memory(work, length, dtype)[...] = memory(rwork, n - 1, dtype)[...] = np.nan
        memory(U, (n, ldu), dtype)[:, :m], memory(s, n, dtype)[...], memory(info, 1, "i4")[...] = left.T, values, 0

    def orgqr(_, m, n, k, A, lda, tau, work, length, info):
        function = scipy.linalg.lapack.get_lapack_funcs("orgqr", dtype=dtype)
        Q, _, failed = function(memory(A, (n, lda), dtype)[:, :m].T, memory(tau, k, dtype))
        memory(work, length, dtype)[...], memory(info, 1, "i4")[...] = np.nan, failed
        memory(A, (n, lda), dtype)[:, :m] = Q.T

    return {"gesvd": gesvd, "gesvd_bufferSize": lambda _, m, n: 5 * m, "orgqr": orgqr, "orgqr_bufferSize": lambda *_: 7}


def batched_geqrf(dtype):
    def geqrf(_, m, n, places, lda, taus, wrong, batch):
        for A, tau in zip(memory(places.value, batch, "i8"), memory(taus.value, batch, "i8")):
            of_A = memory(int(A), (n, lda), dtype)
            function = scipy.linalg.lapack.get_lapack_funcs("geqrf", dtype=np.dtype(dtype))
            qr, numbers, *_ = function(of_A[:, :m].T)
            of_A[:, :m], memory(int(tau), min(m, n), dtype)[...] = qr.T, numbers
        return 0

    return geqrf


def by_columns(dtype):
    import cupy

    A = np.random.default_rng(0).standard_normal(SHAPE).astype(dtype)
    return A, cupy.asarray(np.ascontiguousarray(A.swapaxes(1, 2)))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_reflectors_and_q_are_a_qr(vendor, dtype):
    import cupy

    A, columns = by_columns(dtype)
    tau = cupy.empty(SHAPE[::2], dtype)
    decompositions.geqrf(columns, decompositions.places_of(columns), decompositions.places_of(tau))
    R = np.triu(to_host(columns).swapaxes(1, 2)[:, : SHAPE[2]])
    former = decompositions.QFormer(columns.shape, columns.dtype)
    former.form(columns, tau)
    former.streams.close()
    assert max(criteria.qr_error(*one) for one in zip(A, to_host(columns).swapaxes(1, 2), R)) < 1


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_gesvd_by_streams_is_an_svd(vendor, dtype):
    A, columns = by_columns(dtype)
    before, solver = to_host(columns).copy(), decompositions.LoopedSVD(columns.shape, columns.dtype)
    for count in (3, len(A)):
        solver(columns[:count])
    solver.streams.close()
    np.testing.assert_array_equal(to_host(columns), before)
    results = zip(A, to_host(solver.U).swapaxes(1, 2), to_host(solver.s))
    assert max(criteria.svd_error(*one) for one in results) < 1


def test_peers_of_tall_matrices(vendor, monkeypatch):
    """A peer each, by name; wide matrices have none."""
    import cupy

    def once(name, work, inputs, *_, **__):
        work(*inputs[0])
        return name

    monkeypatch.setattr(magma, "library", lambda: None)
    monkeypatch.setattr(decompositions, "grown", once)
    monkeypatch.setattr(decompositions, "in_place", lambda name, arrays, call, *_, **__: [call(None, None), name][1])
    A = [cupy.asarray(by_columns("float64")[0])]
    found = [decompositions.times(routine, A) for routine in ("qr", "qr_r", "svd")]
    words = "cuBLAS geqrfBatched, cuSOLVER orgqr on 20 streams", "cuBLAS geqrfBatched", "cuSOLVER gesvd, 20 streams"
    assert found == [[name] for name in words]
    assert decompositions.times("qr", [A[0].swapaxes(1, 2)]) == []


def magma_of_lapack(said, spoil=0):
    """MAGMA's functions by LAPACK, with a status and what is added to the first entry of R; `open` holds its queues."""
    length, open_queues = 24, set()

    def create(device, stream, cublas, cusparse, queue, *caller):
        queue._obj.value = 7
        open_queues.add(7)

    def work(dtype):
        def geqrf(m, n, places, lda, taus, info, room, available, batch, queue):
            assert queue.value in open_queues
            if available._obj.value < 0:
                available._obj.value = length
                return 0
            batched_geqrf(dtype)(None, m, n, places, lda, taus, None, batch)
            memory(int(memory(places.value, batch, "i8")[0]), 1, dtype)[...] += spoil
            memory(room.value, available._obj.value, "u1")[...], memory(info.value, batch, "i4")[...] = 255, 0
            return said

        return geqrf

    return types.SimpleNamespace(
        magma_queue_create_from_cuda_internal=create,
        magma_queue_destroy_internal=lambda queue, *caller: open_queues.remove(queue.value),
        magma_sgeqrf_batched_work=work("f4"),
        magma_dgeqrf_batched_work=work("f8"),
        open=open_queues,
    )


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("said", "spoil", "error"), [(0, 0, None), (-8, 0, RuntimeError), (0, 1, ArithmeticError)])
def test_r_by_magma_is_checked_then_timed(vendor, monkeypatch, dtype, said, spoil, error):
    """Its queue ends whatever comes; without a GPU LAPACK stands in for it."""
    import cupy

    library = magma.library() if vendor else magma_of_lapack(said, spoil)
    if library is None or (vendor and error):
        pytest.skip("no MAGMA, or one that is right")
    monkeypatch.setattr(magma, "library", lambda: library)
    for name in () if vendor else ("device_ms", "call_ms"):
        monkeypatch.setattr(timing, name, lambda work, arrays: len([work(A) for A in arrays]))
    shape = (23, 32, 16) if vendor else SHAPE
    A = cupy.asarray(np.random.default_rng(0).standard_normal(shape).astype(dtype))
    columns = cupy.ascontiguousarray(A.swapaxes(1, 2))
    before = to_host(columns).copy()
    if error:
        with pytest.raises(error, match="MAGMA geqrf_batched: "):
            magma.times(A, [columns])
    else:
        (peer,) = magma.times(A, [columns, columns.copy()])
        assert (peer.name, peer.matrices) == ("MAGMA geqrf_batched", 23)
    np.testing.assert_array_equal(to_host(columns), before)
    assert vendor or not library.open


def test_magma_is_asked_for_r_alone(vendor, monkeypatch):
    import cupy

    monkeypatch.setattr(decompositions, "qr", lambda arrays, with_q: "cuBLAS")
    monkeypatch.setattr(magma, "times", lambda A, columns: [A.shape, columns[0].shape])
    A = [cupy.asarray(np.ones((4, 3, 2)))]
    found = [decompositions.times(routine, A) for routine in ("qr", "qr_r")]
    assert found == [["cuBLAS"], ["cuBLAS", (4, 3, 2), (4, 2, 3)]]


def test_whose_qr_is_exported():
    """What is not there, or cannot be loaded, exports nothing."""
    assert magma.exports(None, "malloc") and not magma.exports(None, magma.FUNCTION)
    assert not magma.exports("libof_nobody.so.7", "malloc")
