"""Points files made to take time or memory: nested groups, chunks that unpack to gigabytes, rows that are not there."""

import time

import h5py
import numpy as np
import pytest

from h2gpu.apps.command.command import InputError
from h2gpu.apps.command.inputs import hdf5
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


CHUNKED = {"chunks": (28, 2)}


@pytest.mark.parametrize("options", [{}, CHUNKED, CHUNKED | {"compression": "gzip"}, CHUNKED | {"scaleoffset": 3}])
def test_rows_that_the_file_cannot_hold_are_refused_unread(options, tmp_path, monkeypatch):
    path = tmp_path / "declared.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("points", (10**9, 2), float, **options)
        file.create_dataset("values", (10**9,), "f4", **({"chunks": (9,)} if options else {}))
    monkeypatch.setattr(hdf5, "_numbers", None)
    words = r"expected what a file of \S+ kB can hold, got float.* \(1000000000,.*\): rows were never written"
    with pytest.raises(InputError, match=f"points: {words}"):
        read_points(path, ["points"], "float64", 10**12)
    with pytest.raises(InputError, match=f"values: {words}"):
        read_values(path, "values", 10**9, "--values")


@pytest.mark.parametrize("compression", [None, "gzip", "lzf"])
def test_what_packs_as_well_as_can_be_is_read(compression, tmp_path):
    points = np.zeros((500_000, 2))
    with h5py.File(tmp_path / "zeros.h5", "w") as file:
        options = {"compression_opts": 9} if compression == "gzip" else {}
        file.create_dataset("points", data=points, chunks=(250_000, 2), compression=compression, **options)
    np.testing.assert_array_equal(read_points(tmp_path / "zeros.h5", ["points"], "float64", 10**9), points)


def test_a_chunk_shorter_than_its_checksum_is_refused_unread(tmp_path):
    """HDF5 2.0 reads memory that is not its own there, and crashes."""
    path, points = tmp_path / "short.h5", np.random.default_rng(0).random((20, 2))
    with h5py.File(path, "w") as file:
        for name in ("points", "whole", "unchecked"):
            file.create_dataset(name, data=points, chunks=(5, 2), fletcher32=True)
        file["points"].id.write_direct_chunk((5, 0), b"abc")
        file["unchecked"].id.write_direct_chunk((5, 0), points[5:10].tobytes(), filter_mask=1)
        plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plan.set_chunk((10, 2))
        plan.set_fletcher32()
        plan.set_fletcher32()
        h5py.h5d.create(file.id, b"twice", h5py.h5t.NATIVE_DOUBLE, h5py.h5s.create_simple((10, 2)), plan)
    with pytest.raises(InputError, match="points: expected chunks longer than their checksums"):
        read_points(path, ["points"], "float64", 10**9)
    with pytest.raises(InputError, match="twice: expected chunks with one checksum, got 2"):
        read_points(path, ["twice"], "float64", 10**9)
    for name in ("whole", "unchecked"):
        np.testing.assert_array_equal(read_points(path, [name], "float64", 10**9), points)


@pytest.mark.parametrize("chunks", [None, (1, 1), (7, 2), (7, 3), (64, 1), (300, 3)])
@pytest.mark.parametrize("share", [(0, 1), (1, 3)])
def test_datasets_are_read_in_pieces_of_whole_chunks(chunks, share, tmp_path, monkeypatch):
    points = np.random.default_rng(0).random((200, 3))
    monkeypatch.setattr(hdf5, "CHUNKS", 9)
    monkeypatch.setattr(hdf5, "CHUNK", 20 * 3 * 8)
    with h5py.File(tmp_path / "points.h5", "w") as file:
        column = file.create_dataset("points", data=points, chunks=chunks, maxshape=chunks and (None, None))
        rows = hdf5.rows_of(200, share)
        pieces, high = list(hdf5._pieces(column, rows)), (chunks or [1])[0]
        assert np.array_equal(np.concatenate([np.arange(200)[p] for p in pieces]), np.arange(200)[rows])
        assert all(piece.start % high == 0 for piece in pieces[1:])  # no chunk is unpacked twice
        bytes_, across = 24 * max(high, 20), -(-3 // (chunks or [1, 3])[1])
        assert all(24 * (p.stop - p.start) <= bytes_ for p in pieces)
        assert not chunks or all(across * -(-(p.stop - p.start) // high) <= max(9, across) for p in pieces)
    monkeypatch.setattr(hdf5, "_check_packing", lambda *_: None)
    read = read_points(tmp_path / "points.h5", ["points"], "float32", 10**9, share=share)
    np.testing.assert_array_equal(read, points[rows].astype(np.float32))


def test_names_that_are_not_utf8_are_listed(tmp_path):
    with h5py.File(tmp_path / "latin.h5", "w") as file:
        file["x"] = np.zeros(3)
        h5py.h5g.create(file.id, b"point\xc6")
    with pytest.raises(InputError, match=r"'points' not found; the file holds point\\xc6 \(its name is not UTF-8\), x"):
        read_points(tmp_path / "latin.h5", ["points"], "float64", 10**9)
