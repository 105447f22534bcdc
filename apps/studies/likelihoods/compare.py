"""How does Laplace's approximation of observations that are not Gaussian compare with GPBoost's?

    python -m h2gpu.apps.studies.likelihoods.compare [--data FOLDER] [--sites 1000] [--targets 500]
                                                     [--output benchmarks/kriging]

Poisson, Bernoulli, binomial, gamma and Student-t observations: simulated, and with FOLDER published ones, meuse.rda
(data of the R package sp), sids.dbf (shapes of spData), NorthAmericanRainfall.rda (data of fields), coalash.rda and
sic2004.rda (of gstat); Debian's r-cran-sp, r-cran-spdata, r-cran-fields and r-cran-gstat carry them. Both packages:
exponential covariance, constant mean, from their own starting values.

    GPBoost at ours         at our parameters: what differs is the approximation alone
    GPBoost exact at ours   its dense computation there: nothing is to differ
    marginal                Laplace's log-likelihood by ours at the parameters that each found; of folds, the sum
    mean apart, std apart   mean |m − ours| and mean |s/ours − 1|, m ± s the predictor η at the targets
    probability apart       mean |P(y ≤ truth) − ours|

Needs the extras `studies` and `files`.
"""

import sys
import time
from pathlib import Path

import numpy as np

from h2gpu.apps.benchmarks.report import tables
from h2gpu.apps.command.command import InputError, Parser, run
from h2gpu.apps.command.inputs.words import at_least
from h2gpu.apps.studies.likelihoods import judge, observations, peers
from h2gpu.apps.studies.peers import gpboost_vecchia
from h2gpu.statistics.generalized import predictive


def main(argv=None):
    """The command; returns the exit status."""
    return run("studies.likelihoods.compare", _work, argv)


def _work(argv):
    parser = Parser(prog="studies.likelihoods.compare", description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--data", help="folder with the published data sets; default: simulated ones alone")
    parser.add_argument("--sites", type=at_least(20), default=1000, help="of simulations (default: 1000)")
    parser.add_argument("--targets", type=at_least(1), default=500, help="of simulations (default: 500)")
    parser.add_argument("--output", default="benchmarks/kriging", help="folder of the table")
    options = parser.parse_args(argv)
    if not gpboost_vecchia.available():
        print("GPBoost is not installed, its rows are left out: pip install 'h2gpu[studies]'")
    cases = observations.simulated(options.sites, options.targets)
    if options.data:
        lacking = [name for name in observations.FILES if not (Path(options.data) / name).is_file()]
        if lacking:
            names = ", ".join(observations.FILES)
            raise InputError(f"--data: expected a folder with {names}, {options.data} lacks {lacking[0]}")
        cases |= observations.published(options.data)
    rows = []
    for name, folds in cases.items():
        rows += compared(name, folds)
        print(tables.text(rows[-len(packages({})) :]), flush=True)
        tables.write(Path(options.output) / "study_likelihoods-cpu.csv", rows, tables.device_name("cpu"))


def packages(ours):
    """{name: function of a Case}, those at our parameters from {Case: Fit}."""
    if not gpboost_vecchia.available():
        return {"h2gpu": peers.h2gpu}
    return {
        "h2gpu": peers.h2gpu,
        "GPBoost": peers.gpboost,
        "GPBoost at ours": lambda case: peers.gpboost(case, given=ours[case]),
        "GPBoost exact at ours": lambda case: peers.gpboost(case, exact=True, given=ours[case]),
    }


def compared(name, cases):
    """A row a package: scores over all folds, parameters of the first."""
    rows, ours = [], {}
    for package, function in packages(ours).items():
        begin = time.process_time()
        fits = [function(case) for case in cases]
        seconds = time.process_time() - begin
        if package == "h2gpu":
            ours.update(zip(cases, fits))
        rows.append(row(name, package, cases, fits, [ours[case] for case in cases]) | {"CPU s": seconds})
    return rows


def row(name, package, cases, fits, ours):
    """One line of the table."""
    fit, case = fits[0], cases[0]
    told = [judge.summary(f.likelihood, f.mean, f.variance, c.target_size, c.truth) for c, f in zip(cases, fits)]
    share = np.array([len(c.truth) for c in cases]) / sum(len(c.truth) for c in cases)
    squares = [one | {"rmse": one["rmse"] ** 2} for one in told]
    means = {key: float(share @ [one[key] for one in squares]) for key in squares[0]}
    found = {
        "data": name,
        "package": package,
        "observations": len(case.y),
        "targets": sum(len(c.truth) for c in cases),
        "variance": fit.cov.variance,
        "length": fit.cov.length_scale,
        "mean": fit.level,
        **{key: getattr(fit.likelihood, key) for key in fit.likelihood.names if key != "df"},
        "marginal": sum(peers.marginal(c, f) for c, f in zip(cases, fits)),
        **means,
        "rmse": means["rmse"] ** 0.5,
    }
    return found if package == "h2gpu" else found | apart(cases, fits, ours)


def apart(cases, fits, ours):
    """How far predictions lie from ours."""
    mean = np.concatenate([abs(f.mean - o.mean) for f, o in zip(fits, ours)])
    std = np.concatenate([abs(np.sqrt(f.variance / o.variance) - 1) for f, o in zip(fits, ours)])
    chance = np.concatenate([abs(below(c, f) - below(c, o)) for c, f, o in zip(cases, fits, ours)])
    return {"mean apart": float(mean.mean()), "std apart": float(std.mean()), "probability apart": float(chance.mean())}


def below(case, fit):
    """P(y ≤ truth) of the targets."""
    return predictive.cdf(fit.likelihood, case.truth, fit.mean, fit.variance, case.target_size)


if __name__ == "__main__":
    sys.exit(main())
