"""LU a kernel a stage: P A = L U by every way, each stage does its part, tables and a picture."""

import numpy as np
import pytest

from h2gpu.apps.autotune import kernel_report
from h2gpu.apps.benchmarks.report import tables
from h2gpu.apps.benchmarks.routines import criteria
from h2gpu.apps.studies.baselines import lu as study_lu
from h2gpu.apps.studies.baselines import lu_stages
from h2gpu.arrays import to_host


def factored(xp, n, dtype, way, leaf):
    A = xp.asarray(study_lu.problems((3, n, n), dtype, np))
    stages = lu_stages.stages(A.copy())
    lu_stages.factor(stages, way, leaf)
    return to_host(A), to_host(stages.LU), to_host(stages.pivots)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("n, leaf", [(1, 16), (17, 16), (56, 16), (70, 32)])
def test_factors_and_interchanges_on_the_cpu(n, leaf, dtype):
    found = factored(np, n, dtype, "generic", leaf)
    assert max(map(criteria.lu_error, *found)) < 1


def test_interchanges_are_those_of_lapack():
    A, LU, pivots = factored(np, 40, "float64", "generic", 16)
    linalg = pytest.importorskip("scipy.linalg")
    for a, lu, piv in zip(A, LU, pivots):
        theirs, places = linalg.lu_factor(a)
        np.testing.assert_array_equal(piv, places)
        np.testing.assert_allclose(lu, theirs, rtol=1e-9, atol=1e-12)


def test_a_column_of_zeros_stays():
    A = np.zeros((2, 20, 20))
    A[:, :, 1:] = study_lu.problems((2, 20, 19), "float64", np)
    stages = lu_stages.stages(A.copy())
    lu_stages.factor(stages, "generic", 16)
    assert np.isfinite(stages.LU).all() and (stages.LU[:, :, 0] == 0).all()


@pytest.mark.gpu
@pytest.mark.parametrize("way", study_lu.WAYS)
@pytest.mark.parametrize("n", [17, 40, 100])
def test_every_way_factors_on_the_device(way, n):
    import cupy

    found = factored(cupy, n, "float64", *study_lu.WAYS[way])
    assert max(map(criteria.lu_error, *found)) < 1


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_generic_way_is_that_of_the_cpu(dtype):
    import cupy

    (_, ours, piv), (_, theirs, places) = (factored(xp, 70, dtype, "generic", 32) for xp in (cupy, np))
    np.testing.assert_array_equal(piv, places)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=3000 * np.finfo(dtype).eps)


@pytest.mark.gpu
def test_one_stage_alone_launches_nothing_else():
    import cupy

    from h2gpu.batched.device.launch import recorded_launches

    stages = lu_stages.stages(study_lu.problems((2, 48, 48), "float64", cupy))
    names = {}
    for stage in lu_stages.STAGES[:-1]:
        stages.only = stage
        with recorded_launches() as launches:
            lu_stages.factor(stages, "generic", 16)
        called = (kernel_report.name(launch.function.name) for launch in launches)  # mangled on a device
        names[stage] = {name.partition("<")[0].rpartition("::")[2] for name in called}
    assert sorted(map(sorted, names.values())) == [
        ["find_pivot"],
        ["rank_one", "scale_column"],
        ["solve_rows"],
        ["subtract_product"],
        ["swap_rows"],
    ]


def test_tables_and_picture_on_the_cpu(tmp_path, capsys, drawn):
    assert study_lu.main(["--sizes", "8,24", "--output", str(tmp_path)]) == 0
    _, rows = tables.read(tmp_path / "study_lu-cpu.csv")
    assert {r["method"] for r in rows} == {"generic", "auto"} and "of bound" not in rows[0]
    assert "generic takes" in capsys.readouterr().out
    drawn("study_lu-cpu")


@pytest.mark.gpu
def test_the_study_on_a_device(tmp_path, monkeypatch, untimed):
    monkeypatch.setitem(study_lu.BATCH, "cuda", 2)
    assert study_lu.main(["--device", "cuda", "--sizes", "24", "--dtypes", "float64", "-o", str(tmp_path)]) == 0
    _, rows = tables.read(tmp_path / "study_lu-cuda.csv")
    assert {r["method"] for r in rows if r["figure"] == "5, 6, 7"} == set(study_lu.WAYS)
    assert [r["stage"] for r in rows if r["figure"] == "4"] == list(lu_stages.STAGES[:-1])
    assert sum(float(r["share"]) for r in rows if r["figure"] == "4") == pytest.approx(1)
    assert {r["stage"] for r in rows if r["figure"] == "3"} == {"GEMM, wide", "GEMM, tall"}


def test_a_study_that_ends_early_keeps_what_it_has(tmp_path, monkeypatch):
    rates = study_lu.nominal.gemm

    def interrupted(batch, m, n, *rest):
        if m == 24:
            raise KeyboardInterrupt
        return rates(batch, m, n, *rest)

    monkeypatch.setattr(study_lu.nominal, "gemm", interrupted)
    assert study_lu.main(["--sizes", "8,24", "--dtypes", "float64", "--output", str(tmp_path)]) != 0
    _, rows = tables.read(tmp_path / "study_lu-cpu.csv")
    assert [(r["n"], r["method"]) for r in rows if r["figure"] != "3"] == [
        (n, method) for n in ("8", "24") for method in ("generic", "auto")
    ]
