"""The batched routines that are timed: their nominal work, and that their results are right."""

import numpy as np
import nvrtc
import pytest

from h2gpu import batched
from h2gpu.apps.benchmarks.routines import linear as linear_routines
from h2gpu.apps.benchmarks.routines import nominal, spot_checks
from h2gpu.apps.benchmarks.routines.batched import ROUTINES, Case
from h2gpu.apps.benchmarks.routines.blas import BLAS
from h2gpu.apps.benchmarks.routines.linear import LINEAR
from h2gpu.batched import MatrixBatch
from h2gpu.batched.device import compiler


@pytest.fixture
def rng():
    return np.random.default_rng(3)


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
        X, Y = A[:, :12, :5], B
        assert spot_checks.axpy(1.5, X, Y, dtype(1.5) * X + Y) <= 1 < spot_checks.axpy(1.5, X, Y, dtype(1.5) * X - Y)
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


METHODS = [(name, method) for name in LINEAR for method in ("", *LINEAR[name].kernels)]


@pytest.mark.gpu
@pytest.mark.parametrize(("name", "method"), METHODS)
def test_linear_systems_on_the_device_are_right(name, method):
    routine, case = ROUTINES[name], Case(name, "float32", 5, (30, 30), method=method)
    (one,) = routine.inputs(case, rotate=False)
    assert 0 <= routine.criterion(case, one, routine.work(case)(one)) < 1
    assert 0 <= routine.criterion(case, one, routine.call(case)(one)) < 1


@pytest.mark.skipif(nvrtc.library() is None, reason="no NVRTC: pip install nvidia-cuda-nvrtc")
def test_the_holding_kernel_compiles():
    options = [*compiler.options("studies/hold.cuh"), "-arch=sm_90"]
    assert len(nvrtc.compiled('#include "studies/hold.cuh"\n', options, ["studies::hold"]).code) > 0
