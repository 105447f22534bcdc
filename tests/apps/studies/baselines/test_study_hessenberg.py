"""The Hessenberg reduction a kernel a stage: A's eigenvalues, LAPACK's H to signs, a table."""

import numpy as np
import pytest
import scipy.linalg

from h2gpu.apps.benchmarks.report import tables
from h2gpu.apps.studies.baselines import gebrd_stages, hessenberg


def reduced(xp, n, dtype, variant):
    A = hessenberg.problems((2, n, n), dtype, np)
    s = gebrd_stages.stages(xp.asarray(A), hessenberg.VARIANTS[variant])
    hessenberg.reduce(s)
    return A, hessenberg.hessenberg(s)


def assert_lapacks(A, H, rtol):
    for a, h in zip(A, H):
        assert (np.tril(h, -2) == 0).all() and hessenberg.departure(a, h) < 1
        np.testing.assert_allclose(abs(h), abs(scipy.linalg.hessenberg(a)), rtol=rtol, atol=rtol)


@pytest.mark.parametrize("n", [1, 2, 3, 17, 40])
def test_the_form_on_the_cpu(n):
    assert_lapacks(*reduced(np, n, "float64", "a block"), 1e-8)


@pytest.mark.gpu
@pytest.mark.parametrize("variant", hessenberg.VARIANTS)
def test_the_form_on_a_device(variant):
    import cupy

    assert_lapacks(*reduced(cupy, 35, "float64", variant), 1e-8)


def tridiagonal(xp, n, variant):
    A = hessenberg.problems((2, n, n), "float64", np)
    A += A.swapaxes(1, 2)
    s = gebrd_stages.stages(xp.asarray(A), hessenberg.VARIANTS[variant])
    hessenberg.reduce(s, symmetric=True)
    return A, hessenberg.tridiagonal(s)


def assert_of_lapack(A, T):
    for a, t in zip(A, T):
        np.testing.assert_allclose(np.linalg.eigvalsh(t), np.linalg.eigvalsh(a), atol=1e-12 * len(a))
        d, e = hessenberg.lapack_sytrd(a[::-1, ::-1])  # which begins with the last column
        np.testing.assert_allclose(np.diagonal(t), d[::-1], atol=1e-8)
        np.testing.assert_allclose(abs(np.diagonal(t, 1)), abs(e)[::-1], atol=1e-8)


@pytest.mark.parametrize("n", [1, 2, 3, 17, 40])
def test_symmetric_matrices_become_tridiagonal(n):
    assert_of_lapack(*tridiagonal(np, n, "a block"))


@pytest.mark.gpu
@pytest.mark.parametrize("variant", hessenberg.VARIANTS)
def test_symmetric_matrices_become_tridiagonal_on_a_device(variant):
    import cupy

    assert_of_lapack(*tridiagonal(cupy, 35, variant))


def test_another_matrix_departs():
    A, H = reduced(np, 9, "float64", "a block")
    H[0, 3, 4] += 1e-6
    assert hessenberg.departure(A[0], H[0]) > 1


def test_the_table(tmp_path, capsys):
    assert hessenberg.main(["--sizes", "20,33", "--output", str(tmp_path)]) == 0
    _, rows = tables.read(tmp_path / "study_hessenberg-cpu.csv")
    assert [r["method"] for r in rows[:2]] == ["a block", hessenberg.LAPACK] and len(rows) == 16
    assert [r["method"] for r in rows[2:4]] == ["tridiagonal, a block", hessenberg.SYMMETRIC]


@pytest.mark.gpu
def test_the_table_of_a_device(tmp_path, untimed):
    assert hessenberg.main(["--device", "cuda", "--sizes", "20", "--dtypes", "float32", "-o", str(tmp_path)]) == 0
    _, rows = tables.read(tmp_path / "study_hessenberg-cuda.csv")
    symmetric = (*(hessenberg.OF_SYMMETRIC + name for name in hessenberg.VARIANTS), hessenberg.SYMMETRIC)
    assert [r["method"] for r in rows] == [*hessenberg.VARIANTS, hessenberg.LAPACK, *symmetric]
