"""A typed program that uses the public interface, for mypy: `make types`. Never run.

Each line says what a user of h2gpu expects its type to be.
"""

from typing import Any, assert_type

import numpy as np
import numpy.typing as npt

import h2gpu
from h2gpu import batched, covariance, distributed, solvers, storage
from h2gpu.distributed import solvers as by_ranks
from h2gpu.statistics import Kriging, cells, log_likelihood, simulate, variogram
from h2gpu.typing import Array

sites: npt.NDArray[np.float64] = np.zeros((10, 2))
stack: npt.NDArray[np.float32] = np.zeros((10, 4, 3), np.float32)

# covariances
field = 2 * covariance.Exponential(length_scale=(1.0, 2.0)) + covariance.Nugget(0.5)
assert_type(field, covariance.Covariance)
assert_type(field(sites), Array)
assert_type(covariance.Matern.from_range(1.0, 3.0, 1.5), covariance.Matern)
assert_type(field.parameters(), dict[str, Any])
assert_type(covariance.on_sphere(field), covariance.OnSphere)

# matrices
C = h2gpu.covariance_matrix(sites, field, rtol=1e-6)
assert_type(C, h2gpu.H2Matrix)
assert_type(C @ sites, Array)
assert_type(C.T, h2gpu.H2Matrix)
assert_type(C.shape, tuple[int, int])
assert_type(C.memory, dict[str, int])
assert_type(2.0 * (C + C), h2gpu.H2Matrix)
assert_type(h2gpu.compress(h2gpu.build(sites, field, split="mean"), 1e-3), h2gpu.H2Matrix)
assert_type(h2gpu.sampled_error(C, sites, field), float)
h2gpu.save(C, "covariance.h5", attributes={"covariance": field.parameters()})
assert_type(storage.read_header("covariance.h5").shape, tuple[int, int])

# batched: the same kind out
Q, R = batched.qr(stack)
assert_type(Q, npt.NDArray[np.float32])
assert_type(batched.qr(stack, mode="r"), npt.NDArray[np.float32])
ragged = batched.MatrixBatch.from_matrices([np.zeros((2, 3)), np.zeros((4, 3))])
U, s, Vt = batched.svd(ragged)
assert_type(s, batched.MatrixBatch)
assert_type(batched.svd(stack, "none"), npt.NDArray[np.float32])
assert_type(batched.cholesky(stack), npt.NDArray[np.float32])
assert_type(batched.gemm(ragged, ragged, transa=True), batched.MatrixBatch)
x, rank = batched.lstsq(stack, np.zeros((10, 4)))
assert_type(batched.predict_time("qr", 100, 8, 8, "float64"), float)

# solvers
W = solvers.vecchia(sites, field)
assert_type(W, solvers.InverseFactor)
solution = solvers.conjugate_gradients(C, sites[:, 0], W)
assert_type(solution, solvers.Solution)
assert_type(solution.checked(), Array)
assert_type(solvers.log_determinant(C, W), solvers.LogDeterminant)
assert_type(solvers.skeletonize(sites, field).solve(sites), Array)

# statistics
kriging = Kriging(field, trend="linear", fit_parameters=["variance", "nugget"]).fit(sites, sites[:, 0])
assert_type(kriging, Kriging)
assert_type(kriging.predict(sites), Array)
mean, std = kriging.predict(sites, return_std=True)
assert_type(std, Array)
assert_type(kriging.sample_y(sites, 5), Array)
assert_type(simulate(field, sites), Array)
log_likelihood(field, sites, sites[:, 0]).standard_error.is_integer()
kriging.predict_blocks(cells(sites, (1.0, 1.0)))
variogram(sites, sites[:, 0]).fit(field)

# many processes
comm = distributed.communicator()
D = distributed.covariance_matrix(sites, field, comm=comm)
assert_type(D, distributed.DistributedH2Matrix)
assert_type(by_ranks.conjugate_gradients(D, sites[:, 0]), solvers.Solution)

# what is wrong is told
h2gpu.build(sites, "exponential")  # type: ignore[arg-type]
h2gpu.build(sites, field, split="halves")  # type: ignore[arg-type]
batched.qr([[1.0]])  # type: ignore[call-overload]
