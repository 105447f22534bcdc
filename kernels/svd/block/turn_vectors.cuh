// svd/block/turn_vectors.cuh — V ← X V or V ← (I + F)⁻¹ V in shared memory, X an upper triangle, F another whose fourth power is rounding.
//
// A warp takes sixteen columns of V, as rows of common/warp/tile_chain.cuh, and goes down or up by strips of eight entries.
// Called by svd/svd_triangle.cuh, by the whole block.
#pragma once

#include "common/warp/tile_chain.cuh"
#include "svd/warp/pair_jacobi.cuh"

namespace svd {
using namespace common;

constexpr int MOST_TURNED = 80;                              // columns whose products with X leave registers enough
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

// Y ← Y Xᵀ for 16 rows. Entries of X are asked for a row of blocks before they are needed.
template <int Strips, typename Real>
__device__ __forceinline__ void multiply_by_triangle(Real (&y)[Strips][4], const Real* X, int k) {
    const int g = threadIdx.x % WARP / 4, t = threadIdx.x % 4;
    Real blocks[2][Strips][2];
    const auto fetch = [&](int l) {
#pragma unroll
        for (int m = 0; m < Strips; m++)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const int row = l * SIDE + g, column = m * SIDE + 2 * t + h;
                if (m >= l) blocks[l % 2][m][h] = row < k && column < k ? X[row * k + column] : Real(0);
            }
    };
    fetch(0);
#pragma unroll
    for (int l = 0; l < Strips; l++) {
        if (l + 1 < Strips) fetch(l + 1);
        Real sum[4] = {};
#pragma unroll
        for (int m = l; m < Strips; m++) {
            Real factor[4];
            as_factor(factor, y[m]);
            multiply_tile(sum, factor, blocks[l % 2][m][0], blocks[l % 2][m][1]);
        }
#pragma unroll
        for (int e = 0; e < 4; e++) y[l][e] = sum[e];
    }
}

// turn(this warp's columns, as rows), of V: k × k, column-major of leading dimension ld, k ≤ PAIR_COLUMNS · Warps
template <int Warps, typename Real, typename Turn>
__device__ __forceinline__ void turn_vectors(Real* V, int ld, int k, Turn turn) {
    constexpr int STRIPS = Warps * PAIR_COLUMNS / SIDE;
    const int g = threadIdx.x % WARP / 4, t = threadIdx.x % 4, column0 = threadIdx.x / WARP * PAIR_COLUMNS;
    Real y[STRIPS][4];
    const auto each = [&](auto visit) {
#pragma unroll
        for (int i = 0; i < STRIPS; i++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const int column = column0 + g + e / 2 * SIDE, row = i * SIDE + 2 * t + e % 2;
                visit(y[i][e], V + column * ld + row, row < k && column < k);
            }
    };
    each([](Real& y, const Real* place, bool here) { y = here ? *place : Real(0); });
    turn(y);
    each([](Real y, Real* place, bool here) { if (here) *place = y; });
    __syncthreads();
}

// X, F   k × k, row-major
template <int Warps, typename Real>
__device__ void multiply_vectors(Real* V, int ld, int k, const Real* X) {
    turn_vectors<Warps>(V, ld, k, [&](auto& y) { multiply_by_triangle(y, X, k); });
}
template <int Warps>
__device__ void divide_vectors(double* V, int ld, int k, const double* F) {
    turn_vectors<Warps>(V, ld, k, [&](auto& y) { divide_by_rest(y, F, k); });
}

}  // namespace svd
