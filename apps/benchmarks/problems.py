"""The point sets and covariances that studies and benchmarks share."""

from pathlib import Path

import h5py
import numpy as np

from h2gpu.covariance import Exponential

JACKSBORO = Path(__file__).resolve().parents[2] / "data" / "jacksboro.h5"
JACKSBORO_SITES = 138632
CENTRES, SPREAD = 64, 0.02  # of points in clusters


def perturbed_grid(n, random_state=0, share=(0, 1)):
    """About n points: a regular grid of the unit square, each point moved by up to 0.4 spacings a direction, (n, 2).

    share   (rank, ranks): this part of them alone, the same numbers
    """
    rows = 2 ** int(np.log2(n) / 2) if np.log2(n).is_integer() else round(np.sqrt(n))
    counts, (rank, ranks) = np.array([n // rows, rows]), share
    begin, end = (int(counts.prod()) * k // ranks for k in (rank, rank + 1))
    rng = np.random.default_rng(random_state)
    rng.bit_generator.advance(2 * begin)
    grid = np.stack(np.divmod(np.arange(begin, end), rows), axis=-1)
    return (grid + 0.5 + rng.uniform(-0.4, 0.4, grid.shape)) / counts


def paper_covariance():
    """Exponential of length 0.1 on the unit square: Boukaram et al., section 8.3."""
    return Exponential(length_scale=0.1)


def clusters(n, random_state=0):
    """n points of a mixture of Gaussians of differing weight and width, (n, 2) in the unit square."""
    rng = np.random.default_rng(random_state)
    which = rng.choice(CENTRES, size=n, p=rng.dirichlet(np.ones(CENTRES)))
    centres, spreads = rng.random((CENTRES, 2)), SPREAD * rng.lognormal(0, 1, CENTRES)
    points = centres[which] + spreads[which, None] * rng.standard_normal((n, 2))
    return np.clip(points, 0, 1) + 1e-9 * rng.random((n, 2))


def cube(n, random_state=0):
    """n uniform points of the unit cube, (n, 3)."""
    return np.random.default_rng(random_state).random((n, 3))


def jacksboro(n=JACKSBORO_SITES):
    """The first n sites of the Jacksboro elevation model, metres, (n, 2)."""
    with h5py.File(JACKSBORO) as file:
        return file["points"][:n]
