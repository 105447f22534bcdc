"""H²-matrices from entries and products alone: bases whose coefficients are chosen rows, the skeletons."""
