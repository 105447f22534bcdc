"""The stages of LU with partial pivoting, a launch each on a GPU, a few lines each on a CPU.

    P A = L U of (batch, m, n) matrices in place; row k changed places with row pivots[k].

Abdelfattah, Tomov & Dongarra (2019), section II: the search for a pivot, interchanges, scaling and rank-one updates in
panels; interchanges, triangular solves and products between them. Kernels: kernels/studies/lu_stages.cuh, and those of
panels in one launch of kernels/systems/lu_panel.cuh, whose `info` and table these matrices do without.
"""

import numpy as np

from h2gpu.arrays import array_module

SEARCH, SWAP, RANK_ONE, SOLVE, PRODUCT, PANEL = STAGES = "IDAMAX", "SWAP", "rank-1 updates", "TRSM", "GEMM", "panels"
HEADER = "studies/lu_stages.cuh"
THREADS, SOLVED, INNER = 256, 16, (64, 32, 16)  # of a block; rows solved at once; inner indices of one product
PANEL_WIDTHS = 16, 32  # columns of a panel in one launch


def stages(LU):
    """The stages for matrices on a CPU or a GPU."""
    return (HostStages if array_module(LU) is np else DeviceStages)(LU)


class HostStages:
    """NumPy's.   only: the one stage that is done, or None for all"""

    only = None

    def __init__(self, LU):
        self.LU, (self.batch, self.m, self.n) = LU, LU.shape
        self.pivots = array_module(LU).zeros((self.batch, min(self.m, self.n)), np.int32)
        self._each = np.arange(self.batch)

    def search(self, k):
        """pivots[k] = argmax |a_ik|, i ≥ k."""
        self.pivots[:, k] = k + np.argmax(np.abs(self.LU[:, k:, k]), axis=1)

    def swap(self, first, end, left, right):
        """Rows `first` … `end` change places with their pivots, in columns `left` … `right`."""
        A, each = self.LU[:, :, left:right], self._each
        for k in range(first, end):
            pivot = self.pivots[:, k]
            A[:, k], A[each, pivot] = A[each, pivot].copy(), A[:, k].copy()

    def rank_one(self, k, stop):
        """Column k is divided by its pivot, and columns before `stop` are updated by it."""
        A, pivot = self.LU, self.LU[:, k, k, None]
        A[:, k + 1 :, k] /= np.where(pivot == 0, np.inf, pivot)
        A[:, k + 1 :, k + 1 : stop] -= A[:, k + 1 :, k, None] * A[:, k, None, k + 1 : stop]

    def solve_few(self, first, rows, left, right):
        """L⁻¹ of rows `first` … `first + rows`, L the unit triangle of as many columns, in columns `left` … `right`."""
        A = self.LU[:, first : first + rows]
        for i in range(1, rows):
            A[:, i, left:right] -= (A[:, i, None, first : first + i] @ A[:, :i, left:right])[:, 0]

    def product(self, inner, width, top, bottom, left, right):
        """C −= L U: rows `top` … `bottom`, columns `left` … `right`; L and U from column and row `inner` on."""
        A, ks = self.LU, slice(inner, inner + width)
        A[:, top:bottom, left:right] -= A[:, top:bottom, ks] @ A[:, ks, left:right]

    def panel(self, way, first, width):
        """Columns `first` … `first + width`, interchanges within them."""
        for k in range(first, min(first + width, self.m)):
            self.search(k)
            self.swap(k, k + 1, first, first + width)
            self.rank_one(k, first + width)


class DeviceStages(HostStages):
    """CUDA's; arguments as above."""

    def __init__(self, LU):
        super().__init__(LU)
        import cupy

        self._info = cupy.zeros(self.batch, np.int32)

    def search(self, k):
        self._launch(SEARCH, "find_pivot", (), self.batch, (self.LU, self.pivots, self.m, self.n, k))

    def swap(self, first, end, left, right):
        strips = -(-(right - left) // THREADS)
        sizes = self.m, self.n, first, end, left, right, strips
        self._launch(SWAP, "swap_rows", (), self.batch * strips, (self.LU, self.pivots, *sizes))

    def rank_one(self, k, stop):
        below = self.m - k - 1
        strips = -(-below // THREADS)
        self._launch(RANK_ONE, "scale_column", (), self.batch * strips, (self.LU, self.m, self.n, k, strips))
        if stop > k + 1:
            width = PANEL_WIDTHS[0] if stop - k - 1 <= PANEL_WIDTHS[0] else PANEL_WIDTHS[1]
            strips = -(-below // (THREADS // width))
            sizes = self.m, self.n, k, stop, strips
            self._launch(RANK_ONE, "rank_one", (width,), self.batch * strips, (self.LU, *sizes))

    def solve_few(self, first, rows, left, right):
        strips = -(-(right - left) // THREADS)
        sizes = self.m, self.n, first, left, right, strips
        self._launch(SOLVE, "solve_rows", (rows,), self.batch * strips, (self.LU, *sizes))

    def product(self, inner, width, top, bottom, left, right):
        from h2gpu.batched.systems.rank_update import UPDATE_EDGE, UPDATE_THREADS, update_bytes

        down, across = (-(-size // UPDATE_EDGE) for size in (bottom - top, right - left))
        while width > 0:
            some = next(size for size in INNER if size <= width)
            sizes = self.m, self.n, inner, top, bottom, left, right, down, across
            shared, blocks = update_bytes(self.LU.dtype.itemsize, some, False), self.batch * down * across
            self._launch(PRODUCT, "subtract_product", (some,), blocks, (self.LU, *sizes), UPDATE_THREADS, shared)
            inner, width = inner + some, width - some

    def panel(self, way, first, width):
        from h2gpu.batched.device.launch import NULL
        from h2gpu.batched.systems.lu_panels import factor_panel

        if self.only in (None, PANEL):
            arguments = self.LU, self.pivots, self._info, NULL, self.m, self.n, first
            size = next(size for size in PANEL_WIDTHS if width <= size)
            factor_panel(way, self.LU.dtype, size, self.m - first, self.batch, arguments)

    def _launch(self, stage, name, sizes, blocks, arguments, threads=THREADS, shared=0):
        from h2gpu.batched.device.compiler import kernel
        from h2gpu.batched.device.launch import launch

        if self.only in (None, stage) and blocks:
            function = kernel(HEADER, name, self.LU.dtype, *sizes, shared_bytes=shared)
            launch(function, blocks, threads, arguments, shared)


def factor(stages, way, leaf):
    """P A = L U of matrices with m ≥ n, by halves of the columns as DGETRF2 does.

    way    how panels are done: "generic", a kernel a stage, or the name of a kernel of lu_panel.cuh
    leaf   columns of a panel at most, 16 or 32
    """
    _columns(stages, way, leaf, 0, stages.n)


def _columns(stages, way, leaf, first, width):
    """Columns `first` … `first + width` of rows `first` …, interchanges within these columns."""
    if width <= leaf:
        if way == "generic":
            HostStages.panel(stages, way, first, width)
        else:
            stages.panel(way, first, width)
        return
    half = leaf
    while 2 * half < width:
        half *= 2
    middle, end = first + half, first + width
    _columns(stages, way, leaf, first, half)
    stages.swap(first, middle, middle, end)
    _solve(stages, first, half, middle, end)
    stages.product(first, half, middle, stages.m, middle, end)
    _columns(stages, way, leaf, middle, width - half)
    stages.swap(middle, end, first, middle)


def _solve(stages, first, rows, left, right):
    """L⁻¹ of rows, by halves: solve, update, solve."""
    if rows <= SOLVED:
        stages.solve_few(first, rows, left, right)
        return
    half = rows // 2
    _solve(stages, first, half, left, right)
    stages.product(first, half, first + half, first + rows, left, right)
    _solve(stages, first + half, half, left, right)
