"""R-factors on the CPU by LAPACK without the interpreter's lock: geqrt of tall matrices, geqrf of others."""

import threading

import numpy as np
import pytest
from scipy.linalg import get_lapack_funcs

from h2gpu.batched import MatrixBatch, Products, triangles_of_products
from h2gpu.batched.qr import lapack

SHAPES = [(1, 1), (5, 1), (70, 5), (300, 16), (300, 17), (2000, 64), (128, 64), (100, 81), (81, 81)]


def random(shape, dtype, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows, columns", SHAPES)
def test_it_is_the_r_factor(rows, columns, dtype):
    """RᵀR = AᵀA to rounding, and R is that of LAPACK's geqrf, signs and all."""
    A = random((rows, columns), dtype)
    T = A.T.copy()
    assert lapack.factor(T)
    R, right = np.triu(T.T[:columns]), np.linalg.qr(A.astype(np.float64), "r")
    size = np.linalg.norm(A)
    assert np.linalg.norm(R.T @ R - A.T @ A) <= 10 * np.sqrt(rows) * np.finfo(dtype).eps * size**2
    assert np.linalg.norm(R - right) <= 100 * np.sqrt(rows) * np.finfo(dtype).eps * size


def test_complex_numbers_and_unknown_routines_are_left_to_others(monkeypatch):
    assert not lapack.factor(np.ones((2, 9), complex))
    monkeypatch.setattr(lapack, "SIGNATURES", dict.fromkeys(lapack.SIGNATURES, b"void (long *"))
    lapack._routine.cache_clear()
    assert not lapack.factor(np.ones((2, 9))) and not lapack.factor(np.ones((9, 9)))
    monkeypatch.undo()
    lapack._routine.cache_clear()
    assert lapack.factor(np.ones((2, 9)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 1), (64, 90), (81, 81), (9, 5), (100, 70)])
def test_others_are_those_of_scipys_wrapper_to_the_last_digit(shape, dtype):
    T = random(shape, dtype)
    (geqrf,) = get_lapack_funcs(("geqrf",), dtype=dtype)
    right = geqrf(T.T, lwork=lapack.BLOCK * len(T))[0].T
    assert lapack.factor(T)
    np.testing.assert_array_equal(T, right)


def test_threads_have_their_own_numbers():
    stacks = [random(shape, np.float64, seed) for seed in range(16) for shape in ((20, 900), (40, 50))]
    right = [np.linalg.qr(stack.T, "r") for stack in stacks]
    threads = [threading.Thread(target=lapack.factor, args=(stack,)) for stack in stacks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for stack, R in zip(stacks, right):
        np.testing.assert_allclose(np.triu(stack.T[: len(stack)]), R, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_triangles_of_many_products_take_it(dtype, monkeypatch):
    """Whichever routine factors the stack, Z of the products is the same to rounding."""
    F, S = (MatrixBatch.from_stack(random((40, 6, 6), dtype, seed)) for seed in (1, 2))
    products = [Products(F, S, np.array([0, 1, 20, 20, 40]), False)]
    found = []
    for tall in (lapack.TALL, 1 << 40):
        monkeypatch.setattr(lapack, "TALL", tall)
        out = MatrixBatch.from_stack(np.full((4, 6, 6), np.nan, dtype))
        triangles_of_products(products, out)
        found.append([Z.copy() for Z in out.matrices()])
    for first, second in zip(*found):
        np.testing.assert_allclose(first, second, atol=1000 * np.finfo(dtype).eps)
