"""Stacks of leading parts: products are those of the padded stack, and what is zero takes no memory."""

import numpy as np
import pytest

import h2gpu
from h2gpu.arrays import to_host
from h2gpu.covariance import Exponential, Matern, Nugget
from h2gpu.solvers import skeletonization, skeletonize
from h2gpu.solvers.skeletonization import flat_changes
from h2gpu.solvers.skeletonization.flat_changes import FlatChanges
from h2gpu.solvers.skeletonization.ragged import RaggedStack, on_host, packed, transposed_product

COUNT, HEIGHT, WIDTH = 7, 90, 70


@pytest.fixture
def sizes():
    """Rows and columns, of some matrices none."""
    rng = np.random.default_rng(0)
    rows, columns = rng.integers(1, HEIGHT + 1, COUNT), rng.integers(1, WIDTH + 1, COUNT)
    rows[2], columns[4], rows[5], columns[5] = 0, 0, HEIGHT, WIDTH
    return rows, columns


@pytest.fixture
def stack(sizes):
    A = np.random.default_rng(1).standard_normal((COUNT, HEIGHT, WIDTH))
    for matrix, m, n in zip(A, *sizes):
        matrix[m:], matrix[:, n:] = 0, 0
    return A


@pytest.fixture
def flat(monkeypatch):
    """The GPU's way, whatever the arrays."""
    monkeypatch.setattr(skeletonization, "ROOT", 200)
    monkeypatch.setattr(skeletonization, "Changes", FlatChanges)
    for name, device in (("GROUP", skeletonization.GROUP), ("GROUPS", skeletonization.GROUPS)):
        monkeypatch.setitem(getattr(skeletonization, name), "numpy", device["cupy"])


def sites(n):
    return np.random.default_rng(2).random((n, 2))


@pytest.mark.parametrize("columns", [1, 5, 33])
def test_products_are_those_of_the_padded_stack(stack, sizes, columns, xp):
    other = np.ones((COUNT, 3, 2))
    A, B = packed((xp.asarray(stack), *sizes), (xp.asarray(other), np.full(COUNT, 3), np.full(COUNT, 2)))
    rng = np.random.default_rng(3)
    x, y = rng.standard_normal((COUNT, WIDTH, columns)), rng.standard_normal((COUNT, HEIGHT, columns))
    np.testing.assert_allclose(to_host(A @ xp.asarray(x)), stack @ x, atol=1e-12)
    np.testing.assert_allclose(to_host(A.transposed_product(xp.asarray(y))), stack.swapaxes(1, 2) @ y, atol=1e-12)
    np.testing.assert_array_equal(on_host(A), stack)
    np.testing.assert_array_equal(on_host(B), other)
    assert A.nbytes == 8 * (sizes[0] * sizes[1]).sum() and A.shape == stack.shape


def test_arrays_are_stacks_too(stack):
    y = np.random.default_rng(3).standard_normal((COUNT, HEIGHT, 2))
    np.testing.assert_array_equal(transposed_product(stack, y), stack.swapaxes(1, 2) @ y)
    assert on_host(stack) is stack


def test_stacks_of_no_columns_are_zero(xp):
    (A,) = packed((xp.zeros((3, 4, 0)), np.full(3, 4), np.zeros(3, np.int64)))
    assert not to_host(A @ xp.zeros((3, 0, 2))).any() and A.transposed_product(xp.ones((3, 4, 2))).shape == (3, 0, 2)


def test_what_steps_of_a_gpu_keep_is_not_padded(flat):
    G = skeletonize(sites(4096), Exponential(length_scale=0.1))
    assert all(isinstance(A, RaggedStack) for step in G.steps for A in (step.T, step.Y))
    sizes = [((G.n > step.R).sum(axis=1), step.SN) for step in G.steps]
    real = 8 * sum((r * (G.n > SN).sum(axis=1)).sum() for r, SN in sizes)
    stacks = 8 * sum(np.prod(step.Y.shape) for step in G.steps)
    assert real <= G.memory["couplings"] < 1.05 * real < 0.75 * stacks
    skeletons = [(G.n > SN[:, : step.s]).sum(axis=1) for step, (_, SN) in zip(G.steps, sizes)]
    assert G.memory["interpolations"] == 8 * sum((r * s).sum() for (r, _), s in zip(sizes, skeletons))


def test_a_factor_of_a_gpu_is_saved_padded(flat, tmp_path):
    points = sites(2000)
    G = skeletonize(points, Matern(length_scale=0.1) + Nugget(0.01))
    h2gpu.save(G, tmp_path / "G.h5")
    again = h2gpu.load(tmp_path / "G.h5")
    assert again.memory["couplings"] > G.memory["couplings"]
    assert again.log_determinant() == G.log_determinant()
    np.testing.assert_allclose(again.solve(points), G.solve(points), rtol=1e-9, atol=1e-9)


def test_changes_may_be_made_and_merged_in_parts(flat, monkeypatch):
    points = sites(2000)
    whole = skeletonize(points, Exponential(length_scale=0.1))
    monkeypatch.setattr(flat_changes, "MOST", 1000)
    monkeypatch.setattr(flat_changes, "UPDATES", 1)
    parts = skeletonize(points, Exponential(length_scale=0.1))
    assert len(parts.steps) == len(whole.steps) > 9
    for one, other in zip(whole.steps, parts.steps):
        for name in ("R", "SN", "T", "L", "Y"):
            np.testing.assert_array_equal(on_host(getattr(one, name)), on_host(getattr(other, name)))
    np.testing.assert_array_equal(whole.L, parts.L)
