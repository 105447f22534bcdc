"""HDF5 file of a user → datasets of real numbers.

Sizes are compared with the free memory before anything is read. Links to other files, external and virtual data are
refused: a file of points holds its points.
"""

from collections import deque
from contextlib import contextmanager
from itertools import islice
from math import prod

import h5py
import numpy as np

from h2gpu.apps.command.command import InputError
from h2gpu.apps.command.inputs.checks import ALL, check_lengths, check_shape, rows_of
from h2gpu.memory import readable
from h2gpu.texts import plain

LISTED = 20  # datasets named in a message, at most
VISITED = 500  # groups and datasets looked at to name them
CHUNK = 1 << 26  # bytes that HDF5 may unpack at a time: a chunk is held as a whole, however little of it is asked for
FILTERS = (h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_FLETCHER32)  # these do not change the size of what passes


def columns(path, names, dtype, most, option, share=ALL):
    """A share of the rows of datasets (n,) or (n, dim) of those names, of one length, in the precision, and n; see
    `points_file.read_points`. No other rows are read, but of their chunks."""
    with own_words(path) as file:
        found = [_declared(file, name, option, several=len(names) > 1) for name in names]
        check_lengths(names, found, option)
        size = sum(prod(column.shape) for column in found) * np.dtype(dtype).itemsize
        if 3 * size > most:
            raise InputError(
                f"expected points that fit in {readable(most)}, got {readable(size)} of them; "
                "thin them out or raise --max-memory"
            )
        rows = rows_of(len(found[0]), share)
        return [_numbers(column, dtype, rows) for column in found], len(found[0])


def values(path, name, n, option, share=ALL):
    """A share of the dataset (n,) of that name in float64."""
    with own_words(path) as file:
        column = _declared(file, name, option, several=True)
        if len(column) != n:
            raise InputError(f"{name}: expected {n} values as there are points, got {len(column)}")
        return _numbers(column, "float64", rows_of(n, share))


def holds(path, name):
    """Whether the file has a dataset of that name."""
    with own_words(path) as file:
        node = file
        for part in filter(None, name.split("/")):
            hard = isinstance(node, h5py.Group) and isinstance(node.get(part, getlink=True), h5py.HardLink)
            if not hard:
                return False
            node = node[part]
        return node is not file


@contextmanager
def own_words(path):
    """The file, open to be read; whatever goes wrong becomes an InputError of one line."""
    try:
        with h5py.File(path, "r") as file:
            yield file
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except Exception as error:  # HDF5 parses bytes of unknown origin: OSError, RuntimeError, KeyError, TypeError, …
        words = " ".join(str(error).split())
        raise InputError(f"{path}: expected an HDF5 file in order, got “{words:.160}”") from None


def _declared(file, name, option, several):
    """The dataset of that name, if it is real numbers of a right shape in this file; the option chooses others."""
    node = file
    for part in filter(None, name.split("/")):
        link = node.get(part, getlink=True) if isinstance(node, h5py.Group) else None
        if link is None:
            raise InputError(f"dataset {name!r} not found; the file holds {listed(file)}: choose with {option}")
        if not isinstance(link, h5py.HardLink):
            raise InputError(f"{name}: expected a dataset of this file, got a {type(link).__name__}; copy the data in")
        node = node[part]
    if not isinstance(node, h5py.Dataset):
        raise InputError(f"{name!r} is a group; the file holds {listed(file)}: choose with {option}")
    if node.is_virtual or node.external:
        raise InputError(f"{name}: expected a dataset of this file, got one that lies in others; copy the data in")
    if node.dtype.kind not in "fiu":
        raise InputError(f"{name}: expected real numbers, got {node.dtype}; store coordinates as float64")
    check_shape(node.shape, name, several)
    _check_packing(node, name)
    if 0 in node.shape:
        raise InputError(f"{name}: expected at least one point and one coordinate, got shape {node.shape}")
    return node


def _check_packing(node, name):
    """InputError where little on the disk may unpack to far more than the dataset: large chunks, packed twice."""
    if node.chunks is None or node.shape is None:
        return
    size, most = (prod(shape) * node.dtype.itemsize for shape in (node.chunks, node.shape))
    plan = node.id.get_create_plist()
    packings = [k for k in range(plan.get_nfilters()) if plan.get_filter(k)[0] not in FILTERS]
    if size > max(CHUNK, most) or len(packings) > 1:
        raise InputError(
            f"{name}: expected chunks of at most {readable(max(CHUNK, most))}, packed once, got {readable(size)} "
            f"packed {len(packings)} times; write it anew"
        )


def listed(file):
    """The datasets of a file with their shapes, as text."""
    found = list(islice(_datasets(file), LISTED + 1))
    more = " and more" if len(found) > LISTED else ""
    return ", ".join(found[:LISTED]) + more if found else "no datasets near its root"


def _datasets(file):
    """Names and shapes of the datasets, nearest to the root first, among the first VISITED things of the file."""
    waiting, left = deque([("", file)]), VISITED
    while waiting:
        path, group = waiting.popleft()
        for name in group:
            left -= 1
            if left < 0:
                return
            if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                continue
            node = group[name]
            if isinstance(node, h5py.Group):
                waiting.append((f"{path}{name}/", node))
            elif isinstance(node, h5py.Dataset):
                yield f"{plain(path + name, 80)} {node.shape}"


def _numbers(column, dtype, rows):
    """Rows of a dataset read in one precision; what does not fit becomes infinite and is refused later."""
    with np.errstate(all="ignore"):
        return column[rows].astype(dtype)
