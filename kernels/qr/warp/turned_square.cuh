// qr/warp/turned_square.cuh — a square in shared memory whose 8 × 8 tiles are right factors of common/warp/tile_chain.cuh both ways.
//
//     entry (a, b) of N × N lies at  a N + 2 (⌊b / 2⌋ xor s(a)) + b mod 2,
//     s(a) = c (⌊a / 2⌋ mod 4 xor 2 (a mod 2)),   c = 2 in float64, 4 in float32
//
// Reads meet no bank twice, whether the inner index of the product runs along b (pairs) or along a (single entries), and
// pieces of 16 bytes stay together. N is a multiple of 16. Called by all lanes of a warp together.
#pragma once
#include "common/thread/constants.cuh"
#include "common/warp/tile_chain.cuh"

namespace qr {
using namespace common;

template <typename Real>
__host__ __device__ constexpr int turn_of(int a) {
    return ((a >> 1 & 3) ^ (a & 1) << 1) * (sizeof(Real) == sizeof(double) ? 2 : 4);
}
constexpr int TURNS_REPEAT = 8;                            // after so many rows

template <int N, typename Real = double>
__host__ __device__ constexpr int square_entry(int a, int b) {
    return a * N + (((b >> 1) ^ turn_of<Real>(a)) << 1) + (b & 1);
}

// Reads tiles of inner indices inner0 … inner0 + 7 and columns column0 … column0 + 7, multiples of 8, in the order of
// common/warp/tile_chain.cuh: (2t, g), (2t + 1, g). Along: inner indices are the square's b; else its a.
template <int N, bool Along, typename Real>
struct RightReader {
    const Real* lane;                                      // row g
    int turned;                                            // ⌊b / 2⌋ of the lane's first pair
    __device__ explicit RightReader(const Real* square) {
        const int line = threadIdx.x % WARP / 4;
        lane = square + line * N, turned = threadIdx.x % 4 ^ turn_of<Real>(line);
    }
    __device__ void read(Real (&x)[2], int inner0, int column0) const {
        struct alignas(2 * sizeof(Real)) Pair { Real one, other; };
        const Pair pair = *reinterpret_cast<const Pair*>(lane + column0 * N + ((inner0 / 2 ^ turned) << 1));
        x[0] = pair.one, x[1] = pair.other;
    }
};

template <int N, typename Real>
struct RightReader<N, false, Real> {
    static constexpr int PERIOD = 128 / static_cast<int>(sizeof(Real));   // columns within which those of a row are turned
    const Real* lane;                                      // row 2t
    int columns[2][PERIOD / 8];                            // where those of rows 2t and 2t + 1 lie
    __device__ explicit RightReader(const Real* square) {
        const int line = threadIdx.x % WARP / 4, row = 2 * (threadIdx.x % 4);
        lane = square + row * N;
#pragma unroll
        for (int i = 0; i < 2; i++)
#pragma unroll
            for (int j = 0; j < PERIOD / 8; j++) columns[i][j] = square_entry<N, Real>(row + i, 8 * j + line) - row * N;
    }
    __device__ void read(Real (&x)[2], int inner0, int column0) const {
#pragma unroll
        for (int i = 0; i < 2; i++)
            x[i] = lane[inner0 * N + columns[i][column0 / 8 % (PERIOD / 8)] + column0 / PERIOD * PERIOD];
    }
};

}  // namespace qr
