"""The documented example for PETSc, on a stand-in with the calls of petsc4py that it makes: petsc4py has no wheel."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
from places import ROOT
from threads import all_of

from h2gpu import distributed
from h2gpu.covariance import Exponential, Nugget

EXAMPLE = next(
    block
    for block in re.findall(r"```python\n(.*?)```", (ROOT / "docs/distributed.md").read_text("utf-8"), flags=re.DOTALL)
    if "class Product" in block
)
SITES = np.random.default_rng(0).random((600, 2))
COV = Exponential(length_scale=0.2) + Nugget(0.1)
B = np.random.default_rng(1).standard_normal(600)


class Vec:
    """A rank's part of a vector; who asks to read cannot write."""

    def __init__(self, local):
        self.array = np.zeros(local)

    def getArray(self, readonly=False):
        view = self.array.view()
        view.flags.writeable = not readonly
        return view

    def setArray(self, array):
        if array.shape != self.array.shape:
            raise ValueError(f"expected {self.array.shape}, got {array.shape}")
        self.array[...] = array


class Mat:
    """Type "python": the context multiplies."""

    def createPython(self, size, context=None, comm=None):
        (self.rows, n), (self.columns, m) = size
        if (n, m) != tuple(np.sum(comm.gather((self.rows, self.columns), "sizes"), axis=0)):
            raise ValueError("expected local sizes that sum to the global ones")
        self.context, self.comm, self.products = context, comm, 0
        return self

    def createVecRight(self):
        return Vec(self.columns)

    def createVecLeft(self):
        return Vec(self.rows)

    def mult(self, x, y):
        self.products += 1
        self.context.mult(self, x, y)


class KSP:
    """Conjugate gradients without a preconditioner, dot products by sums over the ranks."""

    def create(self, comm=None):
        self.comm, self.kind, self.preconditioner = comm, None, SimpleNamespace()
        self.preconditioner.setType = lambda kind: setattr(self.preconditioner, "kind", kind)
        return self

    def setOperators(self, matrix):
        self.matrix = matrix

    def setType(self, kind):
        self.kind = kind

    def getPC(self):
        return self.preconditioner

    def solve(self, b, x):
        assert (self.kind, self.preconditioner.kind) == ("cg", "none")
        r, product = b.getArray(readonly=True).copy(), self.matrix.createVecLeft()
        p, square = self.matrix.createVecRight(), self._dot(r, r)
        x.setArray(np.zeros_like(r))
        p.setArray(r)
        first, self.iterations = square, 0
        while square > 1e-20 * first and self.iterations < 300:
            self.matrix.mult(p, product)
            step = square / self._dot(p.array, product.array)
            x.array += step * p.array
            r -= step * product.array
            before, square = square, self._dot(r, r)
            p.array *= square / before
            p.array += r
            self.iterations += 1

    def _dot(self, a, b):
        return float(self.comm.sum(np.array([a @ b]), "dot product")[0])


def solved(comm, example=EXAMPLE):
    """The example's solution in the order of all sites, and its matrix; A and my_b as the page has them before."""
    share = np.array_split(np.arange(len(SITES)), comm.size)[comm.rank]
    A = distributed.covariance_matrix(SITES[share], COV, 1e-10, comm=comm)
    names = {"PETSc": SimpleNamespace(Mat=Mat, KSP=KSP), "MPI": SimpleNamespace(COMM_WORLD=comm)}
    names |= {"A": A, "my_b": B[A.rows.partition.points(comm.rank)]}
    exec(example, names)
    return A.gather(names["x"].array), names["matrix"], names["solver"]


@pytest.mark.parametrize("ranks", [1, 3])
def test_the_example_solves_by_products_of_all_ranks(ranks):
    exact = np.linalg.solve(COV(SITES), B)
    for x, matrix, solver in all_of(ranks, solved):
        assert np.abs(x - exact).max() < 1e-6 * np.abs(exact).max()
        assert matrix.products == solver.iterations < 300


@pytest.mark.parametrize(
    ("right", "wrong"),
    [("self.A @ x.getArray(readonly=True)", "x.getArray(readonly=True)"), ("y.setArray(", "x.setArray(")],
)
def test_a_wrong_product_does_not(right, wrong):
    assert right in EXAMPLE
    exact = np.linalg.solve(COV(SITES), B)
    with np.errstate(all="ignore"):
        try:
            x = all_of(2, lambda comm: solved(comm, EXAMPLE.replace(right, wrong)))[0][0]
        except ZeroDivisionError:  # y stays zero
            return
    assert not np.abs(x - exact).max() < 1e-2 * np.abs(exact).max()
