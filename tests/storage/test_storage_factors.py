"""Direct factorizations in files: bit for bit back, and refused where a bit has changed or the contents contradict."""

import h5py
import numpy as np
import pytest

import h2gpu
from h2gpu.covariance import Exponential
from h2gpu.solvers import skeletonization, skeletonize
from h2gpu.storage import factors


@pytest.fixture
def G(monkeypatch):
    monkeypatch.setattr(skeletonization, "ROOT", 100)
    return skeletonize(np.random.default_rng(0).random((600, 2)), Exponential(length_scale=0.1))


def test_a_factor_comes_back_bit_for_bit(G, tmp_path):
    h2gpu.save(G, tmp_path / "G.h5", attributes={"cov": "exponential"})
    again, b = h2gpu.load(tmp_path / "G.h5"), np.random.default_rng(1).standard_normal((600, 3))
    assert (again.n, again.eta, again.memory) == (G.n, G.eta, G.memory) and len(again.steps) > 9
    for work in ("solve", "solve_half", "solve_half_transposed", "multiply_half"):
        np.testing.assert_array_equal(getattr(again, work)(b), getattr(G, work)(b))
    assert again.log_determinant() == G.log_determinant()
    assert np.array_equal(again.grid.extent, G.grid.extent) and again.grid.side == G.grid.side


def test_one_site_has_no_steps(tmp_path):
    G = skeletonize(np.zeros((1, 2)), Exponential(4.0))
    h2gpu.save(G, tmp_path / "G.h5")
    assert h2gpu.load(tmp_path / "G.h5").solve(np.ones(1))[0] == 0.25


@pytest.mark.parametrize("name", sorted(factors.DATASETS))
def test_a_changed_number_is_noticed(name, G, tmp_path):
    h2gpu.save(G, tmp_path / "G.h5")
    with h5py.File(tmp_path / "G.h5", "r+") as file:
        values = file[name][()]
        values.flat[0] += 1
        file[name][...] = values
    with pytest.raises(ValueError, match=f"{name}: expected SHA-256"):
        h2gpu.load(tmp_path / "G.h5")


@pytest.mark.parametrize("name, value", [("attributes", b"{}"), ("software", b"other"), ("checksum", b"0")])
def test_a_changed_head_is_noticed(name, value, G, tmp_path):
    h2gpu.save(G, tmp_path / "G.h5")
    with h5py.File(tmp_path / "G.h5", "r+") as file:
        file.attrs[name] = np.bytes_(value)
    with pytest.raises(ValueError, match="checksum: expected"):
        h2gpu.load(tmp_path / "G.h5")


def put(name, value, index=0):
    def change(arrays):
        arrays[name].flat[index] = value

    return change


CONTRADICTIONS = {
    "an index beyond the sites": (put("SN", 601), "SN: expected indices from 0"),
    "a negative index": (put("R", -1), "R: expected indices from 0"),
    "eliminated twice": (lambda arrays: put("R", arrays["R"][0], 1)(arrays), "R: expected indices that are left, once"),
    "coupled with what is gone": (
        lambda arrays: put("SN", arrays["R"][0], -1)(arrays),
        "SN: expected indices that are left",
    ),
    "root of what is gone": (
        lambda arrays: put("top", arrays["R"][0])(arrays),
        "top: expected the indices that are left",
    ),
    "no number": (put("T", np.nan), "T: expected finite numbers"),
    "a pivot of zero": (put("L", 0.0), "L: expected positive diagonals"),
    "a pivot of the root": (put("root", -1.0), "root: expected a positive diagonal"),
    "another size": (put("shapes", 599), "expected .* entries, as shapes tell"),
    "an absurd size": (put("shapes", 2**62), "shapes: expected sizes"),
    "a negative level": (put("shapes", -1, 4), "shapes: expected sizes"),
    "a cell beyond the level": (put("places", 1 << 40), "places: expected cells"),
    "a grid without a side": (put("grid", 0.0), "grid: expected a side"),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_contradictions_are_refused_checksums_or_not(name, G, tmp_path, monkeypatch):
    change, message = CONTRADICTIONS[name]
    arrays = {name: array.copy() for name, array in factors._arrays_of(G).items()}
    change(arrays)
    monkeypatch.setattr(factors, "_arrays_of", lambda G: arrays)
    h2gpu.save(G, tmp_path / "G.h5")
    with pytest.raises(ValueError, match=message):
        h2gpu.load(tmp_path / "G.h5")


def test_other_versions_and_attributes_are_refused(G, tmp_path):
    with pytest.raises(ValueError, match="attributes: expected what JSON can hold"):
        h2gpu.save(G, tmp_path / "G.h5", attributes={"cov": Exponential()})
    h2gpu.save(G, tmp_path / "G.h5")
    with h5py.File(tmp_path / "G.h5", "r+") as file:
        file.attrs["version"] = np.int64(2)
    with pytest.raises(ValueError, match="expected version 1, got 2"):
        h2gpu.load(tmp_path / "G.h5")
