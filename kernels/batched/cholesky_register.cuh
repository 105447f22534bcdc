// batched/cholesky_register.cuh — A_b = L_b L_bᵀ for matrices that a part of a warp holds in registers.
//
//     l_kk = √a_kk,   l_ik = a_ik / l_kk,   a_ij −= l_ik l_jk   for k < j ≤ i
//
// Slot s of a lane holds the first (s + 1) · Lanes entries of a row: nothing above the diagonal blocks is kept, computed or
// read. With Lanes = 8 a warp has four matrices, and what its shuffles deliver takes less time than memory does.
#pragma once

#include "thread/place.cuh"
#include "warp/small_stage.cuh"

// x      lower triangle, row s · Lanes + lane in slot s; L afterwards
// steps  rows of the matrix; `most` of the largest one of the warp
// Returns 0, or one-based the first pivot that is not positive, in every lane of the part.
template <int Lanes, int Slots, int N, typename Real>
__device__ int cholesky_rows(Real (&x)[Slots][N], int steps, int most) {
    int failed = 0;
#pragma unroll
    for (int k = 0; k < N; k++) {
        if (k >= most) break;
        const Real pivot = of_lane<Lanes>(x[k / Lanes][k], k % Lanes), inverse = rsqrt(pivot), near = pivot * inverse;
        const Real root = fma(Real(0.5) * inverse, fma(-near, near, pivot), near);
        if (!(pivot > 0) && failed == 0 && k < steps) failed = k + 1;
#pragma unroll
        for (int s = k / Lanes; s < Slots; s++)
            x[s][k] = s == k / Lanes && threadIdx.x % Lanes == k % Lanes ? root : x[s][k] * inverse;
#pragma unroll
        for (int j = k + 1; j < N; j++) {
            const Real factor = of_lane<Lanes>(x[j / Lanes][k], j % Lanes);
#pragma unroll
            for (int s = j / Lanes; s < Slots; s++) x[s][j] = fma(-x[s][k], factor, x[s][j]);
        }
    }
    return failed;
}

// A, L    matrices × n × n, or as the table says, n ≤ N ≤ Lanes · Slots; of A the lower triangles are read
// info    matrices: see thread/place.cuh; L of a matrix with info ≠ 0 is NaN
// Shared memory: the stages of Warps · WARP / Lanes matrices.
template <typename Real, int N, int Lanes, int Slots, int Warps>
__global__ __launch_bounds__(Warps * WARP)
void cholesky_register(const Real* A, Real* L, int* info, const long long* table, int n, long long count) {
    extern __shared__ __align__(16) unsigned char memory[];
    const int part = threadIdx.x / Lanes, lane = threadIdx.x % Lanes;
    const long long b = static_cast<long long>(blockIdx.x) * (Warps * WARP / Lanes) + part;
    const Place p = b < count ? Place(table, n, n, b) : Place();
    const SmallStage<Real, N, Lanes, Slots> stage(reinterpret_cast<Real*>(memory), part);
    Real x[Slots][N];
    const bool finite = stage.template load<true>(A + p.source, p.n, p.n, x);
    const int verdict = cholesky_rows<Lanes>(x, p.n, __reduce_max_sync(EVERY_LANE, p.n));
    int position[Slots];
#pragma unroll
    for (int s = 0; s < Slots; s++) {
        position[s] = s * Lanes + lane < p.n ? s * Lanes + lane : -1;
        if (finite && verdict == 0) continue;
#pragma unroll
        for (int j = 0; j < min(N, (s + 1) * Lanes); j++) x[s][j] = not_a_number<Real>();
    }
    stage.template store<true>(L + p.target, p.n, p.n, x, position);
    if (b < count && lane == 0) info[p.index] = finite ? verdict : REFUSED;
}
