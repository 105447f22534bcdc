// warp/crossed_square.cuh — a square in shared memory whose 16 × 8 tiles are factors of warp/tile_chain.cuh both ways.
//
//     entry (a, b) of N × N lies at  a N + 2 (⌊b / 2⌋ xor s(a)) + b mod 2,   s(a) = (a & 6) ^ 4 (a & 1)
//
// In float64 neither rows of pairs (inner index along b), nor columns (inner index along a), nor the tiles of sums that a
// warp stores meet a bank twice. N is a multiple of 16. Called by all lanes of a warp together.
#pragma once
#include "thread/constants.cuh"
#include "thread/power_of_two.cuh"
#include "warp/tile_chain.cuh"

__device__ constexpr int turn_of(int a) { return (a & 6) ^ (a & 1) << 2; }

template <int N>
__device__ constexpr int square_entry(int a, int b) { return a * N + (((b >> 1) ^ turn_of(a)) << 1) + (b & 1); }

// The tile of rows row0 … row0 + 15 of the left factor and inner indices inner0 … inner0 + 7, multiples of 8.
// Along: the factor's rows are the square's; else its columns.
template <int N, bool Along>
__device__ void read_factor(double (&x)[4], const double* square, int row0, int inner0) {
    const int line = threadIdx.x % WARP / 4, quad = threadIdx.x % 4;
    if constexpr (Along) {
        const double* source = square + square_entry<N>(row0 + line, inner0 + 2 * quad);
        const double2 upper = *reinterpret_cast<const double2*>(source);
        const double2 lower = *reinterpret_cast<const double2*>(source + 8 * N);
        x[0] = upper.x, x[1] = upper.y, x[2] = lower.x, x[3] = lower.y;
    } else {
#pragma unroll
        for (int e = 0; e < 4; e++) x[e] = square[square_entry<N>(inner0 + 2 * quad + e % 2, row0 + line + e / 2 * 8)];
    }
}

template <int N, bool Along>
__device__ void read_factor(double (&x)[4], const float* square, int row0, int inner0) {
    const int line = threadIdx.x % WARP / 4, quad = threadIdx.x % 4;
#pragma unroll
    for (int e = 0; e < 4; e++) {
        const int row = row0 + line + e / 2 * 8, inner = inner0 + 2 * quad + e % 2;
        x[e] = widened(square[Along ? square_entry<N>(row, inner) : square_entry<N>(inner, row)]);
    }
}
