"""R-factors of tall matrices on the CPU, by LAPACK's geqrt without the interpreter's lock."""

import threading

import numpy as np
import pytest

from h2gpu.batched import MatrixBatch, Products, triangles_of_products
from h2gpu.batched.qr import cpu, lapack


def random(shape, dtype, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows, columns", [(1, 1), (5, 1), (70, 5), (300, 16), (300, 17), (2000, 64)])
def test_it_is_the_r_factor(rows, columns, dtype):
    """RᵀR = AᵀA to rounding, and R is that of LAPACK's geqrf, signs and all."""
    A = random((rows, columns), dtype)
    T = A.T.copy()
    assert lapack.factor_tall(T)
    R, right = np.triu(T.T[:columns]), np.linalg.qr(A.astype(np.float64), "r")
    size = np.linalg.norm(A)
    assert np.linalg.norm(R.T @ R - A.T @ A) <= 10 * np.sqrt(rows) * np.finfo(dtype).eps * size**2
    assert np.linalg.norm(R - right) <= 100 * np.sqrt(rows) * np.finfo(dtype).eps * size


def test_complex_numbers_and_unknown_routines_are_left_to_others(monkeypatch):
    assert not lapack.factor_tall(np.ones((2, 9), complex))
    monkeypatch.setattr(lapack, "SIGNATURE", b"void (long *")
    lapack._routine.cache_clear()
    assert not lapack.factor_tall(np.ones((2, 9)))
    monkeypatch.undo()
    lapack._routine.cache_clear()
    assert lapack.factor_tall(np.ones((2, 9)))


def test_threads_have_their_own_numbers():
    stacks = [random((20, 900), np.float64, seed) for seed in range(16)]
    right = [np.linalg.qr(stack.T, "r") for stack in stacks]
    threads = [threading.Thread(target=lapack.factor_tall, args=(stack,)) for stack in stacks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for stack, R in zip(stacks, right):
        np.testing.assert_allclose(np.triu(stack.T[:20]), R, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_triangles_of_many_products_take_it(dtype, monkeypatch):
    """Whichever routine factors the stack, Z of the products is the same to rounding."""
    F, S = (MatrixBatch.from_stack(random((40, 6, 6), dtype, seed)) for seed in (1, 2))
    products = [Products(F, S, np.array([0, 1, 20, 20, 40]), False)]
    found = []
    for tall in (3, 10**9):
        monkeypatch.setattr(cpu, "TALL", tall)
        out = MatrixBatch.from_stack(np.full((4, 6, 6), np.nan, dtype))
        triangles_of_products(products, out)
        found.append([Z.copy() for Z in out.matrices()])
    for first, second in zip(*found):
        np.testing.assert_allclose(first, second, atol=1000 * np.finfo(dtype).eps)
