"""Block kriging: means and covariances of block averages are those of the dense equations of the discretized blocks."""

from types import SimpleNamespace

import numpy as np
import pytest
from kriging_problems import COV, problem

from h2gpu.covariance import Exponential, Matern, Nugget, on_sphere
from h2gpu.statistics import Kriging, areas, cells
from h2gpu.statistics.blocks import averages, discretization

TRENDS = {None: lambda X: X[:, :0], "constant": lambda X: X[:, :1] ** 0, "linear": lambda X: np.c_[np.ones(len(X)), X]}


def averaging(blocks):
    """(blocks, total) dense weights."""
    A = np.zeros((len(blocks), len(blocks.weights)))
    A[np.repeat(np.arange(len(blocks)), np.diff(blocks.start)), np.arange(A.shape[1])] = blocks.weights
    return A


def dense(cov, nugget, trend, X, y, blocks, mean=0.0):
    """Means and covariance of errors of block kriging, from the textbook's system of all places of all blocks."""
    A, P, F = averaging(blocks), blocks.points, TRENDS[trend]
    n, total = len(X), np.concatenate([X, P])
    S = cov(total)
    S[np.diag_indices(len(S))] -= cov.nugget
    same = (total[:, None] == total[None]).all(axis=-1)
    if not blocks.areal:
        S += cov.nugget * same
    else:
        S[:n, :n] += cov.nugget * np.eye(n)
    K, k, C = S[:n, :n] + nugget * np.eye(n), S[:n, n:] @ A.T, A @ S[n:, n:] @ A.T
    q, p = A @ F(P), F(X).shape[1]
    system = np.block([[K, F(X)], [F(X).T, np.zeros((p, p))]])
    weights = np.linalg.solve(system, np.concatenate([k, q.T]))[:n]
    known = mean if trend is None else 0.0
    return weights.T @ (y - known) + known, C - weights.T @ k - k.T @ weights + weights.T @ K @ weights


@pytest.mark.parametrize("trend", TRENDS, ids=str)
@pytest.mark.parametrize("cov", [Exponential(2.0, 0.3), Matern(1.0, 0.2, 1.5) + Nugget(0.3)], ids=repr)
def test_means_and_joint_errors_are_those_of_dense_equations(way, cov, trend):
    X, y, T = problem(150, 30)
    kriging = Kriging(cov, 0.05, trend, mean=0.0 if trend else 2.0).fit(X, y)
    sets = [T[:4], X[:1], np.r_[T[:2], X[1:4]], T[5:22]]  # share places with sites and others
    several = [(discretization.blocks_of(sets, np.asarray), sets)]
    several += [(c, c) for c in (cells(T[:9], (0.2, 0.1)), cells(X[:4], 0.1, 3))]  # middle nodes of the last are sites
    for blocks, given in several:
        mean, joint = dense(cov, 0.05, trend, X, y, blocks, 2.0)
        found, cov_found = kriging.predict_blocks(given, return_cov=True)
        np.testing.assert_allclose(found, mean, atol=100 * way)
        np.testing.assert_allclose(cov_found, joint, atol=100 * way)
        np.testing.assert_allclose(kriging.predict_blocks(given), found, rtol=1e-12)
        alone, std = kriging.predict_blocks(given, return_std=True)
        np.testing.assert_allclose(alone, found, rtol=1e-12)
        np.testing.assert_allclose(std, np.sqrt(np.diag(joint)), rtol=300 * way)


def test_blocks_of_one_place_are_points():
    X, y, T = problem(100, 20)
    kriging = Kriging(COV + Nugget(0.2), 0.05, "linear").fit(X, y)
    T = np.concatenate([T, X[:3]])
    for a, b in zip(kriging.predict_blocks([t[None] for t in T], True), kriging.predict(T, True)):
        np.testing.assert_allclose(a, b, rtol=1e-9)


def test_work_in_pieces_changes_nothing(monkeypatch):
    X, y, T = problem(90, 25)
    kriging, blocks = Kriging(COV, 0.05).fit(X, y), [T[: 1 + i] for i in range(24)]
    whole = kriging.predict_blocks(blocks, return_cov=True)[1], kriging.predict_blocks(blocks, True)[1]
    monkeypatch.setattr(averages, "PAIRS", 700)
    monkeypatch.setattr(averages, "EXACT", 5)
    np.testing.assert_allclose(kriging.predict_blocks(blocks, return_cov=True)[1], whole[0], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(kriging.predict_blocks(blocks, True)[1], whole[1], rtol=1e-9)


def test_the_mean_of_four_cells_is_that_of_the_whole_and_nodes_converge():
    X, y, _ = problem(120)
    kriging = Kriging(COV, 0.05).fit(X, y)
    quarters = cells([[0.3, 0.3], [0.3, 0.5], [0.5, 0.3], [0.5, 0.5]], 0.2, 8)
    mean, joint = kriging.predict_blocks(quarters, return_cov=True)
    whole, std = kriging.predict_blocks(cells([[0.4, 0.4]], 0.4, 16), True)
    assert whole[0] == pytest.approx(mean.mean(), rel=1e-5)
    assert std[0] ** 2 == pytest.approx(joint.mean(), rel=1e-4)
    coarse = kriging.predict_blocks(cells([[0.4, 0.4]], 0.4, 6), True)
    assert coarse[0][0] == pytest.approx(whole[0], rel=0.01) and coarse[1][0] == pytest.approx(std[0], rel=0.02)
    assert std[0] < kriging.predict([[0.4, 0.4]], True)[1][0]  # a mean over an area is less uncertain than its middle


def test_gauss_nodes_integrate_polynomials_exactly():
    blocks = cells([[1.0, 2.0, 3.0]], (2.0, 1.0, 4.0), 3)
    x, y, z = blocks.points.T
    assert blocks.weights.sum() == pytest.approx(1) and len(blocks.weights) == 27
    assert blocks.weights @ (x**5 * y * z**4) == pytest.approx((2**6 / 6) / 2 * 2 * (5**5 - 1) / 5 / 4)


def test_simulated_means_scatter_as_the_variances_say():
    X, y, T = problem(80)
    kriging = Kriging(COV, 0.05).fit(X, y)
    blocks = cells(T[:6], 0.3, 3)
    samples = kriging.sample_y(blocks.points, 2000, 0)
    joint = kriging.predict_blocks(blocks, return_cov=True)[1]
    np.testing.assert_allclose(np.cov(blocks.means(samples)), joint, atol=5 * joint.max() * (2 / 2000) ** 0.5)


def test_polygons_are_filled_with_points_of_a_grid():
    shapely, geopandas = pytest.importorskip("shapely"), pytest.importorskip("geopandas")
    disc, ring = shapely.Point(0.5, 0.5).buffer(0.2), shapely.Point(0.4, 0.4).buffer(0.3).difference(
        shapely.Point(0.4, 0.4).buffer(0.2))  # fmt: skip
    sliver = shapely.Polygon([(0, 0), (1, 1e-3), (1, 0)])
    blocks = areas([disc, ring, sliver], 400)
    counts = np.diff(blocks.start)
    assert blocks.areal and abs(counts[:2] - 400).max() < 40 and counts[2] >= 1
    for b, shape in enumerate((disc, ring, sliver)):
        own = blocks.points[blocks.start[b] : blocks.start[b + 1]]
        assert shapely.contains_xy(shape, *own.T).all()
    np.testing.assert_allclose(blocks.points[: counts[0]].mean(axis=0), 0.5, atol=1e-12)
    X, y, _ = problem(100)
    kriging = Kriging(COV, 0.05).fit(X, y)
    square = shapely.box(0.2, 0.3, 0.4, 0.5)
    grid, gauss = (kriging.predict_blocks(b, True) for b in (areas([square], 900), cells([[0.3, 0.4]], 0.2, 8)))
    np.testing.assert_allclose(grid, gauss, rtol=1e-3)
    table = geopandas.GeoDataFrame({"a": [1, 2]}, geometry=[disc, square], crs=32632)
    assert kriging.predict_blocks(areas(table)).shape == (2,) and areas(table).crs == table.crs
    sites = geopandas.GeoSeries(shapely.points(X), crs=4326)
    with pytest.warns(UserWarning, match="are degrees"):
        degrees = Kriging(COV, 0.05).fit(sites, y)
    with pytest.raises(ValueError, match="X: expected the coordinate reference system of the fit, EPSG:4326"):
        degrees.predict_blocks(areas(table))


def test_blocks_on_the_sphere():
    rng = np.random.default_rng(0)
    X, cov = (
        np.column_stack([rng.uniform(0, 20, 60), rng.uniform(40, 55, 60)]),
        on_sphere(Matern(1.0, 800.0, 1.5), 6371.0, distance="chordal"),
    )
    y, blocks = rng.standard_normal(60), cells([[5.0, 45.0], [12.0, 50.0]], 2.0)
    mean, joint = dense(cov, 0.1, "constant", X, y, blocks)
    found, cov_found = Kriging(cov, 0.1).fit(X, y).predict_blocks(blocks, return_cov=True)
    np.testing.assert_allclose(found, mean, rtol=1e-9)
    np.testing.assert_allclose(cov_found, joint, atol=1e-9)


def test_blocks_with_trend_columns_bring_them():
    X, y, T = problem(80, 20)

    def lift(Z):
        return np.column_stack([Z, np.sin(5 * Z[:, 0])])

    kriging = Kriging(COV, 0.05, trend=[2]).fit(lift(X), y)
    found = kriging.predict_blocks([lift(T[:7]), lift(T[7:])])
    points = kriging.predict(lift(T))
    np.testing.assert_allclose(found, [points[:7].mean(), points[7:].mean()], rtol=1e-9)
    with pytest.raises(ValueError, match="X has 2 features, but Kriging is expecting 3"):
        kriging.predict_blocks(cells(T, 0.1))


@pytest.mark.parametrize("make, words", [
    (lambda k: k.predict_blocks([]), "blocks: expected a list of .* got list"),
    (lambda k: k.predict_blocks(np.zeros((3, 2))), "blocks: expected a list of .* got ndarray"),
    (lambda k: k.predict_blocks([np.zeros((3, 3))]), "X has 3 features"),
    (lambda k: k.predict_blocks([np.zeros((0, 2))]), "0 sample"),
    (lambda k: k.predict_blocks([[[0.0, np.nan]]]), "X: expected finite numbers"),
    (lambda k: k.predict_blocks([[[0.0, 0.0]]], True, return_cov=True), "expected one of return_std and return_cov"),
    (lambda k: cells([0.0, 1.0], 1.0), r"centres: expected finite numbers of shape \(blocks, dim\)"),
    (lambda k: cells([[0.0, np.inf]], 1.0), "centres: expected finite"),
    (lambda k: cells([[0.0, 1.0]], (1.0, 2.0, 3.0)), "size: expected a positive length, or 2 of them"),
    (lambda k: cells([[0.0, 1.0]], -1.0), "size: expected a positive length"),
    (lambda k: cells([[0.0, 1.0]], 1.0, 0), "points: expected an integer from 1 to 64, got 0"),
    (lambda k: cells(np.zeros((5000, 2)), 1.0, 64), "blocks: expected at most 16,777,216 points"),
])  # fmt: skip
def test_wrong_blocks_are_refused(make, words):
    X, y, _ = problem(30)
    with pytest.raises(ValueError, match=words):
        make(Kriging(COV, 0.05).fit(X, y))


def test_wrong_polygons_are_refused(monkeypatch):
    shapely = pytest.importorskip("shapely")
    for shapes, words in (
        ([None], "got None at 0"), ([3], "got 3 at 0"), ([], "one or more areas"),
        ([shapely.Point(0, 0)], "one or more areas"), (shapely.Polygon(), "one or more areas"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=rf"polygons: expected .*{words}"):
            areas(shapes)
    with pytest.raises(ValueError, match="points: expected an integer"):
        areas([shapely.box(0, 0, 1, 1)], 0)
    monkeypatch.setattr(averages, "MOST_BLOCKS", 2)
    X, y, T = problem(30)
    with pytest.raises(ValueError, match="return_cov: expected at most 2 block means"):
        Kriging(COV, 0.05).fit(X, y).predict_blocks(cells(T, 0.1), return_cov=True)
    monkeypatch.setitem(__import__("sys").modules, "shapely", None)
    with pytest.raises(ImportError, match=r'areas: needs shapely: pip install "h2gpu\[files\]"'):
        areas(SimpleNamespace(geometry=[]))
