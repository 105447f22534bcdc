// systems/warp/rank_update.cuh — a warp's strip of C −= L U, all three in one shared array whose rows lie where `rows` says.
//
// Tiles of 16 × 8 on the tensor cores (common/warp/tile_chain.cuh), L in registers for the whole strip; the product is
// summed from zero and subtracted once, so that C sees no truncated sums.
// Called by whole warps; the result is in shared memory.
#pragma once

#include "common/thread/field.cuh"
#include "common/warp/tile_chain.cuh"

namespace systems {
using namespace common;

constexpr int TILE_ROWS = 16, TILE_COLUMNS = 8, TILE_INNER = 8;

template <typename Real>
struct alignas(2 * sizeof(Real)) Couple { Real first, second; };

template <typename Real>
__device__ Couple<Real>& couple(Real* x) { return *reinterpret_cast<Couple<Real>*>(x); }

// rows       first entry of the row at each position
// top, row   positions of the first row of U, and of the strip, of which `count` ≤ TILE_ROWS rows count
// first      column of L; columns … of C and U up to `stop`, in multiples of TILE_COLUMNS; all even, as are rows
template <int Inner, typename Real>
__device__ void update_strip(Real* A, const int* rows, int top, int row, int count, int first, int columns, int stop) {
    constexpr int STEPS = Inner / TILE_INNER;
    const int g = threadIdx.x % WARP / 4, t = threadIdx.x % 4;
    Real* own[2];
    const Real* upper[STEPS][2];
    Real left[STEPS][4];
#pragma unroll
    for (int h = 0; h < 2; h++) own[h] = A + rows[row + min(g + 8 * h, count - 1)] + 2 * t;
#pragma unroll
    for (int k = 0; k < STEPS; k++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            upper[k][h] = A + rows[top + k * TILE_INNER + 2 * t + h] + g;
            const Couple<Real> pair = couple(own[h] + first + k * TILE_INNER);
            left[k][2 * h] = pair.first, left[k][2 * h + 1] = pair.second;
        }
    for (int j = columns; j < stop; j += TILE_COLUMNS) {
        Real sum[4] = {};
#pragma unroll
        for (int k = 0; k < STEPS; k++) multiply_tile(sum, left[k], upper[k][0][j], upper[k][1][j]);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            if (g + 8 * h >= count) continue;
            Couple<Real>& c = couple(own[h] + j);
            c = {c.first - sum[2 * h], c.second - sum[2 * h + 1]};
        }
    }
}

}  // namespace systems
