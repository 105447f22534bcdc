// products/block/slab_product.cuh — a tile of op(A) op(B) by a block, sizes known at run time.
//
// Slabs of SLAB inner indices pass through shared memory, STAGES - 1 in flight; both operands lie there with the inner index
// contiguous and rows PITCH apart, which keeps the reads of common/warp/tile_product.cuh free of bank conflicts.
// Entries outside the matrix are filled with zeros by the copy itself (PADDED), in rows and columns for a study also otherwise: see
// products/block/edge_copies.cuh. Every thread holds a part of the result.
#pragma once
#include "common/thread/copy.cuh"
#include "common/warp/tile_product.cuh"
#include "products/block/edge_copies.cuh"

namespace products {
using namespace common;

constexpr int WARP_ROWS = 2, WARP_COLUMNS = 2, GEMM_THREADS = WARP_ROWS * WARP_COLUMNS * WARP;
constexpr int SLAB = 16, PITCH = SLAB + 4, STAGES = 3;
constexpr int LARGE_TILE = 64 * 64;  // beyond it two blocks a multiprocessor are asked for, not four
constexpr int SLAB_PIECE = 16;  // bytes of a copy where rows allow
constexpr int RUN = 8;  // lanes along the contiguous direction of an operand that is turned on its way to shared memory

// Whether rows of X, of `inner` contiguous entries, begin at multiples of 16 bytes: copies are of as many then.
template <bool Along, int Beyond, typename Real>
__device__ bool in_pieces(const Real* X, int inner) {
    return Along && Beyond == PADDED && inner % (SLAB_PIECE / static_cast<int>(sizeof(Real))) == 0 && reinterpret_cast<unsigned long long>(X) % SLAB_PIECE == 0;
}

// slab[r][k] = op(X)[row0 + r][k0 + k], zero outside; `along`: whether X has the inner index contiguous, `pieces`: as above.
template <int Tile, bool Along, int Beyond = PADDED, typename Real>
__device__ void load_slab(Real* slab, const Real* X, int row0, int k0, int rows, int inner, bool pieces) {
    if (Along && Beyond == PADDED && pieces) {
        constexpr int EACH = SLAB_PIECE / sizeof(Real), ROW = SLAB / EACH, STEP = GEMM_THREADS / ROW;  // entries of a piece, pieces of a row, rows of a pass
        const int k = threadIdx.x % ROW * EACH, r0 = threadIdx.x / ROW, last = k0 + k < inner ? rows - row0 : 0;
        const Real* from = X + static_cast<long long>(row0 + r0) * inner + k0 + k;
        const unsigned target = static_cast<unsigned>(__cvta_generic_to_shared(slab + r0 * PITCH + k));
#pragma unroll
        for (int r = 0; r < Tile; r += STEP, from += static_cast<long long>(STEP) * inner) {
            if (Tile % STEP && r0 + r >= Tile) break;
            const bool valid = r0 + r < last;
            copy_piece(target + r * PITCH * static_cast<int>(sizeof(Real)), valid ? from : X, valid);
        }
        return;
    }
#pragma unroll
    for (int e = threadIdx.x; e < Tile * SLAB; e += GEMM_THREADS) {
        const int k = Along ? e % SLAB : e / RUN % SLAB;
        const int r = Along ? e / SLAB : e / (RUN * SLAB) * RUN + e % RUN;
        if (Beyond == CONDITIONAL && row0 + r >= rows) continue;
        const int row = Beyond == PADDED ? row0 + r : index_read<Beyond>(row0 + r, rows);
        const bool valid = row < rows && k0 + k < inner;
        const long long at = Along ? static_cast<long long>(row) * inner + k0 + k
                                   : static_cast<long long>(k0 + k) * rows + row;
        copy_async(slab + r * PITCH + k, X + (valid ? at : 0), valid);
    }
}

// Calls store(i, j, sum) for every entry of the TileRows × TileColumns tile at (row0, column0), some beyond the m × n matrix.
// A, B: m × k and k × n once transposed as asked; AlongA, AlongB: whether the inner index is contiguous in them
// slabs: STAGES × (TileRows + TileColumns) × PITCH entries of shared memory   zeros: leading inner indices that count nothing
// same: whether rows of A are the columns of B, read once; then `slabs` may have TileRows in place of TileRows + TileColumns
// Side: that counts of a tile on the diagonal; sums of the other are any
template <int TileRows, int TileColumns, bool AlongA, bool AlongB, int Beyond = PADDED, int Side = BOTH_SIDES, typename Real, typename Store>
__device__ __forceinline__ void slab_product(Real* slabs, const Real* A, const Real* B, int row0, int column0, int m, int n, int k, Store store,
                                             int zeros = 0, bool same = false) {
    const int stage_size = (TileRows + (same ? 0 : TileColumns)) * PITCH, right = same ? 0 : TileRows * PITCH;
    const int warp = threadIdx.x / WARP, warp_row = warp / WARP_COLUMNS, warp_column = warp % WARP_COLUMNS;
    constexpr int ROW_STEP = WARP_ROWS * STRIP, COLUMN_STEP = WARP_COLUMNS * STRIP;
    const int row_strips = (m - row0 - warp_row * STRIP + ROW_STEP - 1) / ROW_STEP;
    const int column_strips = (n - column0 - warp_column * STRIP + COLUMN_STEP - 1) / COLUMN_STEP;
    TileProduct<Real, TileRows / ROW_STEP, TileColumns / COLUMN_STEP> product;

    const bool pieces_a = in_pieces<AlongA, Beyond>(A, k), pieces_b = in_pieces<AlongB, Beyond>(B, k);
    const auto load = [&](int slab) {
        Real* stage = slabs + slab % STAGES * stage_size;
        load_slab<TileRows, AlongA, Beyond>(stage, A, row0, slab * SLAB, m, k, pieces_a);
        if (!same) load_slab<TileColumns, AlongB, Beyond>(stage + right, B, column0, slab * SLAB, n, k, pieces_b);
    };
    const int first = zeros / SLAB, count = (k + SLAB - 1) / SLAB;
    for (int slab = first; slab < first + STAGES - 1; slab++) {
        if (slab < count) load(slab);
        copies_issued();
    }
    for (int slab = first; slab < count; slab++) {
        copies_arrived<STAGES - 2>();
        __syncthreads();  // everybody's copies are there, and everybody is done with the stage that is filled next
        if (slab + STAGES - 1 < count) load(slab + STAGES - 1);
        copies_issued();
        const Real* stage = slabs + slab % STAGES * stage_size;
        product.template add<SLAB, PITCH, Side>(stage + warp_row * STRIP * PITCH,
                                          stage + right + warp_column * STRIP * PITCH, ROW_STEP, COLUMN_STEP,
                                          k - slab * SLAB, row_strips, column_strips);
    }
    product.each(row0 + warp_row * STRIP, column0 + warp_column * STRIP, ROW_STEP, COLUMN_STEP, store);
}

}  // namespace products
