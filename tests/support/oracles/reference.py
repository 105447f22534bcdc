"""Plain dense oracles and the point sets on which every theorem is tried."""

import re

import numpy as np
from hypothesis import strategies as st

from h2gpu.arrays import to_host
from h2gpu.clustering import ClusterTree
from h2gpu.covariance.sites import Sites
from h2gpu.h2matrix.construction import deferred

EPS = np.finfo(np.float64).eps


def name_of(value):
    """What a test's value is called: its repr without addresses of functions, the same in every process."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


# Point sets: (n, dim) in the unit cube unless the name says otherwise.


def uniform(n, dim, rng):
    return rng.random((n, dim))


def grid(n, dim, rng):
    side = int(np.ceil(n ** (1 / dim)))
    return np.indices((side,) * dim).reshape(dim, -1).T[:n] / side


def clustered(n, dim, rng):
    """Heaps of widths from 1 to 10⁻⁶ around random centres."""
    heaps = rng.random((7, dim))
    heap = rng.integers(0, 7, n)
    return heaps[heap] + 10.0 ** -heap[:, None] * rng.standard_normal((n, dim)) / 8


def duplicates(n, dim, rng):
    """Every place about eight times."""
    return rng.random((n // 8 + 1, dim))[rng.integers(0, n // 8 + 1, n)]


def collinear(n, dim, rng):
    """On a diagonal of the cube."""
    return np.repeat(rng.random((n, 1)), dim, axis=1)


def on_an_axis(n, dim, rng):
    """All coordinates but the last are equal."""
    points = np.full((n, dim), 0.25)
    points[:, -1] = rng.random(n)
    return points


def outlier(n, dim, rng):
    """One point a million times farther away than the others are from each other."""
    points = rng.random((n, dim))
    points[rng.integers(n)] += 1e6
    return points


def all_equal(n, dim, rng):
    return np.tile(rng.random(dim), (n, 1))


POINT_SETS = {f.__name__: f for f in (uniform, grid, clustered, duplicates, collinear, on_an_axis, outlier, all_equal)}


def normal(rng, dtype, *shape):
    """Independent standard normal numbers, complex ones in both parts."""
    A = rng.standard_normal(shape)
    return (A + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else A).astype(dtype)


def points_of(name, n, dim, seed=0, dtype=np.float64):
    """The point set of a name."""
    return POINT_SETS[name](n, dim, np.random.default_rng(seed)).astype(dtype)


@st.composite
def point_sets(draw, largest=300, names=tuple(POINT_SETS), dims=(1, 2, 3)):
    """Hypothesis strategy: any of the point sets, of 1 to `largest` points."""
    name, dim = draw(st.sampled_from(names)), draw(st.sampled_from(dims))
    return points_of(name, draw(st.integers(1, largest)), dim, draw(st.integers(0, 5)))


def trees(**arguments):
    """Hypothesis strategy: (points, ClusterTree) of any leaf size and split."""

    def grown(points, leaf_size, split):
        return points, ClusterTree.build(points, leaf_size, split)

    return st.builds(grown, point_sets(**arguments), st.integers(1, 40), st.sampled_from(["median", "mean"]))


# Oracles: the definitions written out, one cluster at a time.


def members(tree, t):
    """Indices of the points of cluster t."""
    return tree.permutation[tree.start[t] : tree.stop[t]]


def bases_of(basis):
    """U_t of every cluster, (points, rank), by U_parent = [U_1 E_1; U_2 E_2]."""
    tree, U = basis.tree, [None] * len(basis.tree)
    for i, t in enumerate(tree.leaves):
        U[t] = to_host(basis.leaf[i])
    for t in reversed(range(len(tree))):
        if U[t] is None:
            children = tree.first_child[t] + np.arange(2)
            U[t] = np.concatenate([U[c] @ to_host(basis.transfer[int(c)]) for c in children])
    return U


def blocks_of(A):
    """(rows, columns, block) of every stored block in the caller's point order: U_t S_ts V_sᵀ far, D_ts near."""
    U = bases_of(A.row_basis)
    V = U if A.symmetric else bases_of(A.col_basis)
    for part, far in ((A.couplings, True), (A.nearfield, False)):
        blocks = part.select(np.arange(len(part)))
        for b, (t, s) in enumerate(zip(part.rows, part.columns)):
            M = to_host(blocks[b])
            yield members(A.row_basis.tree, t), members(A.col_basis.tree, s), U[t] @ M @ V[s].T if far else M


def dense_of(A):
    """The H²-matrix as a dense float64 matrix, entry by entry from its definition."""
    dense = np.zeros(A.shape)
    for rows, columns, block in blocks_of(A):
        dense[np.ix_(rows, columns)] += block
        if A.symmetric and not np.array_equal(rows, columns):
            dense[np.ix_(columns, rows)] += block.T
    return dense


def times_covered(blocks):
    """How many leaf blocks of a block tree hold each pair of points, (n, m) counts."""
    rows, cols = blocks.row_tree, blocks.col_tree
    counts = np.zeros((rows.n, cols.n), int)
    for t, s in np.concatenate([blocks.far, blocks.near], axis=1).T:
        counts[np.ix_(members(rows, t), members(cols, s))] += 1
        if blocks.symmetric and t != s:
            counts[np.ix_(members(cols, s), members(rows, t))] += 1
    return counts


def block_sparse_dense(A, row_sizes, col_sizes):
    """A BlockSparse written out as one dense matrix."""
    dense = np.zeros((sum(row_sizes), sum(col_sizes)))
    for b, (i, j) in enumerate(zip(A.rows, A.columns)):
        i, j = (
            slice(start[k], start[k] + size[k])
            for start, size, k in ((A.row_starts, row_sizes, i), (A.col_starts, col_sizes, j))
        )
        dense[i, j] = A.blocks[b]
        if A.symmetric:
            dense[j, i] = A.blocks[b].T
    return dense


def difference(A, B):
    """‖A − B‖_F / ‖A‖_F of dense matrices; 0 for two zeros."""
    error, norm = np.linalg.norm(A - B), np.linalg.norm(A)
    return error / norm if norm else error


def streamed(points, cov, *, col_points=None, **parameters):
    """As `h2gpu.build`, couplings evaluated where they are used."""
    return deferred(Sites.of(points, cov, col_points), **parameters)
