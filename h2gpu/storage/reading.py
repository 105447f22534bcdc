"""HDF5 file → arrays, trusting nothing.

Only plain datasets are read: reached by hard links, of the exact types and dimensions of the format, stored in one
piece inside the file. What a dataset declares is compared with what the file holds before anything is allocated, so
that no header can claim more than the file has. Chunks and filters, links to other files, virtual datasets, object
types and strings of variable length are refused.
"""

import json
import os
import stat
from contextlib import contextmanager
from math import prod

import h5py
import numpy as np

from h2gpu.memory import free_memory, readable
from h2gpu.storage.header import FORMAT, VERSIONS, Header, digest_of
from h2gpu.storage.layout import names
from h2gpu.storage.writing import TYPES
from h2gpu.texts import plain

AGAIN = "the file is damaged or of other origin; save the matrix again"


class FormatError(ValueError):
    """A file that is not what it should be; what it says is shown on one line, unprintable letters escaped."""

    def __init__(self, message):
        super().__init__(plain(message))


@contextmanager
def opened(path):
    """The h5py.File; whatever HDF5 stumbles on becomes one FormatError. OSError where the system refuses the file."""
    mode = os.stat(path).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # before it is opened: a pipe waits for its writer
        raise FormatError(f"{path}: expected a regular file, got a pipe or device")
    with open(path, "rb"):  # the system's own words where it refuses
        pass
    try:
        with h5py.File(path, "r") as file:
            yield file
    except FormatError as error:
        raise FormatError(f"{path}: {error}") from None
    except Exception as error:  # HDF5 parses bytes of unknown origin: OSError, RuntimeError, KeyError, TypeError, …
        words = " ".join(str(error).split())
        raise FormatError(f"{path}: expected an HDF5 file in order, got “{words:.160}”; {AGAIN}") from None


def read(path, check):
    """The arrays and the header of a file. `check`: also compare every dataset with its checksum."""
    with opened(path) as file:
        header = read_head(file)
        total = sum(prod(shape) * np.dtype(dtype).itemsize for dtype, shape, _ in header.datasets.values())
        if total > free_memory():
            raise FormatError(f"expected at most {readable(free_memory())}, which is free, got {readable(total)}")
        return {name: read_array(file, header, name, check) for name in header.datasets}, header


def read_head(file):
    """The header, its checksum compared, every dataset's declaration checked against the file."""
    found = text(file, "format") if "format" in file.attrs else "another HDF5 file"
    if found != FORMAT:
        raise FormatError(
            f"expected a matrix file of format {FORMAT}, got {found:.80}; make one with h2compress or save"
        )
    version = integer(file, "version")
    if version not in VERSIONS:
        advice = "read it with a newer h2gpu" if version > VERSIONS[-1] else AGAIN
        raise FormatError(f"expected format version {' or '.join(map(str, VERSIONS))}, got {version}; {advice}")
    symmetric = integer(file, "symmetric")
    if symmetric not in (0, 1):
        raise FormatError(f"symmetric: expected 0 or 1, got {symmetric}; {AGAIN}")
    attributes = json.loads(text(file, "attributes"))
    if not isinstance(attributes, dict):
        raise FormatError(f"attributes: expected a JSON dictionary, got {type(attributes).__name__}; {AGAIN}")
    datasets = {name: declared(file, name, *rule) for name, rule in names(bool(symmetric), version).items()}
    total = sum(prod(shape) * np.dtype(dtype).itemsize for dtype, shape, _ in datasets.values())
    if total > file.id.get_filesize():
        raise FormatError(f"expected datasets within the file's {file.id.get_filesize()} bytes, got {total}; {AGAIN}")
    header = Header(bool(symmetric), text(file, "software"), attributes, datasets, version)
    if header.checksum != text(file, "checksum"):
        raise FormatError(f"checksum: expected {header.checksum:.16}…, got {text(file, 'checksum'):.16}…; {AGAIN}")
    return header


def declared(file, name, types, dimensions):
    """(type, shape, SHA-256) that a dataset declares, if the file really holds that much of that type."""
    dataset = member(file, name)
    kind = next((kind for kind in types if dataset.id.get_type() == TYPES[kind]), None)
    shape = dataset.shape
    if kind is None or shape is None or len(shape) != dimensions:
        raise FormatError(
            f"{name}: expected {dimensions} dimensions of {' or '.join(types)}, got {dataset.dtype} {shape}; {AGAIN}"
        )
    size, start = prod(shape) * np.dtype(kind).itemsize, dataset.id.get_offset()
    plan = dataset.id.get_create_plist()
    if plan.get_layout() != h5py.h5d.CONTIGUOUS or plan.get_external_count():
        raise FormatError(f"{name}: expected data in one piece inside the file, got another layout; {AGAIN}")
    held = dataset.id.get_storage_size() if size == 0 or start is not None else 0
    if size and (held != size or start + size > file.id.get_filesize()):
        raise FormatError(f"{name}: expected {size} bytes in the file for shape {shape}, got {held}; {AGAIN}")
    return kind, shape, text(dataset, "sha256")


def member(file, name):
    """The dataset of that name, reached by hard links only."""
    node = file
    for part in name.split("/"):
        link = node.get(part, getlink=True) if isinstance(node, h5py.Group) else None
        if not isinstance(link, h5py.HardLink):
            raise FormatError(f"{name}: expected a dataset of this file, got {type(link).__name__}; {AGAIN}")
        node = node[part]
    if not isinstance(node, h5py.Dataset):
        raise FormatError(f"{name}: expected a dataset, got {type(node).__name__}; {AGAIN}")
    return node


def read_array(file, header, name, check=True):
    """A dataset's numbers, compared with its checksum."""
    kind, shape, digest = header.datasets[name]
    size, free = prod(shape) * np.dtype(kind).itemsize, free_memory()
    if size > free:
        raise FormatError(f"{name}: expected at most {readable(free)}, which is free, got {readable(size)}")
    array = np.empty(shape, np.dtype(kind).newbyteorder("<"))
    if array.size:
        file[name].read_direct(array)
    if check and digest_of(array) != digest:
        raise FormatError(f"{name}: expected SHA-256 {digest:.16}…, got {digest_of(array):.16}…; {AGAIN}")
    return array.astype(kind, copy=False)


def text(node, name):
    """An attribute that is one ASCII text of fixed length."""
    dtype, shape = _kind(node, name)
    if dtype.kind != "S" or shape != ():
        raise FormatError(
            f"{node.name} attribute {name}: expected a text of fixed length, got {dtype} {shape}; {AGAIN}"
        )
    return bytes(node.attrs[name]).decode("ascii")


def integer(node, name):
    """An attribute that is one integer."""
    dtype, shape = _kind(node, name)
    if dtype.kind not in "iu" or shape != ():
        raise FormatError(f"{node.name} attribute {name}: expected an integer, got {dtype} {shape}; {AGAIN}")
    return int(node.attrs[name])


def _kind(node, name):
    """Type and shape of an attribute, its value unread."""
    if name not in node.attrs:
        raise FormatError(f"{node.name}: expected an attribute {name}, got none; {AGAIN}")
    attribute = node.attrs.get_id(name)
    return attribute.dtype, attribute.shape
