"""Kriging of counts, shares, positive amounts and data with outliers: other likelihoods, by Laplace's approximation."""
