"""The cases of the batched routines' benchmark: those of the figures, and their spectra."""

import numpy as np
import pytest

from h2gpu import batched
from h2gpu.apps.benchmarks import batched as bench_batched
from h2gpu.apps.benchmarks import cases as bench_cases
from h2gpu.apps.benchmarks.routines.batched import ROUTINES, Case
from h2gpu.apps.benchmarks.routines.spectra import singular_values
from h2gpu.batched import systems as linear

CASES = list(bench_cases.chosen(bench_cases.GROUPS, bench_cases.DTYPES, False))


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


def test_spectra():
    for name in {case.spectrum for case in CASES} - {"", "flat"}:
        for k in (1, 5, 64, 100):
            s = singular_values(k, name)
            assert s.shape == (k,) and s[0] == 1 and (np.diff(s) <= 0).all()
    assert singular_values(100, "decaying")[-1] == pytest.approx(1e-7)
    assert np.count_nonzero(singular_values(100, "rank 64")) == 64


def test_shapes_in_words():
    assert ROUTINES["qr"].shown((64, 32)) == "64×32" and ROUTINES["gemm"].shown((64, 64)) == "64³"
    assert ROUTINES["qr_ragged"].shown((200, 1800, 64)) == "200…1800×64"
    assert Case("svd", "float64", 10, (4, 4), method="shared").label == "svd shared float64 10 of 4×4"
