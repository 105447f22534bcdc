"""Cokriging by ranks is cokriging by one process: fits, estimates, predictions at own targets, the command."""

import json

import h5py
import numpy as np
import pytest
from mpiexec import launch, needs_mpi
from threads import on_ranks

from h2gpu.apps import h2krige
from h2gpu.covariance import Exponential, MultivariateMatern
from h2gpu.distributed.statistics import CoKriging as CoKrigingByRanks
from h2gpu.statistics import CoKriging, simulate, systems

N, M = 90, 80
RNG = np.random.default_rng(0)
SITES, TARGETS = RNG.random((N, 2)), RNG.random((M, 2))
A, B = simulate(Exponential(1.0, 0.3), np.vstack([SITES, TARGETS]), 2, 1).T
BOTH = np.column_stack([A, 0.5 * A + B]) + 0.2 * RNG.standard_normal((N + M, 2))
Y = np.where(RNG.random((N, 2)) < 0.2, np.nan, BOTH[:N])
COV = MultivariateMatern((1.0, 1.2), 0.3, (0.5, 1.5), 0.4, space_dimension=2)
CUTS, TARGET_CUTS = {1: [], 2: [40], 3: [0, 50]}, {1: [], 2: [0], 3: [50, 51]}  # unequal shares, some of them empty


def by_ranks(size, nugget, targets=TARGETS, **options):
    """The (mean, std) of all targets of each rank, and what fit found."""

    def work(comm):
        x, y = (np.split(a, CUTS[size])[comm.rank] for a in (SITES, Y))
        mine = np.split(targets, TARGET_CUTS[size])[comm.rank]
        model = CoKrigingByRanks(COV, nugget, "linear", 1e-8, comm=comm, **options).fit(x, y)
        observed = model.predict(mine, return_std=True, observations=True)
        return model.predict(mine), *observed, model.iterations_, model.nugget_

    found = on_ranks(size, work)
    for one in found:
        assert not isinstance(one, Exception), one
    return found


@pytest.mark.parametrize(("dense", "size"), [(50, 1), (50, 2), (50, 3), (4096, 3)])
def test_predictions_are_those_of_one_process(monkeypatch, dense, size):
    monkeypatch.setattr(systems, "DENSE", dense)
    nuggets = [0.05, 0.1]
    one = CoKriging(COV, nuggets, "linear", 1e-8).fit(SITES, Y)
    mean, std = one.predict(TARGETS, return_std=True, observations=True)
    means, with_std, stds, iterations, found = zip(*by_ranks(size, nuggets))
    np.testing.assert_allclose(np.concatenate(means), mean, rtol=0, atol=1e-6)
    np.testing.assert_allclose(np.concatenate(with_std), mean, rtol=0, atol=1e-6)
    np.testing.assert_allclose(np.concatenate(stds), std, rtol=1e-4)
    assert all(count > 0 for count in iterations) == (dense == 50) and found[0].tolist() == nuggets


@pytest.mark.slow
def test_estimates_are_those_of_one_process(monkeypatch):
    """By Vecchia's likelihood, and a step of the full one."""
    monkeypatch.setattr(systems, "DENSE", 50)
    monkeypatch.setattr("h2gpu.statistics.likelihood.estimation.EXACT", 100)
    monkeypatch.setattr("h2gpu.statistics.refinement.WORTH", 1e-9)
    monkeypatch.setattr("h2gpu.statistics.refinement.STEPS", 1)
    options = {"neighbours": 12, "fit_parameters": ["partial", "nugget"], "refine": True}
    one = CoKriging(COV, 0.1, "linear", 1e-8, **options).fit(SITES, Y)
    assert not one.estimation_.exact
    mean, std = one.predict(TARGETS, return_std=True, observations=True)
    _, means, stds, _, nuggets = zip(*by_ranks(2, 0.1, **options))
    np.testing.assert_allclose(nuggets, [one.nugget_] * 2, rtol=1e-3)
    np.testing.assert_allclose(np.concatenate(means), mean, rtol=0, atol=1e-3)
    np.testing.assert_allclose(np.concatenate(stds), std, rtol=1e-3)


KRIGED = """
import sys
from h2gpu.apps import h2krige
from h2gpu.statistics import systems

systems.DENSE = 50  # of more observations the matrices are by ranks
sys.exit(h2krige.main(sys.argv[1:]))
"""


@pytest.mark.slow
@needs_mpi
def test_cokriging_by_processes(tmp_path, monkeypatch, capsys):
    """File, report and printed lines of a serial run of several --values."""
    source, targets, one, several = (tmp_path / f"{name}.h5" for name in ("x", "t", "one", "several"))
    for path, points, values in ((source, SITES, Y), (targets, TARGETS, BOTH[N:])):
        with h5py.File(path, "w") as file:
            file["points"], file["zinc"], file["lead"] = points, values[:, 0], values[:, 1]
    told = [str(source), "--targets", str(targets), "--values", "zinc,lead", "--covariance", "matern", "--fit"]
    monkeypatch.setattr(systems, "DENSE", 50)
    reports = [tmp_path / "one.json", tmp_path / "several.json"]
    assert h2krige.main([*told, "-o", str(one), "--report", str(reports[0])]) == 0
    printed = capsys.readouterr().out
    script = tmp_path / "kriged.py"
    script.write_text(KRIGED)
    done = launch(2, script, *told, "-o", several, "--report", reports[1])
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("90 sites in 2D; ") == 1 and "2 processes" in done.stdout
    assert done.stderr.count("smoothness[1] 1.5 is kept") == 1
    first, second = (
        text.split("\ncovariance  ")[1].split("\nsolve  ")[0].splitlines() for text in (printed, done.stdout)
    )
    assert len(first) > 10 and [line[:12] for line in first] == [line[:12] for line in second]
    with h5py.File(one) as a, h5py.File(several) as b:
        assert set(a) == set(b) and set(a.attrs) == set(b.attrs)
        for name in a:
            assert np.allclose(a[name], b[name], rtol=0, atol=1e-5), name
    serial, found = (json.loads(path.read_text()) for path in reports)
    assert set(serial) == set(found) and found["processes"] == 2 and set(found["scores"]) == {"zinc", "lead"}
    assert found["nugget"] == pytest.approx(serial["nugget"], rel=1e-4) and found["iterations"] > 0
