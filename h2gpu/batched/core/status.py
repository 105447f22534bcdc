"""What became of each matrix of a decomposition: 0 or more, or why it failed; and how an error says so."""

import numpy as np

NOT_FINITE, NOT_CONVERGED = -1, -2  # Failure of kernels/common/thread/verdicts.cuh
REASONS = {NOT_FINITE: "NaN or Inf", NOT_CONVERGED: "no convergence"}
NAMED = 20  # matrices that a message names at most


def failure(name, info, first=0, positive=None):
    """The LinAlgError that names the matrices of negative info, and of positive where a reason is given.

    info    (batch,) integers on the host     first   the number of the first matrix
    """
    found = [(reason, info == code) for code, reason in REASONS.items()]
    found += [(positive, info > 0)] if positive else []
    told = [f"{reason} in matrices {_names(first + np.flatnonzero(of))}" for reason, of in found if of.any()]
    return np.linalg.LinAlgError(f"{name}: {'; '.join(told)}")


def _names(which):
    return ", ".join(map(str, which[:NAMED])) + (" …" if len(which) > NAMED else "")
