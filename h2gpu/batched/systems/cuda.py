"""Systems of linear equations on the GPU, a file a way: lu*, solutions, cholesky, triangles, determinant and trsm."""

from h2gpu.batched.systems.cholesky import cholesky
from h2gpu.batched.systems.determinant import det, slogdet
from h2gpu.batched.systems.lu import lu_factor
from h2gpu.batched.systems.solutions import inv, solve
from h2gpu.batched.systems.triangles import cholesky_solve, lu_solve
from h2gpu.batched.systems.trsm import trsm

__all__ = ["cholesky", "cholesky_solve", "det", "inv", "lu_factor", "lu_solve", "slogdet", "solve", "trsm"]
