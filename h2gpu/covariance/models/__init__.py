"""Further covariance functions, and the rotation of anisotropic ones."""
