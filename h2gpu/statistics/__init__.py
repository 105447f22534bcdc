"""Spatial statistics on 10⁵ to 10⁶ sites: prediction, likelihood, simulation."""

from h2gpu.statistics.kriging import Kriging
from h2gpu.statistics.likelihood import LogLikelihood, log_likelihood
from h2gpu.statistics.simulation import simulate

__all__ = ["Kriging", "LogLikelihood", "log_likelihood", "simulate"]
