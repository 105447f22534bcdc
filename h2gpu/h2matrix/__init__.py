"""Trees → H²-matrix → smaller H²-matrix.

| symbol | meaning | where |
|---|---|---|
| t, s | row and column cluster | `clustering.ClusterTree` |
| U_t, V_s | row and column basis, points × rank | `ClusterBasis` |
| E_t, F_s | transfer matrix to the parent, rank × parent's rank | `ClusterBasis.transfer` |
| S_ts | coupling, A_ts ≈ U_t S_ts V_sᵀ | `H2Matrix.couplings` |
| D_ts | dense block of two leaves | `H2Matrix.nearfield` |
| R_t | U_t = Q_t R_t, Q orthonormal | `orthogonalization` |
| Z_t | total weight: the farfield of t is U_t Z_tᵀ Pᵀ, P orthonormal | `weights` |
| T_t | new coefficients from old ones | `truncation`, `BasisChange` |
"""

from h2gpu.h2matrix.algebra.low_rank import low_rank, low_rank_update
from h2gpu.h2matrix.algebra.sums import add
from h2gpu.h2matrix.assembly import covariance_matrix, sampled_error
from h2gpu.h2matrix.basis import ClusterBasis
from h2gpu.h2matrix.compression.compress import compress
from h2gpu.h2matrix.compression.orthogonalization import BasisChange, orthogonalize
from h2gpu.h2matrix.compression.projection import project
from h2gpu.h2matrix.compression.truncation import truncate
from h2gpu.h2matrix.construction import build
from h2gpu.h2matrix.matrix import H2Matrix
from h2gpu.h2matrix.planning.planner import plan
from h2gpu.h2matrix.skeletons.known import from_dense, from_entries, from_samples

__all__ = [
    "BasisChange",
    "ClusterBasis",
    "H2Matrix",
    "add",
    "build",
    "compress",
    "covariance_matrix",
    "from_dense",
    "from_entries",
    "from_samples",
    "low_rank",
    "low_rank_update",
    "orthogonalize",
    "plan",
    "project",
    "sampled_error",
    "truncate",
]
