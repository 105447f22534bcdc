"""CUDA C++ sources (headers by room and floor) and tuning tables; data, found by h2gpu.batched.modules."""
