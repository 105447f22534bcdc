"""Our routines as benchmarks call them: cases, work counted, criteria."""
