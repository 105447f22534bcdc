"""Covariance matrices of several variables: an H²-matrix for each correlation, at the places of all.

    K = P (Σ_k B_k ⊗ R_k) Pᵀ + diag(d),     R_k = ρ_k(places),  P picks the observed (place, variable)

One product with R_k serves all variables. Reference: Wackernagel (2003), Multivariate geostatistics, chapter 26.
"""

from dataclasses import dataclass

import numpy as np

from h2gpu.arrays import array_module, to_host
from h2gpu.covariance.models.variables import structures_of
from h2gpu.covariance.sites import Sites
from h2gpu.h2matrix import covariance_matrix

HIGHEST = 0.1  # rtol of a correlation that hardly counts


def matrix_of(sites, cov, rtol, build=covariance_matrix):
    """The covariance matrix at sites (n, dim) to the accuracy rtol: an H2Matrix, or of several variables a MixedMatrix.

    build   as `covariance_matrix`, for the correlations of several variables

    Raises ValueError where a covariance of several variables is composed with others than nuggets.
    """
    return covariance_matrix(sites, cov, rtol) if cov.variables is None else _mixed(sites, cov, rtol, build)


@dataclass(frozen=True, eq=False)
class MixedMatrix:
    """K.

    terms      (B_k, R_k): (p, p) arrays and H2Matrix of the places
    place      (n,) of each observation
    variable   (n,) likewise
    d          (n,) what is added to the diagonal
    """

    terms: tuple
    place: object
    variable: object
    d: object

    @property
    def shape(self):
        """(n, n)."""
        return len(self.d), len(self.d)

    @property
    def dtype(self):
        """float64."""
        return self.d.dtype

    @property
    def nearfield(self):
        """That of the first correlation, which tells where vectors must be."""
        return self.terms[0][1].nearfield

    @property
    def nbytes(self):
        """Of all correlations."""
        return sum(R.nbytes for _, R in self.terms)

    def __matmul__(self, x):
        """K x of x (n,) or (n, count)."""
        xp, X = array_module(x), x.reshape(len(x), -1)
        Y = self.d[:, None] * X
        if not self.terms:
            return Y.reshape(x.shape)
        p, count = len(self.terms[0][0]), X.shape[1]
        Z = xp.zeros((self.terms[0][1].shape[0], p, count), X.dtype)
        Z[self.place, self.variable] = X
        for B, R in self.terms:
            used = np.flatnonzero(B.any(axis=0))
            products = R @ xp.ascontiguousarray(Z[:, used]).reshape(len(Z), -1)
            mixed = xp.einsum("ij,njc->nic", xp.asarray(B[:, used]), products.reshape(len(Z), len(used), count))
            Y += mixed[self.place, self.variable]
        return Y.reshape(x.shape)


def _mixed(sites, cov, rtol, build):
    """The MixedMatrix: errors of the R_k relative to themselves, so that their sum stays within rtol of K."""
    xp, host = array_module(sites), to_host(sites)
    fields, variable = structures_of(cov), np.rint(host[:, -1]).astype(np.int64)
    d = np.broadcast_to(cov.variances(host) + cov.nugget, len(host))  # less what the structures have
    d = d - sum((np.diagonal(B)[variable] * rho.variance_at_zero for B, rho in fields), start=np.zeros(len(host)))
    places, place = np.unique(host[:, :-1], axis=0, return_inverse=True)
    places, norm, terms = xp.asarray(places), Sites.of(sites, cov).norm, []
    for B, rho in fields:
        share = norm / (len(fields) * np.linalg.norm(B) * Sites.of(places, rho).norm)
        terms.append((B, build(places, rho, min(HIGHEST, rtol * share))))
    return MixedMatrix(tuple(terms), xp.asarray(place.ravel()), xp.asarray(variable), xp.asarray(d))
