"""What the batched routines are compared with: targets, KBLAS and other libraries."""

import os
import shutil
import subprocess
import sys
import types
import warnings

import numpy as np
import pytest

from h2gpu import batched
from h2gpu.apps.benchmarks import batched as bench_batched
from h2gpu.apps.benchmarks import cases as bench_cases
from h2gpu.apps.benchmarks.peers import blas as blas_peers
from h2gpu.apps.benchmarks.peers import gebrd as gebrd_peers
from h2gpu.apps.benchmarks.peers import lapack, magma, peers
from h2gpu.apps.benchmarks.peers import linear as linear_peers
from h2gpu.apps.benchmarks.report import plots as bench_plots
from h2gpu.apps.benchmarks.routines import spot_checks
from h2gpu.apps.benchmarks.routines.batched import ROUTINES, Case
from h2gpu.apps.benchmarks.routines.linear import LINEAR

SERVED = """
import numpy as np
from threadpoolctl import threadpool_info
from h2gpu.apps.benchmarks.peers import lapack

class Connection:
    tasks = [("gebrd", np.eye(8)[None]), ("lu", np.eye(8)[None])]
    def recv(self):
        if self.tasks:
            return self.tasks.pop()
        print(*[pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"])
        raise EOFError

lapack._serve(Connection(), None)
"""


@pytest.fixture
def rng():
    return np.random.default_rng(3)


@pytest.mark.gpu
@pytest.mark.parametrize("name", LINEAR)
def test_others_solve_linear_systems(name):
    pytest.importorskip("cupy_backends")
    inputs = ROUTINES[name].inputs(Case(name, "float64", 50, (30, 30)), rotate=False)
    assert all(peer.matrices == 50 and np.isfinite(peer.ms) for peer in peers.times(name, inputs))


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_cublas_multiplies_and_solves(dtype):
    pytest.importorskip("cupy_backends")
    import cupy

    A, x = ROUTINES["gemv"].inputs(Case("gemv", dtype, 5, (7, 4)), rotate=False)[0]
    out = cupy.empty((5, 7), dtype)
    blas_peers.gemv(A, x, out)
    assert spot_checks.gemm(A, x[..., None], out[..., None]) < 1
    A, x = ROUTINES["gemv_t"].inputs(Case("gemv_t", dtype, 5, (7, 4)), rotate=False)[0]
    out = cupy.empty((5, 4), dtype)
    blas_peers.gemv(A, x, out, transposed=True)
    assert spot_checks.gemm(A.swapaxes(1, 2), x[..., None], out[..., None]) < 1
    for name, shape in (("symv", (9, 9)), ("trsm", (9, 9, 3))):
        pairs = ROUTINES[name].inputs(Case(name, dtype, 50, shape))
        assert all(peer.matrices == 50 and np.isfinite(peer.ms) for peer in blas_peers.times(name, pairs))


def test_rows_compare_with_target_kblas_and_peers():
    case = next(c for c in bench_cases.targets("float64") if c.routine == "svd" and c.shape == (64, 64))
    others = [peers.Peer("gesvdj", 2000.0, 2001.0, 4), peers.Peer("gesvda", 3.0, 3.1, 1000)]
    row = bench_batched.described(case) | bench_batched.compared(case, 1.5, others)
    assert (row["target ms"], row["of target"]) == (2.0, 0.75)
    assert row[bench_plots.KBLAS] == 19.8 and row["KBLAS / ms"] == pytest.approx(13.2)
    assert (row["peer"], row["peer / ms"], row["peer timed"]) == ("gesvdj", pytest.approx(2000 / 1.5), 4)
    assert (row["second peer"], row["second peer / ms"]) == ("gesvda", 2.0)
    assert peers.kblas_ms("svd", "float32", (1000, 64, 64), "flat") == 2.67
    assert peers.kblas_ms("svd", "float64", (1000, 63, 63), "flat") is None
    assert peers.kblas_ms("gemm", "float64", (1000, 64, 64)) is None


def test_peers_that_loop_are_scaled(monkeypatch):
    def seconds(leading, tensors):
        leading(tensors)
        return 30.0 * len(seen[-1])

    seen = []
    monkeypatch.setattr(peers.timing, "once_ms", seconds)
    peer = peers.grown("looping", seen.append, [(np.zeros((1000, 2, 2)),)])
    assert (peer.matrices, peer.ms) == (4, 30_000.0) and {len(some) for some in seen} == {4}
    for name in ("device_ms", "call_ms"):
        monkeypatch.setattr(peers.timing, name, lambda leading, tensors: 0.5)
    monkeypatch.setattr(peers.timing, "once_ms", lambda leading, tensors: 0.1)
    assert peers.grown("batched", seen.append, [(np.zeros((1000, 2, 2)),)]) == peers.Peer("batched", 0.5, 0.5, 1000)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_lapack_finds_the_same_bidiagonal_form(dtype, rng):
    """B is unique but for signs; LAPACK sees the transpose of what lies row by row."""
    A = rng.standard_normal((3, 21, 21)).astype(dtype)
    ours = batched.bidiagonalize(A.swapaxes(1, 2).copy(), vectors="none")
    before = A.copy()
    for mine, other in zip(ours, lapack.gebrd(A)):
        np.testing.assert_allclose(np.abs(mine), np.abs(other), rtol=0, atol=1e4 * np.finfo(dtype).eps)
    np.testing.assert_array_equal(A, before)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_lapack_solves_by_lu_and_by_qr(dtype, rng):
    A = (rng.standard_normal((3, 17, 17)) + 17 * np.eye(17)).astype(dtype)
    before = A.copy()
    for x in (lapack.gesv(A)[..., 0], lapack.gels(A)):
        np.testing.assert_allclose((A @ x[..., None])[..., 0], 1, atol=100 * np.finfo(dtype).eps)
    np.testing.assert_array_equal(A, before)


def test_a_process_of_lapack_has_one_thread_of_every_blas():
    """NumPy's and SciPy's: twelve processes of twelve threads each took a hundred times as long for 256 x 256."""
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "2"}
    done = subprocess.run([sys.executable, "-c", SERVED], capture_output=True, text=True, check=True, env=environment)
    assert set(done.stdout.split()) == {"1"}


@pytest.mark.slow
def test_lapack_works_in_processes(rng):
    """Times are those of all matrices: four times as many take longer, and less than ten times as long."""
    A = rng.standard_normal((40, 30, 30)).astype(np.float32)
    for routine in ("lu", "qr", "gesv", "gels"):
        (few, one), (many, cores) = lapack.milliseconds(routine, A[:10], 1), lapack.milliseconds(routine, A, 1)
        assert one == cores == 1 and few < many < 10 * few
    assert lapack.milliseconds("qr", A[:1].astype(np.complex64))[1] == 1
    peer = gebrd_peers.lapack(A[:3])
    assert peer.matrices == 3 and peer.ms > 0 and peer.name.startswith("LAPACK gebrd, processes: ")


def test_peers_that_fail_leave_our_row(monkeypatch):
    bench, case, asked = bench_batched.Bench(with_peers=True), next(bench_cases.lu("float64")), []
    monkeypatch.setattr(ROUTINES["lu"], "inputs", lambda case: [np.eye(8)[None]])
    monkeypatch.setattr(bench_batched.bench_profiles, "recorded", lambda work, one: ([], ([], 0.0), work(one)))
    monkeypatch.setattr(ROUTINES["lu"], "kernels", {})
    for name in ("device_ms", "call_ms"):
        monkeypatch.setattr(bench_batched.timing, name, lambda work, inputs: 2.0)

    def broken(routine, inputs, columns):
        asked.append(routine)
        raise RuntimeError("CUBLAS_STATUS_ALLOC_FAILED")

    monkeypatch.setattr(bench_batched.peers, "times", broken)
    assert bench.measured(case)["note"] == "peers: RuntimeError: CUBLAS_STATUS_ALLOC_FAILED"
    row = bench.measured(case)
    assert (row["ms"], row["note"], row["of allowed error"], asked) == (2.0, "", 0.0, ["lu"])


def test_whose_lu_pytorch_calls(monkeypatch):
    chosen = []

    class Torch:
        """As much of PyTorch as is asked."""

        def __init__(self, has_magma, words):
            self.words, self.cuda = words, types.SimpleNamespace(has_magma=has_magma)
            self.linalg = self.backends = self
            library = types.SimpleNamespace(preferred_linalg_library=chosen.append)
            self.backends = types.SimpleNamespace(cuda=library)

        def eye(self, n, device):
            return self

        def repeat(self, *_):
            return self

        def lu_factor_ex(self, A):
            if self.words:
                warnings.warn(self.words, stacklevel=1)

    assert linear_peers.library(Torch(True, "")) == "MAGMA" and chosen == ["magma"]
    assert linear_peers.library(Torch(True, "MAGMA is deprecated for lu_factor")) == "cuSOLVER or cuBLAS"
    assert linear_peers.library(Torch(False, "")) == "cuSOLVER or cuBLAS" and len(chosen) == 2


@pytest.mark.skipif(shutil.which("cc") is None, reason="no compiler of C")
@pytest.mark.parametrize("status", [0, -109])
def test_whose_magma_is_asked(status, monkeypatch, tmp_path):
    """The file that the environment names, where it exports the function; one that cannot be loaded tells why."""
    text = f"int magma_init(void) {{ return {status}; }} void {magma.FUNCTION}(void) {{}}"
    subprocess.run(["cc", "-shared", "-x", "c", "-", "-o", tmp_path / "ours.so"], input=text.encode(), check=True)
    (tmp_path / "broken.so").write_text("no library")
    monkeypatch.setenv(magma.PATH, str(tmp_path / "ours.so"))
    ask = magma.library.__wrapped__  # which remembers nothing
    monkeypatch.setattr(magma, "library", ask)
    if status:
        with pytest.raises(RuntimeError, match="MAGMA geqrf_batched: magma_init gives -109"):
            ask()
        return
    assert ask().magma_init() == 0
    assert [peers.note(routine) for routine in ("qr", "qr_r", "svd")] == ["MAGMA's batched QR: R alone", "", ""]
    monkeypatch.setattr(magma, "FUNCTION", "magma_of_nobody")
    words = peers.note("qr_r")
    assert words.startswith("MAGMA's batched QR: ours.so") and words.endswith("no magma_of_nobody")
    monkeypatch.setenv(magma.PATH, str(tmp_path / "broken.so"))
    with pytest.raises(OSError, match=r"broken\.so"):
        ask()


def test_without_a_library_magma_is_no_peer(monkeypatch):
    monkeypatch.setattr(magma, "library", lambda: None)
    monkeypatch.setattr(magma, "_candidates", list)
    assert magma.times(None, None) == []
    assert peers.note("qr") == "MAGMA's batched QR: no library, no magma_dgeqrf_batched_work"
