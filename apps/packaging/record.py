"""Which kernels do users meet? Runs the main paths and routines of usual sizes on a GPU, writes down what they load.

    python -m h2gpu.apps.packaging.record [-o kernels/paths.csv]

The list is what `compile_ahead` compiles. Columns: path, header, instance; an instance stands under the first path that
needed it.
"""

import csv
import io
import sys
from itertools import product
from pathlib import Path

import numpy as np
from tqdm import tqdm

import h2gpu
from h2gpu import batched
from h2gpu.apps.command.command import FailureError, Parser, run
from h2gpu.apps.command.devices import device as device_named
from h2gpu.batched.device import compiler
from h2gpu.covariance import Exponential, Gaussian, Matern, Nugget, on_sphere
from h2gpu.solvers import skeletonize
from h2gpu.statistics import Kriging, log_likelihood, simulate
from h2gpu.storage.whole_file import whole_file

REALS, COMPLEX = (np.float64, np.float32), (np.complex128, np.complex64)
SITES, RTOLS = (1000, 20_000, 131_072), (1e-3, 1e-5, 1e-7)
FEW, TARGETS = 3000, 500
COVARIANCES = (Matern(length_scale=0.1), Matern(length_scale=0.1, smoothness=2.5), Gaussian(length_scale=0.1))
COVARIANCES += (Matern(length_scale=0.1, smoothness=1.2), Matern(length_scale=(0.1, 0.2, 0.3)))
SIZES, BATCHES = (2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512), (1, 500, 100_000)
MOST_ENTRIES = 1 << 25  # of a batch


def main(argv=None):
    """The command; returns the exit status."""
    return run("packaging.record", _work, argv)


def _work(argv):
    parser = Parser(prog="packaging.record", description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("-o", "--output", type=Path, default=compiler.source_folder() / "paths.csv")
    options = parser.parse_args(argv)
    try:
        device_named("cuda")
    except FailureError as error:
        raise FailureError("recording needs a CUDA device and CuPy, such as h2gpu[cuda13] installs") from error
    paths = {}
    for path, work in tqdm([*upper_paths(), *routines()], disable=not sys.stderr.isatty()):
        work()
        for instance in compiler.loaded():
            paths.setdefault(instance, path)
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(("path", "header", "instance"))
    rows.writerows(sorted((path, *instance) for instance, path in paths.items()))
    with whole_file(options.output) as temporary:
        temporary.write_text(text.getvalue(), encoding="utf-8")
    print(f"{options.output}: {len(paths)} kernels")


def upper_paths():
    """(path, function): matrices, then statistics."""
    for dtype, n, rtol in product(REALS, SITES, RTOLS):
        if rtol > np.finfo(dtype).eps:
            yield "covariance_matrix", lambda c=(dtype, n, rtol): matrices(Exponential(length_scale=0.1), *c)
    for dtype, cov, dim in product(REALS, COVARIANCES, (2, 3)):
        if np.ndim(cov.length_scale) == 0 or dim == len(cov.length_scale):
            yield "covariance_matrix", lambda c=(cov, dtype, FEW, 1e-4, dim): matrices(*c)
    for dtype in REALS:
        yield "covariance_matrix", lambda d=dtype: matrices(on_sphere(Exponential(length_scale=0.1)), d, FEW, 1e-4)
        yield "compress", lambda d=dtype: compressions(d)
        for n, nugget in product((FEW, SITES[-1]), (0.0, 0.01)):
            yield "kriging", lambda c=(dtype, n, nugget): kriging(*c)
    for cov, n in product(COVARIANCES[:3], SITES):
        yield "direct", lambda c=(cov, n): factorization(*c)


def matrices(cov, dtype, n, rtol, dim=2):
    """The matrix and its products."""
    import cupy

    rng = np.random.default_rng(0)
    A = h2gpu.covariance_matrix(cupy.asarray(rng.random((n, dim)), dtype), cov, rtol)
    for columns in ((), (1,), (8,), (33,)):
        x = cupy.asarray(rng.standard_normal((n, *columns)), dtype)
        A @ x, A.T @ x
    A.diagonal()


def compressions(dtype):
    """Every method of compression."""
    import cupy

    points = cupy.asarray(np.random.default_rng(0).random((20_000, 2)), dtype)
    A = h2gpu.build(points, Exponential(length_scale=0.1))
    A @ cupy.ones(len(points), dtype)
    for method, svd in product(("weighted", "basis"), ("auto", "jacobi", "randomized")):
        B = h2gpu.compress(A, 1e-4, method=method, svd=svd)
        B @ cupy.ones(len(points), dtype), A.relative_error(B)


def kriging(dtype, n, nugget):
    """Prediction, likelihood, simulation."""
    import cupy

    rng, cov = np.random.default_rng(0), Exponential(length_scale=0.1)
    sites, targets = (cupy.asarray(rng.random((count, 2)), dtype) for count in (n, TARGETS))
    values = cupy.sin(6 * sites[:, 0]) + 0.1 * cupy.asarray(rng.standard_normal(n), dtype)
    model = Kriging(cov, nugget, rtol=1e-4).fit(sites, values)
    model.predict(targets), model.predict(targets, return_std=True)
    if n == FEW:
        model.sample_y(targets, 2)
        log_likelihood(cov, sites, values, nugget)
        simulate(cov, sites, random_state=0)
        Kriging(cov, nugget, fit_parameters=True, rtol=1e-4).fit(sites, values)


def factorization(cov, n):
    """A direct factor, what is asked of it, and kriging by it."""
    import cupy

    rng, cov = np.random.default_rng(0), cov + Nugget(0.01)
    sites, values = cupy.asarray(rng.random((n, 2))), cupy.asarray(rng.standard_normal(n))
    G = skeletonize(sites, cov)
    for x in (values, values[:, None] * cupy.ones(8)):
        G.solve(x), G.solve_half(x), G.multiply_half(x)
    G.log_determinant()
    Kriging(cov, rtol=1e-4, solver="direct").fit(sites, values).predict(sites[:TARGETS] + 0.001, return_std=True)


def routines():
    """(path, function) of every routine at its usual sizes."""
    for dtype, n, batch in product(REALS, SIZES, BATCHES):
        yield "batched", lambda c=(dtype, n, batch): orthogonal(*c)
    for dtype, n, batch in product(REALS + COMPLEX, SIZES, BATCHES):
        yield "batched", lambda c=(dtype, n, batch): linear(*c)


def stack(dtype, m, n, batch):
    """Random matrices, a multiple of the unit matrix added."""
    import cupy

    count = min(batch, max(1, MOST_ENTRIES // (m * n)))
    return cupy.asarray(np.random.default_rng(0).standard_normal((count, m, n)) + 4 * np.eye(m, n), dtype)


def orthogonal(dtype, n, batch):
    """QR, bidiagonal reduction, SVD."""
    for m in (n, 4 * n):
        A = stack(dtype, m, n, batch)
        batched.qr(A), batched.qr(A, mode="r"), batched.bidiagonalize(A)
        batched.svd(A), batched.svd(A, vectors="left"), batched.svd(A, vectors="none")
        batched.svd(A, method="bidiagonal"), batched.lstsq(A, stack(dtype, m, 1, len(A)))
        if n > 8:
            batched.rsvd(A, n // 4)


def linear(dtype, n, batch):
    """Products and systems of equations."""
    import cupy

    A = stack(dtype, n, n, batch)
    b, x = stack(dtype, n, 4, len(A)), stack(dtype, n, 1, len(A))[..., 0]
    for transa, transb in product((False, True), repeat=2):
        batched.gemm(A, A, transa=transa, transb=transb)
    batched.gemv(A, x), batched.gemv(A, x, trans=True)
    factors = batched.lu_factor(A)
    batched.lu_solve(factors, b), batched.solve(A, b), batched.inv(A), batched.det(A)
    if dtype in REALS:
        spd = batched.gemm(A, A, transb=True) + n * cupy.eye(n, dtype=dtype)
        L = batched.cholesky(spd)
        batched.cholesky_solve(L, b), batched.symv(spd, x), batched.syrk(A), batched.trsm(L, b)


if __name__ == "__main__":
    sys.exit(main())
