"""The benchmark of the batched routines without a GPU: what is counted, compared, reported, written and drawn."""

import re
import sys
import types
import warnings

import numpy as np
import nvrtc
import pytest

from h2gpu import batched
from h2gpu.apps.autotune import kernel_report
from h2gpu.apps.benchmarks import batched as bench_batched
from h2gpu.apps.benchmarks import cases as bench_cases
from h2gpu.apps.benchmarks import spot_checks
from h2gpu.apps.benchmarks.peers import blas as blas_peers
from h2gpu.apps.benchmarks.peers import gebrd as gebrd_peers
from h2gpu.apps.benchmarks.peers import linear as linear_peers
from h2gpu.apps.benchmarks.peers import peers
from h2gpu.apps.benchmarks.report import plots as bench_plots
from h2gpu.apps.benchmarks.report import profiles as bench_profiles
from h2gpu.apps.benchmarks.report import tables
from h2gpu.apps.benchmarks.routines import linear as linear_routines
from h2gpu.apps.benchmarks.routines import nominal
from h2gpu.apps.benchmarks.routines.batched import ROUTINES, Case
from h2gpu.apps.benchmarks.routines.blas import BLAS
from h2gpu.apps.benchmarks.routines.linear import LINEAR
from h2gpu.apps.benchmarks.routines.spectra import singular_values
from h2gpu.batched import MatrixBatch
from h2gpu.batched import systems as linear
from h2gpu.batched.device import compiler

CASES = list(bench_cases.chosen(bench_cases.GROUPS, bench_cases.DTYPES, False))


@pytest.fixture
def rng():
    return np.random.default_rng(3)


# What is measured


def test_the_cases_are_those_of_the_figures():
    sizes = {(case.figure, case.batch, case.shape) for case in CASES}
    for n in (32, 64, 128, 256, 512):
        assert {("4a", 1000, (n, n)), ("4a", 200, (n, n))} <= sizes
    orders = {(case.figure, case.method) for case in CASES if case.shape == (32, 32) and case.routine == "lu"}
    figures = bench_cases.FIGURE_OF_LU.values()
    assert {(figure, method) for figure in figures for method in bench_cases.LU_METHODS} <= orders
    assert set(bench_cases.LU_METHODS) == {*ROUTINES["lu"].kernels, "auto"} == set(linear.LU_METHODS)
    assert ("4b", 1000, (1024, 32)) in sizes and ("10", 200, (512, 512)) in sizes and ("12", 200, (512, 512)) in sizes
    methods = {case.method for case in CASES if case.figure == "5, 8"}
    assert methods == set(ROUTINES["svd"].kernels) and {case.dtype for case in CASES} == set(bench_cases.DTYPES)
    assert len(set(CASES)) == len(CASES)
    assert all(case.table in bench_batched.ABOUT and case.label for case in CASES)


def test_targets_of_float32_are_half():
    for double, single in zip(bench_cases.targets("float64"), bench_cases.targets("float32")):
        assert double.shape == single.shape and (double.target_ms or 0) == 2 * (single.target_ms or 0)
        assert double.target_ms or double.spectrum == "flat" or double.routine == "gemm"


def test_the_randomized_svd_is_timed_with_the_samples_of_kblas_too(monkeypatch):
    cases = [case for case in bench_cases.targets("float64") if case.routine == "rsvd"]
    assert [case.samples for case in cases] == [64, 72] and len({case.target_ms for case in cases}) == 1
    assert len({case.label for case in cases}) == 2
    drawn, routine = [], ROUTINES["rsvd"]
    monkeypatch.setattr(batched, "rsvd", lambda A, rank, oversample, random_state: drawn.append(rank + oversample))
    for case in cases:
        routine.call(case)(None)
        assert routine.facts(case, None)["samples"] == routine.columns(case) == drawn[-1] == case.samples


def test_quick_is_a_part():
    quick = list(bench_cases.chosen(["qr", "svd"], ["float64"], True))
    assert set(quick) < set(CASES) and len(quick) < len(list(bench_cases.chosen(["qr", "svd"], ["float64"], False))) / 2


# What is counted


def test_spectra():
    for name in {case.spectrum for case in CASES} - {"", "flat"}:
        for k in (1, 5, 64, 100):
            s = singular_values(k, name)
            assert s.shape == (k,) and s[0] == 1 and (np.diff(s) <= 0).all()
    assert singular_values(100, "decaying")[-1] == pytest.approx(1e-7)
    assert np.count_nonzero(singular_values(100, "rank 64")) == 64


def test_nominal_flops_and_bounds():
    work = nominal.qr(1024, 32, "float64", False)
    assert work.flops == pytest.approx(2 * 1024 * 32**2 - 2 / 3 * 32**3)
    assert nominal.qr(1024, 32, "float64", True).flops == 2 * work.flops
    assert nominal.qr(32, 1024, "float64", False).flops == work.flops
    assert work.nbytes == 8 * (1024 * 32 + 32 * 32)
    assert nominal.qr(np.full(7, 1024), np.full(7, 32), "float64", False).flops == pytest.approx(7 * work.flops)
    product = nominal.gemm(10, 64, 64, 64, "float32")
    assert product.flops == 20 * 64**3 and product.nbytes == 120 * 64**2
    assert product.bound_ms == 1e3 * product.nbytes / nominal.MEMORY_RATE  # small products are bound by memory
    assert nominal.gebrd(2, 64, 64, "float64").flops == pytest.approx(2 * 8 / 3 * 64**3)
    assert nominal.gebrd(1, 30, 50, "float64") == nominal.gebrd(1, 50, 30, "float64")
    assert nominal.lu(3, 60, 60, "float64").flops == pytest.approx(3 * 2 / 3 * 60**3)
    assert nominal.lu(500, 32, 32, "float64").bound_ms == pytest.approx(0.0019, rel=0.02)  # by memory
    assert nominal.lu(1, 20, 50, "float64") == nominal.lu(1, 50, 20, "float64")
    svd = nominal.svd(1, 64, 64, "float64", 6)
    assert svd.flops == 6 * 32 * 63 * 8 * 64 and svd.bound_ms == pytest.approx(1e3 * svd.flops / 34e12)
    assert nominal.svd(1, 64, 64, "float64", 12).bound_ms == svd.bound_ms
    assert nominal.rsvd(1, 512, 512, "float64", 64, 72).flops > 4 * 512**2 * 72
    assert nominal.pivoted_qr(1, 64, 64, "float64", 64).flops == pytest.approx(
        nominal.qr(64, 64, "float64", False).flops
    )
    shown = svd.of(2 * svd.bound_ms)
    assert shown["of bound"] == pytest.approx(0.5) and shown["GFLOP/s"] == pytest.approx(17e3)


def test_right_results_pass_and_wrong_ones_do_not(rng):
    for dtype in (np.float64, np.float32):
        A = rng.standard_normal((6, 20, 12)).astype(dtype)
        Q, R = np.linalg.qr(A)
        assert spot_checks.qr(A, Q, R) < 1 and spot_checks.qr(A, None, R) < 1
        assert spot_checks.qr(A, Q, 1.01 * R) > 1 and spot_checks.qr(A, None, 1.01 * R) > 1
        assert spot_checks.qr(A, Q, R + 0.1) == np.inf
        U, s, Vt = np.linalg.svd(A, full_matrices=False)
        assert spot_checks.svd(A, U, s, Vt) < 1 and spot_checks.svd(A, U, s[..., None]) < 1
        assert spot_checks.svd(A, U, 1.01 * s) > 1 and spot_checks.svd(A, U[:, :, ::-1], s[:, ::-1]) == np.inf
        assert spot_checks.svd(A, U + 0.01, s, Vt) > 1 and spot_checks.svd(A, np.nan * U, s) == np.inf
        missed = np.linalg.norm(s[:, 5:], axis=1).max()
        kept = np.concatenate([U[:, :, :5], 0 * U[:, :, 5:]], axis=2)
        d, e = batched.bidiagonalize(A, "none")
        assert spot_checks.bidiagonal(A, d, e) < 1 < spot_checks.bidiagonal(A, d, 1.01 * e)
        assert spot_checks.truncated(A, kept, 1.01 * missed) < 1 < spot_checks.truncated(A, kept, 0.9 * missed)
        assert spot_checks.truncated(A, 1.01 * kept, 2 * missed) > 1
        LU, piv = batched.lu_factor(A)
        assert spot_checks.lu(A, LU, piv) < 1 < spot_checks.lu(A, LU + dtype(0.01) * np.triu(LU[:, :1]), piv)
        assert spot_checks.lu(A, LU, piv[:, ::-1]) > 1 and spot_checks.lu(A, 2 * LU, piv) == np.inf
        S = linear_routines.positive(A[:, :12])
        L = batched.cholesky(S)
        assert spot_checks.cholesky(S, L) < 1 < spot_checks.cholesky(S, dtype(1.01) * L)
        assert spot_checks.cholesky(S, L + dtype(1)) == np.inf
        b = A[:, 0]
        x = batched.cholesky_solve(L, b)
        assert spot_checks.cholesky_solution(L, x, b) < 1 < spot_checks.cholesky_solution(L, dtype(1.01) * x, b)
        B = rng.standard_normal((6, 12, 5)).astype(dtype)
        assert spot_checks.gemm(A, B, A @ B) < 1 and spot_checks.gemm(A, B, A @ B + dtype(0.01)) > 1


@pytest.mark.parametrize("name", [name for name in ROUTINES if name != "block_multiply"])
def test_routines_on_the_cpu_are_right_and_counted(name, rng):
    square = "gemm" in name or name in ("symv", "trsm", "cholesky", "cholesky_solve")
    routine, shape = ROUTINES[name], (24, 24) if square else (30, 24)
    case = Case(name, "float64", 9, (*shape, 5) if name == "trsm" else shape)
    one = (rng.standard_normal((9, *shape)) * np.exp(-0.7 * np.arange(24))) @ np.linalg.qr(
        rng.standard_normal((24, 24))
    )[0]
    if name == "qr_ragged":
        one = MatrixBatch.from_matrices([M[: 20 + b] for b, M in enumerate(one)])
    if name.startswith("cholesky"):
        one = linear_routines.positive(one)
        one = (batched.cholesky(one), rng.standard_normal((9, 24))) if name == "cholesky_solve" else one
    if name in BLAS:
        A = one + one.swapaxes(1, 2) if name == "symv" else one
        A = np.tril(A) + 2 * np.eye(24) if name == "trsm" else A
        one = A, rng.standard_normal((9, *routine.other(case.shape)))
    if "gemm" in name:
        one = one, rng.standard_normal((9, *shape))
        one = tuple(map(MatrixBatch.from_stack, one)) if name == "gemm_ragged" else one
    result = routine.call(case)(one)
    if name == "svd":  # as decompose returns it
        result = result, np.array([5] * 9 + [0])
        assert routine.facts(case, result) == {"sweeps": 5.0, "most sweeps": 5}
    assert 0 <= routine.criterion(case, one, result) < 1.001
    assert routine.nominal(case, one, result).bound_ms > 0
    if name == "truncated_svd":
        assert 15 < routine.facts(case, result)["rank"] < 24


def test_kernels_by_their_mangled_names():
    assert kernel_report.name("_Z8svd_gramIdLi32ELb0ELi8EEvPKxii") == "svd_gram"
    assert kernel_report.instance("_Z8svd_gramIdLi32ELb0ELi8EEvPKxii") == "svd_gram<double, 32, false, 8>"
    assert kernel_report.instance("_Z4holdy") == "hold" and kernel_report.instance("something") == "something"
    assert kernel_report.instance("_Z5pairsIfLin3E3SumIdEEvv") == "pairs<float, -3, …>"
    assert {bench_profiles.phase_of(kernel) for kernel in ("gemm", "thin_product", "thin_parts")} == {"products"}
    assert (
        bench_profiles.phase_of("householder_qr") == "QR" and bench_profiles.phase_of("gather") == bench_profiles.REST
    )


def test_q_takes_what_r_alone_does_not():
    case = next(c for c in CASES if c.figure == "4a" and c.batch == 200 and c.routine == "qr" and c.shape == (64, 64))
    alone = next(c for c in CASES if (c.routine, c.batch, c.shape, c.dtype) == ("qr_r", 200, (64, 64), case.dtype))
    rows = [bench_batched.described(case) | {"ms": 4.0}, bench_batched.described(alone) | {"ms": 1.0}]
    assert [(r["phase"], r["ms"], r["share"]) for r in bench_profiles.of_qr(rows)] == [("R", 1, 0.25), ("Q", 3, 0.75)]
    assert bench_profiles.of_qr(rows[:1]) == []


METHODS = [(name, method) for name in LINEAR for method in ("", *LINEAR[name].kernels)]


@pytest.mark.gpu
@pytest.mark.parametrize(("name", "method"), METHODS)
def test_linear_systems_on_the_device_are_right(name, method):
    routine, case = ROUTINES[name], Case(name, "float32", 5, (30, 30), method=method)
    (one,) = routine.inputs(case, rotate=False)
    assert 0 <= routine.criterion(case, one, routine.work(case)(one)) < 1
    assert 0 <= routine.criterion(case, one, routine.call(case)(one)) < 1


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
    L, B = ROUTINES["trsm"].inputs(Case("trsm", dtype, 5, (9, 9, 3)), rotate=False)[0]
    X = B.copy()
    blas_peers.trsm(linear_peers.places_of(L), linear_peers.places_of(X), B)
    assert spot_checks.gemm(L, X, B) < 1
    for name, shape in (("symv", (9, 9)), ("trsm", (9, 9, 3))):
        pairs = ROUTINES[name].inputs(Case(name, dtype, 50, shape))
        assert all(peer.matrices == 50 and np.isfinite(peer.ms) for peer in blas_peers.times(name, pairs))


# What is compared and reported


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
    theirs = [np.stack(parts) for parts in zip(*map(gebrd_peers.gebrd, A.copy()))]
    for mine, other in zip(ours, theirs):
        np.testing.assert_allclose(np.abs(mine), np.abs(other), rtol=0, atol=1e4 * np.finfo(dtype).eps)
    peer = gebrd_peers.lapack(A)
    assert peer.matrices == 3 and peer.ms > 0 and "LAPACK" in peer.name


def test_odd_products_are_compared_with_their_neighbours():
    def row(n, rate):
        return {"routine": "gemm", "dtype": "float64", "shape": f"{n}³", "GFLOP/s": rate}

    rows = bench_batched.with_neighbours([row(32, 10.0), row(33, 5.0), row(63, 9.0), row(64, 12.0), row(127, 3.0)])
    assert [r.get("of even size") for r in rows] == [None, 0.5, 0.75, None, None]
    rows = bench_batched.with_neighbours([row(5, 1.0), row(6, 1.0), row(7, 3.0)])
    assert [r.get("of neighbours") for r in rows] == [None, 0.5, None]
    assert bench_batched.dips(rows) == {"float64": "6³"}
    target = [row(n, 10.0) | {"figure": bench_cases.GEMM_TARGET} for n in (32, 33)]
    assert [r.get("target of even size") for r in bench_batched.with_neighbours(target)] == [None, 0.85]
    sizes = {case.shape[0] for case in bench_cases.targets("float64") if case.routine == "gemm"}
    assert sizes == {32, 33, 64, 65, 127, 128}


def test_peers_that_fail_leave_our_row(monkeypatch):
    bench, case, asked = bench_batched.Bench(with_peers=True), next(bench_cases.lu("float64")), []
    monkeypatch.setattr(ROUTINES["lu"], "inputs", lambda case: [np.eye(8)[None]])
    monkeypatch.setattr(bench_batched.bench_profiles, "recorded", lambda work, one: ([], 0.0, work(one)))
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


def test_failing_rows_are_told(monkeypatch, capsys):
    bench = bench_batched.Bench(with_peers=False)
    gpu = FakeCupy(monkeypatch)
    monkeypatch.setattr(bench, "measured", lambda case: 1 / 0)
    bench.add(CASES[0])
    (row,) = bench.tables["targets"]
    assert bench.failed == 1 and row["note"].startswith("ZeroDivisionError") and row["ms"] is None
    assert "ZeroDivisionError" in capsys.readouterr().out
    gpu.broken = True
    with pytest.raises(bench_batched.FailureError, match="the device failed after qr float64"):
        bench.add(CASES[0])
    monkeypatch.setattr(bench, "measured", lambda case: None)  # a method that this size does not admit
    gpu.broken = False
    bench.add(CASES[0])
    assert len(bench.tables["targets"]) == 2


class FakeCupy:
    """As much of CuPy as Bench.add asks."""

    broken = False

    def __init__(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "cupy", self)
        self.cuda = self

    def Device(self):
        return self

    def synchronize(self):
        if self.broken:
            raise RuntimeError("illegal address")

    def get_default_memory_pool(self):
        return self

    def free_all_blocks(self):
        pass


# What is written and drawn


def test_tables_keep_their_circumstances(tmp_path):
    rows = [{"a": 1, "b": 2.0, "c": None}, {"a": 3, "c": "", "d": "x,y"}]
    assert tables.columns(rows) == ["a", "b", "d"]
    tables.write(tmp_path / "t.csv", rows, "Some GPU")
    about, read = tables.read(tmp_path / "t.csv")
    assert "device: Some GPU" in about and any(line.startswith("commit: ") for line in about)
    assert read == [{"a": "1", "b": "2", "d": ""}, {"a": "3", "b": "", "d": "x,y"}]
    assert tables.markdown(rows).splitlines()[2:] == ["| 1 | 2 |  |", "| 3 |  | x,y |"]
    assert tables.text([]) == ""


def measured(case, ms):
    """A row as of a run."""
    row = bench_batched.described(case) | {"ms": ms, "call ms": 2 * ms, "GFLOP/s": 5.0 / ms, "occupancy": 0.25}
    return row | bench_batched.compared(case, ms, [peers.Peer("gesvdj", 9 * ms, 9 * ms, 4)])


def test_pages_and_pictures(tmp_path):
    pytest.importorskip("matplotlib")
    found = {name: [] for name in bench_batched.ABOUT}
    for case in CASES:
        found[case.table].append(measured(case, 1e-6 * case.shape[0] ** 2 * case.shape[1]))
    found["qr"][0] |= {"ms": None, "GFLOP/s": None, "note": "failed"}
    for n in (64, 128):
        row = {"figure": "9", "routine": "svd", "method": "block-gram", "dtype": "float64", "n": n}
        found["profiles"] += [row | {"phase": phase, "ms": 1.0, "share": 0.5} for phase in ("QR", "products")]
    bench_batched.write(tmp_path, found, "Some GPU")
    page = (tmp_path / "batched.md").read_text(encoding="utf-8")
    assert page.count("- device: Some GPU") == len([rows for rows in found.values() if rows])
    assert "## QR (figure 4)" in page and "| failed |" in page and "measured elsewhere on an H200" in page
    assert bench_plots.main([str(tmp_path)]) == 0
    pictures = {path.name for path in tmp_path.glob("*.png")}
    kinds = ("qr", "svd_small", "svd_large", "gebrd", "lu", "profiles", "sizes")
    assert pictures == {f"batched_{kind}.png" for kind in kinds}


def test_profiles_without_methods_are_drawn(tmp_path):
    """Randomized SVDs alone: a column that is empty in all rows is not in the file."""
    pytest.importorskip("matplotlib")
    row = {"figure": "11", "routine": "rsvd", "method": "", "dtype": "float64", "n": 64}
    found = {name: [] for name in bench_batched.ABOUT}
    profiles = [row | {"phase": phase, "ms": 1.0, "share": 0.5} for phase in ("QR", "products")]
    bench_batched.write(tmp_path, found | {"profiles": profiles}, "Some GPU")
    assert bench_plots.main([str(tmp_path)]) == 0
    assert [path.name for path in tmp_path.glob("*.png")] == ["batched_profiles.png"]


def test_a_part_of_the_tables_leaves_the_others(tmp_path):
    found = {name: [] for name in bench_batched.ABOUT}
    bench_batched.write(tmp_path, found | {"qr": [measured(CASES[0], 1.0)]}, "First GPU")
    bench_batched.write(tmp_path, found | {"svd": [measured(CASES[0], 1.0)]}, "Second GPU")
    page = (tmp_path / "batched.md").read_text(encoding="utf-8")
    assert "- device: First GPU" in page and "- device: Second GPU" in page


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["lud"], "GROUP: expected some of targets"),
        (["--dtypes", "float16"], "--dtypes: expected"),
        (["--bogus"], "see benchmarks.batched --help"),
    ],
)
def test_wrong_arguments_are_one_line(arguments, words, capsys):
    assert bench_batched.main(arguments) == 2
    err = capsys.readouterr().err
    assert re.search(words, err) and err.startswith("benchmarks.batched: error: ") and err.count("\n") == 1


def test_shapes_in_words():
    assert ROUTINES["qr"].shown((64, 32)) == "64×32" and ROUTINES["gemm"].shown((64, 64)) == "64³"
    assert ROUTINES["qr_ragged"].shown((200, 1800, 64)) == "200…1800×64"
    assert Case("svd", "float64", 10, (4, 4), method="shared").label == "svd shared float64 10 of 4×4"


@pytest.mark.skipif(nvrtc.library() is None, reason="no NVRTC: pip install nvidia-cuda-nvrtc")
def test_the_holding_kernel_compiles():
    options = [*compiler.options("copies/hold.cuh"), "-arch=sm_90"]
    assert nvrtc.compile_cubin('#include "copies/hold.cuh"\n', options, ["copies::hold"])[0] > 0
