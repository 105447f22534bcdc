"""What a step keeps on a GPU: products are those of the padded stacks, and what is zero takes no memory."""

import numpy as np
import pytest

import h2gpu
from h2gpu.arrays import to_host
from h2gpu.covariance import Exponential, Matern, Nugget
from h2gpu.solvers import skeletonization, skeletonize
from h2gpu.solvers.skeletonization import flat_changes, skeletonize_alike
from h2gpu.solvers.skeletonization.flat_changes import FlatChanges
from h2gpu.solvers.skeletonization.ragged import RaggedStack, on_host, packed, transposed_product
from h2gpu.solvers.skeletonization.triangles import Triangles, stacked

COUNT, SPLIT, HEIGHT, WIDTH = 7, 40, 90, 70


@pytest.fixture
def sizes():
    """Rows above and below the split, and columns; of some matrices none."""
    rng, most = np.random.default_rng(0), np.array([SPLIT, HEIGHT - SPLIT, WIDTH])
    above, below, columns = rng.integers(1, most[:, None] + 1, (3, COUNT))
    above[2] = below[2] = columns[4] = above[3] = below[6] = 0
    above[5], below[5], columns[5] = most
    return above, below, columns


@pytest.fixture
def stack(sizes):
    A = np.random.default_rng(1).standard_normal((COUNT, HEIGHT, WIDTH))
    for matrix, above, below, columns in zip(A, *sizes):
        matrix[above:SPLIT], matrix[SPLIT + below :], matrix[:, columns:] = 0, 0, 0
    return A


def lowered(stack, above):
    """The rows above the split moved down to it, and zero rows in front."""
    A = stack.copy()
    for matrix, rows in zip(A, above):
        matrix[:SPLIT] = np.roll(matrix[:SPLIT], SPLIT - rows, axis=0)
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
    above, below, widths = sizes
    heads = np.ascontiguousarray(stack[:, :SPLIT])
    A, B = packed(above, widths, (xp.asarray(stack), SPLIT, below), (xp.asarray(heads), SPLIT, np.zeros_like(below)))
    rng = np.random.default_rng(3)
    x, y = rng.standard_normal((COUNT, WIDTH, columns)), rng.standard_normal((COUNT, HEIGHT, columns))
    for ragged, expected in ((A, lowered(stack, above)), (B, lowered(heads, above))):
        np.testing.assert_array_equal(on_host(ragged), expected)
        np.testing.assert_allclose(to_host(ragged @ xp.asarray(x)), expected @ x, atol=1e-12)
        v = y[:, : expected.shape[1]].copy()
        product = ragged.transposed_product(xp.asarray(v))
        np.testing.assert_allclose(to_host(product), expected.swapaxes(1, 2) @ v, atol=1e-12)
        assert ragged.shape == expected.shape
        np.testing.assert_array_equal(to_host(ragged.stack()), expected)
        np.testing.assert_array_equal(to_host(ragged.stack(xp.asarray([6, 0, 6]))), expected[[6, 0, 6]])
    assert A.nbytes == 8 * ((above + below) * widths).sum() and B.nbytes == 8 * (above * widths).sum()


def test_triangles_take_half_the_memory_and_are_the_identity_beyond_their_orders(xp):
    orders, n = np.array([5, 0, 37, 1, 64]), 64
    L = np.tril(np.random.default_rng(4).standard_normal((len(orders), n, n)))
    for A, r in zip(L, orders):
        A[r:], A[:, r:] = 0, 0
        A[range(r, n), range(r, n)] = 1
    packed_ones = Triangles.of(xp.asarray(L), orders)
    np.testing.assert_array_equal(to_host(stacked(packed_ones)), L)
    np.testing.assert_array_equal(on_host(packed_ones), L)
    assert packed_ones.nbytes == 4 * (orders * (orders + 1)).sum() + 16 * len(orders)
    whole = xp.asarray(L)
    assert stacked(whole) is whole


def test_arrays_are_stacks_too(stack):
    y = np.random.default_rng(3).standard_normal((COUNT, HEIGHT, 2))
    np.testing.assert_array_equal(transposed_product(stack, y), stack.swapaxes(1, 2) @ y)
    assert on_host(stack) is stack


def test_stacks_of_no_columns_are_zero(xp):
    none = np.zeros(3, np.int64)
    (A,) = packed(np.full(3, 4), none, (xp.zeros((3, 4, 0)), 4, none))
    assert not to_host(A @ xp.zeros((3, 0, 2))).any() and A.transposed_product(xp.ones((3, 4, 2))).shape == (3, 0, 2)


def test_what_steps_of_a_gpu_keep_is_not_padded(flat):
    G = skeletonize(sites(4096), Exponential(length_scale=0.1))
    assert all(isinstance(A, RaggedStack) for step in G.steps for A in (step.T, step.Y))
    assert all(isinstance(L, Triangles) for L in (*(step.L for step in G.steps), G.root))
    r, sn, s = (
        np.concatenate([(G.n > indices).sum(axis=1) for indices in parts])
        for parts in zip(*[(step.R, step.SN, step.SN[:, : step.s]) for step in G.steps])
    )
    assert G.memory["couplings"] == 8 * (r * sn).sum() < 6 * sum(np.prod(step.Y.shape) for step in G.steps)
    assert G.memory["interpolations"] == 8 * (r * s).sum()
    assert G.memory["triangles"] == (4 * r * (r + 1) + 16).sum()
    assert G.memory["root"] == 4 * len(G.top) * (len(G.top) + 1) + 16


def test_a_factor_of_a_gpu_multiplies_and_solves_as_the_padded_one(flat, monkeypatch):
    points, x = sites(2000), np.random.default_rng(5).standard_normal((2000, 3))
    G = skeletonize(points, Exponential(length_scale=0.1))
    monkeypatch.setattr(FlatChanges, "packed", False)
    padded = skeletonize(points, Exponential(length_scale=0.1))
    assert G.log_determinant() == padded.log_determinant() and G.nbytes < 0.7 * padded.nbytes
    np.testing.assert_array_equal(G.L, padded.L)
    for name in ("solve", "solve_half", "solve_half_transposed", "multiply_half", "multiply_half_transposed"):
        expected = getattr(padded, name)(x)
        np.testing.assert_allclose(getattr(G, name)(x), expected, atol=1e-11 * abs(expected).max())


def test_the_skeletons_of_a_factor_of_a_gpu_and_of_its_file_give_it_again(flat, tmp_path):
    points, cov, x = sites(2000), Exponential(length_scale=0.1), np.random.default_rng(5).standard_normal(2000)
    G = skeletonize(points, cov)
    h2gpu.save(G, tmp_path / "G.h5")
    for like in (G, h2gpu.load(tmp_path / "G.h5")):
        again = skeletonize_alike(like, points, cov, cov)
        np.testing.assert_allclose(again.multiply_half(x), G.multiply_half(x), atol=1e-7)


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


@pytest.mark.parametrize("packed", [True, False])
def test_a_solve_that_is_repeated_takes_each_vector_anew(packed, xp, monkeypatch):
    monkeypatch.setattr(skeletonization, "WIDER", 0.1)
    monkeypatch.setattr(FlatChanges, "packed", packed)
    G = skeletonize(xp.asarray(sites(2000)), Exponential(length_scale=0.1))
    b = xp.asarray(np.random.default_rng(5).standard_normal((2000, 4)))
    for name in ("solve", "solve_half", "solve_half_transposed"):
        expected = to_host(getattr(G, name)(b))
        for i in range(4):  # by a graph from the second on
            found = to_host(getattr(G, name)(b[:, i]))
            np.testing.assert_allclose(found, expected[:, i], atol=1e-12 * abs(expected).max())
