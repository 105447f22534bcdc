"""Exact quotients and roots beside the fast ones: cases, sentences, a picture, kernels as they are launched."""

import importlib.util

import numpy as np
import pytest

from h2gpu.apps.benchmarks.report import tables
from h2gpu.apps.studies import small
from h2gpu.apps.studies.baselines import fast_math
from h2gpu.batched import registers
from h2gpu.batched.device import compiler


def test_cases_fit_into_registers_and_the_flag_touches_their_precision():
    cases = list(fast_math.cases())
    assert {case.figure for case in cases} == {"IV", "V"} and {case.dtype for case in cases} == {"float32"}
    assert all(small.grid_of(case) is not None for case in cases)
    assert {case.n for case in cases if case.figure == "IV"} == set(small.THREAD_SIZES)


def test_medians_are_told_and_drawn(tmp_path, drawn):
    rows = [
        {"figure": figure, "routine": routine, "batch": 9, "n": n, "ms": 1.0, "penalty": penalty}
        for figure, n in (("IV", 8), ("V", 32))
        for routine, penalty in (("lu", 0.01), ("qr", 0.05), ("lstsq", 0.3))
    ]
    told = list(fast_math.conclusion(rows))
    assert told[0] == "section IV, all: 5.0% in the median, 30.0% at most" and len(told) == 8
    tables.write(tmp_path / "study_fast_math-cuda.csv", rows, "Some GPU")
    drawn("study_fast_math-cuda")


@pytest.mark.gpu
@pytest.mark.parametrize("routine", fast_math.ROUTINES["IV"])
@pytest.mark.parametrize("layout", ["thread", "2d"])
def test_kernels_get_what_the_library_gives_them(routine, layout):
    """The same numbers as by the public function."""
    if (routine, layout) == ("cholesky", "2d"):
        pytest.skip("Cholesky is a thread's")
    case = small.Case("IV", routine, layout, "float32", 5, 6, 6)
    A, rest = fast_math.arrays(case)
    fast_math.launched(compiler.kernel(*fast_math.instance(case)), case, A, rest)
    found = rest[fast_math.result_of(case)].get()
    if routine == "lstsq":
        expected = registers.least_squares(A, rest[0], layout)[0]
    else:
        expected = getattr(registers, routine)(A, layout, return_info=True)[0]
    np.testing.assert_array_equal(found.ravel(), expected.get().ravel())


@pytest.mark.gpu
def test_the_table(tmp_path, monkeypatch, untimed):
    if not importlib.util.find_spec("cupy_backends"):  # the flag is the GPU's compiler's
        monkeypatch.setattr(fast_math, "hurried", compiler.kernel)
    monkeypatch.setitem(fast_math.SIZES, "IV", (4,))
    monkeypatch.setitem(fast_math.SIZES, "V", (16,))
    assert fast_math.main(["--output", str(tmp_path)]) == 0
    _, rows = tables.read(tmp_path / "study_fast_math-cuda.csv")
    assert {(r["figure"], r["routine"]) for r in rows} == {
        (f, r) for f, names in fast_math.ROUTINES.items() for r in names
    }
    assert all(float(r["difference"]) < 1000 for r in rows)
