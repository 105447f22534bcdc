"""How well are the fields of Heaton et al. (2019) predicted, by kriging with all sites and by others?

    python -m h2gpu.apps.studies.heaton --file heaton2019.h5 [--fields simulated,satellite] [--sites N]
                                      [--parameters given|estimated] [--trend constant|linear] [--methods h2gpu,…]
                                      [--surface sphere|plane] [--device cpu|cuda] [--output benchmarks]

150,000 pixels, 105,569 observed, those under clouds to be predicted. Published RMSE, simulated / satellite: SPDE
0.86 / 1.53, LatticeKrig 0.87 / 1.68, periodic embedding 0.91 / 1.79. Parameters given: those of the simulation;
estimated: exponential covariance with nugget and constant mean by maximum likelihood. A degree of longitude is 0.8 of
one of latitude there: the satellite's field is estimated on the sphere (lengths in km, along the chord), or with
--surface plane as if all degrees were alike, as the simulation was made. `published` tells where the file comes from;
GPBoost joins in where it is installed (pip install 'h2gpu[studies]').
"""

import sys

from h2gpu.apps.command.command import Parser, run
from h2gpu.apps.studies import prediction_study, published
from h2gpu.covariance import Exponential, Nugget, on_sphere

PLANE = Exponential(1.0, 1.0) + Nugget(0.1)
SPHERE = on_sphere(Exponential(1.0, 100.0), distance="chordal") + Nugget(0.1)


def main(argv=None):
    """The command; returns the exit status."""
    return run("studies.heaton", _work, argv)


def _work(argv):
    parser = Parser(prog="studies.heaton", description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--file", required=True, help="HDF5 file of the comparison: see h2gpu.apps.studies.published")
    prediction_study.add_options(parser)
    parser.add_argument("--surface", choices=("sphere", "plane"), default="sphere", help="of the satellite's estimate")
    options = parser.parse_args(argv)
    fields = published.chosen(published.heaton(options.file), options.fields)
    prediction_study.study(fields, lambda field: start(field, options.surface), options, "study_heaton")


def start(field, surface="sphere"):
    """Covariance from which the estimation of a field starts; that of a simulation is of the plane, as its truth."""
    return SPHERE if surface == "sphere" and field.covariance is None else PLANE


if __name__ == "__main__":
    sys.exit(main())
