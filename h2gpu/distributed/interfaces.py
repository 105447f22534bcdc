"""A distributed matrix for programs that know nothing of ranks: SciPy's solvers, run alike by all of them.

    x whole, on all ranks  →  own part  →  A x by ranks  →  y whole, on all ranks

Every rank runs the same program on the same numbers; only products are shared out. pylops-mpi and PETSc, which have
vectors by ranks of their own, take `A @ x` as it is: docs/distributed.md.
"""

from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np

from h2gpu.arrays import to_host
from h2gpu.distributed.matrix import DistributedH2Matrix

if TYPE_CHECKING:
    from scipy.sparse.linalg import LinearOperator


def linear_operator(A: DistributedH2Matrix) -> "LinearOperator":
    """A as SciPy's LinearOperator on whole vectors (m,) of the host, in the caller's order, the same on all ranks.

    For `scipy.sparse.linalg.cg`, `minres`, `eigsh`, …, called by all ranks with the same arguments; random starts must
    be given (v0). A product takes an exchange more than `A @ x`: the whole vector goes to all, 8 n bytes.

    Raises, on all ranks, ValueError for vectors of another length, and what one rank failed with.
    Source: MPI's allgather, around the product of Zampini et al. (2022).

    >>> import numpy as np
    >>> import scipy.sparse.linalg
    >>> from h2gpu import covariance, distributed
    >>> comm = distributed.communicator()  # one process here; more under mpiexec
    >>> sites, cov = np.random.default_rng(0).random((600, 2)), covariance.Exponential(length_scale=0.3)
    >>> A = distributed.covariance_matrix(sites, cov, rtol=1e-6, comm=comm)
    >>> largest = scipy.sparse.linalg.eigsh(distributed.linear_operator(A), 1, v0=np.ones(600))[0]
    >>> bool(np.isclose(largest[0], np.linalg.eigvalsh(cov(sites))[-1], rtol=1e-5))
    True
    """

    def product(B):
        return lambda x: to_host(B.gather(B @ B.xp.asarray(B.scatter(np.ascontiguousarray(x)))))

    of_A, of_transpose = product(A), product(A.T)
    operator = import_module("scipy.sparse.linalg").LinearOperator
    return operator(A.shape, of_A, of_transpose, of_A, A.dtype, of_transpose)
