"""Arrays → HDF5 file, whole or not at all.

HDF5 does not survive a disk that refuses: it cannot close the file, and crashes at the end of the process. It
therefore writes into a `PatientFile`, which keeps the error for us and lets HDF5 go on to a clean end.
"""

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager

import h5py
import numpy as np

from h2gpu.storage.header import FORMAT, header_of, json_of
from h2gpu.storage.whole_file import whole_file
from h2gpu.typing import FileName

LIBRARY = ("v108", "v110")  # from HDF5 1.8 on, the file's own tables carry checksums
TYPES = {
    "int32": h5py.h5t.STD_I32LE,
    "int64": h5py.h5t.STD_I64LE,
    "float32": h5py.h5t.IEEE_F32LE,
    "float64": h5py.h5t.IEEE_F64LE,
}
LITTLE_ENDIAN = {"int32": "<i4", "int64": "<i8", "float32": "<f4", "float64": "<f8"}


def write(path, arrays, symmetric, attributes):
    """Write the file. Raises ValueError for attributes that do not fit, OSError when the disk refuses."""
    arrays = {name: array.astype(LITTLE_ENDIAN[array.dtype.name], copy=False) for name, array in arrays.items()}
    header = header_of(arrays, symmetric, attributes)
    with whole_hdf5(path) as file:
        _write_head(file, header)
        for name, array in arrays.items():
            dataset = file.create_dataset(name, data=array)
            dataset.attrs["sha256"] = np.bytes_(header.datasets[name][2])


@contextmanager
def whole_hdf5(path: FileName) -> Iterator[h5py.File]:
    """A new HDF5 file to be written, which is at the path when the block has ended without error: see `whole_file`."""
    with whole_file(path) as temporary, open(temporary, "r+b", buffering=0) as raw:
        patient = PatientFile(raw)
        with h5py.File(patient, "w", libver=LIBRARY) as file:
            yield file
        if patient.error is not None:
            raise OSError(patient.error.errno, f"could not write: {os.strerror(patient.error.errno)}", str(path))


class PatientFile(io.RawIOBase):
    """An unbuffered binary file for h5py that remembers the first error of the disk instead of raising it.

    error   that OSError, or None. From then on nothing is written, and what cannot be read is zero.
    """

    def __init__(self, raw):
        self.error = None
        self._raw = raw

    def write(self, data):
        """All of the data, however few bytes the system takes at a time."""
        rest = memoryview(data).cast("B")
        size = len(rest)
        while len(rest) and self.error is None:
            try:
                rest = rest[self._raw.write(rest) :]
            except OSError as error:
                self.error = error
        return size

    def readinto(self, buffer):
        """Fill the buffer; zeros beyond the end."""
        rest = memoryview(buffer).cast("B")
        while len(rest):
            count = self._raw.readinto(rest)
            if not count:
                rest[:] = bytes(len(rest))
                break
            rest = rest[count:]
        return len(buffer)

    def truncate(self, size=None):
        """Change the size of the file."""
        try:
            return self._raw.truncate(size)
        except OSError as error:
            self.error = self.error or error
            return size

    def seek(self, position, whence=os.SEEK_SET):
        """As for any file."""
        return self._raw.seek(position, whence)

    def tell(self):
        """As for any file."""
        return self._raw.tell()

    def flush(self):
        """Nothing: the file is unbuffered, and synced when it is complete."""


def _write_head(file, header):
    file.attrs["format"] = np.bytes_(FORMAT)
    file.attrs["version"] = np.int64(header.version)
    file.attrs["symmetric"] = np.int64(header.symmetric)
    file.attrs["software"] = np.bytes_(header.software)
    file.attrs["attributes"] = np.bytes_(json_of(header.attributes))
    file.attrs["checksum"] = np.bytes_(header.checksum)
