"""TRSM by halves and by inverses of diagonal blocks: the same solutions, a table."""

import numpy as np
import pytest

from h2gpu import batched
from h2gpu.apps.benchmarks.report import tables
from h2gpu.apps.studies.baselines import triangles


@pytest.mark.parametrize("n", [1, 31, 33, 100])
@pytest.mark.parametrize("way", triangles.WAYS)
def test_solutions(way, n):
    L, B = triangles.systems(3, n, "float64", np)
    found = triangles.WAYS[way]((L.copy(), B.copy()))
    np.testing.assert_allclose(found, batched.trsm(L, B), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(L @ found, B, atol=1e-11)


def test_the_table(tmp_path, capsys, drawn):
    assert triangles.main(["--sizes", "20,40", "--output", str(tmp_path)]) == 0
    _, rows = tables.read(tmp_path / "study_triangles-cpu.csv")
    assert {r["method"] for r in rows} == set(triangles.WAYS)
    assert "recursive takes" in capsys.readouterr().out
    lines = [{"n": n, "batch": 2, "redirected": 1.0, "fixed": 2.0 if n < 161 else None} for n in (8, 17, 1000, 2049)]
    tables.write(tmp_path / "study_edges-float64.csv", lines, "Some GPU")
    drawn("study_triangles-cpu", "study_edges-float64")


@pytest.mark.gpu
def test_the_table_of_a_device(tmp_path, monkeypatch, untimed):
    monkeypatch.setitem(triangles.BATCH, "cuda", 2)
    assert triangles.main(["--device", "cuda", "--sizes", "40", "--dtypes", "float64", "-o", str(tmp_path)]) == 0
    _, rows = tables.read(tmp_path / "study_triangles-cuda.csv")
    assert {r["method"] for r in rows} == set(triangles.WAYS)
