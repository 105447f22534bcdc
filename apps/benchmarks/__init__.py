"""How fast, how large, how accurate: measurements published in benchmarks/, peers timed in the same run."""
