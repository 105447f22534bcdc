"""Kriging variances by a direct factorization, cell by cell and all together, against dense truth."""

import numpy as np
import pytest

from h2gpu.arrays import to_host
from h2gpu.covariance import Exponential, Matern, Nugget, on_sphere
from h2gpu.covariance.sites import Sites
from h2gpu.solvers import skeletonization, skeletonize
from h2gpu.solvers.skeletonization.flat_changes import FlatChanges
from h2gpu.solvers.skeletonization.variances import singly, together

NONE = np.zeros((2, 0), np.int64)  # targets at the places of sites
ROUGH, SMOOTH = Exponential(length_scale=0.1), Matern(length_scale=0.1, smoothness=1.5) + Nugget(0.01)


@pytest.fixture(autouse=True)
def small_root(monkeypatch):
    """So that some thousand sites are eliminated on several levels."""
    monkeypatch.setattr(skeletonization, "ROOT", 200)
    monkeypatch.setattr(skeletonization, "WIDER", 1)


def uniform(n, seed=0):
    return np.random.default_rng(seed).random((n, 2))


def globe(n, seed):
    z = np.random.default_rng(seed).uniform(-1, 1, n)
    return np.stack([np.random.default_rng(seed + 1).uniform(-180, 180, n), np.degrees(np.arcsin(z))], axis=1)


def clusters(n, seed=5):
    middles = np.random.default_rng(5).random((12, 2))
    rng = np.random.default_rng(seed)
    return middles[rng.integers(12, size=n)] + 0.02 * rng.standard_normal((n, 2))


CASES = {
    "rough": (uniform(1600), uniform(150, 1), ROUGH),
    "smooth with a nugget": (uniform(1600), uniform(150, 1), SMOOTH),
    "around and outside the sites": (uniform(1600), 1.3 * uniform(150, 1) - 0.15, SMOOTH),
    "turned axes": (
        uniform(1600),
        uniform(150, 1),
        Matern(length_scale=(0.3, 0.05), smoothness=1.5, rotation=0.6) + Nugget(0.01),
    ),
    "clusters": (clusters(1600), np.concatenate([clusters(100, 6), uniform(50, 1)]), ROUGH),
    "on a sphere": (globe(1600, 3), globe(150, 7), on_sphere(Exponential(length_scale=800.0))),
    "on a line": (uniform(1600)[:, :1], uniform(150, 1)[:, :1], Exponential(length_scale=0.1) + Nugget(0.1)),
    "few": (uniform(40), uniform(30, 1), ROUGH),
}


def relative_errors(points, targets, cov, G, K, xp=np):
    """Of standard deviations."""
    k, total = cov(points, targets), float(cov(targets[:1])[0, 0])
    exact = total - (k * np.linalg.solve(K, k)).sum(axis=0)
    found = total - to_host(G.explained(Sites.of(xp.asarray(targets), cov, xp.asarray(points))))
    return abs(np.sqrt(found / exact) - 1)


@pytest.mark.parametrize("name", CASES)
def test_standard_deviations_are_those_of_the_dense_matrix(name, xp):
    points, targets, cov = CASES[name]
    errors = relative_errors(points, targets, cov, skeletonize(xp.asarray(points), cov), cov(points), xp)
    assert errors.max() < 5e-4 and errors.mean() < 5e-5


def test_the_error_falls_with_eta():
    points, targets, cov = CASES["smooth with a nugget"]
    coarse, fine = (
        relative_errors(points, targets, cov, skeletonize(points, cov, eta), cov(points)) for eta in (0.1, 0.001)
    )
    assert fine.mean() < 0.01 * coarse.mean()


def test_nuggets_by_site():
    points, targets, noise = uniform(1600), uniform(100, 1), np.random.default_rng(7).uniform(0.01, 1, 1600)
    errors = relative_errors(
        points, targets, ROUGH, skeletonize(points, ROUGH, nugget=noise), ROUGH(points) + np.diag(noise)
    )
    assert errors.max() < 5e-4


def test_variation_below_the_sampling_distance_is_shared_at_one_place(xp):
    points = uniform(1600)
    cov, some = ROUGH + Nugget(0.2), np.array([3, 1000, 5])
    G = skeletonize(xp.asarray(points), cov)
    targets = np.concatenate([uniform(40, 1), points[some]])
    located = Sites.of(xp.asarray(targets), cov, xp.asarray(points))
    found = to_host(G.explained(located, (np.arange(40, 43), some)))
    np.testing.assert_allclose(found[40:], 1.2, atol=1e-3)  # C(0): the variance is zero there
    np.testing.assert_array_equal(found[:40], to_host(G.explained(located))[:40])
    again = by_pairs(G, located, np.array([np.arange(40, 43), some]))
    np.testing.assert_allclose(again, found, atol=1e-10)


def test_parts_of_targets_change_nothing(monkeypatch):
    points, targets, cov = CASES["around and outside the sites"]
    G, located = skeletonize(points, cov), Sites.of(targets, cov, points)
    whole = G.explained(located)
    monkeypatch.setattr(singly, "ENTRIES", 1)
    monkeypatch.setattr(singly, "TARGETS", 37)
    np.testing.assert_allclose(G.explained(located), whole, atol=1e-6)


def by_pairs(G, located, pairs=NONE):
    """As a GPU works on them, wherever the arrays are."""
    return to_host(together.explained(G, located, pairs, lambda count: None))


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_pairs_of_cells_and_targets_give_what_cells_give_one_after_the_other(name, packed, monkeypatch):
    points, targets, cov = CASES[name]
    G, located = skeletonize(points, cov), Sites.of(targets, cov, points)
    expected = G.explained(located)
    if packed:  # as steps are kept on a GPU
        monkeypatch.setattr(skeletonization, "Changes", FlatChanges)
        G = skeletonize(points, cov)
    np.testing.assert_allclose(by_pairs(G, located), expected, atol=1e-10)


def test_parts_of_pairs_change_nothing(xp, monkeypatch):
    points, targets, cov = CASES["around and outside the sites"]
    G = skeletonize(xp.asarray(points), cov)
    located = Sites.of(xp.asarray(targets), cov, xp.asarray(points))
    whole = by_pairs(G, located)
    for name, few in (("TARGETS", 50), ("ENTRIES", 2000), ("WHOLE_ENTRIES", 20 * len(points)), ("STEP_ENTRIES", 1)):
        monkeypatch.setattr(together, name, few)
    monkeypatch.setattr(together, "TILES", (1, 2))
    np.testing.assert_allclose(by_pairs(G, located), whole, atol=1e-10)


def test_other_sites_are_refused():
    G = skeletonize(uniform(50), ROUGH)
    with pytest.raises(ValueError, match="located: expected the 50 sites of the factor"):
        G.explained(Sites.of(uniform(3), ROUGH, uniform(49)))
