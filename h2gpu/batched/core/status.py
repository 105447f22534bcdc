"""What became of each matrix of a decomposition: 0 or more, or why it failed; and the error that says so."""

import numpy as np

from h2gpu.arrays import to_host
from h2gpu.batched.core.matrix_batch import MatrixBatch

NOT_FINITE, NOT_CONVERGED = -1, -2  # Failure of kernels/common/thread/verdicts.cuh
REASONS = {NOT_FINITE: "NaN or Inf", NOT_CONVERGED: "no convergence"}
NAMED = 20  # matrices that a message names at most


def check(info, name="svd", first=0):
    """LinAlgError naming the matrices of negative info; waits for a GPU. first: the number of the first matrix."""
    if len(info) and int(info.min()) < 0:
        raise np.linalg.LinAlgError(f"{name}: {'; '.join(_reasons(info, first))}")


def refuse(info, name, reason):
    """LinAlgError naming the matrices whose info, of any shape, is not 0; waits for a GPU. reason: of positive info."""
    info = info.ravel()
    if info.size and bool((info != 0).any()):
        raise np.linalg.LinAlgError(f"{name}: {'; '.join(_reasons(info, 0, reason))}")


def _reasons(info, first, positive=None):
    """What to say of the matrices of negative info, and of positive where a reason is given."""
    info = to_host(info)
    found = [(reason, info == code) for code, reason in REASONS.items()]
    found += [(positive, info > 0)] if positive else []
    return [f"{reason} in matrices {_names(first + np.flatnonzero(of))}" for reason, of in found if of.any()]


def _names(which):
    return ", ".join(map(str, which[:NAMED])) + (" …" if len(which) > NAMED else "")


def refuse_nonfinite(A, name):
    """LinAlgError naming the matrices that hold NaN or Inf."""
    if not np.isfinite(A.entries if isinstance(A, MatrixBatch) else A).all():
        check(np.array([0 if np.isfinite(A[b]).all() else NOT_FINITE for b in range(len(A))]), name)
