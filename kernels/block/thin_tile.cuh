// block/thin_tile.cuh — THIN_ROWS rows of op(A_b) B_b a block, all of B's few columns in its accumulators: which rows and columns, and where to.
//
// A warp holds WARP_ROWS rows and all columns of out as tiles of warp/tile_chain.cuh. The last few tiles of rows, that would run alone,
// are shared by SHARERS blocks of LINES rows, whose warps share the columns.
// Called by batched/thin_product.cuh, batched/thin_parts.cuh; every thread holds the same but in_tile and strip0, its warp's.
#pragma once
#include "thread/constants.cuh"

constexpr int THIN_WARPS = 4, THIN_THREADS = THIN_WARPS * WARP;
constexpr int LINES = 16, TILES = 2, WARP_ROWS = TILES * LINES, THIN_ROWS = THIN_WARPS * WARP_ROWS;
constexpr int SHARERS = THIN_ROWS / LINES;
constexpr int STEP = 8;                                      // inner indices of one product
constexpr int LINE = 128, PIECE = 16;                        // bytes of all banks and of a line of memory, of a copy

template <int Strips>
struct ThinTile {
    static constexpr int SHARE = (Strips + THIN_WARPS - 1) / THIN_WARPS;  // strips of STEP columns of a warp of a shared tile
    int row0, end, in_tile, strip0;                          // rows of the block in its matrix, of the warp from there; its first strip
    long long b;                                             // the matrix
    bool shared;                                             // LINES rows a block, SHARE strips a warp

    // each: tiles of THIN_ROWS a matrix   whole: tiles of a block each; SHARERS share one behind   m: rows of a matrix
    __device__ __forceinline__ ThinTile(int each, int whole, int m) {
        const int over = static_cast<int>(blockIdx.x) - whole, tile = over < 0 ? blockIdx.x : whole + over / SHARERS;
        const int warp = threadIdx.x / WARP;
        shared = over >= 0;
        in_tile = shared ? 0 : warp * WARP_ROWS, strip0 = shared ? warp * SHARE : 0;
        b = tile / each, row0 = tile % each * THIN_ROWS + (shared ? over % SHARERS * LINES : 0);
        end = min(m, row0 + (shared ? LINES : THIN_ROWS));
    }

    // Of the Count strips of this warp, or all, the j-th; the last one in place of those beyond.
    template <int Count>
    static __device__ __forceinline__ int strip(int strip0, int j) { return Count == Strips ? j : min(strip0 + j, Strips - 1); }
};

// A warp's rows; those of a lane in a tile are Neighbours, or LINES / 2 apart.   out: m × n, n × m if Turned
template <bool Turned, bool Neighbours, typename Real, int Strips>
__device__ __forceinline__ void store_tile(const Real (&total)[TILES][Strips][4], Real* out, const ThinTile<Strips>& tile, int m, int n) {
    struct alignas(2 * sizeof(Real)) Two { Real x, y; };
    const int g = threadIdx.x % WARP / 4, t = threadIdx.x % 4;
    const int warp_row = tile.row0 + tile.in_tile, column0 = tile.strip0 * STEP + 2 * t;
    out += Turned ? static_cast<long long>(column0) * m + warp_row : static_cast<long long>(warp_row) * n + column0;
#pragma unroll
    for (int i = 0; i < TILES; i++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int row = i * LINES + (Neighbours ? 2 * g + h : g + h * LINES / 2);
            if (warp_row + row >= tile.end) continue;
#pragma unroll
            for (int j = 0; j < Strips; j++) {
                if (column0 + j * STEP >= n || (tile.shared && j >= ThinTile<Strips>::SHARE)) continue;
                const Two two = {total[i][j][2 * h], total[i][j][2 * h + 1]};
                if constexpr (Turned) {                      // a warp writes eight rows of a column together
                    Real* column = out + static_cast<long long>(j * STEP) * m + row;
                    column[0] = two.x, column[m] = two.y;
                } else
                    *reinterpret_cast<Two*>(out + static_cast<long long>(row) * n + j * STEP) = two;
            }
        }
}
