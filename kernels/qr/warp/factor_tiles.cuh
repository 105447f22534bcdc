// qr/warp/factor_tiles.cuh — tiles of a left factor in shared memory as the tensor cores read them, turned from tiles of sums.
//
// Tile (band, step) of 16 × 8 holds in the two halves of a lane its entries of inner indices 2t and 2t + 1, lines g and
// g + 8, which are the rows 2g and 2g + 1 of the band: such pairs are what the instruction wants side by side in registers.
// Neither reads of a tile nor writes of the transposed of a tile of sums meet a bank twice. Called by all lanes of a warp
// together.
#pragma once
#include "common/thread/constants.cuh"

namespace qr {
using namespace common;

constexpr int FACTOR_TILE = 2 * WARP;                      // double2 of a tile

template <int N>
struct FactorTiles {
    double2* tiles;                                        // N / 16 bands of N / 8 steps
    static __device__ int slot(int half, int lane) { return half * WARP + (lane ^ (lane >> 3 & 1) << 1); }

    __device__ double2 read(int row0, int inner0, int half) const {
        return tiles[(row0 / 16 * (N / 8) + inner0 / 8) * FACTOR_TILE + slot(half, threadIdx.x % WARP)];
    }

    // y: sums of rows row0 … row0 + 15 (as the lines of the left factor were) and columns column0 … column0 + 7; they become
    // inner indices and rows.
    template <typename Real>
    __device__ void write(const Real (&y)[4], int row0, int column0) const {
        const int line = threadIdx.x % WARP / 4, quad = threadIdx.x % 4;
        double2* tile = tiles + (column0 / 16 * (N / 8) + row0 / 8 + line / 4) * FACTOR_TILE;
        const int lane = 4 * (column0 / 8 % 2 * 4 + quad) + line % 4;
        tile[slot(0, lane)] = {y[0], y[1]};
        tile[slot(1, lane)] = {y[2], y[3]};
    }
};

}  // namespace qr
