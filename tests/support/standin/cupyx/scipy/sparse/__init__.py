"""Sparse matrices: SciPy's, of arrays of the stand-in."""

import scipy.sparse
from cupy.arrays import device_array, entries_of


class csr_matrix:  # noqa: N801  CuPy's name
    """A SciPy matrix, or one of (data, indices, indptr) on the device."""

    def __init__(self, parts, shape=None):
        self.matrix = scipy.sparse.csr_matrix(entries_of(parts), shape=shape) if isinstance(parts, tuple) else parts

    @property
    def T(self):
        return csr_matrix(self.matrix.T)

    def __matmul__(self, x):
        return device_array(self.matrix @ entries_of(x))

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(self.matrix, name)
        return call(found) if callable(found) else device_array(found)


def call(method):
    def called(*args):
        result = method(*map(entries_of, args))
        return csr_matrix(result) if scipy.sparse.issparse(result) else device_array(result)

    return called
