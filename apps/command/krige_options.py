"""The options of h2krige: what may be given, and what it means."""

from h2gpu.apps.command import options, several
from h2gpu.apps.command.command import InputError, Parser
from h2gpu.apps.command.inputs import words

TRENDS = {"none": None, "constant": "constant", "linear": "linear"}


def parser():
    """The argument parser of h2krige."""
    p = Parser(
        prog="h2krige",
        description="Kriging: from the observations in one file, predictions with standard deviations at the "
        "targets in another; by maximum likelihood (--fit) or with the parameters given.",
        allow_abbrev=False,
    )
    p.add_argument("input", metavar="TRAIN.h5", help=f"sites and values: {options.READ}")
    p.add_argument("--targets", required=True, metavar="TARGETS.h5", help="where to predict, likewise; may be TRAIN.h5")
    p.add_argument("-o", "--output", metavar="PRED.h5", help="or .csv, .tif, .nc (default: TARGETS-kriged.h5)")
    options.add_points(p)
    p.add_argument(
        "--values",
        type=words.names,
        default=["values"],
        metavar="NAME[,NAME…]",
        help="observations, (n,) (default: values); several, NaN or empty where missing: cokriging, with --fit",
    )
    p.add_argument("--missing", choices=("raise", "skip"), default="raise", help="skip: leave out values that are NaN")
    p.add_argument("--target-points", type=words.names, metavar="NAME[,NAME…]", help="default: as --points")
    p.add_argument(
        "--truth",
        type=words.names,
        metavar="NAME[,NAME…]",
        help="(m,) to score against (default: as --values)",
    )
    options.add_covariance(p, unless_given="estimated, with --fit")
    options.add_time(p)
    options.add_sphere(p)
    p.add_argument("--crs", metavar="EPSG:N", help="coordinate reference system (default: that of a GeoPackage)")
    p.add_argument("--fit", action="store_true", help="estimate variance, length scale, nugget, given --rotation")
    p.add_argument("--fit-smoothness", action="store_true", help="estimate smoothness, exponent or alpha too")
    p.add_argument("--trend", choices=TRENDS, default="constant", help="mean of the field (default: constant)")
    p.add_argument("--drift", type=words.names, metavar="NAME[,NAME…]", help="columns of both files in the trend too")
    options.add_rtol(p)
    options.add_circumstances(p, "maps of observations, predictions, standard deviations")
    return p


def trend(arguments, dim):
    """The trend as `Kriging` takes it, for points of `dim` coordinates, drift columns after them."""
    kind, count = TRENDS[arguments.trend], len(arguments.drift or ())
    return [kind, *range(dim, dim + count)] if count else kind


def coordinate_names(arguments, names, dim):
    """Names of the `dim` coordinates in outputs: as the targets' columns are called; None where the file does not say.

    names   of --target-points or --points, for the file of targets
    """
    found = [*(names or ()), *([arguments.time] if arguments.time else [])]
    if arguments.time and len(found) < dim:  # a dataset of several columns, or the geometry
        found = [*("xyz"[: dim - 1] if dim <= 4 else ()), arguments.time]
    return tuple(found) if len(found) == dim else None


def axes(arguments, names, crs):
    """What the two coordinates of a map are, with the units that the reference system says.

    names   of the coordinates, or None
    crs     a pyproj.CRS or None
    """
    if arguments.sphere or (crs is not None and crs.is_geographic):
        return "longitude [°]", "latitude [°]"
    unit = f" [{crs.axis_info[0].unit_name}]" if crs is not None and crs.axis_info else ""
    return tuple(f"{name}{unit}" for name in names or ("x", "y"))


def check(arguments):
    """InputError for options that do not fit each other."""
    a = arguments
    several.check(a)
    wanted = ["variance", "length_scale", *["time_scale"] * bool(a.time)]
    missing = [name for name in wanted if getattr(a, name) is None]
    if missing and not a.fit:
        named = " and ".join(f"--{name.replace('_', '-')}" for name in missing)
        raise InputError(f"{named}: expected a number, or --fit to have it estimated")
    if a.drift and a.trend == "none":
        raise InputError("--drift: is for --trend constant or linear, to which it adds")
    if a.fit_smoothness and not (a.fit and a.covariance in options.SHAPES.values()):
        raise InputError(f"--fit-smoothness: is for --fit --covariance {', '.join(options.SHAPES.values())} only")
