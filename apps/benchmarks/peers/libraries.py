"""What our own parts gain over a library's: seconds of both on the same problem, for docs/inventory.md.

| part | ours | the library's |
|---|---|---|
| conjugate gradients | all right-hand sides in one product a step | scipy.sparse.linalg.cg, one after another |
| threads over a batch | one pool, kept | joblib.Parallel(prefer="threads") a call |
| maximum likelihood | Fisher scoring | scipy.optimize.minimize, L-BFGS-B, with the same gradient |

    python -m h2gpu.apps.benchmarks.peers.libraries [--sites 10000]
"""

import sys
import time

import joblib
import numpy as np
from scipy.optimize import minimize
from scipy.sparse.linalg import aslinearoperator, cg

import h2gpu
from h2gpu.apps.command.command import Parser, run
from h2gpu.apps.command.inputs.words import at_least
from h2gpu.batched.device.threads import parallel, thread_count
from h2gpu.solvers import conjugate_gradients, vecchia
from h2gpu.statistics import Kriging, log_likelihood, simulate

COLUMNS, RTOL, NUGGET = 16, 1e-8, 0.1
TASKS, CALLS = 8, 200
OBSERVATIONS = 400


def main(argv=None):
    """The command; returns the exit status."""
    return run("benchmarks.peers.libraries", _work, argv)


def _work(argv):
    parser = Parser(prog="benchmarks.peers.libraries", description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--sites", type=at_least(100), default=10_000, help="of the linear systems (default: 10000)")
    options = parser.parse_args(argv)
    for what, ours, theirs, unit in (*systems(options.sites), *threads(), *likelihoods()):
        print(f"{what}: {ours:.4g} {unit} by ours, {theirs:.4g} by the library's", flush=True)


def seconds(work):
    """(what work() gives, how long it took)."""
    start = time.perf_counter()
    found = work()
    return found, time.perf_counter() - start


def systems(n):
    """Solves with COLUMNS right-hand sides, the same matrix and preconditioner; both as accurate."""
    rng = np.random.default_rng(0)
    sites, B = rng.random((n, 2)), rng.standard_normal((n, COLUMNS))
    cov = h2gpu.covariance.Matern(length_scale=0.1) + h2gpu.covariance.Nugget(NUGGET)
    C, W = h2gpu.covariance_matrix(sites, cov), vecchia(sites, cov)
    X, ours = seconds(lambda: conjugate_gradients(C, B, W, rtol=RTOL).checked())
    A, M = aslinearoperator(C), aslinearoperator(W)
    columns, theirs = seconds(lambda: [cg(A, b, rtol=RTOL, M=M)[0] for b in B.T])
    apart = np.linalg.norm(X - np.stack(columns, axis=1)) / np.linalg.norm(X)
    yield f"conjugate gradients, {n} sites, {COLUMNS} columns (solutions {apart:.1e} apart)", ours, theirs, "s"


def threads():
    """A call of TASKS small pieces of work."""
    pieces = [np.full(50_000, 1.0 + i) for i in range(TASKS)]
    calls = range(CALLS)
    _, ours = seconds(lambda: [parallel(np.sqrt, pieces) for _ in calls])
    with joblib.Parallel(thread_count(), prefer="threads") as pool:
        _, theirs = seconds(lambda: [pool(joblib.delayed(np.sqrt)(x) for x in pieces) for _ in calls])
    yield f"threads, {TASKS} tasks", ours / CALLS * 1e6, theirs / CALLS * 1e6, "µs a call"


def likelihoods():
    """Seconds to the maximum of the exact likelihood over variance, length scale and nugget, and how far it got."""
    sites = np.random.default_rng(1).random((OBSERVATIONS, 2))
    y = simulate(h2gpu.covariance.Exponential(2.0, 0.2), sites, nugget=NUGGET, random_state=1)[:, 0]
    start = h2gpu.covariance.Exponential(1.0, 0.5)
    estimator = Kriging(start, 0.5, fit_parameters=True)
    _, ours = seconds(lambda: estimator.fit(sites, y))

    def negative(logarithms):
        """Minus the log-likelihood and its gradient by the logarithms of the parameters."""
        variance, length_scale, nugget = np.exp(logarithms)
        cov = h2gpu.covariance.Exponential(variance, length_scale)
        value = log_likelihood(cov, sites, y, nugget, "constant", gradient=True)
        return -float(value), -np.asarray(value.gradient)

    found, theirs = seconds(lambda: minimize(negative, np.log([1.0, 0.5, 0.5]), jac=True, method="L-BFGS-B"))
    lead = float(estimator.log_marginal_likelihood()) + found.fun
    yield (
        f"maximum likelihood, {OBSERVATIONS} sites (ours {lead:+.1e} higher, L-BFGS-B {found.nfev} values)",
        ours,
        theirs,
        "s",
    )


if __name__ == "__main__":
    sys.exit(main())
