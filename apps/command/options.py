"""The options of the commands on points: what may be given, and what it means."""

import logging
import math

from h2gpu.apps.command.about import add_about
from h2gpu.apps.command.command import InputError, Parser
from h2gpu.apps.command.inputs.words import count, names, not_negative, numbers, positive, positives, size
from h2gpu.covariance import (
    Cubic,
    Exponential,
    Gaussian,
    Gneiting,
    Matern,
    Nugget,
    PoweredExponential,
    RationalQuadratic,
    SpaceTime,
    Spherical,
    Wendland,
    on_sphere,
)
from h2gpu.covariance.sphere import DISTANCES
from h2gpu.h2matrix.compression.precision import STORAGES

logger = logging.getLogger("h2gpu")

COVARIANCES = {
    "exponential": Exponential,
    "matern": Matern,
    "gaussian": Gaussian,
    "spherical": Spherical,
    "cubic": Cubic,
    "wendland": Wendland,
    "powered-exponential": PoweredExponential,
    "rational-quadratic": RationalQuadratic,
}
SHAPES = {"smoothness": "matern", "exponent": "powered-exponential", "alpha": "rational-quadratic"}  # of which one each
READ = "HDF5, .csv, .gpkg, .npy or .npz"  # formats of points
LARGEST_RANK = 10_000
EARTH = 6371.0  # radius in kilometres
DEGREES = "lon", "lat", "long", "longitude", "latitude"  # names of coordinates
FOR_POINTS = (
    "points",
    "time",
    "space_time",
    "time_scale",
    "time_exponent",
    "interaction",
    "covariance",
    "length_scale",
    "smoothness",
    "exponent",
    "alpha",
    "rotation",
    "variance",
    "nugget",
    "sphere",
    "radius",
    "leaf_size",
    "eta",
    "order",
    "split",
)


def parser():
    """The argument parser of h2compress."""
    p = Parser(
        prog="h2compress",
        description="The covariance matrix of the points in a file, built and compressed as an H2-matrix to a "
        "promised accuracy; or such a matrix, read from a file, compressed further.",
        allow_abbrev=False,
    )
    p.add_argument("input", metavar="INPUT.h5", help=f"points ({READ}), or a matrix written by h2gpu")
    p.add_argument("-o", "--output", metavar="OUTPUT.h5", help="default: INPUT-h2.h5 beside the input")
    add_points(p)
    add_covariance(p)
    add_time(p)
    add_sphere(p)
    add_rtol(p)
    p.add_argument("--method", choices=("weighted", "basis"), default="weighted", help="basis: the paper's")
    p.add_argument("--svd", choices=("auto", "jacobi", "randomized"), default="auto")
    p.add_argument("--storage", choices=STORAGES, default="auto", help="auto: parts in float32 where --rtol allows it")
    p.add_argument("--leaf-size", type=count, metavar="POINTS", help="default: chosen for the smallest matrix")
    p.add_argument("--eta", type=positive, help="admissibility; default: chosen")
    p.add_argument("--order", type=count, help="interpolation points a direction; default: chosen")
    p.add_argument("--split", choices=("median", "mean"), help="of the cluster tree (default: median)")
    p.add_argument("--dtype", choices=("float32", "float64"), help="default: float64, or as the matrix file")
    add_circumstances(p, "a picture of the block structure")
    return p


def add_points(p):
    """Where the points are in a file."""
    p.add_argument(
        "--points",
        type=names,
        metavar="NAME[,NAME…]",
        help="one (n, d) dataset, or several (n,) ones or columns as coordinates (default: points; of CSV x,y); the "
        "layer of a GeoPackage with several",
    )


def add_covariance(p, unless_given="1"):
    """The covariance function and its parameters; `unless_given` says what variance and length scale are otherwise."""
    p.add_argument("--covariance", choices=COVARIANCES, help="default: exponential")
    p.add_argument(
        "--length-scale",
        type=positives,
        metavar="L[,L…]",
        help=f"in units of the coordinates: one, or one a coordinate (default: {unless_given})",
    )
    p.add_argument("--smoothness", type=positive, metavar="NU", help="of the Matérn covariance (default: 1.5)")
    p.add_argument("--exponent", type=positive, metavar="P", help="of the powered exponential, up to 2 (default: 1.5)")
    p.add_argument("--alpha", type=positive, metavar="A", help="of the rational quadratic (default: 1)")
    p.add_argument("--rotation", type=numbers, metavar="A[,B,C]", help="of axes with a length scale each, in radians")
    p.add_argument("--variance", type=positive, metavar="V", help=f"default: {unless_given}")
    p.add_argument("--nugget", type=not_negative, metavar="N", help="added to the diagonal (default: 0)")


def add_time(p):
    """Points in space and time."""
    p.add_argument("--time", metavar="NAME", help="(n,) dataset of times, which --points do not hold then")
    p.add_argument("--space-time", choices=("separable", "gneiting"), help="exponential in time, or Gneiting's family")
    p.add_argument("--time-scale", type=positive, metavar="T", help="length scale in time, in its unit (default: 1)")
    p.add_argument("--time-exponent", type=positive, metavar="A", help="of Gneiting's family, up to 1 (default: 0.5)")
    p.add_argument("--interaction", type=not_negative, metavar="B", help="of Gneiting's, 0 to 1 (default: 0.5)")


def add_sphere(p):
    """Points that are degrees."""
    p.add_argument(
        "--sphere",
        nargs="?",
        const="chordal",
        choices=DISTANCES,
        help="points are lon, lat in degrees, length scales in the unit of --radius; through the Earth (chordal, the "
        "default) or along it (great-circle)",
    )
    p.add_argument("--radius", type=positive, metavar="R", help="of the sphere (default: 6371, kilometres)")


def add_rtol(p):
    """The accuracy of the matrix."""
    p.add_argument(
        "--rtol",
        type=positive,
        default=1e-6,
        metavar="TOL",
        help="accuracy, relative in the Frobenius norm (default: 1e-6)",
    )


def add_circumstances(p, picture):
    """Where to compute, what to tell; `picture` says what the plot shows."""
    p.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    p.add_argument("--report", metavar="FILE.json")
    p.add_argument("--plot", metavar="FILE.png", help=f"{picture} (needs matplotlib)")
    p.add_argument("--max-memory", type=size, metavar="8G", help="refuse jobs that take more (default: what is free)")
    p.add_argument("--quiet", action="store_true", help="print nothing but errors")
    add_about(p)


def shapes(arguments):
    """Names of the numbers of the covariance's shape that are to be estimated too."""
    return [name for name, kind in SHAPES.items() if arguments.fit_smoothness and kind == arguments.covariance]


def covariance(arguments, dim):
    """The covariance asked for, for points of `dim` coordinates. Raises InputError."""
    dim = dim - bool(arguments.time)
    scales = arguments.length_scale or (1.0,)
    if len(scales) not in (1, dim):
        raise InputError(f"--length-scale: expected 1 or {dim} numbers for points in {dim}D, got {len(scales)}")
    kind = arguments.covariance or "exponential"
    more = {name: getattr(arguments, name) for name in SHAPES if getattr(arguments, name) is not None}
    for name in more:
        if kind != SHAPES[name]:
            raise InputError(f"--{name}: is for --covariance {SHAPES[name]} only, not for {kind}")
    if arguments.rotation:
        if max(map(abs, arguments.rotation)) > 2 * math.pi:
            told = ",".join(f"{angle:g}" for angle in arguments.rotation)
            raise InputError(f"--rotation: expected radians, up to 2π, got {told}; degrees times π/180 are radians")
        more["rotation"] = arguments.rotation
    cov = COVARIANCES[kind](arguments.variance or 1.0, scales[0] if len(scales) == 1 else scales, **more)
    cov = on_sphere(cov, *_sphere(arguments, dim)) if arguments.sphere else _in_the_plane(cov, arguments)
    cov = _in_time(cov, arguments, dim)
    return cov + Nugget(arguments.nugget) if arguments.nugget else cov


def _in_time(cov, arguments, dim):
    """The covariance of space and time where there is a column of time. Raises InputError."""
    a = arguments
    gneiting = {name: getattr(a, name) for name in ("time_exponent", "interaction") if getattr(a, name) is not None}
    for name in ("space_time", "time_scale", *gneiting):
        if not a.time and getattr(a, name) is not None:
            raise InputError(f"--{name.replace('_', '-')}: is for points with --time only")
    if not a.time:
        return cov
    if a.space_time == "gneiting":
        return Gneiting(cov, a.time_scale or 1.0, space_dimension=dim, **gneiting)
    for name in gneiting:
        raise InputError(f"--{name.replace('_', '-')}: is for --space-time gneiting only")
    return SpaceTime(cov, Exponential(1.0, a.time_scale or 1.0), space_dimension=dim)


def _sphere(arguments, dim):
    """Radius and distance. Raises InputError."""
    if dim != 2:
        raise InputError(f"--sphere: expected longitude and latitude, got {dim} coordinates; choose them with --points")
    return arguments.radius or EARTH, arguments.sphere


def _in_the_plane(cov, arguments):
    """The covariance; degrees that it takes for a plane are told."""
    if arguments.radius:
        raise InputError("--radius: is for --sphere only")
    last = [name.rpartition("/")[2].lower() for name in arguments.points or ()]
    if any(name in DEGREES for name in last):
        logger.warning("--points %s are taken for a plane; if they are degrees, give --sphere", ",".join(last))
    return cov


def check_order(arguments, dim):
    """InputError for an order whose bases could not even be tried."""
    if arguments.order is not None and arguments.order**dim > LARGEST_RANK:
        raise InputError(
            f"--order: expected at most {LARGEST_RANK} interpolation points a cluster, got {arguments.order}^{dim}; "
            "leave it away to have it chosen"
        )


def check_for_matrix(arguments):
    """InputError where an option is given that only points can use."""
    given = [f"--{name.replace('_', '-')}" for name in FOR_POINTS if getattr(arguments, name) is not None]
    if given:
        raise InputError(f"{', '.join(given)}: for a file of points only, but {arguments.input} holds a matrix")
