// products/block/thin_tile.cuh — THIN_ROWS rows of op(A_b) B_b a block, B's few columns in the accumulators of every warp: which rows, and where to.
//
// A warp holds 32 rows of out as tiles of common/warp/tile_chain.cuh. The last few tiles of rows, that would run alone, are shared by two blocks.
// Called by products/thin_product.cuh, products/thin_parts.cuh; every thread holds the same but in_tile, its warp's.
#pragma once
#include "common/thread/constants.cuh"

namespace products {
using namespace common;

constexpr int THIN_WARPS = 4, THIN_THREADS = THIN_WARPS * WARP;
constexpr int LINES = 16, TILES = 2, WARP_ROWS = TILES * LINES, THIN_ROWS = THIN_WARPS * WARP_ROWS;
constexpr int STEP = 8;                                      // inner indices of one product
constexpr int LINE = 128, PIECE = 16;                        // bytes of all banks and of a line of memory, of a copy

struct ThinTile {
    int row0, in_tile;                                       // of the block in its matrix, of the warp in the block
    long long b;                                             // the matrix
    bool shared;                                             // half a tile, LINES rows a warp

    // each: tiles of THIN_ROWS a matrix   whole: tiles of a block each; two blocks share one behind
    __device__ __forceinline__ ThinTile(int each, int whole) {
        const int over = static_cast<int>(blockIdx.x) - whole, tile = over < 0 ? blockIdx.x : whole + over / 2;
        const int warp = threadIdx.x / WARP;
        shared = over >= 0;
        in_tile = shared ? over % 2 * (THIN_ROWS / 2) + warp * LINES : warp * WARP_ROWS;
        b = tile / each, row0 = tile % each * THIN_ROWS;
    }
};

// A warp's rows; those of a lane in a tile are Neighbours, or LINES / 2 apart.   out: m × n, n × m if Turned
template <bool Turned, bool Neighbours, typename Real, int Strips>
__device__ __forceinline__ void store_tile(const Real (&total)[TILES][Strips][4], Real* out, const ThinTile& tile, int m, int n) {
    struct alignas(2 * sizeof(Real)) Two { Real x, y; };
    const int g = threadIdx.x % WARP / 4, t = threadIdx.x % 4;
    const int warp_row = tile.row0 + tile.in_tile;
    out += Turned ? static_cast<long long>(2 * t) * m + warp_row : static_cast<long long>(warp_row) * n + 2 * t;
#pragma unroll
    for (int i = 0; i < TILES; i++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int row = i * LINES + (Neighbours ? 2 * g + h : g + h * LINES / 2);
            if (warp_row + row >= m || (tile.shared && i >= TILES / 2)) continue;
#pragma unroll
            for (int j = 0; j < Strips; j++) {
                if (j * STEP + 2 * t >= n) continue;
                const Two two = {total[i][j][2 * h], total[i][j][2 * h + 1]};
                if constexpr (Turned) {                      // a warp writes eight rows of a column together
                    Real* column = out + static_cast<long long>(j * STEP) * m + row;
                    column[0] = two.x, column[m] = two.y;
                } else
                    *reinterpret_cast<Two*>(out + static_cast<long long>(row) * n + j * STEP) = two;
            }
        }
}

}  // namespace products
