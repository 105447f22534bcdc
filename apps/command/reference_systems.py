"""Coordinate reference systems of what a command reads and writes: of a GeoPackage, or as --crs says."""

import logging

from h2gpu.apps.command.command import InputError
from h2gpu.storage.exchange.extras import extra

logger = logging.getLogger("h2gpu")


def systems_of(arguments, sites, targets):
    """The one reference system of sites and targets, a pyproj.CRS; None where none is known.

    sites, targets   those of their files, or None

    Raises InputError where two differ, where --crs is none, and for a projected one with --sphere; ImportError without
    pyproj. Degrees without --sphere are warned of.
    """
    given = _parsed(arguments.crs) if arguments.crs else None
    known = [(name, crs) for name, crs in (("--crs", given), ("the sites", sites), ("the targets", targets)) if crs]
    for name, crs in known[1:]:
        if crs != known[0][1]:
            raise InputError(
                f"expected one coordinate reference system, got {_short(known[0][1])} of {known[0][0]} and "
                f"{_short(crs)} of {name}; convert one file, as with geopandas.GeoDataFrame.to_crs"
            )
    crs = known[0][1] if known else None
    if crs is not None and arguments.sphere and not crs.is_geographic:
        raise InputError(f"--sphere: expected longitudes and latitudes, got {_short(crs)}; leave --sphere away")
    if crs is not None and crs.is_geographic and not arguments.sphere:
        logger.warning("%s are degrees, which are taken for a plane; give --sphere", _short(crs))
    return crs


def _parsed(text):
    crs = extra("pyproj", "--crs").CRS
    try:
        return crs.from_user_input(text)
    except Exception as error:  # pyproj's own, of its database, of what it cannot parse
        told = " ".join(str(error).split())
        raise InputError(f"--crs: expected a coordinate reference system such as EPSG:32632, got {told:.120}") from None


def _short(crs):
    return ":".join(crs.to_authority() or (crs.name,))
