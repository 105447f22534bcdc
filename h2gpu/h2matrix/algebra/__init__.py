"""Sums of H²-matrices, multiples, updates of low rank."""
