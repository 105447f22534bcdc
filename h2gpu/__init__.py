"""Covariance matrices of large spatial data as compressed H²-matrices."""
