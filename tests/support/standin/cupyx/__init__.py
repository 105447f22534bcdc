"""What is used of cupyx, for arrays of the stand-in."""

import contextlib

from cupyx import scipy

__all__ = ["errstate", "scipy"]


def errstate(**_):
    return contextlib.nullcontext()
