// systems/cholesky_register.cuh — A_b = L_b L_bᵀ for matrices that a part of a warp holds in registers.
//
// Nothing above the diagonal blocks is read, kept or computed (systems/warp/cholesky_rows.cuh). With Lanes = 8 a warp has four
// matrices, and what its shuffles deliver takes less time than memory does.
#pragma once

#include "systems/thread/place.cuh"
#include "systems/warp/cholesky_rows.cuh"
#include "systems/warp/small_stage.cuh"

namespace systems {

// A, L    matrices × n × n, or as the table says, n ≤ N ≤ Lanes · Slots; of A the lower triangles are read
// info    matrices: see systems/thread/place.cuh; L of a matrix with info ≠ 0 is NaN
// found   or null: see common/thread/verdicts.cuh
// Shared memory: the stages of Warps · WARP / Lanes matrices.
template <typename Real, int N, int Lanes, int Slots, int Warps>
__global__ __launch_bounds__(Warps * WARP)
void cholesky_register(const Real* A, Real* L, int* info, int* found, const long long* table, int n, long long count) {
    extern __shared__ __align__(16) unsigned char memory[];
    const int part = threadIdx.x / Lanes, lane = threadIdx.x % Lanes;
    const long long b = static_cast<long long>(blockIdx.x) * (Warps * WARP / Lanes) + part;
    const Place p = b < count ? Place(table, n, n, b) : Place();
    const SmallStage<Real, N, Lanes, Slots, true> stage(reinterpret_cast<Real*>(memory), part);
    Real x[Slots][N];
    const bool finite = stage.load(A + p.source, p.n, p.n, x);
    const int verdict = cholesky_rows<Lanes>(x, p.n, __reduce_max_sync(EVERY_LANE, p.n));
    int position[Slots];
#pragma unroll
    for (int s = 0; s < Slots; s++) {
        position[s] = s * Lanes + lane < p.n ? s * Lanes + lane : -1;
        if (finite && verdict == 0) continue;
#pragma unroll
        for (int j = 0; j < min(N, (s + 1) * Lanes); j++) x[s][j] = not_a_number<Real>();
    }
    stage.store(L + p.target, p.n, p.n, x, position);
    const int settled = finite ? verdict : NOT_FINITE;
    if (b < count && lane == 0) info[p.index] = settled, tell(found, settled);
}

}  // namespace systems
