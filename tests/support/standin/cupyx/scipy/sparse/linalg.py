import scipy.sparse.linalg
from cupy.arrays import device_array, entries_of


def spsolve_triangular(A, b, lower=True):
    return device_array(scipy.sparse.linalg.spsolve_triangular(A.matrix.tocsr(), entries_of(b), lower=lower))
