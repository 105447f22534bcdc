"""Ranks that are processes with a GPU each, by NCCL; and ranks that share GPUs, through the host by MPI."""

import pytest
from mpiexec import launch, needs_mpi

pytestmark = [pytest.mark.gpu, needs_mpi]
SCRIPT = """
import sys
import cupy
import numpy as np
import h2gpu
import h2gpu.statistics
from h2gpu import distributed
from h2gpu.covariance import Matern, Nugget
from h2gpu.distributed.matrix import NAME
from h2gpu.distributed.statistics import Kriging
from h2gpu.statistics import systems

comm = distributed.communicator("cuda", limit=60)
assert type(comm).__name__ == sys.argv[2] and comm.size == int(sys.argv[1]) and comm.xp is cupy
after, before = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
for dtype in (np.float64, np.float32, np.int64, np.uint8):
    sent, found = cupy.asarray(np.full(3, comm.rank, dtype)), cupy.empty(3, dtype)
    comm.start({after: sent}, {before: found}, "ring")()
    assert (found.get() == before).all()
    total = comm.start_sum(sent + sent.dtype.type(1), "total")
    assert (total().get() == sum(range(comm.size + 1))).all()

rng = np.random.default_rng(0)
x, cov, b = rng.random((3000, 2)), Matern(1.0, 0.2, 1.5) + Nugget(0.05), rng.standard_normal((3000, 2))
A = h2gpu.covariance_matrix(x, cov, 1e-8, storage="full")
y = A @ b
B = distributed.distribute(A.to_device("cuda"), comm)
for _ in range(20):  # many exchanges in flight, one after the other
    local = B @ B.scatter(cupy.asarray(b))
assert abs(B.gather(local) - y).max() < 1e-12 * abs(y).max()
both = distributed.distribute(A.to_device("cuda"), comm), distributed.covariance_matrix(
    np.array_split(x, comm.size)[comm.rank], cov, 1e-8, comm=comm, once=True
)
for M, atol in zip(both, (1e-12, 1e-7)):  # one vector: recorded at the second product
    u, counts, products = M.scatter(cupy.asarray(b[:, 0])), [], []
    for factor in (1, 1, 1, 2, 1):
        products.append(M @ (factor * u) / factor)
        counts.append([*comm.traffic.exchanges[NAME], comm.traffic.sums.get(f"{NAME}, above the cut", 0)])
    assert abs(M.gather(products[0]) - y[:, 0]).max() < atol * abs(y).max()
    assert all((p == products[0]).all() for p in products)
    assert (np.diff(counts, axis=0) == np.diff(counts, axis=0)[0]).all(), counts

share = np.array_split(x, comm.size)[comm.rank]
C = distributed.covariance_matrix(share, cov, 1e-8, comm=comm)
assert abs(C.gather(C @ C.scatter(cupy.asarray(b))) - y).max() < 1e-7 * abs(y).max()
W = distributed.solvers.vecchia(C, share, cov, 12)
solution = C.gather(distributed.solvers.conjugate_gradients(C, C.scatter(cupy.asarray(b)), W, rtol=1e-10).checked())
assert abs(A @ solution - b).max() < 1e-4

systems.DENSE = 50  # of more sites the matrix is by ranks
z, targets = np.sin(6 * x[:, 0]), rng.random((80, 2))
mean, std = h2gpu.statistics.Kriging(cov, 0.01, rtol=1e-8, solver="iterative").fit(x, z).predict(targets, True)
own = [cupy.asarray(np.array_split(part, comm.size)[comm.rank]) for part in (x, z, targets)]
found = Kriging(cov, 0.01, rtol=1e-8, comm=comm).fit(*own[:2]).predict(own[2], return_std=True)
for whole, part in zip((mean, std), found):
    assert abs(np.array_split(whole, comm.size)[comm.rank] - part.get()).max() < 1e-5

try:
    with comm.together("work"):
        if comm.rank == 1:  # once all are here: before, they would hear of it in what they still wait for
            comm.start({}, {q: np.empty(1) for q in range(comm.size) if q != 1}, "all are here")()
            raise ValueError("points: expected finite numbers")
        comm.start({1: np.ones(1)}, {}, "all are here")()
        if comm.rank == 0:
            M @ u  # a graph, which rank 1 never begins
        elif comm.rank == 2:
            comm.start({}, {1: cupy.empty(1 << 20)}, "what never comes")()
        comm.sum([1.0])
except ValueError as error:
    assert str(error) == "rank 1: points: expected finite numbers", error
    print("all well", flush=True)
"""


def devices():
    """Number of GPUs; asked where a test runs, as others are counted without a driver."""
    import cupy

    return cupy.cuda.runtime.getDeviceCount()


def check(tmp_path, ranks, kind):
    script = tmp_path / "checks.py"
    script.write_text(SCRIPT)
    done = launch(ranks, script, ranks, kind, limit=300)
    assert done.stdout.count("all well") == ranks, done.stdout + done.stderr


def test_a_gpu_each(tmp_path):
    if devices() < 2:
        pytest.skip("needs two GPUs")
    check(tmp_path, devices(), "NCCL")


@pytest.mark.parametrize("ranks", [2, 4])
def test_ranks_that_share_gpus(ranks, tmp_path):
    if ranks <= devices():
        pytest.skip("there is a GPU for each")
    check(tmp_path, ranks, "MPI")
