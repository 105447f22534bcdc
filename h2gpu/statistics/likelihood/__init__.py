"""The likelihood of a Gaussian field: its value, gradient and maximum."""
