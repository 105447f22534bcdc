// warp/crossed_square.cuh — a square in shared memory whose 16 × 8 tiles are left factors of warp/tile_chain.cuh both ways.
//
//     entry (a, b) of N × N lies at  a N + 2 (⌊b / 2⌋ xor s(a)) + b mod 2
//     s(a) = 2 (a & 2) + (a & 4) / 2  in float64,   2 (a & 6)  in float32
//
// Reads of pairs meet no bank twice, whether the inner index of the product runs along b or along a. Lines g and g + 8 of a
// tile are the rows 2g and 2g + 1 of the 16 that it takes: such pairs are what the instruction wants side by side in
// registers. N is a multiple of 16. Called by all lanes of a warp together.
#pragma once
#include "thread/constants.cuh"
#include "thread/power_of_two.cuh"
#include "warp/tile_chain.cuh"

template <typename Real>
__host__ __device__ constexpr int turn_of(int a) {
    return sizeof(Real) == sizeof(double) ? (a & 2) << 1 | (a & 4) >> 1 : (a & 6) << 1;
}
constexpr int TURNS_REPEAT = 8;                            // after so many rows

template <int N, typename Real = double>
__host__ __device__ constexpr int square_entry(int a, int b) {
    return a * N + (((b >> 1) ^ turn_of<Real>(a)) << 1) + (b & 1);
}

// The row that lies in line x mod 16 of the tile of rows 16 ⌊x / 16⌋ …, and the line in which row x lies.
__host__ __device__ constexpr int row_of_line(int x) { return (x & ~15) | (x & 7) << 1 | (x >> 3 & 1); }
__host__ __device__ constexpr int line_of_row(int x) { return (x & ~15) | (x & 1) << 3 | (x >> 1 & 7); }

__device__ inline double2 widened_pair(const double* x) { return *reinterpret_cast<const double2*>(x); }
__device__ inline double2 widened_pair(const float* x) {
    const float2 two = *reinterpret_cast<const float2*>(x);
    return {widened(two.x), widened(two.y)};
}

// Reads tiles of rows row0 … row0 + 15 and inner indices inner0 … inner0 + 7, multiples of 8, in the order of
// warp/tile_chain.cuh. Along: rows of the factor are the square's, inner indices along b; else the other way.
template <int N, bool Along, typename Stored>
struct FactorReader {
    const Stored* lane;                                    // Along: its upper row; else its first two inner indices
    int turn, first;
    __device__ explicit FactorReader(const Stored* square) {
        const int line = threadIdx.x % WARP / 4, quad = threadIdx.x % 4, a = 2 * (Along ? line : quad);
        turn = turn_of<Stored>(a), first = Along ? quad : line, lane = square + a * N;
    }
    __device__ void read(double (&x)[4], int row0, int inner0) const {
        const int a0 = Along ? row0 : inner0, b0 = Along ? inner0 : row0;
        const Stored* source = lane + a0 * N + (((b0 / 2 + first) ^ turn) << 1);
        const double2 even = widened_pair(source), odd = widened_pair(source + N);
        x[0] = even.x, x[3] = odd.y;
        x[Along ? 1 : 2] = even.y, x[Along ? 2 : 1] = odd.x;
    }
};
