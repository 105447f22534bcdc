"""QR of one large matrix by panels of our batched QR: LAPACK's R but for signs, orthogonal transformations, a table."""

import numpy as np
import pytest

from h2gpu.apps.benchmarks.report import tables
from h2gpu.apps.benchmarks.routines import criteria
from h2gpu.apps.studies.baselines import qr
from h2gpu.arrays import to_host


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("n", [1, 17, 33, 70])
def test_the_triangle(xp, n, dtype):
    A = qr.problems((1, n, n), dtype, np)
    R = to_host(qr.triangle(xp.asarray(A), 8, "tiles"))[0]
    assert criteria.triangle_error(A[0], R) < 1 and qr.departure(A[0], R) < 1
    assert qr.departure(A[0], R * (1 + 1e-2)) > 1


def test_a_panel_is_turned_into_its_triangle():
    """H = I − Y Mᵀ Yᵀ is orthogonal and Hᵀ P = [R; 0], also of a panel that is a part of the identity."""
    for P in (qr.problems((1, 40, 8), "float64", np), np.eye(40, 8)[None], -np.eye(40, 8)[None]):
        Y, R, M = qr.panel(P)
        H = np.eye(40) - Y[0] @ M[0].T @ Y[0].T
        np.testing.assert_allclose(H @ H.T, np.eye(40), atol=1e-13)
        np.testing.assert_allclose(H.T @ P[0], np.vstack([R[0], np.zeros((32, 8))]), atol=1e-13)


def test_the_table(tmp_path, capsys, drawn):
    assert qr.main(["--sizes", "20,300", "--output", str(tmp_path)]) == 0
    _, rows = tables.read(tmp_path / "study_qr-cpu.csv")
    assert [r["method"] for r in rows[:3]] == ["tiles, 64", "products, tiles, 64", qr.LAPACK] and len(rows) == 12
    assert all(float(r["of allowed error"]) < 1 for r in rows if r.get("of allowed error"))
    drawn("study_qr-cpu")


@pytest.mark.gpu
def test_the_table_of_a_device(tmp_path, untimed, monkeypatch):
    monkeypatch.setitem(qr.PANELS, "cuda", (4,))
    qr.compiled(("float32", 20))
    assert qr.main(["--device", "cuda", "--sizes", "20", "--dtypes", "float32", "-o", str(tmp_path)]) == 0
    _, rows = tables.read(tmp_path / "study_qr-cuda.csv")
    ours = [f"{word}{method}, 4" for method in qr.METHODS["cuda"] for word in ("", "products, ")]
    assert [r["method"] for r in rows if r["method"] != qr.CUSOLVER] == [*ours, qr.LAPACK]
