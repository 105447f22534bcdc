// block/divide_vectors.cuh — V ← (I + F)⁻¹ V in shared memory, F an upper triangle whose fourth power is rounding.
//
// A warp takes sixteen columns of V, as rows of warp/tile_chain.cuh, and goes up by strips of eight entries.
// Called by batched/svd_triangle.cuh, by the whole block.
#pragma once

#include "warp/pair_jacobi.cuh"
#include "warp/tile_chain.cuh"

constexpr int ORDER = 3;                                     // of the series for blocks of I + F on the diagonal

// Y ← Y (I + F)⁻ᵀ for 16 rows.
template <int Strips>
__device__ __forceinline__ void divide_by_rest(double (&y)[Strips][4], const double* F, int k) {
    const int g = threadIdx.x % WARP / 4, t = threadIdx.x % 4;
    const auto entry = [&](int row, int column) { return row < k && column < k ? -F[row * k + column] : 0.0; };
    const auto add = [&](double (&sum)[4], const double (&x)[4], int l, int m) {
        double factor[4];
        as_factor(factor, x);
        multiply_tile(sum, factor, entry(l * SIDE + g, m * SIDE + 2 * t), entry(l * SIDE + g, m * SIDE + 2 * t + 1));
    };
#pragma unroll
    for (int l = Strips - 1; l >= 0; l--) {
        if (l * SIDE >= k) continue;
#pragma unroll
        for (int m = l + 1; m < Strips; m++)
            if (m * SIDE < k) add(y[l], y[m], l, m);
        const double given[4] = {y[l][0], y[l][1], y[l][2], y[l][3]};
#pragma unroll
        for (int order = 1; order <= ORDER; order++) {
            double sum[4] = {given[0], given[1], given[2], given[3]};
            add(sum, y[l], l, l);
#pragma unroll
            for (int e = 0; e < 4; e++) y[l][e] = sum[e];
        }
    }
}

// V   k × k, column-major of leading dimension ld, k ≤ PAIR_COLUMNS · Warps     F   k × k, row-major
template <int Warps>
__device__ void divide_vectors(double* V, int ld, int k, const double* F) {
    constexpr int STRIPS = Warps * PAIR_COLUMNS / SIDE;
    const int g = threadIdx.x % WARP / 4, t = threadIdx.x % 4, column0 = threadIdx.x / WARP * PAIR_COLUMNS;
    double y[STRIPS][4];
    const auto each = [&](auto visit) {
#pragma unroll
        for (int i = 0; i < STRIPS; i++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const int column = column0 + g + e / 2 * SIDE, row = i * SIDE + 2 * t + e % 2;
                visit(y[i][e], V + column * ld + row, row < k && column < k);
            }
    };
    each([](double& y, const double* place, bool here) { y = here ? *place : 0.0; });
    divide_by_rest(y, F, k);
    each([](double y, double* place, bool here) { if (here) *place = y; });
    __syncthreads();
}
