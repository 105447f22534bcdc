"""Strong recursive skeletonization: C ≈ G Gᵀ, against dense factors."""

import importlib
import logging

import numpy as np
import pytest
import scipy.linalg

from h2gpu.arrays import array_module, to_host
from h2gpu.covariance import Exponential, Gaussian, Matern, Nugget, on_sphere
from h2gpu.solvers import conjugate_gradients, log_determinant, skeletonization, skeletonize, vecchia
from h2gpu.solvers.skeletonization import flat_changes, skeletonize_alike
from h2gpu.solvers.skeletonization.cells import Grid, Level, Rows, coarser
from h2gpu.solvers.skeletonization.elimination import NotDefinite, Verdicts, skeletons
from h2gpu.solvers.skeletonization.flat_changes import FlatChanges
from h2gpu.solvers.skeletonization.proxies import Proxies, steps_of

ROUGH, SMOOTH = Exponential(length_scale=0.1), Matern(length_scale=0.1, smoothness=1.5) + Nugget(0.01)


@pytest.fixture(autouse=True)
def small_root(monkeypatch):
    """So that some thousand sites are eliminated on several levels."""
    monkeypatch.setattr(skeletonization, "ROOT", 200)
    monkeypatch.setattr(skeletonization, "WIDER", 1)


@pytest.fixture(params=[pytest.param("cupy", marks=pytest.mark.gpu)])
def gpu(request):
    return importlib.import_module(request.param)


def uniform(n, seed=0):
    return np.random.default_rng(seed).random((n, 2))


def globe(n):
    z = np.random.default_rng(3).uniform(-1, 1, n)
    return np.stack([np.random.default_rng(4).uniform(-180, 180, n), np.degrees(np.arcsin(z))], axis=1)


def exact_log_determinant(K):
    return 2 * np.log(np.diag(np.linalg.cholesky(K))).sum()


def of_clusters(n):
    rng = np.random.default_rng(5)
    return rng.random((12, 2))[rng.integers(12, size=n)] + 0.01 * rng.standard_normal((n, 2))


def repeated(n):
    return uniform(n)[np.random.default_rng(6).integers(n // 2, size=n)]


SAMPLES = {
    "rough": (uniform(1400), ROUGH),
    "smooth with a nugget": (uniform(1400), SMOOTH),
    "smooth without": (uniform(1400), Matern(length_scale=0.02, smoothness=1.5)),
    "anisotropic": (uniform(1400) * [1, 30], Exponential(length_scale=(0.1, 4.0))),
    "along turned axes": (uniform(1400), Exponential(length_scale=(0.3, 0.03), rotation=0.6)),
    "in a strip": (uniform(1400) * [1, 0.05], ROUGH),
    "in clusters": (of_clusters(1400), ROUGH),
    "smooth in clusters": (of_clusters(1400), Matern(length_scale=0.01, smoothness=1.5)),
    "repeated": (repeated(1400), SMOOTH),
    "on a line": (uniform(1400)[:, :1], Matern(length_scale=0.05, smoothness=1.5) + Nugget(1e-3)),
    "on a sphere": (globe(1400), on_sphere(Exponential(length_scale=800.0))),
    "few": (uniform(50), ROUGH),
    "one": (uniform(1), ROUGH),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_the_determinant_and_the_solution_are_those_of_the_dense_matrix(name, xp):
    points, cov = SAMPLES[name]
    G, K = skeletonize(xp.asarray(points), cov), cov(points)
    assert abs(G.log_determinant() - exact_log_determinant(K)) < 2e-6 * len(points)
    b = np.random.default_rng(1).standard_normal((len(points), 2))
    assert np.linalg.norm(K @ to_host(G.solve(xp.asarray(b))) - b) < 0.02 * np.linalg.norm(b)
    assert G.eta == 0.01 and G.shape == K.shape


@pytest.mark.parametrize("cov", [ROUGH, SMOOTH])
def test_samples_have_the_covariance(cov):
    points = uniform(1500)
    G, K = skeletonize(points, cov), cov(points)
    root = G.multiply_half(np.eye(len(points)))
    assert np.linalg.norm(root @ root.T - K) < 1e-3 * np.linalg.norm(K)


def test_the_three_halves_are_inverse_and_transposed_to_each_other(xp):
    x, z = map(xp.asarray, np.random.default_rng(2).standard_normal((2, 1500)))
    G = skeletonize(xp.asarray(uniform(1500)), SMOOTH)
    assert len(G.steps) >= 9 and array_module(G.solve(x)) is xp
    np.testing.assert_allclose(to_host(G.multiply_half(G.solve_half(x))), to_host(x), atol=1e-11)
    np.testing.assert_allclose(float(G.solve_half(x) @ z), float(x @ G.solve_half_transposed(z)), rtol=1e-9)
    np.testing.assert_allclose(to_host(G @ x), to_host(G.solve_half_transposed(G.solve_half(x))), rtol=1e-9)
    np.testing.assert_allclose(float(G.multiply_half(x) @ z), float(x @ G.multiply_half_transposed(z)), rtol=1e-9)


@pytest.mark.parametrize("name", SAMPLES)
def test_the_skeletons_of_a_factor_give_it_again(name, xp):
    points, cov = SAMPLES[name]
    points = xp.asarray(points)
    G = skeletonize(points, cov)
    again, z = skeletonize_alike(G, points, cov, cov), xp.asarray(np.random.default_rng(2).standard_normal(len(points)))
    assert [step.SN.shape for step in again.steps] == [step.SN.shape for step in G.steps]
    np.testing.assert_allclose(to_host(again.multiply_half(z)), to_host(G.multiply_half(z)), atol=1e-7)


@pytest.mark.parametrize("noise", [1e-3, np.linspace(0.5, 2, 2500) * 1e-2])
def test_differences_by_the_same_skeletons_are_the_derivatives(noise):
    points, y, h = uniform(2500), np.random.default_rng(3).standard_normal(2500), 1e-4

    def at(length):
        return Matern(length_scale=0.1 * np.exp(length), smoothness=1.5)

    K, D = at(0)(points) + noise * np.eye(2500), (at(h)(points) - at(-h)(points)) / (2 * h)
    u = np.linalg.solve(K, y)
    G = skeletonize(points, at(0), 1e-3, nugget=noise)
    near = skeletonize_alike(G, points, at(0), at(h), noise)
    slope = (near.log_determinant() - G.log_determinant()) / h
    of_square = ((near.solve_half(y) ** 2).sum() - (G.solve_half(y) ** 2).sum()) / h
    np.testing.assert_allclose(slope, np.trace(np.linalg.solve(K, D)), rtol=1e-3)
    np.testing.assert_allclose(of_square, -u @ D @ u, rtol=1e-3)


@pytest.mark.parametrize("cov", [ROUGH, SMOOTH])
def test_the_error_falls_with_the_square_of_eta(cov):
    points = uniform(2200)
    exact = exact_log_determinant(cov(points))
    errors = [abs(skeletonize(points, cov, eta).log_determinant() - exact) for eta in (0.1, 0.01)]
    assert errors[1] < 0.05 * errors[0]


@pytest.mark.parametrize("cov", [ROUGH, SMOOTH])
def test_the_error_grows_no_faster_than_the_sites(cov):
    """As n, not as n²: for four times the sites at most 2.5 times the error a site."""
    few, many = (uniform(n) for n in (1100, 4400))
    errors = [(skeletonize(x, cov).log_determinant() - exact_log_determinant(cov(x))) / len(x) for x in (few, many)]
    assert min(errors) > -1e-6 and max(errors) < 0 and errors[1] > 2.5 * errors[0]


@pytest.mark.parametrize("cov", [ROUGH, SMOOTH])
def test_iterations_find_the_same_determinant_within_their_standard_errors(cov):
    points = uniform(2000)
    W = vecchia(points, cov, 30)
    found = log_determinant(cov(points), W, trace=2000)
    assert 0 < found.standard_error < 0.5
    assert abs(skeletonize(points, cov).log_determinant() - found.value) < 3 * found.standard_error


def test_the_skeleton_is_as_large_as_the_tolerance_demands():
    rng = np.random.default_rng(8)
    F = rng.standard_normal((3, 40, 12)) @ (0.2 ** np.arange(12) * rng.standard_normal((3, 12, 12)))
    A, real = np.broadcast_to(4 * np.eye(12), (3, 12, 12)).copy(), np.ones((3, 12), bool)
    order, _, kept, T = skeletons(F, A, 1e-4, real, np.full(3, 12), Verdicts())
    for b in range(3):
        diagonal = abs(np.diag(scipy.linalg.qr(F[b], mode="r", pivoting=True)[0]))
        assert kept[b] == (diagonal > 4e-4).sum() and 0 < kept[b] < 12  # 1/max diag((4 I)⁻¹) = 4
        S, R = order[b, : kept[b]], order[b, kept[b] :]
        T_b = T[b, : kept[b], : len(R)]
        assert np.linalg.norm(F[b][:, R] - F[b][:, S] @ T_b, 2) < 12 * 4e-4


def test_memory_is_told_by_part():
    G = skeletonize(uniform(1500), ROUGH)
    parts = dict(G.memory)
    assert parts.pop("total") == sum(parts.values()) == G.nbytes
    assert parts["couplings"] == sum(step.Y.nbytes for step in G.steps) > parts["triangles"] > 0
    assert parts["root"] == 8 * len(G.top) ** 2


@pytest.mark.slow
def test_far_cells_may_know_nothing_of_each_other():
    points, cov = uniform(2048), Matern(length_scale=0.002, smoothness=1.5)
    G = skeletonize(points, cov)
    assert not len(G.top)
    assert abs(G.log_determinant() - exact_log_determinant(cov(points))) < 1e-3
    np.testing.assert_allclose(G.multiply_half(G.solve_half(points)), points, atol=1e-11)


def test_little_of_the_memory_is_padded():
    G = skeletonize(uniform(4096), ROUGH)
    real = sum(((G.n > step.R).sum(axis=1) * (G.n > step.SN).sum(axis=1)).sum() for step in G.steps)
    assert real <= sum(step.Y.size for step in G.steps) < 1.15 * real


def test_nuggets_may_differ_from_site_to_site():
    points, nugget = uniform(1500), np.random.default_rng(7).uniform(0.01, 1, 1500)
    K = ROUGH(points) + np.diag(nugget)
    assert abs(skeletonize(points, ROUGH, nugget=nugget).log_determinant() - exact_log_determinant(K)) < 2e-3


def test_sites_in_float32_are_factored_in_float64(xp):
    points = xp.asarray(uniform(1400).astype(np.float32))
    G, same = skeletonize(points, ROUGH), skeletonize(points.astype(np.float64), ROUGH)
    assert abs(G.log_determinant() - same.log_determinant()) < 1e-9 and G.dtype == np.float64
    assert G.solve(points[:, 0]).dtype == np.float32


def test_cells_of_a_colour_may_be_eliminated_in_any_grouping(monkeypatch):
    points = uniform(2200)
    one = skeletonize(points, SMOOTH).log_determinant()
    monkeypatch.setitem(skeletonization.GROUP, "numpy", 1)
    assert abs(skeletonize(points, SMOOTH).log_determinant() - one) < 1e-9


def test_it_is_a_preconditioner():
    points = uniform(2048)
    G, K, b = skeletonize(points, SMOOTH), SMOOTH(points), np.ones((2048, 1))
    solution = conjugate_gradients(K, b, G, rtol=1e-10)
    assert solution.converged.all() and solution.iterations[0] <= 6
    estimate = log_determinant(K, G)
    assert abs(estimate.value - exact_log_determinant(K)) < 4 * estimate.standard_error + 1e-6


def test_every_index_is_in_one_cell_of_each_level():
    points = of_clusters(500)
    grid = Grid.around(points)
    level, depth = Level.of(grid.places(points, 6)), 6
    while depth:
        np.testing.assert_array_equal(np.sort(level.active), np.arange(500))
        np.testing.assert_array_equal(level.places[level.owners], grid.places(points, depth)[level.active])
        above, parent, start = coarser(level)
        for cell in range(len(level)):
            own = level.members[level.first[cell] : level.first[cell] + level.count[cell]]
            at = above.first[parent[cell]] + start[cell]
            np.testing.assert_array_equal(above.members[at : at + len(own)], own)
        level, depth = above, depth - 1


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_pairs_are_numbered_once_and_rows_are_those_of_near_cells(dim):
    points = np.random.default_rng(9).random((700, dim)) ** 2
    level = Level.of(Grid.around(points).places(points, 3))
    (a, b), numbers = level.pairs
    distance = abs(level.places[:, None] - level.places).max(axis=2)
    assert sorted(zip(a.tolist(), b.tolist())) == list(zip(*np.nonzero(np.triu(distance <= 2))))
    cell, slot = np.nonzero(level.near >= 0)
    ends = np.sort([cell, level.near[cell, slot]], axis=0)
    np.testing.assert_array_equal([a[numbers[cell, slot]], b[numbers[cell, slot]]], ends)
    level.count[level.count > 2] -= 1  # an index is eliminated
    cells = level.colours[-1]
    rows = Rows.of(level, cells)
    for b, cell in enumerate(cells.tolist()):
        parts = rows.at[b, : rows.own], rows.at[b, rows.own : rows.far], rows.at[b, rows.far :]
        for distant, part in enumerate(parts):
            own = np.flatnonzero(distance[cell] == distant)
            expected = np.concatenate([np.arange(level.first[c], level.first[c] + level.count[c]) for c in own] + [[]])
            np.testing.assert_array_equal(np.sort(part[part < len(points)]), expected)


@pytest.mark.parametrize("dim", [1, 2])
def test_proxies_are_those_in_the_box_and_no_more_columns_than_one_cell_has(dim):
    box, places = np.array([1.0, 0.6])[:dim], np.random.default_rng(10).integers(0, 16, (9, dim))
    centres, proxies = (places + 0.5) / 16 * box, Proxies(np.zeros(dim), box, 1000, None)
    points, roots = proxies.around(centres, 1 / 16)
    count = (roots > 0).sum(axis=1)
    assert count.max() == roots.shape[1] and (np.diff(1 * (roots > 0), axis=1) <= 0).all()
    assert ((points >= -1e-8) & (points <= box + 1e-8)).all(axis=2)[roots > 0].all()
    rings, _ = proxies._rings(1 / 16)
    every = centres[:, None] + steps_of(rings, dim)
    np.testing.assert_array_equal(count, ((every >= -1e-9) & (every <= box + 1e-9)).all(axis=2).sum(axis=1))


def test_loss_of_definiteness_starts_again_and_ends_in_an_error(xp, caplog):
    points = xp.asarray(uniform(1500))
    with caplog.at_level(logging.WARNING, "h2gpu"), pytest.raises(np.linalg.LinAlgError, match="add a nugget"):
        skeletonize(points, Gaussian(length_scale=2.0))
    assert caplog.text.count("again with") == skeletonization.RESTARTS


def test_verdicts_of_a_gpu_are_read_together_and_once(gpu):
    verdicts = Verdicts()
    verdicts.add(gpu.zeros(3, np.int32))
    verdicts.check()
    verdicts.add(gpu.asarray([0, 2], np.int32))
    verdicts.add(gpu.zeros(4, np.int32))
    with pytest.raises(NotDefinite):
        verdicts.check()
    verdicts.check()


@pytest.mark.parametrize("eta", [2, 5.0, 0, -1, "small", float("nan")])
def test_eta_out_of_range_is_refused(eta):
    with pytest.raises(ValueError, match="eta: expected a number above 0 and below 2"):
        skeletonize(uniform(50), ROUGH, eta)


def test_three_coordinates_are_refused_with_the_reason():
    with pytest.raises(ValueError, match="three dimensions the skeletons grow"):
        skeletonize(np.random.default_rng(0).random((50, 3)), ROUGH)


@pytest.mark.parametrize(("cov", "short"), [(ROUGH, 2**31), (SMOOTH, 0)])
def test_changes_in_one_buffer_are_those_by_blocks(cov, short, monkeypatch):
    points = np.concatenate([uniform(1500), of_clusters(700)])
    blocks = skeletonize(points, cov)
    monkeypatch.setattr(flat_changes, "SHORT", short)
    monkeypatch.setattr(skeletonization, "Changes", FlatChanges)
    flat = skeletonize(points, cov)
    assert len(flat.steps) == len(blocks.steps) > 20
    np.testing.assert_allclose(flat.log_determinant(), blocks.log_determinant(), rtol=1e-13)
    np.testing.assert_allclose(flat.solve(points), blocks.solve(points), rtol=1e-9, atol=1e-9)


def test_cpu_and_gpu_make_the_same_factor(gpu):
    points, x = uniform(1500), np.random.default_rng(2).standard_normal(1500)
    here, there = skeletonize(points, SMOOTH), skeletonize(gpu.asarray(points), SMOOTH)
    np.testing.assert_allclose(there.log_determinant(), here.log_determinant(), rtol=1e-10)
    np.testing.assert_allclose(to_host(there.solve(gpu.asarray(x))), here.solve(x), rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(np.sort(to_host(there.top)), np.sort(here.top))


def test_too_much_for_the_root_is_refused(monkeypatch):
    monkeypatch.setattr(skeletonization, "LARGEST", 100)
    with pytest.raises(np.linalg.LinAlgError, match="expected at most 100 indices to be left for the root, got"):
        skeletonize(uniform(1000), ROUGH)


def test_bad_vectors_are_refused():
    with pytest.raises(ValueError, match=r"b: expected shape \(50,\)"):
        skeletonize(uniform(50), ROUGH).solve(np.ones(49))
