"""How well are elevations predicted, and is their covariance estimated alike by every solver?

    python -m h2gpu.apps.studies.jacksboro [--file data/jacksboro.h5] [--fields jacksboro,jacksboro_nugget] [--sites N]
                                         [--trend constant|linear] [--methods h2gpu,direct,…] [--device cpu|cuda]
                                         [--output benchmarks]

A raster of 138,632 elevations around the Jacksboro fault. A tenth, chosen at random, is held out: 124,769 sites, 13,863
targets. Variance, length scale and nugget are estimated by maximum likelihood in two families, from the values that
`benchmarks.solvers` takes as given:

    jacksboro          Matérn of smoothness 1, which is kept; begins without nugget
    jacksboro_nugget   exponential; begins with the nugget that rounding to whole metres adds

Measurements have no true parameters: with --parameters given there is nothing to do.
"""

import sys

import numpy as np

from h2gpu.apps.benchmarks import problems, solvers
from h2gpu.apps.command.command import Parser, run
from h2gpu.apps.studies import prediction_study, published

HELD_OUT, SEED = 10, 1  # one of so many sites; of the choice


def main(argv=None):
    """The command; returns the exit status."""
    return run("studies.jacksboro", _work, argv)


def _work(argv):
    parser = Parser(prog="studies.jacksboro", description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--file", default=problems.JACKSBORO, help="HDF5 file of elevations; default: %(default)s")
    prediction_study.add_options(parser)
    options = parser.parse_args(argv)
    prediction_study.study(published.chosen(fields(options.file), options.fields), start, options, "study_jacksboro")


def fields(path=problems.JACKSBORO):
    """The elevations, parts held out, under the name of each covariance: {name: Field}; InputError without them."""
    points, values = published.elevations(path)
    held = np.zeros(len(values), bool)
    held[np.random.default_rng(SEED).permutation(len(values))[: len(values) // HELD_OUT]] = True
    columns = points[~held], values[~held], points[held], values[held]
    return {name: published.Field(name, *columns, None, None) for name in solvers.of_elevations(1.0)}


def start(field):
    """From where the covariance is estimated: that of `benchmarks.solvers`, with the variance of the field's values."""
    return solvers.of_elevations(field.values.var())[field.name]


if __name__ == "__main__":
    sys.exit(main())
