"""Empirical variograms of observations, models fitted to them, and their picture."""
