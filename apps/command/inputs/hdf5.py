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
CHUNKS = 1 << 13  # chunks read at a time: HDF5 takes some 6 kB for each while it reads
CHECKSUM, DEFLATE = h5py.h5z.FILTER_FLETCHER32, h5py.h5z.FILTER_DEFLATE
FILTERS = (h5py.h5z.FILTER_SHUFFLE, CHECKSUM)  # these do not change the size of what passes
DEFLATED, RECORD = 1032, 8  # most bytes that deflate makes of one; least bytes that a file has for a chunk


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
        for column, name in zip(found, names):
            _check_stored(column, name)
        rows = rows_of(len(found[0]), share)
        return [_numbers(column, dtype, rows) for column in found], len(found[0])


def values(path, name, n, option, share=ALL):
    """A share of the dataset (n,) of that name in float64."""
    with own_words(path) as file:
        column = _declared(file, name, option, several=True)
        if len(column) != n:
            raise InputError(f"{name}: expected {n} values as there are points, got {len(column)}")
        _check_stored(column, name)
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
    filters = _filters(node)
    packings = [kind for kind in filters if kind not in FILTERS]
    if size > max(CHUNK, most) or len(packings) > 1:
        raise InputError(
            f"{name}: expected chunks of at most {readable(max(CHUNK, most))}, packed once, got {readable(size)} "
            f"packed {len(packings)} times; write it anew"
        )
    if filters.count(CHECKSUM) > 1:
        raise InputError(f"{name}: expected chunks with one checksum, got {filters.count(CHECKSUM)}; write it anew")


def _check_stored(node, name):
    """InputError where a dataset is larger than its file can hold, or a chunk shorter than its checksum is.

    Sizes that were damaged, and rows that were never written, would cost memory and time for nothing. At a chunk
    shorter than its checksum HDF5 2.0 reads beyond it and crashes.
    """
    length, least = node.file.id.get_filesize(), _least_bytes(node)
    if least > length:
        raise InputError(
            f"{name}: expected what a file of {readable(length)} can hold, got {node.dtype} {node.shape}: rows were "
            "never written, or the file is damaged; write it anew"
        )
    filters = _filters(node)
    if CHECKSUM not in filters:
        return
    skipped = 1 << filters.index(CHECKSUM)
    short = node.id.chunk_iter(lambda chunk: True if chunk.size <= 4 and not chunk.filter_mask & skipped else None)
    if short:
        raise InputError(f"{name}: expected chunks longer than their checksums, got one that is not; write it anew")


def _least_bytes(node):
    """Bytes that a dataset takes in its file at least, if all of it is there."""
    if node.chunks is None:
        return prod(node.shape) * node.dtype.itemsize
    packings = [kind for kind in _filters(node) if kind not in FILTERS]
    most = 1 if not packings else DEFLATED if packings == [DEFLATE] else np.inf
    chunks = prod(-(-side // chunk) for side, chunk in zip(node.shape, node.chunks))
    return chunks * max(RECORD, prod(node.chunks) * node.dtype.itemsize / most)


def _filters(node):
    """The filters that the chunks of a dataset pass when they are written, by HDF5's numbers."""
    plan = node.id.get_create_plist()
    return [plan.get_filter(k)[0] for k in range(plan.get_nfilters())]


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
            if isinstance(name, bytes):  # h5py finds nothing by such a name
                yield f"{plain(path + name.decode('ascii', 'backslashreplace'), 80)} (its name is not UTF-8)"
                continue
            if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                continue
            node = group[name]
            if isinstance(node, h5py.Group):
                waiting.append((f"{path}{name}/", node))
            elif isinstance(node, h5py.Dataset):
                yield f"{plain(path + name, 80)} {node.shape}"


def _numbers(column, dtype, rows):
    """Rows of a dataset read in one precision; what does not fit becomes infinite and is refused later."""
    array = np.empty((rows.stop - rows.start, *column.shape[1:]), dtype)
    with np.errstate(all="ignore"):
        for piece in _pieces(column, rows):
            array[piece.start - rows.start : piece.stop - rows.start] = column[piece]
    return array


def _pieces(column, rows):
    """The rows in slices of at most about CHUNK bytes and CHUNKS chunks, no chunk in two of them."""
    high, *sides = column.chunks or (1, *column.shape[1:])
    across = prod(-(-side // chunk) for side, chunk in zip(column.shape[1:], sides))
    size = across * high * prod(sides) * column.dtype.itemsize  # of one row of chunks
    step = high * max(1, min(CHUNKS // across if column.chunks else CHUNK, CHUNK // size))
    ends = [*range((rows.start // step + 1) * step, rows.stop, step), rows.stop]
    return map(slice, [rows.start, *ends[:-1]], ends)
