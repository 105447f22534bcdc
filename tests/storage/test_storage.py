"""Files: what comes back is what was saved, bit for bit; nothing half-written ever stands."""

import errno
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from itertools import pairwise

import h5py
import numpy as np
import pytest
from reference import streamed
from stored import CASES, COVARIANCE, matrix, same_bits

import h2gpu
from h2gpu import storage


@pytest.fixture
def saved(tmp_path):
    """A file of a small symmetric matrix."""
    path = tmp_path / "matrix.h5"
    h2gpu.save(matrix("2D"), path, attributes={"rtol": 1e-5})
    return path


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
    """h5py 3.11 (not 3.16) writes the second at which a file was made: then one of three pairs is of one second."""
    paths = [saved, *(tmp_path / f"{i}.h5" for i in range(3))]
    for before, after in pairwise(paths):
        h2gpu.save(h2gpu.load(before), after, attributes={"rtol": 1e-5})
    files = [path.read_bytes() for path in paths]
    equal = all if h5py.version.version_tuple[:2] >= (3, 16) else any
    assert equal(before == after for before, after in pairwise(files))


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
        h2gpu.save(streamed(np.random.default_rng(0).random((99, 2)), COVARIANCE, leaf_size=9), path)
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
def test_a_disk_that_fills_while_writing(saved):
    before, limits = saved.read_bytes(), (300, 5000, 20_000)
    assert len(before) > max(limits)
    done = child(
        "import resource, sys, h2gpu\n"
        "B = h2gpu.load(sys.argv[1])\n"
        "hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]\n"
        "for limit in map(int, sys.argv[2:]):\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))\n"
        "    try: h2gpu.save(B, sys.argv[1])\n"
        "    except OSError as error: print(error)",
        saved,
        *limits,
    )
    line = rf"\[Errno {errno.EFBIG}\] could not write: File too large: .*matrix.h5'\n"
    assert re.fullmatch(3 * line, done.stdout), done
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
