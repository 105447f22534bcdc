"""Others' routines for the same problems."""
