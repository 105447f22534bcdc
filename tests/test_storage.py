"""Files: what comes back is what was saved, bit for bit, or one ValueError; nothing half-written ever stands."""

import errno
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from functools import cache

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import h2gpu
from h2gpu import storage
from h2gpu.covariance import Exponential, Nugget
from h2gpu.h2matrix.construction import deferred
from h2gpu.storage import reading, writing
from h2gpu.storage.layout import arrays_of

COVARIANCE = Exponential(1.0, 0.3) + Nugget(0.1)
CASES = {
    "1D": {"n": 200, "dim": 1},
    "2D": {"n": 300, "dim": 2},
    "3D": {"n": 400, "dim": 3, "leaf_size": 12, "order": 3},
    "mean split": {"n": 300, "dim": 2, "split": "mean"},
    "float32": {"n": 300, "dim": 2, "dtype": np.float32, "rtol": 1e-3},
    "rectangular": {"n": 300, "dim": 2, "columns": 170},
    "one point": {"n": 1, "dim": 2},
    "one leaf": {"n": 7, "dim": 3},
    "one row": {"n": 1, "dim": 2, "columns": 170},
    "uncompressed": {"n": 300, "dim": 2, "rtol": None},
}
MANY_FILES = settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])


@cache
def matrix(case):
    parameters = dict(CASES[case])
    rng = np.random.default_rng(len(case))
    n, dim, columns = parameters.pop("n"), parameters.pop("dim"), parameters.pop("columns", None)
    dtype, rtol = parameters.pop("dtype", np.float64), parameters.pop("rtol", 1e-5)
    points = rng.random((n, dim)).astype(dtype)
    others = None if columns is None else rng.random((columns, dim)).astype(dtype)
    A = h2gpu.build(points, COVARIANCE, col_points=others, **{"leaf_size": 10, "order": 4, **parameters})
    return A if rtol is None else h2gpu.compress(A, rtol)


@pytest.fixture
def saved(tmp_path):
    """A file of a small symmetric matrix."""
    path = tmp_path / "matrix.h5"
    h2gpu.save(matrix("2D"), path, attributes={"rtol": 1e-5})
    return path


def same_bits(A, B):
    a, b = arrays_of(A), arrays_of(B)
    return a.keys() == b.keys() and all(
        a[name].dtype == b[name].dtype and a[name].shape == b[name].shape and a[name].tobytes() == b[name].tobytes()
        for name in a
    )


def tampered(path, change, symmetric=True, case="2D"):
    """A file with changed arrays and checksums in order, as a malicious writer would make it."""
    arrays = {name: array.copy() for name, array in arrays_of(matrix(case)).items()}
    writing.write(path, change(arrays) or arrays, symmetric, None)


def refused(path, words):
    """load gives one line that names the file and holds the words."""
    with pytest.raises(ValueError, match=words) as caught:
        h2gpu.load(path)
    message = str(caught.value)
    assert "\n" not in message and str(path) in message and len(message) < 600


# Round trips


@pytest.mark.parametrize("case", CASES)
def test_round_trip_is_bit_for_bit(case, tmp_path):
    A, path = matrix(case), tmp_path / "matrix.h5"
    h2gpu.save(A, path)
    B = h2gpu.load(path)
    assert same_bits(A, B) and B.symmetric == A.symmetric and repr(B) == repr(A) and B.memory == A.memory
    x = np.random.default_rng(0).random((A.shape[1], 3)).astype(A.dtype)
    assert (A @ x).tobytes() == (B @ x).tobytes()
    assert (A.T @ (A @ x)).tobytes() == (B.T @ (B @ x)).tobytes()
    if A.symmetric:
        assert A.diagonal().tobytes() == B.diagonal().tobytes()
    np.testing.assert_array_equal(h2gpu.load(path, check=False) @ x, A @ x)


def test_what_is_loaded_compresses_further(saved):
    A, B = h2gpu.load(saved), matrix("2D")
    assert same_bits(h2gpu.compress(A, 1e-2), h2gpu.compress(B, 1e-2))
    assert A.relative_error(B) < 1e-14


def test_the_same_matrix_gives_the_same_file(saved, tmp_path):
    h2gpu.save(h2gpu.load(saved), tmp_path / "again.h5", attributes={"rtol": 1e-5})
    assert (tmp_path / "again.h5").read_bytes() == saved.read_bytes()


def test_header_tells_without_the_entries(tmp_path):
    path, A = tmp_path / "matrix.h5", matrix("rectangular")
    attributes = {"covariance": COVARIANCE.parameters(), "sizes": (1, 2), "text": "ℓ = 3"}
    h2gpu.save(A, path, attributes=attributes)
    header = h2gpu.read_header(path)
    assert (header.shape, header.dtype, header.dim, header.symmetric) == (A.shape, A.dtype, 2, False)
    assert header.memory == A.memory
    assert header.attributes == {**attributes, "sizes": [1, 2]}
    assert all(np.array_equal(a, b) for a, b in zip(header.ranks, A.ranks, strict=True))
    assert h2gpu.covariance.from_parameters(header.attributes["covariance"]) == COVARIANCE


def test_h5py_alone_reads_and_verifies_the_file(saved):
    A, said = matrix("2D"), {}
    with h5py.File(saved) as file:

        def note(name, node):
            if isinstance(node, h5py.Dataset):
                digest = hashlib.sha256(node[()].tobytes()).hexdigest()
                assert node.attrs["sha256"].decode() == digest
                said[name] = [node.dtype.name, list(node.shape), digest]

        file.visititems(note)
        head = {name: value.decode() if isinstance(value, bytes) else int(value) for name, value in file.attrs.items()}
        ranks, leaf = file["row_basis/ranks"][()], file["row_basis/leaf"][()]
    checksum = head.pop("checksum")
    head |= {"symmetric": bool(head["symmetric"]), "attributes": json.loads(head["attributes"]), "datasets": said}
    text = json.dumps(head, sort_keys=True, separators=(",", ":"))
    assert hashlib.sha256(text.encode()).hexdigest() == checksum
    first = A.row_basis.tree.leaves[0]
    U = leaf[: A.row_basis.tree.sizes[first] * ranks[first]].reshape(-1, ranks[first])
    np.testing.assert_array_equal(U, A.row_basis.leaf[0])


def test_in_precision():
    A = matrix("2D")
    B = storage.in_precision(A, np.float32)
    assert B.dtype == np.float32 and 2 * B.nbytes == A.nbytes and B.symmetric
    assert storage.in_precision(A, "float64") is A
    rectangular = storage.in_precision(matrix("rectangular"), "float32")
    np.testing.assert_allclose(rectangular.to_dense(), matrix("rectangular").to_dense(), atol=1e-5)


@pytest.mark.gpu
def test_a_matrix_on_the_gpu_comes_down_once(tmp_path):
    A = matrix("2D")
    h2gpu.save(A.to_device("cuda"), tmp_path / "matrix.h5")
    assert same_bits(h2gpu.load(tmp_path / "matrix.h5"), A)


# What save refuses


def test_save_refuses_what_load_would_refuse(tmp_path):
    path, A = tmp_path / "matrix.h5", matrix("2D")
    with pytest.raises(ValueError, match="stored couplings"):
        h2gpu.save(deferred(np.random.default_rng(0).random((99, 2)), COVARIANCE, leaf_size=9), path)
    with pytest.raises(ValueError, match="stored couplings"):
        h2gpu.save(np.eye(3), path)
    bad = A.nearfield.blocks.packed()
    buffer = bad.buffer.copy()
    buffer[5] = np.nan
    blocks = type(A.nearfield)(
        type(bad)(buffer, bad.offsets, bad.rows, bad.columns),
        A.nearfield.rows,
        A.nearfield.columns,
        A.nearfield.row_starts,
        A.nearfield.col_starts,
        True,
    )
    with pytest.raises(ValueError, match="nearfield/entries: expected finite numbers"):
        h2gpu.save(A.replace(nearfield=blocks), path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "attributes", [{"x": float("nan")}, {"x": object()}, {"x": np.zeros(2)}, [1, 2], "text", {"x": "y" * 70_000}]
)
def test_save_refuses_attributes_json_cannot_hold(attributes, tmp_path):
    with pytest.raises(ValueError, match="attributes: expected"):
        h2gpu.save(matrix("one leaf"), tmp_path / "matrix.h5", attributes=attributes)
    assert not list(tmp_path.iterdir())


# Files that contradict themselves, checksums in order


def put(name, value, index=0):
    def change(arrays):
        arrays[name][index] = value

    return change


def drop(name, count=1):
    return lambda arrays: {**arrays, name: arrays[name][:-count]}


def reordered(part):
    def change(arrays):
        for side in ("rows", "columns"):
            arrays[f"{part}/{side}"] = arrays[f"{part}/{side}"][::-1].copy()

    return change


def other_child(arrays):
    child = arrays["row_tree/first_child"]
    first, second = np.flatnonzero(child >= 0)[-2:]
    child[first], child[second] = child[second], child[first]


def mixed_precision(arrays):
    arrays["nearfield/entries"] = arrays["nearfield/entries"].astype(np.float32)


LARGE = 2**62
CONTRADICTIONS = {
    "not a permutation": (put("row_tree/permutation", 1, slice(0, 2)), "permutation: expected every point once"),
    "point out of range": (put("row_tree/permutation", 300), "permutation: expected points 0 to 299"),
    "negative point": (put("row_tree/permutation", -1), "permutation: expected points 0 to 299"),
    "cyclic tree": (put("row_tree/first_child", 0), "first_child: expected level order"),
    "children out of range": (put("row_tree/first_child", LARGE), "first_child: expected level order"),
    "two parents": (put("row_tree/first_child", -1), "first_child: expected two clusters for every parent"),
    "children swapped": (other_child, "first_child: expected level order"),
    "wrong parent": (put("row_tree/parent", 0, -1), "parent: expected the inverse"),
    "parent of the root": (put("row_tree/parent", 0), "parent: expected the inverse"),
    "range beyond the points": (put("row_tree/stop", 301), "start: expected a root of all points"),
    "empty cluster": (put("row_tree/start", 300, -1), "stop: expected ranges of points"),
    "overlapping siblings": (put("row_tree/stop", 200, 1), "start: expected children that share out"),
    "levels out of range": (put("row_tree/level_offsets", LARGE, 2), "level_offsets: expected growing numbers"),
    "levels shifted": (put("row_tree/level_offsets", 2, 2), "level_offsets: expected the children of the level"),
    "no levels": (drop("row_tree/level_offsets", 6), "level_offsets: expected"),
    "box inside out": (put("row_tree/lower", 9.0), "lower: expected boxes with lower"),
    "box not a number": (put("row_tree/lower", np.nan), "lower: expected boxes with lower"),
    "box infinite": (put("row_tree/upper", np.inf), "upper: expected finite numbers"),
    "a cluster short": (drop("row_tree/stop"), "stop: expected .* clusters, got"),
    "a box short": (drop("row_tree/upper"), "upper: expected .* clusters, got"),
    "negative rank": (put("row_basis/ranks", -1, -1), "ranks: expected ranks from 0"),
    "absurd rank": (put("row_basis/ranks", LARGE), "ranks: expected ranks from 0"),
    "rank of no entries": (put("row_basis/ranks", 400), "ranks: expected parents' ranks within"),
    "rank too large": (put("row_basis/ranks", 9, -1), "leaf: expected .* entries"),
    "a rank short": (drop("row_basis/ranks"), "ranks: expected .* clusters"),
    "leaf short": (drop("row_basis/leaf"), "leaf: expected .* entries"),
    "transfer short": (drop("row_basis/transfer"), "transfer: expected .* entries"),
    "entry not a number": (put("row_basis/transfer", np.nan), "transfer: expected finite"),
    "couplings short": (drop("couplings/entries"), "couplings/entries: expected .* entries"),
    "nearfield short": (drop("nearfield/entries"), "nearfield/entries: expected .* entries"),
    "row out of range": (put("couplings/rows", LARGE), "couplings/rows: expected clusters 0"),
    "column out of range": (put("nearfield/columns", -2), "nearfield/columns: expected clusters 0"),
    "coupling of a cluster with itself": (put("couplings/columns", 0, slice(0, 1)), "couplings/"),
    "dense inner cluster": (put("nearfield/rows", 0), "nearfield/rows: expected pairs of leaves"),
    "unsorted couplings": (reordered("couplings"), "couplings/rows: expected blocks sorted"),
    "unsorted nearfield": (reordered("nearfield"), "nearfield/rows: expected blocks sorted"),
    "blocks of unequal number": (drop("nearfield/columns"), "nearfield/columns: expected .* blocks"),
    "mixed precision": (mixed_precision, "nearfield/entries: expected float64"),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_contradictions_are_refused(name, tmp_path):
    change, words = CONTRADICTIONS[name]
    tampered(tmp_path / "matrix.h5", change)
    if name == "coupling of a cluster with itself":
        words = "couplings/|cover"
    refused(tmp_path / "matrix.h5", words)


def test_a_hole_in_the_matrix_is_refused(tmp_path):
    def hole(arrays):
        last = int(np.argmax(arrays["nearfield/rows"] != arrays["nearfield/columns"]))
        t, s = arrays["nearfield/rows"][last], arrays["nearfield/columns"][last]
        sizes = arrays["row_tree/stop"] - arrays["row_tree/start"]
        for side in ("rows", "columns"):
            arrays[f"nearfield/{side}"] = np.delete(arrays[f"nearfield/{side}"], last)
        arrays["nearfield/entries"] = arrays["nearfield/entries"][: -sizes[t] * sizes[s]]

    tampered(tmp_path / "matrix.h5", hole)
    refused(tmp_path / "matrix.h5", "blocks that cover 300 × 300")


@MANY_FILES
@given(data=st.data())
def test_no_integer_of_a_file_can_make_a_product_read_outside(data, tmp_path):
    """Any change of the structure is refused, or leaves a matrix that multiplies."""
    case = data.draw(st.sampled_from(["2D", "rectangular", "one leaf"]))
    A, path = matrix(case), tmp_path / "matrix.h5"
    names = [name for name, array in arrays_of(A).items() if array.dtype == np.int64 and array.size]
    values = st.one_of(st.integers(-3, 400), st.sampled_from([-(2**63), 2**63 - 1, 2**31, 2**32 + 1]))

    def change(arrays):
        for _ in range(data.draw(st.integers(1, 3))):
            array = arrays[data.draw(st.sampled_from(names))]
            array[data.draw(st.integers(0, len(array) - 1))] = data.draw(values)

    tampered(path, change, A.symmetric, case)
    try:
        B = h2gpu.load(path)
    except ValueError as error:
        assert "\n" not in str(error)
    else:
        assert np.isfinite(B @ np.ones(A.shape[1])).all() and np.isfinite(B.T @ np.ones(A.shape[0])).all()


# Damaged and foreign HDF5


def test_truncated_and_flipped_files_are_noticed(saved, tmp_path):
    whole, path = np.fromfile(saved, np.uint8), tmp_path / "damaged.h5"
    rng, outcomes = np.random.default_rng(7), set()
    for trial in range(400):
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
    "later version": (attribute("version", 2), "expected format version 1, got 2; read it with a newer h2gpu"),
    "no such version": (attribute("version", -1), "expected format version 1, got -1; the file is damaged"),
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


# Whole or not at all


def fails_with(code):
    def fail(*arguments):
        raise OSError(code, os.strerror(code))

    return fail


def test_a_full_disk_leaves_the_old_file(saved, monkeypatch):
    before = saved.read_bytes()
    monkeypatch.setattr(os, "fsync", fails_with(errno.ENOSPC))
    with pytest.raises(OSError, match="No space left"):
        h2gpu.save(matrix("3D"), saved)
    assert saved.read_bytes() == before and os.listdir(saved.parent) == [saved.name]


def test_an_interrupt_leaves_the_old_file(saved, monkeypatch):
    before = saved.read_bytes()

    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        h2gpu.save(matrix("3D"), saved)
    assert saved.read_bytes() == before and os.listdir(saved.parent) == [saved.name]


def child(code, *arguments):
    """Python in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, timeout=60
    )


@pytest.mark.skipif(os.name != "posix", reason="limits of POSIX")
@pytest.mark.parametrize("limit", [300, 5000, 20_000])
def test_a_disk_that_fills_while_writing(limit, saved):
    before = saved.read_bytes()
    assert len(before) > limit
    done = child(
        "import resource, sys, h2gpu\n"
        "B = h2gpu.load(sys.argv[1])\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)\n"
        "try: h2gpu.save(B, sys.argv[1])\n"
        "except OSError as error: print(error)",
        saved,
        limit,
    )
    assert re.fullmatch(rf"\[Errno {errno.EFBIG}\] could not write: File too large: .*matrix.h5'\n", done.stdout), done
    assert done.returncode == 0 and not done.stderr
    assert saved.read_bytes() == before and os.listdir(saved.parent) == [saved.name]


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_kill_in_the_middle_of_writing(saved):
    before = saved.read_bytes()
    done = child(
        "import os, signal, sys, h2gpu\n"
        "from h2gpu.storage import writing\n"
        "B = h2gpu.load(sys.argv[1])\n"
        "create = writing.h5py.File.create_dataset\n"
        "def create_dataset(self, name, **rest):\n"
        "    if name == 'nearfield/rows': self.flush(); os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return create(self, name, **rest)\n"
        "writing.h5py.File.create_dataset = create_dataset\n"
        "h2gpu.save(B, sys.argv[1], attributes={'late': 1})",
        saved,
    )
    assert done.returncode == -signal.SIGKILL
    assert saved.read_bytes() == before
    (left,) = (name for name in os.listdir(saved.parent) if name != saved.name)
    assert left.startswith(".matrix.h5.") and left.endswith(".tmp")
    assert h2gpu.read_header(saved).attributes == {"rtol": 1e-5}


@pytest.mark.skipif(os.name != "posix", reason="links and modes of POSIX")
def test_links_and_modes_are_kept(saved, tmp_path):
    name = tmp_path / "link.h5"
    name.symlink_to(saved)
    saved.chmod(0o640)
    h2gpu.save(matrix("3D"), name)
    assert name.is_symlink() and saved.stat().st_mode & 0o777 == 0o640
    assert h2gpu.load(saved).shape == (400, 400)


def test_where_nothing_can_be_written(tmp_path):
    A = matrix("one point")
    for path in (tmp_path, tmp_path / "absent" / "matrix.h5", "/dev/null"):
        with pytest.raises(OSError):
            h2gpu.save(A, path)
        with pytest.raises(OSError):
            storage.check_writable(path)
    storage.check_writable(tmp_path / "matrix.h5")
    assert not list(tmp_path.iterdir())
    h2gpu.save(A, tmp_path / ("m" * 240 + ".h5"))
    shutil.rmtree(tmp_path)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        h2gpu.save(A, tmp_path / "matrix.h5")
