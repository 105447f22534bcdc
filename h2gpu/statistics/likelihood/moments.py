"""All that the Gaussian likelihood knows of the data: log det K, and the Gram matrix of data and trend under K⁻¹.

    M = Bᵀ K⁻¹ B,   B = [y, Q]   Q orthonormal trend columns

    ∂ log det K = tr(K⁻¹ ∂K),     ∂M = −(K⁻¹ B)ᵀ ∂K (K⁻¹ B)

Three ways: dense here, Vecchia's approximation in `vecchia_moments`, the H²-matrix in `hierarchical_moments`.
"""

from dataclasses import dataclass

import numpy as np

from h2gpu.arrays import array_module, to_host
from h2gpu.batched.device.threads import one_blas_thread
from h2gpu.statistics.systems import dense_system


@dataclass(frozen=True, eq=False)
class Moments:
    """On the host; J parameters, 1 + p columns of B.

    log_determinant   of K
    gram              M (1 + p, 1 + p)
    slopes            (J,) ∂ log det K, or None where no derivatives were asked for
    gram_slopes       (J, 1 + p, 1 + p) ∂M, or None
    information       function of the residual's coefficients c (1 + p,), which gives the (J, J) information matrix of
                      the parameters for the data B c; or None
    error             standard error of log_determinant
    slope_errors      (J,) of the slopes, or None
    """

    log_determinant: float
    gram: np.ndarray
    slopes: np.ndarray | None = None
    gram_slopes: np.ndarray | None = None
    information: object = None
    error: float = 0.0
    slope_errors: np.ndarray | None = None


@one_blas_thread()
def dense_moments(model, sites, noise, B, derivatives=False, system=None):
    """The Moments, exact: O(n³).

    model      the `parameters.Model`
    sites      (n, dim)
    noise      function of the variance of the measurement error that gives that of the sites', a number or (n,)
    B          (n, 1 + p)
    system     the DenseSystem, where it is known
    """
    system = system or dense_system(sites, model.cov, noise(model.nugget))
    solved = system.solve(B)
    logdet, gram = system.log_determinant.value, to_host(B.T @ solved)
    if not derivatives:
        return Moments(logdet, gram)
    xp = array_module(sites)
    inverse = system.solve(xp.eye(len(sites)))
    slopes, products = [], []
    for cov, nugget in model.derivatives():
        D = xp.zeros((len(sites), len(sites))) if cov is None else cov(sites)
        D.reshape(-1)[:: len(D) + 1] += xp.asarray(noise(nugget))
        slopes.append(float((inverse * D).sum()))
        products.append(D @ solved)
    T = xp.stack(products)
    gram_slopes = -to_host(xp.einsum("ic,jid->jcd", solved, T))
    return Moments(logdet, gram, np.array(slopes), gram_slopes, average_information(system.solve, T, solved, B))


def average_information(solve, T, solved, B):
    """½ (∂_j K P r)ᵀ P (∂_k K P r) with P r = K⁻¹ B c, P = K⁻¹ − K⁻¹ Q (Qᵀ K⁻¹ Q)⁻¹ Qᵀ K⁻¹: about the mean of the
    observed and the expected information (Gilmour, Thompson & Cullis 1995).

    T       (J, n, 1 + p) ∂_j K K⁻¹ B
    """
    xp = array_module(T)

    def information(c):
        V = T @ xp.asarray(c)
        S = solve(V.T)
        A = to_host(V @ S)
        if B.shape[1] > 1:
            Q, Z = B[:, 1:], solved[:, 1:]
            U = to_host(V @ Z)
            A = A - U @ np.linalg.solve(to_host(Q.T @ Z), U.T)
        return 0.25 * (A + A.T)

    return information
