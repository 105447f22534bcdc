"""The stages of a bidiagonal reduction, a launch each on a GPU, a line or two each on a CPU.

    A = Q B Pᵀ of (batch, n, n) matrices, B upper bidiagonal, as LAPACK's GEBD2 (unblocked) and GEBRD (LABRD and GEMM).

Dong, Haidar, Tomov & Dongarra (2018), sections 4 and 6. All operands of a matrix lie in one array W: A, to the right of
it the columns X, below it the rows Yᵀ and two vectors; so every stage takes places in W. Kernels:
kernels/studies/gebrd_stages.cuh.
"""

from typing import NamedTuple

import numpy as np

from h2gpu.arrays import array_module

HEADER = "studies/gebrd_stages.cuh"
THREADS, WARPS, WARP = 256, 8, 32  # of a block
PANELS = 8, 16, 32  # columns of a panel
VECTORS = 2  # rows of W for vectors, behind Yᵀ


class Vector(NamedTuple):
    """Entries of W from a row and column on, along a row or down a column."""

    row: int
    column: int
    count: int
    down: bool = False


class Block(NamedTuple):
    """A part of W."""

    row: int
    column: int
    rows: int
    columns: int


class Variant(NamedTuple):
    """How stages are launched.   tiles: products with A by many thread blocks a matrix; padded: by aligned reads"""

    panel: int  # columns of a panel; 0: unblocked
    tiles: bool = False
    padded: bool = False


def stages(A, variant):
    """The stages for matrices on a CPU or a GPU, W made of A."""
    return (HostStages if array_module(A) is np else DeviceStages)(A, variant)


class HostStages:
    """NumPy's."""

    def __init__(self, A, variant):
        xp, (self.batch, self.n, _), self.variant = array_module(A), A.shape, variant
        self.width = variant.panel + (self.n + variant.panel) % 2
        self.W = xp.zeros((self.batch, self.n + variant.panel + VECTORS, self.n + self.width), A.dtype)
        self.d, self.e, self.tau = (xp.zeros((self.batch, self.n), A.dtype) for _ in range(3))
        self.load(A)

    def load(self, A):
        """Begin anew with these matrices."""
        self.W[:, : self.n, : self.n] = A

    def reflect(self, v, betas, i):
        """v becomes the vector of H with H v = [β; 0], 1 first; β and τ to place i."""
        x = self._of(v)
        alpha, rest = x[:, 0].copy(), np.linalg.norm(x[:, 1:], axis=1)
        beta = -np.copysign(np.hypot(alpha, rest), alpha)
        x /= np.where(rest == 0, np.inf, alpha - beta)[:, None]
        x[:, 0] = 1
        betas[:, i] = beta
        self.tau[:, i] = np.where(rest == 0, 2, (beta - alpha) / np.where(beta == 0, 1, beta))

    def rows(self, M, x, y, negative=False):
        """y = M x, or y − M x."""
        self._put(y, (self._block(M) @ self._of(x)[..., None])[..., 0], negative)

    def columns(self, M, x, y, negative=False):
        """y = Mᵀ x, or y − Mᵀ x."""
        self._put(y, (self._of(x)[:, None] @ self._block(M))[:, 0], negative)

    def scale(self, y, i):
        """y = τ_i y."""
        self._of(y)[...] *= self.tau[:, i, None]

    def rank_one(self, M, x, y):
        """M −= x yᵀ."""
        self._block(M)[...] -= self._of(x)[..., None] * self._of(y)[:, None]

    def panels(self, inner, above, first):
        """C −= L R: C from row and column `first` on, L the columns from `inner` on, R the rows from `above` on."""
        size, n, W = self.variant.panel, self.n, self.W
        W[:, first:n, first:n] -= W[:, first:n, inner : inner + size] @ W[:, above : above + size, first:n]

    def _of(self, v):
        if v.down:
            return self.W[:, v.row : v.row + v.count, v.column]
        return self.W[:, v.row, v.column : v.column + v.count]

    def _block(self, M):
        return self.W[:, M.row : M.row + M.rows, M.column : M.column + M.columns]

    def _put(self, y, product, negative):
        self._of(y)[...] = self._of(y) - product if negative else product


class DeviceStages(HostStages):
    """CUDA's; arguments as above."""

    def __init__(self, A, variant):
        super().__init__(A, variant)
        self._size, self._ld = np.int64(self.W[0].size), self.W.shape[2]

    def reflect(self, v, betas, i):
        numbers = *self._vector(v), v.count, betas[:, i:].data.ptr, self.tau[:, i:].data.ptr, self.n
        self._launch("stage_reflection", (), 1, *(np.uint64(x) if k in (3, 4) else x for k, x in enumerate(numbers)))

    def rows(self, M, x, y, negative=False):
        self._product("stage_rows_product", M, -(-M.rows // WARPS), x, y, negative)

    def columns(self, M, x, y, negative=False):
        self._product("stage_columns_product", M, -(-M.columns // WARP), x, y, negative)

    def scale(self, y, i):
        self._launch("stage_scaling", (), 1, *self._vector(y), y.count, np.uint64(self.tau[:, i:].data.ptr), self.n)

    def rank_one(self, M, x, y):
        blocks = -(-M.rows // WARPS) if M.rows else 0
        self._launch(
            "rank_one_update", (), blocks, self._ld, *self._matrix(M), *self._vector(x), *self._vector(y), blocks
        )

    def panels(self, inner, above, first):
        from h2gpu.batched.systems.rank_update import UPDATE_EDGE, UPDATE_THREADS, update_bytes

        size, tiles = self.variant.panel, -(-(self.n - first) // UPDATE_EDGE)
        numbers = self._ld, inner, above, first, self.n, tiles
        shared = update_bytes(self.W.dtype.itemsize, size, False)
        self._launch("subtract_panels", (size,), tiles**2, *numbers, threads=UPDATE_THREADS, shared=shared)

    def _product(self, name, M, tiles, x, y, negative):
        square = min(M.rows, M.columns) > self.variant.panel or not self.variant.panel
        blocks = tiles if square and self.variant.tiles else 1
        places = *self._matrix(M), *self._vector(x), *self._vector(y), int(negative), blocks
        if M.rows and M.columns:
            self._launch(name, (square and self.variant.padded,), blocks, self._ld, *places)

    def _vector(self, v):
        return np.int64(v.row * self._ld + v.column), self._ld if v.down else 1

    def _matrix(self, M):
        return np.int64(M.row * self._ld + M.column), M.rows, M.columns

    def _launch(self, name, instance, blocks, *numbers, threads=THREADS, shared=0):
        from h2gpu.batched.device.compiler import kernel
        from h2gpu.batched.device.launch import launch

        function = kernel(HEADER, name, self.W.dtype, *instance, shared_bytes=shared)
        launch(function, self.batch * blocks, threads, (self.W, self._size, *numbers), shared)


def reduce(s):
    """B of all matrices: s.d its diagonal, s.e[:, : n − 1] what is right of it; the vectors of Q and P stay in W."""
    size = s.variant.panel
    for first in range(0, s.n, size or s.n):
        for k in range(min(size or s.n, s.n - first)):
            (_labrd if size else _gebd2)(s, first + k, k)
        after = first + size
        if size and after < s.n:
            s.panels(first, s.n, after)  # V Yᵀ
            s.panels(s.n, first, after)  # X Uᵀ


def _gebd2(s, i, _):
    """A column and a row, and two rank-one updates of what remains."""
    n, right, t = s.n, s.n - i - 1, s.n + s.variant.panel
    v, u, w = Vector(i, i, n - i, True), Vector(i, i + 1, right), Vector(t, 0, right)
    s.reflect(v, s.d, i)
    if right:
        s.columns(Block(i, i + 1, n - i, right), v, w)
        s.scale(w, i)
        s.rank_one(Block(i, i + 1, n - i, right), v, w)
        s.reflect(u, s.e, i)
        s.rows(Block(i + 1, i + 1, right, right), u, w)
        s.scale(w, i)
        s.rank_one(Block(i + 1, i + 1, right, right), w, u)


def _labrd(s, i, k):
    """Column and row k of a panel: A is read, W = A − V Yᵀ − X Uᵀ; column k of X and row k of Yᵀ are made."""
    n, p, right, below = s.n, i - k, s.n - i - 1, s.n - i
    t = n + s.variant.panel
    v, u = Vector(i, i, below, True), Vector(i, i + 1, right)
    s.rows(Block(i, p, below, k), Vector(n, i, k, True), v, True)  # − V Yᵀ
    s.rows(Block(i, n, below, k), Vector(p, i, k, True), v, True)  # − X Uᵀ
    s.reflect(v, s.d, i)
    if not right:
        return
    y, w = Vector(n + k, i + 1, right), Vector(t, 0, k)
    s.columns(Block(i, i + 1, below, right), v, y)
    s.columns(Block(i, p, below, k), v, w)
    s.columns(Block(n, i + 1, k, right), w, y, True)
    s.columns(Block(i, n, below, k), v, w)
    s.columns(Block(p, i + 1, k, right), w, y, True)
    s.scale(y, i)
    s.columns(Block(n, i + 1, k + 1, right), Vector(i, p, k + 1), u, True)  # row i: − V Yᵀ
    s.columns(Block(p, i + 1, k, right), Vector(i, n, k), u, True)  # − X Uᵀ
    s.reflect(u, s.e, i)
    x, w = Vector(i + 1, n + k, right, True), Vector(t + 1, 0, k + 1)
    s.rows(Block(i + 1, i + 1, right, right), u, x)
    s.rows(Block(n, i + 1, k + 1, right), u, w)
    s.rows(Block(i + 1, p, right, k + 1), w, x, True)
    s.rows(Block(p, i + 1, k, right), u, Vector(t + 1, 0, k))
    s.rows(Block(i + 1, n, right, k), Vector(t + 1, 0, k), x, True)
    s.scale(x, i)
