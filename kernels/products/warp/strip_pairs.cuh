// products/warp/strip_pairs.cuh — C += A B with 8 inner indices on the FP64 tensor cores, every matrix in an accumulator's layout.
//
// A tile of 8 × 8 numbers lies in a warp as the tensor cores return one: lane (line, quad) = (lane / 4, lane % 4) holds
// the numbers 2 quad and 2 quad + 1 of line `line`. An inner index is summed over, so its order is free: taking the
// numbers 2 quad as inner indices 0 … 3 and 2 quad + 1 as 4 … 7, a tile that was accumulated is an operand as it is,
//
//     C[i][j] += Σ_k A[i][k] B[j][k]         line of A: i, line of B: j, line of C: i
//
// and nothing moves between lanes. Called by all lanes of a warp together.
#pragma once
#include "common/warp/tile_product.cuh"

namespace products {
using namespace common;

constexpr int TILE = 8;  // rows and columns of a tile

// The position of a lane in a tile.
__device__ inline int tile_line() { return threadIdx.x % WARP / 4; }
__device__ inline int tile_quad() { return threadIdx.x % 4; }

// One tile: A and C stay where they are, the larger instruction wants the numbers of a pair in another order. At half the
// rate on sm_90.
__device__ inline void multiply_tile(double (&c)[2], const double (&a)[2], const double (&b)[2]) {
#pragma unroll
    for (int h = 0; h < 2; h++)
        asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
            : "+d"(c[0]), "+d"(c[1]) : "d"(a[h]), "d"(b[h]));
}

// Two tiles C₀, C₁ below each other += [A₀; A₁] B, at the full rate.
__device__ inline void multiply_pair(double (&c0)[2], double (&c1)[2], const double (&a0)[2], const double (&a1)[2],
                                     const double (&b)[2]) {
#if __CUDA_ARCH__ >= 900
    asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+d"(c0[0]), "+d"(c0[1]), "+d"(c1[0]), "+d"(c1[1])
        : "d"(a0[0]), "d"(a1[0]), "d"(a0[1]), "d"(a1[1]), "d"(b[0]), "d"(b[1]));
#else
    multiply_tile(c0, a0, b);
    multiply_tile(c1, a1, b);
#endif
}

}  // namespace products
