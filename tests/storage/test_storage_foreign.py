"""Damaged files and foreign content of HDF5 files are one ValueError."""

import h5py
import numpy as np
import pytest
from stored import matrix, refused, same_bits

import h2gpu
from h2gpu import storage
from h2gpu.storage import reading, writing


@pytest.fixture
def saved(tmp_path):
    """A file of a small symmetric matrix."""
    path = tmp_path / "matrix.h5"
    h2gpu.save(matrix("2D"), path, attributes={"rtol": 1e-5})
    return path


def test_truncated_and_flipped_files_are_noticed(saved, tmp_path):
    whole, path = np.fromfile(saved, np.uint8), tmp_path / "damaged.h5"
    rng, outcomes = np.random.default_rng(7), set()
    for trial in range(200):
        data = whole.copy()
        if trial % 2:
            data = data[: rng.integers(len(data))]
        else:
            data[rng.integers(len(data), size=1 + trial % 3)] ^= np.uint8(1 << rng.integers(8))
        data.tofile(path)
        try:
            same = same_bits(h2gpu.load(path), matrix("2D"))
            assert same and h2gpu.read_header(path).attributes == {"rtol": 1e-5}
            outcomes.add("same")  # a bit between the parts of the file
        except ValueError as error:
            assert str(error).startswith(str(path)) and "\n" not in str(error)
            outcomes.add("refused")
    assert "refused" in outcomes


def test_every_bit_of_the_entries_counts(saved):
    with h5py.File(saved, "r+") as file:
        entries = file["nearfield/entries"]
        entries[3] = np.nextafter(entries[3], 2)
    refused(saved, "nearfield/entries: expected SHA-256")
    assert h2gpu.load(saved, check=False).shape == (300, 300)


@pytest.mark.parametrize(
    "content", [b"", b"\x89HDF\r\n\x1a\n", b"points\n1 2\n", b"\x89HDF\r\n\x1a\n" + b"\xff" * 4000]
)
def test_files_that_are_no_hdf5(content, tmp_path):
    (tmp_path / "matrix.h5").write_bytes(content)
    refused(tmp_path / "matrix.h5", "expected an HDF5 file in order")
    assert not storage.is_matrix_file(tmp_path / "matrix.h5")


def replace_dataset(name, **create):
    def change(file):
        data = file[name][()]
        digest = file[name].attrs["sha256"]
        del file[name]
        file.create_dataset(name, **({"data": data} | create)).attrs["sha256"] = digest

    return change


def link(name, kind):
    def change(file):
        file.move(name, "elsewhere")
        file[name] = h5py.SoftLink("/elsewhere") if kind == "soft" else h5py.ExternalLink("other.h5", "/elsewhere")

    return change


def virtual(file):
    layout = h5py.VirtualLayout(shape=file["row_basis/leaf"].shape, dtype="<f8")
    layout[:] = h5py.VirtualSource("other.h5", "leaf", shape=layout.shape)
    del file["row_basis/leaf"]
    file.create_virtual_dataset("row_basis/leaf", layout)


def huge(name, shape, dtype="<f8"):
    """A dataset that claims a size and holds nothing."""

    def change(file):
        if name in file:
            del file[name]
        file.create_dataset(name, shape=shape, dtype=dtype).attrs["sha256"] = np.bytes_("0" * 64)

    return change


def attribute(name, value, of="/"):
    def change(file):
        file[of].attrs[name] = value

    return change


def without(name):
    def change(file):
        del file[name]

    return change


FOREIGN = {
    "soft link": (link("row_basis/leaf", "soft"), "leaf: expected a dataset of this file, got SoftLink"),
    "link to another file": (link("row_basis", "external"), "expected a dataset of this file, got ExternalLink"),
    "virtual dataset": (virtual, "leaf: expected data in one piece"),
    "external storage": (
        replace_dataset("row_basis/leaf", external=[("/etc/hostname", 0, h5py.h5f.UNLIMITED)]),
        "leaf: expected",
    ),
    "compressed": (replace_dataset("nearfield/entries", compression="gzip"), "expected data in one piece"),
    "chunked": (replace_dataset("nearfield/entries", chunks=True), "expected data in one piece"),
    "big-endian": (replace_dataset("row_basis/ranks", dtype=">i8"), "ranks: expected 1 dimensions of int64"),
    "small integers": (replace_dataset("row_basis/ranks", dtype="<i4"), "ranks: expected 1 dimensions of int64"),
    "half precision": (replace_dataset("row_basis/leaf", dtype="<f2"), "leaf: expected 1 dimensions of float32"),
    "texts": (huge("row_basis/leaf", (3,), h5py.string_dtype()), "leaf: expected 1 dimensions"),
    "references": (huge("row_basis/leaf", (3,), h5py.ref_dtype), "leaf: expected 1 dimensions"),
    "compound": (huge("row_basis/leaf", (3,), [("a", "<f8")]), "leaf: expected 1 dimensions"),
    "complex": (huge("row_basis/leaf", (3,), "<c16"), "leaf: expected 1 dimensions"),
    "matrix for a vector": (huge("row_basis/ranks", (3, 3), "<i8"), "ranks: expected 1 dimensions"),
    "scalar": (huge("row_basis/ranks", (), "<i8"), "ranks: expected 1 dimensions"),
    "nothing": (replace_dataset("row_basis/leaf", data=h5py.Empty("<f8")), "leaf: expected 1 dimensions"),
    "10^15 points": (huge("row_tree/permutation", (10**15,), "<i8"), "permutation: expected 8000000000000000 bytes"),
    "10^15 entries": (huge("nearfield/entries", (10**15,)), "entries: expected 8000000000000000 bytes"),
    "2^62 boxes": (huge("row_tree/lower", (2**31, 2**28)), "lower: expected"),
    "missing dataset": (without("couplings/rows"), "couplings/rows: expected a dataset"),
    "missing group": (without("row_tree"), "row_tree/permutation: expected a dataset"),
    "missing checksum": (lambda file: file["row_basis/leaf"].attrs.pop("sha256"), "expected an attribute sha256"),
    "later version": (attribute("version", 3), "expected format version 1 or 2, got 3; read it with a newer h2gpu"),
    "no such version": (attribute("version", -1), "expected format version 1 or 2, got -1; the file is damaged"),
    "version in words": (attribute("version", "one"), "attribute version: expected an integer"),
    "another format": (attribute("format", np.bytes_("png")), "expected a matrix file of format"),
    "format of any length": (attribute("format", "h2gpu-h2matrix"), "attribute format: expected a text of fixed"),
    "symmetric or not": (attribute("symmetric", 7), "symmetric: expected 0 or 1"),
    "not symmetric": (attribute("symmetric", 0), "col_tree/permutation: expected a dataset"),
    "other attributes": (attribute("attributes", np.bytes_('{"rtol":1e-12}')), "checksum: expected"),
    "attributes no JSON": (attribute("attributes", np.bytes_("{")), "expected an HDF5 file in order"),
    "attributes no dictionary": (attribute("attributes", np.bytes_("[]")), "attributes: expected a JSON dictionary"),
    "other checksum": (attribute("sha256", np.bytes_("0" * 64), "row_basis/leaf"), "checksum: expected"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_content_is_refused(name, saved):
    change, words = FOREIGN[name]
    with h5py.File(saved, "r+", libver=writing.LIBRARY) as file:
        change(file)
    refused(saved, words)
    with pytest.raises(ValueError, match=words):
        h2gpu.read_header(saved)


def test_a_group_in_place_of_a_dataset(saved):
    with h5py.File(saved, "r+") as file:
        del file["row_basis/leaf"]
        file.create_group("row_basis/leaf")
    refused(saved, "leaf: expected a dataset, got Group")


def test_two_names_for_the_same_bytes_are_counted(saved):
    with h5py.File(saved, "r+") as file:
        for name in ("rows", "columns"):
            del file[f"couplings/{name}"]
        file["couplings/rows"] = file["couplings/columns"] = file["nearfield/rows"]
    refused(saved, "expected|checksum")


def test_a_matrix_larger_than_the_free_memory_is_not_read(saved, monkeypatch):
    monkeypatch.setattr(reading, "free_memory", lambda: 1000)
    refused(saved, "expected at most 1 kB, which is free")


def test_what_cannot_be_opened_is_an_oserror(tmp_path):
    with pytest.raises(FileNotFoundError):
        h2gpu.load(tmp_path / "absent.h5")
    with pytest.raises(IsADirectoryError):
        h2gpu.load(tmp_path)
    with pytest.raises(ValueError, match="expected a regular file"):
        h2gpu.load("/dev/null")
