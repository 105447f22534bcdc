"""Targets that lie together, the cells of a factor that are next to them, and their covariances with sites."""

from dataclasses import dataclass
from itertools import product

import numpy as np

from h2gpu.batched import MatrixBatch
from h2gpu.covariance.pairs import pairwise
from h2gpu.solvers.skeletonization.cells import interleaved, key_of

OUTSIDE = 0.5  # widths of a leaf's cell: targets that far outside the box still count as inside
SHIFTS = {dim: np.array(list(product((-1, 0, 1), repeat=dim))) for dim in (1, 2, 3)}


@dataclass(frozen=True, eq=False)
class Chunk:
    """Targets that lie together.

    targets   (count,) their numbers
    places    (count, dim) their cells on the finest level
    inside    whether they are in the sites' box
    """

    targets: np.ndarray
    places: np.ndarray
    inside: bool


@dataclass(frozen=True, eq=False)
class Cells:
    """All cells of a factor that something was eliminated in, in the order of its steps.

    grid      `cells.Grid`
    finest    the deepest level
    steps     (cells,) of which step
    rows      (cells,) which of its rows
    found     {depth: (keys of cells, ascending, their numbers)}
    """

    grid: object
    finest: int
    steps: np.ndarray
    rows: np.ndarray
    found: dict

    @classmethod
    def of(cls, G):
        """Of a Skeletonization."""
        steps = np.repeat(np.arange(len(G.steps)), [len(step.places) for step in G.steps])
        rows = np.concatenate([np.arange(len(step.places)) for step in G.steps] or [np.empty(0, np.int64)])
        depths = np.array([step.depth for step in G.steps], np.int64)
        found = {}
        for depth in np.unique(depths).tolist():
            own = np.flatnonzero(depths[steps] == depth)
            keys = key_of(np.concatenate([step.places for step in G.steps if step.depth == depth]))
            order = np.argsort(keys, kind="stable")
            found[depth] = keys[order], own[order]
        finest = int(depths.max(initial=0))
        return cls(G.grid, finest, steps, rows, found)

    def beside(self, places):
        """Numbers of the cells of all levels that are next to these places of the finest one, ascending."""
        found = [np.empty(0, np.int64)]
        for depth, (keys, numbers) in self.found.items():
            own = np.unique(places >> (self.finest - depth), axis=0)
            wanted = np.unique(key_of(own[:, None] + SHIFTS[places.shape[1]]))
            at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
            found.append(numbers[at[keys[at] == wanted]])
        return np.sort(np.concatenate(found))


def chunks_of(cells, x, most):
    """Targets (m, dim) on the host in Chunks of neighbours, at most so many each."""
    grid = cells.grid
    slack = OUTSIDE * grid.width(max(cells.finest, 1))
    inside = ((x >= grid.corner - slack) & (x <= grid.corner + grid.extent + slack)).all(axis=1)
    places, chunks = grid.places(x, cells.finest), []
    order = np.argsort(interleaved(places, cells.finest), kind="stable")
    for flag in (True, False):
        own = order[inside[order] == flag]
        chunks += [Chunk(own[i : i + most], places[own[i : i + most]], flag) for i in range(0, len(own), most)]
    return chunks


def covariances(located, pairs, targets, position, local):
    """k of the local sites and some targets, and a last row of zeros."""
    xp = located.xp
    x, y = located.points[xp.asarray(targets)], located.columns[local]
    k = xp.zeros((len(local) + 1, len(targets)))
    if xp is np:
        k[:-1] = located.cov.values(y[:, None], x[None])
    else:
        stacks = (a.astype(np.float64, copy=False)[None] for a in (y, x, k[:-1]))
        pairwise(located.cov.pair_function, *map(MatrixBatch.from_stack, stacks))
    own = np.flatnonzero(np.isin(pairs[0], targets))
    if len(own):
        order = np.argsort(targets)
        columns = xp.asarray(order[np.searchsorted(targets, pairs[0, own], sorter=order)])
        k[position[xp.asarray(pairs[1, own])], columns] += located.cov.nugget
        k[-1] = 0  # sites that this chunk does not know
    return k
