// products/gemm.cuh — out_b = α op(A_b) op(B_b) + β C_b for a uniform or a ragged batch; one block a tile of out.
#pragma once
#include "common/thread/tiling.cuh"
#include "products/block/slab_product.cuh"

namespace products {
using namespace common;

// A, B, C, out: buffers of all matrices (C may be null)   first, owner, each: common/thread/tiling.cuh
// Ragged batches: first entries of A_b, B_b, C_b, out_b, then rows and columns of out_b and the inner size, each (batch,)
// m, n, k: the shape of every product of a uniform batch, whose lists are null   upper: op(A_b) has zeros below its diagonal
template <typename Real, int TileRows, int TileColumns, bool TransA, bool TransB>
__global__ __launch_bounds__(GEMM_THREADS, TileRows * TileColumns > LARGE_TILE ? 2 : 4)
void gemm(const Real* A, const Real* B, const Real* C, Real* out, const long long* a_first, const long long* b_first,
          const long long* c_first, const long long* out_first, const long long* rows, const long long* columns,
          const long long* inner, int m, int n, int k,
          const long long* first, const int* owner, int each, bool upper, Real alpha, Real beta) {
    extern __shared__ __align__(16) unsigned char memory[];
    Real* slabs = reinterpret_cast<Real*>(memory);          // STAGES × (TileRows + TileColumns) × PITCH
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

    slab_product<TileRows, TileColumns, !TransA, TransB>(slabs, A, B, row0, column0, m, n, k, [&](int i, int j, Real sum) {
        if (i >= m || j >= n) return;
        const long long at = static_cast<long long>(i) * n + j;
        out[at] = beta == 0 ? alpha * sum : alpha * sum + beta * C[at];
    }, upper ? row0 : 0);
}

}  // namespace products
