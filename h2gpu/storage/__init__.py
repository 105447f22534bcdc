"""H²-matrices in files: save, load, read_header.

Format `h2gpu-h2matrix`, versions 1 and 2: an HDF5 file (library 1.8 or newer) that h5py alone can read.

| where | what |
|---|---|
| /, attributes | `format`, `version`, `symmetric` 0 or 1, `software`, `attributes` (a JSON dictionary), `checksum` |
| row_tree/ | `permutation` (n,), `start` `stop` `parent` `first_child` (clusters,): int64 |
| | `level_offsets` (levels + 1,) int64: the first cluster of every level, and the number of clusters |
| | `lower` `upper` (clusters, dim) float32 or float64: the clusters' boxes |
| row_basis/ | `ranks` (clusters,) int64; `leaf` `transfer` (entries,): U_t of the leaves, E_t of all clusters |
| col_tree/, col_basis/ | the same for the columns; absent from a symmetric file |
| couplings/ | `rows` `columns` (blocks,) int64: clusters t and s; `entries`: S_ts |
| nearfield/ | `rows` `columns` (blocks,) int64: leaves t and s; `entries`: D_ts |
| both, version 2 | `narrowed` (blocks,) int64: 1 where a block is in `entries32`, float32, 0 where it is in `entries` |

Trees are those of `ClusterTree`, blocks sorted by (column, row), t ≥ s when symmetric. Entries are float32 or float64,
little-endian; matrices stand one after the other in C order, their shapes follow from `layout`. In version 1 all have
one precision. Version 2 is written for matrices of float64 with parts in float32: blocks as said above, leaf bases
perhaps, transfers never. Texts are ASCII of fixed length, datasets contiguous without filters: entries do not compress.
Every dataset has an attribute `sha256` over its bytes, and `checksum` covers everything else (`header`), so that any
changed bit is noticed. No other version exists; a reader refuses versions it does not know. By hand:

    with h5py.File(path) as file:
        ranks, hashes = file["row_basis/ranks"][:], {n: file[n].attrs["sha256"] for n in ("row_basis/leaf", …)}

A file is written beside its target, synced and renamed (`whole_file`); nothing in it is trusted when read (`reading`,
`invariants`). Nothing is pickled.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from h2gpu.h2matrix.matrix import H2Matrix
from h2gpu.solvers import Skeletonization
from h2gpu.storage import factors, reading, writing
from h2gpu.storage.header import FORMAT, Header
from h2gpu.storage.invariants import check as check_arrays
from h2gpu.storage.layout import arrays_of, in_precision, is_stored, matrix_of
from h2gpu.storage.whole_file import check_writable, whole_file
from h2gpu.storage.writing import whole_hdf5
from h2gpu.texts import brief
from h2gpu.typing import FileName

__all__ = [
    "Header",
    "check_writable",
    "in_precision",
    "is_matrix_file",
    "load",
    "read_header",
    "save",
    "whole_file",
    "whole_hdf5",
]


def save(B: H2Matrix | Skeletonization, path: FileName, *, attributes: Mapping[str, Any] | None = None) -> None:
    """Write an H2Matrix or a Skeletonization to a file, whole or not at all: whatever fails, an earlier file survives.

    B            H2Matrix or Skeletonization (`factors`), on the CPU or a GPU (buffers come down once)
    path         where to
    attributes   optional dictionary of numbers, texts, lists and dictionaries to keep with it, such as
                 {"covariance": cov.parameters(), "rtol": 1e-6}; `read_header` gives it back

    Raises ValueError for a matrix whose couplings or nearfield are not stored or that is not finite, and for attributes
    JSON cannot hold; OSError when the disk refuses.
    Source: HDF5, in the format described at the head of `h2gpu.storage`.

    >>> import os, tempfile
    >>> import numpy as np
    >>> import h2gpu
    >>> sites = np.random.default_rng(0).random((300, 2))
    >>> C = h2gpu.covariance_matrix(sites, h2gpu.covariance.Exponential(length_scale=0.3))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     h2gpu.save(C, os.path.join(folder, "covariance.h5"))
    ...     again = h2gpu.load(os.path.join(folder, "covariance.h5"))
    >>> again.memory == C.memory
    True
    """
    if isinstance(B, Skeletonization):
        factors.write(path, B, attributes)
        return
    if not is_stored(getattr(B, "couplings", None)):
        raise ValueError(
            f"save: expected an H2Matrix with stored couplings, got {brief(B, 80)}; build or compress it first"
        )
    if not is_stored(B.nearfield):
        raise ValueError(
            f"save: expected a stored nearfield, got {brief(B, 80)}, which computes it; "
            'save B.replace(nearfield=B.nearfield.stored()), or compress with nearfield="stored"'
        )
    arrays = arrays_of(B)
    check_arrays(arrays, B.symmetric)
    writing.write(path, arrays, B.symmetric, attributes)


def load(path: FileName, *, check: bool = True) -> H2Matrix | Skeletonization:
    """The H2Matrix or Skeletonization of a file, on the CPU, bit for bit as it was saved.

    check   also compare every dataset with its checksum; the structure is always checked

    Raises ValueError, one line, for a file that is damaged, of another format or of a later version; OSError when
    the file cannot be opened. Source: HDF5, in the format described at the head of `h2gpu.storage`.

    >>> import os, tempfile
    >>> import numpy as np
    >>> import h2gpu
    >>> sites = np.random.default_rng(0).random((300, 2))
    >>> C = h2gpu.covariance_matrix(sites, h2gpu.covariance.Exponential(length_scale=0.3))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     h2gpu.save(C, os.path.join(folder, "covariance.h5"))
    ...     again = h2gpu.load(os.path.join(folder, "covariance.h5"))
    >>> bool(np.array_equal(again @ np.ones(300), C @ np.ones(300)))
    True
    """
    if factors.is_factor_file(path):
        return factors.read(path, check)
    arrays, header = reading.read(path, check)
    try:
        check_arrays(arrays, header.symmetric)
    except ValueError as error:
        raise reading.FormatError(f"{path}: {error}; {reading.AGAIN}") from None
    return matrix_of(arrays, header.symmetric)


def is_matrix_file(path: FileName) -> bool:
    """Whether the file says that it is one of this format, of any version; False for files of other kinds."""
    try:
        with reading.opened(path) as file:
            return reading.text(file, "format") == FORMAT
    except reading.FormatError:
        return False


def read_header(path: FileName) -> Header:
    """The `Header` of a file: shape, type, memory, ranks, attributes; the entries are not read.

    Raises ValueError and OSError as `load` does. Source: HDF5, in the format described at the head of `h2gpu.storage`.

    >>> import os, tempfile
    >>> import numpy as np
    >>> import h2gpu
    >>> sites = np.random.default_rng(0).random((300, 2))
    >>> C = h2gpu.covariance_matrix(sites, h2gpu.covariance.Exponential(length_scale=0.3))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     h2gpu.save(C, os.path.join(folder, "covariance.h5"))
    ...     header = h2gpu.read_header(os.path.join(folder, "covariance.h5"))
    >>> header is not None
    True
    """
    with reading.opened(path) as file:
        header = reading.read_head(file)
        ranks, offsets = (reading.read_array(file, header, n) for n in ("row_basis/ranks", "row_tree/level_offsets"))
        orderly = len(offsets) >= 2 and offsets[0] == 0 and offsets[-1] == len(ranks)
        if not orderly or (offsets[1:] <= offsets[:-1]).any() or (ranks < 0).any():
            raise reading.FormatError(
                f"row_tree/level_offsets: expected levels of {len(ranks)} clusters; {reading.AGAIN}"
            )
    return replace(header, ranks=np.split(ranks, offsets[1:-1]))
