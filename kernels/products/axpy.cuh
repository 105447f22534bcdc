// products/axpy.cuh — out_b = α_b X_b + Y_b; one block a run of AXPY_RUN entries of a matrix.
#pragma once
#include "common/thread/tiling.cuh"
#include "products/thread/operands.cuh"

namespace products {
using namespace common;

constexpr int AXPY_THREADS = 256, AXPY_RUN = 2048;

// X, Y, out: batch × m × n, `count` entries in all   table: products/thread/operands.cuh, X in the place of A, Y in that of y
// alphas: (batch,), or null for alpha for all
template <typename Real>
__global__ __launch_bounds__(AXPY_THREADS)
void axpy(const Real* X, const Real* Y, Real* out, const long long* table, long long batch, const long long* first, const int* owner,
          int each, int m, int n, long long count, const Real* alphas, Real alpha) {
    const Tile tile = tile_of_block(first, owner, each);
    const long long entries = static_cast<long long>(m) * n;
    const Operands at(table, batch, tile.matrix, m, n, entries, entries);
    const long long size = min(static_cast<long long>(at.m) * at.n, count - at.out), begin = static_cast<long long>(tile.index) * AXPY_RUN;
    if (alphas) alpha = alphas[tile.matrix];
#pragma unroll
    for (int e = threadIdx.x; e < AXPY_RUN; e += AXPY_THREADS)
        if (begin + e < size) out[at.out + begin + e] = alpha * X[at.a + begin + e] + Y[at.y + begin + e];
}

}  // namespace products
