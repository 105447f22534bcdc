// products/syrk.cuh — out_b = α op(A_b) op(A_b)ᵀ + β C_b in one triangle, C_b or zeros in the other; one block a tile.
//
// Tiles are numbered within the triangle, so that no block is idle (Nath, Tomov & Dongarra 2010, block index reordering);
// tiles on the diagonal are computed whole, from one copy of their rows, and stored to the diagonal. Each block writes what
// lies across from its tile, and then its tile. Where a tile is a matrix, strips of it that lie in the other triangle for
// all warps are left out.
#pragma once
#include "common/thread/tiling.cuh"
#include "products/block/slab_product.cuh"

namespace products {
using namespace common;

// A: batch × n × k, or k × n if Trans   C (may be null), out: n × n each   lists: (batch,) each, first entries of A_b, C_b and
// out_b, then n and k; null for a batch of one shape   first, owner, each: common/thread/tiling.cuh
// One: no matrix is larger than the tile
template <typename Real, int Edge, bool Trans, bool Lower, bool One>
__global__ __launch_bounds__(GEMM_THREADS, Edge * Edge > LARGE_TILE ? 2 : 4)
void syrk(const Real* A, const Real* C, Real* out, const long long* a_first, const long long* c_first, const long long* out_first,
          const long long* orders, const long long* inner, int n, int k, const long long* first, const int* owner, int each,
          Real alpha, Real beta) {
    extern __shared__ __align__(16) unsigned char memory[];
    const Tile tile = tile_of_block(first, owner, each);
    const long long b = tile.matrix;
    const bool given = C != nullptr;
    if (orders) {
        A += a_first[b], out += out_first[b];
        if (given) C += c_first[b];
        n = orders[b], k = inner[b];
    } else {
        A += b * n * k, out += b * n * n;
        if (given) C += b * n * n;
    }
    int line = static_cast<int>((sqrtf(8.0f * tile.index + 1) - 1) / 2);
    while ((line + 1) * (line + 2) / 2 <= tile.index) line++;
    while (line * (line + 1) / 2 > tile.index) line--;
    const int across = tile.index - line * (line + 1) / 2;
    if (line * Edge >= n) return;
    const int row0 = (Lower ? line : across) * Edge, column0 = (Lower ? across : line) * Edge;
    const auto kept = [&](long long at) { return given ? C[at] : Real(0); };  // of the other triangle
    const auto store = [&](int i, int j, Real sum) {
        if (i >= n || j >= n) return;
        const long long at = static_cast<long long>(i) * n + j;
        if (Lower ? j > i : j < i) out[at] = kept(at);
        else out[at] = beta == 0 ? alpha * sum : alpha * sum + beta * C[at];
    };
    const bool diagonal = line == across;
    for (int e = threadIdx.x; !One && !diagonal && e < Edge * Edge; e += GEMM_THREADS) {   // first: nothing waits for it
        const int i = column0 + e / Edge, j = row0 + e % Edge;
        const long long at = static_cast<long long>(i) * n + j;
        if (i < n && j < n) out[at] = kept(at);
    }
    constexpr int SIDE = !One ? BOTH_SIDES : Lower ? LOWER_SIDE : UPPER_SIDE;
    slab_product<Edge, Edge, !Trans, !Trans, PADDED, SIDE>(reinterpret_cast<Real*>(memory), A, A, row0, column0, n, n, k, store, 0, diagonal);
}

}  // namespace products
