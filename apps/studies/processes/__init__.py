"""Studies of many processes and GPUs."""
