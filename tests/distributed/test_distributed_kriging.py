"""Kriging by ranks is kriging by one process: fits, estimates, predictions at own targets, simulations."""

from functools import cache

import numpy as np
import pytest
from threads import all_of, on_ranks

from h2gpu import distributed
from h2gpu.covariance import Gaussian, Matern, Nugget
from h2gpu.distributed.statistics import Kriging as KrigingByRanks
from h2gpu.distributed.statistics import systems as by_ranks_systems
from h2gpu.distributed.statistics.equations import DistributedCross
from h2gpu.statistics import Kriging, cross, simulate, systems
from h2gpu.statistics.systems import direct

N, M = 300, 100
RNG = np.random.default_rng(0)
SITES, TARGETS = RNG.random((N, 2)), RNG.random((M, 2))
COV = Matern(1.3, 0.15, 1.5)
Y = simulate(COV, SITES, random_state=1, nugget=0.05)[:, 0] + SITES[:, 0]
WEIGHTS = RNG.integers(1, 4, N).astype(float)
CUTS = {1: [], 2: [110], 3: [0, 220], 4: [60, 60, 210]}  # unequal shares, some of them empty
TARGET_CUTS = {1: [], 2: [0], 3: [70, 71], 4: [30, 70, 100]}


@pytest.fixture(autouse=True)
def by_iterations(monkeypatch):
    """Of more than so few sites the matrix is hierarchical, and distributed."""
    monkeypatch.setattr(systems, "DENSE", 50)


def shares(comm, *arrays):
    return [np.split(a, (CUTS if len(a) == N else TARGET_CUTS)[comm.size])[comm.rank] for a in arrays]


@cache
def serial(nugget=0.05, trend="linear", weighted=False, **options):
    kriging = Kriging(COV, nugget, trend, 1e-8, solver="iterative", refine=False, **options)
    return kriging.fit(SITES, Y, WEIGHTS if weighted else None)


def by_ranks(comm, nugget=0.05, trend="linear", weighted=False, **options):
    kriging = KrigingByRanks(COV, nugget, trend, 1e-8, comm=comm, **({"refine": False} | options))
    X, y, weights = shares(comm, SITES, Y, WEIGHTS)
    return kriging.fit(X, y, weights if weighted else None)


@pytest.mark.parametrize(("ranks", "weighted"), [(1, True), (2, False), (3, True), (4, False)])
def test_fits_and_predictions_are_the_serial_ones(ranks, weighted):
    one = serial(weighted=weighted)
    mean, std = one.predict(TARGETS, return_std=True, observations=True)
    error = one.variance_error_

    def work(comm):
        kriging = by_ranks(comm, weighted=weighted)
        (X,) = shares(comm, TARGETS)
        own, deviation = kriging.predict(X, return_std=True, observations=True)
        return own, deviation, kriging.predict(X), kriging.variance_error_, kriging.weights_, kriging

    found = all_of(ranks, work)
    tolerance = 1e-6 * np.std(Y)  # of the solves
    assert np.abs(np.concatenate([f[0] for f in found]) - mean).max() < tolerance
    assert np.abs(np.concatenate([f[1] for f in found]) - std).max() < 1e-6 * std.max()
    for own, _, again, told, weights, kriging in found:
        assert np.allclose(own, again, rtol=0, atol=1e-10)
        assert told.checked == error.checked == 16 and told.neighbours == error.neighbours
        assert told.worst == pytest.approx(error.worst, rel=1e-2, abs=1e-6)
        assert np.array_equal(weights, found[0][4])
        assert np.allclose(weights, one.weights_, rtol=0, atol=1e-5 * np.abs(one.weights_).max())
        assert np.allclose(kriging.trend_coefficients_, one.trend_coefficients_, rtol=1e-5)
        assert kriging.rtol_ == pytest.approx(one.rtol_) and abs(kriging.iterations_ - one.iterations_) <= 1
        assert kriging.residual_ < 1e-6


@pytest.mark.parametrize("ranks", [1, 4])
def test_exact_deviations_of_few_targets_and_the_likelihood(ranks):
    one, few = serial(), TARGETS[:20]
    exact = one.predict(few, return_std=True)[1]
    likelihood = one.log_marginal_likelihood(gradient=True)

    def work(comm):
        kriging = by_ranks(comm)
        (X,) = np.array_split(few, comm.size)[comm.rank : comm.rank + 1]
        return kriging.predict(X, return_std=True)[1], kriging.log_marginal_likelihood(True), kriging.score(X, X[:, 0])

    found = all_of(ranks, work)
    assert np.allclose(np.concatenate([f[0] for f in found]), exact, rtol=1e-6)
    for _, value, score in found:
        assert float(value) == pytest.approx(float(likelihood), abs=1e-6 * abs(likelihood))
        assert np.allclose(value.gradient, likelihood.gradient, rtol=1e-3, atol=1e-3)
        assert np.allclose(value.gradient_error, likelihood.gradient_error, rtol=1e-2, atol=1e-3)
        assert score == pytest.approx(one.score(few, few[:, 0]), rel=1e-6)


@pytest.mark.parametrize("ranks", [3])
def test_conditional_simulations_of_a_seed_are_the_serial_ones(ranks):
    fields = serial().sample_y(TARGETS, 3, random_state=5)
    found = all_of(ranks, lambda comm: by_ranks(comm).sample_y(*shares(comm, TARGETS), 3, random_state=5))
    assert np.abs(np.concatenate(found) - fields).max() < 1e-4 * np.abs(fields).max()  # Lanczos ends at 1e-5


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_products_with_many_targets_by_a_rectangular_matrix(ranks, monkeypatch):
    """What variation below the sampling distance targets share with sites at the same place comes on top."""
    monkeypatch.setattr(cross, "DIRECT", 1000)
    cov, X = COV + Nugget(0.2), np.concatenate([TARGETS, SITES[:40]])
    C = cov(X, SITES)
    C[np.arange(M, len(X)), np.arange(40)] += 0.2
    V = np.random.default_rng(3).standard_normal((N, 2))
    tolerance = np.full(2, 1e-6)

    def work(comm):
        own = np.array_split(X, comm.size)[comm.rank]
        products = DistributedCross(comm, cross.CrossCovariance(own, SITES, cov))
        return products.products(V, tolerance)

    P = np.concatenate(all_of(ranks, work))
    assert np.sqrt(((P - C @ V) ** 2).mean(axis=0)).max() < 3e-6


@pytest.mark.parametrize("ranks", [3])
def test_estimates_of_vecchias_likelihood_are_the_serial_ones(ranks, monkeypatch):
    monkeypatch.setattr("h2gpu.statistics.likelihood.estimation.EXACT", 100)
    options = {"neighbours": 12, "fit_parameters": True}
    one = Kriging(COV, 0.05, rtol=1e-8, solver="iterative", refine=False, **options).fit(SITES, Y)

    def work(comm):
        kriging = by_ranks(comm, trend="constant", **options)
        return kriging.parameters_, kriging.parameter_errors_, kriging.estimation_.value

    found = all_of(ranks, work)
    for parameters, errors, value in found:
        assert parameters == found[0][0]  # to the last bit: all go on from the same
        assert parameters == pytest.approx(one.parameters_, rel=1e-6)
        assert errors == pytest.approx(one.parameter_errors_, rel=1e-5)
        assert float(value) == pytest.approx(float(one.estimation_.value), rel=1e-9)


def test_newtons_steps_on_the_full_likelihood_are_the_serial_ones(monkeypatch):
    monkeypatch.setattr("h2gpu.statistics.likelihood.estimation.EXACT", 100)
    monkeypatch.setattr("h2gpu.statistics.refinement.WORTH", 1e-9)
    monkeypatch.setattr("h2gpu.statistics.refinement.STEPS", 1)
    options = {"trend": "constant", "neighbours": 4, "fit_parameters": ["variance", "nugget"], "refine": True}
    one = Kriging(COV, 0.05, rtol=1e-8, solver="iterative", **options).fit(SITES, Y)
    left = Kriging(COV, 0.05, rtol=1e-8, solver="iterative", **options | {"refine": False}).fit(SITES, Y)
    assert abs(one.nugget_ / left.nugget_ - 1) > 1e-3  # a step was taken

    def work(comm):
        kriging = by_ranks(comm, **options)
        return kriging.parameters_, float(kriging.estimation_.value), kriging.estimation_.messages

    found = all_of(2, work)
    for parameters, value, messages in found:
        assert parameters == found[0][0] and messages == one.estimation_.messages
        assert parameters == pytest.approx(one.parameters_, rel=1e-3)
        assert value == pytest.approx(float(one.estimation_.value), rel=1e-4)


def test_few_sites_are_dense_on_every_host(monkeypatch):
    monkeypatch.setattr(systems, "DENSE", 4096)
    mean, std = serial(nugget=0.07).predict(TARGETS, return_std=True)
    one = Kriging(COV, 0.07, "linear", 1e-8).fit(SITES, Y)
    exact, deviations = one.predict(TARGETS, return_std=True)
    found = all_of(4, lambda comm: by_ranks(comm, nugget=0.07).predict(*shares(comm, TARGETS), return_std=True))
    assert np.allclose(np.concatenate([f[0] for f in found]), exact, rtol=0, atol=1e-12)
    assert np.allclose(np.concatenate([f[1] for f in found]), deviations, rtol=1e-10)
    assert np.abs(mean - exact).max() < 1e-5 and std.shape == deviations.shape


SMOOTH = Gaussian(1.3, 0.1)


@pytest.fixture
def factors(monkeypatch):
    """Of more than fifty sites one process factors."""
    monkeypatch.setattr(direct, "FEWEST", 50)


@cache
def factored(trend="linear"):
    return Kriging(SMOOTH, 1e-3, trend, 1e-6, std_rtol=1.0).fit(SITES, Y)


def factored_by_ranks(comm, **options):
    return KrigingByRanks(SMOOTH, 1e-3, "linear", 1e-6, std_rtol=1.0, comm=comm, **options).fit(*shares(comm, SITES, Y))


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_where_one_process_factors_every_rank_does(ranks, factors):
    """Iterations bound deviations from above: a tenth too large here."""
    one = factored()
    assert isinstance(one._equations.system, direct.DirectSystem)
    mean, std = one.predict(TARGETS, return_std=True, observations=True)
    fields, likelihood = one.sample_y(TARGETS, 2, random_state=3), one.log_marginal_likelihood()

    def work(comm):
        kriging, (X,) = factored_by_ranks(comm), shares(comm, TARGETS)
        found = kriging.predict(X, return_std=True, observations=True)
        return *found, kriging.sample_y(X, 2, random_state=3), kriging.log_marginal_likelihood(), kriging.iterations_

    found = all_of(ranks, work)
    assert np.allclose(np.concatenate([f[0] for f in found]), mean, rtol=0, atol=1e-8)
    assert np.allclose(np.concatenate([f[1] for f in found]), std, rtol=1e-8)
    assert np.allclose(np.concatenate([f[2] for f in found]), fields, rtol=0, atol=1e-6)
    assert all(f[3] == found[0][3] == pytest.approx(likelihood, rel=1e-9) and f[4] == 0 for f in found)


def test_ranks_iterate_where_they_are_asked_to_or_one_cannot_factor(factors, monkeypatch):
    std = factored().predict(TARGETS, return_std=True)[1]

    def work(comm, **options):
        kriging = factored_by_ranks(comm, **options)
        return kriging.iterations_, kriging.predict(*shares(comm, TARGETS), return_std=True)[1]

    def check(**options):
        found = all_of(3, lambda comm: work(comm, **options))
        assert min(iterations for iterations, _ in found) > 0
        assert np.all(np.concatenate([own for _, own in found]) > 0.99 * std)

    check(solver="iterative")
    with monkeypatch.context() as patch:
        patch.setattr(by_ranks_systems, "FACTORED", N - 1)
        check()
    serial_system, calls = systems.covariance_system, []

    def fails_once(*given):
        calls.append(given)
        if len(calls) == 2:
            raise np.linalg.LinAlgError("not positive definite")
        return serial_system(*given)

    with monkeypatch.context() as patch:
        patch.setattr(systems, "covariance_system", fails_once)
        check()
    assert len(calls) == 3

    def ends(*_):
        raise MemoryError("a factor")

    monkeypatch.setattr(systems, "covariance_system", ends)
    assert all(isinstance(error, MemoryError) for error in on_ranks(3, work))
    with pytest.raises(ValueError, match='solver: expected "auto" or "iterative" by ranks'):
        KrigingByRanks(SMOOTH, solver="direct", comm=distributed.Alone())


def test_estimates_of_ranks_that_factor_are_the_same_on_all(factors, monkeypatch):
    monkeypatch.setattr("h2gpu.statistics.likelihood.estimation.EXACT", 100)
    monkeypatch.setattr("h2gpu.statistics.refinement.WORTH", 1e-9)
    options = {"neighbours": 6, "fit_parameters": ["variance", "length_scale"]}

    def work(comm):
        kriging = KrigingByRanks(COV, 0.0, rtol=1e-8, comm=comm, **options).fit(*shares(comm, SITES, Y))
        told = kriging.parameters_, kriging.parameter_errors_, float(kriging.estimation_.value)
        return told, kriging.iterations_, kriging.predict(*shares(comm, TARGETS), return_std=True)[1]

    one = Kriging(COV, 0.0, rtol=1e-8, **options).fit(SITES, Y)
    assert one.estimation_.value.standard_error == 0  # by factors
    found = all_of(3, work)
    assert all(f[0] == found[0][0] and f[1] == 0 for f in found)  # to the last bit
    parameters, errors, value = found[0][0]
    assert parameters == pytest.approx(one.parameters_, rel=1e-6)
    assert errors == pytest.approx(one.parameter_errors_, rel=1e-5)
    assert value == pytest.approx(float(one.estimation_.value), rel=1e-9)
    std = one.predict(TARGETS, return_std=True)[1]
    assert np.allclose(np.concatenate([f[2] for f in found]), std, rtol=1e-6)


def test_more_ranks_than_clusters():
    """Fifty-one sites and seven ranks, most of which own nothing."""
    X, y = SITES[:51], Y[:51]
    one = Kriging(COV, 0.05, rtol=1e-8, solver="iterative").fit(X, y)

    def work(comm):
        kriging = KrigingByRanks(COV, 0.05, rtol=1e-8, comm=comm)
        part = slice(None) if comm.rank == 6 else slice(0, 0)
        return kriging.fit(X[part], y[part]).predict(TARGETS[:30][part], return_std=True)

    found = all_of(7, work)
    mean, std = one.predict(TARGETS[:30], return_std=True)
    assert np.allclose(found[6][0], mean, atol=1e-7) and np.allclose(found[6][1], std, atol=1e-7)
    assert all(len(f[0]) == 0 for f in found[:6])


def test_what_one_rank_cannot_use_is_an_error_of_all():
    def work(comm, spoil):
        X, y = shares(comm, SITES, Y)
        X, y = X.copy(), y.copy()
        if comm.rank == 1:
            y = spoil(y)
        return KrigingByRanks(COV, 0.05, comm=comm).fit(X, y)

    for error in on_ranks(2, lambda comm: work(comm, lambda y: y[1:])):
        assert isinstance(error, ValueError) and "rank 1: my_y: expected 190 values as my_X has rows" in str(error)
    for error in on_ranks(2, lambda comm: work(comm, lambda y: np.where(y > 0, np.nan, y))):
        assert isinstance(error, ValueError) and "y: expected finite numbers" in str(error)

    def bad_targets(comm):
        kriging = by_ranks(comm)
        return kriging.predict(TARGETS[:, : 2 - comm.rank])

    for error in on_ranks(2, bad_targets):
        assert isinstance(error, ValueError) and "rank 1: X has 1 features" in str(error)
    with pytest.raises(AttributeError, match="Kriging by ranks has no 'plot'"):
        KrigingByRanks(COV, comm=distributed.Alone()).plot()


def test_targets_may_be_a_list():
    x = np.linspace(0, 1, 20)[:, None]
    kriging = KrigingByRanks(COV, comm=distributed.Alone()).fit(x.tolist(), x[:, 0].tolist())
    assert abs(kriging.predict([[0.25]])[0] - 0.25) < 0.02
