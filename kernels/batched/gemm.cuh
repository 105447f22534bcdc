// batched/gemm.cuh — out_b = α op(A_b) op(B_b) + β C_b for a uniform or a ragged batch; one block a tile of out.
//
// Slabs of SLAB inner indices pass through shared memory, STAGES - 1 in flight; both operands lie there with the inner index
// contiguous and rows PITCH apart, which keeps the reads of warp/tile_product.cuh free of bank conflicts.
// Entries outside the matrix are filled with zeros by the copy itself.
#pragma once
#include "thread/copy.cuh"
#include "thread/tiling.cuh"
#include "warp/tile_product.cuh"

constexpr int WARP_ROWS = 2, WARP_COLUMNS = 2, GEMM_THREADS = WARP_ROWS * WARP_COLUMNS * WARP;
constexpr int SLAB = 16, PITCH = SLAB + 4, STAGES = 3;
constexpr int LARGE_TILE = 64 * 64;  // beyond it two blocks a multiprocessor are asked for, not four
constexpr int RUN = 8;  // lanes along the contiguous direction of an operand that is turned on its way to shared memory

// slab[r][k] = op(X)[row0 + r][k0 + k], zero outside; `along`: whether X has the inner index contiguous.
template <int Tile, bool Along, typename Real>
__device__ void load_slab(Real* slab, const Real* X, int row0, int k0, int rows, int inner) {
#pragma unroll
    for (int e = threadIdx.x; e < Tile * SLAB; e += GEMM_THREADS) {
        const int k = Along ? e % SLAB : e / RUN % SLAB;
        const int r = Along ? e / SLAB : e / (RUN * SLAB) * RUN + e % RUN;
        const bool valid = row0 + r < rows && k0 + k < inner;
        const long long at = Along ? static_cast<long long>(row0 + r) * inner + k0 + k
                                   : static_cast<long long>(k0 + k) * rows + row0 + r;
        copy_async(slab + r * PITCH + k, X + (valid ? at : 0), valid);
    }
}

// A, B, C, out: buffers of all matrices (C may be null)   first, owner, each: thread/tiling.cuh
// Ragged batches: first entries of A_b, B_b, C_b, out_b, then rows and columns of out_b and the inner size, each (batch,)
// m, n, k: the shape of every product of a uniform batch, whose lists are null
template <typename Real, int TileRows, int TileColumns, bool TransA, bool TransB>
__global__ __launch_bounds__(GEMM_THREADS, TileRows * TileColumns > LARGE_TILE ? 2 : 4)
void gemm(const Real* A, const Real* B, const Real* C, Real* out, const long long* a_first, const long long* b_first,
          const long long* c_first, const long long* out_first, const long long* rows, const long long* columns,
          const long long* inner, int m, int n, int k,
          const long long* first, const int* owner, int each, Real alpha, Real beta) {
    extern __shared__ __align__(16) unsigned char memory[];
    Real* slabs = reinterpret_cast<Real*>(memory);          // STAGES × (TileRows + TileColumns) × PITCH
    constexpr int STAGE = (TileRows + TileColumns) * PITCH;
    const Tile tile = tile_of_block(first, owner, each);
    const long long b = tile.matrix;
    if (rows) {
        A += a_first[b], B += b_first[b], C += c_first[b], out += out_first[b];
        m = rows[b], n = columns[b], k = inner[b];
    } else {
        A += b * m * k, B += b * k * n, C += b * m * n, out += b * m * n;
    }
    const int across = max(1, (n + TileColumns - 1) / TileColumns), line = tile.index / across;
    if (line * TileRows >= m) return;
    const int row0 = line * TileRows, column0 = (tile.index - line * across) * TileColumns;

    const int warp = threadIdx.x / WARP, warp_row = warp / WARP_COLUMNS, warp_column = warp % WARP_COLUMNS;
    constexpr int ROW_STEP = WARP_ROWS * STRIP, COLUMN_STEP = WARP_COLUMNS * STRIP;
    const int row_strips = (m - row0 - warp_row * STRIP + ROW_STEP - 1) / ROW_STEP;
    const int column_strips = (n - column0 - warp_column * STRIP + COLUMN_STEP - 1) / COLUMN_STEP;
    TileProduct<Real, TileRows / ROW_STEP, TileColumns / COLUMN_STEP> product;

    const auto load = [&](int slab) {
        Real* stage = slabs + slab % STAGES * STAGE;
        load_slab<TileRows, !TransA>(stage, A, row0, slab * SLAB, m, k);
        load_slab<TileColumns, TransB>(stage + TileRows * PITCH, B, column0, slab * SLAB, n, k);
    };
    const int count = (k + SLAB - 1) / SLAB;
    for (int slab = 0; slab < STAGES - 1; slab++) {
        if (slab < count) load(slab);
        copies_issued();
    }
    for (int slab = 0; slab < count; slab++) {
        copies_arrived<STAGES - 2>();
        __syncthreads();  // everybody's copies are there, and everybody is done with the stage that is filled next
        if (slab + STAGES - 1 < count) load(slab + STAGES - 1);
        copies_issued();
        const Real* stage = slabs + slab % STAGES * STAGE;
        product.template add<SLAB, PITCH>(stage + warp_row * STRIP * PITCH,
                                          stage + (TileRows + warp_column * STRIP) * PITCH, ROW_STEP, COLUMN_STEP,
                                          k - slab * SLAB, row_strips, column_strips);
    }
    product.each(row0 + warp_row * STRIP, column0 + warp_column * STRIP, ROW_STEP, COLUMN_STEP,
                 [&](int i, int j, Real sum) {
                     if (i >= m || j >= n) return;
                     const long long at = static_cast<long long>(i) * n + j;
                     out[at] = beta == 0 ? alpha * sum : alpha * sum + beta * C[at];
                 });
}
