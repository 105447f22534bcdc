"""What a file says of itself: format, version, the caller's attributes, and type, shape and SHA-256 of every dataset.

checksum = SHA-256 of the JSON of everything else said, keys sorted, no spaces
"""

import hashlib
import json
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

import numpy as np

from h2gpu.typing import DType

FORMAT = "h2gpu-h2matrix"
VERSIONS = (1, 2)  # 2: in two precisions
LONGEST = 60_000  # bytes of the attributes' JSON: HDF5 keeps an attribute below 64 KiB beside its object


@dataclass(frozen=True)
class Header:
    """The head of a file; nothing of the entries has been read.

    symmetric    whether the columns share the rows' tree and basis
    software     what wrote the file
    attributes   what the caller of `save` gave, a dictionary
    datasets     {name: (type, shape, SHA-256)}
    version      of the format
    ranks        for each level of the row tree, root first, the ranks of its clusters; None until read
    """

    symmetric: bool
    software: str
    attributes: dict
    datasets: dict
    version: int = 1
    ranks: list | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns)."""
        sides = ("row", "row") if self.symmetric else ("row", "col")
        return tuple(self.datasets[f"{side}_tree/permutation"][1][0] for side in sides)

    @property
    def dim(self) -> int:
        """Coordinates of the clusters' boxes."""
        return self.datasets["row_tree/lower"][1][1]

    @property
    def dtype(self) -> DType:
        """float32 or float64: of what the matrix computes."""
        return np.dtype(self.datasets["row_basis/transfer"][0])

    @property
    def memory(self) -> dict[str, int]:
        """Bytes by part as `H2Matrix.memory` gives them."""
        parts = {part: sum(count * dtype.itemsize for dtype, count in kinds) for part, kinds in self._entries.items()}
        return {**parts, "total": sum(parts.values())}

    @property
    def in_float32(self) -> dict[str, float]:
        """The share of the entries of each part that are in float32."""
        return {
            part: sum(count for dtype, count in kinds if dtype == np.float32) / max(1, sum(n for _, n in kinds))
            for part, kinds in self._entries.items()
        }

    @property
    def _entries(self):
        """{part: [(type, entries), …]} of the numbers of the matrix."""
        kinds = {"leaf": "leaf_basis", "transfer": "transfer", "couplings": "coupling", "nearfield": "nearfield"}
        parts = {name: [] for name in ("nearfield", "leaf_basis", "transfer", "coupling")}
        for name, (dtype, shape, _) in self.datasets.items():
            part, last = name.split("/")
            if last in ("leaf", "transfer", "entries", "entries32"):
                parts[kinds.get(last) or kinds[part]].append((np.dtype(dtype), shape[0]))
        return parts

    @property
    def checksum(self) -> str:
        """SHA-256 of what the header says, by which a change to any of it shows."""
        said = {
            "format": FORMAT,
            "version": self.version,
            "symmetric": self.symmetric,
            "software": self.software,
            "attributes": self.attributes,
            "datasets": {name: [dtype, list(shape), digest] for name, (dtype, shape, digest) in self.datasets.items()},
        }
        return hashlib.sha256(json_of(said).encode("ascii")).hexdigest()


def json_of(value):
    """Compact ASCII JSON, keys sorted. TypeError or ValueError for what JSON cannot hold."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest_of(array):
    """SHA-256 of the bytes of a contiguous array, in hexadecimal."""
    return hashlib.sha256(array.reshape(-1).view(np.uint8).data).hexdigest()


def header_of(arrays, symmetric, attributes):
    """The header of arrays about to be written. ValueError for attributes that are not a small JSON dictionary."""
    try:
        text = json_of({} if attributes is None else attributes)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"attributes: expected what JSON can hold, got {error}; give numbers, texts, lists") from None
    kept = json.loads(text)  # as it will be read back: tuples become lists
    if not isinstance(kept, dict) or len(text) > LONGEST:
        raise ValueError(
            f"attributes: expected a dictionary of at most {LONGEST} bytes of JSON, "
            f"got {type(attributes).__name__} of {len(text)} bytes"
        )
    datasets = {name: (array.dtype.name, array.shape, digest_of(array)) for name, array in arrays.items()}
    return Header(symmetric, software(), kept, datasets, VERSIONS["nearfield/entries32" in datasets])


def software():
    """Name and version of this package."""
    try:
        return f"h2gpu {version('h2gpu')}"
    except PackageNotFoundError:  # a plain checkout
        return "h2gpu"
