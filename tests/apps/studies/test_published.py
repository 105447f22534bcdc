"""The readers of published fields, and kriging from near sites alone."""

import h5py
import numpy as np
import pytest
import small_fields

from h2gpu.apps.command.command import InputError
from h2gpu.apps.studies import published
from h2gpu.apps.studies.peers.local_kriging import local_kriging
from h2gpu.covariance import Exponential, Matern, Nugget
from h2gpu.statistics import scores


def test_heaton_s_sites_and_targets_are_told_by_what_is_masked(tmp_path):
    fields = published.heaton(small_fields.heaton(tmp_path / "h.h5"))
    field = fields["simulated"]
    assert field.sites.shape == (180, 2) and field.targets.shape == (45, 2)
    assert np.isfinite(field.values).all() and np.isfinite(field.truth).all()
    both = np.concatenate([field.sites, field.targets])
    assert len(np.unique(both, axis=0)) == 225
    assert field.covariance == Exponential(16.40771, 4 / 3) + Nugget(0.05) and field.mean == small_fields.MEAN
    assert fields["satellite"].covariance is None and fields["satellite"].mean is None


def test_kaust_s_covariances_are_in_our_convention(tmp_path):
    fields = published.kaust(small_fields.kaust(tmp_path / "k.h5"))
    assert list(fields) == ["rough", "smooth"] and fields["smooth"].truth.shape == (40,)
    assert fields["smooth"].covariance == Matern(1.5, 0.0632 * 3**0.5, 1.5)
    assert fields["rough"].covariance.nugget == published.KAUST_NUGGET


def test_thinned_fields_keep_sites_and_values_together(tmp_path):
    field = published.heaton(small_fields.heaton(tmp_path / "h.h5"))["simulated"]
    fewer = field.thinned(90)
    assert fewer.sites.shape == (90, 2) and fewer.targets.shape == (10, 2)
    value_at = {tuple(x): y for x, y in zip(field.sites, field.values)}
    assert all(value_at[tuple(x)] == y for x, y in zip(fewer.sites, fewer.values))
    whole = field.thinned(None)
    assert len(whole.sites) == 180 and len(whole.targets) == 45


def test_what_is_not_there_is_told_in_one_line(tmp_path):
    with pytest.raises(InputError, match=r"absent.h5: no such file; .*h2gpu.apps.studies.published tells"):
        published.heaton(tmp_path / "absent.h5")
    (tmp_path / "text.h5").write_text("x")
    with pytest.raises(InputError, match=r"text.h5: .*signature"):
        published.kaust(tmp_path / "text.h5")
    with h5py.File(tmp_path / "points.h5", "w") as file:
        file["points"] = np.zeros((3, 2))
    for reader in (published.heaton, published.kaust, published.elevations):
        with pytest.raises(InputError, match=r"points.h5: expected an HDF5 file with the fields"):
            reader(tmp_path / "points.h5")
        with pytest.raises(InputError, match="expected a file"):
            reader(tmp_path)
    with pytest.raises(InputError, match="--fields: expected some of a, b, got c"):
        published.chosen({"a": 1, "b": 2}, "a,c")


@pytest.mark.parametrize("cov", [Exponential(2.0, 0.3) + Nugget(0.1), Matern(1.5, 0.2, 1.5)])
def test_with_all_sites_for_neighbours_local_kriging_is_kriging(cov):
    rng = np.random.default_rng(0)
    sites, targets, values = rng.random((150, 2)), rng.random((20, 2)), rng.normal(5, 1, 150)
    weights = np.linalg.solve(cov(sites), cov(sites, targets))
    variance = cov.variance_at_zero + cov.nugget - np.einsum("ij,ij->j", weights, cov(sites, targets))
    mean, std = local_kriging(sites, values, targets, cov, 5.0, neighbours=150)
    np.testing.assert_allclose(mean, 5 + weights.T @ (values - 5), rtol=1e-8)
    np.testing.assert_allclose(std, np.sqrt(variance), rtol=1e-8)


def test_more_neighbours_never_make_the_variance_larger():
    rng, cov = np.random.default_rng(0), Exponential(1.0, 0.5) + Nugget(0.01)
    sites, targets = rng.random((300, 2)), rng.random((30, 2))
    stds = [local_kriging(sites, np.zeros(300), targets, cov, neighbours=k)[1] for k in (5, 20, 80)]
    assert (stds[0] >= stds[1]).all() and (stds[1] >= stds[2]).all()


def test_local_kriging_is_calibrated_on_a_simulation(tmp_path):
    field = published.heaton(small_fields.heaton(tmp_path / "h.h5", side=40, held=400))["simulated"]
    mean, std = local_kriging(field.sites, field.values, field.targets, field.covariance, field.mean)
    told = scores.summary(field.truth, mean, std)
    assert 0.9 < told["coverage"] < 0.99
    assert told["rmse"] < 1.1 * np.sqrt(np.mean(std**2))
