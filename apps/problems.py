"""The point sets and covariances that studies and benchmarks share."""

import numpy as np

from h2gpu.covariance import Exponential


def perturbed_grid(n, random_state=0):
    """About n points: a regular grid of the unit square, each point moved by up to 0.4 spacings a direction, (n, 2)."""
    rows = 2 ** int(np.log2(n) / 2) if np.log2(n).is_integer() else round(np.sqrt(n))
    counts = np.array([n // rows, rows])
    grid = np.stack(np.meshgrid(*(np.arange(count) for count in counts), indexing="ij"), axis=-1).reshape(-1, 2)
    return (grid + 0.5 + np.random.default_rng(random_state).uniform(-0.4, 0.4, grid.shape)) / counts


def paper_covariance():
    """Exponential of length 0.1 on the unit square: Boukaram et al., section 8.3."""
    return Exponential(length_scale=0.1)
