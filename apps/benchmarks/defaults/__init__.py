"""`covariance_matrix` as users call it: its seconds and phases, and how often it runs twice."""
