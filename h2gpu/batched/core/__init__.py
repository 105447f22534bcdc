"""What every room of batched stands on: matrices of differing sizes, size classes, checks and status. Plain data."""
