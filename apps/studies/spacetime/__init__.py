"""Studies of fields in space and time."""
