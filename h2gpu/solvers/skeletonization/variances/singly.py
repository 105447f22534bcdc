"""Kriging variances on the CPU: a cell after the other, with those of a chunk's targets that it is next to.

x = L⁻¹ (k_R − Tᵀ k_S),   σ² −= |x|²,   k_SN −= Y x
"""

import numpy as np

from h2gpu import batched
from h2gpu.batched.device.threads import parallel
from h2gpu.solvers.skeletonization.cells import interleaved
from h2gpu.solvers.skeletonization.variances.targets import Cells, chunks_of, covariances

TARGETS = 1024  # of a chunk, at most
ENTRIES = 1 << 23  # of a chunk's k, at most
REPORTED = 16  # chunks between two reports of progress


def explained(G, located, pairs, advance):
    """|G⁻¹ k|² of the covariances k of all targets: (m,)."""
    cells, values, sites = Cells.of(G), np.empty(len(located.points)), located.columns.astype(np.float64)
    order = np.argsort(interleaved(G.grid.places(sites, cells.finest), cells.finest), kind="stable")
    chunks = chunks_of(cells, located.points.astype(np.float64), TARGETS)

    def work(chunk):
        values[chunk.targets] = _of_chunk(G, cells, order, located, pairs, chunk)

    for first in range(0, len(chunks), REPORTED):
        some = chunks[first : first + REPORTED]
        parallel(work, some)
        advance(sum(len(chunk.targets) for chunk in some))
    return values


def _of_chunk(G, cells, order, located, pairs, chunk):
    """|G⁻¹ k|² of the chunk's targets, in as many parts as memory wants.

    order   (n,) the sites, those of a cell together: rows that a step reads lie beside each other
    """
    numbers = cells.beside(chunk.places) if chunk.inside else np.arange(len(cells.steps))
    known = np.zeros(G.n + 1, bool)
    known[G.top] = True
    for number in numbers.tolist():
        step, row = G.steps[cells.steps[number]], cells.rows[number]
        known[step.SN[row]] = True
        known[step.R[row]] = True
    local = order[known[order]]
    position = np.full(G.n + 1, len(local))  # that of a padded index, whose row is zero
    position[local] = np.arange(len(local))
    most = max(8, ENTRIES // max(1, len(local)))
    parts = [slice(i, i + most) for i in range(0, len(chunk.targets), most)]
    return np.concatenate([_of_part(G, cells, located, pairs, chunk, part, numbers, position, local) for part in parts])


def _of_part(G, cells, located, pairs, chunk, part, numbers, position, local):
    """|G⁻¹ k|² of some targets of a chunk."""
    targets, places = chunk.targets[part], chunk.places[part]
    k = covariances(located, pairs, targets, position, local)
    squares, everyone = np.zeros(len(targets)), np.arange(len(targets))
    entries = k.reshape(-1)  # a view: one index an entry is read and written faster than two (0.11 and 0.19 ms a step)
    for number in numbers.tolist():
        step, row, columns = G.steps[cells.steps[number]], cells.rows[number], everyone
        if chunk.inside:
            near = (abs((places >> (cells.finest - step.depth)) - step.places[row]) <= 1).all(axis=1)
            if not near.any():
                continue
            columns = np.flatnonzero(near)
        T, (SN, R) = step.T[row], (position[of[row]][:, None] * len(targets) + columns for of in (step.SN, step.R))
        x = entries[R] - T.T @ entries[SN[: len(T)]]
        x = batched.trsm(step.L[row : row + 1], x[None])[0]
        entries[SN] = entries.take(SN) - step.Y[row] @ x
        squares[columns] += (x**2).sum(axis=0)
    x = batched.trsm(G.L[None], k[position[G.top]][None])[0]
    return squares + (x**2).sum(axis=0)
