"""QR on the GPU, a file a way: householder.py, complex_panels.py, cholesky.py, pivoted.py, product_triangles.py."""

from h2gpu.batched.qr import complex_panels, householder
from h2gpu.batched.qr.cholesky import cholesky_basis, cholesky_qr
from h2gpu.batched.qr.pivoted import pivoted_qr
from h2gpu.batched.qr.product_triangles import triangles_of_products

__all__ = ["cholesky_basis", "cholesky_qr", "pivoted_qr", "qr", "triangles_of_products"]


def qr(A, mode, out=None):
    """See h2gpu.batched.qr."""
    return (complex_panels if A.dtype.kind == "c" else householder).qr(A, mode, out)
