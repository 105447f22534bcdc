"""Spatial statistics on 10⁵ to 10⁶ sites: prediction, likelihood, simulation."""

from h2gpu.statistics.kriging import Kriging

__all__ = ["Kriging"]
