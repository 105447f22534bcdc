"""Observations that are not Gaussian, beside another package."""
