"""Bidiagonal reduction a kernel a stage: singular values of every version on CPU and GPU; table and picture."""

import numpy as np
import pytest

from h2gpu.apps.benchmarks.report import tables
from h2gpu.apps.studies.baselines import gebrd as study
from h2gpu.apps.studies.baselines import gebrd_stages
from h2gpu.arrays import to_host


def reduced(xp, n, dtype, version):
    A = xp.asarray(study.problems((3, n, n), dtype, np))
    s = gebrd_stages.stages(A, study.VERSIONS[version])
    gebrd_stages.reduce(s)
    return tuple(map(to_host, (A, s.d, s.e[:, : n - 1])))


def assert_singular_values(A, d, e):
    assert max(map(study.departure, A, d, e)) < 1


@pytest.mark.parametrize("version", list(study.VERSIONS)[: study.ON_CPU])
@pytest.mark.parametrize("n", [1, 2, 8, 17, 40])
def test_singular_values_on_the_cpu(version, n):
    assert_singular_values(*reduced(np, n, "float64", version))


@pytest.mark.parametrize("n", [9, 33])
def test_updates_put_off_give_the_same_numbers(n):
    _, d, e = reduced(np, n, "float64", "unblocked")
    for version in list(study.VERSIONS)[1 : study.ON_CPU]:
        for ours, theirs in zip(reduced(np, n, "float64", version)[1:], (d, e)):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("version", study.VERSIONS)
def test_every_version_is_that_of_the_cpu(version, dtype):
    import cupy

    ours, theirs = (reduced(xp, 40, dtype, version) for xp in (cupy, np))
    assert_singular_values(*ours)
    for one, other in zip(ours[1:], theirs[1:]):  # later ones are known less well
        np.testing.assert_allclose(one[:, :20], other[:, :20], rtol=0, atol=3000 * np.finfo(dtype).eps)


@pytest.mark.gpu
def test_products_at_all_places():
    import cupy

    A = study.problems((2, 64, 64), "float64", cupy)
    for off, padded in ((0, False), (1, False), (1, True)):
        s = gebrd_stages.stages(A, gebrd_stages.Variant(study.ALIGNED, True, padded))
        s.W[:, :64, 64] = A[:, 0]
        s.W[:, 64, :64] = A[:, 1]
        W = to_host(s.W).copy()
        study._columns(s, off)
        M, x = W[:, off:64, off:64], W[:, : 64 - off, 64]
        np.testing.assert_allclose(
            to_host(s.W)[:, 64, : 64 - off], np.einsum("bij,bi->bj", M, x), rtol=1e-11, atol=1e-12
        )
        W = to_host(s.W).copy()
        study._wide(s, off)
        product = np.einsum("bij,bj->bi", M[:, :16], W[:, 64, : 64 - off])
        np.testing.assert_allclose(to_host(s.W)[:, :16, 64], product, rtol=1e-11, atol=1e-12)


@pytest.mark.gpu
def test_products_of_wide_matrices_read_as_many_in_turn_by_either_kernel():
    """Else the one finds in the cache what the other reads from memory."""
    import cupy

    found = study.gemvs(study.problems((2, 64, 64), "float64", cupy))
    ours = {M.data.ptr for M in found[study.WIDE, "gemv"][1]}
    for place in ("aligned", "misaligned"):
        assert len({s.W.data.ptr for s in found[study.WIDE, place][1]}) == len(ours) > 1


def test_table_and_picture_on_the_cpu(tmp_path, capsys, drawn):
    assert study.main(["--sizes", "16,32", "--output", str(tmp_path)]) == 0
    _, rows = tables.read(tmp_path / "study_gebrd_versions-cpu.csv")
    assert {r["figure"] for r in rows} == {"2, 7, 8", "3", "4", "5"} and study.OURS in {r["method"] for r in rows}
    assert "unblocked takes" in capsys.readouterr().out
    drawn("study_gebrd_versions-cpu")


@pytest.mark.gpu
def test_the_study_on_a_device(tmp_path, monkeypatch, untimed):
    monkeypatch.setitem(study.BATCH, "cuda", 2)
    assert study.main(["--device", "cuda", "--sizes", "32", "--dtypes", "float64", "-o", str(tmp_path)]) == 0
    _, rows = tables.read(tmp_path / "study_gebrd_versions-cuda.csv")
    assert {r["method"] for r in rows if r["figure"] == "5"} == {*study.VERSIONS, study.OURS}
    assert {r["method"] for r in rows if r["figure"] == "4"} == {"gemv", "aligned", "misaligned", "padded"}
