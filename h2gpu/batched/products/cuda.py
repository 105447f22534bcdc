"""Products on the GPU, a file a kind: gemm.py, triple.py, vectors.py."""

from h2gpu.batched.products.gemm import gemm, sampled
from h2gpu.batched.products.triple import triple_product
from h2gpu.batched.products.vectors import axpy, gemv, symv, syrk

__all__ = ["axpy", "gemm", "gemv", "sampled", "symv", "syrk", "triple_product"]
