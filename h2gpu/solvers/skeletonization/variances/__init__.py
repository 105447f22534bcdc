"""Kriging variances of many targets: a target is an index that is never eliminated.

    σ²(t) = C(0) − kᵀ (G Gᵀ)⁻¹ k = C(0) − |G⁻¹ k|²,     k = cov(sites, t)
    cell by cell:   x = L⁻¹ (k_R − Tᵀ k_S),   σ² −= |x|²,   k_SN −= Y x,     at the root x = L⁻¹ k

x vanishes, to the factor's tolerance, where the cell is not next to t's: its far field is that of its skeleton. Thus
3^dim cells a level and the root work for a target (measured: 20,000 targets of 32,768 sites, 6 s of CPU).
On the CPU a cell is worked on after the other (`singly`), on a GPU all pairs of a step's cells and their targets are
(`together`).
Targets outside the sites' box, of which the proxies know nothing, take all cells.

Reference: Minden, Ho, Damle & Ying (2017), section 3.3.
"""

import numpy as np

from h2gpu.progress import phase
from h2gpu.solvers.skeletonization.variances import singly, together


def explained(G, located, coincident=None):
    """See `Skeletonization.explained`."""
    xp, m = located.xp, len(located.points)
    if len(located.columns) != G.n:
        raise ValueError(f"located: expected the {G.n} sites of the factor as columns, got {len(located.columns)}")
    pairs = np.empty((2, 0), np.int64) if coincident is None else np.asarray(coincident)
    with phase("variances", m) as advance:
        return (singly if xp is np else together).explained(G, located, pairs, advance)
