"""Matrix files with changed bytes: refused with one line, or the matrix that was saved, bit for bit."""

from functools import cache
from pathlib import Path

import h5py
import numpy as np
from battery import battery, expect, one_line
from checksums import repaired
from stored import CASES, matrix, same_bits

import h2gpu
from h2gpu.solvers import skeletonize
from h2gpu.storage import read_header

ODDITIES = np.array([0, 1, 127, 128, 255, 10, 13, 26], np.uint8)


@cache
def saved(name, oldest=False):
    """The bytes of a file of a matrix of `stored.CASES`, or of a factorization."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "whole.h5"
        h2gpu.save(original(name), path, attributes={"rtol": 1e-5, "covariance": {"name": "Exponential"}})
        if oldest:
            with h5py.File(path) as old, h5py.File(Path(folder) / "oldest.h5", "w", libver="earliest") as new:
                new.attrs.update(old.attrs)
                for part in old:
                    old.copy(part, new)
            path = Path(folder) / "oldest.h5"
        return path.read_bytes()


@cache
def original(name):
    if name == "factors":
        points = np.random.default_rng(0).random((200, 2))
        return skeletonize(points, h2gpu.covariance.Exponential() + h2gpu.covariance.Nugget(0.1), eta=0.1)
    return matrix(name)


def same(A, B, name):
    if name == "factors":
        b = np.ones(A.shape[0])
        return np.array_equal(A.solve(b), B.solve(b))
    return same_bits(A, B)


def judged(path, name):
    """load and read_header of a changed file."""
    try:
        read_header(path) if name != "factors" else None
    except (ValueError, OSError) as error:
        one_line(error)
    try:
        B = h2gpu.load(path)
    except (ValueError, OSError) as error:
        one_line(error)
        return "refused"
    expect(same(original(name), B, name), f"{name}: loaded, but another matrix")
    return "right"


def changed(rng, data):
    """The data with some bytes or stretches changed, lost, doubled or moved."""
    data = np.frombuffer(data, np.uint8).copy()
    for _ in range(rng.integers(1, 4)):
        at, length = int(rng.integers(len(data))), int(2.0 ** rng.uniform(0, 10))
        kind = rng.integers(8)
        if kind <= 2:
            data[at] ^= 1 << rng.integers(8)
        elif kind == 3:
            data[at] = rng.choice(ODDITIES)
        elif kind == 4:
            data[at : at + length] = rng.integers(0, 256, len(data[at : at + length]), np.uint8)
        elif kind == 5:
            data[at : at + length] = rng.choice(ODDITIES)
        elif kind == 6:
            data = np.delete(data, slice(at, at + length)) if rng.random() < 0.5 else data[:at]
        else:
            other = int(rng.integers(len(data)))
            data = np.insert(data, other, data[at : at + length])
        if not len(data):
            break
    return data.tobytes()


def near_metadata(rng, data):
    """Bits flipped near the signatures of HDF5's own tables, where most of a file's meaning is."""
    data = bytearray(data)
    places = [
        i for mark in (b"\x89HDF", b"OHDR", b"TREE", b"SNOD", b"HEAP", b"BTHD", b"FRHP") for i in found(data, mark)
    ]
    for _ in range(rng.integers(1, 4)):
        at = int(rng.choice(places)) + int(rng.integers(300))
        if at < len(data):
            data[at] = int(rng.choice(ODDITIES)) if rng.random() < 0.4 else data[at] ^ (1 << int(rng.integers(8)))
    return bytes(data)


def found(data, mark):
    at = data.find(mark)
    while at >= 0:
        yield at
        at = data.find(mark, at + 1)


def a_name(rng):
    return str(rng.choice([*CASES, "factors"]))


@battery("files: bytes changed")
def bytes_changed(rng, folder):
    name, path = a_name(rng), folder / "changed.h5"
    path.write_bytes(changed(rng, saved(name)))
    return judged(path, name)


@battery("files: HDF5's tables changed, its checksums right")
def metadata_changed(rng, folder):
    name, path = a_name(rng), folder / "changed.h5"
    path.write_bytes(repaired(near_metadata(rng, saved(name))))
    return judged(path, name)


@battery("files: oldest HDF5 format")
def oldest_changed(rng, folder):
    name, path = a_name(rng), folder / "oldest.h5"
    data = saved(name, oldest=True)
    path.write_bytes(near_metadata(rng, data) if rng.random() < 0.9 else data)
    return judged(path, name)
