"""How well are the fields of the KAUST 2021 competition predicted, and how well are their parameters found?

    python -m h2gpu.apps.studies.kaust --file kaust2021.h5 [--fields medium,rough_long,…] [--sites N]
                                     [--parameters given|estimated] [--trend constant|linear] [--methods h2gpu,…]
                                     [--device cpu|cuda] [--output benchmarks]

90,000 sites, 10,000 targets in the unit square, Matérn covariances. Estimated: variance, length scale and nugget by
maximum likelihood, the smoothness known. On a bounded domain variance and length alone are not identifiable, only

    microergodic parameter   variance · length^(−2ν)

whose quotient by the truth the table holds. Reference: Zhang (2004), Inconsistent estimation and asymptotically equal
interpolations in model-based geostatistics, JASA 99.
"""

import sys
from dataclasses import replace

from h2gpu.apps.benchmarks.report import tables
from h2gpu.apps.command.command import Parser, run
from h2gpu.apps.studies import prediction_study, published
from h2gpu.covariance import Nugget


def main(argv=None):
    """The command; returns the exit status."""
    return run("studies.kaust", _work, argv)


def _work(argv):
    parser = Parser(prog="studies.kaust", description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--file", required=True, help="HDF5 file of the competition: see h2gpu.apps.studies.published")
    prediction_study.add_options(parser)
    options = parser.parse_args(argv)
    fields = published.chosen(published.kaust(options.file), options.fields)
    rows = prediction_study.study(fields, start, options, "study_kaust")
    print(tables.text(list(identified(rows, fields))))


def start(field):
    """From where parameters are estimated: the smoothness is the truth's, nothing else is."""
    cov, nugget = prediction_study.split(field.covariance)
    cov = replace(cov, variance=1.0, length_scale=0.1)
    return cov + Nugget(0.1) if nugget else cov


def identified(rows, fields):
    """Rows of the estimated microergodic parameters, and their quotients by the truth."""
    for row in rows:
        if row["parameters"] == "estimated" and row["method"] != "local 60":
            truth, _ = prediction_study.split(fields[row["field"]].covariance)
            found = row["variance"] * row["length scale"] ** (-2 * truth.smoothness)
            true = truth.variance * truth.length_scale ** (-2 * truth.smoothness)
            yield {"field": row["field"], "method": row["method"], "microergodic": found, "by the truth": found / true}


if __name__ == "__main__":
    sys.exit(main())
