"""A direct factorization (`solvers.Skeletonization`) in a file: HDF5, every number under a checksum, none trusted.

    attributes     format, version, software, attributes (JSON: n, eta, and what the caller added), checksum
    shapes         (steps, 5) int64: cells, r, s, s + neighbours, level of each step
    R SN places    int32, int32 and int64: the steps' indices and cells, one step after the other
    T L Y          float64, likewise, padded; shapes follow from the table
    top root grid  (indices,) int32; the root's factor; side, corner and extent of the grid

What is read is refused unless it solves: each site is eliminated once, couplings are with sites that are still there,
diagonals are positive, all numbers finite. Written whole or not at all, as matrices are.
"""

import hashlib
import json
from math import prod

import numpy as np

from h2gpu.arrays import to_host
from h2gpu.memory import free_memory, readable
from h2gpu.solvers.skeletonization.cells import DEEPEST, Grid
from h2gpu.solvers.skeletonization.factor import Skeletonization, Step
from h2gpu.solvers.skeletonization.ragged import on_host
from h2gpu.storage.header import digest_of, json_of, software
from h2gpu.storage.reading import AGAIN, FormatError, declared, integer, opened, text
from h2gpu.storage.writing import LITTLE_ENDIAN, whole_hdf5

FORMAT, VERSION = "h2gpu-skeletonization", 1
DATASETS = dict.fromkeys(("T", "L", "Y", "root", "grid"), (("float64",), 1))
DATASETS |= dict.fromkeys(("R", "SN", "top"), (("int32",), 1)) | dict.fromkeys(("shapes", "places"), (("int64",), 2))


def is_factor_file(path):
    """Whether the file says that it is one of this format."""
    try:
        with opened(path) as file:
            return text(file, "format") == FORMAT
    except FormatError:
        return False


def write(path, G, attributes):
    """Write a Skeletonization. Raises ValueError for attributes JSON cannot hold, OSError when the disk refuses."""
    arrays = _arrays_of(G)
    try:
        said = json_of({"attributes": attributes or {}, "n": G.n, "eta": G.eta})
    except (TypeError, ValueError) as error:
        raise ValueError(f"attributes: expected what JSON can hold, got {error}; give numbers, texts, lists") from None
    digests, name = {name: digest_of(array) for name, array in arrays.items()}, software()
    with whole_hdf5(path) as file:
        for key, value in (("format", FORMAT), ("software", name), ("attributes", said)):
            file.attrs[key] = np.bytes_(value)
        file.attrs["version"] = np.int64(VERSION)
        file.attrs["checksum"] = np.bytes_(_checksum(name, said, digests, arrays))
        for name, array in arrays.items():
            dataset = file.create_dataset(name, data=array)
            dataset.attrs["sha256"] = np.bytes_(digests[name])


def read(path, check=True):
    """The Skeletonization of a file, on the CPU. Raises ValueError, one line, for a file that is not in order."""
    with opened(path) as file:
        if integer(file, "version") != VERSION:
            raise FormatError(f"expected version {VERSION}, got {integer(file, 'version')}; read it with a newer h2gpu")
        found = {name: declared(file, name, *rule) for name, rule in DATASETS.items()}
        total = sum(prod(shape) * np.dtype(kind).itemsize for kind, shape, _ in found.values())
        if total > free_memory():
            raise FormatError(f"expected at most {readable(free_memory())}, which is free, got {readable(total)}")
        said, digests = text(file, "attributes"), {name: digest for name, (_, _, digest) in found.items()}
        arrays = {name: np.empty(shape, LITTLE_ENDIAN[kind]) for name, (kind, shape, _) in found.items()}
        if _checksum(text(file, "software"), said, digests, arrays) != text(file, "checksum"):
            raise FormatError(f"checksum: expected that of the head, got another; {AGAIN}")
        for name, array in arrays.items():
            if array.size:
                file[name].read_direct(array)
            if check and digest_of(array) != digests[name]:
                raise FormatError(f"{name}: expected SHA-256 {digests[name]:.16}…, got another; {AGAIN}")
        return _factor_of(arrays, json.loads(said))


def _arrays_of(G):
    """{name: contiguous array} of a Skeletonization."""
    shapes = [(*step.T.shape[::2], step.s, step.SN.shape[1], step.depth) for step in G.steps]
    arrays = {"shapes": np.array(shapes, np.int64).reshape(-1, 5), "top": to_host(G.top), "root": to_host(G.L).ravel()}
    for name in ("R", "SN", "T", "L", "Y"):
        parts = [on_host(getattr(step, name)).ravel() for step in G.steps]
        arrays[name] = np.concatenate([np.empty(0, np.int32 if name in ("R", "SN") else np.float64), *parts])
    arrays["places"] = np.concatenate([np.empty((0, len(G.grid.corner)), np.int64), *(step.places for step in G.steps)])
    arrays["grid"] = np.concatenate([[G.grid.side], G.grid.corner, G.grid.extent])
    return {name: np.ascontiguousarray(array, LITTLE_ENDIAN[DATASETS[name][0][0]]) for name, array in arrays.items()}


def _factor_of(arrays, said):
    """The Skeletonization of arrays that nobody has looked at."""
    n, eta = said.get("n"), said.get("eta")
    _require(isinstance(n, int) and 0 < n < 2**31 - 1, "n", "a number of sites", n)
    _require(isinstance(eta, float) and 0 < eta < 2, "eta", "a number from 0 to 2", eta)
    for name in ("T", "L", "Y", "root", "grid"):
        _require(np.isfinite(arrays[name]).all(), name, "finite numbers", "NaN or infinity")
    dim, shapes, top = arrays["places"].shape[1], arrays["shapes"], arrays["top"]
    grid = arrays["grid"]
    _require(1 <= dim <= 3 and len(grid) == 1 + 2 * dim and grid[0] > 0, "grid", "a side and a box", grid.tolist()[:7])
    fits = shapes.shape[1:] == (5,) and ((shapes >= 0) & (shapes <= [n, n, n, n, DEEPEST])).all()
    _require(fits and (shapes[:, 3] >= shapes[:, 2]).all(), "shapes", "sizes of steps", "others")
    sizes = [_sizes(*map(int, row[:4])) for row in shapes]
    for name in ("R", "SN", "T", "L", "Y", "places"):
        total = sum(prod(size[name]) for size in sizes)
        _require(len(arrays[name]) == total, name, f"{total} entries, as shapes tell", len(arrays[name]))
    _require(len(arrays["root"]) == len(top) ** 2, "root", f"{len(top)}² entries", len(arrays["root"]))
    steps, first = [], dict.fromkeys(DATASETS, 0)
    for size, row in zip(sizes, shapes):
        parts = {}
        for name, shape in size.items():
            own = arrays[name][first[name] : first[name] + prod(shape)]
            parts[name] = own if name == "places" else own.reshape(shape)
            first[name] += prod(shape)
        steps.append(Step(depth=int(row[4]), **parts))
    _check_steps(n, steps, top)
    root = arrays["root"].reshape(len(top), len(top))
    _require((np.diagonal(root) > 0).all(), "root", "a positive diagonal", "another")
    return Skeletonization(n, eta, steps, top, root, Grid(grid[1 : 1 + dim], float(grid[0]), grid[1 + dim :]))


def _sizes(cells, r, s, sn):
    """Shapes of the parts of a step; of places, how many."""
    return {
        "R": (cells, r),
        "SN": (cells, sn),
        "T": (cells, s, r),
        "L": (cells, r, r),
        "Y": (cells, sn, r),
        "places": (cells,),
    }


def _check_steps(n, steps, top):
    """Each site is eliminated once or left for the root, and coupled only while it is there."""
    there = np.ones(n, bool)
    for step in steps:
        for name, index in (("R", step.R), ("SN", step.SN)):
            _require(((index >= 0) & (index <= n)).all(), name, f"indices from 0 to {n}", "others")
            real = index[index < n]
            _require(
                len(np.unique(real)) == len(real) and there[real].all(), name, "indices that are left, once", "others"
            )
            if name == "R":
                there[real] = False
        _require((np.einsum("bii->bi", step.L) > 0).all(), "L", "positive diagonals", "others")
        _require(((step.places >= 0) & (step.places < 2**step.depth)).all(), "places", "cells of the level", "others")
    fits = len(top) == there.sum() and ((top >= 0) & (top < n)).all() and there[top].all()
    _require(fits and len(np.unique(top)) == len(top), "top", "the indices that are left", "others")


def _require(holds, name, expected, got):
    if not holds:
        raise FormatError(f"{name}: expected {expected}, got {got}; {AGAIN}")


def _checksum(name, said, digests, arrays):
    """SHA-256 of everything that the head says."""
    datasets = {key: [array.dtype.name, list(array.shape), digests[key]] for key, array in arrays.items()}
    whole = [FORMAT, VERSION, name, said, datasets]
    return hashlib.sha256(json_of(whole).encode("ascii")).hexdigest()
