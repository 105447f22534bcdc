// systems/lu_register.cuh — P_b A_b = L_b U_b for matrices that a warp, or a part of one, holds in registers.
//
// Rows never move (systems/warp/eliminate.cuh); they reach their final places on the way to memory. Traffic: A once, L and U once.
// "Matrix blocking" of Abdelfattah, Tomov & Dongarra (2019).
#pragma once

#include "systems/thread/place.cuh"
#include "systems/warp/eliminate.cuh"
#include "systems/warp/small_stage.cuh"

namespace systems {

// A, LU    matrices × m × n, or as the table says, m ≤ Lanes, n ≤ N     table   see systems/thread/place.cuh
// pivots   matrices × min(m, n): row k was interchanged with row pivots[k]       info    matrices: see systems/thread/place.cuh
// found    or null: see common/thread/verdicts.cuh
// Shared memory: the stages of Warps · WARP / Lanes matrices.
template <typename Scalar, int N, int Lanes, int Warps>
__global__ __launch_bounds__(Warps * WARP)
void lu_register(const Scalar* A, Scalar* LU, int* pivots, int* info, int* found, const long long* table, int m, int n, long long count) {
    constexpr int HELD = (N + Lanes - 1) / Lanes;  // pivots that a lane remembers
    extern __shared__ __align__(16) unsigned char memory[];
    const int part = threadIdx.x / Lanes, lane = threadIdx.x % Lanes;
    const long long b = static_cast<long long>(blockIdx.x) * (Warps * WARP / Lanes) + part;
    const Place p = b < count ? Place(table, m, n, b) : Place();
    const SmallStage<Scalar, N, Lanes, 1, false> stage(reinterpret_cast<Scalar*>(memory), part);
    Scalar x[1][N];
    const bool finite = stage.load(A + p.source, p.m, p.n, x);
    int position[1] = {lane < p.m ? lane : -1}, held[HELD], verdict = finite ? 0 : NOT_FINITE;
#pragma unroll
    for (int h = 0; h < HELD; h++) held[h] = h * Lanes + lane;
    const int steps = finite ? p.steps() : 0, most = __reduce_max_sync(EVERY_LANE, steps);
    eliminate<Lanes>(x, position, 0, steps, most, [&](int k, int pivot, bool zero) {
#pragma unroll
        for (int h = 0; h < HELD; h++)
            if (k == h * Lanes + lane) held[h] = pivot;
        if (zero && verdict == 0) verdict = k + 1;
    });
    if (!finite)
#pragma unroll
        for (int j = 0; j < N; j++) x[0][j] = not_a_number<Scalar>();
    stage.store(LU + p.target, p.m, p.n, x, position);
#pragma unroll
    for (int h = 0; h < HELD; h++)
        if (h * Lanes + lane < p.steps()) pivots[p.pivots + h * Lanes + lane] = held[h];
    if (b < count && lane == 0) info[p.index] = verdict, tell(found, verdict);
}

}  // namespace systems
