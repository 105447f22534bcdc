"""Indicator kriging: the distribution of the field at a place, without a normal distribution assumed."""
