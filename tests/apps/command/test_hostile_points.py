"""Points files made to take time or memory: thousands of nested groups, chunks that unpack to gigabytes."""

import time

import h5py
import numpy as np
import pytest

from h2gpu.apps.command.command import InputError
from h2gpu.apps.command.inputs.hdf5 import LISTED, listed
from h2gpu.apps.command.points_file import holds, read_points, read_values

DEEP = 2000


@pytest.fixture(scope="module")
def deep_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("deep") / "deep.h5"
    with h5py.File(path, "w", libver="latest") as file:
        group = file
        for _ in range(DEEP):
            group = group.create_group("g")
        group["values"] = np.zeros(3)
    return path


def test_a_name_is_asked_for_and_not_searched_for(deep_file):
    start = time.process_time()
    assert not holds(deep_file, "values") and not holds(deep_file, "/")
    with pytest.raises(InputError, match="dataset 'points' not found; the file holds no datasets near its root"):
        read_points(deep_file, ["points"], "float64", 10**9)
    assert holds(deep_file, "g/" * DEEP + "values")
    assert time.process_time() - start < 2


def test_what_lies_near_the_root_is_named_first_and_links_are_not_followed(tmp_path):
    with h5py.File(tmp_path / "many.h5", "w") as file:
        file["a/b/deep"] = np.zeros(3)
        file["near"] = np.zeros(2)
        file["soft"] = h5py.SoftLink("/near")
        file["a/circle"] = file["a"]
        assert listed(file).startswith("near (2,), a/b/deep (3,)") and "soft" not in listed(file)
    with h5py.File(tmp_path / "more.h5", "w") as file:
        for k in range(2 * LISTED):
            file[f"x{k:02}"] = np.zeros(1)
        assert listed(file).endswith(f"x{LISTED - 1} (1,) and more")


def test_a_chunk_far_larger_than_its_dataset_is_refused_unread(tmp_path):
    path = tmp_path / "bomb.h5"
    with h5py.File(path, "w") as file:
        large = {"shape": (10, 2), "maxshape": (None, 2), "chunks": (1 << 23, 2), "compression": "gzip"}
        file.create_dataset("points", dtype=float, **large)
        file.create_dataset("values", (10,), float, maxshape=(None,), chunks=(1 << 24,), compression="gzip")
    with pytest.raises(InputError, match=r"points: expected chunks of at most 67.1 MB, packed once, got 134"):
        read_points(path, ["points"], "float64", 10**9)
    with pytest.raises(InputError, match="values: expected chunks"):
        read_values(path, "values", 10, "--values")


def test_data_packed_twice_is_refused_and_packed_once_read(tmp_path):
    points = np.random.default_rng(0).random((10, 2))
    with h5py.File(tmp_path / "packed.h5", "w") as file:
        plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plan.set_chunk((10, 2))
        plan.set_deflate(9)
        plan.set_deflate(9)
        h5py.h5d.create(file.id, b"twice", h5py.h5t.NATIVE_DOUBLE, h5py.h5s.create_simple((10, 2)), plan)
        file.create_dataset("once", data=points, compression="gzip", shuffle=True, fletcher32=True)
    with pytest.raises(InputError, match=r"twice: .* packed 2 times"):
        read_points(tmp_path / "packed.h5", ["twice"], "float64", 10**9)
    np.testing.assert_array_equal(read_points(tmp_path / "packed.h5", ["once"], "float64", 10**9), points)
