// svd/svd_triangle.cuh — U_b diag(s_b) Vt_b = R_bᵀ for square triangles R_b whose rows come in falling order; one block each.
//
// The columns of R_bᵀ are nearly orthogonal already (Drmač & Veselić 2008): Jacobi straight away, its products on the tensor
// cores (svd/block/pair_sweep.cuh). The matrix and its right vectors stay in shared memory; the sweeps end, for each matrix on its
// own, when one has turned nothing, or so little that its columns are orthogonal to working precision.
//     A  matrices × k × k     U  matrices × k × r     s  matrices × r     Vt  matrices × r × k     (or as the table says)
//     r = min(k, kept), the triplets that are written
//     left, rest   matrices × k × k, upper triangular, or null; of arrays: left U is written, in float32 for k ≤ MOST_TURNED, and
//                  (I + rest)⁻¹ times the right vectors, for a small rest of float64
//     info   matrices: sweeps, or a Failure     worst   the least of 0 and all failures
// Matrices of rank at most `above` or more than `upto` are left to other launches.
#pragma once

#include "svd/block/pair_sweep.cuh"
#include "svd/block/svd_finish.cuh"
#include "svd/block/turn_vectors.cuh"

namespace svd {

// Tiles of a visit under way together: most columns are the widest for their warps or half a warp's fewer, their tiles a multiple of
// SOME. Where warps of a multiprocessor are FEW_WARPS, float32 has the registers for more.
template <typename Real, int Warps, int Resident>
struct TilesAhead {
    static constexpr int SOME = Warps % 4 ? 3 : 4, FEW_WARPS = 10;
    static constexpr int MOST = sizeof(Real) == sizeof(float) && Warps * Resident <= FEW_WARPS ? (Warps % 4 ? 6 : 8) : SOME;
};

// Dynamic shared memory of a block: the workspace, then scratch and two blocks of each of its warps, one for PAIR_COLUMNS columns.
template <typename Real>
__host__ __device__ inline long long triangle_bytes(int k, bool both) {
    const int warps = (k + PAIR_COLUMNS - 1) / PAIR_COLUMNS;
    return workspace_bytes(sizeof(Real), pair_pitch<Real>(both ? 2 * k : k), k, both) + warps * (sizeof(PairScratch<Real>) + 2 * SIDE * SIDE * sizeof(Real));
}

// Resident: blocks that a multiprocessor shall hold   dynamic shared memory: triangle_bytes
template <typename Real, bool Both, int Warps, int Resident>
__global__ __launch_bounds__(Warps * WARP, Resident)
void svd_triangle(const Real* A, Real* U, Real* s, Real* Vt, int* info, int* worst, const long long* table, int m, int n,
                  int vectors, int sweeps, int above, int upto, int kept, const Real* left, const double* rest) {
    extern __shared__ double memory[];
    using Ahead = TilesAhead<Real, Warps, Resident>;
    Problem<Real> p = problem(A, U, s, Vt, table, m, n, blockIdx.x);
    const int k = p.rank();
    if (k <= above || k > upto) return;
    kept = min(k, kept);
    if (!table) p.U = U + blockIdx.x * 1LL * k * kept, p.s = s + blockIdx.x * 1LL * kept, p.Vt = Vt + blockIdx.x * 1LL * kept * k;
    const int pitch = pair_pitch<Real>(Both ? 2 * k : k);
    Workspace<Real> w = workspace<Real>(memory, pitch, k, Both);
    w.ld = pitch;
    char* behind = reinterpret_cast<char*>(memory) + workspace_bytes(sizeof(Real), pitch, k, Both);
    auto* scratch = reinterpret_cast<PairScratch<Real>*>(behind);
    Real* inner = reinterpret_cast<Real*>(scratch + Warps);
    const Vectors failing = Both ? BOTH_VECTORS : LEFT_VECTORS;
    if (!prepare_triangle<Both>(p, w)) return fail(p, failing, NOT_FINITE, info, worst, kept);
    const Panel<Real> panel = {w.W, w.ld, k, k, k, w.norms};
    int sweep = 0;
    bool turned = k > 1;
    while (turned && sweep < sweeps) {
        turned = pair_sweep<Ahead::MOST, Ahead::SOME>(panel, even_blocks<SIDE>(k), Both ? 2 * k : k, scratch, inner,
                                                      orthogonality_tolerance<Real>(k));
        sweep++;
    }
    if (turned) return fail(p, failing, NOT_CONVERGED, info, worst, kept);
    singular_values(p, w, kept);
    if constexpr (Warps * PAIR_COLUMNS <= MOST_TURNED && sizeof(Real) == sizeof(float))
        if (left) multiply_vectors<Warps>(w.W, w.ld, k, left + blockIdx.x * 1LL * k * k);
    if constexpr (Both && sizeof(Real) == sizeof(double))
        if (rest) divide_vectors<Warps>(w.W + k, w.ld, k, rest + blockIdx.x * 1LL * k * k);
    write_vectors<ManyLines>(w, w.W, k, kept, p.U, kept, 1, nullptr);
    if (Both) write_vectors<ManyLines>(w, w.W + k, k, kept, p.Vt, 1, k, nullptr);
    if (threadIdx.x == 0) info[p.index] = sweep;
}

}  // namespace svd
