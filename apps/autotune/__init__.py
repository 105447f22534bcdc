"""The knobs and constants of a device: measured, written into kernels/tuning."""
