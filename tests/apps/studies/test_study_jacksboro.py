"""The study of elevations, on the file in data/, of few sites."""

from dataclasses import replace

import numpy as np
import pytest

from h2gpu.apps.benchmarks import problems, solvers
from h2gpu.apps.benchmarks.report import tables
from h2gpu.apps.studies import jacksboro as study_jacksboro
from h2gpu.apps.studies import prediction_study, published
from h2gpu.apps.studies.peers import gpboost_vecchia
from h2gpu.covariance import Matern

pytest.importorskip("matplotlib")


@pytest.fixture(autouse=True)
def without_gpboost(monkeypatch):
    """Others' packages are tested by themselves."""
    monkeypatch.setattr(gpboost_vecchia, "available", lambda: False)


def measured(folder, *options):
    """Rows of the table of estimates."""
    assert study_jacksboro.main(["--parameters", "estimated", "--output", str(folder), *options]) == 0
    return tables.read(folder / "study_jacksboro-estimated-cpu.csv")[1]


def test_sites_and_targets_are_the_raster_each_cell_once():
    smooth, rough = study_jacksboro.fields().values()
    assert (len(smooth.values), len(smooth.truth)) == (124_769, 13_863)
    both = np.concatenate([smooth.sites, smooth.targets]), np.concatenate([smooth.values, smooth.truth])
    raster = published.elevations(problems.JACKSBORO)
    for ours, theirs in zip(sorted_rows(*both), sorted_rows(*raster)):
        np.testing.assert_array_equal(ours, theirs)
    assert smooth.sites is rough.sites and smooth.truth is rough.truth and not smooth.covariance


def sorted_rows(points, values):
    """The same in an order of the points alone."""
    order = np.lexsort(points.T)
    return points[order], values[order]


def test_a_tenth_of_every_part_of_the_raster_is_held_out_and_always_the_same():
    field, again = study_jacksboro.fields()["jacksboro"], study_jacksboro.fields()["jacksboro"]
    np.testing.assert_array_equal(field.targets, again.targets)
    edges = [np.linspace(low, high, 6) for low, high in zip(field.sites.min(0) - 1, field.sites.max(0) + 1)]
    held, seen = (np.histogram2d(*x.T, edges)[0] for x in (field.targets, field.sites))
    cells = held + seen  # some 5,500 in each of 25 parts: five standard deviations of a binomial's share
    assert (abs(held / cells - 0.1) < 5 * np.sqrt(0.1 * 0.9 / cells)).all()


def test_estimates_start_where_the_solvers_benchmark_is():
    fields, given = study_jacksboro.fields(), solvers.jacksboro()
    assert list(fields) == list(given)
    for name, field in fields.items():
        cov, own = given[name][2], field.values.var()
        assert study_jacksboro.start(field) == solvers.of_elevations(own)[name]
        assert solvers.of_elevations(given[name][1].var())[name] == cov
    assert study_jacksboro.start(fields["jacksboro"]) == Matern(fields["jacksboro"].values.var(), 2000.0, 1.0)
    assert study_jacksboro.start(fields["jacksboro_nugget"]).nugget == solvers.ROUNDED


def test_each_field_of_elevations_has_rows_and_a_map(tmp_path, monkeypatch, capsys):
    maps, names = [], list(study_jacksboro.fields())
    monkeypatch.setattr(prediction_study, "draw", lambda field, found, path, told: maps.append(path.name))
    rows = measured(tmp_path, "--sites", "200", "--methods", "h2gpu,local 60")
    both = [(name, method) for name in names for method in ("h2gpu", "local 60")]
    assert [(row["field"], row["method"]) for row in rows] == both
    assert [row["smoothness"] for row in rows] == ["1", "1", "0.5", "0.5"]
    assert all(row["n"] == "200" and row["targets"] == "22" and row["surface"] == "plane" for row in rows)
    spread = study_jacksboro.fields()["jacksboro"].thinned(200).truth.std()
    assert all(float(row["rmse"]) < 0.8 * spread and float(row["coverage"]) > 0.8 for row in rows)
    assert maps == [f"study_jacksboro-{name}-estimated.png" for name in names]


@pytest.mark.parametrize("name", ["jacksboro", "jacksboro_nugget"])
def test_a_nugget_that_elevations_have_is_found_and_the_smoothness_kept(name):
    field = study_jacksboro.fields()[name].thinned(500)
    field = replace(field, values=field.values + 100 * np.random.default_rng(0).standard_normal(500))
    start = study_jacksboro.start(field)
    found = prediction_study.kriging(field, start, estimate=True)
    assert 0.5 < found.nugget / 100**2 < 2
    assert replace(found.cov, variance=1.0, length_scale=1.0) == replace(
        prediction_study.split(start)[0], variance=1.0, length_scale=1.0
    )


def test_elevations_have_no_parameters_to_give_and_a_file_that_must_be_there(tmp_path, capsys):
    assert study_jacksboro.main(["--parameters", "given", "--output", str(tmp_path)]) == 0
    assert not list(tmp_path.iterdir())
    for arguments, words in (
        (["--file", str(tmp_path / "absent.h5")], "absent.h5: no such file"),
        (["--fields", "medium"], "--fields: expected some of jacksboro, jacksboro_nugget, got medium"),
    ):
        assert study_jacksboro.main([*arguments, "--output", str(tmp_path)]) == 2
        assert words in capsys.readouterr().err


@pytest.mark.slow
def test_both_solvers_estimates_of_elevations_are_as_likely(tmp_path, capsys):
    """Beyond the 4,096 sites that are factored densely."""
    options = "--sites", "4500", "--fields", "jacksboro_nugget", "--methods", "direct,iterative"
    direct, iterative = measured(tmp_path, *options)
    assert direct["iterations"] == "0" < iterative["iterations"]
    assert float(direct["log-likelihood"]) == pytest.approx(float(iterative["log-likelihood"]), abs=0.1)
    assert float(direct["rmse"]) == pytest.approx(float(iterative["rmse"]), rel=1e-3)
    assert (tmp_path / "study_jacksboro-jacksboro_nugget-estimated.png").stat().st_size > 10_000
