"""Sums of squares of products: W_bᵀ W_b = Σ_l P_lᵀ P_l over the links l of segment b, P_l = F_l S_l or F_l S_lᵀ.

W_b is the R-factor of the stack of all P_l, or Q W_b with another orthogonal Q. Here the stacks are made and factored;
the GPU's kernel for small matrices never forms them (product_triangles.py).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from h2gpu.arrays import moved_together, to_host
from h2gpu.batched.copies import gather
from h2gpu.batched.core.dispatch import twins_of
from h2gpu.batched.core.matrix_batch import MatrixBatch
from h2gpu.batched.core.offsets import offsets_of, rounded_up
from h2gpu.batched.device.threads import pieces
from h2gpu.batched.products import gemm
from h2gpu.memory import piece_entries

twin = twins_of(__package__)
STACK_ENTRIES = 1 << 22  # at a time on the CPU


@dataclass(frozen=True, eq=False)
class Products:
    """The products P_l = F_l S_l of one list of links.

    F, S        MatrixBatch of one matrix a link
    first       (segments + 1,) the links of segment b are first[b] … first[b + 1] − 1; where the sizes of F are
    turned      P_l = F_l S_lᵀ
    triangular  every F_l is upper triangular (or trapezoidal)
    on_host     function that gives `first` and the rows of F before each segment, (segments + 1,) each, on the host;
                None: they are read from the device where they are needed

    Raises nothing; `triangles_of_products` checks it. Source: Börm (2010), chapter 6, total weights.

    >>> import numpy as np
    >>> from h2gpu import batched
    >>> rng = np.random.default_rng(0)
    >>> F, S = (batched.MatrixBatch.from_stack(rng.standard_normal((6, 5, 5))) for _ in range(2))
    >>> links = batched.Products(F, S, np.array([0, 2, 6]))  # two segments, of two and of four products
    >>> W = batched.MatrixBatch.empty([5, 5], [5, 5], np.float64)
    >>> batched.triangles_of_products([links], W)
    >>> P = np.concatenate([F[l] @ S[l] for l in range(2)])
    >>> bool(np.allclose(W[0].T @ W[0], P.T @ P))
    True
    """

    F: MatrixBatch
    S: MatrixBatch
    first: object
    turned: bool = False
    triangular: bool = False
    on_host: Callable | None = None

    def known(self) -> tuple[np.ndarray, np.ndarray]:
        """`first` and the rows of F before each segment, on the host: by `on_host`, or read from the device."""
        if self.on_host is not None:
            return self.on_host()
        first = to_host(self.first)
        return first, to_host(offsets_of(self.F.rows))[first]


def factor_stacks(products, out):
    """See h2gpu.batched.triangles_of_products: by a stack for every segment, some of them at a time."""
    out = out.on_host()
    firsts, rows_before = zip(*(kind.known() for kind in products))
    entries = sum(np.diff(rows) for rows in rows_before) * out.columns
    for part in pieces(entries, piece_entries(out.xp, STACK_ENTRIES)):
        ends = slice(part.start, part.stop + 1)
        _factor([first[ends] for first in firsts], [rows[ends] for rows in rows_before], products, out[part])


def _factor(firsts, rows_before, products, out):
    """W_b of a few segments."""
    heights = [np.diff(rows) for rows in rows_before]
    rows = sum(heights)
    offsets = offsets_of(rows * out.columns)  # in rounded room, which CuPy's pool can give to the next
    stacks = MatrixBatch(out.xp.empty(rounded_up(int(offsets[-1])), out.dtype), offsets[:-1], rows, out.columns)
    above, origins = np.zeros(len(out), np.int64), []
    for first, before, height in zip(firsts, rows_before, heights):
        origins.append(_origins(stacks, above - (before[:-1] - before[0]), first))
        above = above + height
    for kind, first, origin in zip(products, firsts, moved_together(out.xp, *origins)):
        _multiply_into(stacks, origin, kind, slice(int(first[0]), int(first[-1])))
    R = twin(stacks).qr(stacks, "r")
    targets = MatrixBatch(out.buffer, out.offsets, np.minimum(out.rows, R.rows), out.columns)
    gather(R, np.arange(len(out)), out=targets)
    for b in map(int, np.flatnonzero(out.rows > targets.rows)):
        out[b][int(targets.rows[b]) :] = 0


def _origins(stacks, above, first):
    """Of links: where the first row of F of their segment's stack would lie, and columns of it.

    above   what to add to the rows of these P before, for each segment
    """
    sides = np.array([stacks.offsets + above * stacks.columns, stacks.columns])
    return sides.take(np.repeat(np.arange(len(stacks)), np.diff(first)), axis=1)  # rows one behind the other


def _multiply_into(stacks, origins, kind, span):
    """P_l of a slice of links into the stacks of their segments."""
    F, (origin, columns) = kind.F[span].resident, origins
    offsets, bounds = origin + offsets_of(F.rows)[:-1] * columns, (F.bounds[0], stacks.bounds[1])
    targets = MatrixBatch.of(stacks.buffer, offsets, F.rows, columns, bounds)
    gemm(F, kind.S[span], transb=kind.turned, out=targets, triangular=kind.triangular)
