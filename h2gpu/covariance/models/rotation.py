"""Rotations of the plane and of space by angles, and back.

    plane   R = G_xy(a)                          a counterclockwise, from the x axis to the first axis of the ellipse
    space   R = G_yz(c) G_xz(−b) G_xy(a)         yaw, pitch, roll (Tait–Bryan), as GSTools counts them

The columns of R are the axes. Reference: Chilès & Delfiner (2012), Geostatistics, section 2.5.2.
"""

import math
from numbers import Real

import numpy as np

from h2gpu.covariance.checks import is_finite
from h2gpu.texts import brief

ANGLES = {2: 1, 3: 3}  # by the number of coordinates
STRAIGHT = 1e-14  # sine of an angle below which axes are parallel


def checked_rotation(value, dim):
    """The angles as one float (plane) or a tuple of three (space). Raises ValueError."""
    given = np.ravel(np.asarray(value, dtype=object)).tolist()
    wanted = ANGLES.get(dim)
    if wanted is None:
        raise ValueError(
            f"rotation: expected a length scale for each of 2 or 3 coordinates beside it, got {dim or 'one for all'}"
        )
    numbers = all(isinstance(a, Real) and not isinstance(a, bool) and is_finite(a) for a in given)
    if len(given) != wanted or not numbers:
        raise ValueError(
            f"rotation: expected {wanted} finite angle(s) in radians in {dim} dimensions, got {brief(value, 80)}"
        )
    return float(given[0]) if dim == 2 else tuple(map(float, given))


def matrix(rotation, dim):
    """R (dim, dim) of angles as `checked_rotation` returns them."""
    R, angles = np.eye(dim), np.atleast_1d(rotation)
    for (i, j), angle in zip([(0, 1), (0, 2), (1, 2)], angles * [1, -1, 1][: len(angles)]):
        G = np.eye(dim)
        G[i, i] = G[j, j] = math.cos(angle)
        G[i, j], G[j, i] = -math.sin(angle), math.sin(angle)
        R = G @ R
    return R


def angles(R):
    """The angles of a rotation R (dim, dim), None where its axes are the coordinates'."""
    if abs(R - np.eye(len(R))).max() < STRAIGHT:
        return None
    if len(R) == 2:
        return math.atan2(R[1, 0], R[0, 0])
    pitch, along = math.asin(float(np.clip(R[0, 2], -1, 1))), math.hypot(R[0, 0], R[0, 1])
    if along < STRAIGHT:  # yaw and roll turn about one axis: one of them tells all
        return 0.0, pitch, math.atan2(R[2, 1], R[1, 1])
    return math.atan2(-R[0, 1], R[0, 0]), pitch, math.atan2(-R[1, 2], R[2, 2])
