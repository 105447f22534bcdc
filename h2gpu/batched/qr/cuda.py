"""QR on the GPU, a file a way: householder.py, cholesky.py, pivoted.py, product_triangles.py."""

from h2gpu.batched.qr.cholesky import cholesky_basis, cholesky_qr
from h2gpu.batched.qr.householder import qr
from h2gpu.batched.qr.pivoted import pivoted_qr
from h2gpu.batched.qr.product_triangles import triangles_of_products

__all__ = ["cholesky_basis", "cholesky_qr", "pivoted_qr", "qr", "triangles_of_products"]
