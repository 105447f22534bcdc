"""Cokriging: several variables predicted from the observations of all of them."""

from h2gpu.statistics.cokriging.estimator import CoKriging

__all__ = ["CoKriging"]
