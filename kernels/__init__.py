"""CUDA C++ sources (headers by floor) and tuning tables; data, found by h2gpu.batched.modules."""
